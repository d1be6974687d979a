//! Files to import: their content, and the name and hash that identify them later.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use model::record::ImportedFile;
use sha2::{Digest, Sha256};

use crate::error::{ImportError, PgbenchError};

/// A file to import, or the content of standard input.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Bytes that were read already, with a name.
    Bytes(String, Vec<u8>),
}

impl From<&Path> for Source {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl Source {
    /// Its name without directories, which could reveal more about a user's machine than intended.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            Self::Bytes(name, _) => name.clone(),
        }
    }

    /// Reads its whole content.
    pub(crate) fn read(&self) -> Result<(Vec<u8>, ImportedFile), ImportError> {
        let mut content = Vec::new();
        let file = self.lines(|_, line| {
            content.extend_from_slice(line);
            Ok(())
        })?;
        Ok((content, file))
    }

    /// Reads it as text; invalid UTF-8 is replaced.
    pub(crate) fn text(&self) -> Result<(String, ImportedFile), ImportError> {
        let (content, file) = self.read()?;
        Ok((String::from_utf8_lossy(&content).into_owned(), file))
    }

    /// Passes on each line, with its number from 1 and its line break: logs may be larger than memory.
    pub(crate) fn lines(
        &self,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), PgbenchError>,
    ) -> Result<ImportedFile, ImportError> {
        let name = self.name();
        let failed = |source: io::Error| ImportError::Io { file: self.shown(), source };
        let content: Box<dyn Read + '_> = match self {
            Self::File(path) => Box::new(File::open(path).map_err(failed)?),
            Self::Bytes(_, content) => Box::new(content.as_slice()),
        };
        let mut reader = BufReader::with_capacity(1 << 16, content);
        let mut sum = Sha256::new();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            sum.update(&line);
            take(number, &line).map_err(|source| ImportError::Line {
                file: self.shown(),
                line: number,
                source,
            })?;
        }
        let sha256 = sum.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Ok(ImportedFile { name, sha256 })
    }

    /// Its name in messages, as given.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Bytes(name, _) => name.clone(),
        }
    }
}
