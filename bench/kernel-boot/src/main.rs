//! Costs and precision of kernels in virtual machines: the time until PostgreSQL is ready, the repeatability of counted
//! instructions, and the verdict on a small change of path length.
//!
//! `cargo build --release -p pgdyno -p kernel-boot`, then `kernel-boot --help`; `bench/README.md` describes how to read
//! it.

use std::fmt::Write as _;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;
use model::record::{Status, Trial};
use processes::sibling_program;
use store::Store;

/// Boots kernels as a campaign does, and measures their boots and runs
///
/// First, in real time under emulation without counting, alternating between kernels: the time from starting the
/// virtual machine until the first process runs in it, and until PostgreSQL accepts connections there. Then, by counted
/// instructions: the spread of a cell's runs, and the verdict on a change of the server's path length by a setting,
/// with three runs a side.
#[derive(Parser)]
struct Options {
    /// The kernels, as in campaigns
    #[arg(long, value_name = "KERNEL", value_delimiter = ',', default_value = "6.1,6.12")]
    kernels: Vec<String>,
    /// PostgreSQL in the guest
    #[arg(long, value_name = "VERSION", default_value = "18")]
    postgres: String,
    /// Boots of each kernel, and runs of the cell whose spread is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    rounds: u32,
    /// Settings that change the path length; the default ones by about 2 %
    #[arg(
        long,
        value_name = "NAME=VALUE",
        num_args = 1..,
        default_values = ["shared_preload_libraries=pg_stat_statements", "track_activities=off"]
    )]
    change: Vec<String>,
    /// The pgdyno to measure; the one next to this program if not given
    #[arg(long, value_name = "PATH")]
    pgdyno: Option<PathBuf>,
}

/// Upper bounds of the time to boot, and of the spread of counted runs.
const MAX_READY_S: f64 = 15.0;
const MAX_SPREAD: f64 = 0.005;

fn main() -> Result<()> {
    let options = Options::parse();
    let pgdyno = match &options.pgdyno {
        Some(program) => program.clone(),
        None => sibling_program("pgdyno")?,
    };
    let directory = tempfile::tempdir().context("cannot create a temporary directory")?;
    let bench = Bench { options: &options, pgdyno: &pgdyno, directory: directory.path() };
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(stdout(), "load average at the start: {load} (other load slows the boots)")?;
    }
    bench.boots()?;
    bench.spread()?;
    bench.change()
}

struct Bench<'a> {
    options: &'a Options,
    pgdyno: &'a Path,
    directory: &'a Path,
}

