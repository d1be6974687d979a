//! Verification of the server's identity, by libpq's rules.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

use super::certificate::{common_name, is_valid_legacy_certificate, name_matches, verify_signature};
use super::error::WrongHost;
use super::{TlsError, files};
use crate::params::{RootCert, SslMode, SslParams};

/// Requirements on a server's certificate.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Issuers that must have signed it; any if none.
    trust: Option<Trust>,
    /// Whether it must be the host's.
    host: bool,
}

/// Trusted issuers.
#[derive(Debug)]
struct Trust {
    chain: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
    has_revocations: bool,
}

impl Verifier {
    pub(super) fn new(ssl: &SslParams, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let roots = files::roots(ssl)?;
        let trust = roots.map(|roots| Trust::new(ssl, roots, Arc::clone(&provider))).transpose()?;
        Ok(Self { provider, trust, host: ssl.mode == SslMode::VerifyFull })
    }

    /// Checks that the certificate is the host's.
    fn verify_name(
        &self,
        certificate: &CertificateDer<'_>,
        host: &ServerName<'_>,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(certificate);
        let is_named = parsed.is_ok_and(|parsed| verify_server_name(&parsed, host).is_ok());
        let host_name = host.to_str();
        let is_address = matches!(host, ServerName::IpAddress(_));
        if !self.host || is_named {
            return Ok(ServerCertVerified::assertion());
        }
        let common_name = common_name(certificate, is_address);
        if common_name.as_ref().is_some_and(|name| name_matches(name, &host_name)) {
            return Ok(ServerCertVerified::assertion());
        }
        let wrong = WrongHost { certificate: common_name, host: host_name.into_owned() };
        Err(CertificateError::Other(OtherError(Arc::new(wrong))).into())
    }
}

impl Trust {
    fn new(
        ssl: &SslParams,
        roots: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        if ssl.root_cert == RootCert::System {
            // The system may have some that rustls does not accept.
            store.add_parsable_certificates(roots.iter().cloned());
        } else {
            for root in &roots {
                store.add(root.clone()).map_err(|error| unusable_root(ssl, &error))?;
            }
        }
        let revocations = files::revocations(ssl);
        let has_revocations = !revocations.is_empty();
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .with_crls(revocations)
            .build()
            .map_err(|error| unusable_root(ssl, &error))?;
        Ok(Self { chain, roots, has_revocations })
    }
}

fn unusable_root(ssl: &SslParams, problem: &dyn std::error::Error) -> TlsError {
    let RootCert::File(path) = &ssl.root_cert else { return TlsError::NoSystemRoots(problem.to_string()) };
    TlsError::Content { what: "root certificate file", path: path.clone(), problem: problem.to_string() }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trust) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        let chain = &trust.chain;
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Ok(verified) => Ok(verified),
            // The name is checked last.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => self.verify_name(end_entity, server_name),
            Err(error @ Error::InvalidCertificate(CertificateError::Other(_))) => {
                let algorithms = &self.provider.signature_verification_algorithms;
                let is_valid = !trust.has_revocations
                    && is_valid_legacy_certificate(end_entity, &trust.roots, algorithms, now);
                if is_valid { self.verify_name(end_entity, server_name) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
            .or_else(|error| verify_legacy_signature(error, message, cert, signed, self))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
            .or_else(|error| verify_legacy_signature(error, message, cert, signed, self))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// rustls does not support the key of an X.509 version 1 certificate.
fn verify_legacy_signature(
    error: Error,
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    verifier: &Verifier,
) -> Result<HandshakeSignatureValid, Error> {
    match error {
        Error::InvalidCertificate(CertificateError::Other(_)) => {
            let algorithms = &verifier.provider.signature_verification_algorithms;
            verify_signature(message, certificate, signed, algorithms)
                .map(|()| HandshakeSignatureValid::assertion())
        }
        error => Err(error),
    }
}
