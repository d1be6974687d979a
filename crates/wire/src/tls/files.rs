//! Files of certificates and keys.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::TlsError;
use crate::params::{RootCert, SslMode, SslParams};

/// Text that all forms of encrypted keys contain.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

/// Decrypting keys would need more libraries than the rest of TLS.
const ENCRYPTED_KEY: &str =
    "it is encrypted, which pgdyno does not support (nor sslpassword); decrypt it with `openssl pkey`";

/// The client's certificate with its issuers, and its key.
pub(super) struct ClientCert {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) key_path: PathBuf,
}

/// Reads the client's certificate, if there is one.
pub(super) fn client_cert(ssl: &SslParams) -> Result<Option<ClientCert>, TlsError> {
    const WHAT: &str = "certificate file";
    let Some(path) = ssl.cert.as_ref().filter(|_| ssl.send_cert) else { return Ok(None) };
    let Some(content) = read_if_exists(WHAT, path)? else { return Ok(None) };
    let chain = certificates(WHAT, path, &content)?;
    let Some(key_path) = ssl.key.clone() else { return Err(TlsError::NoHome) };
    let key = private_key(&key_path)?;
    Ok(Some(ClientCert { chain, key, key_path }))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    const WHAT: &str = "private key file";
    let meta = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(TlsError::NoKey(path.to_owned())),
        meta => meta.map_err(|error| unreadable(WHAT, path, error))?,
    };
    if !meta.is_file() {
        return Err(TlsError::KeyNotRegular(path.to_owned()));
    }
    if others_have_access(&meta) {
        return Err(TlsError::KeyAccess(path.to_owned()));
    }
    let content = fs::read(path).map_err(|error| unreadable(WHAT, path, error))?;
    PrivateKeyDer::from_pem_slice(&content).map_err(|error| {
        let is_encrypted = content.windows(ENCRYPTED.len()).any(|text| text == ENCRYPTED);
        let problem = if is_encrypted { ENCRYPTED_KEY.to_owned() } else { error.to_string() };
        TlsError::Key { path: path.to_owned(), problem }
    })
}

/// libpq's rule: a key owned by root may be readable by its group, any other only by its owner.
fn others_have_access(meta: &Metadata) -> bool {
    let forbidden = if meta.uid() == 0 { 0o037 } else { 0o077 };
    meta.mode() & forbidden != 0
}

/// Trusted certificates; none if there are none and the mode does not require any.
pub(super) fn roots(ssl: &SslParams) -> Result<Option<Vec<CertificateDer<'static>>>, TlsError> {
    const WHAT: &str = "root certificate file";
    let required = matches!(ssl.mode, SslMode::VerifyCa | SslMode::VerifyFull);
    match &ssl.root_cert {
        RootCert::System => {
            let found = rustls_native_certs::load_native_certs();
            if found.certs.is_empty() {
                let problems: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
                let problem = if problems.is_empty() { "none found".into() } else { problems.join("; ") };
                return Err(TlsError::NoSystemRoots(problem));
            }
            Ok(Some(found.certs))
        }
        RootCert::File(path) => match read_if_exists(WHAT, path) {
            Ok(Some(content)) => certificates(WHAT, path, &content).map(Some),
            Ok(None) if required => Err(TlsError::NoRootCert(path.clone())),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        },
        RootCert::None if required => Err(TlsError::NoHome),
        RootCert::None => Ok(None),
    }
}

/// Certificate revocation lists. As in libpq, missing and invalid files are ignored.
pub(super) fn revocations(ssl: &SslParams) -> Vec<CertificateRevocationListDer<'static>> {
    let in_directory = ssl.crl_dir.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let in_directory = in_directory.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let files = ssl.crl.iter().cloned().chain(in_directory);
    let contents = files.filter_map(|file| fs::read(file).ok());
    contents
        .flat_map(|content| {
            CertificateRevocationListDer::pem_slice_iter(&content).flatten().collect::<Vec<_>>()
        })
        .collect()
}

fn certificates(
    what: &'static str,
    path: &Path,
    content: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let problem = |problem: String| TlsError::Content { what, path: path.to_owned(), problem };
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(content)
        .collect::<Result<_, _>>()
        .map_err(|error| problem(error.to_string()))?;
    if certificates.is_empty() {
        return Err(problem("it contains no PEM certificate".to_owned()));
    }
    Ok(certificates)
}

fn read_if_exists(what: &'static str, path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unreadable(what, path, error)),
    }
}

fn unreadable(what: &'static str, path: &Path, error: io::Error) -> TlsError {
    TlsError::Read { what, path: path.to_owned(), source: Arc::new(error) }
}
