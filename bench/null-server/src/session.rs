//! The protocol of one connection, without its socket: bytes in, canned bytes out.
//!
//! Source: the chapter "Frontend/Backend Protocol" of PostgreSQL's manual. Any request of the extended protocol is
//! treated as `SELECT abalance FROM pgbench_accounts WHERE aid = $1`; the simple protocol also answers pgbench's first
//! queries.

use std::mem;
use std::ops::ControlFlow;

/// Maximum length of a message; pgbench sends no longer ones.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Codes that a connection may begin with instead of a protocol version.
const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

const PARSE_COMPLETE: &[u8] = b"1\0\0\0\x04";
const BIND_COMPLETE: &[u8] = b"2\0\0\0\x04";
const CLOSE_COMPLETE: &[u8] = b"3\0\0\0\x04";
const READY: &[u8] = b"Z\0\0\0\x05I";
/// One parameter of type int4.
const PARAMETERS: &[u8] = b"t\0\0\0\x0a\0\x01\0\0\0\x17";
/// One column: name, table and column in it, type int4 of 4 bytes, no modifier, as text.
const COLUMN: &[u8] = b"T\0\0\0\x21\0\x01abalance\0\0\0\x40\x04\0\x03\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
/// The row of an unchanged account, and the end of the statement.
const ROW: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x010C\0\0\0\x0dSELECT 1\0";
/// The type of every column of pgbench's first queries: text, where a server reports types that nobody reads.
const TEXT: u32 = 25;
/// `count(*)` of `pgbench_branches`: the scale.
const BRANCHES: &str = "10";

/// Parameters that the server reports, as 18 does.
const STATUS: [(&str, &str); 15] = [
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("TimeZone", "Etc/UTC"),
    ("IntervalStyle", "postgres"),
    ("search_path", "\"$user\", public"),
    ("is_superuser", "on"),
    ("application_name", "pgbench"),
    ("default_transaction_read_only", "off"),
    ("scram_iterations", "4096"),
    ("DateStyle", "ISO, MDY"),
    ("standard_conforming_strings", "on"),
    ("session_authorization", "postgres"),
    ("client_encoding", "UTF8"),
    ("server_version", "18.0"),
    ("server_encoding", "UTF8"),
];

/// The state of one connection, with the bytes that are not answered yet.
#[derive(Default)]
pub(crate) struct Session {
    started: bool,
    /// The beginning of an incomplete message.
    rest: Vec<u8>,
}

impl Session {
    /// Appends the responses to `received` to `out`; breaks if the connection is to be closed after them.
    pub(crate) fn answer(&mut self, received: &[u8], out: &mut Vec<u8>) -> ControlFlow<()> {
        if self.rest.is_empty() {
            let used = self.answer_messages(received, out)?;
            self.rest.extend_from_slice(received.get(used..).unwrap_or_default());
        } else {
            let mut all = mem::take(&mut self.rest);
            all.extend_from_slice(received);
            let used = self.answer_messages(&all, out)?;
            all.drain(..used);
            self.rest = all;
        }
        ControlFlow::Continue(())
    }

