//! From an open connection to a session: start-up and authentication.

use bytes::{Buf, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{Header, Message};

use crate::{ServerError, encode};

/// The largest message that a server may send before the session begins, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// An ErrorResponse of a length outside this range is the bare text of a postmaster that could not fork. The bounds are
/// libpq's.
const ERROR_LENGTHS: std::ops::RangeInclusive<i32> = 8..=30_000;

/// Who asks for a session, and for which.
#[derive(Clone, Debug)]
pub struct Startup {
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, where the server asks for one.
    pub password: Option<String>,
}

/// The name under which the sessions are seen in `pg_stat_activity`.
const APPLICATION_NAME: &str = "pgdyno";

/// A session that has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The process that serves it.
    pub process_id: i32,
    /// What a cancel request has to say.
    pub secret_key: i32,
    /// What the server reports of itself, such as `server_version`.
    pub parameters: Vec<(String, String)>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server says no.
    #[error("{0}")]
    Refused(ServerError),
    /// A password is asked for, and there is none.
    #[error("the server asks for a password of role \"{user}\", and none is given")]
    PasswordMissing {
        /// Role.
        user: String,
    },
    /// A way of authentication that is not supported.
    #[error("the server asks for {0} authentication, which pgdyno does not support")]
    Unsupported(String),
    /// The server could not prove that it knows the password, or broke the rules of SCRAM.
    #[error("SCRAM authentication with the server failed: {0}")]
    Scram(std::io::Error),
    /// A text that cannot be sent.
    #[error("the {what} contains a zero byte, which PostgreSQL does not allow")]
    ZeroByte {
        /// Which text.
        what: &'static str,
    },
    /// Bytes that do not belong to a start-up.
    #[error("the server's answer to the start-up message cannot be understood ({0}): is it PostgreSQL?")]
    Protocol(String),
}

/// A login in progress.
pub struct Login {
    startup: Startup,
    stage: Stage,
    received: BytesMut,
    session: Session,
}

enum Stage {
    /// Start-up or password sent.
    Asked,
    /// First SCRAM message sent.
    ScramBegun(Box<ScramSha256>),
    /// Proof sent; the server owes its own.
    ScramProven(Box<ScramSha256>),
    /// The server has proven that it knows the password.
    ScramVerified,
    /// Let in; the server tells its parameters.
    Authenticated,
}

impl Login {
    /// Begins: appends the start-up message to `out`.
    pub fn start(startup: Startup, out: &mut Vec<u8>) -> Result<Self, LoginError> {
        let texts = [
            ("user name", Some(&startup.user)),
            ("database name", Some(&startup.database)),
            ("password", startup.password.as_ref()),
        ];
        for (what, text) in texts {
            if text.is_some_and(|text| text.contains('\0')) {
                return Err(LoginError::ZeroByte { what });
            }
        }
        let parameters = [
            ("user", startup.user.as_str()),
            ("database", startup.database.as_str()),
            ("application_name", APPLICATION_NAME),
        ];
        encode::startup(parameters, out);
        Ok(Self { startup, stage: Stage::Asked, received: BytesMut::new(), session: Session::default() })
    }

