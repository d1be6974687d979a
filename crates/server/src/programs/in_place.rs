//! Existing programs, used in place.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use jiff::Timestamp;
use model::version::Version;

use crate::error::Error;
use crate::programs::installation::{Installation, Origin, Record, missing_program};
use crate::programs::stamp::Stamp;
use host::Cache;
use host::Fingerprint;
use host::IoContext;

/// The server with its programs in a directory, or in `bin` below it.
pub(crate) fn in_place(cache: &Cache, directory: &Path) -> Result<Installation, Error> {
    let refuse = |why: String| Error::Programs { directory: directory.to_owned(), why };
    let given = directory.canonicalize().doing("find", directory)?;
    let programs = [given.clone(), given.join("bin")]
        .into_iter()
        .find(|place| place.join("postgres").is_file())
        .ok_or_else(|| refuse("neither it nor its subdirectory bin contains postgres".to_owned()))?;
    if let Some(program) = missing_program(&programs) {
        return Err(refuse(format!("it contains postgres but not {program}")));
    }
    if let (false, Some(user)) = (cache.user().can_reach(&programs), cache.user().name()) {
        return Err(refuse(format!(
            "the user \"{user}\", who runs the servers when pgdyno is root, can't reach it; make its directories \
             accessible (chmod o+x)"
        )));
    }
    let postgres = programs.join("postgres");
    let version = version(cache, &postgres).map_err(|error| refuse(error.to_string()))?;
    let stamp = Stamp::read(&postgres)?;
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(programs.as_os_str().as_bytes());
    fingerprint.add_file(&postgres)?;
    let record = Record {
        format: 1,
        version: version.to_string(),
        source: Origin::Bin,
        archive: None,
        sha512: None,
        build: None,
        extension: None,
        installed: Timestamp::try_from(stamp.modified()).unwrap_or(Timestamp::UNIX_EPOCH),
    };
    Ok(Installation {
        identity: format!("{version}-bin-{}", fingerprint.short()),
        version,
        directory: given,
        programs,
        record,
        stamp: Some(stamp),
    })
}

/// Reason that `postgres --version` returned no version.
#[derive(Debug, thiserror::Error)]
enum VersionError {
    #[error("postgres --version can't be run: {0}")]
    Run(#[source] io::Error),
    #[error("postgres --version failed ({status}): {output}")]
    Failed { status: ExitStatus, output: String },
    #[error("postgres --version printed no version: {output}")]
    NoVersion { output: String },
}

fn version(cache: &Cache, postgres: &PathBuf) -> Result<Version, VersionError> {
    let mut command = Command::new(postgres);
    command.arg("--version").env_clear().env("LC_ALL", "C").stdin(Stdio::null());
    cache.user().apply_to(&mut command);
    let output = command.output().map_err(VersionError::Run)?;
    let trimmed = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        let (status, output) = (output.status, trimmed(&output.stderr));
        return Err(VersionError::Failed { status, output });
    }
    let output = trimmed(&output.stdout);
    parse_version(&output).ok_or(VersionError::NoVersion { output })
}

/// The version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn parse_version(output: &str) -> Option<Version> {
    let (_, after_name) = output.split_once(") ")?;
    after_name.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_as_servers_and_distributions_print_them() {
        for (output, version) in [
            ("postgres (PostgreSQL) 18.6\n", "18.6"),
            ("postgres (PostgreSQL) 9.6.24\n", "9.6.24"),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", "15.18"),
            ("postgres (PostgreSQL) 19devel\n", "19devel"),
            ("postgres (PostgreSQL) 18beta1 (Debian 18~beta1-1)\n", "18beta1"),
            ("postgres (PostgreSQL) 18rc1\n", "18rc1"),
        ] {
            assert_eq!(parse_version(output).unwrap().to_string(), version);
        }
        assert_eq!(parse_version("postgres: not found\n"), None);
    }
}
