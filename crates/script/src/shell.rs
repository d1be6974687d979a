//! The shell commands of `\shell` and `\setshell`.

use crate::sleep::leading_int;
use crate::{EvalError, Slot, Variables};

/// The words of a shell command, with variables among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWords {
    /// The first word as in the script, the command's name in messages.
    pub(crate) command: String,
    pub(crate) words: Vec<ShellWord>,
}

/// One word of a shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellWord {
    /// The word itself. An additional colon escapes one that begins with a colon.
    Literal(String),
    /// A variable, replaced by its text.
    Variable(Slot),
}

/// The longest command that pgbench runs (its `SHELL_COMMAND_SIZE` less 2).
const MAX_COMMAND_BYTES: usize = 254;

impl ShellWords {
    /// Returns the first word as in the script, the command's name in messages.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns the words, in order.
    pub fn words(&self) -> &[ShellWord] {
        &self.words
    }

    /// Appends the command for the shell: the words with one blank between them.
    ///
    /// # Errors
    ///
    /// When a variable is undefined, or the command is longer than pgbench's 254 bytes.
    pub fn write(&self, variables: &Variables, out: &mut Vec<u8>) -> Result<(), EvalError> {
        let start = out.len();
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            match word {
                ShellWord::Literal(text) => out.extend_from_slice(text.as_bytes()),
                ShellWord::Variable(slot) => {
                    variables.write_text(*slot, out).map_err(|_| EvalError::UndefinedIn {
                        command: self.command.clone(),
                        name: format!(":{}", variables.names().name(*slot)),
                    })?;
                }
            }
            if out.len() - start > MAX_COMMAND_BYTES {
                return Err(EvalError::ShellTooLong { command: self.command.clone() });
            }
        }
        Ok(())
    }

    /// Returns the integer that `\setshell` reads from the command's output: that of its first line, of 32 bits (the
    /// lowest ones of a longer one). An empty line is 0.
    ///
    /// # Errors
    ///
    /// When the output is empty, or not an integer.
    pub fn result(&self, output: &[u8]) -> Result<i64, EvalError> {
        let Some(line) = output.split_inclusive(|byte| *byte == b'\n').next() else {
            return Err(EvalError::ShellNoResult { command: self.command.clone() });
        };
        // pgbench reads no further.
        let line = line.get(..63).unwrap_or(line);
        let text = line.trim_ascii();
        let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
        let is_int = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        if is_int || text.is_empty() {
            return Ok(i64::from(leading_int(text) as i32));
        }
        Err(EvalError::ShellResult {
            command: self.command.clone(),
            text: String::from_utf8_lossy(line.trim_ascii_end()).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Names, Value};

    fn words(words: Vec<ShellWord>) -> ShellWords {
        ShellWords { command: "echo".to_owned(), words }
    }

    #[test]
    fn words_are_joined_by_blanks() {
        let mut names = Names::default();
        let slot = names.slot("v").unwrap();
        let mut variables = Variables::new(&names);
        let command = words(vec![
            ShellWord::Literal("echo".to_owned()),
            ShellWord::Literal(":a".to_owned()),
            ShellWord::Variable(slot),
        ]);
        assert_eq!(
            command.write(&variables, &mut Vec::new()).unwrap_err().to_string(),
            "echo: undefined variable \":v\""
        );
        variables.set(slot, Value::Double(1.5)).unwrap();
        let mut out = b"> ".to_vec();
        command.write(&variables, &mut out).unwrap();
        assert_eq!(out, b"> echo :a 1.5");
    }

    #[test]
    fn a_command_may_have_254_bytes() {
        let variables = Variables::new(&Names::default());
        let long = |length: usize| words(vec![ShellWord::Literal("x".repeat(length))]);
        assert_eq!(long(254).write(&variables, &mut Vec::new()), Ok(()));
        assert_eq!(
            long(255).write(&variables, &mut Vec::new()).unwrap_err().to_string(),
            "echo: shell command is too long"
        );
    }

    #[test]
    fn a_result_is_an_integer_on_the_first_line() {
        let command = words(Vec::new());
        for (output, value) in [
            ("7\n", 7),
            (" -7 \nmore", -7),
            ("+7", 7),
            ("\n", 0),
            ("4294967297\n", 1),
            ("99999999999999999999\n", -1),
        ] {
            assert_eq!(command.result(output.as_bytes()), Ok(value), "{output:?}");
        }
        for (output, message) in [
            ("", "echo: could not read result of shell command"),
            ("one\n", "echo: shell command must return an integer (not \"one\")"),
            ("1.5\n", "echo: shell command must return an integer (not \"1.5\")"),
            ("-\n", "echo: shell command must return an integer (not \"-\")"),
        ] {
            assert_eq!(command.result(output.as_bytes()).unwrap_err().to_string(), message, "{output:?}");
        }
    }
}
