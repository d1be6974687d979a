//! Support for certificates that PostgreSQL's users have and TLS libraries do not accept.

use std::time::Duration;

use ring::digest::{self, SHA256, SHA384, SHA512};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{DigitallySignedStruct, Error, PeerIncompatible};
use x509_cert::Certificate;
use x509_cert::der::asn1::Any;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::AlgorithmIdentifier;

/// Returns the hash of a certificate that binds an authentication to its connection: that of its signature, or SHA-256
/// in place of MD5 and SHA-1. None if its signature has no hash of its own.
///
/// Source: RFC 5929, section 4.1.
pub(super) fn end_point_hash(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let algorithm = match parsed.signature_algorithm().oid.to_string().as_str() {
        // RSA with MD5, SHA-1 and SHA-256, ECDSA with SHA-1 and SHA-256.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => &SHA256,
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => &SHA384,
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => &SHA512,
        _ => return None,
    };
    Some(digest::digest(algorithm, certificate).as_ref().to_vec())
}

/// Returns the public key of a certificate, as SubjectPublicKeyInfo.
pub(super) fn public_key(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    parsed.tbs_certificate().subject_public_key_info().to_der().ok()
}

/// Returns the host name of an old certificate, its common name: libpq uses it if the certificate has no other names
/// that could be compared with the host's.
pub(super) fn common_name(certificate: &CertificateDer<'_>, host_is_address: bool) -> Option<String> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let tbs = parsed.tbs_certificate();
    let names = tbs.get_extension::<SubjectAltName>().ok()?;
    let compares = |name: &GeneralName| match name {
        GeneralName::DnsName(_) => true,
        GeneralName::IpAddress(_) => host_is_address,
        _ => false,
    };
    if names.is_some_and(|(_, names)| names.0.iter().any(compares)) {
        return None;
    }
    Some(tbs.subject().common_name().ok()??.value().into_owned())
}

/// Whether a name of a certificate, perhaps with a wildcard as its first label, matches a host.
pub(super) fn name_matches(name: &str, host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    match name.strip_prefix("*.") {
        None => name.eq_ignore_ascii_case(host),
        Some(rest) => host
            .split_once('.')
            .is_some_and(|(first, domain)| !first.is_empty() && domain.eq_ignore_ascii_case(rest)),
    }
}

/// Whether a certificate is valid that OpenSSL accepts, but rustls does not: one that is itself trusted, or one of
/// X.509 version 1, as in PostgreSQL's manual (`openssl x509 -req`), that a trusted one has signed.
pub(super) fn is_valid_legacy_certificate(
    certificate: &CertificateDer<'_>,
    roots: &[CertificateDer<'_>],
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> bool {
    let Ok(parsed) = Certificate::from_der(certificate) else { return false };
    let tbs = parsed.tbs_certificate();
    if !is_valid_at(&parsed, now) {
        return false;
    }
    if tbs.issuer() == tbs.subject() && roots.iter().any(|root| root == certificate) {
        return true;
    }
    // rustls has checked a newer one.
    if tbs.extensions().is_some() {
        return false;
    }
    let issuers = roots.iter().filter_map(|root| Certificate::from_der(root).ok());
    issuers
        .filter(|issuer| issuer.tbs_certificate().subject() == tbs.issuer() && is_valid_at(issuer, now))
        .any(|issuer| verify_issuer_signature(&issuer, &parsed, algorithms).is_some())
}

fn is_valid_at(certificate: &Certificate, now: UnixTime) -> bool {
    let now = Duration::from_secs(now.as_secs());
    let validity = certificate.tbs_certificate().validity();
    validity.not_before.to_unix_duration() <= now && now <= validity.not_after.to_unix_duration()
}

fn verify_issuer_signature(
    issuer: &Certificate,
    certificate: &Certificate,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Option<()> {
    let key = issuer.tbs_certificate().subject_public_key_info();
    let key_algorithm = content(&key.algorithm)?;
    let signature_algorithm = content(certificate.signature_algorithm())?;
    let signed = certificate.tbs_certificate().to_der().ok()?;
    let usable = algorithms.all.iter().filter(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key_algorithm
            && algorithm.signature_alg_id().as_ref() == signature_algorithm
    });
    let (key, signature) = (key.subject_public_key.as_bytes()?, certificate.signature().as_bytes()?);
    usable.map(|algorithm| algorithm.verify_signature(key, &signed, signature)).find(Result::is_ok).map(drop)
}

/// Content of an algorithm identifier, without its header.
fn content(algorithm: &AlgorithmIdentifier<Any>) -> Option<Vec<u8>> {
    let der = algorithm.to_der().ok()?;
    // Identifiers are short: tag and length are a byte each.
    der.split_first_chunk::<2>().map(|(_, content)| content.to_vec())
}

/// Verifies a signature of the handshake with the key of a certificate of any version.
pub(super) fn verify_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    let unusable = || Error::PeerIncompatible(PeerIncompatible::NoSignatureSchemesInCommon);
    let parsed = Certificate::from_der(certificate).map_err(|_| rustls::CertificateError::BadEncoding)?;
    let key = parsed.tbs_certificate().subject_public_key_info();
    let key_algorithm = content(&key.algorithm).ok_or_else(unusable)?;
    let key = key.subject_public_key.as_bytes().ok_or_else(unusable)?;
    let candidates = algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
    let algorithm = candidates
        .flat_map(|(_, candidates)| candidates.iter())
        .find(|algorithm| algorithm.public_key_alg_id().as_ref() == key_algorithm)
        .ok_or_else(unusable)?;
    algorithm
        .verify_signature(key, message, signed.signature())
        .map_err(|_| rustls::CertificateError::BadSignature.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_matches_one_label() {
        for (name, host, matches) in [
            ("db.example.com", "DB.example.com", true),
            ("db.example.com", "db.example.com.", true),
            ("db.example.com", "db.example.org", false),
            ("*.example.com", "db.example.com", true),
            ("*.example.com", "a.db.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("d*.example.com", "db.example.com", false),
        ] {
            assert_eq!(name_matches(name, host), matches, "{name} {host}");
        }
    }
}
