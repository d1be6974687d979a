//! What making a trace of a log costs, against `wc -l` of the same file: time, and memory for logs of two sizes.

mod generate;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use generate::Format;
use processes::sibling_program;

/// Megabytes in bytes.
const MEGABYTE: u64 = 1_000_000;
/// How much smaller the first of the two logs is.
const SMALLER: u64 = 5;
/// Interval at which the memory of the program is read.
const MEMORY_INTERVAL: Duration = Duration::from_millis(10);

/// Compare `pgdyno replay read` with `wc -l` on generated logs
#[derive(Parser)]
struct Options {
    /// Size of the larger log of each format
    #[arg(long, default_value_t = 1000)]
    megabytes: u64,
    /// The program [default: the one next to this]
    #[arg(long)]
    pgdyno: Option<PathBuf>,
    /// Directory for the logs [default: that for temporary files]
    #[arg(long)]
    directory: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let program = match options.pgdyno {
        Some(program) => program,
        None => sibling_program("pgdyno")?,
    };
    let directory = match &options.directory {
        Some(directory) => tempfile::tempdir_in(directory),
        None => tempfile::tempdir(),
    };
    let directory = directory.context("there is no directory for the logs")?;
    let mut out = io::stdout().lock();
    writeln!(out, "format     MB  statements    wc -l s    read s  ratio  MB/s  memory MiB  trace MB")?;
    for format in [Format::Csv, Format::Stderr, Format::Json] {
        for megabytes in [options.megabytes / SMALLER, options.megabytes] {
            let log = directory.path().join(format!("server.{}", format.extension()));
            let statements = generate::write(&log, format, megabytes * MEGABYTE)?;
            let line = compare(&program, &log, statements, format)?;
            writeln!(out, "{line}")?;
            fs::remove_file(&log)?;
        }
    }
    Ok(())
}

/// A line of the table: both programs read the log once before, so that it is in the page cache if it fits.
fn compare(program: &Path, log: &Path, statements: u64, format: Format) -> Result<String> {
    let trace = log.with_extension("pgdt");
    let wc_of = || run(Command::new("wc").arg("-l").arg(log));
    wc_of()?;
    let wc = wc_of()?;
    let read = run(Command::new(program).args(["replay", "read"]).arg(log).arg("-o").arg(&trace))?;
    let bytes = fs::metadata(log)?.len() as f64;
    let trace_bytes = fs::metadata(&trace)?.len() as f64;
    let (wc_s, read_s) = (wc.time.as_secs_f64(), read.time.as_secs_f64());
    Ok(format!(
        "{:6} {:6.0}  {statements:>10}  {wc_s:>9.3}  {read_s:>8.2}  {:>5.0}  {:>4.0}  {:>10.0}  {:>8.1}",
        format.extension(),
        bytes / 1e6,
        read_s / wc_s,
        bytes / 1e6 / read_s,
        read.peak_kib as f64 / 1024.0,
        trace_bytes / 1e6
    ))
}

/// Time and memory of a program.
struct Run {
    time: Duration,
    peak_kib: u64,
}

fn run(command: &mut Command) -> Result<Run> {
    let from = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // The kernel's own maximum; of what follows the last reading, the end of the program is too short to matter.
        let text = fs::read_to_string(&status_file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        thread::sleep(MEMORY_INTERVAL);
    };
    let time = from.elapsed();
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(Run { time, peak_kib })
}
