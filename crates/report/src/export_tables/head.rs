//! Runs, trials and cells.

use std::fmt::Write as _;

use model::cell::RecordedCell;
use model::factor::{Factor, Figure, FigureKind};
use model::record::{Finding, Latency, Run, Status, Summary, Trial, TrialRecord};
use serde::Serialize;

use super::Kind::{Integer, Json, Real, Text, Time};
use super::{Field, Value, field, json};
use analysis::judgement;
use analysis::metric::Metric;
use analysis::ordered_cells;

/// A run with its trials.
pub(super) struct RunRow<'r> {
    run: &'r Run,
    trials: Vec<&'r Trial>,
}

pub(super) fn all_runs<'r>(trials: &[&'r Trial]) -> Vec<RunRow<'r>> {
    let run = |trials: &[&'r Trial]| RunRow { run: &trials[0].run, trials: trials.to_vec() };
    by_run(trials).iter().map(|trials| run(trials)).collect()
}

/// Trials by run, oldest first.
fn by_run<'r>(trials: &[&'r Trial]) -> Vec<Vec<&'r Trial>> {
    let mut sorted = trials.to_vec();
    sorted.sort_by(|a, b| (&a.run.id, &a.id).cmp(&(&b.run.id, &b.id)));
    sorted.chunk_by(|a, b| a.run.id == b.run.id).map(<[_]>::to_vec).collect()
}

pub(super) fn runs<'r>() -> Vec<Field<RunRow<'r>>> {
    vec![
        field("run", Text, "id of the run", |row| Value::from(row.run.id.as_str())),
        field("campaign", Text, "name of its campaign", |row| Value::from(row.run.campaign.as_str())),
        field("campaign_toml", Text, "text of the campaign file, verbatim", |row| {
            Value::from(row.run.campaign_toml.as_str())
        }),
        field("seed", Text, "seed of the trial order and random numbers; null for imports", |row| {
            Value::from(row.run.seed.map(|seed| seed.to_string()))
        }),
        field("pgdyno_version", Text, "pgdyno release that ran it", |row| {
            Value::from(row.run.pgdyno_version.as_str())
        }),
        field("tags", Json, "tags, by which selectors find it", |row| json(&row.run.tags)),
        field("notes", Text, "notes of the campaign", |row| Value::from(row.run.notes.as_deref())),
        field("started", Time, "when its first trial began", |row| {
            Value::from(row.trials.iter().filter_map(|trial| trial.started).min())
        }),
        field("ended", Time, "when its last trial ended", |row| {
            Value::from(row.trials.iter().filter_map(|trial| trial.ended).max())
        }),
        field("trials", Integer, "number of trials", |row| Value::from(row.trials.len())),
    ]
}

/// A row with a cell.
trait HasCell {
    fn cell(&self) -> &RecordedCell;
}

impl HasCell for &TrialRecord {
    fn cell(&self) -> &RecordedCell {
        &self.trial.cell
    }
}

impl HasCell for CellRow<'_> {
    fn cell(&self) -> &RecordedCell {
        &self.cell
    }
}

/// The level of a factor.
fn level<R: HasCell>(row: &R, factor: Factor) -> Value<'static> {
    match row.cell().figure(factor) {
        Figure::Null => Value::Null,
        Figure::Text(level) => Value::from(level),
        Figure::Integer(level) => Value::from(level),
        Figure::Real(level) => Value::from(level),
    }
}

macro_rules! fields {
    ($($name:ident $key:ident,)*) => {
        /// The levels of all factors.
        fn factors<R: HasCell>() -> [Field<R>; Factor::ALL.len()] {
            [$({
                let column = Factor::$name.column();
                let kind = match column.kind {
                    FigureKind::Text => Text,
                    FigureKind::Integer => Integer,
                    FigureKind::Real => Real,
                };
                field(column.name, kind, column.description, |row| level(row, Factor::$name))
            },)*]
        }
    };
}

model::factors!(fields);

