//! Settings of the running kernel, in `/sys` and `/proc/sys`, that are changed for a while. What has to be restored is on disk
//! before anything is changed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext};
use crate::{Cache, Lock};

/// A setting to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSetting {
    /// Its file.
    pub path: PathBuf,
    /// Its value now.
    pub before: String,
    /// The value that it gets.
    pub set: String,
}

/// What became of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// It has its former value.
    Yes(KernelSetting),
    /// Somebody else has changed it meanwhile: it has this value, and keeps it.
    ChangedBy(KernelSetting, String),
    /// The kernel refused the former value, for this reason.
    Failed(KernelSetting, String),
}

/// The settings in the files of a pattern that have another value than this. `*` in a pattern stands for any part of a name.
///
/// # Errors
/// A file can't be read.
pub fn kernel_settings(pattern: &str, value: &str) -> Result<Vec<KernelSetting>, Error> {
    let mut found = Vec::new();
    for path in matching(Path::new("/"), pattern.trim_start_matches('/')) {
        let before = current(&path).doing("read", &path)?;
        if before != value {
            found.push(KernelSetting { path, before, set: value.to_owned() });
        }
    }
    Ok(found)
}

/// The existing files of a pattern below a directory, in the order of their names.
fn matching(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let (component, rest) =
        pattern.split_once('/').map_or((pattern, None), |(first, rest)| (first, Some(rest)));
    let mut found: Vec<PathBuf> = match component.split_once('*') {
        None => vec![directory.join(component)],
        Some((start, end)) => {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let is_match = |name: &String| {
                name.len() >= component.len() - 1 && name.starts_with(start) && name.ends_with(end)
            };
            names.filter(is_match).map(|name| directory.join(name)).collect()
        }
    };
    found.retain(|path| path.exists());
    found.sort();
    match rest {
        None => found,
        Some(rest) => found.iter().flat_map(|path| matching(path, rest)).collect(),
    }
}

/// The value in a file; of a choice (`always [madvise] never`), the chosen one.
fn current(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    Ok(chosen.unwrap_or(&text).trim().to_owned())
}

/// Settings that have been changed; dropping it leaves them so, with the file from which [`restore_kernel_settings`] restores
/// them.
#[derive(Debug)]
pub struct ChangedKernel {
    journal: PathBuf,
    settings: Vec<KernelSetting>,
    _owner: Lock,
}

impl ChangedKernel {
    /// Changes settings. If one can't be changed, those before it are restored.
    ///
    /// # Errors
    /// Another pgdyno has changed settings, or one can't be changed.
    pub fn apply(cache: &Cache, settings: Vec<KernelSetting>) -> Result<Self, Error> {
        let Some(owner) = lock(cache)? else { return Err(Error::KernelSettingsInUse) };
        let journal = journal(cache);
        write_journal(&journal, &settings).doing("write", &journal)?;
        let changed = Self { journal, settings, _owner: owner };
        for setting in &changed.settings {
            if let Err(error) = fs::write(&setting.path, &setting.set) {
                let path = setting.path.clone();
                changed.restore()?;
                return Err(error).doing("set", &path);
            }
        }
        Ok(changed)
    }

    /// Restores them.
    ///
    /// # Errors
    /// The journal can't be removed.
    pub fn restore(self) -> Result<Vec<Restored>, Error> {
        let outcome: Vec<Restored> = self.settings.into_iter().rev().map(restore).collect();
        fs::remove_file(&self.journal).doing("remove", &self.journal)?;
        Ok(outcome)
    }
}

/// Restores what a killed pgdyno has changed; nothing if there is none, or one is still at work.
///
/// # Errors
/// The journal can't be read or removed.
pub fn restore_kernel_settings(cache: &Cache) -> Result<Vec<Restored>, Error> {
    let journal = journal(cache);
    if !journal.exists() {
        return Ok(Vec::new());
    }
    let Some(owner) = lock(cache)? else { return Ok(Vec::new()) };
    let settings = read_journal(&journal).doing("read", &journal)?;
    ChangedKernel { journal, settings, _owner: owner }.restore()
}

fn restore(setting: KernelSetting) -> Restored {
    match current(&setting.path) {
        Ok(now) if now == setting.before => Restored::Yes(setting),
        Ok(now) if now != setting.set => Restored::ChangedBy(setting, now),
        Ok(_) => match fs::write(&setting.path, &setting.before) {
            Ok(()) => Restored::Yes(setting),
            Err(error) => Restored::Failed(setting, error.to_string()),
        },
        Err(error) => Restored::Failed(setting, error.to_string()),
    }
}

fn lock(cache: &Cache) -> Result<Option<Lock>, Error> {
    Lock::try_exclusive(&cache.lock_file("kernel-settings"))
}

