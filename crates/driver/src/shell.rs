//! Shell commands of scripts, each on its own thread, so that no other client waits for it.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use crate::io::Waker;

/// The result of a command.
pub(crate) struct ShellResult {
    /// The client that ran it.
    pub(crate) client: usize,
    /// Whether it succeeded or, if its output is read, could be run.
    pub(crate) launched: bool,
    /// Its output, if that is read.
    pub(crate) output: Vec<u8>,
}

/// Stack size of a command's thread, in bytes.
const STACK: usize = 64 * 1024;

/// Starts a thread that runs a command by `/bin/sh -c` and sends the result.
pub(crate) fn start(
    client: usize,
    command: Vec<u8>,
    read_output: bool,
    results: Sender<ShellResult>,
    waker: Waker,
) -> io::Result<()> {
    let body = move || {
        let (launched, output) = run(command, read_output);
        // Fails only if the load is over.
        let _ = results.send(ShellResult { client, launched, output });
        waker.wake();
    };
    thread::Builder::new().name("shell".to_owned()).stack_size(STACK).spawn(body).map(drop)
}

fn run(command: Vec<u8>, read_output: bool) -> (bool, Vec<u8>) {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(OsString::from_vec(command));
    if read_output {
        // As in pgbench, the exit status is ignored if the output is read.
        match shell.stdin(Stdio::inherit()).stderr(Stdio::inherit()).output() {
            Ok(output) => (true, output.stdout),
            Err(_) => (false, Vec::new()),
        }
    } else {
        (shell.status().is_ok_and(|status| status.success()), Vec::new())
    }
}
