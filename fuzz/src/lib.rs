//! What fuzz targets share: a store with one bundle, of which a target replaces files.

#[path = "../../crates/store/tests/sample/mod.rs"]
mod sample;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use store::Store;
use tempfile::TempDir;

/// Id of the only trial of the store.
pub const TRIAL: &str = "01JABCDEFGHJKMNPQRSTVWXYZ2";
const SUMS: &str = "SHA256SUMS";

/// A new directory; `setup/fuzz` has it in memory.
pub fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A store with one bundle, which has every kind of file.
pub struct SampleStore {
    directory: TempDir,
    /// The store.
    pub store: Store,
    bundle: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl Default for SampleStore {
    fn default() -> Self {
        let directory = directory();
        let store = Store::open(directory.path()).expect("a store");
        let bundle = store.write(&sample::record(TRIAL)).expect("a bundle");
        let mut files = sample::files(&bundle);
        files.remove(SUMS);
        Self { directory, store, bundle, files }
    }
}

impl SampleStore {
    /// The store's directory.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Calls `read` while the bundle has this content in place of one of its files, with correct checksums. False if the
    /// bundle has no such file.
    pub fn with_file(&self, name: &str, content: &[u8], read: impl FnOnce(&Store)) -> bool {
        let Some(original) = self.files.get(name) else { return false };
        self.put(name, content);
        self.sign(name, content);
        read(&self.store);
        self.put(name, original);
        true
    }

    fn put(&self, name: &str, content: &[u8]) {
        fs::write(self.bundle.join(name), content).expect("a file of the bundle");
    }

    fn sign(&self, name: &str, content: &[u8]) {
        let mut sums = String::new();
        for (file, original) in &self.files {
            let content = if file == name { content } else { original };
            for byte in Sha256::digest(content) {
                let _ = write!(sums, "{byte:02x}");
            }
            let _ = writeln!(sums, "  {file}");
        }
        self.put(SUMS, sums.as_bytes());
    }
}

/// The first line of an input, and the rest.
pub fn first_line(input: &[u8]) -> Option<(&str, &[u8])> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&input[..end]).ok()?, &input[end + 1..]))
}
