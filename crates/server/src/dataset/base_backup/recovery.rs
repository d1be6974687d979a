//! Recovery of an unpacked base backup to consistency, by a single process without clients and background workers, which
//! then gives pgdyno access: before anything in it can connect to somebody or be connected to.

use std::fs::OpenOptions;
use std::io::{Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

use model::secret::mask;
use rustix::process::Signal;
use wire::quote_identifier;

use crate::error::Error;
use crate::launch::LOG_MODE;
use crate::programs::installation::Installation;
use crate::{DATABASE, USER};
use host::process::{LOG_TAIL_LINES, last_lines, spawn, wait_while};
use host::{IoContext, Progress, ServerUser};

/// Recovers a data directory, and makes the database of a name the tested one. The server's output goes to the file `log`.
///
/// Settings that the source has stored for roles and databases are removed, since they would override a campaign's;
/// passwords, since nobody needs them; subscriptions are disabled, since they would connect to their publishers.
///
/// # Errors
/// The server can't recover it, with the end of its output; the user wants to stop.
pub(crate) fn recover(
    installation: &Installation,
    user: &ServerUser,
    data: &Path,
    database: &str,
    log: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    let output =
        options.write(true).create(true).truncate(true).mode(LOG_MODE).open(log).doing("write", log)?;
    let mut input = tempfile::tempfile().doing("create a file in", &std::env::temp_dir())?;
    input
        .write_all(statements(database).as_bytes())
        .and_then(|()| input.rewind())
        .doing("write to a file in", &std::env::temp_dir())?;
    let mut postgres = installation.command("postgres", user);
    postgres
        .args(["--single", "-D"])
        .arg(data)
        // Synced as a whole afterwards.
        .args(["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "log_destination=stderr"])
        .args(["-c", "logging_collector=off", "template1"])
        .current_dir(data)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(output);
    let program = installation.program("postgres");
    let mut child = spawn(postgres, Signal::QUIT).doing("run", &program)?;
    let status = wait_while(&mut child, || !progress.interrupted()).doing("run", &program)?;
    let Some(status) = status else { return Err(host::Error::Interrupted.into()) };
    if status.success() {
        return Ok(());
    }
    Err(Error::Recovery {
        version: installation.version().to_string(),
        status: status.to_string(),
        log: mask(&last_lines(&std::fs::read_to_string(log).unwrap_or_default(), LOG_TAIL_LINES)).into(),
    })
}

/// One statement per line. One that is refused, as those that an older release does not know, is skipped; the next start
/// shows whether the result is complete.
fn statements(database: &str) -> String {
    let mut statements = vec![
        format!("CREATE ROLE {USER} SUPERUSER LOGIN"),
        format!("ALTER ROLE {USER} SUPERUSER LOGIN CONNECTION LIMIT -1 VALID UNTIL 'infinity'"),
        "DELETE FROM pg_catalog.pg_db_role_setting".to_owned(),
        "UPDATE pg_catalog.pg_authid SET rolpassword = NULL".to_owned(),
        "UPDATE pg_catalog.pg_subscription SET subenabled = false".to_owned(),
    ];
    if database != DATABASE {
        statements.push(format!("ALTER DATABASE {DATABASE} RENAME TO \"{DATABASE} of the backup\""));
        statements.push(format!("ALTER DATABASE {} RENAME TO {DATABASE}", quote_identifier(database)));
    }
    statements.push(format!("ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS true CONNECTION LIMIT -1"));
    statements.push("CREATE DATABASE postgres TEMPLATE template0".to_owned());
    statements.push("ALTER DATABASE postgres ALLOW_CONNECTIONS true CONNECTION LIMIT -1".to_owned());
    statements.join("\n") + "\n"
}
