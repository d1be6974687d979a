//! Bundles in one file, to be shared: a tar archive compressed with Zstandard, with the paths of a store. Its bundles have their
//! checksums, and are checked before they are stored elsewhere.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::path::{Component, Path};

use model::record::TrialRecord;
use tar::{Archive, Builder, EntryType, Header};

use crate::error::StoreError;
use crate::files::{self, Files};
use crate::redact::{Redacted, Redaction};
use crate::store::Store;
use crate::{content, id, sums};

/// Directory of the bundles, as in a store.
const TRIALS: &str = "trials";
/// Most bytes of the files of one bundle, which are in memory until they are checked.
const MAX_BUNDLE_BYTES: u64 = 2 << 30;
/// Most files of one bundle: more than any campaign makes.
const MAX_BUNDLE_FILES: usize = 4096;
/// Most bytes of the headers of an entry, such as a long path, and of what is skipped after the one before it.
const MAX_HEADER_BYTES: u64 = 64 << 10;
/// Most bytes of the archive of one bundle: with headers, and what compression adds to files that it can't shrink (1/256).
pub const MAX_ARCHIVE_BYTES: u64 = MAX_BUNDLE_BYTES + MAX_BUNDLE_BYTES / 64;
/// A text of bundles hardly shrinks further: most files are compressed already.
const LEVEL: i32 = 3;

/// Bundles that were read from an archive, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedBundles {
    /// Stored now.
    pub added: Vec<String>,
    /// In the store before, with the same content.
    pub present: Vec<String>,
}

/// An archive that is being written.
pub struct BundleArchive<W: Write> {
    archive: Builder<zstd::Encoder<'static, W>>,
    redacts: bool,
    redacted: Redacted,
}

impl<W: Write> BundleArchive<W> {
    /// An archive without bundles; `redacts` replaces the names of hosts and users in them.
    ///
    /// # Errors
    /// The compression can't begin.
    pub fn new(out: W, redacts: bool) -> io::Result<Self> {
        let archive = Builder::new(zstd::Encoder::new(out, LEVEL)?);
        Ok(Self { archive, redacts, redacted: Redacted::default() })
    }

    /// Adds the bundle of a trial whose record was read from the store. Its files are those of the store, unless they have
    /// secrets, as bundles of earlier releases may have.
    ///
    /// # Errors
    /// The bundle can't be read or redacted, or the archive can't be written.
    pub fn add(&mut self, store: &Store, record: &TrialRecord) -> Result<(), StoreError> {
        let id = &record.trial.id;
        let mut files = store.files(id)?;
        if content::decode(files.clone()).ok().as_ref() != Some(record) {
            files = content::encode(record)?;
        }
        if self.redacts {
            Redaction::new(record).apply(&mut files, &mut self.redacted).map_err(|what| {
                StoreError::Archive { what: format!("trial {id} can't be redacted: {what}") }
            })?;
        }
        self.append(id, files)
    }

    /// Adds the files of a bundle, with their sums.
    fn append(&mut self, id: &str, mut files: Files) -> Result<(), StoreError> {
        files.insert(sums::FILE.to_owned(), sums::list(&files).into_bytes());
        for (name, content) in &files {
            append(&mut self.archive, &format!("{TRIALS}/{id}/{name}"), content)
                .map_err(StoreError::io("write", Path::new("the archive")))?;
        }
        Ok(())
    }

    /// Completes the archive, and returns what was replaced in it.
    ///
    /// # Errors
    /// It can't be written.
    pub fn finish(self) -> io::Result<Redacted> {
        self.archive.into_inner()?.finish()?.flush()?;
        Ok(self.redacted)
    }
}

impl Store {
    /// An archive of the bundle with this complete id, whose files are as they are in the store.
    ///
    /// # Errors
    /// The bundle can't be read.
    pub fn archived(&self, id: &str) -> Result<Vec<u8>, StoreError> {
        let unwritten = || StoreError::io("write", Path::new("the archive"));
        let mut bytes = Vec::new();
        let mut archive = BundleArchive::new(&mut bytes, false).map_err(unwritten())?;
        archive.append(id, self.files(id)?)?;
        archive.finish().map_err(unwritten())?;
        Ok(bytes)
    }

    /// Stores the bundles of an archive that the store does not have. Each is complete and checked before it appears; an
    /// error leaves those before it.
    ///
    /// # Errors
    /// It is no archive of bundles, a bundle is damaged, differs from the store's bundle of the same trial, or can't be written.
    pub fn import_bundles(&self, archive: &mut dyn Read) -> Result<ImportedBundles, StoreError> {
        let mut imported = ImportedBundles::default();
        read_archive(archive, |record, files| self.import_bundle(record.trial.id, files, &mut imported))?;
        Ok(imported)
    }

    fn import_bundle(
        &self,
        id: String,
        files: Files,
        imported: &mut ImportedBundles,
    ) -> Result<(), StoreError> {
        if self.ids()?.contains(&id) {
            if self.files(&id)? != files {
                return Err(StoreError::Archive {
                    what: format!(
                        "trial {id} is in {} with another content, as before or after a redaction; import it into another \
                         store (--store)",
                        self.root().display()
                    ),
                });
            }
            imported.present.push(id);
            return Ok(());
        }
        self.write_files(&id, files)?;
        imported.added.push(id);
        Ok(())
    }
}

