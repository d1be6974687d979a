//! TLS of one connection, without its socket.

mod certificate;
mod context;
mod error;
mod files;
mod verify;

use std::fmt;

use rustls::ProtocolVersion;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};

pub use context::TlsContext;
pub use error::TlsError;

/// Capacity that a connection keeps for incomplete received records, in bytes.
const RETAINED_CAPACITY: usize = 4 * 1024;

/// Upper bound of what a record of any version and cipher adds to its content, in bytes.
const RECORD_OVERHEAD: usize = 64;

/// Maximum content of a record, in bytes.
const RECORD_CONTENT: usize = 16 * 1024;

/// ALPN name of the protocol, which servers from version 17 check.
const ALPN: &[u8] = b"postgresql";

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Not encrypted.
    Plain,
    /// Encrypted by TLS.
    Tls,
}

/// TLS of one connection. It holds keys, and the received part of an incomplete record.
pub struct Tls {
    connection: UnbufferedClientConnection,
    /// Received and not yet processed by `connection`.
    received: Vec<u8>,
    /// Decrypted, for the next [`Tls::decrypt`].
    decrypted: Vec<u8>,
    /// Output to send before that of the next [`Tls::encrypt`].
    unsent: Vec<u8>,
    closed_by_server: bool,
    /// Whether an error has ended the connection: rustls must not be called again.
    failed: bool,
}

/// Whether more data can arrive from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFlow {
    /// More can arrive.
    Open,
    /// The server has sent its last data.
    Closed,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("version", &self.version()).field("cipher", &self.cipher()).finish()
    }
}

impl Tls {
    fn new(connection: UnbufferedClientConnection) -> Self {
        Self {
            connection,
            received: Vec::new(),
            decrypted: Vec::new(),
            unsent: Vec::new(),
            closed_by_server: false,
            failed: false,
        }
    }

    /// Processes bytes from the socket and appends the content of complete records to `plain`. The first call also
    /// appends what arrived with the end of the handshake: make one without input, in case nothing else arrives.
    pub fn decrypt(&mut self, input: &[u8], plain: &mut Vec<u8>) -> Result<TlsFlow, TlsError> {
        plain.append(&mut self.decrypted);
        if !input.is_empty() {
            self.received.extend_from_slice(input);
            let mut unsent = std::mem::take(&mut self.unsent);
            let result = self.drive(plain, &mut unsent, None);
            self.unsent = unsent;
            result?;
        }
        Ok(if self.closed_by_server { TlsFlow::Closed } else { TlsFlow::Open })
    }

