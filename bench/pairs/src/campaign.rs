//! Runs of pgdyno, as a user would start them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use model::factor::Factor;
use model::record::{Status, Trial};
use store::Store;

use crate::Options;
use crate::cases::Case;
use crate::sessions::{Round, Sessions};
use crate::table::Unpaired;

/// Statements of the workload `hashing`.
const HASHING: &str = "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid \
                       AND hashtext(repeat('x', current_setting('planted.bytes')::int)) IS NOT NULL;\n";

/// Warm-up of a trial, paired or not. Both kinds measure the same time after the servers' start: writes become faster as
/// fewer pages are written whole.
const WARMUP_MS: f64 = 300.0;

/// Time around the load of a trial that is not paired, in seconds.
const UNPAIRED_OVERHEAD: f64 = 1.2;

/// Runs of the cases.
pub(crate) struct Campaigns<'a> {
    pub(crate) pgdyno: &'a Path,
    pub(crate) directory: &'a Path,
    pub(crate) store: &'a Store,
    pub(crate) options: &'a Options,
}

impl Campaigns<'_> {
    /// Compares a case in pairs.
    pub(crate) fn paired(&self, case: &Case, seed: u32) -> Result<Round> {
        let Options { sessions, max_time, margin, duration, cpu_decides, .. } = self.options;
        let end =
            sessions.map_or(format!("max_time = '{max_time}'"), |sessions| format!("repeats = {sessions}"));
        let run = format!(
            "order = 'paired'\nseed = {seed}\neffect = '{margin}'\n{end}\nduration = '{duration}'\nwarmup = '{WARMUP_MS}ms'\n\
             cpu_decides = {cpu_decides}\n"
        );
        let (trials, elapsed) = self.run(case, &run)?;
        let margin =
            1.0 + margin.trim_end_matches('%').parse::<f64>().context("a margin such as 5%")? / 100.0;
        Ok(Round { sessions: Sessions::new(&trials, case.clients, margin, *cpu_decides), elapsed })
    }

    /// Compares a case by trials one after another that take about so many seconds.
    pub(crate) fn unpaired(&self, case: &Case, seconds: f64) -> Result<Unpaired> {
        let duration = &self.options.duration;
        let load = duration.us() as f64 / 1e6 + WARMUP_MS / 1e3;
        let repeats = (seconds / 2.0 / (load + UNPAIRED_OVERHEAD)).max(3.0) as u32;
        let run = format!("duration = '{duration}'\nwarmup = '{WARMUP_MS}ms'\nrepeats = {repeats}\n");
        let (trials, elapsed) = self.run(case, &run)?;
        let usable = trials.iter().filter(|trial| trial.validity.status != Status::Invalid);
        let side = |settings: &str| {
            let of_side = usable.clone().filter(|trial| Factor::Settings.level(&trial.cell) == settings);
            of_side.filter_map(|trial| Some((trial.repeat, trial.summary.as_ref()?.tps))).collect::<Vec<_>>()
        };
        Ok(Unpaired::new(&side("a"), &side("b"), elapsed))
    }

    fn run(&self, case: &Case, run: &str) -> Result<(Vec<Trial>, Duration)> {
        let path = self.directory.join("campaign.toml");
        fs::write(&path, self.text(case, run)).context("cannot write the campaign")?;
        fs::write(self.directory.join("hashing.sql"), HASHING).context("cannot write the script")?;
        let known: Vec<String> = self.store.trials()?.into_iter().map(|trial| trial.id).collect();
        let begun = Instant::now();
        let output = Command::new(self.pgdyno)
            .arg("run")
            .arg(&path)
            .arg("--store")
            .arg(self.store.root())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.pgdyno.display()))?;
        if !output.status.success() {
            bail!("{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
        }
        let trials = self.store.trials()?.into_iter().filter(|trial| !known.contains(&trial.id)).collect();
        Ok((trials, begun.elapsed()))
    }

    fn text(&self, case: &Case, run: &str) -> String {
        let Case { name, workload, clients, settings: [a, b], .. } = case;
        let workloads = match *workload {
            "hashing" => "[workloads.hashing]\nscripts = ['hashing.sql']\n",
            _ => "",
        };
        format!(
            "name = '{name}'\n[factors]\nserver = ['{}']\nsettings = ['a', 'b']\nworkload = ['{workload}']\nscale = [10]\n\
             clients = [{clients}]\npin = ['{}']\n{workloads}[settings.a]\n{a}\n[settings.b]\n{b}\n[run]\n\
             compare = 'settings'\n{run}",
            self.options.postgres, self.options.pin
        )
    }
}
