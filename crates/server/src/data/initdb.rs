//! `initdb`: an empty data directory, the same on every machine.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::error::Error;
use crate::programs::installation::Installation;
use host::IoContext;
use host::ServerUser;
use host::process::spawn;
use host::process::{LOG_TAIL_LINES, last_lines};

/// File with the settings of a start, included by `postgresql.conf`.
pub(crate) const SETTINGS_FILE: &str = "pgdyno.conf";
/// Default of `--wal-segsize`.
pub(crate) const WAL_SEGMENT_BYTES: u64 = 16 << 20;
/// Options that determine the data directory and the access to the server, or with which `initdb` creates nothing.
const OWN_LONG: [&str; 13] = [
    "auth",
    "auth-host",
    "auth-local",
    "help",
    "pgdata",
    "pwfile",
    "pwprompt",
    "show",
    "sync-only",
    "username",
    "version",
    "waldir",
    "xlogdir",
];
const OWN_SHORT: &str = "?ADSUVWXs";
/// Short options with a value.
const WITH_VALUE: &str = "ADELTUXc";

/// Creates the data directory `data`: UTF-8, locale C, superuser [`crate::USER`], no passwords, and what `options` add
/// or override. Its output goes to the file `log`.
pub(crate) fn initdb(
    installation: &Installation,
    options: &[String],
    user: &ServerUser,
    data: &Path,
    log: &Path,
) -> Result<(), Error> {
    check_options(options)?;
    fs::create_dir(data).doing("create the directory", data)?;
    user.chown(data)?;
    let output = File::create(log).doing("write", log)?;
    let mut initdb = installation.command("initdb", user);
    initdb
        .arg("-D")
        .arg(data)
        // -N: no fsync; the code that keeps the directory syncs it.
        // -A: each start has its own file (see `access`); this one would admit nobody.
        .args(["-N", "-A", "reject", "-E", "UTF8", "--locale=C", "-U", crate::USER])
        .args(options)
        .current_dir(data)
        .stdin(Stdio::null())
        .stdout(output.try_clone().doing("write", log)?)
        .stderr(output);
    let program = installation.program("initdb");
    // Its own child reads from it through a pipe and ends with it.
    let status = spawn(initdb, Signal::KILL).and_then(|mut child| child.wait()).doing("run", &program)?;
    if !status.success() {
        return Err(Error::Initdb {
            version: installation.version().to_string(),
            options: options.join(" "),
            directory: data.to_owned(),
            status: status.to_string(),
            output: last_lines(&fs::read_to_string(log).unwrap_or_default(), LOG_TAIL_LINES).into(),
        });
    }
    include_settings(data, user)
}

/// Refuses options that pgdyno sets itself.
///
/// # Errors
/// The first of them.
pub(crate) fn check_options(options: &[String]) -> Result<(), Error> {
    match options.iter().find(|option| is_own(option)) {
        None => Ok(()),
        Some(option) => Err(Error::InitdbOption { option: option.clone() }),
    }
}

/// Parsed like getopt: long options may be abbreviated, short ones combined.
fn is_own(option: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        return OWN_LONG.iter().any(|own| own.starts_with(name));
    }
    let Some(letters) = option.strip_prefix('-') else { return false };
    let until_value = letters.find(|letter| WITH_VALUE.contains(letter)).map_or(letters.len(), |at| at + 1);
    letters[..until_value].contains(|letter| OWN_SHORT.contains(letter))
}

/// WAL segment size that these options request (`--wal-segsize`, in megabytes).
pub(crate) fn wal_segment_bytes(options: &[String]) -> u64 {
    let mut words = options.iter().flat_map(|option| option.split('='));
    match words.find(|word| word.len() > "--wal".len() && "--wal-segsize".starts_with(word)) {
        Some(_) => {
            words.next().and_then(|value| value.parse().ok()).map_or(WAL_SEGMENT_BYTES, |mb: u64| mb << 20)
        }
        None => WAL_SEGMENT_BYTES,
    }
}

fn include_settings(data: &Path, user: &ServerUser) -> Result<(), Error> {
    let main = data.join("postgresql.conf");
    let mut text = fs::read_to_string(&main).doing("read", &main)?;
    text.push_str(&format!("\n# Written by pgdyno at each start.\ninclude '{SETTINGS_FILE}'\n"));
    let settings = data.join(SETTINGS_FILE);
    user.run_as(|| {
        fs::write(&main, text).doing("write", &main)?;
        fs::write(&settings, "").doing("write", &settings)
    })??;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_pgdyno_sets_are_refused_in_every_spelling() {
        for option in ["-D", "-D/x", "--pgdata=/x", "--pgd", "-kX/wal", "--auth-local=md5", "-W", "--", "-?"]
        {
            let error = check_options(&["-k".to_owned(), option.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(&format!("\"{option}\"")), "{error}");
        }
        for option in
            ["-k", "--data-checksums", "--wal-segsize=64", "--locale=C.UTF-8", "-EUTF8", "-cD=A", "UTF8"]
        {
            check_options(&[option.to_owned()]).unwrap();
        }
    }

    #[test]
    fn the_size_of_wal_segments_is_parsed_as_by_initdb() {
        let bytes = |options: &[&str]| {
            wal_segment_bytes(&options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(bytes(&[]), 16 << 20);
        assert_eq!(bytes(&["-k", "--wal-segsize=64"]), 64 << 20);
        assert_eq!(bytes(&["--wal-seg", "1", "-k"]), 1 << 20);
    }
}
