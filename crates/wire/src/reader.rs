//! Streaming reader of the server's responses: keeps only what is requested, regardless of the size of the rows.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::mem;

use crate::ServerError;
use crate::commits::Commits;
use crate::protocol_error::ProtocolError;
use crate::results::{ResultKind, ResultSet, Results};

/// Maximum size of a kept ErrorResponse, in bytes.
const ERROR_CAPACITY: usize = 8 * 1024;

/// Reads the responses on one connection after its login, in pieces of any size.
///
/// Allocates only for an ErrorResponse, of which it keeps at most 8 KiB, and for what [`Reader::collect`] and
/// [`Reader::keep_notices`] request.
#[derive(Debug, Default)]
pub struct Reader {
    /// Bytes of a header received in pieces, and their number.
    header: [u8; HEADER],
    header_len: u8,
    /// Whether the next bytes belong to the body of a message, its type, and how many are left.
    in_body: bool,
    kind: u8,
    left: u32,
    status: u8,
    /// Whether the server reported an error since it was last ready.
    failed: bool,
    modes: Modes,
    commands: u32,
    commits: Commits,
    rows: u64,
    bytes: u64,
    error: Option<Box<ServerError>>,
    /// State that only some readers need.
    cold: Option<Box<ColdState>>,
}

/// Modes of a reader beyond reporting complete responses. All are off initially.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Modes {
    /// Every result stops the reader.
    pipeline: bool,
    /// Column names and the last row of each result are kept.
    collect: bool,
    /// All rows of each result are kept.
    all_rows: bool,
    notices: bool,
    /// Whether any mode that concerns results is on.
    inspect_results: bool,
}

/// State that uses memory and is seldom needed.
#[derive(Debug, Default)]
struct ColdState {
    /// The body of the ErrorResponse or NoticeResponse that is being read.
    error_body: Vec<u8>,
    notices: VecDeque<ServerError>,
    results: Results,
    /// Rows before the result that is being read.
    rows_before: u64,
    /// Whether the columns of the result that is being read have been described.
    described: bool,
    /// COPY in progress, by the type of its message; 0 if there is none.
    copying: u8,
}

/// Length of a message's header: its type and its length.
const HEADER: usize = 5;

/// Maximum length of messages that are neither rows nor texts; libpq's bound.
const SHORT_MESSAGE: u32 = 30_000;
/// Maximum length of any message: PostgreSQL sends none above 1 GiB (`MaxAllocSize`), and a negative length is invalid.
const LONGEST_MESSAGE: u32 = 1 << 30;

/// Events that stop a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The response is complete: the server is ready for the next query. In a pipeline this is the response to a Sync,
    /// libpq's `PGRES_PIPELINE_SYNC`.
    Ready(Response),
    /// A COPY has started. The response continues when it is over: see [`CopyKind`].
    Copy(CopyKind),
    /// A result is complete, or as many of its rows as requested. Reported only in a pipeline ([`Reader::pipeline`]).
    Result {
        /// Kind of the result.
        kind: ResultKind,
        /// Number of its rows.
        rows: u64,
    },
    /// The server reported an error, which [`Reader::take_error`] returns. Reported only in a pipeline
    /// ([`Reader::pipeline`]). The server skips everything sent after the failed command, up to the next Sync
    /// (`PGRES_PIPELINE_ABORTED`).
    Failed,
}

/// Direction of a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// To the server, which waits: send [`copy_data`](crate::encode::copy_data) and
    /// [`copy_done`](crate::encode::copy_done), or [`copy_fail`](crate::encode::copy_fail), which makes the statement
    /// fail. The server skips a Sync that was sent before; in the extended protocol another must follow.
    In,
    /// From the server. The reader skips the data.
    Out,
    /// Both, of a replication connection.
    Both,
}

/// A complete response: the server is ready for the next query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Transaction status of the session.
    pub status: TransactionStatus,
    /// Whether the server reported an error, which [`Reader::take_error`] returns.
    pub failed: bool,
    /// Rows received.
    pub rows: u64,
    /// Commands that the server completed.
    pub commands: u32,
    /// Transactions that the server committed, as it counts them: blocks, and statements outside of one.
    pub commits: u32,
    /// Whether a command may have committed more without reporting it: `CALL` or `DO`.
    pub has_unreported_commits: bool,
    /// Bytes received since the last response, including notices and the like.
    pub bytes: u64,
}

