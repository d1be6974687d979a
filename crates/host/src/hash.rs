//! Fingerprints that identify sets of programs, sources or contents.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Error, IoContext};

/// SHA-256 over parts, each hashed with its length so that boundaries count.
#[derive(Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// An empty fingerprint.
    pub fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds a text or path.
    pub fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Adds the content of a file.
    pub fn add_file(&mut self, path: &Path) -> Result<(), Error> {
        self.add_file_with(path, &mut |_| Ok(()))
    }

    /// As [`Fingerprint::add_file`], reporting what is read.
    pub(crate) fn add_file_with(&mut self, path: &Path, on_read: &mut OnRead<'_>) -> Result<(), Error> {
        let length = add_content(&mut self.0, path, on_read)?;
        self.0.update(length.to_le_bytes());
        Ok(())
    }

    /// The hash in hexadecimal.
    pub fn finish(self) -> String {
        hexadecimal(self.0)
    }

    /// The first eight digits, for names: enough for the few in one cache.
    pub fn short(self) -> String {
        let mut digits = self.finish();
        digits.truncate(8);
        digits
    }
}

/// The SHA-256 of a file in hexadecimal, as `sha256sum` prints it.
pub fn sha256(path: &Path) -> Result<String, Error> {
    sha256_with(path, &mut |_| Ok(()))
}

/// The SHA-256 of bytes, in the same way.
pub fn sha256_of_bytes(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

/// As [`sha256`], reporting what is read.
pub(crate) fn sha256_with(path: &Path, on_read: &mut OnRead<'_>) -> Result<String, Error> {
    let mut hash = Sha256::new();
    add_content(&mut hash, path, on_read)?;
    Ok(hexadecimal(hash))
}

/// Called with the number of bytes of each read; an error ends the reading.
pub(crate) type OnRead<'a> = dyn FnMut(u64) -> Result<(), Error> + 'a;

/// Hashes a file and returns its length in bytes.
fn add_content(hash: &mut Sha256, path: &Path, on_read: &mut OnRead<'_>) -> Result<u64, Error> {
    let mut file = File::open(path).doing("read", path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut length = 0_u64;
    loop {
        match file.read(&mut buffer).doing("read", path)? {
            0 => return Ok(length),
            n => {
                length += n as u64;
                hash.update(&buffer[..n]);
                on_read(n as u64)?;
            }
        }
    }
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
