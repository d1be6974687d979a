//! What can go wrong on either side of the driver's pipes.

use std::io;

use rustix::io::Errno;
use wire::LoginError;

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

/// Why a load could not be run, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The load makes no sense.
    #[error("the load cannot be run: {0}")]
    Invalid(String),
    /// What a runner wrote is no request.
    #[error("the driver was given a request that it cannot read: {0}")]
    Request(String),
    /// The runner has gone away.
    #[error("the runner is gone")]
    RunnerGone,
    /// A script cannot be run.
    #[error("the script cannot be run: {0}")]
    Script(String),
    /// There may not be so many open files.
    #[error(
        "{clients} clients need {needed} open files, and this process may have {allowed}: \
         raise the hard limit (`ulimit -Hn`, LimitNOFILE of a systemd unit) or use fewer clients"
    )]
    TooManyFiles {
        /// Clients asked for.
        clients: u32,
        /// Files that they need.
        needed: u64,
        /// Files that there may be.
        allowed: u64,
    },
    /// A host has no address.
    #[error("could not translate host name \"{host}\" to address: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// A path is too long for a socket.
    #[error("\"{path}\" cannot be the path of a socket ({source}): a path may have 107 bytes")]
    SocketPath {
        /// The path.
        path: String,
        /// Why.
        source: Errno,
    },
    /// What TLS needs cannot be had.
    #[error("TLS cannot be used: {0}")]
    Tls(String),
    /// A client gets no session.
    #[error("could not connect client {client}: {failures}{}", source.as_deref().map(advice).unwrap_or_default())]
    Connect {
        /// The client.
        client: u32,
        /// What was tried, and why it failed, in libpq's words.
        failures: String,
        /// What the server said last.
        source: Option<Box<LoginError>>,
    },
    /// The server does not let further clients in.
    #[error(
        "no further client could be connected to {server} for {seconds} s, {ready} are; the last reason was: {last}"
    )]
    ConnectTimeout {
        /// The server.
        server: String,
        /// How many of a thread's clients were connected.
        ready: usize,
        /// For how long nothing happened.
        seconds: u64,
        /// What the server said.
        last: String,
    },
    /// A client was aborted, and the load with it.
    #[error("the load was aborted because client {client} was")]
    Aborted {
        /// The client.
        client: u32,
    },
    /// The transaction log cannot be written.
    #[error("cannot write the transaction log: {0}; is the disk full?")]
    Log(io::Error),
    /// io_uring was asked for and cannot be used.
    #[error(
        "io_uring cannot be used ({0}): it needs Linux 6.1, and neither the setting kernel.io_uring_disabled nor a \
         container's seccomp profile may forbid it; epoll always works"
    )]
    Uring(io::Error),
    /// A system call failed.
    #[error("a system call of the driver failed: {0}")]
    System(#[from] Errno),
    /// A thread cannot be started.
    #[error("cannot start a thread of the driver: {0}")]
    Thread(io::Error),
    /// A mistake of ours.
    #[error("internal error of the driver, please report it: {0}")]
    Internal(String),
}

/// The SQLSTATE of a refused login, and what to do about it.
fn advice(error: &LoginError) -> String {
    let code = match error {
        LoginError::Refused(error) => error.code(),
        LoginError::PasswordMissing { .. } => {
            return "; the server asks for a password, give one with the connection".to_owned();
        }
        _ => None,
    };
    let Some(code) = code else { return String::new() };
    let advice = match code {
        "53300" => "; raise max_connections of the server (it needs a restart) or use fewer clients",
        "3D000" => "; create the database or name another one",
        "28P01" => "; check user and password",
        "28000" => "; check the user and the server's pg_hba.conf",
        _ => "",
    };
    format!(" (SQLSTATE {code}){advice}")
}
