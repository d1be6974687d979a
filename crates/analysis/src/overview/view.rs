//! What a report shows, as plain data: the JSON of `pgdyno report --format json`, and what the page is drawn from.
//!
//! Missing is null, never zero. The page's types (`web/src/data/generated/view.ts`) are generated from these.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::profile::Frame;
use crate::spans::Spans;

/// Version of this schema: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 3;

/// Everything that a report shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct View {
    /// [`SCHEMA`] of the pgdyno that wrote it.
    pub schema: u32,
    /// The runs that the trials belong to, oldest first.
    pub runs: Vec<Run>,
    /// What is set side by side, in the campaign's order; the first is the baseline.
    pub columns: Vec<Column>,
    /// What each further column comes to against the first one; none of those that share no cell with it.
    pub comparisons: Vec<Comparison>,
    /// One for each combination of the factors that are neither column nor row.
    pub panels: Vec<Panel>,
    /// One for each cell that was profiled, by panel, clients and column.
    pub profiles: Vec<Profile>,
    /// What is to be known of the figures of emulated kernels, one sentence each.
    pub notes: Vec<&'static str>,
    /// Where it was measured.
    pub environment: Environment,
}

/// What a column comes to against the first one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Comparison {
    /// Its place in [`View::columns`].
    pub column: usize,
    /// In one sentence.
    pub sentence: String,
    /// How many cells only one of the two has: they are in no comparison.
    pub unshared: usize,
}

/// One execution of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Run {
    /// The run's ULID.
    pub id: String,
    /// The campaign's name.
    pub campaign: String,
    /// The campaign's text, to the letter.
    pub campaign_toml: String,
    /// Seed of the order of trials and of the scripts' random numbers; a text, for JavaScript can't hold all of them.
    /// Null where the run was imported.
    pub seed: Option<String>,
    /// Names of the files that it was imported from; null where pgdyno measured it.
    pub imported: Option<Vec<String>>,
    /// The release of pgdyno that ran it.
    pub pgdyno_version: String,
    /// When its first trial began; null where none says.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub started: Option<Timestamp>,
    /// When its last trial ended; null as above.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub ended: Option<Timestamp>,
    /// Trials that are shown.
    pub trials: usize,
    /// What the campaign asked for; null where its text can't be read by this release.
    pub plan: Option<PlanFacts>,
}

/// How a run was to be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct PlanFacts {
    /// Trials in the plan.
    pub trials: usize,
    /// Lengths of the measured window, such as `10s` or `10s, 60s`.
    pub duration: String,
    /// Load before the window, the same way.
    pub warmup: String,
    /// Trials of each cell: `5`, or `5 to 20`.
    pub repeats: String,
    /// Order of the trials.
    #[cfg_attr(test, ts(type = "'randomized-blocks' | 'sequential'"))]
    pub order: model::plan::Order,
}

/// A server with its settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Column {
    /// What to call it: unique among the columns.
    pub label: String,
    /// The version as the campaign writes it; null where imported trials do not say.
    pub server: Option<String>,
    /// The name of its settings in the campaign; null as above.
    pub settings: Option<String>,
    /// Its level of each factor that tells columns apart, by the factor's name; none of those that are not known.
    pub levels: BTreeMap<&'static str, String>,
    /// The full versions that answered, more than one only if a server was updated between runs.
    pub versions: Vec<String>,
    /// What `version()` printed.
    pub banners: Vec<String>,
    /// The kernels that its trials ran under, such as `Linux 6.12.48+deb13-cloud-amd64`.
    pub kernels: Vec<String>,
}

/// A table of clients × columns, under equal conditions otherwise. A factor is null where imported trials do not say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Panel {
    /// pgbench's name of the workload.
    pub workload: Option<String>,
    /// pgbench's scale factor.
    pub scale: Option<u32>,
    /// How statements are sent.
    pub protocol: Option<String>,
    /// What carries them.
    pub transport: Option<String>,
    /// What else tells it from other panels, or is not as usual: `rate 500`, `cache cold`.
    pub conditions: Vec<String>,
    /// The largest size of the tested database among its trials when the load began.
    pub database_bytes: Option<u64>,
    /// The memory that it could be in: the machine's, or what a limit left of it to the server; null where that is not known, or
    /// not the same in all its trials.
    pub memory_bytes: Option<u64>,
    /// Ascending by clients.
    pub rows: Vec<Row>,
    /// How each of [`View::columns`] grows with the clients; null where it has fewer than three numbers of them, or a rate
    /// was set.
    pub scalability: Vec<Option<Scalability>>,
}

/// What becomes of throughput with more clients, told from the medians.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Scalability {
    /// The fewest clients with at least 95% of the peak.
    pub knee: u32,
    /// The number of clients with the largest throughput; the fewest of several.
    pub peak_clients: u32,
    /// That throughput.
    pub peak: f64,
    /// The greatest loss from one number of clients to the next; null where throughput never falls.
    pub steepest: Option<Step>,
    /// The universal scalability law; null where it does not fit, or of fewer than four numbers of clients.
    pub usl: Option<Usl>,
    /// Numbers of clients whose runs are unstable: their median may be nobody's throughput.
    pub unstable: Vec<u32>,
}

