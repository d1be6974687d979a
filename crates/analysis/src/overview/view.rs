//! Contents of a report as plain data: the JSON of `pgdyno report --format json`, and the input of the page.
//!
//! Missing is null, never zero. The page's types (`web/src/data/generated/view.ts`) are generated from these.

mod answer;
mod phase;
mod statements;

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::process_share::ProcessShare;
use model::record::TrialRecord;
use serde::Serialize;

use crate::bisection::Bisection;
use crate::left_out::LeftOut;
use crate::metric::{ScriptSummary, script_summaries};
use crate::profile::Frame;
use crate::spans::Spans;

pub use answer::{Answer, AnswerCell, AnswerKind};
pub use phase::Phase;
pub use statements::{ChangedPlan, Distribution, PlayedStatement, Statements};

/// Version of this schema: increases when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 5;

/// Contents of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct View {
    /// [`SCHEMA`] of the pgdyno that wrote it.
    pub schema: u32,
    /// The trials' runs, oldest first.
    pub runs: Vec<Run>,
    /// The compared columns, in the campaign's order; the first is the baseline.
    pub columns: Vec<Column>,
    /// The answers of the trials, the most important first: one for each comparison, or one on what is missing for any. Empty
    /// without trials.
    pub answers: Vec<Answer>,
    /// The runs that are bisections.
    pub bisections: Vec<Bisection>,
    /// Comparisons of cells that were measured in pairs, by their sessions: empty without any.
    pub paired: Vec<PairedComparison>,
    /// Comparisons of cells that play a trace, by its statements: empty without any.
    pub statements: Vec<Statements>,
    /// One panel per combination of the factors that are neither column nor row.
    pub panels: Vec<Panel>,
    /// Profiles by cell, in order of panel, clients and column.
    pub profiles: Vec<Profile>,
    /// What the validity gates found, by cause: the worst first.
    pub findings: Vec<FindingGroup>,
    /// Notes on figures of emulated kernels, one sentence each.
    pub notes: Vec<&'static str>,
    /// Environment of the measurements.
    pub environment: Environment,
    /// Bundles that can't be read, of any run: their trials, or the detail of these, are missing.
    pub left_out: Vec<LeftOut>,
    /// The command that wrote the file of the report; null where it is no file.
    pub made_by: Option<String>,
}

/// Comparison of two cells that were measured in pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedComparison {
    /// The baseline, by what distinguishes it.
    pub baseline: String,
    /// What is compared with it.
    pub variant: String,
    /// The levels that both have, in words, such as `clients 4`.
    pub cell: Vec<String>,
    /// The result in one sentence.
    pub sentence: String,
    /// The verdicts of both figures, if both are decided and differ.
    pub disagreement: Option<String>,
    /// First the figure that decides, or keeps it open.
    pub figures: Vec<PairedFigure>,
    /// Number of sessions that do not count, as a side is invalid.
    pub invalid: usize,
    /// The median duration of a session, in seconds.
    pub session_seconds: Option<f64>,
    /// For each side, the CPU time of its servers while the other one had the load, as a share of that during its own load.
    pub paused_cpu: [Option<f64>; 2],
    /// Number of comparisons that are decided together, with one error rate.
    pub comparisons: usize,
}

/// A figure of two cells that were measured in pairs, by their sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedFigure {
    /// Its name as a metric of `compare`.
    pub metric: String,
    /// Description.
    pub label: String,
    /// Whether the cells are judged by it, alone or with others.
    pub decides: bool,
    /// The direction in which it improves.
    #[cfg_attr(test, ts(type = "'higher' | 'lower'"))]
    pub better: &'static str,
    /// `REGRESSION`, `EQUIVALENT` and so on.
    pub verdict: &'static str,
    /// The ratio, the geometric mean over the sessions, less 1; null without a session.
    pub change: Option<f64>,
    /// The lower end of its interval, with 99% confidence for all numbers of sessions and all comparisons together; null while
    /// it is unbounded.
    pub ci99_low: Option<f64>,
    /// The upper end.
    pub ci99_high: Option<f64>,
    /// The largest ratio at which two cells are equivalent; null without sessions.
    pub margin: Option<f64>,
    /// The sessions, in their order.
    pub sessions: Vec<PairedSession>,
    /// Number of further sessions until a decision, 0 if it is decided; null if unknown.
    pub sessions_left: Option<usize>,
    /// The time that they take, in seconds.
    pub seconds_left: Option<f64>,
}