/// The trial of an archive with one bundle, checked.
///
/// # Errors
/// It is no archive of bundles, its bundle is damaged, or it has more than one.
pub fn archived_trial(archive: &mut dyn Read) -> Result<TrialRecord, StoreError> {
    let mut only = None;
    read_archive(archive, |record, _| match only.replace(record) {
        None => Ok(()),
        Some(_) => Err(StoreError::Archive { what: "it has more than one trial".to_owned() }),
    })?;
    only.ok_or_else(without_trials)
}

fn without_trials() -> StoreError {
    StoreError::Archive { what: "it has no trials".to_owned() }
}

/// Calls `on_bundle` with each bundle of an archive, as a record and as files, when it is complete and checked.
fn read_archive(
    archive: &mut dyn Read,
    mut on_bundle: impl FnMut(TrialRecord, Files) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let unreadable = |source: io::Error| StoreError::Archive {
        what: format!("it can't be read: {source}; copy or download it again"),
    };
    let left = Cell::new(0);
    let decoder = zstd::Decoder::new(archive).map_err(unreadable)?;
    let mut archive = Archive::new(Limited { inner: decoder, left: &left });
    let mut on_files = |(id, files): (String, Files)| {
        let (record, files) = checked(&id, files)?;
        on_bundle(record, files)
    };
    let mut current: Option<(String, Files)> = None;
    let mut held_bytes = 0;
    let mut entries = archive.entries().map_err(unreadable)?;
    loop {
        left.set(MAX_HEADER_BYTES);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(unreadable)?;
        let path = entry.path().map_err(unreadable)?.into_owned();
        if entry.header().entry_type() == EntryType::Directory {
            continue;
        }
        let (id, name) = place(&path, entry.header().entry_type())?;
        if current.as_ref().is_some_and(|(known, _)| *known != id) {
            current.take().map(&mut on_files).transpose()?;
            held_bytes = 0;
        }
        let (_, files) = current.get_or_insert_with(|| (id.clone(), Files::new()));
        let max = files::max_bytes(&name).min(MAX_BUNDLE_BYTES.saturating_sub(held_bytes));
        if entry.size() > max {
            return Err(StoreError::Archive { what: format!("{} is too large", path.display()) });
        }
        left.set(entry.size());
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(unreadable)?;
        held_bytes += content.len() as u64;
        files.insert(name, content);
        if files.len() > MAX_BUNDLE_FILES {
            return Err(StoreError::Archive {
                what: format!("bundle {id} has more than {MAX_BUNDLE_FILES} files"),
            });
        }
    }
    on_files(current.ok_or_else(without_trials)?)
}

/// Reads at most as much as is left, which is set before each part: entries have headers of any length, and the archive's reader
/// keeps them in memory.
struct Limited<'a, R> {
    inner: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let max = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(buffer.len());
        if max == 0 && !buffer.is_empty() {
            return Err(io::Error::other("the header of an entry is too long"));
        }
        let count = self.inner.read(&mut buffer[..max])?;
        self.left.set(self.left.get() - count as u64);
        Ok(count)
    }
}

/// The record of a bundle, whose files are those of its list and have its sums, and the files without it.
fn checked(id: &str, mut files: Files) -> Result<(TrialRecord, Files), StoreError> {
    let damaged = |what: String| StoreError::Archive {
        what: format!("bundle {id} is damaged: {what}; copy or download it again"),
    };
    let defect = |defect: crate::error::Defect| damaged(format!("{}: {}", defect.file, defect.reason));
    let list = files.remove(sums::FILE).ok_or_else(|| damaged(format!("it has no {}", sums::FILE)))?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let listed = sums::parse(&list).map_err(defect)?;
    if !listed.keys().eq(files.keys()) {
        return Err(damaged(format!("its files are not those of its {}", sums::FILE)));
    }
    for (name, sum) in &listed {
        sums::verify(name, &files[name], sum).map_err(defect)?;
    }
    let record = content::decode(files.clone()).map_err(defect)?;
    if record.trial.id != id {
        return Err(damaged(format!("its trial is {}", record.trial.id)));
    }
    Ok((record, files))
}

fn append(archive: &mut Builder<impl Write>, path: &str, content: &[u8]) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    archive.append_data(&mut header, path, content)
}

/// The trial and the file of an entry.
fn place(path: &Path, kind: EntryType) -> Result<(String, String), StoreError> {
    let parts: Option<Vec<&str>> = path
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    match parts.as_deref() {
        Some([TRIALS, trial, name @ ..]) if kind.is_file() && id::is_id(trial) && !name.is_empty() => {
            Ok(((*trial).to_owned(), name.join("/")))
        }
        _ => Err(StoreError::Archive {
            what: format!(
                "{} is no file of a bundle: pgdyno export --bundle writes no such archive",
                path.display()
            ),
        }),
    }
}
