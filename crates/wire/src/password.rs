//! Passwords that are drawn for a server, and how the server stores one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postgres_protocol::password::{md5, scram_sha_256};
use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes of a password: 192 bits.
const BYTES: usize = 24;

/// The system has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not generate a random password")]
pub struct NoRandomNumbers;

/// A random password of 32 letters, digits, `-` and `_`.
///
/// # Errors
/// The system has no random numbers.
pub fn random_password() -> Result<String, NoRandomNumbers> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// What `ALTER ROLE … PASSWORD` takes in place of a password, so that the password itself is in no statement and no log: a
/// SCRAM-SHA-256 verifier, or for servers before PostgreSQL 10 an MD5 hash.
///
/// Source: PostgreSQL manual, `CREATE ROLE`, `PASSWORD`.
pub fn stored_password(password: &str, role: &str, has_scram: bool) -> String {
    match has_scram {
        true => scram_sha_256(password.as_bytes()),
        false => md5(password.as_bytes(), role),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_differ_and_what_is_stored_does_not_contain_them() {
        let (one, two) = (random_password().unwrap(), random_password().unwrap());
        assert!(one != two && one.len() == 32, "{one} {two}");
        for (has_scram, prefix) in [(true, "SCRAM-SHA-256$4096:"), (false, "md5")] {
            let stored = stored_password(&one, "postgres", has_scram);
            assert!(stored.starts_with(prefix) && !stored.contains(&one), "{stored}");
        }
    }
}