/// A session of two cells that were measured in pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedSession {
    /// Its number in its run, from 1.
    pub session: u32,
    /// The ratio of its pairs, less 1.
    pub change: f64,
}

/// One execution of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// The run's ULID.
    pub id: String,
    /// The campaign's name.
    pub campaign: String,
    /// The campaign's text, verbatim.
    pub campaign_toml: String,
    /// Seed of the order of trials and of the scripts' random numbers; a string, because JavaScript can't represent all
    /// of them. Null if the run was imported.
    pub seed: Option<String>,
    /// Names of the imported files; null if pgdyno measured it.
    pub imported: Option<Vec<String>>,
    /// The release of pgdyno that ran it.
    pub pgdyno_version: String,
    /// Start of its first trial; null if unknown.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub started: Option<Timestamp>,
    /// End of its last trial; null if unknown.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub ended: Option<Timestamp>,
    /// Number of trials shown.
    pub trials: usize,
    /// The campaign's plan; null if this release can't read its text.
    pub plan: Option<PlanFacts>,
}

/// Plan of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanFacts {
    /// Trials in the plan.
    pub trials: usize,
    /// Lengths of the measured window, such as `10s` or `10s, 60s`.
    pub duration: String,
    /// Load before the window, in the same form.
    pub warmup: String,
    /// Trials per cell: `5`, or `5 to 20`.
    pub repeats: String,
    /// Order of the trials.
    #[cfg_attr(test, ts(type = "'randomized-blocks' | 'sequential' | 'paired' | 'bisect'"))]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub order: model::plan::Order,
}

/// A server with its settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// Label: unique among the columns.
    pub label: String,
    /// The version as written in the campaign; null if unknown for imported trials.
    pub server: Option<String>,
    /// The name of its settings in the campaign; null if unknown for imported trials.
    pub settings: Option<String>,
    /// Levels of the factors that distinguish columns, by factor name; unknown ones are absent.
    pub levels: BTreeMap<&'static str, String>,
    /// The full versions that the servers reported, more than one only if a server was updated between runs.
    pub versions: Vec<String>,
    /// Output of `version()`.
    pub banners: Vec<String>,
    /// The kernels that its trials ran under, such as `Linux 6.12.48+deb13-cloud-amd64`.
    pub kernels: Vec<String>,
}

/// A table of clients × columns, under otherwise equal conditions. A factor is null if unknown for imported trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Panel {
    /// Name of the workload.
    pub workload: Option<String>,
    /// pgbench's scale factor; null on a database of the user's own, too.
    pub scale: Option<u32>,
    /// Name of the database of the user's own that it runs on; null for generated tables.
    pub dataset: Option<String>,
    /// Protocol of the statements.
    pub protocol: Option<String>,
    /// Transport of the connections.
    pub transport: Option<String>,
    /// Other conditions that differ between panels or are not the default: `rate 500`, `cache cold`.
    pub conditions: Vec<String>,
    /// The largest size of the tested database at the load's start, among its trials.
    pub database_bytes: Option<u64>,
    /// Memory available to the server: the machine's, or the server's limit; null if unknown, or not the same in all
    /// its trials.
    pub memory_bytes: Option<u64>,
    /// The figure that its cells are judged by.
    pub figure: Figure,
    /// Ascending by clients.
    pub rows: Vec<Row>,
    /// Scalability of each of [`View::columns`]; null for fewer than three numbers of clients, or with a rate.
    pub scalability: Vec<Option<Scalability>>,
}

/// The figure that cells are judged by: charts, tables and verdicts are about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// Its name as a metric of `compare`, which may have another unit: `tps`, `latency.p99`.
    pub metric: String,
    /// Description with its unit.
    pub label: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The direction in which it improves.
    #[cfg_attr(test, ts(type = "'higher' | 'lower'"))]
    pub better: &'static str,
    /// Description of the figure next to it ([`Point::secondary`]); null if there is none.
    pub secondary: Option<&'static str>,
}