impl Bench<'_> {
    fn boots(&self) -> Result<()> {
        let store = self.run("boots", "tcg", self.options.rounds, "duration = '1s'", "", "")?;
        let mut out =
            "\nseconds until the guest is up and PostgreSQL is ready in it (tcg; median, range)\n".to_owned();
        for kernel in &self.options.kernels {
            let trials: Vec<Trial> = of_kernel(&store, kernel)?;
            let (mut up, mut ready) = (Vec::new(), Vec::new());
            for trial in &trials {
                let machine = store.environment(&trial.id)?.virtual_machine;
                let machine = machine.context("the trial has no virtual machine")?;
                up.push(machine.up_after_us.context("the guest did not boot")? as f64 / 1e6);
                ready.push(machine.ready_after_us.context("PostgreSQL did not start")? as f64 / 1e6);
            }
            let (up, ready) = (Range::new(up), Range::new(ready));
            let met = if ready.median < MAX_READY_S { "met" } else { "missed" };
            writeln!(out, "  {kernel}: up {up}, ready {ready}; goal: {MAX_READY_S} s, {met}")?;
        }
        Ok(stdout().write_all(out.as_bytes())?)
    }

    fn spread(&self) -> Result<()> {
        let store = self.run("spread", "icount", self.options.rounds, "duration = '5s'", "", "")?;
        let mut out =
            "\ncounted instructions: throughput in virtual time, and its spread (largest to smallest)\n"
                .to_owned();
        for kernel in &self.options.kernels {
            let trials = of_kernel(&store, kernel)?;
            let tps =
                Range::new(trials.iter().filter_map(|trial| Some(trial.summary.as_ref()?.tps)).collect());
            let spread = tps.high / tps.low - 1.0;
            let met = if spread <= MAX_SPREAD { "met" } else { "missed" };
            let instructions =
                trials.iter().filter_map(|trial| trial.summary.as_ref()?.instructions_per_transaction);
            let instructions = Range::new(instructions.collect());
            writeln!(
                out,
                "  {kernel}: {} runs, {tps} TPS, {instructions} instructions per transaction; spread {:.3} %; goal: {:.1} %, {met}",
                trials.len(),
                spread * 100.0,
                MAX_SPREAD * 100.0
            )?;
        }
        Ok(stdout().write_all(out.as_bytes())?)
    }

    fn change(&self) -> Result<()> {
        let mut settings = "[settings.baseline]\n[settings.changed]\n".to_owned();
        for change in &self.options.change {
            let (name, value) = change.split_once('=').context("--change takes NAME=VALUE")?;
            writeln!(settings, "{name} = '{value}'")?;
        }
        self.run("change", "icount", 3, "duration = '2s'", "settings = ['baseline', 'changed']", &settings)?;
        let mut out = format!(
            "\n{} with three runs a side, as `pgdyno report` prints it\n",
            self.options.change.join(", ")
        );
        let report = Command::new(self.pgdyno)
            .args(["report", "--store"])
            .arg(self.directory.join("change"))
            .output()?;
        out += &String::from_utf8_lossy(&report.stdout);
        Ok(stdout().write_all(out.as_bytes())?)
    }

    /// Runs a campaign, and returns its store.
    fn run(
        &self,
        name: &str,
        acceleration: &str,
        repeats: u32,
        run: &str,
        factors: &str,
        rest: &str,
    ) -> Result<Store> {
        let kernels: Vec<String> = match factors.is_empty() {
            true => self.options.kernels.clone(),
            false => self.options.kernels[..1].to_vec(),
        };
        let campaign = format!(
            "name = '{name}'\n[factors]\nserver = ['{}']\nkernel = {kernels:?}\nacceleration = ['{acceleration}']\n\
             workload = ['select-only']\nprotocol = ['prepared']\nclients = [2]\n{factors}\n\
             [run]\n{run}\nwarmup = '500ms'\nrepeats = {repeats}\n{rest}",
            self.options.postgres
        );
        let (file, root) = (self.directory.join(format!("{name}.toml")), self.directory.join(name));
        fs::write(&file, campaign)?;
        writeln!(stderr(), "{name}:")?;
        let mut command = Command::new(self.pgdyno);
        let status =
            command.arg("run").arg(&file).arg("--store").arg(&root).stdout(Stdio::null()).status()?;
        // Trials in emulated real time are always suspect, and nothing here is a gate.
        if !matches!(status.code(), Some(0 | 5)) {
            bail!("pgdyno run {}: {status}", file.display());
        }
        Ok(Store::existing(&root)?)
    }
}

fn of_kernel(store: &Store, kernel: &str) -> Result<Vec<Trial>> {
    let mut trials = store.trials()?;
    trials.retain(|trial| {
        trial.cell.kernel == Some(kernel.to_owned()) && trial.validity.status != Status::Invalid
    });
    Ok(trials)
}

struct Range {
    low: f64,
    median: f64,
    high: f64,
}

impl Range {
    fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self { low: at(0), median: (at(last / 2) + at(last.div_ceil(2))) / 2.0, high: at(last) }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = if self.median < 100.0 { 1 } else { 0 };
        write!(f, "{:.digits$} ({:.digits$}-{:.digits$})", self.median, self.low, self.high)
    }
}
