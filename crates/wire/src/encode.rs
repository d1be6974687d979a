//! Messages of a client: each function appends one to the caller's buffer.
//!
//! Names and texts must not contain a zero byte, which terminates them in the protocol: callers check external input
//! ([`crate::Handshake::start`] does).

use crate::ProtocolVersion;

/// Code of a CancelRequest in place of a version.
const CANCEL: u32 = 80_877_102;

/// Code of an SSLRequest in place of a version.
const SSL: u32 = 80_877_103;

/// StartupMessage.
pub fn startup<'a>(
    version: ProtocolVersion,
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    out: &mut Vec<u8>,
) {
    sized(out, |out| {
        out.extend_from_slice(&version.code().to_be_bytes());
        for (name, value) in parameters {
            text(name, out);
            text(value, out);
        }
        out.push(0);
    });
}

/// SSLRequest: requests TLS on a connection that has just been opened.
pub fn ssl_request(out: &mut Vec<u8>) {
    sized(out, |out| out.extend_from_slice(&SSL.to_be_bytes()));
}

/// CancelRequest, the only message on a connection of its own. Process and key are those of the
/// [`SessionInfo`](crate::SessionInfo) whose statement to cancel.
pub fn cancel_request(process_id: i32, secret_key: &[u8], out: &mut Vec<u8>) {
    sized(out, |out| {
        out.extend_from_slice(&CANCEL.to_be_bytes());
        out.extend_from_slice(&process_id.to_be_bytes());
        out.extend_from_slice(secret_key);
    });
}

/// PasswordMessage: a cleartext or hashed password.
pub fn password(password: &str, out: &mut Vec<u8>) {
    message(b'p', out, |out| text(password, out));
}

