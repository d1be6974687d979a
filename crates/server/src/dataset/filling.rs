//! Filling templates.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use model::dataset::DatasetSource;
use model::secret::mask;
use rustix::process::Signal;
use wire::blocking::SessionError;

use crate::cluster::{Cluster, sync_file_system};
use crate::data::initdb::{check_options, wal_segment_bytes};
use crate::dataset::base_backup;
use crate::dataset::content::Content;
use crate::dataset::eviction;
use crate::dataset::fill::{Dump, check_scale, load_settings, set_up};
use crate::dataset::own::check_unchanged;
use crate::dataset::size::template_bytes;
use crate::dataset::template::{FORMAT, Facts, RECORD, Record, Template, bytes_below, lock_file, name, read};
use crate::error::{DISK_FULL_TEXTS, Error};
use crate::programs::installation::Installation;
use crate::server::{Server, StopMode};
use host::files::write_regular;
use host::process::{LOG_TAIL_LINES, last_lines, signal};
use host::{Cache, IoContext, Lock, Progress};

/// Interval between syncs of what is written while a template is filled.
const SYNC_INTERVAL: Duration = Duration::from_millis(250);

/// What lines of the log have that tell why a server ended, apart from a full disk.
const REASONS: [&str; 4] = ["PANIC: ", "FATAL: ", "File too large", "was terminated by signal"];
/// Number of lines of the log in an error.
const REASON_LINES: usize = 3;

/// The template of a server's programs, `initdb` options and content; a database of the user's own comes from `own`. It is
/// created if missing, after removing unused templates if `PGDYNO_DATASETS_MAX` requires it. Several processes may call this
/// at once.
///
/// # Errors
/// A scale that pgbench does not have; an `initdb` option that pgdyno sets itself or that this major does not have; the
/// server does not start, or can't be filled; a workload's setup is refused; a database of the user's own has changed, or can't
/// be restored.
pub fn template(
    cache: &Cache,
    installation: &Installation,
    initdb: &[String],
    content: &Content,
    own: Option<&DatasetSource>,
    progress: &dyn Progress,
) -> Result<Template, Error> {
    check_scale(content.scale)?;
    check_options(initdb)?;
    let name = name(installation, initdb, content);
    let place = cache.templates().join(&name);
    let what = format!("PostgreSQL {}, {content}", installation.version());
    loop {
        let lock = Lock::shared_for(&lock_file(cache, &name), &what, progress)?;
        if place.is_dir() {
            lock.touch();
            cache.user().take_over(&place)?;
            return Ok(read(cache, &place)?.locked(installation, lock));
        }
        drop(lock);
        let find = || Ok(place.is_dir().then_some(()));
        Lock::create_once(&lock_file(cache, &name), &what, progress, find, || {
            progress.step(&format!("{what}: creating"), 0, None);
            eviction::free_space(cache, template_bytes(initdb, content), progress)?;
            make(cache, installation, initdb, (content, own), &place, progress)
        })?;
    }
}

/// Fills a cluster of pgdyno's own, and renames its data directory to the template's name once it is complete and
/// synced.
fn make(
    cache: &Cache,
    installation: &Installation,
    initdb: &[String],
    (content, own): (&Content, Option<&DatasetSource>),
    place: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    check_unchanged(content, own, progress)?;
    let mut server = if let Some(DatasetSource::BaseBackup { directory, database }) = own {
        let what = format!("PostgreSQL {}, {content}", installation.version());
        let cluster = base_backup::cluster(cache, installation, (directory, database), &what, progress)?;
        let segment_bytes = base_backup::wal_segment_bytes(&cluster.data_directory());
        let server = cluster.start(&load_settings(segment_bytes.unwrap_or(wal_segment_bytes(initdb))))?;
        base_backup::check_database(&server.control, directory, database)?;
        server
    } else {
        Cluster::empty(cache, installation, initdb)?.start(&load_settings(wal_segment_bytes(initdb)))?
    };
    let filled = while_wanted(&server, progress, || match (own, &content.setup) {
        // It stays as it is, with its bloat and its statistics; a setup is followed by a vacuum.
        (Some(DatasetSource::BaseBackup { .. }), None) => Ok(()),
        (Some(DatasetSource::BaseBackup { .. }), Some(setup)) => {
            set_up(&server.control, crate::DATABASE, content, setup, progress)
        }
        (Some(DatasetSource::Dump(path)), _) => {
            server.fill_from(content, Some(Dump { path, programs: Some(installation) }), progress)
        }
        (Some(DatasetSource::Template(_)) | None, _) => server.fill(content, progress),
    });
    filled.map_err(|error| with_log(error, &server, content, template_bytes(initdb, content)))?;
    let mut facts = facts(&server, content)?;
    if !server.end(StopMode::Fast)? {
        return Err(Error::Start {
            version: installation.version().to_string(),
            directory: server.data_directory().to_owned(),
            why: "it was filled, but did not stop cleanly".to_owned(),
            log: mask(&last_lines(&server.log()?, LOG_TAIL_LINES)),
        });
    }
    let cluster = server.stop(StopMode::Fast)?;
    let data = cluster.data_directory();
    facts.bytes = bytes_below(&data);
    let file = data.join(RECORD);
    let record = Record {
        format: FORMAT,
        version: installation.version().to_string(),
        server: Some(installation.identity().to_owned()),
        data: Some(installation.data_identity()),
        initdb: initdb.to_owned(),
        scale: content.scale,
        own: content.own.as_deref().cloned(),
        workload: content.setup.as_ref().map(|setup| setup.workload.clone()),
        made: Timestamp::now(),
        facts: Some(facts),
    };
    let text = serde_json::to_string_pretty(&record).doing("write", &file)?;
    cluster.user().run_as(|| write_regular(&file, (text + "\n").as_bytes()))?.doing("write", &file)?;
    sync_file_system(&data)?;
    Ok(fs::rename(&data, place).doing("rename to", place)?)
}

