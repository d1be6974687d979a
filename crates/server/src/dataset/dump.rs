//! Restoring a dump: its SQL is executed, its data are streamed. Only what `pg_dump` writes is understood, and nothing of it
//! is run by a shell.

mod input;
mod statement;

use std::io::{ErrorKind, Write};
use std::path::Path;

use script::{First, first_command};
use wire::blocking::{Session, SessionError};
use wire::quote_identifier;

use crate::control::Control;
use crate::error::{Error, sql_text};
use crate::programs::installation::Installation;
use host::{Progress, check_interrupted};
pub(crate) use input::Format;
use input::Input;
use statement::{Kind, extension, head, missing_role, quoted_name, row_of, without_values};

/// First and last line of what `pg_dump` writes.
const HEADER: &str = "-- PostgreSQL database dump";
const TRAILER: &str = "-- PostgreSQL database dump complete";
/// First line of what `pg_dumpall` writes.
const CLUSTER_HEADER: &str = "-- PostgreSQL database cluster dump";
/// Messages about settings that a server does not know, and about tablespaces that it does not have.
const UNKNOWN_SETTING: &str = "unrecognized configuration parameter";
const UNKNOWN_TABLESPACE: &str = "invalid value for parameter \"default_tablespace\"";
/// Interval of progress, in bytes.
const PROGRESS_BYTES: u64 = 4 << 20;

/// Restores a dump into an empty database. On a server of pgdyno's own, whose `programs` are given, roles that the dump names
/// are created, without login.
///
/// # Errors
/// It is no dump, damaged or truncated; the server refuses a statement; the user wants to stop.
pub(crate) fn restore(
    control: &Control,
    database: &str,
    dump: &Path,
    programs: Option<&Installation>,
    what: &str,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut restore = Restore {
        control,
        session: control.connect(database)?,
        input: Input::open(dump, programs, progress)?,
        creates_roles: programs.is_some(),
        what,
        progress,
        reported: 0,
        creates_database: false,
        unknown_settings: Vec::new(),
    };
    restore.run(dump)?;
    if !restore.unknown_settings.is_empty() {
        progress.notice(&format!(
            "{what}: settings that do not apply to this server were left out: {}",
            restore.unknown_settings.join(", ")
        ));
    }
    Ok(())
}

struct Restore<'a> {
    control: &'a Control,
    session: Session,
    input: Input<'a>,
    creates_roles: bool,
    what: &'a str,
    progress: &'a dyn Progress,
    /// Bytes at the last report of progress.
    reported: u64,
    /// Whether the dump has created its database (`pg_dump --create`), and is to connect to it: that is the tested one here.
    creates_database: bool,
    unknown_settings: Vec<String>,
}

