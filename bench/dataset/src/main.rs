//! The time to fill and to copy a data set, compared with `pgbench -i` on the same machine in the same run.
//!
//! `cargo build --release -p dataset-cost`, then `dataset-cost --help`, which describes the measurement;
//! `bench/README.md` describes how to read it.
//!
//! `round.rs` measures, `table.rs` prints.

mod round;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use clap::Parser;
use host::{Cache, Progress};
use model::version::Major;
use signal_hook::consts::{SIGINT, SIGTERM};

use round::{Round, Setup};

/// Compares the time to fill a data set by pgbench and by pgdyno, and filling with copying
///
/// In each round, in alternating order: pgbench -i (client-side generation, its default) and pgdyno each fill a new
/// server of the same version and settings; pgdyno creates a whole template (initdb, start, fill, stop, sync), whose
/// peer is the same with pgbench -i; and the template is copied, and restored after a load that has written to the
/// copy.
///
/// All times are wall time. A ratio is the speed-up of pgdyno's way in one round; the output has the median of the
/// rounds and their range, and pgdyno's target. "met" and "missed" are the median's, with a question mark if the range
/// has both.
#[derive(Parser)]
struct Options {
    /// The server: a major or full PostgreSQL version, downloaded if not cached; pgbench's own if not given
    #[arg(long, value_name = "VERSION")]
    postgres: Option<String>,
    /// The pgbench to compare with; the first in PATH if not given
    #[arg(long, value_name = "PATH", default_value = "pgbench")]
    pgbench: PathBuf,
    /// pgbench's scale factor
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,
    /// Number of rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Settings of the servers that are filled, as in postgresql.conf; PostgreSQL's defaults if not given
    #[arg(long, value_name = "NAME=VALUE", num_args = 1.., value_parser = setting)]
    settings: Vec<(String, String)>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let console = Console::on_signals()?;
    let (version, major) = pgbench_version(&options.pgbench)?;
    let cache = Cache::open()?;
    server::sweep(&cache)?;
    let installation = server::install(&cache, options.postgres.as_deref().unwrap_or(&major), &console)?;
    let settings: BTreeMap<String, String> = options.settings.into_iter().collect();

    let mut out = stdout();
    writeln!(out, "A: {version}\nB: pgdyno {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(
        out,
        "PostgreSQL {}, scale {}, {} rounds; settings {settings:?}",
        installation.version(),
        options.scale,
        options.rounds
    )?;
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(out, "load average at the start: {load} (other load widens the ranges)")?;
    }
    let setup = Setup {
        cache: &cache,
        installation: &installation,
        settings: &settings,
        scale: options.scale,
        pgbench: &options.pgbench,
        console: &console,
    };
    let mut rounds = Vec::new();
    for number in 0..options.rounds {
        rounds.push(Round::measure(&setup, number % 2 == 0)?);
    }
    table::print(&mut out, &rounds)?;
    Ok(())
}

/// The version that pgbench reports, and its major version.
fn pgbench_version(program: &PathBuf) -> Result<(String, String)> {
    let output = Command::new(program).arg("--version").output().with_context(|| {
        format!(
            "no pgbench to compare with: cannot start {}; install one or name one with --pgbench",
            program.display()
        )
    })?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let number =
        version.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
    let major = number.and_then(Major::from_reported).map(|major| major.to_string());
    let major = major.with_context(|| format!("no version in the output of pgbench: \"{version}\""))?;
    Ok((version, major))
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as shared_buffers=1GB")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Prints each step once, and handles Ctrl-C: the first requests an orderly end, the second ends at once; servers end
/// with this process either way, and the next start removes files that they left.
pub(crate) struct Console {
    interrupted: Arc<AtomicBool>,
    last: Mutex<String>,
}

impl Console {
    fn on_signals() -> Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the flag set by the first.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
                .context("could not handle Ctrl-C")?;
        }
        Ok(Self { interrupted, last: Mutex::default() })
    }
}

impl Progress for Console {
    fn step(&self, what: &str, _: u64, _: Option<u64>) {
        let Ok(mut last) = self.last.lock() else { return };
        if *last != what {
            self.notice(what);
            what.clone_into(&mut last);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn notice(&self, text: &str) {
        // Nobody may be reading stderr.
        let _ = writeln!(stderr(), "{text}");
    }
}
