//! What the server answers, read as a stream: nothing is buffered, whatever the size of the rows.

use std::mem;

use crate::ServerError;

/// How much of an ErrorResponse is kept, in bytes.
const ERROR_CAPACITY: usize = 8 * 1024;

/// Reads the answers of one connection after its login, in pieces of any size.
///
/// It allocates only for an ErrorResponse, and keeps of that no more than 8 KiB.
#[derive(Debug, Default)]
pub struct Reader {
    /// Bytes of a header that came in pieces, and how many of them.
    header: [u8; HEADER],
    header_len: u8,
    /// Whether the bytes to come belong to the body of a message, of which kind, and how many there are.
    in_body: bool,
    kind: u8,
    left: u32,
    status: u8,
    rows: u64,
    commands: u32,
    error_body: Vec<u8>,
    error: Option<Box<ServerError>>,
}

/// Length of a message's head: its kind and its length.
const HEADER: usize = 5;

/// The largest length of messages that are neither rows nor texts; libpq's bound.
const SHORT_MESSAGE: u32 = 30_000;

/// An answer that is complete: the server is ready for the next query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the session is in a transaction block.
    pub status: TransactionStatus,
    /// Whether the server complained; [`Reader::take_error`] says of what.
    pub failed: bool,
    /// Rows that came.
    pub rows: u64,
    /// Commands that the server completed.
    pub commands: u32,
}

/// The session's state as ReadyForQuery tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In a transaction block.
    InBlock,
    /// In a failed transaction block: only its end is accepted.
    FailedBlock,
}

/// Bytes that are no answer to what was sent; the connection is of no further use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A kind of message that does not exist or has no place here.
    #[error("the server sent a message of kind {:?}, which has no place in an answer: is it PostgreSQL?", *.0 as char)]
    UnexpectedMessage(u8),
    /// A length that the kind of message cannot have.
    #[error("the server sent a message of kind {:?} with the impossible length {length}: is it PostgreSQL?", *.kind as char)]
    ImpossibleLength {
        /// Kind of the message.
        kind: u8,
        /// Its length field.
        length: u32,
    },
    /// ReadyForQuery with a state that does not exist.
    #[error("the server says that it is ready in the unknown state {:?}: is it PostgreSQL?", *.0 as char)]
    UnknownStatus(u8),
    /// COPY was begun.
    #[error(
        "the statement begins a COPY to or from the client, which scripts cannot do: take it out of the script"
    )]
    Copy,
}

impl Reader {
    /// Reads up to the end of the next answer or of `input`. Returns how many bytes it took, fewer than all only if an
    /// answer is complete.
    #[inline]
    pub fn feed(&mut self, input: &[u8]) -> Result<(usize, Option<Answer>), ProtocolError> {
        let mut at = 0;
        loop {
            if self.in_body {
                let taken = (self.left as usize).min(input.len() - at);
                match self.kind {
                    b'E' => self.keep_error(&input[at..at + taken]),
                    b'Z' if taken > 0 => self.status = input[at],
                    _ => {}
                }
                at += taken;
                self.left -= taken as u32;
                if self.left > 0 {
                    return Ok((at, None));
                }
                self.in_body = false;
                match self.kind {
                    b'Z' => return Ok((at, Some(self.answer()?))),
                    b'E' => self.end_error(),
                    _ => {}
                }
            }
            match input.get(at..at + HEADER) {
                Some(&[kind, a, b, c, d]) if self.header_len == 0 => {
                    at += HEADER;
                    self.begin(kind, u32::from_be_bytes([a, b, c, d]))?;
                }
                _ => {
                    let Some(byte) = input.get(at) else { return Ok((at, None)) };
                    at += 1;
                    self.header[usize::from(self.header_len)] = *byte;
                    self.header_len += 1;
                    if usize::from(self.header_len) == HEADER {
                        self.header_len = 0;
                        let [kind, a, b, c, d] = self.header;
                        self.begin(kind, u32::from_be_bytes([a, b, c, d]))?;
                    }
                }
            }
        }
    }

    /// The server's first complaint since the last call. One may also come between two answers, when the server is
    /// told to shut down.
    pub fn take_error(&mut self) -> Option<ServerError> {
        self.error.take().map(|error| *error)
    }

    #[inline]
    fn begin(&mut self, kind: u8, length: u32) -> Result<(), ProtocolError> {
        // The length counts itself.
        let impossible = ProtocolError::ImpossibleLength { kind, length };
        let Some(left) = length.checked_sub(4) else { return Err(impossible) };
        match kind {
            b'G' | b'H' | b'W' => return Err(ProtocolError::Copy),
            b'D' => self.rows += 1,
            b'C' | b'I' if length <= SHORT_MESSAGE => self.commands = self.commands.saturating_add(1),
            // Errors, notices, notifications, descriptions of parameters and of rows.
            b'E' | b'N' | b'A' | b't' | b'T' => {}
            b'Z' if left != 1 => return Err(impossible),
            _ if length > SHORT_MESSAGE => return Err(impossible),
            // A setting's new value, and what the extended protocol says on its way.
            b'Z' | b'S' | b'n' | b's' | b'1' | b'2' | b'3' => {}
            _ => return Err(ProtocolError::UnexpectedMessage(kind)),
        }
        self.kind = kind;
        self.left = left;
        self.in_body = true;
        Ok(())
    }

