//! A campaign of short trials on one agent, and without a fleet.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use tempfile::TempDir;

use crate::nats::Nats;

#[derive(Args)]
pub(crate) struct Options {
    /// Rounds: each runs the campaign both ways, in alternating order
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Trials of the campaign, an even number
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..))]
    trials: u32,
    /// Length of each trial's window
    #[arg(long, default_value = "2s", value_name = "DURATION")]
    duration: String,
    /// The program
    #[arg(long, default_value = "target/release/pgdyno", value_name = "PATH")]
    pgdyno: PathBuf,
}

pub(crate) fn measure(options: &Options) -> Result<String> {
    let pgdyno = options.pgdyno.canonicalize().context("build pgdyno first")?;
    let nats = Nats::start()?;
    let campaign = format!(
        "name = 'cost'\n[factors]\nserver = ['18']\nsettings = ['default', 'other']\nworkload = ['select-only']\nscale = [1]\n\
         clients = [2]\nduration = ['{}']\nwarmup = ['0s']\n[run]\nrepeats = {}\ncompare = 'settings'\n\
         [settings.other]\nwork_mem = '8MB'\n",
        options.duration,
        options.trials / 2
    );
    let home = tempfile::tempdir()?;
    fs::write(home.path().join("campaign.toml"), campaign)?;
    let agent = Agent::start(&pgdyno, &nats, &home)?;
    // Servers and data sets are made once.
    run(&pgdyno, home.path(), &["--set", "repeats=1"])?;
    let url = nats.url();
    let on_fleet = ["--fleet", "--nats", &url];
    let mut ratios = Vec::new();
    let mut text = String::new();
    for round in 0..options.rounds {
        let (local, fleet) = if round % 2 == 0 {
            let local = run(&pgdyno, home.path(), &[])?;
            (local, run(&pgdyno, home.path(), &on_fleet)?)
        } else {
            let fleet = run(&pgdyno, home.path(), &on_fleet)?;
            (run(&pgdyno, home.path(), &[])?, fleet)
        };
        ratios.push(fleet / local);
        text += &format!(
            "round {}: {local:.1} s without, {fleet:.1} s on an agent, {:.4}\n",
            round + 1,
            fleet / local
        );
    }
    drop(agent);
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    Ok(format!("{text}{} trials, ratio of wall times: median {median:.4} (goal: 1.01)", options.trials))
}

/// Runs the campaign in a new store, and returns the seconds that it took.
fn run(pgdyno: &Path, home: &Path, args: &[&str]) -> Result<f64> {
    let store = tempfile::tempdir_in(home)?;
    let begun = Instant::now();
    let output = Command::new(pgdyno)
        .args(["run", "campaign.toml", "--store"])
        .arg(store.path())
        .args(args)
        .current_dir(home)
        .output()?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(seconds)
}

/// An agent, until it is dropped.
struct Agent(Child);

impl Agent {
    fn start(pgdyno: &Path, nats: &Nats, home: &TempDir) -> Result<Self> {
        let mut child = Command::new(pgdyno)
            .args(["agent", "--nats", &nats.url()])
            .current_dir(home.path())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().context("no standard error")?;
        let agent = Self(child);
        let mut lines = BufReader::new(stderr).lines();
        ensure!(
            lines.any(|line| line.is_ok_and(|line| line.contains("waits for trials"))),
            "the agent does not start"
        );
        std::thread::spawn(move || lines.for_each(drop));
        Ok(agent)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
