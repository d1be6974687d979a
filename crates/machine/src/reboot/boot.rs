//! A boot: the kernel, its arguments and parameters, and how it is loaded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A kernel that can be booted, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Its release, such as `6.1.0-37-amd64`.
    pub release: String,
    /// Arguments in addition to the machine's own; empty for none.
    pub args: String,
    /// Parameters that are set when it is up.
    pub sysctl: Sysctl,
}

/// A named set of kernel parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sysctl {
    /// Its name in the campaign.
    pub name: String,
    /// Values by name (`vm.swappiness`) or by path.
    pub values: BTreeMap<String, String>,
}

/// How a kernel is booted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// By GRUB, which goes back to its default by itself.
    Grub,
    /// By the running kernel, past firmware and boot loader.
    Kexec,
}

impl Loader {
    /// Its name.
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
