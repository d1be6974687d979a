//! Bundles as directories: atomic, and verified by checksums.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::commit_log::{COMMIT_LOG, COMMITS_LOG, KERNEL_COMMIT_LOG};
use model::record::{Environment, Log, Setting, Trial, TrialRecord};
use model::secret::MaskSecrets;

use crate::compressed::Unpacker;
use crate::content::{self, CAMPAIGN, StoredContext};
use crate::error::{Defect, StoreError};
use crate::files::{self, Files};
use crate::format::{self, environment, setting};
use crate::parts::Part;
use crate::{id, spans, sums};

/// Prefix of the directory of a bundle that is being written, or that a dead writer left.
const PARTIAL: &str = ".partial-";
/// Every writer holds a shared lock on this file: an exclusive lock on it proves that no partial bundle has a writer.
const WRITERS: &str = ".writers";

/// Writes the bundle of a record into the directory of trials: temporary name, sync, rename, sync.
///
/// # Errors
/// On an error, nothing of the bundle remains.
pub(crate) fn write(trials: &Path, record: &TrialRecord) -> Result<PathBuf, StoreError> {
    let id = &record.trial.id;
    let not_written = |source| StoreError::NotWritten { id: id.clone(), source: Box::new(source) };
    write_files(trials, id, content::encode(record).map_err(not_written)?)
}

/// As [`write`], for the files of a bundle without their list.
pub(crate) fn write_files(trials: &Path, id: &str, mut files: Files) -> Result<PathBuf, StoreError> {
    let not_written = |source| StoreError::NotWritten { id: id.to_owned(), source: Box::new(source) };
    files.insert(sums::FILE.to_owned(), sums::list(&files).into_bytes());

    sweep(trials);
    let _writer = WriterLock::acquire(trials).map_err(not_written)?;
    let bundle = trials.join(id);
    if bundle.exists() {
        return Err(StoreError::Exists { id: id.to_owned(), path: trials.to_owned() });
    }
    let partial = trials.join(format!("{PARTIAL}{id}"));
    make_directory(&partial).map_err(not_written)?;
    publish(trials, &partial, &bundle, &files).map_err(|error| {
        // If the removal fails, `sweep` removes it later; it is never read as a bundle.
        let _ = fs::remove_dir_all(&partial);
        not_written(error)
    })?;
    Ok(bundle)
}

/// Reads a whole bundle. Every file must match its checksum.
pub(crate) fn read(bundle: &Path) -> Result<TrialRecord, Defect> {
    let record = content::decode(all_files(bundle)?)?;
    check_name(bundle, &record.trial)?;
    Ok(record)
}

/// Reads only the files that every bundle has, and those of the parts.
pub(crate) fn read_parts(bundle: &Path, parts: &[Part]) -> Result<TrialRecord, Defect> {
    let needed = |name: &str| {
        [format::TRIAL, CAMPAIGN, environment::FILE].contains(&name)
            || parts.iter().any(|part| part.has(name))
    };
    let listed = list_of_files(bundle)?.into_iter().filter(|(name, _)| needed(name));
    let files = listed.map(|(name, sum)| file(bundle, &name, &sum).map(|content| (name, content)));
    let record = content::decode(files.collect::<Result<_, _>>()?)?;
    check_name(bundle, &record.trial)?;
    Ok(record)
}

/// Reads the head of a bundle.
pub(crate) fn read_head(bundle: &Path) -> Result<Trial, Defect> {
    let trial = content::head(&mut some_files(bundle, [format::TRIAL, CAMPAIGN])?)?;
    check_name(bundle, &trial)?;
    Ok(trial)
}

/// Reads the environment of a bundle's trial.
pub(crate) fn read_environment(bundle: &Path) -> Result<Environment, Defect> {
    content::environment(&mut some_files(bundle, [environment::FILE])?)
}

