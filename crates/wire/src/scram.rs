//! SCRAM-SHA-256, client side, with the expensive keys of a password derived once for all clients.
//!
//! Sources: RFC 5802, RFC 7677; PostgreSQL manual, "SASL Authentication".

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, pbkdf2};

/// The mechanism without channel binding.
pub(crate) const SCRAM_SHA_256: &str = "SCRAM-SHA-256";

/// The mechanism with channel binding.
pub(crate) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Maximum number of iterations that a server may request, about half a second of work; PostgreSQL's default is 4096.
const MAX_ITERATIONS: u32 = 1_000_000;

/// Length of a SHA-256 hash, in bytes.
const LENGTH: usize = digest::SHA256_OUTPUT_LEN;

/// Length of the client's nonce before encoding, in bytes; libpq's.
const NONCE_LENGTH: usize = 18;

/// Keys of passwords, by the inputs of their derivation: 4096 rounds of hashing take some milliseconds, and the clients
/// of a load all have the same role.
#[derive(Clone, Default)]
pub(crate) struct KeyCache(Arc<Mutex<HashMap<KeyInput, Keys>>>);

#[derive(PartialEq, Eq, Hash)]
struct KeyInput {
    password: Vec<u8>,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

#[derive(Clone, Copy)]
struct Keys {
    client: [u8; LENGTH],
    server: [u8; LENGTH],
}

impl fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyCache")
    }
}

impl KeyCache {
    /// Returns the keys. Derives them while others wait for the same ones.
    fn keys(&self, input: KeyInput) -> Keys {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = known.get(&input) {
            return *keys;
        }
        let keys = Keys::derive(&input);
        known.insert(input, keys);
        keys
    }
}

impl Keys {
    fn derive(input: &KeyInput) -> Self {
        let mut salted = [0; LENGTH];
        let KeyInput { password, salt, iterations } = input;
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, *iterations, salt, password, &mut salted);
        Self { client: hmac(&salted, b"Client Key"), server: hmac(&salted, b"Server Key") }
    }
}

/// Binding of an authentication to its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// The client does not support or want it.
    Unsupported,
    /// The client supports it, and believes that the server does not.
    Unrequested,
    /// The hash of the server's certificate.
    ServerEndPoint(Vec<u8>),
}

impl Binding {
    pub(crate) fn mechanism(&self) -> &'static str {
        match self {
            Self::ServerEndPoint(_) => SCRAM_SHA_256_PLUS,
            Self::Unsupported | Self::Unrequested => SCRAM_SHA_256,
        }
    }

    fn header(&self) -> &'static str {
        match self {
            Self::Unsupported => "n,,",
            Self::Unrequested => "y,,",
            Self::ServerEndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// The attribute `c`.
    fn attribute(&self) -> String {
        let mut bytes = self.header().as_bytes().to_vec();
        if let Self::ServerEndPoint(hash) = self {
            bytes.extend_from_slice(hash);
        }
        STANDARD.encode(bytes)
    }
}

/// Errors of a SCRAM exchange.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// An invalid SCRAM message.
    #[error("malformed SCRAM message ({0})")]
    Malformed(&'static str),
    /// The nonce is not the one that was sent.
    #[error("invalid SCRAM response (nonce mismatch)")]
    Nonce,
    /// The server reported an error.
    #[error("error received from server in SCRAM exchange: {0}")]
    Rejected(String),
    /// The server does not know the password.
    #[error("incorrect server signature")]
    Signature,
    /// The system provides no random numbers.
    #[error("could not generate nonce")]
    Random,
}

/// An exchange after its first message.
pub(crate) struct Scram {
    password: Vec<u8>,
    binding: Binding,
    nonce: String,
}

/// An exchange after its second message; the response must prove that the server knows the password.
pub(crate) struct ScramProof {
    auth_message: Vec<u8>,
    server_key: [u8; LENGTH],
}

impl Scram {
    /// Starts with a new nonce; appends the first message to `out`.
    pub(crate) fn start(password: &str, binding: Binding, out: &mut Vec<u8>) -> Result<Self, ScramError> {
        let mut nonce = [0; NONCE_LENGTH];
        SystemRandom::new().fill(&mut nonce).map_err(|_| ScramError::Random)?;
        Ok(Self::with_nonce(password, binding, STANDARD.encode(nonce), out))
    }

