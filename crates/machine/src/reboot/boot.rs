//! A boot: the kernel, its arguments and parameters, and its loader.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A kernel to boot, with its arguments and parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Release, such as `6.1.0-37-amd64`.
    pub release: String,
    /// Arguments in addition to the machine's own; empty for none.
    pub args: String,
    /// Parameters to set after the boot.
    pub sysctl: Sysctl,
}

/// A named set of kernel parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sysctl {
    /// Name in the campaign.
    pub name: String,
    /// Values by name (`vm.swappiness`) or by path.
    pub values: BTreeMap<String, String>,
}

/// Way to boot a kernel once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB, which returns to its default by itself.
    Grub,
    /// The running kernel, bypassing firmware and boot loader.
    Kexec,
}

impl Loader {
    /// Name of the loader.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grub => "grub",
            Self::Kexec => "kexec",
        }
    }
}

impl std::fmt::Display for Boot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.release)?;
        if !self.args.is_empty() {
            write!(f, " with {}", self.args)?;
        }
        if self.sysctl.values.is_empty() { Ok(()) } else { write!(f, ", sysctl {}", self.sysctl.name) }
    }
}
