//! The end of the kernel's log. Source: the kernel's `ABI/testing/dev-kmsg`; dmesg(1) if that is not readable, as in
//! containers.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use rustix::io::Errno;

use crate::root::Root;

/// Number of lines kept.
const LINES: usize = 200;
/// Maximum length of a record (`CONSOLE_EXT_LOG_MAX`).
const RECORD: usize = 8192;

/// The last lines, with secrets masked: the kernel logs its command line and the environment of init.
pub(super) fn last_lines(root: &Root) -> Option<String> {
    let lines = records(root).map(|records| records.iter().flat_map(|record| lines(record)).collect());
    let lines: Vec<String> = lines.or_else(|| root.is_real().then(by_dmesg).flatten())?;
    let last = &lines[lines.len().saturating_sub(LINES)..];
    (!last.is_empty()).then(|| model::secret::mask(&(last.join("\n") + "\n")))
}

/// All records in the kernel's buffer: each read returns one.
fn records(root: &Root) -> Option<Vec<String>> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut file =
        OpenOptions::new().read(true).custom_flags(nonblocking).open(root.path("dev/kmsg")).ok()?;
    let mut records = Vec::new();
    let mut buffer = vec![0; RECORD];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Some(records),
            Ok(length) => records.push(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(records),
            // The next record was overwritten; the following read continues after it.
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// `6,339,5140900,-;text`, then lines of ` KEY=value`, as dmesg prints it: `[    5.140900] text`.
fn lines(record: &str) -> Vec<String> {
    let line = |line: &str| {
        let (head, text) = line.split_once(';')?;
        let us: u64 = head.split(',').nth(2)?.parse().ok()?;
        Some(format!("[{:5}.{:06}] {text}", us / 1_000_000, us % 1_000_000))
    };
    record.lines().filter(|text| !text.starts_with(' ')).filter_map(line).collect()
}

fn by_dmesg() -> Option<Vec<String>> {
    let output = Command::new("dmesg").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}
