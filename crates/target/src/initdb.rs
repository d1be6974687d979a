//! `initdb`: an empty data directory, alike on every machine.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::error::{Doing, TargetError};
use crate::install::Installation;
use crate::launch::{LAST_LINES, command, last_lines};
use crate::process::spawn;
use crate::user::ServerUser;

/// The file with the settings of a start, which `postgresql.conf` includes.
pub(crate) const SETTINGS_FILE: &str = "pgdyno.conf";

/// Makes the data directory `data`: UTF-8, locale C, superuser [`crate::USER`], no passwords. What it says goes to
/// the file `log`.
pub(crate) fn initdb(
    installation: &Installation,
    user: &ServerUser,
    data: &Path,
    log: &Path,
) -> Result<(), TargetError> {
    fs::create_dir(data).doing("make the directory", data)?;
    user.own(data)?;
    let output = File::create(log).doing("write", log)?;
    let mut initdb = command(installation, "initdb", user);
    initdb
        .arg("-D")
        .arg(data)
        // -N: no fsync; whoever keeps the directory syncs it.
        .args(["-N", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", crate::USER])
        .current_dir(data)
        .stdin(Stdio::null())
        .stdout(output.try_clone().doing("write", log)?)
        .stderr(output);
    let program = installation.program("initdb");
    // Its own child reads from it by a pipe and ends with it.
    let status = spawn(initdb, Signal::KILL).and_then(|mut child| child.wait()).doing("run", &program)?;
    if !status.success() {
        return Err(TargetError::Initdb {
            version: installation.version().to_string(),
            directory: data.to_owned(),
            status: status.to_string(),
            output: last_lines(&fs::read_to_string(log).unwrap_or_default(), LAST_LINES),
        });
    }
    include_settings(data, user)
}

fn include_settings(data: &Path, user: &ServerUser) -> Result<(), TargetError> {
    let main = data.join("postgresql.conf");
    let mut text = fs::read_to_string(&main).doing("read", &main)?;
    text.push_str(&format!("\n# Written anew by pgdyno at each start.\ninclude '{SETTINGS_FILE}'\n"));
    fs::write(&main, text).doing("write", &main)?;
    let settings = data.join(SETTINGS_FILE);
    fs::write(&settings, "").doing("write", &settings)?;
    user.own(&settings)
}
