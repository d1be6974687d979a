//! Errors of obtaining, filling, running and querying servers, with advice.

use std::io;
use std::path::PathBuf;

use host::DISK_FULL_ADVICE;
use model::outage::Outage;
use model::secret::mask;
use model::version::ParseVersionError;
use wire::blocking::SessionError;

/// SQLSTATE disk_full.
pub const DISK_FULL: &str = "53100";
/// What a server's log says of a disk without space, or of a user who may have no more of it.
pub(crate) const DISK_FULL_TEXTS: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// Error of obtaining, filling, starting, querying or stopping a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Work on this host failed, or the user interrupted it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A text that is not a PostgreSQL version.
    #[error(transparent)]
    NotAVersion(#[from] ParseVersionError),
    /// No archive has this version.
    #[error(
        "there is no embedded PostgreSQL {wanted}; available are {} and their earlier minor releases",
        available.join(", ")
    )]
    NoSuchVersion {
        /// Requested version.
        wanted: String,
        /// Newest release of each major.
        available: Vec<String>,
    },
    /// The archive did not answer, or the transfer was interrupted.
    #[error(
        "could not {doing} from {archive}: {why}; check the network (HTTPS_PROXY is honoured), or set PGDYNO_MIRROR to \
         a mirror of that Maven repository"
    )]
    Download {
        /// Operation.
        doing: String,
        /// Archive.
        archive: String,
        /// Cause.
        why: String,
    },
    /// The mirror has no TLS.
    #[error(
        "PGDYNO_MIRROR is {mirror}: without TLS, anyone on the way can replace the programs that are downloaded; use an \
         https:// URL, or allow it with --insecure-mirror (releases that this pgdyno knows are verified all the same)"
    )]
    InsecureMirror {
        /// Its URL.
        mirror: String,
    },
    /// The mirror is no URL of a Maven repository.
    #[error(
        "PGDYNO_MIRROR is {mirror:?}, which is not an https:// URL; set it to the base URL of a Maven repository"
    )]
    NotAMirror {
        /// Its value.
        mirror: String,
    },
    /// The download is not the archive that this release of pgdyno knows; nothing of it was kept.
    #[error(
        "the download of PostgreSQL {version} from {archive} was discarded: it has the checksum that is published \
         there, but is not the archive that this pgdyno knows (SHA-512 {sha512}, expected {pin}). Somebody may have \
         replaced it: use another mirror (PGDYNO_MIRROR), and report it"
    )]
    NotThePinnedArchive {
        /// Version.
        version: String,
        /// Archive.
        archive: String,
        /// SHA-512 of the download, in hexadecimal.
        sha512: String,
        /// Known SHA-512, in hexadecimal.
        pin: String,
    },
    /// The download does not match the archive's checksum; nothing of it was kept.
    #[error(
        "the download of PostgreSQL {version} from {archive} is corrupt ({why}) and was discarded; try again, or \
         use another mirror (PGDYNO_MIRROR)"
    )]
    Corrupt {
        /// Version.
        version: String,
        /// Archive.
        archive: String,
        /// Symptom.
        why: String,
    },
    /// The version is not installed.
    #[error("PostgreSQL {version} is not installed; `pgdyno server list` lists the installed versions")]
    NotInstalled {
        /// Version.
        version: String,
    },
    /// Something is in use by a running server or another pgdyno.
    #[error("{what} is in use by {by}; stop that first")]
    InUse {
        /// The resource.
        what: String,
        /// Its user.
        by: String,
    },
    /// A directory does not contain a server's programs, or none that can be run.
    #[error("the programs in {directory} can't be used: {why}")]
    Programs {
        /// The given directory.
        directory: PathBuf,
        /// Cause.
        why: String,
    },
    /// A server that pgdyno does not own.
    #[error(
        "pgdyno can't start a server that is given by a connection string; give its version, a directory of programs \
         or a source instead"
    )]
    NoPrograms,
    /// An extension can't be built.
    #[error("can't build the extension \"{name}\" from {location}: {why}")]
    Extension {
        /// Its name.
        name: String,
        /// Directory of its source.
        location: PathBuf,
        /// Reason, with a hint.
        why: String,
    },
    /// The source to build is missing, or is not a source of PostgreSQL.
    #[error("can't build PostgreSQL from {location}: {why}")]
    Source {
        /// The directory or tarball.
        location: PathBuf,
        /// Cause.
        why: String,
    },
    /// A step of a build failed.
    #[error("could not {step} from {location} ({why}). The log is {log}; its last lines:\n{output}")]
    Build {
        /// The step, and its object.
        step: String,
        /// The directory or tarball of the source.
        location: PathBuf,
        /// Symptom.
        why: String,
        /// The log of the whole build.
        log: PathBuf,
        /// End of the log.
        output: Box<str>,
    },
    /// A build whose server does not start.
    #[error(
        "PostgreSQL {version} was built from {location}, but not installed, since no server starts from it: {error}\n\
         The log of the build is {log}; other build options may help"
    )]
    UnusableBuild {
        /// Version stated in the source.
        version: String,
        /// The directory or tarball of the source.
        location: PathBuf,
        /// The log of the whole build.
        log: PathBuf,
        /// Error of `initdb` or of the start.
        error: Box<Self>,
    },
    /// All servers to be compared in pairs are the same.
    #[error(
        "{} are byte-identical: there is nothing to compare, and nothing was measured. To compare a server with itself, name \
         it twice",
        servers.join(" and ")
    )]
    Identical {
        /// Names of the servers.
        servers: Vec<String>,
    },
    /// A requested data set was never created.
    #[error("there is no template of {content} for PostgreSQL {server}: create it first")]
    NoTemplate {
        /// The server version.
        server: String,
        /// Requested content.
        content: String,
    },
    /// No data set has this name, or is of that server or scale.
    #[error("there is no data set {wanted}; `pgdyno dataset list` lists the data sets")]
    NoDataset {
        /// Requested data set.
        wanted: String,
    },
    /// Data sets would not fit onto the disk.
    #[error("{0}")]
    DiskNeed(String),
    /// A limit of the cache is not a size.
    #[error("{variable} is \"{text}\": expected a number and a unit (kB, MB, GB or TB), such as \"50GB\"")]
    NotASize {
        /// The variable.
        variable: &'static str,
        /// Its value.
        text: String,
    },
    /// A data set could not be filled because the disk is full.
    #[error(
        "the disk was full while {what} was filled in {directory}, which needs about {} MB{DISK_FULL_ADVICE}. The \
         server's log:\n{log}",
        need >> 20
    )]
    DiskFull {
        /// Server and content.
        what: String,
        /// Data directory.
        directory: PathBuf,
        /// Size of the data set in bytes.
        need: u64,
        /// Lines of the log that tell why.
        log: String,
    },
    /// A data set could not be filled, and the server's log has more about it.
    #[error("{error}. The server's log:\n{log}")]
    Fill {
        /// What failed.
        error: Box<Self>,
        /// Lines of the log that tell why.
        log: String,
    },
    /// A statement of a workload's setup was refused.
    #[error(
        "the setup of the workload \"{workload}\" failed at {place} on {server}: {why}; correct the statement, or leave \
         this server out"
    )]
    Setup {
        /// The workload.
        workload: String,
        /// The server.
        server: String,
        /// Place of the statement.
        place: String,
        /// Message of the server.
        why: String,
    },
    /// A dump can't be read.
    #[error("the dump {path} can't be restored: {why}")]
    Dump {
        /// Its file or directory.
        path: PathBuf,
        /// Cause, with advice.
        why: String,
    },
    /// The server refused a statement of a dump.
    #[error("could not restore {place} on {server}: {why}")]
    Restore {
        /// File and line of the statement, with its beginning.
        place: String,
        /// The server.
        server: String,
        /// Message of the server, with advice.
        why: String,
    },
    /// An archive of `pg_dump` can't be read here.
    #[error(
        "archives of pg_dump are read by `pg_restore`, which is neither next to the server's programs nor in PATH; install \
         it (Debian: apt-get install postgresql-client), or dump as SQL (pg_dump without --format)"
    )]
    NoPgRestore,
    /// A base backup can't be used.
    #[error("the base backup {directory} can't be used: {why}")]
    BaseBackup {
        /// Its directory.
        directory: PathBuf,
        /// Cause, with advice.
        why: String,
    },
    /// A base backup could not be recovered.
    #[error(
        "PostgreSQL {version} could not recover the base backup ({status}); it may be incomplete (take it with its WAL: \
         pg_basebackup --wal-method=stream), or of another build. Last lines of its log:\n{log}"
    )]
    Recovery {
        /// Version.
        version: String,
        /// Exit status.
        status: String,
        /// End of the log.
        log: Box<str>,
    },
    /// The tested database is missing.
    #[error("{server} has no database \"{database}\"; it has {}", known.join(", "))]
    NoDatabase {
        /// The base backup, or the server.
        server: String,
        /// The database.
        database: String,
        /// Databases that exist.
        known: Vec<String>,
    },
    /// The files of a data set are no longer those that the trials are to run on.
    #[error("the {what} can't be used: {why}; put the former one back, or start a new run")]
    Changed {
        /// Kind of data set, and its path.
        what: String,
        /// Cause.
        why: String,
    },
    /// pgbench does not have such a scale.
    #[error("scale {scale} can't be loaded: expected 1 to {max}")]
    Scale {
        /// Requested scale.
        scale: u32,
        /// The largest scale.
        max: u32,
    },
    /// A server setting that can't be written, or that pgdyno sets itself.
    #[error("the server setting \"{name}\" can't be used: {why}")]
    Setting {
        /// Name.
        name: String,
        /// Cause.
        why: String,
    },
    /// An option of `initdb` that pgdyno sets itself.
    #[error(
        "the initdb option \"{option}\" can't be used: pgdyno sets the data directory and its authentication itself; \
         leave it out"
    )]
    InitdbOption {
        /// Option as given.
        option: String,
    },
    /// `initdb` failed.
    #[error(
        "initdb of PostgreSQL {version}{} failed on {directory} ({status}){}{}. Its last lines:\n{output}",
        with_options(options),
        initdb_advice(options, output),
        host::process::limits_of_shell()
    )]
    Initdb {
        /// Version.
        version: String,
        /// Options in addition to pgdyno's.
        options: String,
        /// Intended data directory.
        directory: PathBuf,
        /// Exit status.
        status: String,
        /// Output.
        output: Box<str>,
    },
    /// The server ended, or was not ready in time.
    #[error(
        "PostgreSQL {version} did not start on {directory}: {why}; check its settings{}. Last lines of its log:\n{log}",
        host::process::limits_of_shell()
    )]
    Start {
        /// Version.
        version: String,
        /// Data directory.
        directory: PathBuf,
        /// Symptom.
        why: String,
        /// End of the log.
        log: String,
    },
    /// A server can't be limited here.
    #[error("can't limit {what}: {source}")]
    Limit {
        /// The limited resource, and the limit.
        what: String,
        /// Cause, with advice.
        source: LimitError,
    },
    /// The server refused a statement of a workload.
    #[error("{place}: {why}")]
    Statement {
        /// Place of the statement.
        place: String,
        /// The server's message.
        why: String,
    },
    /// An error with one of a campaign's servers.
    #[error("the server \"{server}\": {error}")]
    OfServer {
        /// Its name in the campaign.
        server: String,
        /// The error, which does not have that name.
        error: Box<Self>,
    },
    /// The server did not answer a query.
    #[error("could not {doing} on the server {server}: {why}; see its log")]
    Sql {
        /// Operation.
        doing: String,
        /// Server: its data directory, or its name and address.
        server: String,
        /// Error received.
        why: String,
        /// The outage that is the reason, if it is one.
        outage: Option<Outage>,
    },
    /// A standby, a subscriber or a pooler does not work as a trial needs it.
    #[error("the {companion} {why}")]
    Companion {
        /// What it is.
        companion: String,
        /// What is wrong with it, with advice.
        why: String,
    },
    /// Processes that do not end even when killed.
    #[error("PostgreSQL processes {pids:?} on {directory} do not end; kill them, or see dmesg for the cause")]
    WontStop {
        /// Process IDs.
        pids: Vec<u32>,
        /// The data directory.
        directory: PathBuf,
    },
    /// An instance does not exist, or not as requested.
    #[error("{0}")]
    Instance(String),
    /// A server that pgdyno does not own can't be used as asked.
    #[error("the server {server}: {why}")]
    External {
        /// Name and address.
        server: String,
        /// Cause, with advice.
        why: String,
    },
}

