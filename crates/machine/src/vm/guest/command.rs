//! A command in the guest, whose output goes to the host.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::Guest;
use crate::vm::Frame;

/// Exit codes as in shells: of a missing command, of one that can't run, and the addend to a signal's number.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
const SIGNALLED: i32 = 128;

impl Guest {
    /// Runs a command and streams its output to the host; returns its exit code, as in a shell.
    pub fn run(&self, words: &[String]) -> u8 {
        let Some((program, arguments)) = words.split_first() else { return 0 };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command.spawn() {
            Err(error) => {
                self.send_frame(&Frame::Stderr(format!("{program}: {error}\n").into_bytes()));
                if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
            }
            Ok(child) => self.wait(child).unwrap_or(NOT_RUN),
        }
    }

    fn wait(&self, mut child: Child) -> io::Result<u8> {
        let output = child.stdout.take().map(|output| forward(self.clone(), output, Frame::Stdout));
        let errors = child.stderr.take().map(|errors| forward(self.clone(), errors, Frame::Stderr));
        let status = child.wait()?;
        for forwarding in [output, errors].into_iter().flatten() {
            // If output is lost, the exit code still holds.
            let _ = forwarding.join();
        }
        let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_RUN))
    }
}

fn forward(
    guest: Guest,
    mut from: impl Read + Send + 'static,
    frame: fn(Vec<u8>) -> Frame,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            guest.send_frame(&frame(buffer[..length].to_vec()));
        }
    })
}