    /// Appends the records that encrypt `plain` to `out`.
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        out.append(&mut self.unsent);
        if plain.is_empty() {
            return Ok(());
        }
        let mut decrypted = std::mem::take(&mut self.decrypted);
        let result = self.drive(&mut decrypted, out, Some(Outgoing::Data(plain)));
        self.decrypted = decrypted;
        result.map(drop)
    }

    /// Appends the record that announces the end of the data to `out`.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        out.append(&mut self.unsent);
        self.drive(&mut Vec::new(), out, Some(Outgoing::Close)).map(drop)
    }

    /// The version in use, such as `TLSv1.3`; empty before the end of the handshake.
    pub fn version(&self) -> &'static str {
        match self.connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "",
        }
    }

    /// The name of the cipher suite in use; empty before the end of the handshake.
    pub fn cipher(&self) -> &'static str {
        self.connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).unwrap_or("")
    }

    /// Whether both sides have agreed on PostgreSQL's protocol under TLS.
    pub(crate) fn is_postgresql(&self) -> bool {
        self.connection.alpn_protocol() == Some(ALPN)
    }

    /// Returns the hash of the server's certificate that binds an authentication to this connection
    /// (`tls-server-end-point`); none if its signature does not determine a hash.
    pub(crate) fn server_end_point(&self) -> Option<Vec<u8>> {
        certificate::end_point_hash(self.connection.peer_certificates()?.first()?)
    }

    /// Continues the handshake: processes bytes and appends those to send. Returns true if it is complete; later data
    /// are kept for [`Tls::decrypt`].
    pub(crate) fn continue_handshake(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<bool, TlsError> {
        self.received.extend_from_slice(input);
        let mut decrypted = std::mem::take(&mut self.decrypted);
        let result = self.drive(&mut decrypted, out, None);
        self.decrypted = decrypted;
        result
    }

    /// Puts data back for the next [`Tls::decrypt`].
    pub(crate) fn push_back(&mut self, plain: &[u8]) {
        self.decrypted.splice(..0, plain.iter().copied());
    }

    /// Processes received bytes, and encrypts `outgoing` if the connection permits it. Returns whether it does.
    fn drive(
        &mut self,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
        mut outgoing: Option<Outgoing<'_>>,
    ) -> Result<bool, TlsError> {
        if self.failed {
            return Err(TlsError::Closed);
        }
        let mut from = 0;
        let end = loop {
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut self.received[from..]);
            let end = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        plain.extend_from_slice(record.payload);
                        discard += record.discard;
                    }
                    None
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    encode(&mut data, out)?;
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.closed_by_server = true;
                    None
                }
                Ok(ConnectionState::WriteTraffic(mut traffic)) => match outgoing.take() {
                    Some(outgoing) => {
                        outgoing.write(&mut traffic, out)?;
                        None
                    }
                    None => Some(Ok(true)),
                },
                Ok(ConnectionState::Closed) => {
                    self.closed_by_server = true;
                    Some(if outgoing.is_some() { Err(TlsError::Closed) } else { Ok(false) })
                }
                Ok(ConnectionState::BlockedHandshake) => {
                    Some(if outgoing.is_some() { Err(TlsError::Closed) } else { Ok(false) })
                }
                Ok(_) => Some(Err(TlsError::Closed)),
                Err(error) => {
                    self.failed = true;
                    Some(Err(error.into()))
                }
            };
            from += discard;
            if let Some(end) = end {
                break end;
            }
        };
        self.received.drain(..from);
        if self.received.is_empty() {
            self.received.shrink_to(RETAINED_CAPACITY);
        }
        if end.is_err() {
            self.write_alert(out);
        }
        end
    }

    /// Appends the alert that reports to the server why the connection is closed.
    fn write_alert(&mut self, out: &mut Vec<u8>) {
        // After the last output, rustls would continue with received messages, which are not in an empty buffer: it panics.
        while self.connection.wants_write() {
            let Ok(ConnectionState::EncodeTlsData(mut data)) =
                self.connection.process_tls_records(&mut []).state
            else {
                return;
            };
            if encode(&mut data, out).is_err() {
                return;
            }
        }
    }
}

/// Data to send to the server.
enum Outgoing<'a> {
    Data(&'a [u8]),
    Close,
}

impl Outgoing<'_> {
    fn write(
        self,
        traffic: &mut WriteTraffic<'_, ClientConnectionData>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let start = out.len();
        let mut capacity = match self {
            Self::Data(data) => data.len() + RECORD_OVERHEAD * (1 + data.len() / RECORD_CONTENT),
            Self::Close => RECORD_OVERHEAD,
        };
        loop {
            out.resize(start + capacity, 0);
            let written = match self {
                Self::Data(data) => traffic.encrypt(data, &mut out[start..]),
                Self::Close => traffic.queue_close_notify(&mut out[start..]),
            };
            match written {
                Ok(written) => {
                    out.truncate(start + written);
                    return Ok(());
                }
                Err(EncryptError::InsufficientSize(size)) if size.required_size > capacity => {
                    capacity = size.required_size;
                }
                Err(_) => {
                    out.truncate(start);
                    return Err(TlsError::Exhausted);
                }
            }
        }
    }
}