/// Transaction status of a session, as in ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In a transaction block.
    InBlock,
    /// In a failed transaction block: only its end is accepted.
    FailedBlock,
}

impl Reader {
    /// Switches pipeline mode, to be called between two responses. In a pipeline every result and every error stops
    /// [`Reader::next`], otherwise only the end of a response and the start of a COPY.
    pub fn pipeline(&mut self, on: bool) {
        self.modes.pipeline = on;
        self.modes.inspect_results = on || self.modes.collect;
        self.start_result();
    }

    /// Collects subsequent results for [`Reader::results`], with their column names and last row. To be called between
    /// two responses.
    pub fn collect(&mut self, on: bool) {
        self.set_collect(on, false);
    }

    /// Like [`Reader::collect`], with all rows.
    pub fn collect_all_rows(&mut self, on: bool) {
        self.set_collect(on, on);
    }

    fn set_collect(&mut self, on: bool, all_rows: bool) {
        self.modes.collect = on;
        self.modes.all_rows = all_rows;
        self.modes.inspect_results = on || self.modes.pipeline;
        self.start_result();
    }

    /// Starts a result, without the rows received before.
    fn start_result(&mut self) {
        if !self.modes.inspect_results {
            return;
        }
        let (rows, cold) = (self.rows, self.cold());
        cold.rows_before = rows;
        cold.described = false;
        cold.results.drop_unfinished();
    }

    /// Returns the results since the last [`Reader::clear`] that were received while [`Reader::collect`] was on, in
    /// order.
    pub fn results(&self) -> &[ResultSet] {
        self.cold.as_ref().map_or(&[], |cold| cold.results.finished())
    }

    /// Discards the results; their memory is reused.
    pub fn clear(&mut self) {
        if let Some(cold) = &mut self.cold {
            cold.results.clear();
        }
    }

    /// Keeps notices and warnings for [`Reader::take_notice`]; otherwise they are dropped.
    pub fn keep_notices(&mut self, on: bool) {
        self.modes.notices = on;
    }

    /// Returns the oldest kept notice, once.
    pub fn take_notice(&mut self) -> Option<ServerError> {
        self.cold.as_mut()?.notices.pop_front()
    }

    /// Returns the server's first error since the last call. One may also arrive between two responses, when the server
    /// shuts down.
    pub fn take_error(&mut self) -> Option<ServerError> {
        self.error.take().map(|error| *error)
    }

    /// [`Reader::next`] for callers without COPY and pipelines: returns only responses, and a COPY is an error.
    #[inline]
    pub fn feed(&mut self, input: &[u8]) -> Result<(usize, Option<Response>), ProtocolError> {
        let mut taken = 0;
        loop {
            let (consumed, event) = self.next(&input[taken..])?;
            taken += consumed;
            match event {
                Some(Event::Ready(response)) => return Ok((taken, Some(response))),
                Some(Event::Copy(_)) => return Err(ProtocolError::Copy),
                Some(Event::Result { .. } | Event::Failed) => {}
                None => return Ok((taken, None)),
            }
        }
    }

