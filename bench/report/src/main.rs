//! Size of the report, and speed of opening and panning it, with a campaign that is larger than most.
//!
//! `cargo build --release -p pgdyno -p report-speed`, then `target/release/report-speed --help`, which describes the
//! measurement; `bench/README.md` describes how to read it.
//!
//! `campaign.rs` generates the trials, `browser.rs` opens the page, `table.rs` prints.

mod browser;
mod campaign;
mod table;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write, stderr, stdout};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use processes::sibling_program;
use serde::Deserialize;

use browser::Browser;
use campaign::{Size, fill};
use table::{Limit, Row};

/// Measures the report of a large campaign, in a file and served
///
/// Trials are synthetic, generated from a seed, as only size and speed matter. One store has the campaign, another a
/// single trial that is very long, and a third many runs of short ones. All are removed at the end. Headless Chromium opens the page; times are from
/// navigation to the first chart that has been drawn, medians of the rounds, each with a new profile of the browser.
#[derive(Parser)]
struct Options {
    /// Trials of the campaign
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Seconds of each trial
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Metrics of each trial
    #[arg(long, default_value_t = 60)]
    metrics: u32,
    /// Seconds of the long trial
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    long: u64,
    /// Runs of ten short trials whose histories are requested
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Number of times that the page is opened
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The pgdyno to measure; the one next to this program if not given
    #[arg(long, value_name = "PATH")]
    pgdyno: Option<PathBuf>,
    /// The browser
    #[arg(long, value_name = "PATH", default_value = "/usr/bin/chromium")]
    chromium: PathBuf,
    /// The front end's directory, which has the built page, and playwright-core among its modules
    #[arg(long, value_name = "DIRECTORY", default_value = "web")]
    web: PathBuf,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let pgdyno = match &options.pgdyno {
        Some(path) => path.clone(),
        None => sibling_program("pgdyno")?,
    };
    let page =
        fs::metadata(options.web.join("dist/index.html")).context("the page is not built: run make web")?;
    fs::metadata(&pgdyno)
        .with_context(|| format!("there is no {}: run cargo build --release -p pgdyno", pgdyno.display()))?;
    let folder = tempfile::tempdir()?;
    let size = Size { runs: 1, trials: options.trials, seconds: options.seconds, metrics: options.metrics };
    let long = Size { runs: 1, trials: 1, seconds: options.long, metrics: 4 };
    let short = Size { runs: options.runs, trials: 10, seconds: 10, metrics: 4 };
    let [many, alone, runs] = ["many", "long", "runs"].map(|name| folder.path().join(name));
    let progress = |done: u32| {
        if done.is_multiple_of(50) {
            let _ = writeln!(stderr(), "{done} trials generated");
        }
    };
    let ids = fill(&many, size, options.seed, progress)?;
    let long_ids = fill(&alone, long, options.seed, progress)?;
    let short_ids = fill(&runs, short, options.seed, progress)?;
    let (Some(trial), Some(long_trial)) = (ids.get(ids.len() / 2), long_ids.first()) else {
        bail!("no trial was generated")
    };

    let mut out = stdout();
    writeln!(
        out,
        "{} trials × {} s × {} metrics, and one of {} s; medians of {}\n\n{}",
        size.trials,
        size.seconds,
        size.metrics,
        long.seconds,
        options.rounds,
        table::HEAD
    )?;
    let mut print = |row: Row| writeln!(out, "{row}").and_then(|()| out.flush());

    print(Row::bytes("front end", page.len() as f64, Limit::Below(450e3)))?;
    let file = folder.path().join("report.html");
    let seconds = report(&pgdyno, &many, &file)?;
    print(Row::seconds("`pgdyno report -o`", seconds, Limit::Unlimited))?;
    print(Row::bytes("the file", fs::metadata(&file)?.len() as f64, Limit::Below(21e6)))?;

    let browser = Browser { web: &options.web, chromium: &options.chromium, rounds: options.rounds };
    let of_file = browser.open(&format!("file://{}", file.display()), trial)?;
    print(Row::seconds("from the file to the first chart", of_file.first_chart_s, Limit::Below(2.0)))?;
    print(Row::maybe_seconds("to a trial in detail, from there", of_file.trial_s, Limit::Unlimited))?;