/// Reads a log of a bundle; `None` if it has no such log.
pub(crate) fn read_log(bundle: &Path, name: &str) -> Result<Option<String>, Defect> {
    let log = content::log_file(name)?;
    let listed = list_of_files(bundle)?;
    listed.get(&log).map(|sum| Unpacker::new().unpack(&log, &file(bundle, &log, sum)?)).transpose()
}

/// Reads the environment and the settings of a trial, and its logs about commits. Settings identical to those of an earlier bundle are not read
/// again: `known` holds them by checksum, masked.
pub(crate) fn read_context(
    bundle: &Path,
    known: &mut HashMap<String, Arc<Vec<Setting>>>,
) -> Result<StoredContext, Defect> {
    let listed = list_of_files(bundle)?;
    let mut needed = Files::new();
    let environment_sum = listed.get(environment::FILE).map_or("", String::as_str);
    needed.insert(environment::FILE.to_owned(), file(bundle, environment::FILE, environment_sum)?);
    let settings = match listed.get(setting::FILE) {
        None => Arc::default(),
        Some(sum) => match known.get(sum) {
            Some(settings) => Arc::clone(settings),
            None => {
                let mut settings = content::settings(Some(file(bundle, setting::FILE, sum)?))?;
                settings.mask_secrets();
                let settings = Arc::new(settings);
                known.insert(sum.clone(), Arc::clone(&settings));
                settings
            }
        },
    };
    let mut commit_logs = Vec::new();
    for name in [COMMIT_LOG, KERNEL_COMMIT_LOG, COMMITS_LOG] {
        let log = content::log_file(name)?;
        if let Some(sum) = listed.get(&log) {
            let text = Unpacker::new().unpack(&log, &file(bundle, &log, sum)?)?;
            commit_logs.push(Log { name: name.to_owned(), text });
        }
    }
    Ok(StoredContext {
        environment: content::environment(&mut needed)?,
        settings,
        has_spans: listed.contains_key(spans::FILE),
        commit_logs,
    })
}

/// Files of a bundle that are missing or don't match their checksums.
pub(crate) fn damaged_files(bundle: &Path) -> Vec<Defect> {
    match list_of_files(bundle) {
        Ok(listed) => listed.iter().filter_map(|(name, sum)| file(bundle, name, sum).err()).collect(),
        Err(defect) => vec![defect],
    }
}

/// Files in a bundle that its checksum list doesn't contain.
pub(crate) fn unlisted_files(bundle: &Path) -> Vec<String> {
    let Ok(listed) = list_of_files(bundle) else { return Vec::new() };
    let mut found = BTreeSet::new();
    walk(bundle, "", &mut found);
    found.into_iter().filter(|name| name != sums::FILE && !listed.contains_key(name)).collect()
}

