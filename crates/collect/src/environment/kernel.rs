//! The kernel and how busy it was. Source: proc(5), `/proc/sys/kernel`, `/proc/cmdline` and `/proc/loadavg`.

use std::env::consts;

use crate::root::Root;

/// Such as `Linux 6.1.0-37-amd64`.
pub(super) fn name_and_release(root: &Root) -> Option<String> {
    let name = root.line("proc/sys/kernel/ostype")?;
    let release = root.line("proc/sys/kernel/osrelease")?;
    Some(format!("{name} {release}"))
}

/// What it was booted with, what looks like a secret masked.
pub(super) fn command_line(root: &Root) -> Option<String> {
    root.line("proc/cmdline").map(|line| model::secret::mask(&line))
}

/// The machine's architecture; before Linux 6.1, which does not say it in a file, the one pgdyno was built for.
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
