//! From an open connection to a session: start-up and authentication, on decrypted messages.

use std::mem;

use nix::unistd::{Uid, User};
use postgres_protocol::authentication::md5_hash;

use crate::login_error::{AuthMethod, LoginError};
use crate::params::{ChannelBinding, ConnectParams, ProtocolVersion, RequireAuth};
use crate::scram::{Binding, KeyCache, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, Scram, ScramProof};
use crate::session::SessionInfo;
use crate::{ServerError, encode};

/// The largest message that a server may send before the session begins, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// An ErrorResponse of a length outside this range is the plain text of a postmaster that could not fork. The bounds
/// are libpq's.
const ERROR_LENGTHS: std::ops::RangeInclusive<u32> = 8..=30_000;

/// Length of a message's header: its type and its length.
const HEADER: usize = 5;

/// A login in progress.
pub(crate) struct Login {
    identity: Identity,
    stage: Stage,
    received: Vec<u8>,
    session: SessionInfo,
}

/// Role and password of a client, and its requirements on the server's authentication.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) channel_binding: ChannelBinding,
    pub(crate) require_auth: RequireAuth,
    pub(crate) min_protocol_version: ProtocolVersion,
    pub(crate) scram_keys: KeyCache,
    /// Encryption of the underlying connection.
    pub(crate) security: Security,
}

/// Encryption of a login's connection.
#[derive(Clone)]
pub(crate) enum Security {
    /// Nothing is encrypted.
    Plain,
    /// TLS, with the hash of the server's certificate, if it has one.
    Tls { end_point: Option<Vec<u8>> },
}

enum Stage {
    /// Start-up sent.
    StartupSent,
    /// Password sent.
    PasswordSent,
    /// First SCRAM message sent.
    ScramStarted(Box<Scram>),
    /// Proof sent; the server's own is outstanding.
    ScramProofSent(Box<ScramProof>),
    /// The server has proven that it knows the password.
    ScramVerified,
    /// Authenticated; the server sends its parameters.
    Authenticated,
}

/// Appends the start-up message to `out`.
pub(crate) fn write_startup(params: &ConnectParams, out: &mut Vec<u8>) {
    let optional = [
        ("replication", &params.replication),
        ("options", &params.options),
        ("application_name", &params.application_name),
        ("client_encoding", &params.client_encoding),
    ];
    let given = |(name, value): (&'static str, &'_ Option<String>)| {
        value.as_ref().filter(|value| !value.is_empty()).map(|value| (name, value.clone()))
    };
    let names = [("user", params.user.clone()), ("database", params.database.clone())];
    let optional = optional.into_iter().filter_map(given);
    let settings = params.settings.iter().map(|(name, value)| (name.as_str(), value.clone()));
    let all: Vec<(&str, String)> = names.into_iter().chain(optional).chain(settings).collect();
    let parameters = all.iter().map(|(name, value)| (*name, value.as_str()));
    encode::startup(params.max_protocol_version, parameters, out);
}

