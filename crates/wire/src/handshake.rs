//! From an open connection to a suitable session: TLS, login, and a check of the kind of session.

use crate::encode;
use crate::login::{self, Identity, Login, Security};
use crate::login_error::{LoginError, Unsuitable};
use crate::params::{ConnectParams, Host, SslMode, SslNegotiation, TargetSessionAttrs, Transport};
use crate::reader::Reader;
use crate::session::SessionInfo;
use crate::tls::{Encryption, Tls, TlsContext, TlsError, TlsFlow};

/// A session, and the TLS that encrypts it.
#[derive(Debug)]
pub struct Established {
    /// The session as reported by the server.
    pub session: SessionInfo,
    /// TLS, if used. Call [`Tls::decrypt`] once without input: data may have been received already.
    pub tls: Option<Box<Tls>>,
}

/// A connection during its handshake.
pub struct Handshake {
    stage: Stage,
    tls: Option<Box<Tls>>,
    /// Decrypted input and output to be encrypted; empty without TLS.
    plain_in: Vec<u8>,
    plain_out: Vec<u8>,
    /// Data of the later stages.
    plan: Box<Plan>,
}

/// Data that a handshake needs after its start.
struct Plan {
    host: Host,
    identity: Identity,
    startup: Vec<u8>,
    context: Option<TlsContext>,
    direct: bool,
    /// Whether an unencrypted connection is acceptable if TLS is requested and the server has none.
    allows_plain: bool,
    /// Encryption to try on another connection if this one fails.
    fallback: Option<Encryption>,
    wanted: TargetSessionAttrs,
}

enum Stage {
    /// SSLRequest sent.
    SslRequestSent,
    TlsHandshake,
    LoggingIn(Box<Login>),
    /// Query about the kind of session sent.
    QuerySent(Box<(Reader, SessionInfo)>),
    Done,
}

impl Handshake {
    /// Starts on a connection that has just been opened to `params.hosts[host]`; appends the bytes to send to `out`.
    /// `tls` is from [`TlsContext::new`].
    ///
    /// # Errors
    ///
    /// If a text cannot be sent, or TLS cannot be started.
    pub fn start(
        params: &ConnectParams,
        host: usize,
        transport: Transport,
        tls: Option<&TlsContext>,
        out: &mut Vec<u8>,
    ) -> Result<Self, LoginError> {
        let encryption = match params.ssl.mode {
            _ if transport == Transport::Unix => Encryption::Plain,
            SslMode::Disable | SslMode::Allow => Encryption::Plain,
            SslMode::Prefer if tls.is_none() => Encryption::Plain,
            SslMode::Prefer | SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Encryption::Tls,
        };
        let fallback = match params.ssl.mode {
            _ if transport == Transport::Unix || tls.is_none() => None,
            SslMode::Allow => Some(Encryption::Tls),
            SslMode::Prefer => Some(Encryption::Plain),
            _ => None,
        };
        Self::begin(params, host, tls, encryption, fallback, out)
    }

    /// Starts again on another connection to the same address, after a [`LoginError::Retry`].
    ///
    /// # Errors
    ///
    /// Same as [`Handshake::start`].
    pub fn start_over(
        params: &ConnectParams,
        host: usize,
        tls: Option<&TlsContext>,
        encryption: Encryption,
        out: &mut Vec<u8>,
    ) -> Result<Self, LoginError> {
        Self::begin(params, host, tls, encryption, None, out)
    }

    /// Starts a request to cancel the running statement of a session, on another connection to the same address, encrypted
    /// as the session is. The server closes the connection once it has processed the request: [`LoginError::Closed`] is
    /// success.
    ///
    /// # Errors
    ///
    /// Same as [`Handshake::start`].
    pub fn cancel(
        params: &ConnectParams,
        host: usize,
        tls: Option<&TlsContext>,
        encryption: Encryption,
        session: &SessionInfo,
        out: &mut Vec<u8>,
    ) -> Result<Self, LoginError> {
        let mut request = Vec::new();
        encode::cancel_request(session.process_id, &session.secret_key, &mut request);
        Self::begin_with(request, params, (host, tls), encryption, None, out)
    }