    /// Reads up to the next event or the end of `input`. Returns the number of bytes consumed, fewer than all only with
    /// an event.
    #[inline]
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), ProtocolError> {
        let mut at = 0;
        loop {
            if !self.in_body && self.header_len == 0 && !self.modes.inspect_results {
                let (taken, response) = self.skip(&input[at..])?;
                at += taken;
                if let Some(response) = response {
                    return Ok((at, Some(Event::Ready(response))));
                }
            }
            let (taken, event) = self.step(&input[at..])?;
            at += taken;
            if event.is_some() || at == input.len() {
                return Ok((at, event));
            }
        }
    }

    /// Consumes complete messages that need no inspection, which most input consists of. Returns the number of bytes
    /// consumed, and the response if it is complete.
    #[inline]
    fn skip(&mut self, input: &[u8]) -> Result<(usize, Option<Response>), ProtocolError> {
        let mut at = 0;
        let (mut rows, mut commands) = (0, 0);
        let ready_status = loop {
            let Some((&[kind, a, b, c, d], rest)) = input[at..].split_first_chunk::<HEADER>() else {
                break None;
            };
            let length = u32::from_be_bytes([a, b, c, d]);
            let Some(body) = length.checked_sub(4).and_then(|length| rest.get(..length as usize)) else {
                break None;
            };
            match kind {
                b'D' => rows += 1,
                b'T' | b'n' | b's' if length <= SHORT_MESSAGE => {}
                b'2' | b'1' if length <= SHORT_MESSAGE => self.commits.mark_pending(),
                b'C' if length <= SHORT_MESSAGE => {
                    commands += 1;
                    self.commits.count_command(body);
                }
                b'Z' => {
                    if let [status] = body {
                        at += HEADER + 1;
                        break Some(*status);
                    }
                    break None;
                }
                _ => break None,
            }
            at += HEADER + body.len();
        };
        self.rows += rows;
        self.commands = self.commands.saturating_add(commands);
        self.bytes += at as u64;
        let Some(status) = ready_status else { return Ok((at, None)) };
        self.status = status;
        Ok((at, Some(self.response()?)))
    }

    /// Consumes a part of a message, up to its end.
    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), ProtocolError> {
        if self.in_body {
            let taken = (self.left as usize).min(input.len());
            let (part, _) = input.split_at(taken);
            match self.kind {
                b'Z' => self.status = part.first().copied().unwrap_or(self.status),
                b'C' => self.commits.append_tag(part),
                b'E' | b'N' | b'T' | b'D' => self.keep(part),
                _ => {}
            }
            self.left -= taken as u32;
            return if self.left > 0 { Ok((taken, None)) } else { Ok((taken, self.end()?)) };
        }
        let wanted = HEADER - usize::from(self.header_len);
        let taken = wanted.min(input.len());
        let from = usize::from(self.header_len);
        self.header[from..from + taken].copy_from_slice(&input[..taken]);
        if taken < wanted {
            self.header_len += taken as u8;
            return Ok((taken, None));
        }
        self.header_len = 0;
        let [kind, a, b, c, d] = self.header;
        self.begin(kind, u32::from_be_bytes([a, b, c, d]))?;
        Ok((taken, if self.left == 0 { self.end()? } else { None }))
    }

    fn begin(&mut self, kind: u8, length: u32) -> Result<(), ProtocolError> {
        // The length includes itself.
        let invalid_length = ProtocolError::InvalidLength { kind, length };
        let Some(left) = length.checked_sub(4).filter(|_| length <= LONGEST_MESSAGE) else {
            return Err(invalid_length);
        };
        match kind {
            b'D' => {
                self.rows += 1;
                if self.modes.collect {
                    self.begin_row(left);
                }
            }
            b'C' | b'I' if length <= SHORT_MESSAGE => self.commands = self.commands.saturating_add(1),
            // Errors, notices, notifications, descriptions of parameters and of rows.
            b'E' | b'N' | b'A' | b't' | b'T' => {}
            b'd' | b'c' if self.cold.as_ref().is_some_and(|cold| cold.copying != 0) => {}
            b'Z' if left != 1 => return Err(invalid_length),
            _ if length > SHORT_MESSAGE => return Err(invalid_length),
            // A setting's new value, intermediate messages of the extended protocol, and the start of a COPY.
            b'Z' | b'S' | b'n' | b's' | b'1' | b'2' | b'3' | b'G' | b'H' | b'W' => {}
            _ => return Err(ProtocolError::UnexpectedMessage(kind)),
        }
        if matches!(kind, b'1' | b'2' | b'I') {
            self.commits.mark_pending();
        }
        self.bytes += HEADER as u64 + u64::from(left);
        self.kind = kind;
        self.left = left;
        self.in_body = true;
        Ok(())
    }

    #[inline]
    fn response(&mut self) -> Result<Response, ProtocolError> {
        let status = match self.status {
            b'I' => TransactionStatus::Idle,
            b'T' => TransactionStatus::InBlock,
            b'E' => TransactionStatus::FailedBlock,
            unknown => return Err(ProtocolError::UnknownStatus(unknown)),
        };
        let failed = mem::take(&mut self.failed);
        if let Some(cold) = &mut self.cold {
            if self.modes.inspect_results && !failed && self.rows > cold.rows_before {
                // The last rows belong to no result.
                return Err(ProtocolError::UnexpectedMessage(b'Z'));
            }
            cold.end_response();
        }
        let (commits, has_unreported_commits) =
            self.commits.end_response(status == TransactionStatus::Idle && !failed);
        Ok(Response {
            status,
            failed,
            commits,
            has_unreported_commits,
            rows: mem::take(&mut self.rows),
            commands: mem::take(&mut self.commands),
            bytes: mem::take(&mut self.bytes),
        })
    }

    fn cold(&mut self) -> &mut ColdState {
        self.cold.get_or_insert_default()
    }

    fn begin_row(&mut self, length: u32) {
        let all = self.modes.all_rows;
        self.cold().results.begin_row(length, all);
    }

    /// Keeps a part of a message's body, if wanted.
    fn keep(&mut self, bytes: &[u8]) {
        let wanted = match self.kind {
            b'E' => true,
            b'N' => self.modes.notices,
            _ => self.modes.collect,
        };
        if wanted {
            self.append(bytes);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let kind = self.kind;
        let cold = self.cold();
        match kind {
            b'D' => cold.results.add_to_row(bytes),
            b'T' => cold.results.add_to_description(bytes),
            _ => {
                let room = ERROR_CAPACITY - cold.error_body.len();
                cold.error_body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }
    }

    /// Handles the end of a message.
    fn end(&mut self) -> Result<Option<Event>, ProtocolError> {
        self.in_body = false;
        if self.kind == b'C' {
            self.commits.end_tag();
        }
        match self.kind {
            b'Z' => Ok(Some(Event::Ready(self.response()?))),
            b'T' if self.modes.inspect_results => {
                self.cold().described = true;
                Ok(None)
            }
            b'C' | b'I' | b's' if self.modes.inspect_results => self.end_result(),
            b'E' => Ok(self.end_error()),
            b'N' if self.modes.notices => {
                self.end_notice();
                Ok(None)
            }
            b'G' | b'H' | b'W' | b'c' => Ok(self.end_copy_message()),
            _ => Ok(None),
        }
    }

    fn end_result(&mut self) -> Result<Option<Event>, ProtocolError> {
        let (modes, rows, last_kind) = (self.modes, self.rows, self.kind);
        let cold = self.cold();
        let rows = rows - mem::replace(&mut cold.rows_before, rows);
        let kind = match last_kind {
            b'I' => ResultKind::Empty,
            _ if rows > 0 || cold.described => ResultKind::Rows,
            _ => ResultKind::Command,
        };
        cold.described = false;
        if modes.collect {
            cold.results.finish(kind, rows)?;
        }
        Ok(modes.pipeline.then_some(Event::Result { kind, rows }))
    }

    #[cold]
    fn end_error(&mut self) -> Option<Event> {
        let body = mem::take(&mut self.cold().error_body);
        self.failed = true;
        self.error.get_or_insert_with(|| Box::new(ServerError::from_body(&body)));
        self.modes.pipeline.then_some(Event::Failed)
    }

    #[cold]
    fn end_notice(&mut self) {
        let cold = self.cold();
        cold.notices.push_back(ServerError::from_body(&cold.error_body));
        cold.error_body.clear();
    }

    #[cold]
    fn end_copy_message(&mut self) -> Option<Event> {
        let kind = self.kind;
        self.cold().copying = if kind == b'c' { 0 } else { kind };
        match kind {
            b'G' => Some(Event::Copy(CopyKind::In)),
            b'H' => Some(Event::Copy(CopyKind::Out)),
            b'W' => Some(Event::Copy(CopyKind::Both)),
            _ => None,
        }
    }
}

impl ColdState {
    /// Discards unfinished state: the server is ready.
    fn end_response(&mut self) {
        self.rows_before = 0;
        self.copying = 0;
        self.described = false;
        self.results.drop_unfinished();
    }
}
