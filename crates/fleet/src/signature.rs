//! Keys that show who queued a block: Ed25519, in the encoding of NATS's own keys.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nkeys::KeyPair;

use crate::error::FleetError;
use crate::message::{self, QueuedBlock, SignedBlock};

/// A key that signs.
pub struct SecretKey(KeyPair);

impl SecretKey {
    /// Creates a key in a new file that only its owner can read, and returns the public key.
    ///
    /// # Errors
    /// The file exists, or can't be written.
    pub fn create(path: &Path) -> Result<String, FleetError> {
        let written = |source| FleetError::File { path: path.to_owned(), what: "written", source };
        let key = KeyPair::new_user();
        let seed = key.seed().map_err(|error| written(std::io::Error::other(error)))?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(written)?;
        writeln!(file, "{seed}").and_then(|()| file.sync_all()).map_err(written)?;
        Ok(key.public_key())
    }

    /// Reads a key.
    ///
    /// # Errors
    /// The file can't be read, or has none.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let text = read(path)?;
        let key = KeyPair::from_seed(text.trim());
        key.map(Self).map_err(|_| FleetError::NoKey { path: path.to_owned(), what: "secret key" })
    }
}

/// The public keys that an agent trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKeys(Vec<String>);

impl TrustedKeys {
    /// Reads them from a file: one in each line, whose other words are for people. Lines with `#` are comments.
    ///
    /// # Errors
    /// The file can't be read, or a line has no key.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let text = read(path)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<String> =
            lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
        let is_valid = |key: &String| KeyPair::from_public_key(key).is_ok();
        if keys.is_empty() || !keys.iter().all(is_valid) {
            return Err(FleetError::NoKey { path: path.to_owned(), what: "public key in each line" });
        }
        Ok(Self(keys))
    }
}

impl SignedBlock {
    /// A block, signed if there is a key.
    pub(crate) fn new(block: &QueuedBlock, key: Option<&SecretKey>) -> Result<Self, FleetError> {
        let block = String::from_utf8(message::encode(block)?)
            .map_err(|error| FleetError::nats("take a block", error))?;
        let Some(SecretKey(key)) = key else { return Ok(Self { block, key: None, signature: None }) };
        let signature =
            key.sign(block.as_bytes()).map_err(|error| FleetError::nats("take a block", error))?;
        Ok(Self { block, key: Some(key.public_key()), signature: Some(STANDARD.encode(signature)) })
    }

    /// The block, if it is signed by one of these keys, or if any is good enough.
    pub(crate) fn verified(
        &self,
        subject: &str,
        trusted: Option<&TrustedKeys>,
    ) -> Result<QueuedBlock, FleetError> {
        let refused = |why: &str| FleetError::Message { subject: subject.to_owned(), why: why.to_owned() };
        if let Some(TrustedKeys(keys)) = trusted {
            let (Some(key), Some(signature)) = (&self.key, &self.signature) else {
                return Err(refused("its campaign is not signed (--trust)"));
            };
            if !keys.contains(key) {
                return Err(refused(&format!("its campaign is signed by {key}, which is not trusted")));
            }
            let signature = STANDARD.decode(signature).map_err(|_| refused("its signature is damaged"))?;
            KeyPair::from_public_key(key)
                .and_then(|key| key.verify(self.block.as_bytes(), &signature))
                .map_err(|_| refused("its signature is not that of its content"))?;
        }
        message::decode(subject, self.block.as_bytes())
    }
}

fn read(path: &Path) -> Result<String, FleetError> {
    fs::read_to_string(path).map_err(|source| FleetError::File {
        path: path.to_owned(),
        what: "read",
        source,
    })
}

#[cfg(test)]
mod tests {
    use runner::blocks::{Block, BlockContent};

    use super::*;
    use crate::requirement::Requirement;

    fn block() -> QueuedBlock {
        QueuedBlock {
            run: "R".to_owned(),
            block: Block { name: "b".to_owned(), content: BlockContent::Comparison(0) },
            job_sha256: String::new(),
            requirement: Requirement::default(),
            round: 0,
            id: "I".to_owned(),
        }
    }

    #[test]
    fn only_blocks_of_trusted_keys_are_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let [own, other, public] = ["own", "other", "public"].map(|name| directory.path().join(name));
        let key = SecretKey::create(&own).unwrap();
        SecretKey::create(&other).unwrap();
        assert!(SecretKey::create(&own).is_err(), "a key is never overwritten");
        fs::write(&public, format!("# the team\n{key} of the coordinator\n")).unwrap();
        let trusted = TrustedKeys::read(&public).unwrap();
        let signed = |path: &Path| SignedBlock::new(&block(), Some(&SecretKey::read(path).unwrap())).unwrap();

        let mut good = signed(&own);
        assert_eq!(good.verified("s", Some(&trusted)).unwrap(), block());
        for (bad, why) in
            [(signed(&other), "is not trusted"), (SignedBlock::new(&block(), None).unwrap(), "is not signed")]
        {
            let error = bad.verified("s", Some(&trusted)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert!(bad.verified("s", None).is_ok(), "without --trust");
        }
        good.block = good.block.replace("\"round\":0", "\"round\":1");
        let error = good.verified("s", Some(&trusted)).unwrap_err().to_string();
        assert!(error.contains("not that of its content"), "{error}");
    }

    #[test]
    fn files_without_keys_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        for text in ["", "# nothing\n", "UNOKEY\n"] {
            fs::write(&path, text).unwrap();
            assert!(matches!(TrustedKeys::read(&path), Err(FleetError::NoKey { .. })), "{text:?}");
            assert!(matches!(SecretKey::read(&path), Err(FleetError::NoKey { .. })), "{text:?}");
        }
    }
}
