//! Shell commands of scripts, each on a thread of its own, so that no other client waits for it.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use crate::io::Waker;

/// What came of a command.
pub(crate) struct ShellResult {
    /// Whose it was.
    pub(crate) client: usize,
    /// Whether it was run to a good end.
    pub(crate) launched: bool,
    /// What it wrote, where that was to be read.
    pub(crate) output: Vec<u8>,
}

/// How large the stack of a command's thread is.
const STACK: usize = 64 * 1024;

/// Runs a command by `/bin/sh -c` and sends what came of it.
pub(crate) fn start(
    client: usize,
    command: Vec<u8>,
    read_output: bool,
    results: Sender<ShellResult>,
    waker: Waker,
) -> io::Result<()> {
    let body = move || {
        let (launched, output) = run(command, read_output);
        // Nobody listens any more only where the load is over.
        let _ = results.send(ShellResult { client, launched, output });
        waker.wake();
    };
    thread::Builder::new().name("shell".to_owned()).stack_size(STACK).spawn(body).map(drop)
}

fn run(command: Vec<u8>, read_output: bool) -> (bool, Vec<u8>) {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(OsString::from_vec(command));
    if read_output {
        // As of pgbench, a bad end does not matter where there is something to read.
        match shell.stdin(Stdio::inherit()).stderr(Stdio::inherit()).output() {
            Ok(output) => (true, output.stdout),
            Err(_) => (false, Vec::new()),
        }
    } else {
        (shell.status().is_ok_and(|status| status.success()), Vec::new())
    }
}
