//! Backslash commands.

use crate::command::{Command, CommandKind};
use crate::lexer::{blank, continuation};
use crate::names::Names;
use crate::parse::parse_expression;
use crate::shell::{ShellWord, ShellWords};
use crate::sleep::{Amount, Sleep, TimeUnit, leading_int};
use crate::source::{Diagnostic, LineCounter, Source};
use crate::sql::Fetch;
use crate::{Expr, ScriptError, Slot};

/// Construct that a backslash begins.
pub(crate) enum Meta {
    /// Nothing: the backslash is alone on its line.
    Empty,
    /// A command.
    Command(Command),
    /// `\gset` or `\aset`, which belongs to the preceding command.
    Fetch(Fetch),
}

/// Parses the backslash command whose backslash is at an offset. Returns it with the offset after its line.
pub(crate) fn parse_meta(
    source: Source<'_>,
    backslash: usize,
    lines: &mut LineCounter,
    names: &mut Names,
) -> Result<(Meta, usize), ScriptError> {
    let line = lines.line(source.text, backslash);
    let mut at = backslash + 1;
    let Some(name) = next_word(source.text, &mut at) else {
        return Ok((Meta::Empty, after_newline(source.text, at)));
    };
    let mut arguments = Arguments { source, name, at, names };
    let known = COMMANDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.text));
    let meta = match known.map(|(_, parser)| parser) {
        Some(Parser::Command(parse)) => {
            let kind = parse(&mut arguments)?;
            let text = source.text[backslash..arguments.at].trim_end_matches('\r').to_owned();
            Meta::Command(Command { line, text, kind })
        }
        Some(Parser::Fetch(fetch)) => Meta::Fetch(arguments.fetch(*fetch)?),
        None => return Err(arguments.unknown()),
    };
    Ok((meta, after_newline(source.text, arguments.at)))
}

/// Parser of a command's arguments.
enum Parser {
    Command(fn(&mut Arguments<'_, '_>) -> Result<CommandKind, ScriptError>),
    Fetch(fn(String) -> Fetch),
}

/// The commands by name. Each reads its arguments up to the end of the line.
const COMMANDS: [(&str, Parser); 13] = [
    ("aset", Parser::Fetch(|prefix| Fetch::Aset { prefix })),
    ("elif", Parser::Command(|arguments| Ok(CommandKind::Elif { expr: arguments.expression()? }))),
    ("else", Parser::Command(|arguments| arguments.no_arguments(CommandKind::Else))),
    ("endif", Parser::Command(|arguments| arguments.no_arguments(CommandKind::Endif))),
    ("endpipeline", Parser::Command(|arguments| arguments.no_arguments(CommandKind::EndPipeline))),
    ("gset", Parser::Fetch(|prefix| Fetch::Gset { prefix })),
    ("if", Parser::Command(|arguments| Ok(CommandKind::If { expr: arguments.expression()? }))),
    ("set", Parser::Command(|arguments| arguments.set())),
    ("setshell", Parser::Command(|arguments| arguments.setshell())),
    ("shell", Parser::Command(|arguments| arguments.shell())),
    ("sleep", Parser::Command(|arguments| arguments.sleep())),
    ("startpipeline", Parser::Command(|arguments| arguments.no_arguments(CommandKind::StartPipeline))),
    ("syncpipeline", Parser::Command(|arguments| arguments.no_arguments(CommandKind::SyncPipeline))),
];

/// pgbench's `MAX_ARGS` less the command's name.
const MAX_WORDS: usize = 255;

/// A word and its offset.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    offset: usize,
}

/// The arguments of a command.
struct Arguments<'a, 'n> {
    source: Source<'a>,
    name: Word<'a>,
    /// Offset of the unread rest.
    at: usize,
    names: &'n mut Names,
}

