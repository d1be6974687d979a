//! Random passwords for a server, and their stored form.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postgres_protocol::password::{md5, scram_sha_256};
use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes of a password: 192 bits.
const BYTES: usize = 24;

/// The system provides no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not generate a random password")]
pub struct NoRandomNumbers;

/// A random password of 32 letters, digits, `-` and `_`.
///
/// # Errors
/// If the system provides no random numbers.
pub fn random_password() -> Result<String, NoRandomNumbers> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The stored form of a password, which `ALTER ROLE … PASSWORD` accepts, so that the password itself is in no statement
/// and no log: a SCRAM-SHA-256 verifier, or for servers before PostgreSQL 10 an MD5 hash.
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
    fn passwords_differ_and_are_not_part_of_their_stored_form() {
        let (one, two) = (random_password().unwrap(), random_password().unwrap());
        assert!(one != two && one.len() == 32, "{one} {two}");
        for (has_scram, prefix) in [(true, "SCRAM-SHA-256$4096:"), (false, "md5")] {
            let stored = stored_password(&one, "postgres", has_scram);
            assert!(stored.starts_with(prefix) && !stored.contains(&one), "{stored}");
        }
    }
}
