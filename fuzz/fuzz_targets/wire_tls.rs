//! A client accepts or refuses any server behind TLS: any certificate, any messages, damaged and split anywhere. An input
//! is a byte of flags, the size of pieces, the number of a damaged byte (two bytes; none if 0), the length of the
//! certificate (two bytes), the certificate, and the server's messages.

#![no_main]

use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use rustls::crypto::ring::{default_provider, sign::any_ecdsa_type};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection};
use wire::{
    ConnectParams, Established, Handshake, LoginError, Reader, RootCert, SslMode, SslNegotiation, TlsContext,
};
use wire::{TlsVersion, Transport};

/// Key of the certificates in the corpus.
const KEY: &[u8] = include_bytes!("../wire_tls.key");
/// More than any login needs.
const MAX_ROUNDS: usize = 20;

struct Input<'a> {
    flags: u8,
    piece: usize,
    damaged: usize,
    certificate: &'a [u8],
    messages: &'a [u8],
}

impl<'a> Input<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let ([flags, piece, d0, d1, c0, c1], rest) = bytes.split_first_chunk::<6>()?;
        let (certificate, messages) = rest.split_at_checked(u16::from_le_bytes([*c0, *c1]).into())?;
        let damaged = u16::from_le_bytes([*d0, *d1]).into();
        Some(Self { flags: *flags, piece: usize::from(*piece).max(1), damaged, certificate, messages })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & (1 << flag) != 0
    }

    fn params(&self) -> ConnectParams {
        let mut params = ConnectParams::new("localhost", 5432, "me", "bench", Some("secret".to_owned()));
        params.ssl.mode = match self.flags & 3 {
            0 => SslMode::Prefer,
            1 => SslMode::Require,
            2 => SslMode::VerifyCa,
            _ => SslMode::VerifyFull,
        };
        if self.has(2) {
            params.ssl.negotiation = SslNegotiation::Direct;
        }
        if self.has(3) {
            params.ssl.max_version = Some(TlsVersion::V1_2);
        }
        params
    }

    /// The context of a client that trusts the certificate, if it verifies it.
    fn context(&self, params: &mut ConnectParams) -> Option<TlsContext> {
        if self.flags & 3 < 2 {
            return TlsContext::new(params).ok()?;
        }
        let directory = fuzz::directory();
        let file = directory.path().join("root.crt");
        fs::write(&file, pem(self.certificate)).ok()?;
        params.ssl.root_cert = RootCert::File(file);
        TlsContext::new(params).ok()?
    }

    fn server(&self) -> Option<ServerConnection> {
        let key = any_ecdsa_type(&PrivatePkcs8KeyDer::from(KEY).into()).ok()?;
        let certified = CertifiedKey::new(vec![CertificateDer::from(self.certificate.to_vec())], key);
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS12, &TLS13])
            .ok()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        ServerConnection::new(Arc::new(config)).ok()
    }
}

fn pem(certificate: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

/// A client, and the bytes that it received so far.
struct Client {
    handshake: Handshake,
    received: usize,
    established: Option<Established>,
    plain: Vec<u8>,
}

impl Client {
    /// Receives bytes in pieces, one of them damaged.
    fn receive(&mut self, input: &Input<'_>, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), LoginError> {
        for piece in bytes.chunks(input.piece) {
            let mut piece = piece.to_vec();
            let damaged = input.damaged.checked_sub(self.received + 1);
            if let Some(byte) = damaged.and_then(|at| piece.get_mut(at)) {
                *byte ^= 0x55;
            }
            self.received += piece.len();
            match &mut self.established {
                Some(Established { tls: Some(tls), .. }) => {
                    tls.decrypt(&piece, &mut self.plain)?;
                    tls.encrypt(b"Q\0\0\0\x05\0", out)?;
                }
                Some(_) => {}
                None => {
                    let (taken, established) = self.handshake.feed(&piece, out)?;
                    assert!(taken <= piece.len());
                    self.established = established;
                    if let Some(Established { tls: Some(tls), .. }) = &mut self.established {
                        tls.decrypt(&[], &mut self.plain)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn connect(input: &Input<'_>) -> Option<()> {
    let mut params = input.params();
    let context = input.context(&mut params)?;
    let mut out = Vec::new();
    let handshake = Handshake::start(&params, 0, Transport::Tcp, Some(&context), &mut out).ok()?;
    let mut client = Client { handshake, received: 0, established: None, plain: Vec::new() };
    if !input.has(2) {
        out.clear();
        client.receive(input, b"S", &mut out).ok()?;
    }
    if input.has(4) {
        // Without a server: the messages are what arrives.
        let _ = client.receive(input, input.messages, &mut out);
        return None;
    }
    let mut server = input.server()?;
    let mut messages = Some(input.messages);
    for _ in 0..MAX_ROUNDS {
        let mut sent = out.as_slice();
        while !sent.is_empty() && server.read_tls(&mut sent).ok()? > 0 {
            let _ = server.process_new_packets();
        }
        out.clear();
        if !server.is_handshaking()
            && let Some(messages) = messages.take()
        {
            server.writer().write_all(messages).ok()?;
            server.send_close_notify();
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).ok()?;
        }
        if bytes.is_empty() {
            break;
        }
        if let Err(error) = client.receive(input, &bytes, &mut out) {
            assert!(!error.to_string().is_empty());
            if let Some(Established { tls: Some(tls), .. }) = &mut client.established {
                // The end of a session, whatever happened to it.
                let _ = tls.encrypt(b"X\0\0\0\x04", &mut out);
                let _ = tls.close_notify(&mut out);
            }
            return None;
        }
    }
    let mut reader = Reader::default();
    let mut plain = client.plain.as_slice();
    while let Ok((taken, Some(_))) = reader.next(plain) {
        plain = &plain[taken..];
    }
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(input) = Input::parse(bytes) {
        connect(&input);
    }
});