/// Throughput by number of clients, from the geometric means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scalability {
    /// The fewest clients with at least 95% of the peak.
    pub knee: u32,
    /// The number of clients with the largest throughput; the fewest if there are several.
    pub peak_clients: u32,
    /// The largest throughput.
    pub peak: f64,
    /// The greatest loss from one number of clients to the next; null if throughput never falls.
    pub steepest: Option<Step>,
    /// The universal scalability law; null if it does not fit, or for fewer than four numbers of clients.
    pub usl: Option<Usl>,
    /// Numbers of clients whose runs are unstable: their median may represent no run.
    pub unstable: Vec<u32>,
}

/// A change from one number of clients to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The smaller number of clients.
    pub from: u32,
    /// The larger one.
    pub to: u32,
    /// The ratio of the throughput with the larger number to that with the smaller, less 1.
    pub change: f64,
}

impl Panel {
    /// Its data in titles: `scale 300`, or `data set shop` of the user's own; none if unknown.
    pub fn data(&self) -> Option<String> {
        let own = self.dataset.as_ref().map(|name| format!("data set {name}"));
        own.or_else(|| self.scale.map(|scale| format!("scale {scale}")))
    }

    /// All findings, each with its trial's id.
    pub(super) fn findings(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.trials().flat_map(|(.., trial)| trial.findings())
    }

    /// All trials with their rows and the indices of their columns: by row, then by column, then by repeat.
    pub fn trials(&self) -> impl Iterator<Item = (&Row, usize, &Trial)> {
        self.rows.iter().flat_map(|row| {
            row.points.iter().enumerate().flat_map(move |(at, point)| {
                let trials = point.iter().flat_map(|point| &point.runs);
                trials.map(move |trial| (row, at, trial))
            })
        })
    }
}

/// Gunther's universal scalability law: with N clients, throughput is λN / (1 + σ(N − 1) + κN(N − 1)).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usl {
    /// λ: the throughput of a single client, in transactions per second.
    pub lambda: f64,
    /// σ: contention.
    pub sigma: f64,
    /// κ: coherency.
    pub kappa: f64,
    /// The number of clients with the largest throughput by the law; null if more are never worse.
    pub peak_clients: Option<f64>,
    /// The root mean square residual of logarithms: 0.05 is 5%.
    pub rms: f64,
}

/// One number of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Number of clients; null if unknown for imported trials.
    pub clients: Option<u32>,
    /// One per [`View::columns`]; null if the column has no trial here.
    pub points: Vec<Option<Point>>,
}

/// The trials of one cell and their figures. Invalid trials are among `runs`, but in no figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// Number of trials used for the figures.
    pub n: usize,
    /// Geometric mean of the panel's figure, which verdicts compare; null if a trial has zero.
    pub mean: Option<f64>,
    /// Smallest figure.
    pub min: Option<f64>,
    /// Largest figure.
    pub max: Option<f64>,
    /// Geometric mean of the figure next to it; null if there is none.
    pub secondary: Option<f64>,
    /// `STABLE`, `NOISY`, `UNSTABLE-WIDE` or `UNSTABLE-MODES`; null for fewer than 3 trials.
    pub class: Option<String>,
    /// The ratio of the first trial to the median of the others, less 1, if it is an outlier, as after a cold start.
    pub first_run_apart: Option<f64>,
    /// Verdict; null in the first column, and if that has no trial.
    pub verdict: Option<Verdict>,
    /// Its scripts, if its workload has several.
    pub scripts: Vec<ScriptPoint>,
    /// Its phases that are not what it is judged by, if its workload has several.
    pub phases: Vec<PhasePoint>,
    /// The figures that queries of its workload's own return after each trial.
    pub figures: Vec<FigurePoint>,
    /// All trials, by repeat.
    pub runs: Vec<Trial>,
}

/// The figures of one script of a cell that has several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScriptPoint {
    /// The script's name.
    pub script: String,
    /// The figure that it is judged by, as a metric of `compare`: `script.latency.mean{write.sql}`, in microseconds.
    pub metric: String,
    /// Number of trials used for the figures.
    pub n: usize,
    /// Geometric mean of this figure.
    pub mean: Option<f64>,
    /// Smallest figure.
    pub min: Option<f64>,
    /// Largest figure.
    pub max: Option<f64>,
    /// Geometric mean of the script's transactions per second.
    pub tps: Option<f64>,
    /// As in [`Point::class`].
    pub class: Option<String>,
    /// As in [`Point::verdict`], but p is adjusted over all scripts, phases and own figures of the report.
    pub verdict: Option<Verdict>,
}