impl Error {
    /// Whether the user interrupted the operation.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Host(host::Error::Interrupted) => true,
            Self::OfServer { error, .. } => error.is_interrupted(),
            _ => false,
        }
    }

    /// Whether the server itself is the reason: it can't be built, filled or started, whatever the machine's state. Others may be.
    pub fn is_of_server(&self) -> bool {
        match self {
            Self::OfServer { error, .. } => error.is_of_server(),
            Self::Build { .. }
            | Self::UnusableBuild { .. }
            | Self::Initdb { .. }
            | Self::Start { .. }
            | Self::Fill { .. }
            | Self::Setup { .. }
            | Self::Companion { .. }
            | Self::Programs { .. } => self.outage().is_none(),
            _ => false,
        }
    }

    /// The outage that is the reason, if it is one.
    pub fn outage(&self) -> Option<Outage> {
        let is_exhausted = match self {
            Self::Sql { outage, .. } => return *outage,
            Self::Start { log, .. } => exhaustion_in(log).is_some(),
            Self::DiskFull { .. } => true,
            Self::UnusableBuild { error, .. } | Self::OfServer { error, .. } => return error.outage(),
            Self::Fill { error, log } => {
                exhaustion_in(log).is_some() || error.outage() == Some(Outage::Exhausted)
            }
            Self::Initdb { output, .. } => output.contains("No space left on device"),
            Self::Build { output, .. } => host::is_exhausted_output(output),
            other => host::is_exhausted(other),
        };
        is_exhausted.then_some(Outage::Exhausted)
    }
}