/// All known levels as a selector, unique within a run.
fn selector(cell: &RecordedCell) -> String {
    Factor::ALL.into_iter().fold(String::new(), |mut out, factor| {
        if let Some(level) = factor.known_level(cell) {
            let comma = if out.is_empty() { "" } else { "," };
            let _ = write!(out, "{comma}{}={level}", factor.name());
        }
        out
    })
}

fn summary<'s>(record: &&'s TrialRecord) -> Option<&'s Summary> {
    record.trial.summary.as_ref()
}

fn latency(record: &&TrialRecord, of: fn(&Latency) -> Option<f64>) -> Value<'static> {
    Value::from(summary(record).and_then(|summary| of(summary.latency.as_ref()?)))
}

fn service(record: &&TrialRecord, of: fn(&Latency) -> Option<f64>) -> Value<'static> {
    Value::from(summary(record).and_then(|summary| of(summary.service.as_ref()?)))
}

/// A finding as JSON.
#[derive(Serialize)]
pub(super) struct FindingJson<'r> {
    pub(super) gate: &'r str,
    pub(super) status: &'static str,
    pub(super) evidence: &'r str,
}

fn finding_json(finding: &Finding) -> FindingJson<'_> {
    FindingJson { gate: &finding.gate, status: finding.status.as_str(), evidence: &finding.evidence }
}

