//! Scripts: a text, parsed into commands.

use std::sync::Arc;

use crate::expr::Expr;
use crate::meta::parse_meta;
use crate::names::Names;
use crate::source::{Complaint, LineCounter, Source};
use crate::split::{Splitter, Stop};
use crate::sql::{MAX_PARAMS, Sql, SqlPart};
use crate::{ScriptError, Slot};

/// A parsed script, to be shared by all clients that run it.
#[derive(Debug, Clone)]
pub struct Script {
    name: String,
    commands: Vec<Command>,
    variables: Arc<[String]>,
}

/// One command of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// `\set`: evaluates an expression and stores its value in a variable.
    Set {
        /// The line of the backslash, counted from 1.
        line: u32,
        /// The variable.
        slot: Slot,
        /// The expression.
        expr: Expr,
    },
    /// An SQL command to send.
    Sql(Sql),
}

impl Script {
    /// Parses a script. `name` is what messages call it: the file's name, or a builtin's description.
    ///
    /// # Errors
    ///
    /// For backslash commands that are wrong or not supported yet, and for a script without any command. SQL is never
    /// wrong here; the server judges it.
    pub fn parse(name: &str, text: &str) -> Result<Script, ScriptError> {
        let source = Source { name, text };
        if let Some(nul) = text.find('\0') {
            return Err(complain(
                source,
                nul,
                "unexpected NUL byte",
                "text; neither pgbench nor SQL can have it",
            ));
        }
        let mut names = Names::default();
        let mut lines = LineCounter::default();
        let mut commands = Vec::new();
        let mut splitter = Splitter::new(text);
        loop {
            let (statement, stop) = splitter.next();
            if let Some(statement) = statement {
                let line = lines.line(text, statement.offset);
                commands.push(Command::Sql(Sql::parse(
                    source,
                    statement.offset,
                    line,
                    &statement.text,
                    &mut names,
                )?));
            }
            match stop {
                Stop::Semicolon => {}
                Stop::Backslash(at) => {
                    let (command, end) = parse_meta(source, at, &mut lines, &mut names)?;
                    commands.extend(command);
                    splitter.resume(end);
                }
                Stop::End => break,
            }
        }
        if commands.is_empty() {
            return Err(complain(
                source,
                0,
                "empty command list for script",
                "an SQL command or a backslash command",
            ));
        }
        Ok(Script { name: name.to_owned(), commands, variables: names.into_vec().into() })
    }

    /// The name it was parsed with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its commands, in order.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Every variable that the script names, whether or not it is ever defined, by slot. `default_seed` is among them
    /// if a hash or a permutation takes it silently.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The slot of a variable, unless the script does not name it.
    pub fn slot(&self, variable: &str) -> Option<Slot> {
        let index = self.variables.iter().position(|name| name == variable)?;
        u16::try_from(index).ok().map(Slot)
    }

    /// Whether every statement fits the extended protocol, as pgbench checks it for `-M extended` and `-M prepared`: at
    /// most [`MAX_PARAMS`] variables each. The simple protocol has no such limit.
    pub fn check_params(&self) -> Result<(), ScriptError> {
        let sqls = self.commands.iter().filter_map(|command| match command {
            Command::Sql(sql) => Some(sql),
            Command::Set { .. } => None,
        });
        match sqls.into_iter().find(|sql| sql.params().len() > MAX_PARAMS) {
            Some(sql) => Err(ScriptError::too_many_params(&self.name, sql.line(), &self.original(sql))),
            None => Ok(()),
        }
    }

    pub(crate) fn shared_names(&self) -> Arc<[String]> {
        Arc::clone(&self.variables)
    }

    /// A statement with its `:name`s.
    fn original(&self, sql: &Sql) -> String {
        let piece = |part: &SqlPart| match part {
            SqlPart::Text(text) => text.clone(),
            SqlPart::Var(slot) => format!(":{}", self.variables[slot.index()]),
        };
        sql.parts().iter().map(piece).collect()
    }
}

fn complain(source: Source<'_>, offset: usize, message: &str, expected: &str) -> ScriptError {
    source.error(offset, &Complaint { message, expected, ..Complaint::default() })
}
