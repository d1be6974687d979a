//! Errors of TLS.

use std::path::PathBuf;
use std::sync::Arc;

/// Errors of TLS. Texts are libpq's, if it has them.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TlsError {
    /// An existing file cannot be read.
    #[error("could not read {what} \"{}\": {source}", path.display())]
    Read {
        /// Kind of file.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Arc<std::io::Error>,
    },
    /// The content of a file is invalid.
    #[error("could not read {what} \"{}\": {problem}", path.display())]
    Content {
        /// Kind of file.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Certificates must be verified, and the file of trusted ones does not exist.
    #[error(
        "root certificate file \"{}\" does not exist\nEither provide the file, use the system's trusted roots with \
         sslrootcert=system, or change sslmode to disable server certificate verification.",
        .0.display()
    )]
    NoRootCert(PathBuf),
    /// Certificates must be verified, and there is no home directory with trusted ones.
    #[error(
        "could not get home directory to locate root certificate file\nEither provide the file, use the system's \
         trusted roots with sslrootcert=system, or change sslmode to disable server certificate verification."
    )]
    NoHome,
    /// The system has no trusted certificates.
    #[error("could not load system root certificate paths: {0}")]
    NoSystemRoots(String),
    /// There is a certificate, but no key for it.
    #[error("certificate present, but not private key file \"{}\"", .0.display())]
    NoKey(PathBuf),
    /// The key is not a regular file.
    #[error("private key file \"{}\" is not a regular file", .0.display())]
    KeyNotRegular(PathBuf),
    /// Others have access to the key.
    #[error(
        "private key file \"{}\" has group or world access; file must have permissions u=rw (0600) or less if owned \
         by the current user, or permissions u=rw,g=r (0640) or less if owned by root",
        .0.display()
    )]
    KeyAccess(PathBuf),
    /// The key cannot be used.
    #[error("could not load private key file \"{}\": {problem}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Key and certificate do not match.
    #[error("certificate does not match private key file \"{}\"", .0.display())]
    KeyMismatch(PathBuf),
    /// The host has no name to verify.
    #[error("host name must be specified for a verified SSL connection")]
    NoHostName,
    /// Direct TLS, and the server did not negotiate ALPN.
    #[error("direct SSL connection was established without ALPN protocol negotiation extension")]
    NoAlpn,
    /// The connection has been closed.
    #[error("SSL connection has been closed unexpectedly")]
    Closed,
    /// The keys of the connection are exhausted.
    #[error("the keys of the SSL connection have encrypted as many messages as is safe; reconnect")]
    Exhausted,
    /// The server's certificate is for another host.
    #[error(transparent)]
    WrongHost(#[from] WrongHost),
    /// The server's certificate is invalid.
    #[error("SSL error: certificate verify failed: {0}")]
    Certificate(rustls::CertificateError),
    /// Other errors of rustls.
    #[error("SSL error: {0}")]
    Rustls(rustls::Error),
}

/// The certificate is for another host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "server certificate{} does not match host name \"{host}\"",
    .certificate.as_ref().map(|name| format!(" for \"{name}\"")).unwrap_or_default()
)]
pub struct WrongHost {
    /// The certificate's common name, if it was compared.
    pub certificate: Option<String>,
    /// The host's name.
    pub host: String,
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        let rustls::Error::InvalidCertificate(problem) = error else { return Self::Rustls(error) };
        let wrong_host = match &problem {
            rustls::CertificateError::Other(other) => other.0.downcast_ref::<WrongHost>().cloned(),
            _ => None,
        };
        wrong_host.map_or(Self::Certificate(problem), Self::WrongHost)
    }
}
