//! `null-server --directory DIR --port PORT`: see `--help`, and the library for its purpose.

use std::io::{Write, stdin, stdout};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use null_server::Listener;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

/// A PostgreSQL server of canned answers, for pgbench's select-only load (pgbench -n -S)
///
/// Prints one line when it listens, which ends with the port. Trusts everyone, and ends at SIGTERM, at Ctrl-C and when
/// its standard input ends (or a line is typed); a standard input that cannot be polled, such as /dev/null, is ignored.
#[derive(Parser)]
struct Options {
    /// Directory of the Unix-domain socket .s.PGSQL.PORT
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Sends responses in pieces of at most this many bytes, a millisecond apart
    #[arg(long, value_name = "BYTES")]
    piece: Option<NonZeroUsize>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    allow_many_connections();
    let signalled = signal_socket()?;
    let directory = &options.directory;
    let listener = Listener::bind(directory, options.port)
        .with_context(|| format!("cannot listen in {} and on port {}", directory.display(), options.port))?;
    writeln!(stdout(), "listening in {} and on 127.0.0.1, port {}", directory.display(), listener.port())?;
    listener.serve(options.piece, &[signalled.as_fd(), stdin().as_fd()]).context("cannot continue serving")
}

/// Raises the limit on open files as far as possible. If that fails, the limit is met when it is reached.
fn allow_many_connections() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// A socket that becomes readable at the first signal to end.
fn signal_socket() -> Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, theirs.try_clone()?)?;
    }
    Ok(ours)
}
