//! Messages in pgbench's form, and the error that ends it.

use std::fmt;

/// The name in front of every message.
const PROGRAM: &str = "pgbench";

/// An error that ends pgbench: the text to print and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fatal {
    text: String,
    exit_code: u8,
}

impl Fatal {
    /// An error with exit code 1.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { text: line("error: ", message), exit_code: 1 }
    }

    /// An error of the command line, in the words of `getopt_long`.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self { text: line("", error), exit_code: 1 }.see_help()
    }

    /// Adds another error.
    pub(crate) fn error(mut self, message: impl fmt::Display) -> Self {
        self.text += &line("error: ", message);
        self
    }

    pub(crate) fn detail(mut self, detail: impl fmt::Display) -> Self {
        self.text += &line("detail: ", detail);
        self
    }

    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.text += &line("hint: ", hint);
        self
    }

    pub(crate) fn see_help(self) -> Self {
        self.hint(format_args!("Try \"{PROGRAM} --help\" for more information."))
    }

    /// Adds text that is not in the form of a message.
    pub(crate) fn plain(mut self, text: &str) -> Self {
        self.text += text;
        self
    }

    pub(crate) fn with_exit_code(mut self, exit_code: u8) -> Self {
        self.exit_code = exit_code;
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

/// A message on its own line, without an empty line after it even if a text of the server or libpq ends with a newline.
pub(crate) fn line(level: &str, text: impl fmt::Display) -> String {
    let text = text.to_string();
    format!("{PROGRAM}: {level}{}\n", text.strip_suffix('\n').unwrap_or(&text))
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
