//! TLS state shared by the connections of a load.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, SupportedProtocolVersion};

use super::files::ClientCert;
use super::verify::Verifier;
use super::{ALPN, Tls, TlsError, certificate, files};
use crate::params::{ConnectParams, Host, SslMode, SslParams, TlsVersion, Transport};

/// Certificates, keys and rules, read once and shared by all connections. Cloning it is cheap.
#[derive(Clone)]
pub struct TlsContext {
    /// The error that prevents the use of TLS, if TLS is tried, but not required.
    config: Result<Arc<ClientConfig>, TlsError>,
    verifies_host: bool,
}

impl fmt::Debug for TlsContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsContext").field("verifies_host", &self.verifies_host).finish_non_exhaustive()
    }
}

impl TlsContext {
    /// Reads the files that the parameters name; none if no host can be reached by TLS or TLS is disabled.
    ///
    /// # Errors
    ///
    /// If `sslmode` requires TLS and a file is missing, unreadable or invalid. Under `allow` and `prefer` the
    /// connections report the error, as in libpq, and continue without.
    pub fn new(params: &ConnectParams) -> Result<Option<Self>, TlsError> {
        let ssl = &params.ssl;
        let unix_only = params.hosts.iter().all(|host| host.transport() == Transport::Unix);
        if ssl.mode == SslMode::Disable || unix_only {
            return Ok(None);
        }
        let config = configure(ssl).map(Arc::new);
        match config {
            Err(error) if !matches!(ssl.mode, SslMode::Allow | SslMode::Prefer) => Err(error),
            config => Ok(Some(Self { config, verifies_host: ssl.mode == SslMode::VerifyFull })),
        }
    }

    /// Starts a connection; appends its first message to `out`.
    pub(crate) fn connect(&self, host: &Host, out: &mut Vec<u8>) -> Result<Box<Tls>, TlsError> {
        let config = Arc::clone(self.config.as_ref().map_err(Clone::clone)?);
        if self.verifies_host && host.host.is_empty() {
            return Err(TlsError::NoHostName);
        }
        let mut tls = Box::new(Tls::new(UnbufferedClientConnection::new(config, server_name(host))?));
        tls.continue_handshake(&[], out)?;
        Ok(tls)
    }
}

/// The name in a host's certificate, which is also sent to the server. For a host without such a name, any address: it
/// is not sent, and no certificate is for it.
fn server_name(host: &Host) -> ServerName<'static> {
    let address = || host.hostaddr.unwrap_or(IpAddr::from([0, 0, 0, 0])).into();
    ServerName::try_from(host.host.clone()).unwrap_or_else(|_| ServerName::IpAddress(address()))
}

fn configure(ssl: &SslParams) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(default_provider());
    let verifier = Verifier::new(ssl, Arc::clone(&provider))?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(ssl))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match files::client_cert(ssl)? {
        None => builder.with_no_client_auth(),
        Some(cert) => builder.with_client_cert_resolver(Arc::new(certified_key(cert, &provider)?)),
    };
    config.enable_sni = ssl.sni;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Servers do not resume sessions; the state for it would be useless.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The client's certificate and key, which must match.
fn certified_key(cert: ClientCert, provider: &CryptoProvider) -> Result<SingleCertAndKey, TlsError> {
    let ClientCert { chain, key, key_path } = cert;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|error| TlsError::Key { path: key_path.clone(), problem: error.to_string() })?;
    let public = key.public_key().map(|key| key.to_vec());
    let certified = chain.first().and_then(certificate::public_key);
    if public.zip(certified).is_some_and(|(public, certified)| public != certified) {
        return Err(TlsError::KeyMismatch(key_path));
    }
    Ok(CertifiedKey::new(chain, key).into())
}

fn versions(ssl: &SslParams) -> Vec<&'static SupportedProtocolVersion> {
    let is_allowed = |version| version >= ssl.min_version && ssl.max_version.is_none_or(|max| version <= max);
    [(TlsVersion::V1_2, &TLS12), (TlsVersion::V1_3, &TLS13)]
        .into_iter()
        .filter(|(version, _)| is_allowed(*version))
        .map(|(_, supported)| supported)
        .collect()
}