    /// Answers every complete message; returns their length.
    fn answer_messages(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> ControlFlow<(), usize> {
        let mut rest = bytes;
        loop {
            // Only the first messages of a connection have no type byte.
            let letters = usize::from(self.started);
            let Some(length) = rest.get(letters..).and_then(|from| from.first_chunk()) else { break };
            let length = u32::from_be_bytes(*length) as usize;
            if !(4..=MAX_MESSAGE_BYTES).contains(&length) {
                refuse("a message of invalid length", out);
                return ControlFlow::Break(());
            }
            let Some((message, after)) = rest.split_at_checked(letters + length) else { break };
            rest = after;
            match message.split_first() {
                Some((&letter, body)) if self.started => answer_message(letter, &body[4..], out)?,
                _ => self.answer_first(&message[4..], out)?,
            }
        }
        ControlFlow::Continue(bytes.len() - rest.len())
    }

    fn answer_first(&mut self, body: &[u8], out: &mut Vec<u8>) -> ControlFlow<()> {
        match body.first_chunk().map(|code| u32::from_be_bytes(*code)) {
            Some(SSL_REQUEST | GSS_REQUEST) => out.push(b'N'),
            Some(CANCEL_REQUEST) => return ControlFlow::Break(()),
            Some(version) if version >> 16 == 3 => {
                self.started = true;
                welcome(out);
            }
            _ => {
                refuse("this version of the protocol", out);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

fn answer_message(letter: u8, body: &[u8], out: &mut Vec<u8>) -> ControlFlow<()> {
    match letter {
        b'B' => out.extend_from_slice(BIND_COMPLETE),
        b'D' => {
            if body.first() == Some(&b'S') {
                out.extend_from_slice(PARAMETERS);
            }
            out.extend_from_slice(COLUMN);
        }
        b'E' => out.extend_from_slice(ROW),
        b'S' => out.extend_from_slice(READY),
        b'P' => out.extend_from_slice(PARSE_COMPLETE),
        b'C' => out.extend_from_slice(CLOSE_COMPLETE),
        // Nothing is ever buffered.
        b'H' => {}
        b'Q' => {
            answer_query(body, out);
            out.extend_from_slice(READY);
        }
        b'X' => return ControlFlow::Break(()),
        _ => {
            refuse("a message of unknown type", out);
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

fn answer_query(body: &[u8], out: &mut Vec<u8>) {
    let query = String::from_utf8_lossy(body);
    let query = query.trim_matches(['\0', ' ', '\n', ';']);
    let first_word = query.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    if first_word == "SELECT" {
        if query.ends_with("count(*) from pgbench_branches") {
            one_row(&[("count", Some(BRANCHES))], out);
        } else if query.contains("pg_partitioned_table") {
            one_row(&[("n", Some("2")), ("partstrat", None), ("count", Some("0"))], out);
        } else {
            out.extend_from_slice(COLUMN);
            out.extend_from_slice(ROW);
        }
    } else if first_word.is_empty() {
        push(b'I', &[], out);
    } else {
        push(b'C', &[first_word.as_bytes(), b"\0"].concat(), out);
    }
}

/// A complete result of one row, from the names and values of its columns.
fn one_row(columns: &[(&str, Option<&str>)], out: &mut Vec<u8>) {
    let count = (columns.len() as u16).to_be_bytes();
    let (mut description, mut row) = (count.to_vec(), count.to_vec());
    for (name, value) in columns {
        description.extend_from_slice(name.as_bytes());
        // The end of the name; no table, no column of it.
        description.extend_from_slice(&[0; 1 + 4 + 2]);
        description.extend_from_slice(&TEXT.to_be_bytes());
        // Of any length, no modifier, as text.
        description.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        row.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        row.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
    push(b'T', &description, out);
    push(b'D', &row, out);
    push(b'C', b"SELECT 1\0", out);
}

/// The response to a start-up message: any user is accepted.
fn welcome(out: &mut Vec<u8>) {
    push(b'R', &[0; 4], out);
    for (name, value) in STATUS {
        push(b'S', &[name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat(), out);
    }
    // No process, and no key to cancel it.
    push(b'K', &[0; 8], out);
    out.extend_from_slice(READY);
}

fn refuse(what: &str, out: &mut Vec<u8>) {
    let body = ["SFATAL\0VFATAL\0C08P01\0M", "the null server does not support ", what, "\0\0"].concat();
    push(b'E', body.as_bytes(), out);
}

fn push(letter: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(letter);
    out.extend_from_slice(&(4 + body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A start-up message of protocol 3.0.
    const START: &[u8] = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";
    /// A statement prepared, then bound, described, executed.
    const SELECT: &[u8] = b"P\0\0\0\x10P0\0select\0\0\0S\0\0\0\x04\
        B\0\0\0\x13\0P0\0\0\0\0\x01\0\0\0\x017\0\0\
        D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04X\0\0\0\x04";

    /// The type bytes of messages, whose lengths must add up.
    fn letters(mut bytes: &[u8]) -> String {
        let mut letters = String::new();
        while let Some((letter, rest)) = bytes.split_first() {
            letters.push(char::from(*letter));
            let length = u32::from_be_bytes(*rest.first_chunk().unwrap());
            bytes = &rest[length as usize..];
        }
        letters
    }

    fn answers(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> (Vec<u8>, ControlFlow<()>) {
        let (mut session, mut out) = (Session::default(), Vec::new());
        let mut flow = ControlFlow::Continue(());
        for piece in pieces {
            assert!(flow.is_continue(), "no response after the end");
            flow = session.answer(piece.as_ref(), &mut out);
        }
        (out, flow)
    }

    #[test]
    fn responses_do_not_depend_on_fragmentation() {
        let requests = [START, SELECT].concat();
        let (whole, flow) = answers([&requests].into_iter());
        assert_eq!(letters(&whole), format!("R{}KZ1Z2TDCZ", "S".repeat(STATUS.len())));
        assert!(flow.is_break());
        for length in 1..requests.len() {
            assert_eq!(answers(requests.chunks(length)), (whole.clone(), flow), "in pieces of {length}");
        }
    }

    #[test]
    fn simple_queries_have_responses_of_their_kind() {
        let ask = |query: &str| {
            let mut request = START.to_vec();
            push(b'Q', &[query.as_bytes(), b"\0"].concat(), &mut request);
            let (answer, _) = answers([request].into_iter());
            letters(&answer).rsplit_once('K').unwrap().1.to_owned()
        };
        assert_eq!(ask("select count(*) from pgbench_branches"), "ZTDCZ");
        assert_eq!(ask("SELECT abalance FROM pgbench_accounts WHERE aid = 1;"), "ZTDCZ");
        assert_eq!(ask("begin"), "ZCZ");
        assert_eq!(ask(""), "ZIZ");
    }

    #[test]
    fn encryption_is_declined_and_other_protocols_are_refused() {
        let (answer, flow) = answers([b"\0\0\0\x08\x04\xd2\x16\x2f"].into_iter());
        assert_eq!((answer.as_slice(), flow), (&b"N"[..], ControlFlow::Continue(())));
        let (answer, flow) = answers([b"GET / HTTP/1.1\r\n\r\n"].into_iter());
        assert_eq!((letters(&answer).as_str(), flow), ("E", ControlFlow::Break(())));
    }
}