    fn with_nonce(password: &str, binding: Binding, nonce: String, out: &mut Vec<u8>) -> Self {
        // A password that cannot be prepared is used as it is, PostgreSQL's deviation from the RFC.
        let password = match stringprep::saslprep(password) {
            Ok(prepared) => prepared.as_bytes().to_vec(),
            Err(_) => password.as_bytes().to_vec(),
        };
        out.extend_from_slice(binding.header().as_bytes());
        let scram = Self { password, binding, nonce };
        out.extend_from_slice(scram.bare_first_message().as_bytes());
        scram
    }

    /// The user is that of the start-up message, and is not repeated.
    fn bare_first_message(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Responds to the server's first message.
    pub(crate) fn prove(
        self,
        message: &[u8],
        keys: &KeyCache,
        out: &mut Vec<u8>,
    ) -> Result<ScramProof, ScramError> {
        let challenge = Challenge::parse(message)?;
        if !challenge.nonce.starts_with(&self.nonce) || challenge.nonce.len() == self.nonce.len() {
            return Err(ScramError::Nonce);
        }
        let without_proof = format!("c={},r={}", self.binding.attribute(), challenge.nonce);
        let mut auth_message = self.bare_first_message().into_bytes();
        auth_message.push(b',');
        auth_message.extend_from_slice(message);
        auth_message.push(b',');
        auth_message.extend_from_slice(without_proof.as_bytes());
        let (salt, iterations) = (challenge.salt, challenge.iterations);
        let keys = keys.keys(KeyInput { password: self.password, salt, iterations });
        let stored_key = digest::digest(&digest::SHA256, &keys.client);
        let signature = hmac(stored_key.as_ref(), &auth_message);
        let mut proof = keys.client;
        proof.iter_mut().zip(signature).for_each(|(byte, mask)| *byte ^= mask);
        out.extend_from_slice(without_proof.as_bytes());
        out.extend_from_slice(b",p=");
        out.extend_from_slice(STANDARD.encode(proof).as_bytes());
        Ok(ScramProof { auth_message, server_key: keys.server })
    }
}

impl ScramProof {
    /// Checks the server's last message.
    pub(crate) fn verify(&self, message: &[u8]) -> Result<(), ScramError> {
        let message = text(message)?;
        if let Some(reason) = message.strip_prefix("e=") {
            return Err(ScramError::Rejected(reason.to_owned()));
        }
        let signature =
            message.strip_prefix("v=").ok_or(ScramError::Malformed("attribute \"v\" expected"))?;
        let signature =
            STANDARD.decode(signature).map_err(|_| ScramError::Malformed("invalid server signature"))?;
        let key = hmac::Key::new(HMAC_SHA256, &self.server_key);
        hmac::verify(&key, &self.auth_message, &signature).map_err(|_| ScramError::Signature)
    }
}

/// The server's first message.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl<'a> Challenge<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, ScramError> {
        let mut attributes = text(message)?.split(',');
        let mut attribute = |prefix: &str, missing| {
            attributes
                .next()
                .and_then(|attribute| attribute.strip_prefix(prefix))
                .ok_or(ScramError::Malformed(missing))
        };
        let nonce = attribute("r=", "attribute \"r\" expected")?;
        let salt = attribute("s=", "attribute \"s\" expected")?;
        let iterations = attribute("i=", "attribute \"i\" expected")?;
        if attributes.next().is_some() {
            return Err(ScramError::Malformed("garbage at end of server-first-message"));
        }
        let salt = STANDARD.decode(salt).map_err(|_| ScramError::Malformed("invalid salt"))?;
        let iterations = iterations
            .parse()
            .ok()
            .filter(|iterations: &NonZeroU32| iterations.get() <= MAX_ITERATIONS)
            .ok_or(ScramError::Malformed("invalid iteration count"))?;
        Ok(Self { nonce, salt, iterations })
    }
}

