//! Steps that change the machine, in order: a dry run prints the same list that is otherwise executed.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use model::secret::mask;

use super::grubenv;
use crate::error::Error;
use host::IoContext;

/// A change of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes a whole file with the mode that it had, and syncs it.
    Write {
        /// The file.
        path: PathBuf,
        /// Whether only its owner may read it, whatever its mode was.
        is_private: bool,
        /// Description of the file.
        what: String,
        /// Text.
        text: String,
    },
    /// Creates a symbolic link.
    Link {
        /// The link.
        path: PathBuf,
        /// Target.
        to: PathBuf,
    },
    /// Removes a file if it exists.
    Remove {
        /// The file.
        path: PathBuf,
    },
    /// Sets the entry to boot next in GRUB's environment block; none removes the variable.
    NextEntry {
        /// The block.
        grubenv: PathBuf,
        /// The entry.
        entry: Option<String>,
    },
    /// Runs a program to its end.
    Run {
        /// The program and its arguments.
        command: Vec<String>,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { path, what, .. } => write!(f, "write {}: {what}", path.display()),
            Self::Link { path, to } => write!(f, "link {} to {}", path.display(), to.display()),
            Self::Remove { path } => write!(f, "remove {}", path.display()),
            Self::NextEntry { grubenv, entry: Some(entry) } => {
                write!(f, "set next_entry={entry} in {}", grubenv.display())
            }
            Self::NextEntry { grubenv, entry: None } => {
                write!(f, "remove next_entry from {}", grubenv.display())
            }
            Self::Run { command } => write!(f, "run {}", mask(&shell(command))),
        }
    }
}

/// A command as typed in a shell.
fn shell(command: &[String]) -> String {
    let word = |word: &String| {
        if word.contains([' ', '\'', '"', '$', ';', '&']) { format!("'{word}'") } else { word.clone() }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Executes the steps in order; each is on disk before the next.
///
/// # Errors
/// The first step that fails; those before it have been executed.
pub fn execute(steps: &[Step]) -> Result<(), Error> {
    steps.iter().try_for_each(Step::execute)
}

impl Step {
    fn execute(&self) -> Result<(), Error> {
        match self {
            Self::Write { path, text, is_private, .. } => write(path, text, *is_private),
            Self::Link { path, to } => {
                let directory = directory(path);
                fs::create_dir_all(directory).doing("create the directory", directory)?;
                match symlink(to, path) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                        Ok(Err(error).doing("create the link", path)?)
                    }
                    _ => sync(directory),
                }
            }
            Self::Remove { path } => match fs::remove_file(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                Err(error) => Ok(Err(error).doing("remove", path)?),
                Ok(()) => sync(directory(path)),
            },
            Self::NextEntry { grubenv, entry } => set_next_entry(grubenv, entry.as_deref()),
            Self::Run { command } => run(command),
        }
    }
}

fn write(path: &Path, text: &str, is_private: bool) -> Result<(), Error> {
    let directory = directory(path);
    fs::create_dir_all(directory).doing("create the directory", directory)?;
    let permissions = match fs::metadata(path) {
        _ if is_private => fs::Permissions::from_mode(0o600),
        Ok(existing) => existing.permissions(),
        Err(_) => fs::Permissions::from_mode(0o644),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".pgdyno-")
        .permissions(permissions)
        .tempfile_in(directory)
        .doing("create a file in", directory)?;
    file.write_all(text.as_bytes()).doing("write", path)?;
    file.as_file().sync_all().doing("sync", path)?;
    file.persist(path).map_err(|error| error.error).doing("rename to", path)?;
    sync(directory)
}

/// GRUB finds the block by its position on the disk, so it is overwritten, not replaced.
fn set_next_entry(path: &Path, entry: Option<&str>) -> Result<(), Error> {
    let before = fs::read_to_string(path).doing("read", path)?;
    let after = grubenv::with_next_entry(&before, entry)
        .ok_or_else(|| io::Error::other("it has no space for an entry"))
        .doing("write", path)?;
    if after == before {
        return Ok(());
    }
    let mut file = File::options().write(true).open(path).doing("write", path)?;
    file.seek(SeekFrom::Start(0)).doing("write", path)?;
    file.write_all(after.as_bytes()).doing("write", path)?;
    Ok(file.sync_all().doing("sync", path)?)
}

fn run(command: &[String]) -> Result<(), Error> {
    let refuse = |why: String| Error::Reboot(format!("could not run `{}`: {why}", mask(&shell(command))));
    let Some((program, args)) = command.split_first() else { return Ok(()) };
    let output = Command::new(program).args(args).output().map_err(|error| refuse(error.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(refuse(format!("{}: {}", output.status, stderr.trim())))
    }
}

fn sync(directory: &Path) -> Result<(), Error> {
    Ok(File::open(directory).and_then(|directory| directory.sync_all()).doing("sync", directory)?)
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