pub(super) fn trials<'r>() -> Vec<Field<&'r TrialRecord>> {
    let mut fields = vec![
        field("trial", Text, "id of the trial; ids sort by time", |row: &&'r TrialRecord| {
            Value::from(row.trial.id.as_str())
        }),
        field("run", Text, "id of its run", |row| Value::from(row.trial.run.id.as_str())),
        field("campaign", Text, "name of its campaign", |row| Value::from(row.trial.run.campaign.as_str())),
        field("cell", Text, "its levels as a selector; unique within a run", |row| {
            Value::from(selector(&row.trial.cell))
        }),
        field("repeat", Integer, "number of the repeat of the cell, from 1", |row| {
            Value::from(row.trial.repeat)
        }),
        field("attempt", Integer, "number of the attempt at this repeat, from 1", |row| {
            Value::from(row.trial.attempt)
        }),
        field("position", Integer, "position in the run's order, from 1", |row| {
            Value::from(row.trial.position)
        }),
        field("reason", Text, "why it was run in addition to the planned trials", |row| {
            Value::from(row.trial.reason.as_deref())
        }),
        field("imported", Text, "format of the imported files; null if pgdyno measured it", |row| {
            Value::from(row.trial.imported.as_ref().map(|imported| imported.format.as_str()))
        }),
        field("started", Time, "when it began, including server start", |row| Value::from(row.trial.started)),
        field("load_started", Time, "when its load began", |row| Value::from(row.trial.load_started)),
        field("ended", Time, "when it ended", |row| Value::from(row.trial.ended)),
    ];
    fields.extend(factors());
    fields.extend([
        field(
            "validity",
            Text,
            "valid, suspect (used with care) or invalid (never used)",
            |row: &&'r TrialRecord| Value::from(row.trial.validity.status.as_str()),
        ),
        field("findings", Json, "findings of the gates: gate, status and evidence of each", |row| {
            json(&row.trial.validity.findings.iter().map(finding_json).collect::<Vec<_>>())
        }),
        field("window_us", Integer, "length of the measured window", |row| {
            Value::from(summary(row).and_then(|summary| summary.window_us))
        }),
        field("transactions", Integer, "successful transactions that ended in the window", |row| {
            Value::from(summary(row).and_then(|summary| summary.transactions))
        }),
        field("failed", Integer, "transactions that failed, in any phase", |row| {
            Value::from(summary(row).and_then(|summary| summary.failed))
        }),
        field("tps", Real, "transactions per second in the window", |row| {
            Value::from(summary(row).map(|summary| summary.tps))
        }),
        field(
            "instructions_per_transaction",
            Real,
            "instructions per transaction of driver, server and kernel together; null if they were not counted",
            |row| {
                Value::from(summary(row).and_then(|summary| summary.instructions_per_transaction))
            },
        ),
        field("tps_ci95_low", Real, "lower end of the 95% interval of tps, from this trial alone", |row| {
            Value::from(interval(row).map(|(low, _)| low))
        }),
        field("tps_ci95_high", Real, "upper end of that interval", |row| Value::from(interval(row).map(|(_, high)| high))),
        field("latency_mean_us", Real, "mean latency from the intended start, in the window", |row| {
            latency(row, |latency| latency.mean_us)
        }),
        field("latency_stddev_us", Real, "standard deviation of latency", |row| {
            latency(row, |latency| latency.stddev_us)
        }),
        field("latency_min_us", Real, "smallest latency", |row| latency(row, |latency| latency.min_us)),
        field("latency_p50_us", Real, "median latency", |row| latency(row, |latency| latency.p50_us)),
        field("latency_p90_us", Real, "90th percentile of latency", |row| {
            latency(row, |latency| latency.p90_us)
        }),
        field("latency_p95_us", Real, "95th percentile of latency", |row| {
            latency(row, |latency| latency.p95_us)
        }),
        field("latency_p99_us", Real, "99th percentile of latency", |row| {
            latency(row, |latency| latency.p99_us)
        }),
        field("latency_p999_us", Real, "99.9th percentile of latency", |row| {
            latency(row, |latency| latency.p999_us)
        }),
        field("latency_max_us", Real, "largest latency", |row| latency(row, |latency| latency.max_us)),
        field(
            "service_mean_us",
            Real,
            "mean service time; null in a closed loop, where it is the latency",
            |row| service(row, |latency| latency.mean_us),
        ),
        field("service_p50_us", Real, "median service time", |row| service(row, |latency| latency.p50_us)),
        field("service_p99_us", Real, "99th percentile of service time", |row| {
            service(row, |latency| latency.p99_us)
        }),
        field("cpu_us_per_transaction", Real, "server CPU time per transaction", |row| {
            Value::from(Metric::CpuPerTransaction.value(row))
        }),
        field("wal_bytes_per_transaction", Real, "WAL per transaction", |row| {
            Value::from(Metric::WalBytesPerTransaction.value(row))
        }),
        field("figures", Json, "results of the workload's own queries by the names of their metrics; null without any", |row| {
            if row.trial.figures.is_empty() { Value::Null } else { json(&row.trial.figures) }
        }),
        field("driver_cpu_us", Integer, "CPU time of the driver during the load", |row| {
            Value::from(summary(row).and_then(|summary| summary.driver_cpu_us))
        }),
        field(
            "driver_busy_max_share",
            Real,
            "largest busy share of a driver thread in the window, 0 to 1",
            |row| Value::from(summary(row).and_then(|summary| summary.driver_busy_max)),
        ),
        field("driver_lag_max_us", Real, "largest driver lag in the window", |row| {
            Value::from(summary(row).and_then(|summary| summary.driver_lag_max_us))
        }),
        field(
            "commit_surplus",
            Integer,
            "commits counted by the server in excess of those explained by the driver",
            |row| Value::from(row.trial.accounting.surplus()),
        ),
        field("database_bytes", Integer, "size of the tested database when the load began", |row| {
            Value::from(row.trial.database_bytes)
        }),
        field("server_version", Text, "version reported by the server", |row| {
            Value::from(row.trial.server_version.as_deref())
        }),
        field(
            "server_build",
            Text,
            "identity of the server's programs; null if pgdyno did not provide them",
            |row| Value::from(row.trial.server_build.as_deref()),
        ),
        field("server_commit", Text, "commit that the server was built from; null unless built from a git ref", |row| {
            Value::from(row.trial.server_commit.as_ref().map(|commit| commit.id.as_str()))
        }),
        field("machine_hostname", Text, "name of the machine", |row| {
            Value::from(row.environment.hostname.as_deref())
        }),
        field("machine_kernel", Text, "kernel of the machine", |row| Value::from(row.environment.kernel.as_deref())),
        field("machine_cpu_model", Text, "model of its processors", |row| {
            Value::from(row.environment.cpu_model.as_deref())
        }),
        field("machine_cpus", Integer, "logical processors that pgdyno could use", |row| {
            Value::from(row.environment.cpus)
        }),
        field("machine_memory_bytes", Integer, "main memory", |row| Value::from(row.environment.memory_bytes)),
    ]);
    fields
}