    /// Takes in what the server said and appends what is to be said to `out`. Returns how many bytes it took, fewer
    /// than all only if the session has begun.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Option<Session>), LoginError> {
        self.received.extend_from_slice(input);
        while let Some((kind, length)) = self.whole_message()? {
            if kind == b'E' {
                return Err(LoginError::Refused(ServerError::from_body(&self.received[5..length])));
            }
            let message = Message::parse(&mut self.received).map_err(unreadable)?;
            let Some(message) = message else { break };
            if let Some(session) = self.answer(message, out)? {
                let left = self.received.len();
                self.received = BytesMut::new();
                return Ok((input.len() - left, Some(session)));
            }
        }
        Ok((input.len(), None))
    }

    /// Kind and whole length of the next message, if all of it is there.
    fn whole_message(&mut self) -> Result<Option<(u8, usize)>, LoginError> {
        if self.received.first() == Some(&b'E') && self.received.len() > 4 {
            let length = (&self.received[1..5]).get_i32();
            if !ERROR_LENGTHS.contains(&length) {
                return self.bare_error();
            }
        }
        let Some(header) = Header::parse(&self.received).map_err(unreadable)? else { return Ok(None) };
        let length = header.len() as usize + 1;
        if length > MESSAGE_LIMIT {
            return Err(LoginError::Protocol(format!("a message of {length} bytes")));
        }
        Ok((self.received.len() >= length).then_some((header.tag(), length)))
    }

    /// The text of a postmaster that could not fork; none as long as its end has not come.
    fn bare_error(&self) -> Result<Option<(u8, usize)>, LoginError> {
        let text = &self.received[1..];
        match text.iter().position(|byte| *byte == 0) {
            Some(end) => Err(LoginError::Refused(ServerError::from_text(&text[..end]))),
            None if text.len() > MESSAGE_LIMIT => {
                Err(LoginError::Protocol("an error without end".to_owned()))
            }
            None => Ok(None),
        }
    }

    fn answer(&mut self, message: Message, out: &mut Vec<u8>) -> Result<Option<Session>, LoginError> {
        self.stage = match (std::mem::replace(&mut self.stage, Stage::Asked), message) {
            (Stage::Asked | Stage::ScramVerified, Message::AuthenticationOk) => Stage::Authenticated,
            (Stage::Asked, Message::AuthenticationCleartextPassword) => {
                encode::password(self.password()?, out);
                Stage::Asked
            }
            (Stage::Asked, Message::AuthenticationMd5Password(body)) => {
                let hash = md5_hash(self.startup.user.as_bytes(), self.password()?.as_bytes(), body.salt());
                encode::password(&hash, out);
                Stage::Asked
            }
            (Stage::Asked, Message::AuthenticationSasl(body)) => {
                let mechanisms: Vec<String> =
                    body.mechanisms().map(|name| Ok(name.to_owned())).collect().map_err(unreadable)?;
                if !mechanisms.iter().any(|name| name == SCRAM_SHA_256) {
                    return Err(LoginError::Unsupported(mechanisms.join(" or ")));
                }
                let scram = ScramSha256::new(self.password()?.as_bytes(), ChannelBinding::unsupported());
                encode::sasl_initial_response(SCRAM_SHA_256, scram.message(), out);
                Stage::ScramBegun(Box::new(scram))
            }
            (Stage::ScramBegun(mut scram), Message::AuthenticationSaslContinue(body)) => {
                scram.update(body.data()).map_err(LoginError::Scram)?;
                encode::sasl_response(scram.message(), out);
                Stage::ScramProven(scram)
            }
            (Stage::ScramProven(mut scram), Message::AuthenticationSaslFinal(body)) => {
                scram.finish(body.data()).map_err(LoginError::Scram)?;
                Stage::ScramVerified
            }
            (Stage::Authenticated, Message::ReadyForQuery(_)) => {
                return Ok(Some(std::mem::take(&mut self.session)));
            }
            (Stage::Authenticated, Message::BackendKeyData(body)) => {
                self.session.process_id = body.process_id();
                self.session.secret_key = body.secret_key();
                Stage::Authenticated
            }
            (Stage::Authenticated, Message::ParameterStatus(body)) => {
                let name = body.name().map_err(unreadable)?.to_owned();
                let value = body.value().map_err(unreadable)?.to_owned();
                self.session.parameters.push((name, value));
                Stage::Authenticated
            }
            (stage, Message::NoticeResponse(_)) => stage,
            (_, Message::AuthenticationGss) => return Err(LoginError::Unsupported("GSSAPI".to_owned())),
            (_, Message::AuthenticationSspi) => return Err(LoginError::Unsupported("SSPI".to_owned())),
            (_, Message::AuthenticationKerberosV5) => {
                return Err(LoginError::Unsupported("Kerberos V5".to_owned()));
            }
            _ => return Err(LoginError::Protocol("a message out of its order".to_owned())),
        };
        Ok(None)
    }

    fn password(&self) -> Result<&str, LoginError> {
        self.startup
            .password
            .as_deref()
            .ok_or_else(|| LoginError::PasswordMissing { user: self.startup.user.clone() })
    }
}

