//! SQL commands and the variables in them.

use crate::names::{self, Names};
use crate::source::Source;
use crate::split::Statement;
use crate::{ScriptError, Slot};

/// Maximum number of parameters of a statement in the extended protocol (pgbench's `MAX_ARGS` less the statement).
pub const MAX_PARAMS: usize = 255;

/// One SQL command, sent whole: a statement, or several joined by `\;`.
///
/// A variable is a colon and a name, anywhere: in strings, quoted identifiers and comments as well. Two colons or more
/// in a row begin none, so `::int` stays a cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    fetch: Fetch,
    parts: Vec<SqlPart>,
    parameterised: String,
    params: Vec<Slot>,
}

/// A piece of an SQL command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlPart {
    /// Text to send as it is.
    Text(String),
    /// A variable, replaced by its text if it is defined; if not, its `:name` stays.
    Var(Slot),
}

impl Sql {
    /// Returns the destination of its rows.
    pub fn fetch(&self) -> &Fetch {
        &self.fetch
    }

    pub(crate) fn set_fetch(&mut self, fetch: Fetch) {
        self.fetch = fetch;
    }

    /// Returns the command for the simple protocol: its text in pieces, with the variables between them.
    /// [`Variables::write_statement`](crate::Variables::write_statement) joins them.
    pub fn parts(&self) -> &[SqlPart] {
        &self.parts
    }

    /// Returns the command for the extended protocol, with `$1`, `$2` … in place of the variables.
    pub fn parameterised(&self) -> &str {
        &self.parameterised
    }

    /// Returns the variables of `$1`, `$2` …, one for every occurrence; may be more than [`MAX_PARAMS`], see
    /// [`Script::check_params`](crate::Script::check_params).
    pub fn params(&self) -> &[Slot] {
        &self.params
    }

    /// The command of a statement of the source.
    pub(crate) fn parse(
        source: Source<'_>,
        statement: &Statement,
        names: &mut Names,
    ) -> Result<Sql, ScriptError> {
        let mut sql = Sql {
            fetch: Fetch::Discard,
            parts: Vec::new(),
            parameterised: String::new(),
            params: Vec::new(),
        };
        let mut rest = statement.text.as_str();
        while let Some((before, name, after)) = next_variable(rest) {
            let slot = names.slot(name).ok_or_else(|| source.too_many_variables(statement.offset))?;
            sql.push_text(before);
            sql.parts.push(SqlPart::Var(slot));
            sql.params.push(slot);
            sql.parameterised.push('$');
            sql.parameterised.push_str(&sql.params.len().to_string());
            rest = after;
        }
        sql.push_text(rest);
        Ok(sql)
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(SqlPart::Text(text.to_owned()));
            self.parameterised.push_str(text);
        }
    }
}

/// The text before the first variable, its name, and the text after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b':')?;
        let colons = bytes[at..].iter().take_while(|byte| **byte == b':').count();
        let start = at + colons;
        if colons == 1 && bytes.get(start).is_some_and(|byte| names::is_start(*byte)) {
            let length = bytes[start..].iter().take_while(|byte| names::is_part(**byte)).count();
            return Some((&text[..at], &text[start..start + length], &text[start + length..]));
        }
        at = start;
    }
}

/// Destination of the rows that an SQL command returns. A value becomes the text of a variable
/// ([`Variables::set_text`](crate::Variables::set_text)), null an empty text;
/// [`Names::find_column`](crate::Names::find_column) returns the variable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fetch {
    /// Rows are dropped.
    #[default]
    Discard,
    /// `\gset`: the last result must be one row, whose columns become variables.
    Gset {
        /// Prefix of their names; may be empty.
        prefix: String,
    },
    /// `\aset`: the columns of each result's last row, if there is one, become variables.
    Aset {
        /// Prefix of their names; may be empty.
        prefix: String,
    },
}

impl Fetch {
    /// `gset` or `aset`.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Fetch::Discard => None,
            Fetch::Gset { .. } => Some("gset"),
            Fetch::Aset { .. } => Some("aset"),
        }
    }
}
