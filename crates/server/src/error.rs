//! Errors of getting, filling, running and asking servers, and what to do about them.

use std::io;
use std::path::PathBuf;

use host::MAKE_ROOM;
use model::version::NotAVersion;
use wire::blocking::SessionError;

/// SQLSTATE disk_full.
const DISK_FULL: &str = "53100";

/// Error of getting, filling, starting, asking or stopping a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Work on this host failed, or the user ended it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A text that does not have the form of a PostgreSQL version.
    #[error(transparent)]
    NotAVersion(#[from] NotAVersion),
    /// No archive has this version.
    #[error(
        "there is no embedded PostgreSQL {wanted}; available are {}, and earlier minor releases of these",
        available.join(", ")
    )]
    NoSuchVersion {
        /// The version that was asked for.
        wanted: String,
        /// The newest release of each major.
        available: Vec<String>,
    },
    /// The archive could not be asked, or broke off.
    #[error(
        "could not {doing} from {archive}: {why}; check the network (HTTPS_PROXY is honoured), or set PGDYNO_MIRROR to \
         a mirror of that Maven repository"
    )]
    Download {
        /// What was tried.
        doing: String,
        /// Where.
        archive: String,
        /// Why it failed.
        why: String,
    },
    /// What came is not what the archive's checksum says; nothing of it was kept.
    #[error(
        "the download of PostgreSQL {version} from {archive} is corrupt ({why}) and was thrown away; try again, or \
         use another mirror (PGDYNO_MIRROR)"
    )]
    Corrupt {
        /// Which version.
        version: String,
        /// Where from.
        archive: String,
        /// How that shows.
        why: String,
    },
    /// The version is not installed.
    #[error("PostgreSQL {version} is not installed; `pgdyno server list` shows what is")]
    NotInstalled {
        /// Which version.
        version: String,
    },
    /// Something is used by a running server or another pgdyno.
    #[error("{what} is in use by {by}; stop that first")]
    InUse {
        /// What.
        what: String,
        /// Who uses it.
        by: String,
    },
    /// A directory does not hold a server's programs, or not any that can be run.
    #[error("the programs in {directory} can't be used: {why}")]
    Programs {
        /// The directory that was given.
        directory: PathBuf,
        /// Why.
        why: String,
    },
    /// A server that pgdyno does not own.
    #[error(
        "a server that is given by a connection string has no programs that pgdyno could start; give its version, a \
         directory of programs or a source instead"
    )]
    NoPrograms,
    /// What is to be built is not there, or no source of PostgreSQL.
    #[error("can't build PostgreSQL from {location}: {why}")]
    Source {
        /// The directory or tarball.
        location: PathBuf,
        /// Why.
        why: String,
    },
    /// A tool that a build needs is missing.
    #[error(
        "building PostgreSQL needs `{tool}`, which can't be found in PATH; install it (Debian: apt-get install {package})"
    )]
    Tool {
        /// Its command.
        tool: String,
        /// The Debian package that has it.
        package: String,
    },
    /// A step of a build failed.
    #[error("could not {step} from {location} ({why}). The whole log is {log}; its last lines:\n{output}")]
    Build {
        /// The step, and what is built.
        step: String,
        /// The directory or tarball of the source.
        location: PathBuf,
        /// How that shows.
        why: String,
        /// The log of the whole build.
        log: PathBuf,
        /// The end of it.
        output: Box<str>,
    },
    /// A data set was asked for that was never made.
    #[error("there is no template of {content} for PostgreSQL {server}: it has to be made first")]
    NoTemplate {
        /// The server version.
        server: String,
        /// What was to be in it.
        content: String,
    },
    /// No data set is so called, or is of that server or scale.
    #[error("there is no data set {wanted}; `pgdyno dataset list` shows what there is")]
    NoDataset {
        /// What was asked for.
        wanted: String,
    },
    /// Data sets would not fit onto the disk.
    #[error("{0}")]
    DiskNeed(String),
    /// `PGDYNO_DATASETS_MAX` is no size.
    #[error(
        "PGDYNO_DATASETS_MAX is \"{text}\": expected a number and a unit (kB, MB, GB or TB), such as \"50GB\""
    )]
    NotASize {
        /// What it is set to.
        text: String,
    },
    /// A statement of a workload's setup was refused.
    #[error(
        "the setup of the workload \"{workload}\" failed at {place} on {server}: {why}; mend the statement there, or leave \
         this server out"
    )]
    Setup {
        /// The workload.
        workload: String,
        /// The server.
        server: String,
        /// Where the statement is.
        place: String,
        /// What the server said.
        why: String,
    },
    /// pgbench has no such scale.
    #[error("scale {scale} can't be loaded: expected 1 to {max}")]
    Scale {
        /// The scale that was asked for.
        scale: u32,
        /// The largest scale.
        max: u32,
    },
    /// A server setting that can't be written, or that pgdyno must set itself.
    #[error("the server setting \"{name}\" can't be used: {why}")]
    Setting {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// An option of `initdb` that pgdyno must set itself.
    #[error(
        "the initdb option \"{option}\" can't be used: pgdyno says itself where the data are and who gets in, and needs \
         a data directory to come of it; leave it out"
    )]
    InitdbOption {
        /// As it was given.
        option: String,
    },
    /// `initdb` failed.
    #[error(
        "initdb of PostgreSQL {version}{} failed on {directory} ({status}){}. Its last lines:\n{output}",
        with(options),
        initdb_advice(options, output)
    )]
    Initdb {
        /// Which version.
        version: String,
        /// The options that it was given, in addition to pgdyno's.
        options: String,
        /// The data directory to be.
        directory: PathBuf,
        /// How it ended.
        status: String,
        /// What it said.
        output: Box<str>,
    },
    /// The server ended, or was not ready in time.
    #[error(
        "PostgreSQL {version} did not start on {directory}: {why}; check the settings it was given. Last lines of its \
         log:\n{log}"
    )]
    Start {
        /// Which version.
        version: String,
        /// Its data directory.
        directory: PathBuf,
        /// How that shows.
        why: String,
        /// The end of its log.
        log: String,
    },
    /// A server can't be held to its limits here.
    #[error("can't limit {what}: {source}")]
    Limit {
        /// What, and to how much.
        what: String,
        /// Why, and what to do.
        source: LimitError,
    },
    /// The server refused a statement of a workload.
    #[error("{place}: {why}")]
    Statement {
        /// Where the statement is.
        place: String,
        /// The server's message.
        why: String,
    },
    /// The server was asked something and did not answer.
    #[error("could not {doing} on the server {server}: {why}; see its log")]
    Sql {
        /// What was tried.
        doing: String,
        /// The server: where its data are, or its name and address.
        server: String,
        /// What came back.
        why: String,
    },
    /// Processes that do not end even when killed.
    #[error("PostgreSQL processes {pids:?} on {directory} do not end; kill them by hand, or look at dmesg")]
    WontStop {
        /// Their ids.
        pids: Vec<u32>,
        /// The data directory.
        directory: PathBuf,
    },
    /// An instance is not there, or not as it is wanted.
    #[error("{0}")]
    Instance(String),
    /// A server that pgdyno does not own can't be used as asked.
    #[error("the server {server}: {why}")]
    External {
        /// Its name and address.
        server: String,
        /// What can't be, and what to do.
        why: String,
    },
}