/// The figures of one phase of a cell that has several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhasePoint {
    /// The phase's name.
    pub phase: String,
    /// The figure that it is judged by, as a metric of `compare`: `phase.tps{load}`.
    pub metric: String,
    /// Number of trials used for the figures.
    pub n: usize,
    /// Geometric mean of this figure.
    pub mean: Option<f64>,
    /// Smallest figure.
    pub min: Option<f64>,
    /// Largest figure.
    pub max: Option<f64>,
    /// As in [`Point::class`].
    pub class: Option<String>,
    /// As in [`Point::verdict`], but p is adjusted over all scripts, phases and own figures of the report.
    pub verdict: Option<Verdict>,
}

/// A figure that a query of the workload's own returns after each trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigurePoint {
    /// Its name as a metric of `compare`: `figure.recall`, of which more is better, or `cost.bytes`, of which less is.
    pub metric: String,
    /// Number of trials used for it.
    pub n: usize,
    /// Geometric mean; null if a trial has zero or less.
    pub mean: Option<f64>,
    /// Smallest figure.
    pub min: Option<f64>,
    /// Largest figure.
    pub max: Option<f64>,
    /// As in [`Point::class`].
    pub class: Option<String>,
    /// As in [`Point::verdict`], but p is adjusted over all scripts, phases and own figures of the report.
    pub verdict: Option<Verdict>,
}

/// The verdict on a point compared with the first column's, by the rules of `compare` over the whole report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// `REGRESSION`, `EQUIVALENT` and so on.
    pub verdict: &'static str,
    /// The figure that it is by, in words; null for that of the panel.
    pub by: Option<String>,
    /// The ratio of the geometric means, or that within sessions, less 1; null if a side has none.
    pub change: Option<f64>,
    /// The lower end of its 95% interval; null for fewer than 2 trials on a side, and by sessions.
    pub ci95_low: Option<f64>,
    /// The upper end.
    pub ci95_high: Option<f64>,
    /// The lower end of its interval by sessions, with 99% confidence for all numbers of sessions and all comparisons of the
    /// report together; null while it is unbounded, and if the cells have no common session.
    pub ci99_low: Option<f64>,
    /// The upper end.
    pub ci99_high: Option<f64>,
    /// Number of common sessions, which decide; null if there are none.
    pub sessions: Option<usize>,
    /// Number of further sessions until a decision, 0 if it is decided; null if unknown.
    pub sessions_left: Option<usize>,
    /// p, adjusted by Holm over all comparisons of the report; null for fewer than 3 trials on a side, and by sessions.
    pub p_holm: Option<f64>,
    /// The largest ratio at which two cells are equivalent, such as 1.05.
    pub margin: f64,
    /// What has to be known of the trials of both sides next to it, such as crashes.
    pub cautions: Vec<String>,
}

/// One measured execution of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Its ULID: the name of its bundle.
    pub id: String,
    /// ULID of its run.
    pub run: String,
    /// Repeat of the cell, from 1.
    pub repeat: u32,
    /// Attempt at this repeat, from 1.
    pub attempt: u32,
    /// Position in the run's order, from 1.
    pub position: u32,
    /// Start; null if unknown for an imported trial.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub started: Option<Timestamp>,
    /// `valid`, `suspect` or `invalid`.
    #[cfg_attr(test, ts(type = "'valid' | 'suspect' | 'invalid'"))]
    pub validity: &'static str,
    /// Findings of the validity gates, including notes on valid trials.
    pub findings: Vec<Finding>,
    /// The panel's figure.
    pub figure: Option<f64>,
    /// Transactions per second in the measured window.
    pub tps: Option<f64>,
    /// Instructions per transaction; null if they were not counted.
    pub instructions_per_transaction: Option<f64>,
    /// Transactions that ended in the window.
    pub transactions: Option<u64>,
    /// Transactions that failed.
    pub failed: Option<u64>,
    /// Latency of the window's transactions.
    pub latency: Option<Latency>,
    /// Commits counted by the server that the driver can't explain; 0 if the counts agree.
    pub commit_surplus: Option<i64>,
    /// Results of each background workload.
    #[serde(rename = "beside")]
    pub background: Vec<Background>,
    /// Results of each script, if its workload has several.
    pub scripts: Vec<Script>,
    /// Results of each phase, if its workload has several.
    pub phases: Vec<Phase>,
    /// Results of the workload's own queries, by the names of their metrics.
    pub figures: BTreeMap<String, f64>,
    /// The raw read of a table before the load, bypassing the server; null if there was none.
    pub raw_read: Option<RawRead>,
    /// Its transactions; null if the workload does not store them.
    pub spans: Option<Spans>,
}