/// Adds the reason from the server's log to an error: a server that panicked only closed the connection.
fn with_log(error: Error, server: &Server, content: &Content, need: u64) -> Error {
    if error.is_interrupted() {
        return error;
    }
    let log = server.log().unwrap_or_default();
    let is_reason = |line: &&str| DISK_FULL_TEXTS.iter().chain(&REASONS).any(|sign| line.contains(sign));
    let lines: Vec<&str> = log.lines().filter(is_reason).collect();
    let is_full = lines.iter().any(|line| DISK_FULL_TEXTS.iter().any(|sign| line.contains(sign)));
    let log = mask(&last_lines(&lines.join("\n"), REASON_LINES));
    if is_full {
        let what = format!("{}, {content}", server.control.title);
        Error::DiskFull { what, directory: server.data_directory().to_owned(), need, log }
    } else if lines.is_empty() {
        error
    } else {
        Error::Fill { error: Box::new(error), log }
    }
}

/// Runs work that writes, and concurrently syncs what it writes, so that little remains at the end. The server does not
/// sync while it loads, and the kernel would wait until much memory is dirty. If the user wants to stop, the server is
/// stopped: a single statement may take hours.
fn while_wanted(
    server: &Server,
    progress: &dyn Progress,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let outcome = thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let (data, pid) = (server.data_directory(), server.pid());
        let syncing = scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(SYNC_INTERVAL) {
                if progress.interrupted() {
                    signal(pid, Signal::QUIT);
                }
                sync_file_system(data)?;
            }
            Ok(())
        });
        let outcome = work();
        drop(done);
        let synced = syncing.join().unwrap_or(Ok(()));
        outcome.and(synced)
    });
    match outcome {
        Err(_) if progress.interrupted() => Err(host::Error::Interrupted.into()),
        outcome => outcome,
    }
}

/// Queries the server's facts, and creates `pg_prewarm` in the tested database if the server has it.
fn facts(server: &Server, content: &Content) -> Result<Facts, Error> {
    let control = &server.control;
    let mut session = control.connect(crate::DATABASE)?;
    let sql = |error: SessionError| control.error("query its facts", &error);
    let (checksums, mut prewarm): (String, bool) = session
        .query_one(
            "SELECT current_setting('data_checksums'),
                    exists (SELECT FROM pg_available_extensions WHERE name = 'pg_prewarm')",
        )
        .map_err(sql)?;
    let pg_config: Vec<(String, String)> =
        session.query("SELECT name, coalesce(setting, '') FROM pg_config").map_err(sql)?;
    if prewarm && content.own.is_some() {
        // It may have the extension, or nothing that it can be created in.
        prewarm = session.execute("create extension if not exists pg_prewarm").is_ok();
    } else if prewarm {
        control.execute(&mut session, "create extension pg_prewarm")?;
    }
    Ok(Facts {
        pg_config: pg_config.into_iter().collect(),
        data_checksums: checksums == "on",
        prewarm,
        bytes: 0,
    })
}