impl Restore<'_> {
    fn run(&mut self, dump: &Path) -> Result<(), Error> {
        let mut line = Vec::new();
        let mut text = String::new();
        let mut first_line = 0;
        let (mut has_header, mut is_complete) = (false, false);
        loop {
            line.clear();
            if !self.input.read_line(&mut line)? {
                break;
            }
            let Ok(piece) = std::str::from_utf8(&line) else {
                let why = "it is not UTF-8; dump the database again, with --encoding=UTF8";
                return Err(self.refused(self.input.line, "", why.to_owned()));
            };
            if text.is_empty() {
                match piece.trim_end() {
                    HEADER => has_header = true,
                    TRAILER => is_complete = true,
                    CLUSTER_HEADER => {
                        let why =
                            "it is of pg_dumpall: all databases and roles; dump one database, with pg_dump";
                        return Err(Error::Dump { path: dump.to_owned(), why: why.to_owned() });
                    }
                    _ => {}
                }
                if piece.starts_with('\\') {
                    self.meta_command(piece.trim_end())?;
                    continue;
                }
                if piece.trim().is_empty() || piece.starts_with("--") {
                    continue;
                }
                first_line = self.input.line;
            }
            text.push_str(piece);
            // Most lines of a long statement end none.
            while piece.contains([';', '\\']) {
                match first_command(&text) {
                    First::Command(sql, end) => {
                        self.statement(&sql, first_line)?;
                        text.drain(..end);
                        if text.trim().is_empty() {
                            text.clear();
                            break;
                        }
                    }
                    First::Backslash => {
                        let why =
                            "a command of psql is not executed: only SQL as pg_dump writes it".to_owned();
                        return Err(self.refused(first_line, &text, why));
                    }
                    First::Open => break,
                }
            }
        }
        if !text.trim().is_empty() || has_header && !is_complete {
            return Err(self.input.truncated());
        }
        self.input.check_archive()
    }

    /// A line that begins with a backslash: commands that `pg_dump` writes; others are refused.
    fn meta_command(&mut self, line: &str) -> Result<(), Error> {
        let refuse = |why: &str| Err(self.refused(self.input.line, line, why.to_owned()));
        match line.split_whitespace().next() {
            // They guard psql against the commands that are not executed here.
            Some("\\restrict" | "\\unrestrict") => Ok(()),
            // The content of the database that the dump has just created.
            Some("\\connect") if self.creates_database => {
                self.creates_database = false;
                Ok(())
            }
            Some("\\connect") => refuse("it is of several databases; dump one, with pg_dump"),
            _ => refuse("a command of psql is not executed: only SQL as pg_dump writes it"),
        }
    }

    fn statement(&mut self, sql: &str, line: u64) -> Result<(), Error> {
        check_interrupted(self.progress)?;
        self.report();
        match Kind::of(sql) {
            Kind::CopyFromStdin => self.copy(sql, line),
            Kind::OtherCopy => {
                let why = "a COPY other than FROM stdin is not executed: pg_dump writes none".to_owned();
                Err(self.refused(line, sql, why))
            }
            Kind::CreateDatabase => {
                self.creates_database = true;
                Ok(())
            }
            // The tested database has no owner, settings and privileges but pgdyno's.
            Kind::OfDatabase => Ok(()),
            Kind::SetEncoding(encoding) => {
                let why = format!(
                    "its encoding is {encoding}, but it is restored in UTF-8; dump the database again, with --encoding=UTF8"
                );
                Err(self.refused(line, "", why))
            }
            Kind::OldStrings => {
                let why = "strings with backslash escapes (standard_conforming_strings = off) are not understood; turn that \
                           setting on, and dump the database again";
                Err(self.refused(line, "", why.to_owned()))
            }
            Kind::Set | Kind::Other => self.execute(sql, line),
        }
    }

    fn execute(&mut self, sql: &str, line: u64) -> Result<(), Error> {
        loop {
            let Err(error) = self.session.execute(sql) else { return Ok(()) };
            let Some(message) = error.server_error().map(|refused| refused.message.clone()) else {
                return Err(self.failed(&error, sql, line));
            };
            // A newer pg_dump sets what this server does not know, and tables go to the one tablespace that there is.
            if Kind::of(sql) == Kind::Set
                && [UNKNOWN_SETTING, UNKNOWN_TABLESPACE].iter().any(|start| message.starts_with(start))
                && let Some(name) = quoted_name(&message)
            {
                if !self.unknown_settings.iter().any(|known| known == name) {
                    self.unknown_settings.push(name.to_owned());
                }
                return Ok(());
            }
            match missing_role(&message) {
                Some(role) if self.creates_roles => {
                    let create = format!("CREATE ROLE {} NOLOGIN", quote_identifier(role));
                    self.control.execute(&mut self.session, &create)?;
                }
                _ => return Err(self.failed(&error, sql, line)),
            }
        }
    }

    /// Streams the data of a table, up to the line `\.`.
    fn copy(&mut self, sql: &str, line: u64) -> Result<(), Error> {
        let (mut is_complete, mut interrupted, mut unreadable) = (false, false, None);
        let Self { session, input, progress, reported, what, .. } = self;
        let copied = session.copy_in(sql, |writer| {
            let mut piece = Vec::new();
            let mut begins_line = true;
            loop {
                if progress.interrupted() {
                    interrupted = true;
                    return Err(ErrorKind::Interrupted.into());
                }
                if let Err(error) = input.read_piece(&mut piece) {
                    unreadable = Some(error);
                    return Err(ErrorKind::InvalidData.into());
                }
                if begins_line && matches!(piece.as_slice(), b"\\.\n" | b"\\.\r\n" | b"\\.") {
                    is_complete = true;
                    return Ok(());
                }
                if piece.is_empty() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                begins_line = piece.ends_with(b"\n");
                writer.write_all(&piece)?;
                if input.done() > *reported + PROGRESS_BYTES {
                    *reported = input.done();
                    progress.step(what, input.done(), input.bytes);
                }
            }
        });
        match copied {
            _ if interrupted => Err(host::Error::Interrupted.into()),
            Err(SessionError::Data { .. }) if let Some(error) = unreadable => {
                Err(self.input.unreadable(&error))
            }
            Err(SessionError::Data { .. }) if !is_complete => Err(self.input.truncated()),
            Err(error) => Err(self.failed(&error, sql, line)),
            Ok(()) => Ok(()),
        }
    }

    fn report(&mut self) {
        let done = self.input.done();
        if done > self.reported + PROGRESS_BYTES || self.reported == 0 {
            self.reported = done;
            self.progress.step(self.what, done, self.input.bytes);
        }
    }

    /// Error of a statement that the server refused, without the data in it.
    fn failed(&self, error: &SessionError, sql: &str, line: u64) -> Error {
        let text = sql_text(error);
        let is_copy = Kind::of(sql) == Kind::CopyFromStdin;
        let is_data = is_copy || head(sql).starts_with("INSERT");
        // Each row is a line.
        let row =
            error.server_error().filter(|_| is_copy).and_then(|refused| row_of(refused.context.as_deref()?));
        let line = line + row.unwrap_or(0);
        let mut why = if is_data { without_values(&text).to_owned() } else { text };
        if let Some(name) = extension(sql) {
            why += &format!(
                "; the server needs the extension {name}: use programs that have it, such as a distribution's (`bin` in \
                 [servers.NAME]), or leave it out of the dump (pg_dump --exclude-extension from 17 on)"
            );
        } else if let Some(role) = error.server_error().and_then(|refused| missing_role(&refused.message)) {
            why += &format!(
                "; create it (CREATE ROLE {} NOLOGIN), or dump with --no-owner --no-privileges",
                quote_identifier(role)
            );
        }
        self.refused(line, sql, why)
    }

    fn refused(&self, line: u64, sql: &str, why: String) -> Error {
        let head = head(sql);
        let statement = if head.is_empty() { String::new() } else { format!(" ({head})") };
        Error::Restore {
            place: format!("{}{statement}", self.input.place(line)),
            server: self.control.title.clone(),
            why,
        }
    }
}