impl Trial {
    /// Its findings, each with its id.
    pub fn findings(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.findings.iter().map(|finding| (self.id.as_str(), finding))
    }
}

/// Results of a background workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Background {
    /// Name of the workload.
    pub workload: String,
    /// Transactions that ended in the window.
    pub transactions: u64,
    /// Failed transactions, in any phase.
    pub failed: u64,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Transactions per second that were to start; null without a rate.
    pub rate: Option<f64>,
    /// Transactions that were due before the end of the load and had not begun; null likewise.
    pub missed: Option<u64>,
    /// Latency of the window's transactions; null if there were none.
    pub latency: Option<Latency>,
}

impl Background {
    pub(super) fn new(summary: &model::record::BackgroundSummary) -> Self {
        Self {
            workload: summary.workload.clone(),
            transactions: summary.transactions,
            failed: summary.failed,
            tps: summary.tps,
            rate: summary.rate,
            missed: summary.missed,
            latency: summary.latency.as_ref().map(Latency::new),
        }
    }
}

/// Results of one script of a workload that has several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Script {
    /// The script's name.
    pub script: String,
    /// Transactions that ended in the window.
    pub transactions: u64,
    /// Failed transactions, in any phase; null if unknown.
    pub failed: Option<u64>,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Latency of the window's transactions; null if there were none.
    pub latency: Option<Latency>,
}

impl Script {
    /// The scripts of a trial that has several.
    pub fn of(record: &TrialRecord) -> Vec<Self> {
        script_summaries(record).iter().map(Self::new).collect()
    }

    pub(super) fn new(summary: &ScriptSummary) -> Self {
        Self {
            script: summary.script.clone(),
            transactions: summary.transactions,
            failed: summary.failed,
            tps: summary.tps,
            latency: summary.latency.as_ref().map(Latency::new),
        }
    }
}

/// A raw read of a relation's files, bypassing the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RawRead {
    /// The relation.
    pub relation: String,
    /// Bytes of all its segments.
    pub bytes: u64,
    /// Duration in microseconds.
    pub elapsed_us: u64,
    /// Throughput in MB (1,000,000 bytes) per second.
    pub mb_s: Option<f64>,
}

impl RawRead {
    pub(super) fn new(read: &model::record::RawRead) -> Self {
        Self {
            relation: read.relation.clone(),
            bytes: read.bytes,
            elapsed_us: read.elapsed_us,
            mb_s: read.mb_s(),
        }
    }
}

/// Latency figures in microseconds; null if an imported trial does not have them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Arithmetic mean.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
}

impl Latency {
    /// Selects the figures that are shown.
    pub fn new(latency: &model::record::Latency) -> Self {
        Self {
            mean_us: latency.mean_us,
            p50_us: latency.p50_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
        }
    }
}

/// The finding of a validity gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The gate's name.
    pub gate: String,
    /// Its status: `valid`, `suspect` or `invalid`.
    #[cfg_attr(test, ts(type = "'valid' | 'suspect' | 'invalid'"))]
    pub validity: &'static str,
    /// The evidence, in figures.
    pub evidence: String,
    /// The bound up to which the gate finds nothing.
    pub threshold: Option<String>,
    /// What to do.
    pub advice: Option<String>,
    /// The processes that the evidence ends with, busiest first; empty if it names none.
    #[serde(skip)]
    pub processes: Vec<ProcessShare>,
}

impl Finding {
    /// Converts the finding of a trial's record.
    pub fn new(finding: &model::record::Finding) -> Self {
        Self {
            gate: finding.gate.clone(),
            validity: finding.status.as_str(),
            evidence: finding.evidence.clone(),
            threshold: finding.threshold.clone(),
            advice: finding.advice.clone(),
            processes: finding.processes.clone(),
        }
    }
}

