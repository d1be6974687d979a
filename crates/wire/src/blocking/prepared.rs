//! Statements that are prepared once and executed repeatedly, all of them in one round trip.
//!
//! Source: PostgreSQL manual, "Message Flow", "Extended Query": everything between two Syncs is one transaction.

use std::sync::Arc;

use super::{Session, SessionError, check_text};
use crate::ResultSet;
use crate::encode::{self, Bind};

/// Statements that a session has prepared; they exist only in this session.
#[derive(Debug)]
pub struct Prepared {
    /// For messages.
    sql: String,
    /// Messages that execute all statements: nothing is encoded at execution.
    message: Vec<u8>,
}

impl Session {
    /// Prepares statements without parameters, in one transaction.
    ///
    /// # Errors
    ///
    /// If the server rejects one of them, or the connection is lost.
    pub fn prepare<'a>(
        &mut self,
        statements: impl IntoIterator<Item = &'a str>,
    ) -> Result<Prepared, SessionError> {
        let mut prepared = Prepared { sql: String::new(), message: Vec::new() };
        for sql in statements {
            check_text(sql).inspect_err(|_| self.output.clear())?;
            // A new name each time: a statement that failed together with others may exist all the same.
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
        self.read_until_ready(true)?;
        self.check_error(&prepared.sql)?;
        Ok(prepared)
    }

    /// Executes one statement with the values of its parameters, as text; returns the results, as
    /// [`Session::query_results`] does. A text with several statements is rejected.
    ///
    /// # Errors
    ///
    /// Same as [`Session::query_results`]; and if there are more than 65,535 values.
    pub fn query_with_values(
        &mut self,
        sql: &str,
        values: &[Option<Arc<str>>],
    ) -> Result<&[ResultSet], SessionError> {
        check_text(sql)?;
        let count = u16::try_from(values.len()).map_err(|_| SessionError::Values(values.len()))?;
        encode::parse("", sql, &mut self.output);
        Bind::new("", count).write(values, &mut self.output, |value, out| {
            value.as_ref().inspect(|value| out.extend_from_slice(value.as_bytes())).is_some()
        });
        encode::execute(&mut self.output);
        encode::sync(&mut self.output);
        self.send()?;
        self.collect_results(|session| {
            let copies = session.read_until_ready(true)?;
            session.finish(sql, copies)
        })
    }

    /// Executes prepared statements in one transaction; returns the result of each, as [`Session::query_results`] does.
    /// Allocates nothing if the response is no larger than previous ones.
    ///
    /// # Errors
    ///
    /// Same as [`Session::query_results`]; statements after the rejected one are not executed.
    pub fn query_prepared(&mut self, prepared: &Prepared) -> Result<&[ResultSet], SessionError> {
        self.output.extend_from_slice(&prepared.message);
        self.send()?;
        self.collect_results(|session| {
            let copies = session.read_until_ready(true)?;
            session.finish(&prepared.sql, copies)
        })
    }
}