impl<'a> Arguments<'a, '_> {
    fn set(&mut self) -> Result<CommandKind, ScriptError> {
        let Some(variable) = next_word(self.source.text, &mut self.at) else {
            return Err(self.missing("argument", "\\set NAME EXPRESSION"));
        };
        let slot = self.slot(variable)?;
        Ok(CommandKind::Set { slot, expr: self.expression()? })
    }

    fn setshell(&mut self) -> Result<CommandKind, ScriptError> {
        let words = self.words()?;
        let (variable, command) = match words.as_slice() {
            [variable, command @ ..] if !command.is_empty() => (variable, command),
            _ => return Err(self.missing("argument", "\\setshell NAME COMMAND [ARGUMENT ...]")),
        };
        Ok(CommandKind::SetShell { slot: self.slot(*variable)?, words: self.shell_words(command)? })
    }

    fn shell(&mut self) -> Result<CommandKind, ScriptError> {
        let words = self.words()?;
        if words.is_empty() {
            return Err(self.missing("command", "\\shell COMMAND [ARGUMENT ...]"));
        }
        Ok(CommandKind::Shell { words: self.shell_words(&words)? })
    }

    fn sleep(&mut self) -> Result<CommandKind, ScriptError> {
        const USAGE: &str = "\\sleep NUMBER [us|ms|s]";
        let words = self.words()?;
        let (amount, mut unit) = match words.as_slice() {
            [] => return Err(self.missing("argument", USAGE)),
            [amount] => (*amount, None),
            [amount, unit] => (*amount, Some(*unit)),
            [_, _, more, ..] => return Err(self.error(more.offset, "too many arguments", None, USAGE)),
        };
        let amount = match amount.text.strip_prefix(':') {
            Some(name) => Amount::Variable(self.slot(Word { text: name, ..amount })?),
            None => {
                let sign = usize::from(amount.text.starts_with(['+', '-']));
                let digits = amount.text[sign..].bytes().take_while(u8::is_ascii_digit).count();
                let (number, rest) = amount.text.split_at(sign + digits);
                if !rest.is_empty() {
                    if unit.is_some() || digits == 0 {
                        return Err(self.error(
                            amount.offset,
                            "invalid sleep time, must be an integer",
                            Some(amount.text),
                            USAGE,
                        ));
                    }
                    unit = Some(Word { text: rest, offset: amount.offset + number.len() });
                }
                Amount::Literal(leading_int(number.as_bytes()))
            }
        };
        let unit = match unit {
            None => TimeUnit::Seconds,
            Some(word) => TimeUnit::from_name(word.text).ok_or_else(|| {
                self.error(word.offset, "unrecognized time unit, must be us, ms or s", Some(word.text), USAGE)
            })?,
        };
        Ok(CommandKind::Sleep(Sleep { amount, unit }))
    }

    /// Parses a command without arguments.
    fn no_arguments(&mut self, kind: CommandKind) -> Result<CommandKind, ScriptError> {
        match self.words()?.first() {
            None => Ok(kind),
            Some(word) => {
                let usage = format!("\\{} alone on its line", self.name.text.to_ascii_lowercase());
                Err(self.error(word.offset, "unexpected argument", None, &usage))
            }
        }
    }

    fn fetch(&mut self, fetch: fn(String) -> Fetch) -> Result<Fetch, ScriptError> {
        let words = self.words()?;
        match words.as_slice() {
            [] => Ok(fetch(String::new())),
            [prefix] => Ok(fetch(prefix.text.to_owned())),
            [_, more, ..] => {
                let usage = format!("\\{} [PREFIX]", self.name.text.to_ascii_lowercase());
                Err(self.error(more.offset, "too many arguments", None, &usage))
            }
        }
    }

    fn expression(&mut self) -> Result<Expr, ScriptError> {
        let (expr, end) = parse_expression(self.source, self.name.text, self.at, self.names)?;
        self.at = end;
        Ok(expr)
    }

    /// All remaining words.
    fn words(&mut self) -> Result<Vec<Word<'a>>, ScriptError> {
        let mut words = Vec::new();
        while let Some(word) = next_word(self.source.text, &mut self.at) {
            if words.len() == MAX_WORDS {
                return Err(self.error(word.offset, "too many arguments", None, "at most 255 words"));
            }
            words.push(word);
        }
        Ok(words)
    }

    fn shell_words(&mut self, words: &[Word<'a>]) -> Result<ShellWords, ScriptError> {
        let parsed: Result<_, _> = words
            .iter()
            .map(|word| match word.text.strip_prefix(':') {
                None => Ok(ShellWord::Literal(word.text.to_owned())),
                Some(text) if text.starts_with(':') => Ok(ShellWord::Literal(text.to_owned())),
                Some(name) => Ok(ShellWord::Variable(self.slot(Word { text: name, ..*word })?)),
            })
            .collect();
        let command = words.first().map_or("", |word| word.text).to_owned();
        Ok(ShellWords { command, words: parsed? })
    }

    /// The slot of a variable.
    fn slot(&mut self, variable: Word<'_>) -> Result<Slot, ScriptError> {
        self.names.slot(variable.text).ok_or_else(|| self.source.too_many_variables(variable.offset))
    }

    fn unknown(&self) -> ScriptError {
        let known: Vec<_> = COMMANDS.iter().map(|(name, _)| format!("\\{name}")).collect();
        self.error(self.name.offset, "invalid command", None, &format!("one of: {}", known.join(", ")))
    }

    /// The error of a command that ends too early, located after its name.
    fn missing(&self, what: &str, usage: &str) -> ScriptError {
        let end = self.name.offset + self.name.text.len();
        self.error(end, &format!("missing {what}"), None, usage)
    }

    fn error(&self, offset: usize, message: &str, near: Option<&str>, expected: &str) -> ScriptError {
        let command = Some(self.name.text);
        self.source.error(offset, &Diagnostic { message, near, command, expected, headline: None })
    }
}

/// Returns the next word of a command's line, which ends before `at`; none at the end of the line.
fn next_word<'a>(text: &'a str, at: &mut usize) -> Option<Word<'a>> {
    let bytes = text.as_bytes();
    let offset = *at + blank(&bytes[*at..]);
    let mut end = offset;
    while bytes.get(end).is_some_and(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C))
        && continuation(&bytes[end..]) == 0
    {
        end += 1;
    }
    *at = end;
    (end > offset).then(|| Word { text: &text[offset..end], offset })
}

fn after_newline(text: &str, at: usize) -> usize {
    at + usize::from(text.as_bytes().get(at) == Some(&b'\n'))
}
