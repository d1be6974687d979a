//! Last messages of a kernel that did not come up, from persistent storage or from systemd's journal of its boot.
//! Sources: the kernel's admin-guide/pstore-blk and admin-guide/ramoops; systemd-pstore(8).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use jiff::Timestamp;

/// Number of last lines kept.
const LINES: usize = 40;

/// Last messages of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashLog {
    /// Source of the messages: a file or a command.
    pub source: String,
    /// Last lines.
    pub text: String,
}

impl CrashLog {
    /// Messages of a kernel whose boot was requested at that time; none if it left none.
    pub fn find(release: &str, requested: Timestamp) -> Option<Self> {
        let places = ["/sys/fs/pstore", "/var/lib/systemd/pstore"].map(Path::new);
        Self::in_pstore(&places, requested.into()).or_else(|| Self::in_journal(release))
    }

    /// Most informative line: that of a panic if there is one, else the last.
    pub fn headline(&self) -> &str {
        let lines = || self.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines().find(|line| line.contains("Kernel panic")).or_else(|| lines().next_back());
        // Without its level and time.
        line.map_or("", |line| line.rsplit_once("] ").map_or(line, |(_, message)| message))
    }

    /// End of the newest record of the kernel's log. Records come in parts, of which the first is the end.
    fn in_pstore(places: &[&Path], requested: SystemTime) -> Option<Self> {
        let mut records: Vec<(SystemTime, PathBuf)> = Vec::new();
        for place in places {
            records_under(place, 3, &mut records);
        }
        records.retain(|(modified, _)| *modified >= requested);
        let texts = records.into_iter().filter_map(|(modified, path)| {
            let text = String::from_utf8_lossy(&fs::read(&path).ok()?).into_owned();
            Some((text.contains("Kernel panic"), modified, path, text))
        });
        let (.., path, text) = texts.max_by(|a, b| (a.0, a.1, &b.2).cmp(&(b.0, b.1, &a.2)))?;
        Some(Self { source: path.display().to_string(), text: last_lines(&text) })
    }

    /// End of the log of the previous boot, if it was that kernel's.
    fn in_journal(release: &str) -> Option<Self> {
        let journalctl = "journalctl -b -1 -k -o short-monotonic --no-pager";
        let mut words = journalctl.split(' ');
        let output = Command::new(words.next()?).args(words).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_its = text.lines().take(5).any(|line| line.contains(&format!("Linux version {release} ")));
        is_its.then(|| Self { source: format!("`{journalctl}`"), text: last_lines(&text) })
    }
}

fn records_under(directory: &Path, depth: u32, records: &mut Vec<(SystemTime, PathBuf)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() && depth > 0 {
            records_under(&entry.path(), depth - 1, records);
        } else if meta.is_file()
            && entry.file_name().to_string_lossy().starts_with("dmesg")
            && let Ok(modified) = meta.modified()
        {
            records.push((modified, entry.path()));
        }
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_panic_is_found_and_older_ones_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let moved = directory.path().join("1795393000");
        fs::create_dir(&moved).unwrap();
        let panic = "Panic#1 Part1\n<6>[    3.1] md: done\n<0>[    3.2] Kernel panic - not syncing: no root\n<4>[    3.3] Call Trace:\n";
        fs::write(moved.join("dmesg-erst-1"), panic).unwrap();
        fs::write(moved.join("dmesg-erst-2"), "Panic#1 Part2\n<6>[ 1.0] before\n").unwrap();
        fs::write(moved.join("console-1"), "Kernel panic of something else\n").unwrap();
        let places = [Path::new("/no/such/place"), directory.path()];
        let crash_log = CrashLog::in_pstore(&places, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(crash_log.headline(), "Kernel panic - not syncing: no root");
        assert!(crash_log.source.ends_with("dmesg-erst-1") && crash_log.text.contains("Call Trace"));
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(CrashLog::in_pstore(&places, later), None);
    }
}