fn unreadable(error: std::io::Error) -> LoginError {
    LoginError::Protocol(error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn startup(password: Option<&str>) -> Startup {
        Startup { user: "me".into(), database: "bench".into(), password: password.map(str::to_owned) }
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut message = vec![kind];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        message
    }

    fn welcome() -> Vec<u8> {
        [
            message(b'R', &[0; 4]),
            message(b'S', b"server_version\x0018.1\0"),
            message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
            message(b'Z', b"I"),
        ]
        .concat()
    }

    fn begin(password: Option<&str>) -> Login {
        Login::start(startup(password), &mut Vec::new()).unwrap()
    }

    #[test]
    fn a_session_begins_and_what_follows_is_left_to_the_reader() {
        let mut bytes = welcome();
        let session_len = bytes.len();
        bytes.extend(message(b'N', b"\0"));
        let (taken, session) = begin(None).feed(&bytes, &mut Vec::new()).unwrap();
        let parameters = vec![("server_version".to_owned(), "18.1".to_owned())];
        assert_eq!(taken, session_len);
        assert_eq!(session, Some(Session { process_id: 7, secret_key: 9, parameters }));
    }

    #[test]
    fn a_session_begins_whatever_the_pieces() {
        let mut login = begin(None);
        let bytes = welcome();
        let sessions: Vec<_> =
            bytes.chunks(1).filter_map(|byte| login.feed(byte, &mut Vec::new()).unwrap().1).collect();
        assert_eq!(sessions.len(), 1);
    }

    #[test]
    fn passwords_are_sent_as_the_server_asks() {
        let mut out = Vec::new();
        begin(Some("secret")).feed(&message(b'R', &[0, 0, 0, 3]), &mut out).unwrap();
        assert_eq!(out, message(b'p', b"secret\0"));
        out.clear();
        begin(Some("secret")).feed(&message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]), &mut out).unwrap();
        assert!(out.starts_with(b"p\0\0\0\x28md5"), "{out:?}");
        let error = begin(None).feed(&message(b'R', &[0, 0, 0, 3]), &mut out).unwrap_err();
        assert!(error.to_string().contains("password of role \"me\""), "{error}");
    }

    #[test]
    fn a_server_that_skips_its_proof_is_refused() {
        let mut login = begin(Some("secret"));
        login.feed(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), &mut Vec::new()).unwrap();
        assert!(matches!(login.feed(&welcome(), &mut Vec::new()), Err(LoginError::Protocol(_))));
    }

    #[test]
    fn a_refusal_is_told_with_its_sqlstate() {
        let bytes = message(b'E', b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0");
        let error = begin(None).feed(&bytes, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "FATAL: sorry, too many clients already (SQLSTATE 53300)");
        let bare = b"Ecould not fork new process for connection: Resource temporarily unavailable\n\0";
        let error = begin(None).feed(bare, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().ends_with("Resource temporarily unavailable"), "{error}");
    }

    #[test]
    fn names_with_a_zero_byte_are_refused() {
        let startup = Startup { user: "a\0b".into(), database: "c".into(), password: None };
        assert!(matches!(Login::start(startup, &mut Vec::new()), Err(LoginError::ZeroByte { .. })));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
            for prefix in [vec![], message(b'R', &[0; 4]), message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")] {
                let mut login = begin(Some("secret"));
                let bytes = [prefix, bytes.clone()].concat();
                let (first, second) = bytes.split_at(cut.min(bytes.len()));
                if login.feed(first, &mut Vec::new()).is_ok() {
                    let _ = login.feed(second, &mut Vec::new());
                }
            }
        }
    }
}