fn text(message: &[u8]) -> Result<&str, ScramError> {
    std::str::from_utf8(message).map_err(|_| ScramError::Malformed("not a text"))
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; LENGTH] {
    let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, key), message);
    let mut bytes = [0; LENGTH];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of RFC 7677, section 3. PostgreSQL's first message names no user, so the authenticated message has
    /// to be assembled here.
    #[test]
    fn keys_and_signatures_are_those_of_rfc_7677() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let input =
            KeyInput { password: b"pencil".to_vec(), salt, iterations: NonZeroU32::new(4096).unwrap() };
        let keys = Keys::derive(&input);
        let auth_message = b"n=user,r=rOprNGfwEbeRWgbNEkqO,\
            r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
            c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
            .to_vec();
        let stored_key = digest::digest(&digest::SHA256, &keys.client);
        let signature = super::hmac(stored_key.as_ref(), &auth_message);
        let proof: Vec<u8> = keys.client.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        assert_eq!(STANDARD.encode(proof), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let proof = ScramProof { auth_message, server_key: keys.server };
        assert_eq!(proof.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
        assert_eq!(
            proof.verify(b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
            Err(ScramError::Signature)
        );
    }

    fn start(binding: Binding) -> (Scram, String) {
        let mut out = Vec::new();
        let scram = Scram::with_nonce("pencil", binding, "abc".to_owned(), &mut out);
        (scram, String::from_utf8(out).unwrap())
    }

    const CHALLENGE: &[u8] = b"r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    #[test]
    fn the_binding_is_reported_in_both_messages() {
        let hash = Binding::ServerEndPoint(b"hash".to_vec());
        for (binding, header, attribute) in [
            (Binding::Unsupported, "n,,", "biws"),
            (Binding::Unrequested, "y,,", "eSws"),
            (hash, "p=tls-server-end-point,,", "cD10bHMtc2VydmVyLWVuZC1wb2ludCwsaGFzaA=="),
        ] {
            let (scram, first) = start(binding);
            assert_eq!(first, format!("{header}n=,r=abc"));
            let mut out = Vec::new();
            scram.prove(CHALLENGE, &KeyCache::default(), &mut out).unwrap();
            assert!(out.starts_with(format!("c={attribute},r=abcdef,p=").as_bytes()));
        }
    }

    #[test]
    fn keys_are_derived_once_for_shared_caches() {
        let cache = KeyCache::default();
        let shared = cache.clone();
        for cache in [&cache, &shared] {
            start(Binding::Unsupported).0.prove(CHALLENGE, cache, &mut Vec::new()).unwrap();
        }
        assert_eq!(cache.0.lock().unwrap().len(), 1);
        let other_salt = b"r=abcdef,s=AAAA,i=4096";
        start(Binding::Unsupported).0.prove(other_salt, &cache, &mut Vec::new()).unwrap();
        assert_eq!(shared.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn invalid_challenges_are_rejected() {
        let error = |challenge: &[u8]| {
            let (scram, _) = start(Binding::Unsupported);
            scram.prove(challenge, &KeyCache::default(), &mut Vec::new()).err().unwrap().to_string()
        };
        assert!(error(b"r=abc,s=AAAA,i=1").contains("nonce mismatch"));
        assert!(error(b"r=xyzabc,s=AAAA,i=1").contains("nonce mismatch"));
        assert!(error(b"r=abcdef,s=?,i=1").contains("invalid salt"));
        for iterations in ["0", "-1", "1000001", "4294967295"] {
            assert!(error(format!("r=abcdef,s=AAAA,i={iterations}").as_bytes()).contains("iteration count"));
        }
        assert!(error(b"r=abcdef,s=AAAA,i=1,m=x").contains("garbage"));
        assert!(error(b"e=other-error").contains("attribute \"r\""));
        let (scram, _) = start(Binding::Unsupported);
        let proof = scram.prove(CHALLENGE, &KeyCache::default(), &mut Vec::new()).unwrap();
        assert_eq!(proof.verify(b"e=invalid-proof"), Err(ScramError::Rejected("invalid-proof".to_owned())));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let (scram, _) = start(Binding::Unsupported);
            let _ = scram.prove(&bytes, &KeyCache::default(), &mut Vec::new());
            let proof = ScramProof { auth_message: Vec::new(), server_key: [0; LENGTH] };
            let _ = proof.verify(&bytes);
        }
    }
}
