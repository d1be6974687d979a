//! `pgdyno doctor --fix` on this machine: a setting of the kernel for the time of a command.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use skip::skip;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");
/// A choice: `always [madvise] never`.
const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The setting of the machine, as it was when it is dropped.
struct Machine {
    before: String,
}

impl Machine {
    /// With transparent huge pages that `doctor` warns of; none if this process may not set them.
    fn with_a_finding() -> Option<Self> {
        let before = chosen()?;
        fs::write(SETTING, "always").ok()?;
        Some(Self { before })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::write(SETTING, &self.before);
    }
}

fn chosen() -> Option<String> {
    let text = fs::read_to_string(SETTING).ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn doctor(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("doctor").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// A `--fix` whose command has started.
fn fixed(command: &str) -> Child {
    let child = Command::new(PROGRAM)
        .args(["doctor", "--fix", "--yes", "--", "sh", "-c", command])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(|| chosen().as_deref() == Some("madvise"));
    child
}

fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn alone_a_setting_is_set_for_a_command_and_restored_however_that_ends() {
    let Some(_machine) = Machine::with_a_finding() else {
        return skip("this process may not set transparent huge pages");
    };
    // Without a command, it is shown.
    let shown = doctor(&["--fix"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.success() && text.contains(&format!("echo madvise > {SETTING}")), "{text}");
    assert_eq!(chosen().unwrap(), "always");

    // With one, it is set and restored, and the exit code is that of the command.
    let ran = doctor(&["--fix", "--yes", "--", "sh", "-c", &format!("cat {SETTING}; exit 7")]);
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    assert!(String::from_utf8(ran.stdout).unwrap().contains("[madvise]"));
    assert_eq!(chosen().unwrap(), "always");

    // Nobody can be asked.
    let refused = doctor(&["--fix", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--yes"));

    // A command that does not exist changes nothing for long.
    let missing = doctor(&["--fix", "--yes", "--", "/nonexistent/command"]);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    assert_eq!(chosen().unwrap(), "always");

    // Who says no on a terminal keeps the value.
    let mut script = Command::new("script");
    script.args(["-qec", &format!("'{PROGRAM}' doctor --fix -- cat {SETTING}"), "/dev/null"]);
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"n\nn\nn\n").unwrap();
    let terminal = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(
        terminal.contains("from always to madvise? [Y/n]") && terminal.contains("[always]"),
        "{terminal}"
    );

    // SIGTERM ends the command first.
    let mut child = fixed("exec sleep 600");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(chosen().unwrap(), "always");

    // What a killed one has set is restored by the next.
    let mut child = fixed("read line");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(chosen().unwrap(), "madvise");
    let restored = doctor(&["--restore"]);
    let text = String::from_utf8(restored.stderr).unwrap();
    assert!(restored.status.success() && text.contains("to always"), "{text}");
    assert_eq!(chosen().unwrap(), "always");
}
