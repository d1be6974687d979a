//! A blocking session: for control queries before and after a load, such as creating tables, and for collectors during
//! one.
//!
//! The only module of this crate with sockets; the protocol is implemented by the state machines around it.

mod attempt;
mod cancel;
mod prepared;
mod row;
mod stream;

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::{
    ConnectParams, CopyKind, Encryption, Event, ProtocolError, Reader, ResultKind, ResultSet, ServerError,
    Tls, TlsContext, TlsError, TlsFlow, encode,
};

use attempt::Connected;
pub use attempt::FailedAttempt;
pub use cancel::Canceller;
pub use prepared::Prepared;
pub use row::{FromRow, FromText, RowError};
use stream::Stream;

/// Size of the receive buffer, in bytes.
const RECEIVE_BUFFER: usize = 16 * 1024;

/// Size of the buffer for COPY data, in bytes.
const COPY_BUFFER: usize = 64 * 1024;

/// Errors of a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session could be established. Reports each attempt in libpq's words.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Connect(Vec<FailedAttempt>),
    /// TLS is required, and cannot be used.
    #[error("SSL cannot be used: {0}")]
    Tls(TlsError),
    /// The server rejected a statement.
    #[error("could not execute \"{}\": {source}", abbreviated(.sql))]
    Rejected {
        /// The rejected statement.
        sql: String,
        /// The server's error.
        source: Box<ServerError>,
    },
    /// An unexpected COPY, or none where one was expected.
    #[error("\"{}\" {problem}", abbreviated(.sql))]
    Copy {
        /// The statement.
        sql: String,
        /// The problem with it.
        problem: &'static str,
    },
    /// The data to copy could not be produced.
    #[error("could not copy data to the server with \"{}\": {source}", abbreviated(.sql))]
    Data {
        /// The statement.
        sql: String,
        /// The cause.
        source: io::Error,
    },
    /// The connection is lost.
    #[error("the connection to the server is lost: {0}")]
    Lost(#[from] io::Error),
    /// Nothing was received for longer than [`Session::set_timeout`] allows. The connection is shut down.
    #[error("no response from the server for {0:?}; the connection is closed")]
    TimedOut(Duration),
    /// The server closed the connection, perhaps with an error.
    #[error("server closed the connection unexpectedly{}", .0.as_ref().map(|e| format!(": {e}")).unwrap_or_default())]
    Closed(Option<Box<ServerError>>),
    /// The received bytes cannot be decrypted.
    #[error("{0}")]
    Decrypt(#[from] TlsError),
    /// The received bytes violate the protocol.
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    /// A row does not fit the expected type.
    #[error("invalid result of \"{}\": {source}", abbreviated(.sql))]
    Row {
        /// The statement.
        sql: String,
        /// The column, its value and the expected one.
        source: RowError,
    },
    /// An unexpected number of rows.
    #[error("\"{}\" returned {rows} rows, expected {expected}", abbreviated(.sql))]
    Rows {
        /// The statement.
        sql: String,
        /// Actual number of rows.
        rows: usize,
        /// Expected number of rows, in words.
        expected: &'static str,
    },
    /// A text that cannot be sent.
    #[error("the statement \"{}\" contains a zero byte, which PostgreSQL does not allow", abbreviated(.0))]
    ZeroByte(String),
    /// More values than the protocol allows.
    #[error("a statement has at most 65,535 values, not {0}")]
    Values(usize),
}

impl SessionError {
    /// Returns the server's error, if it is the cause.
    pub fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Rejected { source, .. } | Self::Closed(Some(source)) => Some(source),
            _ => None,
        }
    }

    /// Whether the server can't be reached at present: nothing listens, it starts up or shuts down, or the connection
    /// is lost.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Connect(failed) => !failed.is_empty() && failed.iter().all(FailedAttempt::is_unreachable),
            Self::Rejected { source, .. } | Self::Closed(Some(source)) => source.is_unreachable(),
            Self::Lost(error) => crate::is_unreachable(error),
            Self::Closed(None) | Self::TimedOut(_) => true,
            _ => false,
        }
    }

    /// The socket's error, if that is the cause.
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Connect(failed) => failed.last()?.io_error(),
            Self::Lost(error) => Some(error),
            _ => None,
        }
    }

    /// Whether a password might help: the server asked for one, and none was given.
    pub fn needs_password(&self) -> bool {
        let Self::Connect(failed) = self else { return false };
        failed.last().is_some_and(FailedAttempt::needs_password)
    }
}