    fn begin(
        params: &ConnectParams,
        host: usize,
        tls: Option<&TlsContext>,
        encryption: Encryption,
        fallback: Option<Encryption>,
        out: &mut Vec<u8>,
    ) -> Result<Self, LoginError> {
        let mut startup = Vec::new();
        login::write_startup(params, &mut startup);
        Self::begin_with(startup, params, (host, tls), encryption, fallback, out)
    }

    /// `startup` is the first message, once the connection is encrypted.
    fn begin_with(
        startup: Vec<u8>,
        params: &ConnectParams,
        (host, tls): (usize, Option<&TlsContext>),
        encryption: Encryption,
        fallback: Option<Encryption>,
        out: &mut Vec<u8>,
    ) -> Result<Self, LoginError> {
        let host = params.hosts.get(host).ok_or(LoginError::NoSuchHost(host))?.clone();
        check_texts(params, &host)?;
        let identity = Identity {
            user: params.user.clone(),
            password: host.password.clone(),
            channel_binding: params.channel_binding,
            require_auth: params.require_auth.clone(),
            min_protocol_version: params.min_protocol_version,
            scram_keys: params.scram_keys.clone(),
            security: Security::Plain,
        };
        let plan = Plan {
            host,
            identity,
            startup,
            context: tls.cloned(),
            direct: params.ssl.negotiation == SslNegotiation::Direct,
            allows_plain: params.ssl.mode == SslMode::Prefer,
            fallback,
            wanted: params.target_session_attrs,
        };
        let mut handshake = Self {
            stage: Stage::SslRequestSent,
            tls: None,
            plain_in: Vec::new(),
            plain_out: Vec::new(),
            plan: Box::new(plan),
        };
        match encryption {
            Encryption::Plain => handshake.log_in(out)?,
            Encryption::Tls if handshake.plan.direct => handshake.begin_tls(out)?,
            Encryption::Tls => encode::ssl_request(out),
        }
        Ok(handshake)
    }

    /// Processes bytes from the server and appends those to send to `out`, which is worth sending even after an error.
    /// Returns the number of bytes consumed, fewer than all only if the session has begun: the rest belongs to it.
    ///
    /// # Errors
    ///
    /// [`LoginError`] states whether to try another connection or another host.
    pub fn feed(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<Established>), LoginError> {
        self.step(input, out).map_err(|error| self.or_retry(error))
    }

    /// Returns the error of a connection that the server has closed.
    pub fn closed(&mut self) -> LoginError {
        match (&self.stage, self.plan.fallback.take()) {
            (Stage::TlsHandshake, Some(encryption)) => {
                LoginError::Retry { encryption, cause: Box::new(TlsError::Closed.into()) }
            }
            (Stage::TlsHandshake, None) => TlsError::Closed.into(),
            _ => LoginError::Closed,
        }
    }

    fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Option<Established>), LoginError> {
        let mut taken = 0;
        if matches!(self.stage, Stage::SslRequestSent) {
            let Some((response, rest)) = input.split_first() else { return Ok((0, None)) };
            self.handle_ssl_response(*response, rest, out)?;
            taken = 1;
        }
        let Some(mut tls) = self.tls.take() else {
            let (consumed, session) = self.process(&input[taken..], out)?;
            return Ok((taken + consumed, session.map(|session| Established { session, tls: None })));
        };
        match self.step_in_tls(&mut tls, &input[taken..], out)? {
            Some(session) => Ok((input.len(), Some(Established { session, tls: Some(tls) }))),
            None => {
                self.tls = Some(tls);
                Ok((input.len(), None))
            }
        }
    }

    fn step_in_tls(
        &mut self,
        tls: &mut Tls,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<SessionInfo>, LoginError> {
        let mut plain_out = std::mem::take(&mut self.plain_out);
        let flow = if matches!(self.stage, Stage::TlsHandshake) {
            if !tls.continue_handshake(input, out)? {
                return Ok(None);
            }
            if self.plan.direct && !tls.is_postgresql() {
                return Err(TlsError::NoAlpn.into());
            }
            self.plan.identity.security = Security::Tls { end_point: tls.server_end_point() };
            self.log_in(&mut plain_out)?;
            tls.decrypt(&[], &mut self.plain_in)?
        } else {
            tls.decrypt(input, &mut self.plain_in).inspect_err(|_| {
                // Report the cause to the server.
                let _ = tls.encrypt(&[], out);
            })?
        };
        let plain_in = std::mem::take(&mut self.plain_in);
        let processed = self.process(&plain_in, &mut plain_out);
        let encrypted = tls.encrypt(&plain_out, out);
        let (taken, session) = processed?;
        encrypted?;
        match session {
            Some(session) => {
                tls.push_back(&plain_in[taken..]);
                Ok(Some(session))
            }
            None if flow == TlsFlow::Closed => Err(TlsError::Closed.into()),
            None => Ok(None),
        }
    }

    /// Handles the server's response to the SSLRequest.
    fn handle_ssl_response(&mut self, byte: u8, rest: &[u8], out: &mut Vec<u8>) -> Result<(), LoginError> {
        match byte {
            b'S' if !rest.is_empty() => Err(LoginError::DataBeforeTls),
            b'S' => self.begin_tls(out),
            b'N' if self.plan.allows_plain => {
                self.plan.fallback = None;
                self.log_in(out)
            }
            b'N' => Err(LoginError::TlsNotSupported),
            b'E' => Err(LoginError::ErrorBeforeTls),
            other => {
                let problem = format!("{:?} in response to SSLRequest", char::from(other));
                Err(LoginError::Protocol(problem))
            }
        }
    }

    fn begin_tls(&mut self, out: &mut Vec<u8>) -> Result<(), LoginError> {
        let context = self.plan.context.as_ref().ok_or(LoginError::NoTlsContext)?;
        self.tls = Some(context.connect(&self.plan.host, out)?);
        self.stage = Stage::TlsHandshake;
        Ok(())
    }

    fn log_in(&mut self, out: &mut Vec<u8>) -> Result<(), LoginError> {
        out.append(&mut self.plan.startup);
        self.stage = Stage::LoggingIn(Box::new(Login::new(self.plan.identity.clone())));
        Ok(())
    }

    /// Processes decrypted bytes from the server.
    fn process(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<SessionInfo>), LoginError> {
        let mut from = 0;
        if let Stage::LoggingIn(login) = &mut self.stage {
            let (taken, session) = login.feed(input, out)?;
            let Some(session) = session else { return Ok((taken, None)) };
            from = taken;
            self.plan.fallback = None;
            if let Some(session) = self.check_session(session, out)? {
                return Ok((from, Some(session)));
            }
        }
        let Stage::QuerySent(check) = &mut self.stage else { return Ok((input.len(), None)) };
        let (reader, _) = &mut **check;
        let (taken, response) = reader.feed(&input[from..])?;
        if response.is_none() {
            return Ok((from + taken, None));
        }
        let reported = reader.results().first().and_then(|result| {
            let value = result.last_row()?.next()??;
            Some(matches!(value, b"on" | b"t"))
        });
        let Stage::QuerySent(check) = std::mem::replace(&mut self.stage, Stage::Done) else {
            return Ok((from + taken, None));
        };
        self.check_attrs(reported, out)?;
        Ok((from + taken, Some(check.1)))
    }

    /// Checks the session by its reported parameters, or queries it. Returns the session if it is suitable.
    fn check_session(
        &mut self,
        session: SessionInfo,
        out: &mut Vec<u8>,
    ) -> Result<Option<SessionInfo>, LoginError> {
        use TargetSessionAttrs::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
        let is_on = |name| session.parameter(name).map(|value| value == "on");
        let standby = is_on("in_hot_standby");
        let read_only = is_on("default_transaction_read_only");
        let (reported, sql) = match self.plan.wanted {
            Any => return Ok(Some(session)),
            ReadWrite | ReadOnly => {
                (standby.zip(read_only).map(|(a, b)| a || b), "SHOW transaction_read_only")
            }
            Primary | Standby | PreferStandby => (standby, "SELECT pg_catalog.pg_is_in_recovery()"),
        };
        if reported.is_some() {
            self.check_attrs(reported, out)?;
            return Ok(Some(session));
        }
        encode::query(out, |out| out.extend_from_slice(sql.as_bytes()));
        let mut reader = Reader::default();
        reader.collect(true);
        self.stage = Stage::QuerySent(Box::new((reader, session)));
        Ok(None)
    }

    /// `reported`: whether the session is read-only, or the server a standby, depending on the attribute requested.
    fn check_attrs(&self, reported: Option<bool>, out: &mut Vec<u8>) -> Result<(), LoginError> {
        use TargetSessionAttrs::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
        let unsuitable = match (self.plan.wanted, reported) {
            (Any, _) => return Ok(()),
            (_, None) => Unsuitable::Unknown,
            (ReadWrite, Some(true)) => Unsuitable::ReadOnly,
            (ReadOnly, Some(false)) => Unsuitable::NotReadOnly,
            (Primary, Some(true)) => Unsuitable::HotStandby,
            (Standby | PreferStandby, Some(false)) => Unsuitable::NotHotStandby,
            _ => return Ok(()),
        };
        encode::terminate(out);
        Err(LoginError::Unsuitable(unsuitable))
    }

    /// Turns a failure of one encryption into a retry with the other, if `sslmode` allows it.
    fn or_retry(&mut self, error: LoginError) -> LoginError {
        let is_retryable =
            matches!(error, LoginError::Rejected(_) | LoginError::Tls(_) | LoginError::ErrorBeforeTls);
        match self.plan.fallback.take() {
            Some(encryption) if is_retryable => LoginError::Retry { encryption, cause: Box::new(error) },
            _ => error,
        }
    }
}

