//! The kernel's configuration. Sources: proc(5), `/proc/config.gz`; `/boot/config-RELEASE` of distributions; next to
//! the modules, `/lib/modules/RELEASE/config`, and `build/.config` of a kernel built on this machine.

use std::fmt::Write as _;
use std::io::Read;

use flate2::read::GzDecoder;
use model::environment::KernelConfig;
use sha2::{Digest, Sha256};

use crate::root::Root;

/// Maximum size; real ones have a quarter of a megabyte.
const MAX_BYTES: u64 = 16 << 20;

/// The configuration found.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// Its source and hash.
    pub(super) config: KernelConfig,
    /// Its text, with secrets in the built-in command line masked.
    pub(super) text: String,
}

impl ConfigFile {
    /// Value of an option, named without `CONFIG_`; none if off.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The running kernel's configuration, from the first source that has it.
pub(super) fn find(root: &Root) -> Option<ConfigFile> {
    let own = || {
        let mut text = String::new();
        let packed = root.bytes("proc/config.gz")?;
        GzDecoder::new(packed.as_slice()).take(MAX_BYTES).read_to_string(&mut text).ok()?;
        Some(("proc/config.gz".to_owned(), text))
    };
    let installed = || {
        let release = root.line("proc/sys/kernel/osrelease")?;
        let modules = format!("lib/modules/{release}");
        [format!("boot/config-{release}"), format!("{modules}/config"), format!("{modules}/build/.config")]
            .into_iter()
            .find_map(|file| root.text(&file).map(|text| (file, text)))
    };
    let (file, text) = own().or_else(installed)?;
    let text = masked(&text);
    let sha256 = Sha256::digest(&text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Some(ConfigFile { config: KernelConfig { source: format!("/{file}"), sha256 }, text })
}

fn masked(config: &str) -> String {
    let line = |line: &str| match line.strip_prefix("CONFIG_CMDLINE=\"") {
        Some(arguments) => format!("CONFIG_CMDLINE=\"{}\n", model::secret::mask(arguments.trim_end())),
        None => format!("{line}\n"),
    };
    config.lines().map(line).collect()
}