/// Findings of a gate that differ in their figures at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FindingGroup {
    /// The gate's name.
    pub gate: String,
    /// Their status: `valid`, `suspect` or `invalid`.
    #[cfg_attr(test, ts(type = "'valid' | 'suspect' | 'invalid'"))]
    pub validity: &'static str,
    /// Ids of the trials with such a finding.
    pub trials: Vec<String>,
    /// The evidence, in figures; where these differ, the smallest and the largest: `10–83%`.
    pub evidence: String,
    /// The bound up to which the gate finds nothing.
    pub threshold: Option<String>,
    /// What to do.
    pub advice: Option<String>,
}

/// Profile of a cell's usable trials: the functions that used CPU, or in which threads waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// `on-cpu`, or `off-cpu`, in which samples are microseconds.
    pub kind: &'static str,
    /// Index of the panel in [`View::panels`].
    pub panel: usize,
    /// Number of clients; null if unknown.
    pub clients: Option<u32>,
    /// Index of the column in [`View::columns`].
    pub column: usize,
    /// Ids of the trials.
    pub trials: Vec<String>,
    /// How the first of them was profiled, as text.
    pub taken: String,
    /// Time that a sample stands for, in microseconds; a thousand instructions each if they are counted.
    pub us_per_sample: f64,
    /// Whether instructions are counted.
    pub counted: bool,
    /// Transactions that ended during the profile; null if unknown.
    pub transactions: Option<f64>,
    /// Limitations of the profile.
    pub reservations: Vec<String>,
    /// A tree per role, the most samples first; for `foreign`, only the names of processes.
    pub roles: Vec<Frame>,
}

/// Environment of the measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// The machine in one line; null if the trials had several, or it is unknown.
    pub machine: Option<String>,
    /// Known facts of the machine and its kernel.
    pub facts: Vec<Fact>,
    /// Differences between the levels that the campaigns compare, other than declared factors.
    pub confounds: Vec<Confound>,
    /// Options in which the configurations of the columns' kernels differ, those that matter to a server first.
    pub kernel_options: Vec<KernelOption>,
    /// Settings that are not at their default, or that differ between columns.
    pub settings: Vec<Setting>,
}

/// A difference that is not a declared factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Confound {
    /// The compared factor.
    pub factor: &'static str,
    /// The baseline's level.
    pub baseline: String,
    /// The variant's level.
    pub level: String,
    /// The fact that differs, such as `setting data_checksums`.
    pub what: String,
    /// Its value at the baseline.
    pub before: String,
    /// Its value at the variant.
    pub after: String,
}

/// One fact about the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// `machine`, `kernel` (properties and decisions of the kernel), `sysctl`, or `other` for further differences.
    #[cfg_attr(test, ts(type = "'machine' | 'kernel' | 'sysctl' | 'other'"))]
    pub group: &'static str,
    /// Name of the fact.
    pub name: String,
    /// Whether it depends on the kernel: in guests created for their kernels, everything but the guest's configuration.
    pub of_kernel: bool,
    /// Its values, the most frequent first: more than one if it differed between trials.
    pub values: Vec<FactValue>,
}

/// A fact's value in some of the trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactValue {
    /// The value; null if it could not be determined.
    pub value: Option<String>,
    /// Number of trials with this value.
    pub trials: usize,
    /// The same for the trials of each of [`View::columns`].
    pub columns: Vec<usize>,
}

/// One option of the kernels' configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelOption {
    /// Name, without `CONFIG_`.
    pub name: String,
    /// Whether it affects a server's performance.
    pub matters: bool,
    /// Its values under the kernels of each of [`View::columns`], separated by commas if there are several: `y`, `m`,
    /// `n` (also if a kernel does not know it), a number or a text; null if the configuration is unknown.
    pub values: Vec<Option<String>>,
}

/// One server setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Name of the setting.
    pub name: String,
    /// One per [`View::columns`]; null if the server does not have the setting, or was not asked.
    pub values: Vec<Option<SettingValue>>,
}

/// The value of a setting on one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingValue {
    /// The base unit of its values, which may differ between releases of PostgreSQL; null if it has none.
    pub unit: Option<String>,
    /// The distinct values of its trials, in order of appearance: usually one.
    pub values: Vec<String>,
    /// Whether all of them are PostgreSQL's own default.
    pub default: bool,
}
