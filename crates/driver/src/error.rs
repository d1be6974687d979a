//! What can go wrong on either side of the driver's pipes.

use std::io;

use rustix::io::Errno;
use wire::{LoginError, ProtocolError, ServerError};

/// What keeps the runner from having a load run; what keeps the load itself is a `Reply::Failed`.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The process could not be started.
    #[error("cannot start the driver process {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The process does not take requests any longer.
    #[error("cannot send a request to the driver process: {0}; ask it for its exit status and messages")]
    Send(io::Error),
    /// The process wrote something else than a reply.
    #[error("the driver process wrote a line that is no reply ({problem}): {line}")]
    NoReply {
        /// What is wrong with it.
        problem: String,
        /// The beginning of the line.
        line: String,
    },
    /// The process speaks another version of the messages.
    #[error(
        "the driver process speaks version {theirs} of the messages, and the runner version {ours}: \
         both have to be of the same build of pgdyno"
    )]
    Version {
        /// Its version.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
    /// The process could not be waited for.
    #[error("cannot wait for the driver process: {0}")]
    Wait(io::Error),
}

/// Why a load could not be run at all: the text of a `Reply::Failed`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("the load cannot be run: {0}")]
    Invalid(String),
    #[error("the driver was given a request that it cannot read: {0}")]
    Request(String),
    #[error("the script cannot be run: {0}")]
    Script(String),
    #[error(
        "{clients} clients need {needed} open files, and this process may have {allowed}: \
         raise the hard limit (`ulimit -Hn`, LimitNOFILE of a systemd unit) or use fewer clients"
    )]
    TooManyFiles { clients: u32, needed: u64, allowed: u64 },
    #[error("cannot find the address of host \"{host}\": {source}")]
    Resolve { host: String, source: io::Error },
    #[error("\"{path}\" cannot be the path of a socket ({source}): a path may have 107 bytes")]
    SocketPath { path: String, source: Errno },
    #[error("cannot connect to {server}: {source}; is the server running there, and listening?")]
    Connect { server: String, source: Errno },
    #[error("cannot connect all clients to {server} within {seconds} s; the last reason was: {last}")]
    ConnectTimeout { server: String, seconds: u64, last: String },
    #[error("{server} does not let role \"{user}\" into database \"{database}\": {source}{}", advice(source))]
    Login { server: String, user: String, database: String, source: Box<LoginError> },
    #[error("{server} closed the connection during the login")]
    ClosedInLogin { server: String },
    #[error(
        "the server cannot prepare the statements of script {script}: {source}{}",
        prepare_advice(source)
    )]
    Prepare { script: String, source: Box<ServerError> },
    #[error("the server's answer cannot be understood: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("a system call of the driver failed: {0}")]
    System(#[from] Errno),
    #[error("cannot start a thread of the driver: {0}")]
    Thread(io::Error),
    #[error("internal error of the driver, please report it: {0}")]
    Internal(String),
}

/// What to do about a refused login.
fn advice(error: &LoginError) -> &'static str {
    let code = match error {
        LoginError::Refused(error) => error.code(),
        LoginError::PasswordMissing { .. } => return "; give one with the connection",
        _ => None,
    };
    match code {
        Some("53300") => "; raise max_connections of the server (it needs a restart) or use fewer clients",
        Some("3D000") => "; create the database or name another one",
        Some("28P01") => "; check user and password",
        Some("28000") => "; check the user and the server's pg_hba.conf",
        _ => "",
    }
}

/// What to do where a statement cannot be prepared.
fn prepare_advice(error: &ServerError) -> &'static str {
    match error.code() {
        Some("42P01") => "; has the data set been created in this database?",
        _ => "",
    }
}
