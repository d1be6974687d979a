//! The runner's side of the pipes, with a shell in the driver's place.

use std::path::Path;
use std::time::Duration;

use driver::{DriverError, Process, ProcessEvent};
use model::message::{Reply, Request, VERSION};
use rustix::process::{Pid, getpgid};

/// Longer than a shell takes.
const TIMEOUT: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Result<Process, DriverError> {
    Process::spawn(Path::new("/bin/sh"), &["-c", script])
}

#[test]
fn replies_arrive_in_order_then_the_exit_status_and_stderr() {
    let hello = format!("echo '{{\"hello\":{{\"version\":{VERSION}}}}}'");
    let mut process = shell(&format!("{hello}; echo oops >&2; exit 3")).unwrap();
    assert!(matches!(process.next(TIMEOUT), Ok(ProcessEvent::Reply(Reply::Hello { version: VERSION }))));
    for expected in ["oops\n", ""] {
        match process.next(TIMEOUT).unwrap() {
            ProcessEvent::Exited { status, stderr } => {
                assert_eq!((status.code(), stderr.as_str()), (Some(3), expected))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn other_versions_and_invalid_replies_are_errors() {
    let mut process = shell("echo '{\"hello\":{\"version\":99}}'").unwrap();
    assert!(matches!(process.next(TIMEOUT), Err(DriverError::Version { driver: 99, runner: VERSION })));
    let mut process = shell("echo once upon a time").unwrap();
    let error = process.next(TIMEOUT).unwrap_err().to_string();
    assert!(error.contains("once upon a time"), "{error}");
    let error = Process::spawn(Path::new("/nonexistent"), &[]).unwrap_err().to_string();
    assert!(error.contains("/nonexistent"), "{error}");
}

#[test]
fn a_timeout_is_reported_and_a_kill_ends_the_process() {
    let mut process = shell("read line; read line").unwrap();
    assert!(matches!(process.next(Duration::ZERO), Ok(ProcessEvent::TimedOut)));
    process.send(&Request::Stop).unwrap();
    assert!(matches!(process.next(Duration::ZERO), Ok(ProcessEvent::TimedOut)));
    process.kill().unwrap();
    match process.next(TIMEOUT).unwrap() {
        ProcessEvent::Exited { status, .. } => assert!(!status.success()),
        other => panic!("{other:?}"),
    }
    assert!(process.send(&Request::Stop).is_err());
}

#[test]
fn a_process_that_closes_its_output_without_exiting_is_killed() {
    let mut process = shell("exec >&-; read line").unwrap();
    assert!(matches!(process.next(TIMEOUT), Ok(ProcessEvent::Exited { .. })));
}

/// The runner decides about Ctrl-C.
#[test]
fn signals_of_the_terminal_do_not_reach_it() {
    let process = shell("read line").unwrap();
    let pid = Pid::from_raw(process.pid() as i32).unwrap();
    assert_eq!(getpgid(Some(pid)).unwrap(), pid);
}

#[test]
fn only_the_end_of_a_long_stderr_is_kept() {
    let mut process = shell("yes | head -c 1000000 >&2; echo last >&2").unwrap();
    match process.next(TIMEOUT).unwrap() {
        ProcessEvent::Exited { stderr, .. } => {
            assert!(stderr.ends_with("last\n") && stderr.len() <= 64 * 1024, "{}", stderr.len());
        }
        other => panic!("{other:?}"),
    }
}
