//! Streaming reader of the server's responses: keeps only what is requested, regardless of the size of the rows.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that a reader finds in some bytes.
    #[derive(Debug, Default, PartialEq)]
    struct Output {
        responses: Vec<Response>,
        errors: Vec<ServerError>,
        end: Option<ProtocolError>,
    }

    fn read_all<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Output {
        let mut reader = Reader::default();
        let mut found = Output::default();
        for mut piece in pieces {
            while !piece.is_empty() {
                match reader.feed(piece) {
                    Ok((taken, response)) => {
                        assert!(response.is_some() || taken == piece.len(), "bytes left without a response");
                        found.responses.extend(response);
                        if response.is_some() {
                            found.errors.extend(reader.take_error());
                        }
                        piece = &piece[taken..];
                    }
                    Err(error) => {
                        found.end = Some(error);
                        return found;
                    }
                }
            }
        }
        found.errors.extend(reader.take_error());
        found
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut message = vec![kind];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        message
    }

    fn response(status: TransactionStatus) -> Response {
        Response {
            status,
            failed: false,
            rows: 0,
            commands: 0,
            commits: 0,
            has_unreported_commits: false,
            bytes: 0,
        }
    }

    fn error_response() -> Vec<u8> {
        message(b'E', b"SERREUR\0VERROR\0C42P01\0Mno such table\0Dmore\0Hcreate it\0\0")
    }

    #[test]
    fn a_query_with_several_statements_has_one_response() {
        let mut all = Vec::new();
        for part in [
            message(b'T', b"columns"),
            message(b'D', &[7; 300]),
            message(b'D', &[7; 3]),
            message(b'C', b"SELECT 2\0"),
            message(b'N', b"SNOTICE\0\0"),
            message(b'S', b"TimeZone\0UTC\0"),
            message(b'C', b"BEGIN\0"),
            message(b'I', b""),
            message(b'Z', b"T"),
        ] {
            all.extend(part);
        }
        let (bytes, all) = (all.len() as u64, all);
        let response = Response { rows: 2, commands: 3, bytes, ..response(TransactionStatus::InBlock) };
        assert_eq!(read_all([all.as_slice()]), Output { responses: vec![response], ..Output::default() });
    }

    #[test]
    fn an_error_is_reported_with_its_fields_and_its_response() {
        let mut bytes = message(b'2', b"");
        bytes.extend(error_response());
        bytes.extend(message(b'Z', b"I"));
        bytes.extend(message(b'C', b"OK\0"));
        bytes.extend(message(b'Z', b"I"));
        let found = read_all([bytes.as_slice()]);
        assert_eq!(found.responses.iter().map(|response| response.failed).collect::<Vec<_>>(), [true, false]);
        let error = &found.errors[0];
        assert_eq!(error.to_string(), "ERROR: no such table (SQLSTATE 42P01); detail: more; hint: create it");
        assert_eq!(error.code(), Some("42P01"));
    }

    #[test]
    fn long_errors_are_truncated() {
        let mut body = b"C22000\0M".to_vec();
        body.resize(1_000_000, b'x');
        let mut reader = Reader::default();
        reader.feed(&message(b'E', &body)).unwrap();
        let error = reader.take_error().unwrap();
        assert_eq!((error.sqlstate.as_str(), error.message.len()), ("22000", ERROR_CAPACITY - 8));
    }

    #[test]
    fn invalid_responses_are_errors() {
        assert_eq!(read_all([message(b'G', b"\0\0\0").as_slice()]).end, Some(ProtocolError::Copy));
        assert_eq!(read_all([message(b'H', b"\0\0\0").as_slice()]).end, Some(ProtocolError::Copy));
        let http = ProtocolError::InvalidLength { kind: b'H', length: u32::from_be_bytes(*b"TTP/") };
        assert_eq!(read_all([&b"HTTP/1.1 400"[..]]).end, Some(http));
        let ssh = ProtocolError::InvalidLength { kind: b'S', length: u32::from_be_bytes(*b"SH-2") };
        assert_eq!(read_all([&b"SSH-2.0"[..]]).end, Some(ssh));
        assert_eq!(
            read_all([&b"D\0\0\0\x03"[..]]).end,
            Some(ProtocolError::InvalidLength { kind: b'D', length: 3 })
        );
        for length in [-1, i32::MAX, (1 << 30) + 1] {
            let head = [b"D".as_slice(), &i32::to_be_bytes(length)].concat();
            let invalid_length = ProtocolError::InvalidLength { kind: b'D', length: length as u32 };
            assert_eq!(read_all([&head[..]]).end, Some(invalid_length));
        }
        assert_eq!(
            read_all([&b"Z\0\0\0\x04"[..]]).end,
            Some(ProtocolError::InvalidLength { kind: b'Z', length: 4 })
        );
        assert_eq!(read_all([&b"Z\0\0\0\x05?"[..]]).end, Some(ProtocolError::UnknownStatus(b'?')));
        assert_eq!(read_all([&b"~\0\0\0\x05?"[..]]).end, Some(ProtocolError::UnexpectedMessage(b'~')));
    }

    /// A RowDescription of text columns with these names.
    fn description(names: &[&str]) -> Vec<u8> {
        let mut body = (names.len() as u16).to_be_bytes().to_vec();
        for name in names {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\0\0\0\0\0\0");
        }
        message(b'T', &body)
    }

    fn row(values: &[Option<&str>]) -> Vec<u8> {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            body.extend(value.map_or(u32::MAX, |value| value.len() as u32).to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default().as_bytes());
        }
        message(b'D', &body)
    }

    /// All events of some bytes, in pieces of this size.
    fn events(reader: &mut Reader, bytes: &[u8], size: usize) -> Vec<Event> {
        let mut events = Vec::new();
        for mut piece in bytes.chunks(size) {
            while !piece.is_empty() {
                let (taken, event) = reader.next(piece).unwrap();
                assert!(event.is_some() || taken == piece.len(), "bytes left without an event");
                events.extend(event);
                piece = &piece[taken..];
            }
        }
        events
    }

    fn ready(failed: bool, rows: u64, commands: u32, bytes: usize) -> Event {
        let bytes = bytes as u64;
        let commits = u32::from(commands > 0 && !failed);
        Event::Ready(Response { failed, rows, commands, commits, bytes, ..response(TransactionStatus::Idle) })
    }

    /// Names, values of the last row, rows and kind of a result.
    type ResultSummary = (Vec<String>, Option<Vec<Option<String>>>, u64, ResultKind);

    fn summary(result: &ResultSet) -> ResultSummary {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let last = result.last_row().map(|row| row.map(|value| value.map(text)).collect());
        (result.columns().map(text).collect(), last, result.rows(), result.kind())
    }

    #[test]
    fn results_are_collected_on_request() {
        let bytes = [
            description(&["a", "b c"]),
            row(&[Some("1"), None]),
            row(&[Some("22"), Some("")]),
            message(b'C', b"SELECT 2\0"),
            message(b'C', b"UPDATE 5\0"),
            message(b'I', b""),
            description(&["none"]),
            message(b'C', b"SELECT 0\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let last = vec![Some("22".to_owned()), Some(String::new())];
        let expected: [ResultSummary; 4] = [
            (names(&["a", "b c"]), Some(last), 2, ResultKind::Rows),
            (vec![], None, 0, ResultKind::Command),
            (vec![], None, 0, ResultKind::Empty),
            (names(&["none"]), None, 0, ResultKind::Rows),
        ];
        for size in [1, 3, 1000] {
            let mut reader = Reader::default();
            reader.collect(true);
            // A second time, in the memory of the first.
            for _ in 0..2 {
                assert_eq!(events(&mut reader, &bytes, size), [ready(false, 2, 4, bytes.len())]);
                assert_eq!(reader.results().iter().map(summary).collect::<Vec<_>>(), expected);
                reader.clear();
                assert_eq!(reader.results().len(), 0);
            }
            reader.collect(false);
            events(&mut reader, &bytes, size);
            assert_eq!(reader.results().len(), 0);
        }
    }

    #[test]
    fn all_rows_are_kept_on_request() {
        let bytes = [
            description(&["a"]),
            row(&[Some("1")]),
            row(&[None]),
            message(b'C', b"SELECT 2\0"),
            error_response(),
            message(b'Z', b"I"),
        ]
        .concat();
        let mut reader = Reader::default();
        reader.collect_all_rows(true);
        events(&mut reader, &bytes, 2);
        let rows: Vec<Vec<_>> = reader.results()[0].kept_rows().map(Iterator::collect).collect();
        assert_eq!(rows, [vec![Some(&b"1"[..])], vec![None]]);
        assert_eq!(reader.results().len(), 1);
    }

    #[test]
    fn malformed_rows_are_errors_if_collected() {
        let short = [description(&["a"]), message(b'D', b"\0\x01\0\0\0\x05ab"), message(b'C', b"SELECT 1\0")];
        let many = [description(&["a"]), row(&[None, None]), message(b'C', b"SELECT 1\0")];
        let cut = [message(b'T', b"\0\x01name"), message(b'C', b"SELECT 0\0")];
        for (bytes, kind) in [(short.concat(), b'D'), (many.concat(), b'D'), (cut.concat(), b'T')] {
            let mut reader = Reader::default();
            assert!(reader.next(&bytes).is_ok());
            reader.collect(true);
            assert_eq!(reader.next(&bytes), Err(ProtocolError::Malformed(kind)));
        }
    }

    #[test]
    fn rows_without_an_end_are_an_error_where_results_matter() {
        let cut = [description(&["a"]), row(&[Some("1")]), message(b'Z', b"I")].concat();
        let complete = [description(&["a"]), row(&[Some("1")]), message(b'C', b"SELECT 1\0")].concat();
        let after_another = [complete, cut.clone()].concat();
        let failed = [row(&[Some("1")]), error_response(), message(b'Z', b"I")].concat();
        let described = [description(&["a"]), message(b'Z', b"I")].concat();
        let modes: [fn(&mut Reader); 2] = [|reader| reader.collect(true), |reader| reader.pipeline(true)];
        for choose in modes {
            let end = |bytes: &[u8]| {
                let mut reader = Reader::default();
                choose(&mut reader);
                let mut at = 0;
                while at < bytes.len() {
                    at += reader.next(&bytes[at..])?.0;
                }
                Ok(())
            };
            for bytes in [&cut, &after_another] {
                assert_eq!(end(bytes), Err(ProtocolError::UnexpectedMessage(b'Z')));
            }
            assert_eq!((end(&failed), end(&described)), (Ok(()), Ok(())));
        }
        assert_eq!(read_all([&cut[..]]).end, None, "a load counts rows only");
    }

    #[test]
    fn a_pipeline_reports_every_result() {
        let bytes = [
            message(b'2', b""),
            description(&["a"]),
            row(&[None]),
            message(b'C', b"SELECT 1\0"),
            message(b'2', b""),
            message(b'n', b""),
            message(b'C', b"UPDATE 1\0"),
            message(b'I', b""),
            message(b's', b""),
            error_response(),
            message(b'Z', b"I"),
            message(b'Z', b"I"),
        ];
        let first: usize = bytes[..11].iter().map(Vec::len).sum();
        let result = |kind, rows| Event::Result { kind, rows };
        for size in [1, 7, 1000] {
            let mut reader = Reader::default();
            reader.pipeline(true);
            let found = events(&mut reader, &bytes.concat(), size);
            let expected = [
                result(ResultKind::Rows, 1),
                result(ResultKind::Command, 0),
                result(ResultKind::Empty, 0),
                result(ResultKind::Command, 0),
                Event::Failed,
                ready(true, 1, 3, first),
                ready(false, 0, 0, 6),
            ];
            assert_eq!(found, expected);
            assert!(reader.take_error().is_some());
        }
    }

    #[test]
    fn a_copy_is_reported_and_its_data_are_skipped() {
        let out = [
            message(b'H', b"\0\0\0"),
            message(b'd', &[b'x'; 50_000]),
            message(b'd', b"1\n"),
            message(b'c', b""),
            message(b'C', b"COPY 2\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        let into = [message(b'G', b"\0\0\0"), error_response(), message(b'Z', b"I")].concat();
        for size in [1, 1000] {
            let mut reader = Reader::default();
            assert_eq!(
                events(&mut reader, &out, size),
                [Event::Copy(CopyKind::Out), ready(false, 0, 1, out.len())]
            );
            assert_eq!(
                events(&mut reader, &into, size),
                [Event::Copy(CopyKind::In), ready(true, 0, 0, into.len())]
            );
            // No data without a COPY.
            assert_eq!(reader.next(&message(b'd', b"1")), Err(ProtocolError::UnexpectedMessage(b'd')));
        }
    }

    #[test]
    fn notices_are_kept_on_request() {
        let notice = |text: &str| message(b'N', format!("SNOTICE\0VNOTICE\0M{text}\0\0").as_bytes());
        let bytes = [notice("one"), notice("two"), message(b'Z', b"I")].concat();
        let mut reader = Reader::default();
        events(&mut reader, &bytes, 1);
        assert_eq!(reader.take_notice(), None);
        reader.keep_notices(true);
        events(&mut reader, &bytes, 5);
        let texts: Vec<_> =
            std::iter::from_fn(|| reader.take_notice()).map(|notice| notice.libpq_text(None)).collect();
        assert_eq!(texts, ["NOTICE:  one\n", "NOTICE:  two\n"]);
        assert!(reader.take_error().is_none());
    }

    /// Valid messages, with some invalid ones between them.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let body = prop::collection::vec(any::<u8>(), 0..40);
        let part = prop_oneof![
            8 => (prop::sample::select(b"123ACDEINSTtns".to_vec()), body.clone())
                .prop_map(|(kind, body)| message(kind, &body)),
            2 => Just(message(b'Z', b"I")),
            1 => Just(message(b'Z', b"E")),
            2 => Just(error_response()),
            1 => body,
        ];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn input_can_be_split_anywhere(bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(read_all(pieces), read_all([bytes.as_slice()]));
            prop_assert_eq!(read_all(bytes.chunks(1)), read_all([bytes.as_slice()]));
        }

        #[test]
        fn input_can_be_split_anywhere_in_any_mode(bytes in stream(), size in 1_usize..50) {
            let all = |size: usize| {
                let mut reader = Reader::default();
                reader.pipeline(true);
                reader.collect_all_rows(true);
                reader.keep_notices(true);
                let mut found = Vec::new();
                for mut piece in bytes.chunks(size) {
                    while !piece.is_empty() {
                        match reader.next(piece) {
                            Ok((taken, event)) => {
                                found.extend(event.map(Ok));
                                piece = &piece[taken..];
                            }
                            Err(error) => {
                                found.push(Err(error));
                                return (found, reader.results().iter().map(summary).collect::<Vec<_>>());
                            }
                        }
                    }
                }
                (found, reader.results().iter().map(summary).collect())
            };
            prop_assert_eq!(all(size), all(bytes.len().max(1)));
        }

        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read_all([bytes.as_slice()]);
        }
    }
}