fn journal(cache: &Cache) -> PathBuf {
    cache.directory().join("kernel-settings")
}

/// Writes a line for each setting: path, former value, new value.
fn write_journal(path: &Path, settings: &[KernelSetting]) -> io::Result<()> {
    let line = |KernelSetting { path, before, set }: &KernelSetting| {
        format!("{}\t{before}\t{set}\n", path.display())
    };
    let mut file = File::create(path)?;
    file.write_all(settings.iter().map(line).collect::<String>().as_bytes())?;
    file.sync_all()
}

fn read_journal(path: &Path) -> io::Result<Vec<KernelSetting>> {
    // A line that was not written completely has changed nothing.
    let setting = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        Some(KernelSetting {
            path: PathBuf::from(fields.next()?),
            before: fields.next()?,
            set: fields.next()?,
        })
    };
    Ok(fs::read_to_string(path)?
        .split_inclusive('\n')
        .filter_map(|line| setting(line.strip_suffix('\n')?))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with settings of three CPUs and one choice, and a cache.
    fn machine() -> (tempfile::TempDir, Cache, String) {
        let directory = tempfile::tempdir().unwrap();
        for cpu in 0..3 {
            let directory = directory.path().join(format!("sys/cpu{cpu}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("governor"), if cpu == 1 { "performance\n" } else { "powersave\n" })
                .unwrap();
        }
        fs::create_dir(directory.path().join("sys/cpufreq")).unwrap();
        fs::write(directory.path().join("sys/thp"), "[always] madvise never\n").unwrap();
        let cache = Cache::at(&directory.path().join("cache")).unwrap();
        let root = directory.path().display().to_string();
        (directory, cache, root)
    }

    fn values(root: &str) -> Vec<String> {
        ["cpu0", "cpu1", "cpu2"]
            .map(|cpu| current(Path::new(&format!("{root}/sys/{cpu}/governor"))).unwrap())
            .to_vec()
    }

    #[test]
    fn settings_are_changed_and_restored() {
        let (_directory, cache, root) = machine();
        let mut settings = kernel_settings(&format!("{root}/sys/cpu*/governor"), "performance").unwrap();
        assert_eq!(settings.len(), 2, "the one that has the value is not changed: {settings:?}");
        settings.extend(kernel_settings(&format!("{root}/sys/thp"), "madvise").unwrap());
        assert_eq!(settings[2].before, "always");
        assert_eq!(kernel_settings(&format!("{root}/sys/none"), "1").unwrap(), []);

        let changed = ChangedKernel::apply(&cache, settings.clone()).unwrap();
        assert_eq!(values(&root), ["performance"; 3]);
        let second = ChangedKernel::apply(&cache, settings).map(drop);
        assert!(matches!(second, Err(Error::KernelSettingsInUse)), "{second:?}");
        assert_eq!(restore_kernel_settings(&cache).unwrap(), [], "they are in use");
        let restored = changed.restore().unwrap();
        assert!(
            restored.len() == 3 && restored.iter().all(|one| matches!(one, Restored::Yes(_))),
            "{restored:?}"
        );
        assert_eq!(values(&root), ["powersave", "performance", "powersave"]);
        assert_eq!(restore_kernel_settings(&cache).unwrap(), []);
    }

    #[test]
    fn what_a_killed_process_changed_is_restored_later_unless_somebody_else_changed_it() {
        let (_directory, cache, root) = machine();
        let settings = kernel_settings(&format!("{root}/sys/cpu*/governor"), "performance").unwrap();
        drop(ChangedKernel::apply(&cache, settings).unwrap());
        fs::write(format!("{root}/sys/cpu2/governor"), "ondemand\n").unwrap();
        let restored = restore_kernel_settings(&cache).unwrap();
        assert!(matches!(&restored[0], Restored::ChangedBy(_, now) if now == "ondemand"), "{restored:?}");
        assert_eq!(values(&root), ["powersave", "performance", "ondemand"]);
        assert_eq!(restore_kernel_settings(&cache).unwrap(), [], "once");
    }

    #[test]
    fn a_setting_that_can_not_be_changed_leaves_the_others_as_they_were() {
        let (_directory, cache, root) = machine();
        let mut settings = kernel_settings(&format!("{root}/sys/cpu*/governor"), "performance").unwrap();
        let path = PathBuf::from(format!("{root}/sys/none/governor"));
        settings.push(KernelSetting { path, before: "a".to_owned(), set: "b".to_owned() });
        let error = ChangedKernel::apply(&cache, settings).map(drop).unwrap_err().to_string();
        assert!(error.contains("could not set") && error.contains("none/governor"), "{error}");
        assert_eq!(values(&root), ["powersave", "performance", "powersave"]);
        assert_eq!(restore_kernel_settings(&cache).unwrap(), []);
    }
}