/// A change from one number of clients to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Step {
    /// The smaller number of clients.
    pub from: u32,
    /// The larger one.
    pub to: u32,
    /// Throughput with the larger number over that with the smaller, less 1.
    pub change: f64,
}

impl Panel {
    /// Whether instructions were counted.
    pub fn counts_instructions(&self) -> bool {
        self.rows.iter().flat_map(|row| row.points.iter().flatten()).any(|point| point.instructions.is_some())
    }

    /// Every trial with its row and the place of its column: by row, then by column, then by repeat.
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
pub struct Usl {
    /// λ: what one client would do alone, in transactions per second.
    pub lambda: f64,
    /// σ: contention.
    pub sigma: f64,
    /// κ: coherency.
    pub kappa: f64,
    /// The number of clients with the largest throughput by the law; null where more are never worse.
    pub peak_clients: Option<f64>,
    /// The root of the mean squared residual of logarithms: 0.05 is 5%.
    pub rms: f64,
}

/// One number of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Row {
    /// Number of clients; null where imported trials do not say.
    pub clients: Option<u32>,
    /// One for each of [`View::columns`]; null where it has no trial here.
    pub points: Vec<Option<Point>>,
}

/// The trials of one cell and what they come to. Invalid trials are among `runs` and in no figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Point {
    /// Number of trials that the figures are made of.
    pub n: usize,
    /// Median of their TPS.
    pub median: Option<f64>,
    /// Smallest TPS.
    pub min: Option<f64>,
    /// Largest TPS.
    pub max: Option<f64>,
    /// Median of their instructions for each transaction; null where these were not counted.
    pub instructions: Option<f64>,
    /// `STABLE`, `NOISY`, `UNSTABLE-WIDE` or `UNSTABLE-MODES`; null with fewer than 3 trials.
    pub class: Option<String>,
    /// The first of the trials over the median of the others, less 1, where it is unlike them, as after a cold start.
    pub first_run_apart: Option<f64>,
    /// Whether it changed; null in the first column, and where that has no trial.
    pub verdict: Option<Verdict>,
    /// Every trial, by repeat.
    pub runs: Vec<Trial>,
}

/// The verdict on a point against the first column's, as `compare` gives it over all that the report shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Verdict {
    /// `REGRESSION`, `EQUIVALENT` and so on.
    pub verdict: &'static str,
    /// The ratio of the geometric means, less 1; null where a side has none.
    pub change: Option<f64>,
    /// The lower end of its 95% interval; null with fewer than 2 trials on a side.
    pub ci95_low: Option<f64>,
    /// The upper end.
    pub ci95_high: Option<f64>,
    /// p, adjusted by Holm over all comparisons of the report; null with fewer than 3 trials on a side.
    pub p_holm: Option<f64>,
    /// The ratio up to which two cells are equivalent, such as 1.05.
    pub margin: f64,
}

/// One measured execution of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Trial {
    /// Its ULID: the name of its bundle.
    pub id: String,
    /// ULID of the run it belongs to.
    pub run: String,
    /// Which repeat of the cell, from 1.
    pub repeat: u32,
    /// Which try at this repeat, from 1.
    pub attempt: u32,
    /// Its place in the run's order, from 1.
    pub position: u32,
    /// When it began; null where it was imported and is not known.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub started: Option<Timestamp>,
    /// `valid`, `suspect` or `invalid`.
    #[cfg_attr(test, ts(type = "'valid' | 'suspect' | 'invalid'"))]
    pub validity: &'static str,
    /// What the validity gates found, notes on valid trials included.
    pub findings: Vec<Finding>,
    /// Transactions per second in the measured window.
    pub tps: Option<f64>,
    /// Instructions for each transaction; null where they were not counted.
    pub instructions_per_transaction: Option<f64>,
    /// Transactions that ended in the window.
    pub transactions: Option<u64>,
    /// Transactions that failed.
    pub failed: Option<u64>,
    /// Latency of the window's transactions.
    pub latency: Option<Latency>,
    /// Commits that the server counted beyond what the driver can explain; 0 where both agree.
    pub commit_surplus: Option<i64>,
    /// Results of each background workload.
    #[serde(rename = "beside")]
    pub background: Vec<Background>,
    /// What the disk gave of a table before the load, past the server; null where it was not read so.
    pub raw_read: Option<RawRead>,
    /// Its transactions one by one; null where the workload does not keep them.
    pub spans: Option<Spans>,
}

/// Results of a background workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Background {
    /// Its name.
    pub workload: String,
    /// Its transactions that ended in the window.
    pub transactions: u64,
    /// Those that failed, in any phase.
    pub failed: u64,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Latency of the window's transactions; null where there were none.
    pub latency: Option<Latency>,
}

impl Background {
    pub(super) fn new(summary: &model::record::BackgroundSummary) -> Self {
        Self {
            workload: summary.workload.clone(),
            transactions: summary.transactions,
            failed: summary.failed,
            tps: summary.tps,
            latency: summary.latency.as_ref().map(Latency::new),
        }
    }
}

