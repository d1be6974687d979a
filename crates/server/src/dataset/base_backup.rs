//! Base backups: the data directory of another server, as `pg_basebackup` copies it. Only its data are taken over: none of
//! its settings, programs, keys and access rules.

mod recovery;
mod unpack;

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::version::Major;

use crate::cluster::Cluster;
use crate::control::Control;
use crate::data::initdb::{SETTINGS_FILE, WAL_SEGMENT_BYTES};
use crate::error::Error;
use crate::programs::installation::Installation;
use host::files::{read_regular, remove_tree, write_regular};
use host::{Cache, IoContext, Progress};

/// File with the major in a data directory.
const VERSION_FILE: &str = "PG_VERSION";

/// Files of settings and access rules, which are those of `initdb`, as for every other data set.
const OWN_FILES: [&str; 5] =
    ["postgresql.conf", "postgresql.auto.conf", SETTINGS_FILE, "pg_hba.conf", "pg_ident.conf"];

/// A cluster with the data of a base backup, recovered, in which `database` is the tested one.
///
/// # Errors
/// It is no base backup, of another major, incomplete or damaged; it has no such database; the user wants to stop.
pub(crate) fn cluster(
    cache: &Cache,
    installation: &Installation,
    (backup, database): (&Path, &str),
    what: &str,
    progress: &dyn Progress,
) -> Result<Cluster, Error> {
    check(backup, Some(installation.version().major()))?;
    let cluster = Cluster::empty(cache, installation, &[])?;
    let data = cluster.data_directory();
    let mut own = Vec::new();
    for name in OWN_FILES {
        let path = data.join(name);
        own.push((name, read_regular(&path).doing("read", &path)?));
    }
    remove_tree(&data)?;
    // It belongs to the server's user only when it is complete.
    fs::create_dir(&data).doing("create the directory", &data)?;
    fs::set_permissions(&data, Permissions::from_mode(0o700)).doing("close to others", &data)?;
    unpack::unpack(backup, &data, &format!("{what}: copying"), progress)?;
    let segment_bytes = wal_segment_bytes(&data);
    for (name, mut text) in own {
        if let ("postgresql.conf", Some(bytes)) =
            (name, segment_bytes.filter(|bytes| *bytes != WAL_SEGMENT_BYTES))
        {
            // As initdb with this size of segments.
            let megabytes = bytes >> 20;
            text = format!(
                "{text}min_wal_size = {}MB\nmax_wal_size = {}MB\ninclude '{SETTINGS_FILE}'\n",
                5 * megabytes,
                64 * megabytes
            );
        }
        let path = data.join(name);
        write_regular(&path, text.as_bytes()).doing("write", &path)?;
    }
    cluster.user().take_over(&data)?;
    progress.step(&format!("{what}: recovering"), 0, None);
    let log = cluster.directory().join("recovery.log");
    recovery::recover(installation, cluster.user(), &data, database, &log, progress)?;
    Ok(cluster)
}

/// Checks that a recovered base backup has the tested database.
///
/// # Errors
/// It has not: names those that it has.
pub(crate) fn check_database(control: &Control, backup: &Path, database: &str) -> Result<(), Error> {
    let query = "SELECT datname FROM pg_database WHERE NOT datistemplate ORDER BY datname";
    let known: Vec<String> =
        control.session()?.query(query).map_err(|error| control.error("query the databases", &error))?;
    if known.iter().any(|name| name == crate::DATABASE) {
        return Ok(());
    }
    let server = format!("the base backup {}", backup.display());
    Err(Error::NoDatabase { server, database: database.to_owned(), known })
}

/// Form of a base backup.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// A data directory.
    Plain,
    /// Archives of one: the data directory, and its WAL if that is separate.
    Tar { base: PathBuf, wal: Option<PathBuf> },
}

