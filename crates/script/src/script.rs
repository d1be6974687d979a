//! Scripts: a text, parsed into commands.

use crate::ScriptError;
use crate::command::{Command, CommandKind};
use crate::conditions;
use crate::meta::{Meta, parse_meta};
use crate::names::Names;
use crate::source::{Diagnostic, LineCounter, Source};
use crate::split::{Splitter, Statement, Stop};
use crate::sql::Fetch;
use crate::sql::{MAX_PARAMS, Sql};

/// A parsed script, shared by all clients that run it.
#[derive(Debug, Clone)]
pub struct Script {
    name: String,
    commands: Vec<Command>,
    /// The error of the first statement that exceeds [`MAX_PARAMS`].
    too_many_params: Option<ScriptError>,
}

impl Script {
    /// Parses a script. `name` is its name in messages: the file's name, or a builtin's description. Allocates slots
    /// for the variables it names.
    ///
    /// # Errors
    ///
    /// For zero bytes, too many variables, invalid or misplaced backslash commands, and for a script without any
    /// command. SQL is not checked; the server does that.
    pub fn parse(name: &str, text: &str, names: &mut Names) -> Result<Script, ScriptError> {
        let source = Source { name, text };
        if let Some(nul) = text.find('\0') {
            return Err(source.error(
                nul,
                &Diagnostic {
                    message: "unexpected NUL byte",
                    expected: "text without NUL bytes, which neither pgbench nor SQL supports",
                    ..Diagnostic::default()
                },
            ));
        }
        let mut script = Script { name: name.to_owned(), commands: Vec::new(), too_many_params: None };
        let mut offsets = Vec::new();
        let mut lines = LineCounter::default();
        let mut splitter = Splitter::new(text);
        loop {
            let (statement, stop) = splitter.next();
            if let Some(statement) = statement {
                let line = lines.line(text, statement.offset);
                script.push_statement(source, line, &statement, names)?;
                offsets.push(statement.offset);
            }
            match stop {
                Stop::Semicolon => {}
                Stop::Backslash(at) => {
                    let (meta, end) = parse_meta(source, at, &mut lines, names)?;
                    match meta {
                        Meta::Empty => {}
                        Meta::Command(command) => {
                            script.commands.push(command);
                            offsets.push(at);
                        }
                        Meta::Fetch(fetch) => script.set_fetch(source, at, fetch)?,
                    }
                    splitter.resume(end);
                }
                Stop::End => break,
            }
        }
        if script.commands.is_empty() {
            let diagnostic = Diagnostic {
                message: "empty command list",
                expected: "an SQL command or a backslash command",
                headline: Some(format!("empty command list for script \"{name}\"")),
                ..Diagnostic::default()
            };
            return Err(source.error(0, &diagnostic));
        }
        conditions::check(source, &script.commands, &offsets)?;
        Ok(script)
    }

    fn push_statement(
        &mut self,
        source: Source<'_>,
        line: u32,
        statement: &Statement,
        names: &mut Names,
    ) -> Result<(), ScriptError> {
        let sql = Sql::parse(source, statement, names)?;
        if sql.params().len() > MAX_PARAMS && self.too_many_params.is_none() {
            let message = format!("statement has too many arguments (maximum is {MAX_PARAMS})");
            let diagnostic = Diagnostic {
                message: &message,
                expected: "fewer :variables in the statement, or the simple protocol",
                headline: Some(format!("{message}: {}", statement.text)),
                ..Diagnostic::default()
            };
            self.too_many_params = Some(source.error(statement.offset, &diagnostic));
        }
        let text = first_line(&statement.text);
        self.commands.push(Command { line, text, kind: CommandKind::Sql(sql) });
        Ok(())
    }

    /// Attaches `\gset` or `\aset`, at an offset, to the preceding command.
    fn set_fetch(&mut self, source: Source<'_>, offset: usize, fetch: Fetch) -> Result<(), ScriptError> {
        let near = match self.commands.last_mut() {
            Some(Command { kind: CommandKind::Sql(sql), .. }) if *sql.fetch() == Fetch::Discard => {
                sql.set_fetch(fetch);
                return Ok(());
            }
            Some(Command { kind: CommandKind::Sql(_), .. }) | None => None,
            Some(command) => Some(command.text.as_str()),
        };
        let diagnostic = Diagnostic {
            message: "\\gset must follow an SQL command",
            near,
            expected: "an SQL command before it that has neither \\gset nor \\aset yet",
            ..Diagnostic::default()
        };
        Err(source.error(offset, &diagnostic))
    }

    /// Returns the name it was parsed with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its commands, in order.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Whether every statement fits the extended protocol, as pgbench checks it for `-M extended` and `-M prepared`: at
    /// most [`MAX_PARAMS`] variables each. The simple protocol has no such limit.
    pub fn check_params(&self) -> Result<(), ScriptError> {
        self.too_many_params.clone().map_or(Ok(()), Err)
    }
}

/// The first line of a statement, of which pgbench keeps at most 127 bytes.
fn first_line(statement: &str) -> String {
    let line = statement.split(['\n', '\r']).next().unwrap_or_default();
    line[..line.floor_char_boundary(127)].to_owned()
}
