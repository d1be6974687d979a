//! The kernel and its load. Source: proc(5), `/proc/sys/kernel`, `/proc/cmdline` and `/proc/loadavg`.

use std::env::consts;

use crate::root::Root;

/// Such as `Linux 6.1.0-37-amd64`.
pub(super) fn name_and_release(root: &Root) -> Option<String> {
    let name = root.line("proc/sys/kernel/ostype")?;
    let release = root.line("proc/sys/kernel/osrelease")?;
    Some(format!("{name} {release}"))
}

/// Its command line, with secrets masked.
pub(super) fn command_line(root: &Root) -> Option<String> {
    root.line("proc/cmdline").map(|line| model::secret::mask(&line))
}

/// The machine's architecture; before Linux 6.1, which has no file for it, that of pgdyno's build.
pub(super) fn architecture(root: &Root) -> Option<String> {
    root.line("proc/sys/kernel/arch").or_else(|| Some(consts::ARCH.to_owned()))
}

/// Load average over one minute, in hundredths.
pub(super) fn load_average_1m_centi(root: &Root) -> Option<u32> {
    let line = root.line("proc/loadavg")?;
    let (whole, hundredths) = line.split(' ').next()?.split_once('.')?;
    if hundredths.len() != 2 {
        return None;
    }
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(hundredths.parse().ok()?)
}