impl Error {
    /// Whether the user ended it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Host(host::Error::Interrupted))
    }
}

/// Why control groups can't hold a server to limits.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The kernel's list of groups or mounts can't be read.
    #[error("{file} can't be read: {source}")]
    Read {
        /// The list.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no hierarchy.
    #[error("the kernel's control groups are not mounted (neither v2 nor, with this controller, v1)")]
    NotMounted,
    /// A group has no such controller to give.
    #[error("{group} does not have the controller {controller}")]
    NoController {
        /// The group.
        group: PathBuf,
        /// The controller.
        controller: String,
    },
    /// A group can't be made.
    #[error("{group} can't be made: {source}")]
    Make {
        /// The group.
        group: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of a group can't be written.
    #[error("\"{value}\" can't be written to {file}: {source}")]
    Write {
        /// The file.
        file: PathBuf,
        /// What was to be written.
        value: String,
        /// Why not.
        source: io::Error,
    },
    /// The kernel refuses a limit.
    #[error("the kernel did not take \"{value}\" in {file}: {source}")]
    Refused {
        /// The file of the limit.
        file: PathBuf,
        /// The limit.
        value: String,
        /// Why not.
        source: io::Error,
    },
    /// A data directory can't be inspected.
    #[error("{directory} can't be looked at: {source}")]
    Inspect {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A data directory is not on a block device.
    #[error(
        "the file system of {directory} is on no block device of its own, as tmpfs, overlay and btrfs are not; set \
         PGDYNO_CACHE to a directory on a file system that is, such as ext4 or xfs"
    )]
    NoDevice {
        /// The directory.
        directory: PathBuf,
    },
    /// No group of the hierarchy can have a group below it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Everywhere(Vec<Self>),
    /// No group could be made, with what to do.
    #[error("{source}; {advice}")]
    Groups {
        /// Why.
        source: Box<Self>,
        /// What to do.
        advice: &'static str,
    },
}

/// The server's own message if there is one, else what happened to the connection, in one line.
pub(crate) fn sql_text(error: &SessionError) -> String {
    match error.server_error() {
        Some(refused) => {
            let advice = if refused.code() == Some(DISK_FULL) { MAKE_ROOM } else { "" };
            format!("{}: {}{advice}", refused.severity, refused.message)
        }
        None => error.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn with(options: &str) -> String {
    if options.is_empty() { String::new() } else { format!(" with {options}") }
}

/// What `initdb` says of an option that it does not have comes from getopt.
fn initdb_advice(options: &str, output: &str) -> &'static str {
    let unknown = ["unrecognized option", "invalid option", "illegal option"];
    if !options.is_empty() && unknown.iter().any(|words| output.contains(words)) {
        ": this version has no such option, so leave it out here"
    } else {
        ""
    }
}