    let server = ReportServer::start(&pgdyno, &many)?;
    let of_store = browser.open(&server.url, trial)?;
    print(Row::seconds("from `pgdyno serve` to the first chart", of_store.first_chart_s, Limit::Below(1.0)))?;
    print(Row::maybe_seconds("to a trial in detail, from there", of_store.trial_s, Limit::Unlimited))?;
    drop(server);

    let server = ReportServer::start(&pgdyno, &alone)?;
    let panned = browser.pan(&server.url, long_trial)?;
    let what = format!("frames per second, panning {} points", panned.points.unwrap_or_default());
    print(Row::number(what, panned.frames_per_s, Limit::Above(30.0)))?;
    print(Row::maybe_seconds("the longest of these frames", panned.longest_frame_s, Limit::Unlimited))?;
    drop(server);

    let (seconds, memory) = histories(&pgdyno, &runs)?;
    let what = format!("first histories of {} trials", short_ids.len());
    print(Row::seconds(&what, seconds, Limit::Below(2.0)))?;
    print(Row::bytes("most memory, at 30 such requests for different runs", memory, Limit::Below(300e6)))?;
    Ok(())
}

/// Time of a server's first response with histories, and its peak memory after parallel requests for those of other runs.
fn histories(pgdyno: &Path, store: &Path) -> Result<(f64, f64)> {
    let server = ReportServer::start(pgdyno, store)?;
    let runs: Vec<RunHead> = serde_json::from_str(&server.get("/api/runs")?)?;
    let paths: Vec<_> =
        runs.iter().rev().take(30).map(|run| format!("/api/runs/{}/histories", run.id)).collect();
    drop(server);
    let Some(first) = paths.first() else { bail!("the store has no run") };
    let server = ReportServer::start(pgdyno, store)?;
    let begun = Instant::now();
    server.get(first)?;
    let seconds = begun.elapsed().as_secs_f64();
    std::thread::scope(|scope| {
        let requests: Vec<_> = paths.iter().map(|path| scope.spawn(|| server.get(path))).collect();
        requests.into_iter().try_for_each(|request| match request.join() {
            Ok(response) => response.map(|_| ()),
            Err(_) => bail!("a request panicked"),
        })
    })?;
    Ok((seconds, server.peak_memory_bytes()?))
}

#[derive(Deserialize)]
struct RunHead {
    id: String,
}

/// Time to write the report file, in seconds.
fn report(pgdyno: &Path, store: &Path, file: &Path) -> Result<f64> {
    let begun = Instant::now();
    let output = Command::new(pgdyno)
        .args(["report", "--store"])
        .arg(store)
        .arg("-o")
        .arg(file)
        .output()
        .with_context(|| format!("could not start {}", pgdyno.display()))?;
    if !output.status.success() {
        bail!("pgdyno report failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    write!(stderr(), "{}", String::from_utf8_lossy(&output.stderr))?;
    Ok(begun.elapsed().as_secs_f64())
}

/// A `pgdyno serve`, killed when dropped.
struct ReportServer {
    child: Child,
    url: String,
}

impl ReportServer {
    fn start(pgdyno: &Path, store: &Path) -> Result<Self> {
        let mut child = Command::new(pgdyno)
            .args(["serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(store)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("could not start {}", pgdyno.display()))?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut url)?;
        }
        let server = Self { child, url: url.trim().to_owned() };
        match server.url.is_empty() {
            true => bail!("pgdyno serve printed no address"),
            false => Ok(server),
        }
    }

    /// The body of a response.
    fn get(&self, path: &str) -> Result<String> {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        match response.split_once("\r\n\r\n") {
            Some((head, body)) if head.contains(" 200 OK") => Ok(body.to_owned()),
            _ => bail!("pgdyno serve answered {path} by: {response}"),
        }
    }

    fn peak_memory_bytes(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        let kb: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kb * 1024.0)
    }
}

impl Drop for ReportServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