/// Appends a record of the handshake.
fn encode(data: &mut EncodeTlsData<'_, ClientConnectionData>, out: &mut Vec<u8>) -> Result<(), TlsError> {
    let start = out.len();
    // Encoding into an empty buffer returns the required size.
    if let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) {
        out.resize(start + size.required_size, 0);
    }
    match data.encode(&mut out[start..]) {
        Ok(written) => out.truncate(start + written),
        Err(EncodeError::AlreadyEncoded) => {}
        Err(EncodeError::InsufficientSize(_)) => return Err(TlsError::Exhausted),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::version::{TLS12, TLS13};
    use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

    use super::*;
    use crate::{ConnectParams, Encryption, Established, Handshake, LoginError, SessionInfo, SslMode};

    /// The other end of a connection.
    struct Server {
        connection: ServerConnection,
        /// Bytes received before TLS: the SSLRequest.
        request: Vec<u8>,
        output: Vec<u8>,
        received: Vec<u8>,
    }

    impl Server {
        fn new(version: &'static SupportedProtocolVersion) -> Self {
            let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
            let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
                .with_protocol_versions(&[version])
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![own.cert.der().clone()], key)
                .unwrap();
            let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
            connection.set_buffer_limit(None);
            Self { connection, request: Vec::new(), output: Vec::new(), received: Vec::new() }
        }

        /// Processes bytes and returns the response. Sends `output` once the client has sent something.
        fn respond(&mut self, mut input: &[u8]) -> Vec<u8> {
            const REQUEST: usize = 8;
            let mut out = Vec::new();
            if self.request.len() < REQUEST {
                self.request.extend_from_slice(input);
                return if self.request.len() == REQUEST { b"S".to_vec() } else { out };
            }
            while !input.is_empty() {
                self.connection.read_tls(&mut input).unwrap();
                let state = self.connection.process_new_packets().unwrap();
                let mut plain = vec![0; state.plaintext_bytes_to_read()];
                self.connection.reader().read_exact(&mut plain).unwrap();
                self.received.extend(plain);
            }
            if !self.received.is_empty() {
                self.connection.writer().write_all(&std::mem::take(&mut self.output)).unwrap();
            }
            while self.connection.wants_write() {
                self.connection.write_tls(&mut out).unwrap();
            }
            out
        }
    }

    /// Messages of a server that accepts a login, and then something that belongs to the session.
    const LOGIN_MESSAGES: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x09Z\0\0\0\x05Inext";

    fn context(mode: SslMode) -> (ConnectParams, TlsContext) {
        let mut params = ConnectParams::new("localhost", 5432, "me", "bench", None);
        params.ssl.mode = mode;
        let context = TlsContext::new(&params).unwrap().unwrap();
        (params, context)
    }

    /// Performs a handshake in pieces of this size.
    fn connect(server: &mut Server, size: usize) -> (SessionInfo, Box<Tls>) {
        let (params, context) = context(SslMode::Require);
        let mut to_server = Vec::new();
        let mut handshake =
            Handshake::start_over(&params, 0, Some(&context), Encryption::Tls, &mut to_server).unwrap();
        loop {
            let to_client = server.respond(&std::mem::take(&mut to_server));
            for piece in to_client.chunks(size) {
                let (taken, established) = handshake.feed(piece, &mut to_server).unwrap();
                assert_eq!(taken, piece.len());
                if let Some(Established { session, tls }) = established {
                    let mut tls = tls.unwrap();
                    // Data that arrived with the end of the handshake, and the rest.
                    let mut plain = Vec::new();
                    tls.decrypt(&[], &mut plain).unwrap();
                    let rest = &to_client[(piece.as_ptr() as usize - to_client.as_ptr() as usize) + taken..];
                    for piece in rest.chunks(size) {
                        tls.decrypt(piece, &mut plain).unwrap();
                    }
                    assert_eq!(plain, b"next");
                    return (session, tls);
                }
            }
            assert!(!to_server.is_empty(), "neither side sends anything");
        }
    }

    #[test]
    fn sessions_start_and_no_data_are_lost() {
        for version in [&TLS12, &TLS13] {
            for size in [1, 100, 100_000] {
                let mut server = Server::new(version);
                server.output = LOGIN_MESSAGES.to_vec();
                let (session, tls) = connect(&mut server, size);
                assert_eq!(session.process_id, 7);
                assert_eq!(tls.version() == "TLSv1.3", version.version == ProtocolVersion::TLSv1_3);
                assert!(tls.cipher().starts_with("TLS"), "{}", tls.cipher());
                assert!(tls.server_end_point().is_some_and(|hash| hash.len() == 32));
                assert!(server.received.windows(8).any(|text| text == b"user\0me\0"));
            }
        }
    }

    #[test]
    fn close_notify_is_reported() {
        let mut server = Server::new(&TLS13);
        server.output = LOGIN_MESSAGES.to_vec();
        let (_, mut tls) = connect(&mut server, 1000);
        server.connection.send_close_notify();
        let last = server.respond(&[]);
        assert_eq!(tls.decrypt(&last, &mut Vec::new()).unwrap(), TlsFlow::Closed);
        let mut out = Vec::new();
        tls.close_notify(&mut out).unwrap();
        server.connection.read_tls(&mut out.as_slice()).unwrap();
        assert!(server.connection.process_new_packets().unwrap().peer_has_closed());
        assert!(tls.encrypt(b"more", &mut Vec::new()).is_err());
    }

    #[test]
    fn damaged_records_are_errors_and_cause_an_alert() {
        let mut server = Server::new(&TLS13);
        server.output = LOGIN_MESSAGES.to_vec();
        let (_, mut tls) = connect(&mut server, 1000);
        server.output = b"more".to_vec();
        let mut bytes = server.respond(&[]);
        *bytes.last_mut().unwrap() ^= 1;
        assert!(matches!(tls.decrypt(&bytes, &mut Vec::new()), Err(TlsError::Rustls(_))));
        let mut alert = Vec::new();
        let _ = tls.encrypt(b"", &mut alert);
        assert!(!alert.is_empty());
        // A session that is dropped after the error says goodbye.
        let mut out = Vec::new();
        assert!(matches!(tls.encrypt(b"X\0\0\0\x04", &mut out), Err(TlsError::Closed)));
        assert!(matches!(tls.close_notify(&mut out), Err(TlsError::Closed)));
        assert!(out.is_empty());
    }

    #[test]
    fn a_refused_certificate_causes_an_alert() {
        let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root.crt");
        std::fs::write(&root, other.cert.pem()).unwrap();
        let mut params = ConnectParams::new("localhost", 5432, "me", "bench", None);
        params.ssl.mode = SslMode::VerifyFull;
        params.ssl.root_cert = crate::RootCert::File(root);
        let context = TlsContext::new(&params).unwrap().unwrap();
        for version in [&TLS12, &TLS13] {
            let mut server = Server::new(version);
            let mut out = Vec::new();
            let mut handshake =
                Handshake::start_over(&params, 0, Some(&context), Encryption::Tls, &mut out).unwrap();
            let answer = server.respond(&std::mem::take(&mut out));
            handshake.feed(&answer, &mut out).unwrap();
            // Its messages are in one record: when TLS 1.3 refuses the certificate, the last one is left.
            let flight = server.respond(&std::mem::take(&mut out));
            let refused = handshake.feed(&flight, &mut out);
            assert!(matches!(refused, Err(LoginError::Tls(TlsError::Certificate(_)))), "{:?}", refused.err());
            server.connection.read_tls(&mut out.as_slice()).unwrap();
            let alert = server.connection.process_new_packets();
            assert!(matches!(alert, Err(rustls::Error::AlertReceived(_))), "{alert:?}");
        }
    }

    #[test]
    fn a_context_exists_only_if_tls_can_be_used() {
        let mut params = ConnectParams::new("/tmp", 5432, "me", "bench", None);
        params.ssl.mode = SslMode::VerifyFull;
        assert!(TlsContext::new(&params).unwrap().is_none());
        params.hosts[0].host = "localhost".to_owned();
        assert!(matches!(TlsContext::new(&params), Err(TlsError::NoHome)));
        params.ssl.mode = SslMode::Disable;
        assert!(TlsContext::new(&params).unwrap().is_none());
    }

    #[test]
    fn invalid_responses_do_not_panic() {
        let (params, context) = context(SslMode::Require);
        for answer in
            [&b"\0\0\0\0\0\0"[..], b"HTTP/1.1 400", b"\x16\x03\x03\xff\xff", b"\x15\x03\x03\0\x02\x02\x28"]
        {
            let mut out = Vec::new();
            let mut handshake =
                Handshake::start_over(&params, 0, Some(&context), Encryption::Tls, &mut out).unwrap();
            handshake.feed(b"S", &mut out).unwrap();
            match handshake.feed(answer, &mut out) {
                Ok((_, None)) | Err(LoginError::Tls(_)) => {}
                other => panic!("{answer:?}: {other:?}"),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn data_arrive_unchanged_in_both_directions(
            lengths in prop::collection::vec(prop_oneof![0_usize..100, 16_000_usize..17_000, Just(100_000)], 1..6),
            size in 1_usize..20_000,
            new in any::<bool>(),
        ) {
            let mut server = Server::new(if new { &TLS13 } else { &TLS12 });
            server.output = LOGIN_MESSAGES.to_vec();
            let (_, mut tls) = connect(&mut server, 100_000);
            for (number, length) in lengths.into_iter().enumerate() {
                let text = vec![number as u8; length];
                let mut out = Vec::new();
                tls.encrypt(&text, &mut out).unwrap();
                server.received.clear();
                server.output = text.clone();
                let mut back = server.respond(&out);
                prop_assert!(server.received == text);
                while server.connection.wants_write() {
                    server.connection.write_tls(&mut back).unwrap();
                }
                let mut plain = Vec::new();
                for piece in back.chunks(size) {
                    prop_assert_eq!(tls.decrypt(piece, &mut plain).unwrap(), TlsFlow::Open);
                }
                prop_assert!(plain == text);
                prop_assert!(tls.received.is_empty() && tls.received.capacity() <= RETAINED_CAPACITY);
            }
        }
    }
}
