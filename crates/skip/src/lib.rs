//! Reports of tests that can't run on this machine. `make test` ends with their number and their reasons.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::thread;

/// Environment variable with the path of the file of skipped tests, one line each.
pub const FILE_VARIABLE: &str = "PGDYNO_SKIPPED_TESTS";

/// Reports that the calling test, or a part of it, can't run here. The test must return by itself.
///
/// # Panics
/// The file of skipped tests can't be written: a skipped test that nobody sees is worse than one that fails.
#[track_caller]
#[expect(clippy::expect_used, clippy::print_stderr, reason = "only tests call it")]
pub fn skip(reason: impl Display) {
    let place = Location::caller().file();
    let thread = thread::current();
    let line = format!("{place}: {}: {reason}", thread.name().unwrap_or("?"));
    eprintln!("skipped: {line}");
    if let Some(file) = std::env::var_os(FILE_VARIABLE) {
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.expect("the file of skipped tests can be written");
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The child process runs this same test, with the variable set.
    #[test]
    fn a_skipped_test_is_a_line_with_its_name_and_reason() {
        if std::env::var_os("SKIPS").is_some() {
            return skip("it is raining");
        }
        let file = std::env::temp_dir().join(format!("skipped-{}", std::process::id()));
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["a_skipped_test_is_a_line", "--test-threads=2"])
            .env("SKIPS", "1")
            .env(FILE_VARIABLE, &file)
            .status()
            .unwrap();
        assert!(status.success());
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(
            text,
            "crates/skip/src/lib.rs: tests::a_skipped_test_is_a_line_with_its_name_and_reason: it is raining\n"
        );
    }
}
