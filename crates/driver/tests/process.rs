//! The runner's side of the pipes, with a shell in the driver's place.

use std::path::Path;
use std::time::Duration;

use driver::{DriverError, Next, Process};
use model::message::{Reply, Request, VERSION};
use rustix::process::{Pid, getpgid};

/// Longer than a shell takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Result<Process, DriverError> {
    Process::spawn(Path::new("/bin/sh"), &["-c", script])
}

#[test]
fn replies_come_in_turn_and_then_the_end_with_its_reasons() {
    let hello = format!("echo '{{\"hello\":{{\"version\":{VERSION}}}}}'");
    let mut process = shell(&format!("{hello}; echo oops >&2; exit 3")).unwrap();
    assert!(matches!(process.next(PATIENCE), Ok(Next::Reply(Reply::Hello { version: VERSION }))));
    for stderr_is in ["oops\n", ""] {
        match process.next(PATIENCE).unwrap() {
            Next::Exited { status, stderr } => {
                assert_eq!((status.code(), stderr.as_str()), (Some(3), stderr_is))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn other_versions_and_other_words_are_refused() {
    let mut process = shell("echo '{\"hello\":{\"version\":99}}'").unwrap();
    assert!(matches!(process.next(PATIENCE), Err(DriverError::Version { theirs: 99, ours: VERSION })));
    let mut process = shell("echo once upon a time").unwrap();
    let error = process.next(PATIENCE).unwrap_err().to_string();
    assert!(error.contains("once upon a time"), "{error}");
    let error = Process::spawn(Path::new("/nonexistent"), &[]).unwrap_err().to_string();
    assert!(error.contains("/nonexistent"), "{error}");
}

#[test]
fn silence_is_reported_and_a_kill_ends_it() {
    let mut process = shell("read line; read line").unwrap();
    assert!(matches!(process.next(Duration::ZERO), Ok(Next::TimedOut)));
    process.send(&Request::Stop).unwrap();
    assert!(matches!(process.next(Duration::ZERO), Ok(Next::TimedOut)));
    process.kill().unwrap();
    match process.next(PATIENCE).unwrap() {
        Next::Exited { status, .. } => assert!(!status.success()),
        other => panic!("{other:?}"),
    }
    assert!(process.send(&Request::Stop).is_err());
}

#[test]
fn a_process_that_keeps_on_after_its_last_word_is_ended() {
    let mut process = shell("exec >&-; read line").unwrap();
    assert!(matches!(process.next(PATIENCE), Ok(Next::Exited { .. })));
}

/// The runner decides about Ctrl-C.
#[test]
fn signals_of_the_terminal_do_not_reach_it() {
    let process = shell("read line").unwrap();
    let pid = Pid::from_raw(process.pid() as i32).unwrap();
    assert_eq!(getpgid(Some(pid)).unwrap(), pid);
}

#[test]
fn of_a_flood_of_messages_the_end_is_kept() {
    let mut process = shell("yes | head -c 1000000 >&2; echo last >&2").unwrap();
    match process.next(PATIENCE).unwrap() {
        Next::Exited { stderr, .. } => {
            assert!(stderr.ends_with("last\n") && stderr.len() <= 64 * 1024, "{}", stderr.len());
        }
        other => panic!("{other:?}"),
    }
}