/// Reason that control groups can't limit a server.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The kernel's list of groups or mounts can't be read.
    #[error("{file} can't be read: {source}")]
    Read {
        /// The list.
        file: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Control groups are not mounted.
    #[error("the kernel's control groups are not mounted (neither v2 nor, with this controller, v1)")]
    NotMounted,
    /// A group lacks the controller.
    #[error("{group} does not have the controller {controller}")]
    NoController {
        /// The group.
        group: PathBuf,
        /// The controller.
        controller: String,
    },
    /// A group can't be created.
    #[error("{group} can't be created: {source}")]
    Create {
        /// The group.
        group: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file of a group can't be written.
    #[error("\"{value}\" can't be written to {file}: {source}")]
    Write {
        /// The file.
        file: PathBuf,
        /// Value.
        value: String,
        /// Cause.
        source: io::Error,
    },
    /// The kernel refuses a limit.
    #[error("the kernel rejected \"{value}\" in {file}: {source}")]
    Refused {
        /// The file of the limit.
        file: PathBuf,
        /// The limit.
        value: String,
        /// Cause.
        source: io::Error,
    },
    /// A data directory can't be inspected.
    #[error("{directory} can't be inspected: {source}")]
    Inspect {
        /// The directory.
        directory: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A data directory is not on a block device.
    #[error(
        "the file system of {directory} has no block device of its own (as tmpfs, overlay and btrfs); set PGDYNO_CACHE \
         to a directory on a file system that has one, such as ext4 or xfs"
    )]
    NoDevice {
        /// The directory.
        directory: PathBuf,
    },
    /// No group of the hierarchy can have child groups.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoGroup(Vec<Self>),
    /// No group could be created, with advice.
    #[error("{source}; {advice}")]
    Groups {
        /// Cause.
        source: Box<Self>,
        /// Advice.
        advice: &'static str,
    },
}