/// Rejects a text with a zero byte, the terminator in the protocol.
fn check_text(sql: &str) -> Result<(), SessionError> {
    if sql.contains('\0') { Err(SessionError::ZeroByte(sql.to_owned())) } else { Ok(()) }
}

/// A statement on one line, truncated, for messages.
fn abbreviated(sql: &str) -> String {
    const LENGTH: usize = 80;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

type OnNotice = Box<dyn FnMut(&ServerError) + Send>;

/// A session with a server. It is terminated when dropped.
pub struct Session {
    stream: Stream,
    tls: Option<Box<Tls>>,
    canceller: Arc<Canceller>,
    reader: Reader,
    /// Received and decrypted bytes, read up to `read_to`.
    input: Vec<u8>,
    read_to: usize,
    /// Bytes to send, not encrypted.
    output: Vec<u8>,
    encrypted: Vec<u8>,
    receive_buffer: Vec<u8>,
    on_notice: Option<OnNotice>,
    /// Time to wait for data from the server; unlimited if none.
    timeout: Option<Duration>,
    /// Number of statements prepared so far.
    prepared: u32,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("info", self.info()).field("tls", &self.tls).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects to the first host with a suitable session.
    ///
    /// # Errors
    ///
    /// If there is none; the error lists all attempts.
    pub fn connect(params: &ConnectParams) -> Result<Self, SessionError> {
        let context = TlsContext::new(params).map_err(SessionError::Tls)?;
        let Connected { stream, tls, info, place, input } =
            attempt::connect(params, context.as_ref()).map_err(SessionError::Connect)?;
        let encryption = if tls.is_some() { Encryption::Tls } else { Encryption::Plain };
        let canceller = Canceller { params: params.clone(), place, context, encryption, info };
        Ok(Self {
            stream,
            tls,
            canceller: Arc::new(canceller),
            reader: Reader::default(),
            input,
            read_to: 0,
            output: Vec::new(),
            encrypted: Vec::new(),
            receive_buffer: vec![0; RECEIVE_BUFFER],
            on_notice: None,
            timeout: None,
            prepared: 0,
        })
    }

    /// Passes notices and warnings of the server to `on_notice` when they are read.
    pub fn on_notice(&mut self, on_notice: impl FnMut(&ServerError) + Send + 'static) {
        self.reader.keep_notices(true);
        self.on_notice = Some(Box::new(on_notice));
    }

    /// Sets a timeout: if nothing is received for that long, the session is shut down. A server that limits statements
    /// itself responds earlier; this is for one that disappears silently.
    ///
    /// # Errors
    ///
    /// If the operating system rejects the timeout.
    pub fn set_timeout(&mut self, timeout: Duration) -> Result<(), SessionError> {
        self.stream.set_timeout(Some(timeout))?;
        self.timeout = Some(timeout);
        Ok(())
    }

    /// Returns the server's report on the new session.
    pub fn info(&self) -> &crate::SessionInfo {
        &self.canceller.info
    }

    /// Cancels the session's statements, from any thread.
    pub fn canceller(&self) -> Arc<Canceller> {
        Arc::clone(&self.canceller)
    }

    /// The TLS of the session, if it has any.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_deref()
    }

    /// The server's version as it reports it, such as `18.1`.
    pub fn server_version(&self) -> Option<&str> {
        self.info().server_version()
    }

    /// Executes statements, in one transaction unless they control transactions themselves. Rows are dropped.
    ///
    /// # Errors
    ///
    /// If the server rejects one of them, or the connection is lost.
    pub fn execute(&mut self, sql: &str) -> Result<(), SessionError> {
        self.send_query(sql)?;
        self.read_response(sql)
    }

    /// Like [`Session::execute`]; returns the result of each statement, with all rows as the server wrote them. The
    /// results are kept until the next query.
    ///
    /// # Errors
    ///
    /// Same as [`Session::execute`].
    pub fn query_results(&mut self, sql: &str) -> Result<&[ResultSet], SessionError> {
        self.send_query(sql)?;
        self.collect_results(|session| session.read_response(sql))
    }

    /// Like [`Session::execute`]; returns the rows of the last statement that has rows.
    ///
    /// # Errors
    ///
    /// Same as [`Session::execute`]; and if a row does not fit its type.
    pub fn query<T: FromRow>(&mut self, sql: &str) -> Result<Vec<T>, SessionError> {
        let last = self.query_results(sql)?.iter().rfind(|result| result.kind() == ResultKind::Rows);
        let rows: Result<_, _> = last.into_iter().flat_map(ResultSet::kept_rows).map(T::from_row).collect();
        rows.map_err(|source| SessionError::Row { sql: sql.to_owned(), source })
    }

    /// Like [`Session::query`], for a statement that returns one row or none.
    ///
    /// # Errors
    ///
    /// Same as [`Session::query`]; and if there are more rows.
    pub fn query_opt<T: FromRow>(&mut self, sql: &str) -> Result<Option<T>, SessionError> {
        let mut rows = self.query(sql)?;
        if rows.len() > 1 {
            let expected = "at most one";
            return Err(SessionError::Rows { sql: sql.to_owned(), rows: rows.len(), expected });
        }
        Ok(rows.pop())
    }

    /// Like [`Session::query`], for a statement that returns one row.
    ///
    /// # Errors
    ///
    /// Same as [`Session::query`]; and if there is no row, or more than one.
    pub fn query_one<T: FromRow>(&mut self, sql: &str) -> Result<T, SessionError> {
        let none = || SessionError::Rows { sql: sql.to_owned(), rows: 0, expected: "one" };
        self.query_opt(sql)?.ok_or_else(none)
    }

    /// Executes a `COPY … FROM STDIN` with the data that `write` writes.
    ///
    /// # Errors
    ///
    /// Same as [`Session::execute`]; and if `write` fails, in which case the copied data are discarded.
    pub fn copy_in(
        &mut self,
        sql: &str,
        write: impl FnOnce(&mut CopyWriter<'_>) -> io::Result<()>,
    ) -> Result<(), SessionError> {
        self.send_query(sql)?;
        match self.next_event()? {
            Event::Copy(CopyKind::In) => {}
            Event::Copy(_) => {
                self.read_until_ready(false)?;
                let problem = "is a COPY TO STDOUT, expected COPY FROM STDIN";
                return Err(SessionError::Copy { sql: sql.to_owned(), problem });
            }
            _ => {
                self.check_error(sql)?;
                let problem = "is not a COPY FROM STDIN";
                return Err(SessionError::Copy { sql: sql.to_owned(), problem });
            }
        }
        let mut writer = CopyWriter { session: self, buffer: Vec::with_capacity(COPY_BUFFER) };
        let written = write(&mut writer).and_then(|()| writer.flush());
        match &written {
            Ok(()) => encode::copy_done(&mut self.output),
            Err(_) => encode::copy_fail("the client could not produce the data", &mut self.output),
        }
        self.send()?;
        self.read_until_ready(false)?;
        match written {
            Ok(()) => self.check_error(sql),
            Err(source) => {
                self.reader.take_error();
                Err(SessionError::Data { sql: sql.to_owned(), source })
            }
        }
    }

    fn send_query(&mut self, sql: &str) -> Result<(), SessionError> {
        check_text(sql)?;
        encode::query(&mut self.output, |output| output.extend_from_slice(sql.as_bytes()));
        self.send()
    }

    /// Collects the results that `read` reads, in the memory of the previous ones.
    fn collect_results(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), SessionError>,
    ) -> Result<&[ResultSet], SessionError> {
        self.reader.clear();
        self.reader.collect_all_rows(true);
        let result = read(self);
        self.reader.collect_all_rows(false);
        result.map(|()| self.reader.results())
    }

    /// Reads up to the end of the response to statements that do not copy.
    fn read_response(&mut self, sql: &str) -> Result<(), SessionError> {
        let copies = self.read_until_ready(false)?;
        self.finish(sql, copies)
    }

    fn finish(&mut self, sql: &str, copies: bool) -> Result<(), SessionError> {
        if copies {
            self.reader.take_error();
            let problem = "starts a COPY to or from the client, which is not supported here";
            return Err(SessionError::Copy { sql: sql.to_owned(), problem });
        }
        self.check_error(sql)
    }

    /// Reads until the server is ready; returns whether a COPY started. Data are dropped, and none are sent.
    /// `extended`: a Sync was sent, which a COPY to the server discards.
    fn read_until_ready(&mut self, extended: bool) -> Result<bool, SessionError> {
        let mut copies = false;
        loop {
            match self.next_event()? {
                Event::Ready(_) => return Ok(copies),
                Event::Copy(CopyKind::In) => {
                    copies = true;
                    encode::copy_fail("no data to copy", &mut self.output);
                    if extended {
                        encode::sync(&mut self.output);
                    }
                    self.send()?;
                }
                Event::Copy(_) => copies = true,
                Event::Result { .. } | Event::Failed => {}
            }
        }
    }

    fn check_error(&mut self, sql: &str) -> Result<(), SessionError> {
        match self.reader.take_error() {
            Some(source) => Err(SessionError::Rejected { sql: sql.to_owned(), source: Box::new(source) }),
            None => Ok(()),
        }
    }

    /// Waits for the next event.
    fn next_event(&mut self) -> Result<Event, SessionError> {
        loop {
            let (taken, event) = self.reader.next(&self.input[self.read_to..])?;
            self.read_to += taken;
            if let Some(on_notice) = &mut self.on_notice {
                while let Some(notice) = self.reader.take_notice() {
                    on_notice(&notice);
                }
            }
            if let Some(event) = event {
                return Ok(event);
            }
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Result<(), SessionError> {
        self.input.clear();
        self.read_to = 0;
        let length = match self.stream.receive(&mut self.receive_buffer) {
            Ok(0) => return Err(self.closed()),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(self.closed()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // A late response would be treated as that of another query.
                self.stream.shut_down();
                return Err(SessionError::TimedOut(self.timeout.unwrap_or_default()));
            }
            Err(error) => return Err(error.into()),
        };
        match &mut self.tls {
            None => self.input.extend_from_slice(&self.receive_buffer[..length]),
            Some(tls) => {
                let flow = tls.decrypt(&self.receive_buffer[..length], &mut self.input)?;
                if flow == TlsFlow::Closed && self.input.is_empty() {
                    return Err(self.closed());
                }
            }
        }
        Ok(())
    }

    fn closed(&mut self) -> SessionError {
        SessionError::Closed(self.reader.take_error().map(Box::new))
    }

    fn send(&mut self) -> Result<(), SessionError> {
        let output = match &mut self.tls {
            None => &mut self.output,
            Some(tls) => {
                tls.encrypt(&self.output, &mut self.encrypted)?;
                self.output.clear();
                &mut self.encrypted
            }
        };
        let sent = self.stream.send(output);
        output.clear();
        match sent {
            // The cause is still to be read.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            sent => Ok(sent?),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.output.clear();
        encode::terminate(&mut self.output);
        // An error has no caller to be reported to.
        let _ = self.send();
        if let Some(tls) = &mut self.tls {
            let _ = tls.close_notify(&mut self.encrypted);
            let _ = self.stream.send(&self.encrypted);
        }
    }
}

/// Writer of data copied to the server.
pub struct CopyWriter<'a> {
    session: &'a mut Session,
    buffer: Vec<u8>,
}

impl Write for CopyWriter<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + data.len() > COPY_BUFFER {
            self.flush()?;
        }
        self.buffer.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        encode::copy_data(&self.buffer, &mut self.session.output);
        self.buffer.clear();
        self.session.send().map_err(io::Error::other)
    }
}