fn check_texts(params: &ConnectParams, host: &Host) -> Result<(), LoginError> {
    let texts = [
        ("user name", Some(&params.user)),
        ("database name", Some(&params.database)),
        ("password", host.password.as_ref()),
        ("application name", params.application_name.as_ref()),
        ("options", params.options.as_ref()),
        ("client encoding", params.client_encoding.as_ref()),
        ("replication mode", params.replication.as_ref()),
    ];
    let settings = params.settings.iter().map(|(_, value)| ("setting", Some(value)));
    match texts.into_iter().chain(settings).find(|(_, text)| text.is_some_and(|text| text.contains('\0'))) {
        Some((what, _)) => Err(LoginError::ZeroByte { what }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::params::{ChannelBinding, RequireAuth};

    fn params(password: Option<&str>) -> ConnectParams {
        ConnectParams::new("/tmp", 5432, "me", "bench", password.map(str::to_owned))
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut message = vec![kind];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        message
    }

    /// The messages of a server that accepts a login, with these parameters in addition to its version.
    fn login_messages(parameters: &[&[u8]]) -> Vec<u8> {
        let mut login_messages = message(b'R', &[0; 4]);
        login_messages.extend(message(b'S', b"server_version\x0018.1\0"));
        parameters.iter().for_each(|parameter| login_messages.extend(message(b'S', parameter)));
        login_messages.extend(message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]));
        login_messages.extend(message(b'Z', b"I"));
        login_messages
    }

    fn start(params: &ConnectParams) -> Handshake {
        Handshake::start(params, 0, Transport::Unix, None, &mut Vec::new()).unwrap()
    }

    fn begin(password: Option<&str>) -> Handshake {
        start(&params(password))
    }

    fn feed(handshake: &mut Handshake, input: &[u8]) -> Result<(usize, Option<SessionInfo>), LoginError> {
        let (taken, established) = handshake.feed(input, &mut Vec::new())?;
        Ok((taken, established.map(|established| established.session)))
    }

    #[test]
    fn bytes_after_the_handshake_are_not_consumed() {
        let mut bytes = login_messages(&[]);
        let session_len = bytes.len();
        bytes.extend(message(b'N', b"\0"));
        let (taken, session) = feed(&mut begin(None), &bytes).unwrap();
        let parameters = vec![("server_version".to_owned(), "18.1".to_owned())];
        assert_eq!(taken, session_len);
        let secret_key = 9_i32.to_be_bytes().to_vec();
        assert_eq!(session, Some(SessionInfo { process_id: 7, secret_key, parameters }));
    }

    #[test]
    fn input_can_be_split_anywhere() {
        let mut handshake = begin(None);
        let bytes = login_messages(&[]);
        let sessions: Vec<_> =
            bytes.chunks(1).filter_map(|byte| feed(&mut handshake, byte).unwrap().1).collect();
        assert_eq!(sessions.len(), 1);
    }

    #[test]
    fn the_startup_message_contains_the_parameters() {
        let mut params = params(None);
        params.options = Some("-c jit=off".to_owned());
        params.client_encoding = Some("UTF8".to_owned());
        params.settings = vec![("timezone".to_owned(), "UTC".to_owned())];
        let mut out = Vec::new();
        Handshake::start(&params, 0, Transport::Unix, None, &mut out).unwrap();
        let texts = b"user\0me\0database\0bench\0options\0-c jit=off\0application_name\0pgdyno\0\
            client_encoding\0UTF8\0timezone\0UTC\0\0";
        assert_eq!(&out[4..8], [0, 3, 0, 0]);
        assert_eq!(String::from_utf8_lossy(&out[8..]), String::from_utf8_lossy(texts));
    }

    #[test]
    fn passwords_are_sent_as_requested() {
        let mut out = Vec::new();
        begin(Some("secret")).feed(&message(b'R', &[0, 0, 0, 3]), &mut out).unwrap();
        assert_eq!(out, message(b'p', b"secret\0"));
        out.clear();
        begin(Some("secret")).feed(&message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]), &mut out).unwrap();
        assert!(out.starts_with(b"p\0\0\0\x28md5"), "{out:?}");
        let error = begin(None).feed(&message(b'R', &[0, 0, 0, 3]), &mut out).unwrap_err();
        assert!(error.to_string().contains("password for user \"me\""), "{error}");
    }

    #[test]
    fn a_server_without_proof_is_rejected() {
        let mut handshake = begin(Some("secret"));
        feed(&mut handshake, &message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")).unwrap();
        assert!(matches!(feed(&mut handshake, &login_messages(&[])), Err(LoginError::Protocol(_))));
    }

    #[test]
    fn a_rejection_is_reported_with_its_sqlstate() {
        let bytes = message(b'E', b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0");
        let error = feed(&mut begin(None), &bytes).unwrap_err();
        assert_eq!(error.to_string(), "FATAL: sorry, too many clients already (SQLSTATE 53300)");
        let bare = b"Ecould not fork new process for connection: Resource temporarily unavailable\n\0";
        let error = feed(&mut begin(None), bare).unwrap_err();
        assert!(error.to_string().ends_with("Resource temporarily unavailable"), "{error}");
    }

    #[test]
    fn names_with_a_zero_byte_are_rejected() {
        let params = ConnectParams::new("/tmp", 5432, "a\0b", "c", None);
        let started = Handshake::start(&params, 0, Transport::Unix, None, &mut Vec::new());
        assert!(matches!(started, Err(LoginError::ZeroByte { what: "user name" })));
    }

    const PRIMARY: [&[u8]; 2] = [b"in_hot_standby\0off\0", b"default_transaction_read_only\0off\0"];
    const STANDBY: [&[u8]; 2] = [b"in_hot_standby\0on\0", b"default_transaction_read_only\0off\0"];
    const READ_ONLY: [&[u8]; 2] = [b"in_hot_standby\0off\0", b"default_transaction_read_only\0on\0"];

    /// `target_session_attrs` with servers that report the kind of session.
    #[test]
    fn unsuitable_sessions_are_rejected() {
        use TargetSessionAttrs::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
        for (wanted, parameters, unsuitable) in [
            (Any, STANDBY, None),
            (ReadWrite, PRIMARY, None),
            (ReadWrite, STANDBY, Some(Unsuitable::ReadOnly)),
            (ReadWrite, READ_ONLY, Some(Unsuitable::ReadOnly)),
            (ReadOnly, PRIMARY, Some(Unsuitable::NotReadOnly)),
            (ReadOnly, STANDBY, None),
            (ReadOnly, READ_ONLY, None),
            (Primary, READ_ONLY, None),
            (Primary, STANDBY, Some(Unsuitable::HotStandby)),
            (Standby, STANDBY, None),
            (Standby, PRIMARY, Some(Unsuitable::NotHotStandby)),
            (PreferStandby, STANDBY, None),
            (PreferStandby, PRIMARY, Some(Unsuitable::NotHotStandby)),
        ] {
            let mut params = params(None);
            params.target_session_attrs = wanted;
            let mut out = Vec::new();
            let fed = start(&params).feed(&login_messages(&parameters), &mut out);
            match (fed, unsuitable) {
                (Ok((_, Some(_))), None) => assert_eq!(out, b""),
                (Err(LoginError::Unsuitable(found)), Some(expected)) => {
                    assert_eq!((found, out), (expected, message(b'X', b"")));
                }
                (fed, _) => panic!("{wanted:?} {parameters:?}: {fed:?}"),
            }
        }
    }

    /// A server before version 14.
    #[test]
    fn the_kind_of_session_is_queried_if_not_reported() {
        for (wanted, sql, yes) in [
            (TargetSessionAttrs::ReadWrite, "SHOW transaction_read_only", "on"),
            (TargetSessionAttrs::Primary, "SELECT pg_catalog.pg_is_in_recovery()", "t"),
        ] {
            for (value, is_suitable) in [(yes, false), ("off", true)] {
                let mut params = params(None);
                params.target_session_attrs = wanted;
                let mut handshake = start(&params);
                let mut out = Vec::new();
                assert!(matches!(handshake.feed(&login_messages(&[]), &mut out), Ok((_, None))));
                assert_eq!(out, message(b'Q', format!("{sql}\0").as_bytes()));
                let mut row = vec![0, 1, 0, 0, 0, value.len() as u8];
                row.extend_from_slice(value.as_bytes());
                let mut response = message(b'D', &row);
                response.extend(message(b'C', b"SHOW\0"));
                response.extend(message(b'Z', b"I"));
                let length = response.len();
                response.extend(b"rest");
                match feed(&mut handshake, &response) {
                    Ok((taken, Some(session))) if is_suitable => {
                        assert_eq!((taken, session.process_id), (length, 7));
                    }
                    Err(LoginError::Unsuitable(_)) if !is_suitable => {}
                    other => panic!("{wanted:?} {value}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn only_accepted_authentication_methods_are_used() {
        let clear = message(b'R', &[0, 0, 0, 3]);
        let mut params = params(Some("secret"));
        params.require_auth = RequireAuth {
            text: "scram-sha-256".to_owned(),
            none: false,
            password: false,
            md5: false,
            scram: true,
        };
        let error = |fed: Result<_, LoginError>| fed.unwrap_err().to_string();
        assert_eq!(
            error(feed(&mut start(&params), &clear)),
            "authentication method requirement \"scram-sha-256\" failed: server requested a cleartext password"
        );
        assert_eq!(
            error(feed(&mut start(&params), &login_messages(&[]))),
            "authentication method requirement \"scram-sha-256\" failed: server did not complete authentication"
        );
        params.require_auth = RequireAuth::default();
        params.channel_binding = ChannelBinding::Require;
        assert!(matches!(feed(&mut start(&params), &clear), Err(LoginError::BindingNotOffered)));
        assert!(matches!(feed(&mut start(&params), &login_messages(&[])), Err(LoginError::NotBound)));
        let scram = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        assert!(matches!(feed(&mut start(&params), &scram), Err(LoginError::BindingWithoutTls)));
        params.channel_binding = ChannelBinding::Prefer;
        let plus = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
        assert!(matches!(feed(&mut start(&params), &plus), Err(LoginError::PlusWithoutTls)));
    }

    /// Parameters for TCP, with a context unless the mode needs none.
    fn tcp(mode: SslMode) -> (ConnectParams, Option<TlsContext>) {
        let mut params = params(None);
        params.hosts[0].host = "localhost".to_owned();
        params.ssl.mode = mode;
        let context = TlsContext::new(&params).unwrap();
        (params, context)
    }

    #[test]
    fn only_prefer_accepts_a_server_without_tls() {
        for (mode, is_accepted) in [(SslMode::Prefer, true), (SslMode::Require, false)] {
            let (params, context) = tcp(mode);
            let mut out = Vec::new();
            let mut handshake =
                Handshake::start(&params, 0, Transport::Tcp, context.as_ref(), &mut out).unwrap();
            assert_eq!(out, [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
            out.clear();
            let fed = handshake.feed(b"N", &mut out);
            if is_accepted {
                assert!(matches!(fed, Ok((1, None))));
                assert!(out[8..].starts_with(b"user\0"));
                // The other encryption has been tried already.
                let rejection = message(b'E', b"C28000\0\0");
                assert!(matches!(feed(&mut handshake, &rejection), Err(LoginError::Rejected(_))));
            } else {
                assert!(matches!(fed, Err(LoginError::TlsNotSupported)));
            }
        }
    }

    #[test]
    fn data_before_tls_are_rejected() {
        let (params, context) = tcp(SslMode::Require);
        let start =
            || Handshake::start(&params, 0, Transport::Tcp, context.as_ref(), &mut Vec::new()).unwrap();
        assert!(matches!(feed(&mut start(), b"SR"), Err(LoginError::DataBeforeTls)));
        assert!(matches!(feed(&mut start(), b"E"), Err(LoginError::ErrorBeforeTls)));
        assert!(matches!(feed(&mut start(), b"H"), Err(LoginError::Protocol(_))));
    }

    #[test]
    fn the_fallback_is_offered_once() {
        let rejection = message(b'E', b"C28000\0Mno pg_hba.conf entry\0\0");
        let (params, context) = tcp(SslMode::Allow);
        let mut out = Vec::new();
        let mut handshake = Handshake::start(&params, 0, Transport::Tcp, context.as_ref(), &mut out).unwrap();
        assert!(out[8..].starts_with(b"user\0"));
        let Err(LoginError::Retry { encryption: Encryption::Tls, .. }) = feed(&mut handshake, &rejection)
        else {
            panic!("no fallback")
        };
        out.clear();
        let mut handshake =
            Handshake::start_over(&params, 0, context.as_ref(), Encryption::Tls, &mut out).unwrap();
        assert!(matches!(feed(&mut handshake, b"N"), Err(LoginError::TlsNotSupported)));
        // An error instead of TLS: prefer continues without.
        let (params, context) = tcp(SslMode::Prefer);
        let mut handshake = Handshake::start(&params, 0, Transport::Tcp, context.as_ref(), &mut out).unwrap();
        let Err(LoginError::Retry { encryption: Encryption::Plain, .. }) = feed(&mut handshake, b"E") else {
            panic!("no fallback")
        };
    }

    #[test]
    fn a_connection_closed_during_the_tls_handshake_is_a_tls_error() {
        assert!(matches!(begin(None).closed(), LoginError::Closed));
        let begin_tls = |mode| {
            let (params, context) = tcp(mode);
            let mut handshake =
                Handshake::start(&params, 0, Transport::Tcp, context.as_ref(), &mut Vec::new()).unwrap();
            feed(&mut handshake, b"S").unwrap();
            handshake
        };
        let closed = begin_tls(SslMode::Prefer).closed();
        assert!(matches!(closed, LoginError::Retry { encryption: Encryption::Plain, .. }), "{closed:?}");
        assert!(matches!(begin_tls(SslMode::Require).closed(), LoginError::Tls(TlsError::Closed)));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
            for prefix in [vec![], message(b'R', &[0; 4]), message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")] {
                let mut handshake = begin(Some("secret"));
                let bytes = [prefix, bytes.clone()].concat();
                let (first, second) = bytes.split_at(cut.min(bytes.len()));
                if feed(&mut handshake, first).is_ok() {
                    let _ = feed(&mut handshake, second);
                }
            }
        }
    }
}