/// The server's own message if there is one, else the error of the connection, in one line and without secrets.
pub(crate) fn sql_text(error: &SessionError) -> String {
    match error.server_error() {
        Some(refused) => {
            let advice = if refused.code() == Some(DISK_FULL) { DISK_FULL_ADVICE } else { "" };
            format!("{}: {}{advice}", refused.severity, mask(&refused.message))
        }
        None => mask(&error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// The outage that a session's error shows, if it does.
pub(crate) fn outage_of(error: &SessionError) -> Option<Outage> {
    let is_disk_full = error.server_error().is_some_and(|refused| refused.code() == Some(DISK_FULL));
    if is_disk_full || error.io_error().is_some_and(|error| host::is_exhausted(error)) {
        Some(Outage::Exhausted)
    } else {
        error.is_unreachable().then_some(Outage::Unreachable)
    }
}

/// The first error in a server's log that shows an exhausted host: a full disk, no more files or processes. Shared memory,
/// which a server's settings use up, has a file system of its own.
pub fn exhaustion_in(log: &str) -> Option<&str> {
    const SEVERITIES: [&str; 3] = ["ERROR:  ", "FATAL:  ", "PANIC:  "];
    const OTHER_CAUSES: [&str; 2] = ["Too many open files", "Resource temporarily unavailable"];
    log.lines().find(|line| {
        SEVERITIES.iter().any(|severity| line.contains(severity))
            && DISK_FULL_TEXTS.iter().chain(&OTHER_CAUSES).any(|cause| line.contains(cause))
            && !line.contains("shared memory segment")
    })
}

fn with_options(options: &str) -> String {
    if options.is_empty() { String::new() } else { format!(" with {options}") }
}

/// `initdb`'s message about an unknown option comes from getopt.
fn initdb_advice(options: &str, output: &str) -> &'static str {
    let unknown = ["unrecognized option", "invalid option", "illegal option"];
    if !options.is_empty() && unknown.iter().any(|words| output.contains(words)) {
        ": this version has no such option; leave it out"
    } else if output.contains("error while loading shared libraries: libstdc++.so.6") {
        ": downloaded servers need the C++ library; install it (Debian: libstdc++6, Fedora: libstdc++)"
    } else if output.contains("error while loading shared libraries") {
        ": install the library that is missing"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_an_exhausted_host_are_found_in_a_log() {
        let full =
            "2026-01-01 00:00:00.000 UTC [9] 53100 PANIC:  could not write to file: No space left on device";
        assert_eq!(exhaustion_in(&format!("LOG:  starting\n{full}\n")), Some(full));
        for harmless in [
            "LOG:  could not write statistics: No space left on device",
            "FATAL:  could not resize shared memory segment \"/PostgreSQL.7\": No space left on device",
            "FATAL:  role \"x\" does not exist",
        ] {
            assert_eq!(exhaustion_in(harmless), None);
        }
    }

    #[test]
    fn a_build_without_disk_space_says_nothing_of_its_source() {
        let build = |output: &str| Error::Build {
            step: "compile PostgreSQL 18.6".to_owned(),
            location: PathBuf::from("postgres"),
            why: "exit status: 2".to_owned(),
            log: PathBuf::from("build.log"),
            output: output.into(),
        };
        assert!(build("main.c:1: error: expected ;").is_of_server());
        let full = build("cc1: fatal error: error writing to /tmp/a.s: No space left on device");
        assert!(!full.is_of_server() && full.outage() == Some(Outage::Exhausted));
    }

    #[test]
    fn a_missing_library_is_to_be_installed() {
        let missing =
            "initdb: error while loading shared libraries: libstdc++.so.6: cannot open shared object file";
        assert!(initdb_advice("", missing).contains("libstdc++6"));
        assert!(initdb_advice("", &missing.replace("stdc++", "icuuc")).contains("install"));
        assert_eq!(initdb_advice("", "initdb: error: directory exists but is not empty"), "");
    }

    #[test]
    fn a_fill_that_the_host_could_not_take_is_an_outage() {
        let failed = || Box::new(Error::NotInstalled { version: "18".to_owned() });
        let fill = |log: &str| Error::Fill { error: failed(), log: log.to_owned() };
        assert_eq!(
            fill("FATAL:  could not open file: Too many open files").outage(),
            Some(Outage::Exhausted)
        );
        assert_eq!(fill("PANIC:  corrupt").outage(), None);
        let full = Error::DiskFull {
            what: "pgbench".to_owned(),
            directory: PathBuf::from("/data"),
            need: 1,
            log: String::new(),
        };
        assert_eq!(full.outage(), Some(Outage::Exhausted));
    }
}
