//! The prompt for a password.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::console::Console;

/// Prompts on the terminal, or on standard error and input if there is none. None without an answer.
pub(crate) fn prompt(console: &Console) -> Option<String> {
    const PROMPT: &str = "Password: ";
    match File::options().read(true).write(true).open("/dev/tty") {
        Ok(terminal) => {
            let no_echo = NoEcho::new(&terminal);
            (&terminal).write_all(PROMPT.as_bytes()).ok()?;
            let answer = line(&mut BufReader::new(&terminal));
            drop(no_echo);
            let _ = (&terminal).write_all(b"\n");
            answer
        }
        Err(_) => {
            console.plain(PROMPT);
            line(&mut io::stdin().lock())
        }
    }
}

fn line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|length| *length > 0)?;
    Some(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Turns off the terminal's echo until it is dropped.
struct NoEcho<'a> {
    terminal: &'a File,
    before: Option<Termios>,
}

impl<'a> NoEcho<'a> {
    fn new(terminal: &'a File) -> Self {
        let before = tcgetattr(terminal).ok();
        if let Some(modes) = &before {
            let mut without_echo = modes.clone();
            without_echo.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(terminal, OptionalActions::Flush, &without_echo);
        }
        Self { terminal, before }
    }
}

impl Drop for NoEcho<'_> {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(self.terminal, OptionalActions::Flush, before);
        }
    }
}