/// SASLInitialResponse.
pub fn sasl_initial_response(mechanism: &str, data: &[u8], out: &mut Vec<u8>) {
    message(b'p', out, |out| {
        text(mechanism, out);
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// SASLResponse.
pub fn sasl_response(data: &[u8], out: &mut Vec<u8>) {
    message(b'p', out, |out| out.extend_from_slice(data));
}

/// Query; `write` appends its text.
pub fn query(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    message(b'Q', out, |out| {
        write(out);
        out.push(0);
    });
}

/// Parse; the server infers the types of the parameters. The empty name is the unnamed statement.
pub fn parse(name: &str, sql: &str, out: &mut Vec<u8>) {
    message(b'P', out, |out| {
        text(name, out);
        text(sql, out);
        out.extend_from_slice(&0_u16.to_be_bytes());
    });
}

/// Describe of the unnamed portal.
pub fn describe_portal(out: &mut Vec<u8>) {
    message(b'D', out, |out| {
        out.push(b'P');
        text("", out);
    });
}

/// Describe of a statement; the empty name is the unnamed one.
pub fn describe_statement(name: &str, out: &mut Vec<u8>) {
    message(b'D', out, |out| {
        out.push(b'S');
        text(name, out);
    });
}

/// Close of a statement; the empty name is the unnamed one. Closing a missing one is no error.
pub fn close_statement(name: &str, out: &mut Vec<u8>) {
    message(b'C', out, |out| {
        out.push(b'S');
        text(name, out);
    });
}

/// Execute of the unnamed portal, without a row limit.
pub fn execute(out: &mut Vec<u8>) {
    message(b'E', out, |out| {
        text("", out);
        out.extend_from_slice(&0_u32.to_be_bytes());
    });
}

/// Sync.
pub fn sync(out: &mut Vec<u8>) {
    message(b'S', out, |_| {});
}

/// Flush: makes the server send what it holds back until the next Sync.
pub fn flush(out: &mut Vec<u8>) {
    message(b'H', out, |_| {});
}

/// CopyData: a piece of the data copied to the server, split anywhere.
pub fn copy_data(data: &[u8], out: &mut Vec<u8>) {
    message(b'd', out, |out| out.extend_from_slice(data));
}

/// CopyDone: ends the data copied to the server.
pub fn copy_done(out: &mut Vec<u8>) {
    message(b'c', out, |_| {});
}

/// CopyFail: makes the COPY to the server fail with this reason.
pub fn copy_fail(reason: &str, out: &mut Vec<u8>) {
    message(b'f', out, |out| text(reason, out));
}

/// Terminate.
pub fn terminate(out: &mut Vec<u8>) {
    message(b'X', out, |_| {});
}

/// Bind of the unnamed portal, encoded once except for the values; values and results are text.
#[derive(Clone, Debug)]
pub struct Bind {
    head: Vec<u8>,
}

/// Length field of a null: -1.
const NULL: u32 = u32::MAX;

/// Text results of every column: no format codes.
const RESULT_FORMATS: [u8; 2] = [0, 0];

impl Bind {
    /// A Bind of that many values to a statement; the empty name is the unnamed one.
    pub fn new(statement: &str, values: u16) -> Self {
        let mut head = vec![b'B', 0, 0, 0, 0];
        text("", &mut head);
        text(statement, &mut head);
        head.extend_from_slice(&0_u16.to_be_bytes());
        head.extend_from_slice(&values.to_be_bytes());
        Self { head }
    }

    /// Appends the message. `write` is called for each of `values` in turn and appends its text, or returns false for
    /// null.
    pub fn write<V>(
        &self,
        values: impl IntoIterator<Item = V>,
        out: &mut Vec<u8>,
        mut write: impl FnMut(V, &mut Vec<u8>) -> bool,
    ) {
        let length_at = out.len() + 1;
        out.extend_from_slice(&self.head);
        for value in values {
            let at = begin_length(out);
            let start = out.len();
            let length = if write(value, out) {
                // The length of a value does not include itself, unlike that of a message.
                (out.len() - start) as u32
            } else {
                out.truncate(start);
                NULL
            };
            out[at..start].copy_from_slice(&length.to_be_bytes());
        }
        out.extend_from_slice(&RESULT_FORMATS);
        end_length(length_at, out);
    }
}

fn message(tag: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    sized(out, body);
}

fn sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = begin_length(out);
    body(out);
    end_length(at, out);
}

fn begin_length(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

fn end_length(at: usize, out: &mut [u8]) {
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use bytes::BytesMut;
    use postgres_protocol::IsNull;
    use postgres_protocol::message::frontend;

    use super::*;

    fn ours(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = b"before".to_vec();
        write(&mut out);
        out.split_off(6)
    }

    fn theirs(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    #[test]
    fn messages_are_those_of_postgres_protocol() {
        let parameters = [("user", "me"), ("database", "bench")];
        assert_eq!(
            ours(|o| startup(ProtocolVersion::V3_0, parameters, o)),
            theirs(|o| frontend::startup_message(parameters, o).unwrap())
        );
        assert_eq!(ours(|o| password("s3", o)), theirs(|o| frontend::password_message(b"s3", o).unwrap()));
        assert_eq!(
            ours(|o| sasl_initial_response("M", b"data", o)),
            theirs(|o| frontend::sasl_initial_response("M", b"data", o).unwrap())
        );
        assert_eq!(ours(|o| sasl_response(b"d", o)), theirs(|o| frontend::sasl_response(b"d", o).unwrap()));
        assert_eq!(
            ours(|o| query(o, |o| o.extend_from_slice(b"SELECT 1"))),
            theirs(|o| frontend::query("SELECT 1", o).unwrap())
        );
        assert_eq!(
            ours(|o| parse("s", "SELECT $1", o)),
            theirs(|o| frontend::parse("s", "SELECT $1", [], o).unwrap())
        );
        assert_eq!(ours(describe_portal), theirs(|o| frontend::describe(b'P', "", o).unwrap()));
        assert_eq!(ours(ssl_request), theirs(frontend::ssl_request));
        assert_eq!(
            ours(|o| cancel_request(7, &9_i32.to_be_bytes(), o)),
            theirs(|o| frontend::cancel_request(7, 9, o))
        );
        assert_eq!(
            ours(|o| describe_statement("s", o)),
            theirs(|o| frontend::describe(b'S', "s", o).unwrap())
        );
        assert_eq!(ours(|o| close_statement("s", o)), theirs(|o| frontend::close(b'S', "s", o).unwrap()));
        assert_eq!(ours(flush), theirs(frontend::flush));
        assert_eq!(
            ours(|o| copy_data(b"1\t2\n", o)),
            theirs(|o| frontend::CopyData::new(&b"1\t2\n"[..]).unwrap().write(o))
        );
        assert_eq!(ours(copy_done), theirs(frontend::copy_done));
        assert_eq!(ours(|o| copy_fail("no", o)), theirs(|o| frontend::copy_fail("no", o).unwrap()));
        assert_eq!(ours(execute), theirs(|o| frontend::execute("", 0, o).unwrap()));
        assert_eq!(ours(sync), theirs(frontend::sync));
        assert_eq!(ours(terminate), theirs(frontend::terminate));
    }

    #[test]
    fn bind_is_that_of_postgres_protocol() {
        for values in [vec![], vec![Some("7")], vec![Some(""), None, Some("a longer value")]] {
            let bind = Bind::new("P0_1", values.len() as u16);
            let write = |value: &Option<&str>, out: &mut Vec<u8>| {
                out.extend_from_slice(value.unwrap_or("left over").as_bytes());
                value.is_some()
            };
            let serialise = |value: Option<&str>, out: &mut BytesMut| {
                let Some(value) = value else { return Ok(IsNull::Yes) };
                out.extend_from_slice(value.as_bytes());
                Ok::<_, Box<dyn Error + Sync + Send>>(IsNull::No)
            };
            let expected = theirs(|o| {
                let bound = frontend::bind("", "P0_1", [], values.iter().copied(), serialise, [], o);
                assert!(bound.is_ok());
            });
            assert_eq!(ours(|o| bind.write(&values, o, write)), expected);
        }
    }
}
