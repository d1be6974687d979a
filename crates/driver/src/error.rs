//! Errors of either side of the driver's pipes.

use std::io;

use model::outage::Outage;
use rustix::io::Errno;
use wire::LoginError;

/// Errors that keep the runner from running a load; those of the load itself arrive as `Reply::Failed`.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The process could not be started.
    #[error("cannot start the driver process {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The process no longer accepts requests.
    #[error("cannot send a request to the driver process: {0}; it has probably exited")]
    Send(io::Error),
    /// The process wrote a line that is not a reply.
    #[error("the driver process wrote an invalid reply ({problem}): {line}")]
    InvalidReply {
        /// The parse error.
        problem: String,
        /// The beginning of the line.
        line: String,
    },
    /// The process uses another version of the messages.
    #[error(
        "the driver process uses version {driver} of the messages, the runner version {runner}: \
         both must be from the same build of pgdyno"
    )]
    Version {
        /// Version of the process.
        driver: u32,
        /// Version of the runner.
        runner: u32,
    },
    /// Reading from the process, killing it or waiting for it failed.
    #[error("cannot wait for the driver process: {0}")]
    Wait(io::Error),
}

/// Errors that keep a load from running or continuing.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The load is invalid.
    #[error("the load cannot be run: {0}")]
    Invalid(String),
    /// The runner sent an invalid request.
    #[error("the driver received an invalid request: {0}")]
    Request(String),
    /// The runner has exited.
    #[error("the runner has exited")]
    RunnerExited,
    /// A trace cannot be played.
    #[error(transparent)]
    Trace(#[from] trace::TraceError),
    /// A script cannot be run.
    #[error("the script cannot be run: {0}")]
    Script(String),
    /// The limit on open files is too low.
    #[error(
        "{clients} clients need {needed} open files, but this process is limited to {allowed}: \
         raise the hard limit (`ulimit -Hn`, LimitNOFILE of a systemd unit) or use fewer clients"
    )]
    TooManyFiles {
        /// Requested clients.
        clients: u32,
        /// Open files that they need.
        needed: u64,
        /// Open files allowed.
        allowed: u64,
    },
    /// A host name cannot be resolved.
    #[error("could not translate host name \"{host}\" to address: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// A path is too long for a socket.
    #[error("cannot use \"{path}\" as the path of a socket ({source}): the maximum is 107 bytes")]
    SocketPath {
        /// The path.
        path: String,
        /// The cause.
        source: Errno,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be used: {0}")]
    Tls(String),
    /// A client cannot connect.
    #[error("could not connect client {client}: {failures}{}", source.as_deref().map(advice).unwrap_or_default())]
    Connect {
        /// The client.
        client: u32,
        /// The attempts and their errors, in libpq's words.
        failures: String,
        /// The outage that is the reason for all of them, if it is one.
        outage: Option<Outage>,
        /// The last login error.
        source: Option<Box<LoginError>>,
    },
    /// The server accepts no further clients.
    #[error(
        "no client could connect to {server} for {seconds} s ({ready} are connected); last reason: {last}"
    )]
    ConnectTimeout {
        /// The server.
        server: String,
        /// Number of the thread's clients that are connected.
        ready: usize,
        /// Time without progress, in seconds.
        seconds: u64,
        /// The last reason.
        last: String,
    },
    /// A client was aborted, and the load with it.
    #[error("the load was aborted because client {client} was aborted")]
    Aborted {
        /// The client.
        client: u32,
    },
    /// The transaction log cannot be written.
    #[error("cannot write the transaction log: {0}; is the disk full?")]
    Log(io::Error),
    /// io_uring was requested and cannot be used.
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
    /// Intervals of a part of a load did not arrive.
    #[error(
        "some of its intervals were lost on their way: those that arrived have {arrived} of its {ended} transactions; the NATS \
         server's log says whether it was restarted, or dropped messages for a slow consumer"
    )]
    LostIntervals {
        /// Transactions of the intervals that arrived.
        arrived: u64,
        /// Transactions of its outcome.
        ended: u64,
    },
    /// A bug in the driver.
    #[error("internal error of the driver, please report it: {0}")]
    Internal(String),
}

impl LoadError {
    /// The outage that is the reason, if it is one.
    pub fn outage(&self) -> Option<Outage> {
        match self {
            Self::Connect { outage, .. } => *outage,
            Self::Resolve { .. } | Self::ConnectTimeout { .. } => Some(Outage::Unreachable),
            Self::System(error) => outage_of(*error),
            Self::Thread(error) | Self::Uring(error) | Self::Log(error) => {
                host::is_exhausted(error).then_some(Outage::Exhausted)
            }
            _ => None,
        }
    }
}

/// The outage that an error of a system call shows, if it does.
pub(crate) fn outage_of(error: Errno) -> Option<Outage> {
    let error = io::Error::from(error);
    if host::is_exhausted(&error) {
        Some(Outage::Exhausted)
    } else if wire::is_unreachable(&error) {
        Some(Outage::Unreachable)
    } else {
        None
    }
}

/// The SQLSTATE of a refused login, with advice.
fn advice(error: &LoginError) -> String {
    let code = match error {
        LoginError::Rejected(error) => error.code(),
        LoginError::PasswordMissing { .. } => {
            return "; the server requires a password: add one to the connection".to_owned();
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