impl Login {
    /// A login after the start-up message was sent.
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity, stage: Stage::StartupSent, received: Vec::new(), session: SessionInfo::default() }
    }

    /// Processes bytes from the server and appends those to send to `out`. Returns the number of bytes consumed, fewer
    /// than all only if the session has begun.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<SessionInfo>), LoginError> {
        self.received.extend_from_slice(input);
        let mut received = mem::take(&mut self.received);
        let mut from = 0;
        while let Some((kind, body)) = next_message(&received[from..])? {
            let end = from + HEADER + body.len();
            let session = self.handle_message(kind, body, out)?;
            from = end;
            if let Some(session) = session {
                return Ok((input.len() - (received.len() - from), Some(session)));
            }
        }
        received.drain(..from);
        self.received = received;
        Ok((input.len(), None))
    }

    fn handle_message(
        &mut self,
        kind: u8,
        mut body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<SessionInfo>, LoginError> {
        match (kind, &self.stage) {
            (b'E', _) => return Err(LoginError::Rejected(Box::new(ServerError::from_body(body)))),
            (b'N', _) => {}
            (b'R', stage) if !matches!(stage, Stage::Authenticated) => {
                let request = take_u32(&mut body)?;
                self.authenticate(request, body, out)?;
            }
            (b'v', Stage::StartupSent) => self.negotiate(body)?,
            (b'K', Stage::Authenticated) => {
                self.session.process_id = take_u32(&mut body)? as i32;
                self.session.secret_key = body.to_vec();
            }
            (b'S', Stage::Authenticated) => {
                let name = take_text(&mut body)?;
                let value = take_text(&mut body)?;
                self.session.set_parameter(name, value);
            }
            (b'Z', Stage::Authenticated) => return Ok(Some(mem::take(&mut self.session))),
            _ => return Err(unexpected_message()),
        }
        Ok(None)
    }

    /// The server supports only an older protocol than requested, or does not know an option of it.
    fn negotiate(&self, mut body: &[u8]) -> Result<(), LoginError> {
        let newest = take_u32(&mut body)?;
        let unknown_options = take_u32(&mut body)?;
        if unknown_options > 0 {
            return Err(LoginError::Protocol("it rejects protocol options that were not requested".into()));
        }
        if newest < self.identity.min_protocol_version.code() {
            return Err(LoginError::ProtocolTooOld { major: newest >> 16, minor: newest & 0xffff });
        }
        Ok(())
    }

    fn authenticate(&mut self, request: u32, body: &[u8], out: &mut Vec<u8>) -> Result<(), LoginError> {
        self.check_method(request)?;
        self.stage = match (mem::replace(&mut self.stage, Stage::StartupSent), request) {
            (Stage::StartupSent | Stage::PasswordSent | Stage::ScramVerified, 0) => Stage::Authenticated,
            (Stage::StartupSent, 3) => {
                encode::password(self.password()?, out);
                Stage::PasswordSent
            }
            (Stage::StartupSent, 5) => {
                let salt = <[u8; 4]>::try_from(body).map_err(|_| truncated())?;
                let user = self.identity.user.as_bytes();
                let hash = md5_hash(user, self.password()?.as_bytes(), salt);
                encode::password(&hash, out);
                Stage::PasswordSent
            }
            (Stage::StartupSent, 10) => {
                let binding = self.binding(body)?;
                let mechanism = binding.mechanism();
                let mut message = Vec::new();
                let scram = Scram::start(self.password()?, binding, &mut message)?;
                encode::sasl_initial_response(mechanism, &message, out);
                Stage::ScramStarted(Box::new(scram))
            }
            (Stage::ScramStarted(scram), 11) => {
                let mut message = Vec::new();
                let proof = scram.prove(body, &self.identity.scram_keys, &mut message)?;
                encode::sasl_response(&message, out);
                Stage::ScramProofSent(Box::new(proof))
            }
            (Stage::ScramProofSent(proof), 12) => {
                proof.verify(body)?;
                Stage::ScramVerified
            }
            (Stage::StartupSent, unknown) => return Err(LoginError::Unsupported(method_name(unknown))),
            _ => return Err(unexpected_message()),
        };
        Ok(())
    }

    /// Checks that the user accepts the authentication method that the server requests or completes.
    fn check_method(&self, request: u32) -> Result<(), LoginError> {
        let required = &self.identity.require_auth;
        let rejected = |method| Err(LoginError::AuthNotAllowed { required: required.text.clone(), method });
        let is_finished = matches!(self.stage, Stage::PasswordSent | Stage::ScramVerified);
        match request {
            0 if !is_finished && !required.none => return rejected(AuthMethod::None),
            3 if !required.password => return rejected(AuthMethod::Password),
            5 if !required.md5 => return rejected(AuthMethod::Md5),
            10 if !required.scram => return rejected(AuthMethod::Sasl),
            7 if !required.text.is_empty() => return rejected(AuthMethod::Gss),
            9 if !required.text.is_empty() => return rejected(AuthMethod::Sspi),
            _ => {}
        }
        if self.identity.channel_binding == ChannelBinding::Require {
            match request {
                10..=12 => {}
                0 if matches!(self.stage, Stage::ScramVerified) => {}
                0 => return Err(LoginError::NotBound),
                _ => return Err(LoginError::BindingNotOffered),
            }
        }
        Ok(())
    }

    /// Chooses among the mechanisms that the server offers.
    fn binding(&self, mut body: &[u8]) -> Result<Binding, LoginError> {
        let mut offered = Vec::new();
        loop {
            match take_text(&mut body)? {
                "" => break,
                name => offered.push(name),
            }
        }
        let offers = |name| offered.contains(&name);
        let wanted = self.identity.channel_binding;
        let binding = match &self.identity.security {
            Security::Plain if wanted == ChannelBinding::Require => {
                return Err(LoginError::BindingWithoutTls);
            }
            // A server that offers it without TLS may be one whose TLS was stripped by a man in the middle.
            Security::Plain if offers(SCRAM_SHA_256_PLUS) => return Err(LoginError::PlusWithoutTls),
            Security::Plain => Binding::Unsupported,
            Security::Tls { .. } if wanted == ChannelBinding::Disable => Binding::Unsupported,
            Security::Tls { end_point: Some(hash) } if offers(SCRAM_SHA_256_PLUS) => {
                Binding::ServerEndPoint(hash.clone())
            }
            Security::Tls { end_point: None } if wanted == ChannelBinding::Require => {
                return Err(LoginError::NoEndPoint);
            }
            Security::Tls { end_point: None } => Binding::Unsupported,
            // Reported to the server, which can detect that its offer was stripped on the way.
            Security::Tls { end_point: Some(_) } => Binding::Unrequested,
        };
        if wanted == ChannelBinding::Require && !matches!(binding, Binding::ServerEndPoint(_)) {
            return Err(LoginError::PlusNotOffered);
        }
        if matches!(binding, Binding::ServerEndPoint(_)) || offers(SCRAM_SHA_256) {
            return Ok(binding);
        }
        Err(LoginError::Unsupported(offered.join(" or ")))
    }

    fn password(&self) -> Result<&str, LoginError> {
        let password = self.identity.password.as_deref().filter(|password| !password.is_empty());
        password.ok_or_else(|| LoginError::PasswordMissing { user: self.identity.user.clone() })
    }
}

