//! The password file: `host:port:database:user:password` lines.
//!
//! Source: PostgreSQL manual, "The Password File" of libpq.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A usable password file.
pub(super) struct PasswordFile {
    content: Vec<u8>,
}

/// Reasons not to use a password file, in libpq's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum PasswordFileError {
    #[error("WARNING: password file \"{0}\" is not a plain file")]
    NotAFile(PathBuf),
    #[error(
        "WARNING: password file \"{0}\" has group or world access; permissions should be u=rw (0600) or less"
    )]
    Accessible(PathBuf),
}

/// Session whose password to look up.
pub(super) struct Key<'a> {
    /// Name, address or directory; `localhost` for the default socket directory.
    pub(super) host: &'a str,
    pub(super) port: &'a str,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

impl PasswordFile {
    /// Reads a file. None if it does not exist; an error, libpq's warning, if it must not be used.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, PasswordFileError> {
        // Opening a pipe would block.
        let Ok(meta) = fs::metadata(path) else { return Ok(None) };
        if !meta.is_file() {
            return Err(PasswordFileError::NotAFile(path.to_owned()));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(PasswordFileError::Accessible(path.to_owned()));
        }
        let mut content = Vec::new();
        let read = File::open(path).and_then(|mut file| file.read_to_end(&mut content));
        Ok(read.is_ok().then_some(Self { content }))
    }

    /// The password of the first matching line.
    pub(super) fn password(&self, key: &Key<'_>) -> Option<String> {
        let lines = self.content.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.starts_with(b"#"));
        lines.map(without_end).find_map(|line| {
            let rest = [key.host, key.port, key.database, key.user]
                .into_iter()
                .try_fold(line, |rest, field| after_field(rest, field.as_bytes()))?;
            Some(String::from_utf8_lossy(&unescape(rest)).into_owned())
        })
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    &line[..end]
}

/// The rest of a line whose next field is `*` or the text; a backslash escapes the next character.
fn after_field<'a>(line: &'a [u8], text: &[u8]) -> Option<&'a [u8]> {
    if let Some(rest) = line.strip_prefix(b"*:") {
        return Some(rest);
    }
    let mut rest = line;
    for expected in text {
        rest = rest.strip_prefix(b"\\").unwrap_or(rest);
        rest = rest.strip_prefix(&[*expected])?;
    }
    rest.strip_prefix(b":")
}

/// A password, up to the next colon or the end.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut password = Vec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b':' => break,
            b'\\' => password.push(bytes.next().unwrap_or(b'\\')),
            byte => password.push(byte),
        }
    }
    password
}