/// The files of a relation, read past the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct RawRead {
    /// The relation.
    pub relation: String,
    /// Bytes of all its segments.
    pub bytes: u64,
    /// How long it took, in microseconds.
    pub elapsed_us: u64,
    /// In MB (1,000,000 bytes) a second.
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

/// Latency in figures, microseconds; null where an imported trial does not have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
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
    /// Those of a trial that are shown.
    pub fn new(latency: &model::record::Latency) -> Self {
        Self {
            mean_us: latency.mean_us,
            p50_us: latency.p50_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
        }
    }
}

/// What one validity gate found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Finding {
    /// The gate's name.
    pub gate: String,
    /// What it makes of the trial.
    #[cfg_attr(test, ts(type = "'valid' | 'suspect' | 'invalid'"))]
    pub validity: &'static str,
    /// The evidence, in figures.
    pub evidence: String,
    /// Up to where it would have found nothing.
    pub threshold: Option<String>,
    /// What to do.
    pub advice: Option<String>,
}

impl Finding {
    /// Of a trial's record.
    pub fn new(finding: &model::record::Finding) -> Self {
        Self {
            gate: finding.gate.clone(),
            validity: finding.status.as_str(),
            evidence: finding.evidence.clone(),
            threshold: finding.threshold.clone(),
            advice: finding.advice.clone(),
        }
    }
}

/// Which functions processors were in while a cell was measured, or threads waited in, of its usable trials together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Profile {
    /// `on-cpu`, or `off-cpu`, in which samples are microseconds.
    pub kind: &'static str,
    /// The cell's place in [`View::panels`].
    pub panel: usize,
    /// Its number of clients; null where that is not known.
    pub clients: Option<u32>,
    /// Its place in [`View::columns`].
    pub column: usize,
    /// Ids of the trials.
    pub trials: Vec<String>,
    /// How the first of them was profiled, for people.
    pub taken: String,
    /// Time that a sample stands for, in microseconds.
    pub us_per_sample: f64,
    /// Transactions that ended while it was profiled; null where that is not known.
    pub transactions: Option<f64>,
    /// What is to be kept in mind.
    pub reservations: Vec<String>,
    /// A tree for each role, the most samples first; of `foreign`, processes' names alone.
    pub roles: Vec<Frame>,
}

/// Where it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Environment {
    /// The machine in one line; null where the trials had more than one, or none is known.
    pub machine: Option<String>,
    /// What is known of the machine and its kernel.
    pub facts: Vec<Fact>,
    /// What differs between the levels that the campaigns compare, and is no factor of theirs.
    pub confounds: Vec<Confound>,
    /// Options in which the configurations of the columns' kernels differ, first those that matter to a server.
    pub kernel_options: Vec<KernelOption>,
    /// Settings that are not at their default, or that the columns do not share.
    pub settings: Vec<Setting>,
}

/// A difference that is not a declared factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Confound {
    /// The factor that is compared.
    pub factor: &'static str,
    /// Its baseline.
    pub baseline: String,
    /// The level that is compared with it.
    pub level: String,
    /// What differs, such as `setting data_checksums`.
    pub what: String,
    /// At the baseline.
    pub before: String,
    /// At the other level.
    pub after: String,
}

/// One fact about the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Fact {
    /// `machine`, `kernel` for what the kernel is and decides, `sysctl`, or `other` for whatever else the trials do not share.
    #[cfg_attr(test, ts(type = "'machine' | 'kernel' | 'sysctl' | 'other'"))]
    pub group: &'static str,
    /// What it is.
    pub name: String,
    /// Whether it comes with the kernel: in virtual machines that were made for their kernels, all but what they were given.
    pub of_kernel: bool,
    /// Its values, the most frequent first: more than one where it was not the same in every trial.
    pub values: Vec<FactValue>,
}

/// A fact's value in some of the trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct FactValue {
    /// The value; null where it could not be found out.
    pub value: Option<String>,
    /// In how many trials.
    pub trials: usize,
    /// The same of the trials of each of [`View::columns`].
    pub columns: Vec<usize>,
}

/// One option of the kernels' configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct KernelOption {
    /// Its name, without `CONFIG_`.
    pub name: String,
    /// Whether it changes what a server gets of the machine.
    pub matters: bool,
    /// Its values under the kernels of each of [`View::columns`], by commas where there are several: `y`, `m`, `n` (also
    /// where a kernel does not know it), a number or a text; null where the configuration is not known.
    pub values: Vec<Option<String>>,
}

/// One server setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// One for each of [`View::columns`]; null where the server does not have it, or was not asked.
    pub values: Vec<Option<SettingValue>>,
}

/// The value of a setting on one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct SettingValue {
    /// The base unit of its values, which is not the same in every release of PostgreSQL; null of what has none.
    pub unit: Option<String>,
    /// The distinct values of its trials, in order of appearance: usually one.
    pub values: Vec<String>,
    /// Whether all of them are PostgreSQL's own default.
    pub default: bool,
}
