//! A PostgreSQL server in a guest: its programs at their paths on this machine, and its data.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, DATA};
use crate::dataset::template::Template;
use crate::error::Error;
use crate::programs::installation::{Installation, Record};
use host::Cache;
use host::IoContext;
use host::ServerUser;

/// Description of a guest's server.
const DESCRIPTION: &str = "/server.json";
/// Programs that run in a guest.
const PROGRAMS: [&str; 1] = ["postgres"];
/// Directory that a file system creates itself.
const LOST_AND_FOUND: &str = "lost+found";

/// The parts of [`Installation`] for a server in a guest.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    identity: String,
    directory: PathBuf,
    programs: PathBuf,
    record: Record,
}

/// Files of this host that a guest needs to run a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestServer {
    /// Programs, each with the libraries that it is linked to.
    pub programs: Vec<PathBuf>,
    /// Directories that the server reads while it runs, at the same place in the guest; only files that are
    /// [`is_runtime_file`].
    pub directories: Vec<PathBuf>,
    /// Loadable libraries, whose dependencies are needed, too.
    pub libraries: Vec<PathBuf>,
    /// Files with their content, readable by all.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Directory of clusters, readable by all.
    pub clusters: PathBuf,
    /// Data directory here, and its place in the guest.
    pub data: (PathBuf, PathBuf),
    /// Environment variables for pgdyno in the guest.
    pub environment: Vec<(String, String)>,
}

/// The server of a template for a guest.
///
/// # Errors
/// A directory can't be read.
pub fn guest_server(cache: &Cache, template: &Template) -> Result<GuestServer, Error> {
    let installation = template.installation()?;
    let directories = runtime_directories(installation, template);
    let libraries =
        directories.iter().map(|directory| libraries_in(directory)).collect::<Result<Vec<_>, _>>()?;
    let user = match cache.user() {
        ServerUser::Unprivileged { uid, gid, .. } => (*uid, *gid),
        ServerUser::Current => (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
    };
    let passwd = format!("root:x:0:0::/root:/bin/sh\npostgres:x:{}:{}::/tmp:/bin/sh\n", user.0, user.1);
    let group = format!("root:x:0:\npostgres:x:{}:\n", user.1);
    let description = Description {
        identity: installation.identity.clone(),
        directory: installation.directory.clone(),
        programs: installation.programs.clone(),
        record: installation.record.clone(),
    };
    let description = serde_json::to_vec(&description).doing("write", Path::new(DESCRIPTION))?;
    Ok(GuestServer {
        programs: PROGRAMS.map(|program| installation.program(program)).to_vec(),
        directories,
        libraries: libraries.concat(),
        files: vec![
            (PathBuf::from("/etc/passwd"), passwd.into_bytes()),
            (PathBuf::from("/etc/group"), group.into_bytes()),
            (PathBuf::from(DESCRIPTION), description),
        ],
        clusters: cache.clusters(),
        data: (template.directory().to_owned(), cache.clusters().join(DATA)),
        environment: vec![
            ("PGDYNO_CACHE".to_owned(), cache.directory().to_string_lossy().into_owned()),
            ("PGDYNO_SERVER_USER".to_owned(), "postgres".to_owned()),
            ("PATH".to_owned(), "/bin:/usr/bin:/sbin:/usr/sbin".to_owned()),
        ],
    })
}

/// Mount point of a guest's disk, where [`unpack`] finds the data on it.
pub fn disk_at(cache: &Cache) -> PathBuf {
    cache.clusters()
}

/// In a guest: the packed server.
///
/// # Errors
/// The packed files are missing.
pub fn unpack(cache: &Cache) -> Result<(Installation, Cluster), Error> {
    let path = Path::new(DESCRIPTION);
    let text = fs::read(path).doing("read", path)?;
    let known: Description = serde_json::from_slice(&text).doing("read", path)?;
    let installation = Installation {
        version: known.record.version.parse()?,
        identity: known.identity,
        directory: known.directory,
        programs: known.programs,
        record: known.record,
        stamp: None,
    };
    let data = cache.clusters().join(DATA);
    if !data.is_dir() {
        move_into_directory(&cache.clusters(), &data).doing("move the disk's content to", &data)?;
    }
    let cluster = Cluster::adopt(cache, &installation)?;
    Ok((installation, cluster))
}

/// A disk has the content of the data directory at its top: moves it into a directory of its own.
fn move_into_directory(disk: &Path, data: &Path) -> io::Result<()> {
    let entries = fs::read_dir(disk)?.collect::<io::Result<Vec<_>>>()?;
    let owner = fs::metadata(disk.join("PG_VERSION"))?;
    fs::create_dir(data)?;
    for entry in entries.iter().filter(|entry| entry.file_name() != LOST_AND_FOUND) {
        fs::rename(entry.path(), data.join(entry.file_name()))?;
    }
    fs::set_permissions(data, fs::Permissions::from_mode(0o700))?;
    chown(data, Some(owner.uid()), Some(owner.gid()))
}

/// Directories that a server reads while it runs: those of loadable libraries, and of shared files.
fn runtime_directories(installation: &Installation, template: &Template) -> Vec<PathBuf> {
    let directory = |name: &str| Some(PathBuf::from(template.facts()?.pg_config.get(name)?));
    [("PKGLIBDIR", "lib"), ("SHAREDIR", "share")]
        .into_iter()
        .map(|(name, own)| directory(name).unwrap_or_else(|| installation.directory.join(own)))
        .filter(|path| path.is_dir())
        .collect()
}

/// Static libraries are only for building, and the JIT compiler is larger than all else; without it queries are
/// interpreted, as cheap ones always are.
pub fn is_runtime_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_for_building = name.ends_with(".a") || ["pgxs", "pkgconfig", "doc", "man"].contains(&&*name);
    !is_for_building && name != "bitcode" && !name.starts_with("llvmjit")
}

/// Loadable libraries in a directory.
fn libraries_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(directory).doing("read the directory", directory)?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_loadable = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "so");
    Ok(paths.filter(|path| is_loadable(path) && path.is_file() && is_runtime_file(path)).collect())
}
