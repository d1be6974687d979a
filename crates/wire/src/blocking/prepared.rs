//! Statements that are prepared once and asked again and again, all of them in one round trip.
//!
//! Source: PostgreSQL manual, "Message Flow", "Extended Query": what is between two Syncs is one transaction.

use super::{Session, SessionError, check_text};
use crate::ResultSet;
use crate::encode::{self, Bind};

/// Statements that a session has prepared; they are of no use to another one.
#[derive(Debug)]
pub struct Prepared {
    /// For messages.
    sql: String,
    /// Asks them all: nothing is encoded when they are asked.
    message: Vec<u8>,
}

impl Session {
    /// Has the server parse statements without parameters, in one transaction.
    ///
    /// # Errors
    ///
    /// If it refuses one of them, or the connection is lost.
    pub fn prepare<'a>(
        &mut self,
        statements: impl IntoIterator<Item = &'a str>,
    ) -> Result<Prepared, SessionError> {
        let mut prepared = Prepared { sql: String::new(), message: Vec::new() };
        for sql in statements {
            check_text(sql).inspect_err(|_| self.output.clear())?;
            // Another name each time: what failed together with others may be there all the same.
            self.prepared += 1;
            let name = format!("q{}", self.prepared);
            encode::parse(&name, sql, &mut self.output);
            Bind::new(&name, 0).write([(); 0], &mut prepared.message, |(), _| true);
            encode::execute(&mut prepared.message);
            if !prepared.sql.is_empty() {
                prepared.sql.push_str("; ");
            }
            prepared.sql.push_str(sql);
        }
        encode::sync(&mut self.output);
        encode::sync(&mut prepared.message);
        self.send()?;
        self.until_ready(true)?;
        self.refusal(&prepared.sql)?;
        Ok(prepared)
    }

    /// Has the server do prepared statements, in one transaction; returns what came of each, as [`Session::ask`] does.
    /// Nothing is allocated for it where the answer is no larger than those before.
    ///
    /// # Errors
    ///
    /// As [`Session::ask`]; those after the one that is refused are not done.
    pub fn ask_prepared(&mut self, prepared: &Prepared) -> Result<&[ResultSet], SessionError> {
        self.output.extend_from_slice(&prepared.message);
        self.send()?;
        self.collected(|session| {
            let copies = session.until_ready(true)?;
            session.conclude(&prepared.sql, copies)
        })
    }
}
