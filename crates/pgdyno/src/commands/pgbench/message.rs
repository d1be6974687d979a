//! Messages as pgbench writes them to standard error.

use std::fmt;
use std::io::{self, Write};

/// The name in front of every message.
const PROGRAM: &str = "pgbench";

/// Why nothing can be done: what to print, and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fatal {
    text: String,
    code: u8,
}

impl Fatal {
    /// An error that ends the program with exit code 1.
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self { text: line("error: ", &message.to_string()), code: 1 }
    }

    /// What `getopt_long` complains about.
    pub(super) fn usage(complaint: &str) -> Self {
        Self { text: line("", complaint), code: 1 }.see_help()
    }

    /// One more error.
    pub(super) fn error(mut self, message: impl fmt::Display) -> Self {
        self.text += &line("error: ", &message.to_string());
        self
    }

    pub(super) fn detail(mut self, detail: impl fmt::Display) -> Self {
        self.text += &line("detail: ", &detail.to_string());
        self
    }

    pub(super) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.text += &line("hint: ", &hint.to_string());
        self
    }

    pub(super) fn see_help(self) -> Self {
        self.hint(format_args!("Try \"{PROGRAM} --help\" for more information."))
    }

    /// Text that is no message of pgbench's own, after the others.
    pub(super) fn plain(mut self, text: &str) -> Self {
        self.text += text;
        self
    }

    /// Another exit code.
    pub(super) fn exit(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Says it, and gives the exit code.
    pub(super) fn report(&self) -> u8 {
        plain(&self.text);
        self.code
    }
}

pub(super) fn error(text: impl fmt::Display) {
    plain(&line("error: ", &text.to_string()));
}

pub(super) fn warning(text: impl fmt::Display) {
    plain(&line("warning: ", &text.to_string()));
}

pub(super) fn detail(text: impl fmt::Display) {
    plain(&line("detail: ", &text.to_string()));
}

/// Without a level: pgbench's informational and debugging messages.
pub(super) fn info(text: impl fmt::Display) {
    plain(&line("", &text.to_string()));
}

/// Text as it is. That it can't be said is no reason to stop.
pub(super) fn plain(text: &str) {
    let _ = io::stdout().lock().flush();
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints to standard output. A reader that goes away is not an error.
pub(super) fn out(text: &str) -> Result<(), Fatal> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fatal::new(format_args!("could not write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A message never ends with an empty line, even where a server's or libpq's text ends with a newline.
fn line(level: &str, text: &str) -> String {
    format!("{PROGRAM}: {level}{}\n", text.strip_suffix('\n').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_details_and_hints_on_lines_of_their_own() {
        let fatal = Fatal::new("no\n").detail("since").hint("try");
        assert_eq!(fatal.text, "pgbench: error: no\npgbench: detail: since\npgbench: hint: try\n");
        assert_eq!(
            Fatal::usage("invalid option -- 'x'").text,
            "pgbench: invalid option -- 'x'\npgbench: hint: Try \"pgbench --help\" for more information.\n"
        );
    }
}
