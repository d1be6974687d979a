//! How the kernel was configured. Sources: proc(5), `/proc/config.gz`; `/boot/config-RELEASE` of distributions.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::root::Root;

/// Larger than any: one is a quarter of a megabyte.
const LIMIT: u64 = 16 << 20;

/// The configuration, what looks like a secret in the built-in command line masked.
pub(super) fn text(root: &Root) -> Option<String> {
    let own = || {
        let mut text = String::new();
        let packed = root.bytes("proc/config.gz")?;
        GzDecoder::new(packed.as_slice()).take(LIMIT).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let distribution = || root.text(&format!("boot/config-{}", root.line("proc/sys/kernel/osrelease")?));
    Some(masked(&own().or_else(distribution)?))
}

fn masked(config: &str) -> String {
    let line = |line: &str| match line.strip_prefix("CONFIG_CMDLINE=\"") {
        Some(arguments) => format!("CONFIG_CMDLINE=\"{}\n", model::secret::mask(arguments.trim_end())),
        None => format!("{line}\n"),
    };
    config.lines().map(line).collect()
}