    #[inline]
    fn answer(&mut self) -> Result<Answer, ProtocolError> {
        let status = match self.status {
            b'I' => TransactionStatus::Idle,
            b'T' => TransactionStatus::InBlock,
            b'E' => TransactionStatus::FailedBlock,
            unknown => return Err(ProtocolError::UnknownStatus(unknown)),
        };
        Ok(Answer {
            status,
            failed: self.error.is_some(),
            rows: mem::take(&mut self.rows),
            commands: mem::take(&mut self.commands),
        })
    }

    #[cold]
    fn keep_error(&mut self, bytes: &[u8]) {
        let room = ERROR_CAPACITY - self.error_body.len();
        self.error_body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    #[cold]
    fn end_error(&mut self) {
        let body = mem::take(&mut self.error_body);
        self.error.get_or_insert_with(|| Box::new(ServerError::from_body(&body)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that a reader tells of some bytes.
    #[derive(Debug, Default, PartialEq)]
    struct Told {
        answers: Vec<Answer>,
        errors: Vec<ServerError>,
        end: Option<ProtocolError>,
    }

    fn told<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Told {
        let mut reader = Reader::default();
        let mut told = Told::default();
        for mut piece in pieces {
            while !piece.is_empty() {
                match reader.feed(piece) {
                    Ok((taken, answer)) => {
                        assert!(answer.is_some() || taken == piece.len(), "bytes left without an answer");
                        told.answers.extend(answer);
                        if answer.is_some() {
                            told.errors.extend(reader.take_error());
                        }
                        piece = &piece[taken..];
                    }
                    Err(error) => {
                        told.end = Some(error);
                        return told;
                    }
                }
            }
        }
        told.errors.extend(reader.take_error());
        told
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut message = vec![kind];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        message
    }

    fn refusal() -> Vec<u8> {
        message(b'E', b"SERREUR\0VERROR\0C42P01\0Mno such table\0Dmore\0Hcreate it\0\0")
    }

    #[test]
    fn a_query_of_several_statements_is_one_answer() {
        let mut bytes = Vec::new();
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
            bytes.extend(part);
        }
        let answer = Answer { status: TransactionStatus::InBlock, failed: false, rows: 2, commands: 3 };
        assert_eq!(told([bytes.as_slice()]), Told { answers: vec![answer], ..Told::default() });
    }

    #[test]
    fn an_error_is_told_with_its_fields_and_belongs_to_its_answer() {
        let mut bytes = message(b'2', b"");
        bytes.extend(refusal());
        bytes.extend(message(b'Z', b"I"));
        bytes.extend(message(b'C', b"OK\0"));
        bytes.extend(message(b'Z', b"I"));
        let told = told([bytes.as_slice()]);
        assert_eq!(told.answers.iter().map(|answer| answer.failed).collect::<Vec<_>>(), [true, false]);
        let error = &told.errors[0];
        assert_eq!(error.to_string(), "ERROR: no such table (SQLSTATE 42P01); detail: more; hint: create it");
        assert_eq!(error.code(), Some("42P01"));
    }

    #[test]
    fn of_an_error_without_end_only_the_beginning_is_kept() {
        let mut body = b"C22000\0M".to_vec();
        body.resize(1_000_000, b'x');
        let mut reader = Reader::default();
        reader.feed(&message(b'E', &body)).unwrap();
        let error = reader.take_error().unwrap();
        assert_eq!((error.sqlstate.as_str(), error.message.len()), ("22000", ERROR_CAPACITY - 8));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert_eq!(told([message(b'G', b"\0\0\0").as_slice()]).end, Some(ProtocolError::Copy));
        assert_eq!(told([message(b'H', b"\0\0\0").as_slice()]).end, Some(ProtocolError::Copy));
        assert_eq!(told([&b"HTTP/1.1 400"[..]]).end, Some(ProtocolError::Copy));
        let ssh = ProtocolError::ImpossibleLength { kind: b'S', length: u32::from_be_bytes(*b"SH-2") };
        assert_eq!(told([&b"SSH-2.0"[..]]).end, Some(ssh));
        assert_eq!(
            told([&b"D\0\0\0\x03"[..]]).end,
            Some(ProtocolError::ImpossibleLength { kind: b'D', length: 3 })
        );
        assert_eq!(
            told([&b"Z\0\0\0\x04"[..]]).end,
            Some(ProtocolError::ImpossibleLength { kind: b'Z', length: 4 })
        );
        assert_eq!(told([&b"Z\0\0\0\x05?"[..]]).end, Some(ProtocolError::UnknownStatus(b'?')));
        assert_eq!(told([&b"~\0\0\0\x05?"[..]]).end, Some(ProtocolError::UnexpectedMessage(b'~')));
    }

    /// Messages that make sense, with some that do not between them.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let body = prop::collection::vec(any::<u8>(), 0..40);
        let part = prop_oneof![
            8 => (prop::sample::select(b"123ACDEINSTtns".to_vec()), body.clone())
                .prop_map(|(kind, body)| message(kind, &body)),
            2 => Just(message(b'Z', b"I")),
            1 => Just(message(b'Z', b"E")),
            2 => Just(refusal()),
            1 => body,
        ];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn splits_change_nothing(bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(told(pieces), told([bytes.as_slice()]));
            prop_assert_eq!(told(bytes.chunks(1)), told([bytes.as_slice()]));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            told([bytes.as_slice()]);
        }
    }
}