/// Type and body of the next message, if it is complete.
fn next_message(received: &[u8]) -> Result<Option<(u8, &[u8])>, LoginError> {
    let Some((&[kind, a, b, c, d], rest)) = received.split_first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]);
    if kind == b'E' && !ERROR_LENGTHS.contains(&length) {
        return plain_text_error(&received[1..]);
    }
    if !b"RSKZNEv".contains(&kind) {
        return Err(LoginError::Protocol(format!("an unexpected message of type {:?}", char::from(kind))));
    }
    let body_length = length.checked_sub(4).map(|length| length as usize);
    match body_length {
        Some(length) if length <= MESSAGE_LIMIT => Ok(rest.get(..length).map(|body| (kind, body))),
        _ => Err(LoginError::Protocol(format!("a message of length {length}"))),
    }
}

/// Returns the text of a postmaster that could not fork as an error; none until it is complete.
fn plain_text_error(text: &[u8]) -> Result<Option<(u8, &[u8])>, LoginError> {
    match text.iter().position(|byte| *byte == 0) {
        Some(end) => Err(LoginError::Rejected(Box::new(ServerError::from_text(&text[..end])))),
        None if text.len() > MESSAGE_LIMIT => Err(LoginError::Protocol("an unterminated error".to_owned())),
        None => Ok(None),
    }
}

fn method_name(request: u32) -> String {
    match request {
        2 => "Kerberos V5".to_owned(),
        7 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("method {other}"),
    }
}

fn take_u32(body: &mut &[u8]) -> Result<u32, LoginError> {
    let bytes = body.split_off(..4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_be_bytes).ok_or_else(truncated)
}

fn take_text<'a>(body: &mut &'a [u8]) -> Result<&'a str, LoginError> {
    let end = body.iter().position(|byte| *byte == 0).ok_or_else(truncated)?;
    let text = body.split_off(..end).ok_or_else(truncated)?;
    body.split_off_first();
    std::str::from_utf8(text).map_err(|_| LoginError::Protocol("a string that is not UTF-8".to_owned()))
}

fn truncated() -> LoginError {
    LoginError::Protocol("a truncated message".to_owned())
}

fn unexpected_message() -> LoginError {
    LoginError::Protocol("a message out of sequence".to_owned())
}

impl ConnectParams {
    /// Checks the user who runs the server behind a Unix socket against `requirepeer`.
    ///
    /// # Errors
    ///
    /// If it is another user.
    pub fn check_peer(&self, uid: u32) -> Result<(), LoginError> {
        let Some(required) = &self.require_peer else { return Ok(()) };
        let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let actual = user.map_or_else(|| uid.to_string(), |user| user.name);
        if actual == *required {
            return Ok(());
        }
        Err(LoginError::WrongPeer { required: required.clone(), actual })
    }
}