fn interval(record: &&TrialRecord) -> Option<(f64, f64)> {
    summary(record)?.statistics.as_ref()?.tps_interval
}

/// A cell of a run.
pub(super) struct CellRow<'r> {
    run: &'r Run,
    cell: RecordedCell,
    trials: Vec<&'r Trial>,
    figures: Option<stats::Cell>,
}

/// The cells of each run, as a report has them.
pub(super) fn all_cells<'r>(trials: &[&'r Trial]) -> Vec<CellRow<'r>> {
    let mut cells = Vec::new();
    for trials in by_run(trials) {
        let mut seen: Vec<RecordedCell> = Vec::new();
        for cell in ordered_cells(&trials) {
            if seen.contains(&cell) {
                continue;
            }
            seen.push(cell.clone());
            let of_cell: Vec<&Trial> = trials.iter().copied().filter(|trial| trial.cell == cell).collect();
            let tps = judgement::runs(&of_cell, |trial| Metric::Tps.head_value(trial)).values;
            cells.push(CellRow {
                run: &trials[0].run,
                cell,
                figures: stats::Cell::new(&tps),
                trials: of_cell,
            });
        }
    }
    cells
}

impl CellRow<'_> {
    fn count(&self, status: Status) -> usize {
        self.trials.iter().filter(|trial| trial.validity.status == status).count()
    }
}

pub(super) fn cells<'r>() -> Vec<Field<CellRow<'r>>> {
    let mut fields = vec![
        field("run", Text, "id of the run", |row: &CellRow<'r>| Value::from(row.run.id.as_str())),
        field("campaign", Text, "name of its campaign", |row| Value::from(row.run.campaign.as_str())),
        field("cell", Text, "its levels as a selector; unique within a run", |row| {
            Value::from(selector(&row.cell))
        }),
    ];
    fields.extend(factors());
    fields.extend([
        field("trials", Integer, "number of trials", |row: &CellRow<'r>| Value::from(row.trials.len())),
        field("suspect", Integer, "number of suspect trials, which are used", |row| {
            Value::from(row.count(Status::Suspect))
        }),
        field("invalid", Integer, "number of invalid trials, which are not used", |row| {
            Value::from(row.count(Status::Invalid))
        }),
        field("n", Integer, "number of trials behind the figures", |row| {
            Value::from(row.figures.as_ref().map_or(0, |figures| figures.n))
        }),
        field("tps_median", Real, "median of the trials' transactions per second", |row| {
            Value::from(row.figures.as_ref().map(|figures| figures.median))
        }),
        field("tps_geometric_mean", Real, "geometric mean; verdicts compare it as a ratio", |row| {
            Value::from(row.figures.as_ref().map(|figures| figures.geometric_mean))
        }),
        field("tps_min", Real, "smallest", |row| {
            Value::from(row.figures.as_ref().map(|figures| figures.minimum))
        }),
        field("tps_max", Real, "largest", |row| {
            Value::from(row.figures.as_ref().map(|figures| figures.maximum))
        }),
        field(
            "tps_log_sd",
            Real,
            "standard deviation of their natural logarithms: 0.02 is about 2%",
            |row| Value::from(row.figures.as_ref().and_then(|figures| figures.log_sd)),
        ),
        field("class", Text, "STABLE, NOISY, UNSTABLE-WIDE, UNSTABLE-MODES; null with fewer than 3", |row| {
            Value::from(
                row.figures.as_ref().and_then(|figures| figures.class()).map(|class| class.to_string()),
            )
        }),
    ]);
    fields
}