impl Form {
    /// # Errors
    /// The directory is no base backup, or one that pgdyno can't use.
    fn of(directory: &Path) -> Result<Self, Error> {
        let refuse = |why: String| Err(Error::BaseBackup { directory: directory.to_owned(), why });
        if directory.join(VERSION_FILE).is_file() {
            if directory.join("postmaster.pid").exists() {
                return refuse(
                    "it is the data directory of a running server; take a copy of it, with pg_basebackup"
                        .to_owned(),
                );
            }
            let mut tablespaces = entries(&directory.join("pg_tblspc"))?;
            if let Some(first) = tablespaces.next() {
                return refuse(with_tablespaces(&first));
            }
            return Ok(Self::Plain);
        }
        let mut archives: Vec<String> = entries(directory)?.filter(|name| name.contains(".tar")).collect();
        archives.sort();
        let mut form = (None, None);
        for name in archives {
            let (stem, ending) = name.split_once('.').unwrap_or((&name, ""));
            match (stem, ending) {
                (_, "tar.lz4") => {
                    return refuse(format!(
                        "{name} is compressed by lz4, which pgdyno does not read; decompress it"
                    ));
                }
                ("base", "tar" | "tar.gz" | "tar.zst") => form.0 = Some(directory.join(name)),
                ("pg_wal" | "pg_xlog", "tar" | "tar.gz" | "tar.zst") => form.1 = Some(directory.join(name)),
                (oid, _) if oid.chars().all(|c| c.is_ascii_digit()) => return refuse(with_tablespaces(oid)),
                _ => {}
            }
        }
        match form {
            (Some(base), wal) => Ok(Self::Tar { base, wal }),
            _ => refuse(
                "it has neither PG_VERSION nor base.tar; expected the directory that pg_basebackup wrote"
                    .to_owned(),
            ),
        }
    }
}

fn with_tablespaces(first: &str) -> String {
    format!(
        "it has tablespaces ({first} is one), which pgdyno does not copy; move their tables to pg_default before the backup, or \
         use a dump"
    )
}

/// Names in a directory; none if it is missing.
fn entries(directory: &Path) -> Result<impl Iterator<Item = String> + use<>, Error> {
    let found = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        found => Some(found.doing("read the directory", directory)?),
    };
    Ok(found.into_iter().flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()))
}

/// Checks that a directory is a base backup for servers of a major, if that is known.
///
/// # Errors
/// It is none, or of another major.
pub(crate) fn check(directory: &Path, major: Option<Major>) -> Result<(), Error> {
    let form = Form::of(directory)?;
    let refuse = |why: String| Err(Error::BaseBackup { directory: directory.to_owned(), why });
    let text = match &form {
        Form::Plain => {
            let file = directory.join(VERSION_FILE);
            Some(read_regular(&file).doing("read", &file)?)
        }
        Form::Tar { base, .. } => version_in(base)?,
    };
    let Some(text) = text else { return refuse(format!("there is no {VERSION_FILE} in base.tar")) };
    let Some(version) = Major::from_reported(text.trim()) else {
        return refuse(format!("its {VERSION_FILE} is {:?}, no version", text.trim()));
    };
    match major {
        Some(major) if major != version => refuse(format!(
            "it is of PostgreSQL {version}, and a server of {major} can't read its files; leave this server out, or use a dump"
        )),
        _ => Ok(()),
    }
}

/// `PG_VERSION` of an archive.
fn version_in(archive: &Path) -> Result<Option<String>, Error> {
    let mut archive_file = unpack::open(archive)?;
    for entry in archive_file.entries().doing("read", archive)? {
        let mut entry = entry.doing("read", archive)?;
        let path = entry.path().doing("read", archive)?;
        if path.strip_prefix("./").unwrap_or(&path) == Path::new(VERSION_FILE) {
            let mut text = String::new();
            entry.by_ref().take(16).read_to_string(&mut text).doing("read", archive)?;
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// Size of the WAL segments in a data directory.
pub(crate) fn wal_segment_bytes(data: &Path) -> Option<u64> {
    let is_segment = |name: &str| name.len() == 24 && name.chars().all(|c| c.is_ascii_hexdigit());
    ["pg_wal", "pg_xlog"].iter().find_map(|wal| {
        let wal = data.join(wal);
        let segment = entries(&wal).ok()?.find(|name| is_segment(name))?;
        fs::symlink_metadata(wal.join(segment)).ok().map(|meta| meta.len())
    })
}