/// Names of the bundles in the directory of trials, oldest first.
pub(crate) fn list(trials: &Path) -> Result<Vec<String>, StoreError> {
    let mut names: Vec<String> = entries(trials)?.into_iter().filter(|name| id::is_id(name)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Everything else in the directory of trials: partial bundles, and files that pgdyno did not write.
pub(crate) fn unknown_entries(trials: &Path) -> Result<UnknownEntries, StoreError> {
    let mut unknown = UnknownEntries::default();
    for name in entries(trials)?.into_iter().filter(|name| !id::is_id(name) && name != WRITERS) {
        if name.starts_with(PARTIAL) { unknown.partials.push(name) } else { unknown.others.push(name) }
    }
    Ok(unknown)
}

/// Entries of the directory of trials that are not bundles.
#[derive(Debug, Default)]
pub(crate) struct UnknownEntries {
    /// Bundles that are being written, or that a dead writer left.
    pub(crate) partials: Vec<String>,
    /// Files that pgdyno did not write.
    pub(crate) others: Vec<String>,
}

/// Removes the remains of dead writers, unless a writer is alive. A read-only store stays as it is.
pub(crate) fn sweep(trials: &Path) {
    let Ok(unknown) = unknown_entries(trials) else { return };
    if unknown.partials.is_empty() {
        return;
    }
    let Ok(alone) = lock_file(trials) else { return };
    if alone.try_lock().is_ok() {
        for partial in unknown.partials {
            let _ = fs::remove_dir_all(trials.join(partial));
        }
    }
}

/// Whether a process is currently writing a bundle.
pub(crate) fn is_being_written(trials: &Path) -> bool {
    let Ok(lock) = lock_file(trials) else { return false };
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

/// A writer's shared lock, held until it is dropped or its process dies.
struct WriterLock(#[expect(dead_code, reason = "holds the lock")] File);

impl WriterLock {
    fn acquire(trials: &Path) -> Result<Self, StoreError> {
        let lock = lock_file(trials)?;
        lock.lock_shared().map_err(StoreError::io("lock", &trials.join(WRITERS)))?;
        Ok(Self(lock))
    }
}

fn lock_file(trials: &Path) -> Result<File, StoreError> {
    let path = trials.join(WRITERS);
    let opened = files::open_lock(&path);
    opened.map_err(StoreError::io("open", &path))
}

fn publish(trials: &Path, partial: &Path, bundle: &Path, files: &Files) -> Result<(), StoreError> {
    let mut directories = BTreeSet::from([partial.to_owned()]);
    for (name, content) in files {
        let path = partial.join(name);
        let parents = path.ancestors().skip(1).take_while(|parent| *parent != partial);
        let missing: Vec<&Path> = parents.filter(|parent| directories.insert((*parent).to_owned())).collect();
        missing.into_iter().rev().try_for_each(make_directory)?;
        write_synced(&path, content).map_err(StoreError::io("write", &path))?;
    }
    for directory in directories.iter().rev() {
        sync_directory(directory)?;
    }
    fs::rename(partial, bundle).map_err(StoreError::io("rename", partial))?;
    sync_directory(trials).inspect_err(|_| {
        let _ = fs::remove_dir_all(bundle);
    })
}

fn make_directory(path: &Path) -> Result<(), StoreError> {
    fs::create_dir(path).map_err(StoreError::io("create the directory", path))
}

/// Writes a new file and makes its content durable.
pub(crate) fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(StoreError::io("sync the directory", path))
}

fn entries(directory: &Path) -> Result<Vec<String>, StoreError> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    fs::read_dir(directory)
        .and_then(|entries| entries.map(name).collect())
        .map_err(StoreError::io("list", directory))
}

fn walk(directory: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &format!("{name}/"), found),
            _ => {
                found.insert(name);
            }
        }
    }
}

/// All files of a bundle, each of which matches its checksum.
pub(crate) fn all_files(bundle: &Path) -> Result<Files, Defect> {
    list_of_files(bundle)?
        .into_iter()
        .map(|(name, sum)| file(bundle, &name, &sum).map(|content| (name, content)))
        .collect()
}

/// Reads files that every bundle has.
fn some_files<const N: usize>(bundle: &Path, names: [&str; N]) -> Result<Files, Defect> {
    let sums = list_of_files(bundle)?;
    let mut files = Files::new();
    for name in names {
        let sum =
            sums.get(name).ok_or_else(|| Defect::damaged(sums::FILE, format!("it does not list {name}")))?;
        files.insert(name.to_owned(), file(bundle, name, sum)?);
    }
    Ok(files)
}

fn list_of_files(bundle: &Path) -> Result<BTreeMap<String, String>, Defect> {
    let list = files::read(bundle, sums::FILE)?;
    sums::parse(&String::from_utf8_lossy(&list))
}

fn file(bundle: &Path, name: &str, sum: &str) -> Result<Vec<u8>, Defect> {
    let content = files::read(bundle, name)?;
    sums::verify(name, &content, sum)?;
    Ok(content)
}

fn check_name(bundle: &Path, trial: &Trial) -> Result<(), Defect> {
    match bundle.file_name().and_then(|name| name.to_str()) {
        Some(name) if name == trial.id => Ok(()),
        _ => Err(Defect::damaged(
            format::TRIAL,
            format!("it belongs to trial {}, not to this bundle", trial.id),
        )),
    }
}
