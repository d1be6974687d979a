//! Metrics: figures of trials, by their names on the command line.

mod blocks;
mod merit;
mod script;

use std::fmt;
use std::str::FromStr;

use model::merit::{COST_PREFIX, FIGURE_PREFIX, NEW_ORDER_SCRIPT, own_figure};
use model::message::Phase;
use model::metrics::{Better, Kind, Series, find};
use model::record::{Latency, Trial, TrialRecord};

pub use blocks::BlockFigure;
pub use merit::BlockRates;
pub(crate) use merit::{better, figures, presentation};
pub use script::ScriptSummary;
pub(crate) use script::{script_summaries, scripts};

/// A metric with one figure per trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Transactions per second.
    Tps,
    /// Latency of the window's transactions from their intended start, in microseconds.
    Latency(LatencyFigure),
    /// Instructions per transaction, of driver, server and kernel together, if they were counted.
    Instructions,
    /// CPU time per transaction of all server processes except those that serve pgdyno, in microseconds.
    CpuPerTransaction,
    /// Instructions per transaction of the server's programs, without the kernel's, as the CPU counts them in slices of
    /// paired trials.
    ServerInstructions,
    /// WAL inserted per transaction, in bytes.
    WalBytesPerTransaction,
    /// Figure of a background workload.
    Background {
        /// The workload's name.
        workload: String,
        /// A latency; `None` for its transactions per second.
        latency: Option<LatencyFigure>,
    },
    /// Figure of one script of the measured workload.
    Script {
        /// The script's name.
        script: String,
        /// A latency; `None` for its transactions per second.
        latency: Option<LatencyFigure>,
    },
    /// Figure of one phase of a workload that has several.
    Phase {
        /// The phase's name.
        phase: String,
        /// The figure, as of a trial with that load only.
        metric: Box<Self>,
    },
    /// Rows that transactions inserted, changed or deleted, per second.
    Rows,
    /// Fewest transactions per second in a second of the window.
    WorstSecond,
    /// Longest time in the window without the end of a successful transaction, in microseconds.
    LongestStall,
    /// Transactions of the script `new-order.sql` per minute.
    NewOrders,
    /// Result of a query of the workload's own after the load, by the metric's whole name: `figure.recall`.
    Own(String),
    /// Block accesses and writes.
    Blocks(BlockFigure),
    /// A collected metric: the growth of a counter in the window, per second, or the mean of a gauge in it.
    Collected {
        /// Name of the metric, as in docs/metrics.md.
        name: String,
        /// Label of the series; `None` for the sum over all series.
        of: Option<String>,
    },
}

/// A figure of the latency distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatencyFigure {
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
}

/// The text is not the name of a metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no metric \"{0}\"; there are tps, latency.mean, latency.p50, latency.p95, latency.p99, \
     rows, worst_second, longest_stall, instructions, cpu_per_transaction, server_instructions, wal_bytes_per_transaction, blocks.logical_reads, blocks.physical_reads, blocks.hit_ratio, \
     blocks.writes, blocks.visited, new_orders, each of the first five of a background workload, such as \
     beside.latency.p99{{scans}}, and of a script, such as script.latency.mean{{read.sql}}, each of all these of a phase, such as \
     phase.tps{{load}} or phase.beside.tps{{measure/queue}}, a workload's own figures and costs, such as figure.recall or cost.bytes, and collected metrics (docs/metrics.md), such as pg.wal.bytes or \
     disk.write_bytes{{vda}}"
)]
pub struct MetricError(String);

/// Metrics other than those collected under their own name.
const NAMED: [(&str, Metric); 18] = [
    ("tps", Metric::Tps),
    ("latency.mean", Metric::Latency(LatencyFigure::Mean)),
    ("latency.p50", Metric::Latency(LatencyFigure::P50)),
    ("latency.p95", Metric::Latency(LatencyFigure::P95)),
    ("latency.p99", Metric::Latency(LatencyFigure::P99)),
    ("rows", Metric::Rows),
    ("worst_second", Metric::WorstSecond),
    ("longest_stall", Metric::LongestStall),
    ("instructions", Metric::Instructions),
    ("cpu_per_transaction", Metric::CpuPerTransaction),
    ("server_instructions", Metric::ServerInstructions),
    ("wal_bytes_per_transaction", Metric::WalBytesPerTransaction),
    ("blocks.logical_reads", Metric::Blocks(BlockFigure::LogicalReads)),
    ("blocks.physical_reads", Metric::Blocks(BlockFigure::PhysicalReads)),
    ("blocks.hit_ratio", Metric::Blocks(BlockFigure::HitRatio)),
    ("blocks.writes", Metric::Blocks(BlockFigure::Writes)),
    ("blocks.visited", Metric::Blocks(BlockFigure::Visited)),
    ("new_orders", Metric::NewOrders),
];

/// Seconds of a minute.
const SECONDS_PER_MINUTE: f64 = 60.0;

/// Prefix of the metrics of background workloads.
const BACKGROUND_PREFIX: &str = "beside.";
/// Prefix of the metrics of scripts.
const SCRIPT_PREFIX: &str = "script.";
/// Prefix of the metrics of phases.
const PHASE_PREFIX: &str = "phase.";

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        let text = text.trim();
        if let Some((_, metric)) = NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(metric);
        }
        let (name, of) = match text.strip_suffix('}').and_then(|text| text.split_once('{')) {
            Some((name, of)) => (name, Some(of.to_owned())),
            None => (text, None),
        };
        if let Some(name) = name.strip_prefix(PHASE_PREFIX) {
            let label = of.as_deref().ok_or_else(|| MetricError(text.to_owned()))?;
            let (phase, inner) = match label.split_once('/') {
                Some((phase, label)) => (phase, format!("{name}{{{label}}}")),
                None => (label, name.to_owned()),
            };
            let metric: Self = inner.parse().map_err(|_| MetricError(text.to_owned()))?;
            return match metric {
                Self::Phase { .. } => Err(MetricError(text.to_owned())),
                metric => Ok(Self::Phase { phase: phase.to_owned(), metric: Box::new(metric) }),
            };
        }
        if let Some(figure) = name.strip_prefix(BACKGROUND_PREFIX) {
            let figure = NAMED.into_iter().find(|(known, _)| *known == figure).map(|(_, metric)| metric);
            return match (figure, of) {
                (Some(Self::Tps), Some(workload)) => Ok(Self::Background { workload, latency: None }),
                (Some(Self::Latency(latency)), Some(workload)) => {
                    Ok(Self::Background { workload, latency: Some(latency) })
                }
                _ => Err(MetricError(text.to_owned())),
            };
        }
        if let Some(figure) = name.strip_prefix(SCRIPT_PREFIX) {
            let figure = NAMED.into_iter().find(|(known, _)| *known == figure).map(|(_, metric)| metric);
            return match (figure, of) {
                (Some(Self::Tps), Some(script)) => Ok(Self::Script { script, latency: None }),
                (Some(Self::Latency(latency)), Some(script)) => {
                    Ok(Self::Script { script, latency: Some(latency) })
                }
                _ => Err(MetricError(text.to_owned())),
            };
        }
        if own_figure(text).is_some() {
            return Ok(Self::Own(text.to_owned()));
        }
        // Every collected metric is named `<source>.<what>`.
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        if !name.contains('.')
            || name.starts_with("latency.")
            || name.starts_with("blocks.")
            || name.starts_with(FIGURE_PREFIX)
            || name.starts_with(COST_PREFIX)
            || !name.chars().all(is_name)
        {
            return Err(MetricError(text.to_owned()));
        }
        Ok(Self::Collected { name: name.to_owned(), of })
    }
}

/// The form of the command line.
impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, NAMED.into_iter().find(|(_, metric)| metric == self)) {
            (_, Some((name, _))) => f.pad(name),
            (Self::Background { workload, latency }, _) => {
                let figure = latency.map_or(Self::Tps, Self::Latency);
                f.pad(&format!("{BACKGROUND_PREFIX}{figure}{{{workload}}}"))
            }
            (Self::Script { script, latency }, _) => {
                let figure = latency.map_or(Self::Tps, Self::Latency);
                f.pad(&format!("{SCRIPT_PREFIX}{figure}{{{script}}}"))
            }
            (Self::Phase { phase, metric }, _) => {
                let inner = metric.to_string();
                f.pad(&match inner.strip_suffix('}').and_then(|inner| inner.split_once('{')) {
                    Some((name, label)) => format!("{PHASE_PREFIX}{name}{{{phase}/{label}}}"),
                    None => format!("{PHASE_PREFIX}{inner}{{{phase}}}"),
                })
            }
            (Self::Own(name), _) => f.pad(name),
            (Self::Collected { name, of: Some(of) }, _) => f.pad(&format!("{name}{{{of}}}")),
            (Self::Collected { name, .. }, _) => f.pad(name),
            _ => Ok(()),
        }
    }
}

impl Metric {
    /// Direction in which it improves; for collected metrics, from the catalogue.
    pub fn better(&self) -> Better {
        match self {
            Self::Phase { metric, .. } => metric.better(),
            Self::Rows | Self::WorstSecond => Better::Higher,
            Self::Tps
            | Self::NewOrders
            | Self::Background { latency: None, .. }
            | Self::Script { latency: None, .. } => Better::Higher,
            Self::Blocks(BlockFigure::LogicalReads | BlockFigure::Visited | BlockFigure::HitRatio) => {
                Better::Higher
            }
            Self::Blocks(BlockFigure::PhysicalReads | BlockFigure::Writes) => Better::Neither,
            Self::Latency(_)
            | Self::Background { .. }
            | Self::Script { .. }
            | Self::LongestStall
            | Self::Instructions
            | Self::CpuPerTransaction
            | Self::ServerInstructions
            | Self::WalBytesPerTransaction => Better::Lower,
            Self::Own(name) => own_figure(name).unwrap_or(Better::Neither),
            Self::Collected { name, .. } => find(name).map_or(Better::Neither, |metric| metric.better),
        }
    }

    /// Whether its figures are times, in microseconds.
    pub fn is_time(&self) -> bool {
        if let Self::Phase { metric, .. } = self {
            return metric.is_time();
        }
        matches!(
            self,
            Self::Latency(_)
                | Self::LongestStall
                | Self::CpuPerTransaction
                | Self::Background { latency: Some(_), .. }
                | Self::Script { latency: Some(_), .. }
        )
    }

    /// Description of the metric without the unit of times; for a collected one, by the kind that was found.
    pub fn in_words(&self, kind: Option<Kind>) -> String {
        match self {
            Self::Tps => "transactions per second".to_owned(),
            Self::Latency(LatencyFigure::Mean) => "mean latency".to_owned(),
            Self::Latency(LatencyFigure::P50) => "median latency".to_owned(),
            Self::Latency(LatencyFigure::P95) => "95th percentile of latency".to_owned(),
            Self::Latency(LatencyFigure::P99) => "99th percentile of latency".to_owned(),
            Self::Instructions => "instructions per transaction".to_owned(),
            Self::CpuPerTransaction => "server CPU time per transaction".to_owned(),
            Self::ServerInstructions => "server instructions per transaction".to_owned(),
            Self::WalBytesPerTransaction => "WAL per transaction, bytes".to_owned(),
            Self::Background { workload, latency } => {
                let figure = latency.map_or(Self::Tps, Self::Latency);
                format!("{} of {workload}, a background workload", figure.in_words(None))
            }
            Self::Script { script, latency } => {
                let figure = latency.map_or(Self::Tps, Self::Latency);
                format!("{} of the script {script}", figure.in_words(None))
            }
            Self::Phase { phase, metric } => format!("phase {phase}: {}", metric.in_words(kind)),
            Self::Rows => "rows per second".to_owned(),
            Self::WorstSecond => "transactions in the worst second".to_owned(),
            Self::LongestStall => "longest stall".to_owned(),
            Self::NewOrders => "new orders per minute".to_owned(),
            Self::Own(name) => name.clone(),
            Self::Blocks(figure) => figure.in_words().to_owned(),
            Self::Collected { name, .. } => {
                let meaning = find(name).map(|metric| format!(" ({})", metric.meaning)).unwrap_or_default();
                match kind {
                    Some(Kind::Counter) => format!("{self}{meaning}, growth per second"),
                    Some(Kind::Gauge) => format!("{self}{meaning}, mean over the window"),
                    None => format!("{self}{meaning}"),
                }
            }
        }
    }

    /// Counter or gauge, as in this trial; `None` for a metric that is not collected, or was not.
    pub(crate) fn kind(&self, record: &TrialRecord) -> Option<Kind> {
        if let Self::Phase { phase, metric } = self {
            return metric.kind(&record.of_phase(phase)?);
        }
        let Self::Collected { name, .. } = self else { return None };
        record.metrics.all(name).next().map(|series| series.kind)
    }

    /// Whether a trial's head lacks it; heads of paired trials have the CPU time.
    pub(crate) fn needs_record(&self) -> bool {
        if let Self::Phase { metric, .. } = self {
            return metric.needs_record();
        }
        !matches!(
            self,
            Self::Tps
                | Self::Latency(_)
                | Self::Rows
                | Self::WorstSecond
                | Self::LongestStall
                | Self::Instructions
                | Self::ServerInstructions
                | Self::Own(_)
                | Self::Background { .. }
        )
    }

    /// Figure in the head of a trial; `None` if the head lacks it.
    pub fn head_value(&self, trial: &Trial) -> Option<f64> {
        if let Self::Phase { phase, metric } = self {
            return metric.head_value(&trial.of_phase(phase)?);
        }
        let summary = trial.summary.as_ref()?;
        match self {
            Self::Own(name) => trial.figures.get(name).copied(),
            Self::Rows => {
                let custom = trial.cell.workload.known()?.custom()?;
                Some(summary.tps * f64::from(custom.rows_per_transaction?))
            }
            Self::WorstSecond => summary.worst_second_tps,
            Self::LongestStall => summary.longest_stall_us.map(|us| us as f64),
            Self::CpuPerTransaction => trial.paired.as_ref()?.server_cpu_us_per_transaction(),
            Self::ServerInstructions => trial.paired.as_ref()?.server_instructions_per_transaction(),
            Self::Tps => Some(summary.tps),
            Self::Instructions => summary.instructions_per_transaction,
            Self::Latency(figure) => figure.value(summary.latency.as_ref()?),
            Self::Background { workload, latency } => {
                let background =
                    summary.background.iter().find(|background| background.workload == *workload)?;
                match latency {
                    None => Some(background.tps),
                    Some(figure) => figure.value(background.latency.as_ref()?),
                }
            }
            _ => None,
        }
    }

    /// Figure of a trial; `None` if it can't be determined.
    pub fn value(&self, record: &TrialRecord) -> Option<f64> {
        if let Self::Phase { phase, metric } = self {
            return metric.value(&record.of_phase(phase)?);
        }
        let window = Window::from_record(record)?;
        match self {
            Self::Tps
            | Self::Latency(_)
            | Self::Rows
            | Self::WorstSecond
            | Self::LongestStall
            | Self::Phase { .. }
            | Self::Instructions
            | Self::ServerInstructions
            | Self::Own(_)
            | Self::Background { .. } => self.head_value(&record.trial),
            Self::CpuPerTransaction if record.trial.paired.is_some() => self.head_value(&record.trial),
            Self::CpuPerTransaction => window.per_transaction(server_cpu_us(record, &window)?),
            Self::WalBytesPerTransaction => {
                let bytes = record.metrics.growth("pg.wal.bytes", None, window.from_us, window.to_us)?;
                window.per_transaction(bytes)
            }
            Self::Script { script, latency } => script::value(record, script, *latency, &window),
            Self::NewOrders => {
                let per_second = script::value(record, NEW_ORDER_SCRIPT, None, &window)?;
                Some(per_second * SECONDS_PER_MINUTE)
            }
            Self::Blocks(figure) => figure.value(record, window.from_us, window.to_us),
            Self::Collected { name, of } => match of {
                Some(of) => rate_or_mean(record.metrics.get(name, Some(of))?, &window),
                None => aggregate(record, name, &window),
            },
        }
    }
}

impl LatencyFigure {
    pub(crate) fn value(self, latency: &Latency) -> Option<f64> {
        match self {
            Self::Mean => latency.mean_us,
            Self::P50 => latency.p50_us,
            Self::P95 => latency.p95_us,
            Self::P99 => latency.p99_us,
        }
    }
}

/// The measured window of a trial whose load ran, in microseconds after the load's start.
struct Window {
    from_us: i64,
    to_us: i64,
    /// `None` if an imported trial does not contain it.
    transactions: Option<f64>,
}

impl Window {
    fn from_record(record: &TrialRecord) -> Option<Self> {
        let transactions = record.trial.summary.as_ref()?.transactions.map(|count| count as f64);
        let measured = || record.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
        let ends = measured().next().zip(measured().next_back());
        // An imported trial may have no intervals; then nothing was collected either.
        let (from_us, to_us) = ends.map_or((0, 0), |(first, last)| {
            (signed(first.start_us), signed(last.start_us.saturating_add(last.width_us)))
        });
        Some(Self { from_us, to_us, transactions })
    }

    fn seconds(&self) -> f64 {
        (self.to_us - self.from_us) as f64 / 1e6
    }

    fn per_transaction(&self, amount: f64) -> Option<f64> {
        self.transactions.filter(|transactions| *transactions > 0.0).map(|transactions| amount / transactions)
    }
}

/// Roles of processes that are not the server's, or only serve pgdyno.
const OTHER_ROLES: [&str; 5] = ["driver", "pgdyno", "collector", "kernel", "foreign"];

fn server_cpu_us(record: &TrialRecord, window: &Window) -> Option<f64> {
    let of_server = |series: &&Series| {
        series.label.as_deref().is_some_and(|role| !OTHER_ROLES.contains(&role))
            && series.metric == "role.run_us"
    };
    let mut roles = record.metrics.0.iter().filter(of_server).peekable();
    roles.peek()?;
    roles.map(|role| role.growth(window.from_us, window.to_us)).sum()
}

/// The figure over all labels: that of `all`, if there is one (`all` CPUs), else the sum. A series without readings in
/// the window adds nothing; one with an unknown figure makes the sum unknown.
fn aggregate(record: &TrialRecord, name: &str, window: &Window) -> Option<f64> {
    if let Some(all) = record.metrics.get(name, Some("all")) {
        return rate_or_mean(all, window);
    }
    let was_read = |series: &&Series| {
        series.points.iter().any(|point| (window.from_us..=window.to_us).contains(&point.at_us))
    };
    let mut subjects = record.metrics.all(name).filter(was_read).peekable();
    subjects.peek()?;
    subjects.map(|series| rate_or_mean(series, window)).sum()
}

fn rate_or_mean(series: &Series, window: &Window) -> Option<f64> {
    match series.kind {
        Kind::Counter if window.seconds() > 0.0 => {
            Some(series.growth(window.from_us, window.to_us)? / window.seconds())
        }
        Kind::Counter => None,
        Kind::Gauge => series.mean(window.from_us, window.to_us),
    }
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

/// Suggests alternatives to a metric that no trial has.
pub(crate) fn metrics_like(metric: &Metric, collected: &[String]) -> String {
    const SHOWN: usize = 12;
    if let Metric::Own(name) = metric {
        return format!(
            "none of their workloads has a query for it, or none returned it: `pgdyno show ID` has notes on {name}"
        );
    }
    let Metric::Collected { name, of } = metric else {
        return match metric.needs_record() && collected.is_empty() {
            true => "no metrics were collected during their loads".to_owned(),
            false => "the metrics that it is computed from were not collected".to_owned(),
        };
    };
    if collected.contains(name) {
        let label = of.as_ref().map(|label| format!(" of \"{label}\"")).unwrap_or_default();
        return format!(
            "it was collected, but not{label} over the whole window, or it was reset in the window"
        );
    }
    let source = name.split('.').next().unwrap_or_default();
    let like: Vec<&str> = collected
        .iter()
        .filter(|known| known.split('.').next() == Some(source))
        .map(String::as_str)
        .collect();
    match (like.as_slice(), collected) {
        (_, []) => "no metrics were collected during their loads".to_owned(),
        ([], _) => format!("{} other metrics were collected (docs/metrics.md)", collected.len()),
        (like, _) => {
            let more = if like.len() > SHOWN { ", …" } else { "" };
            format!("the metrics of {source} are {}{more}", like[..like.len().min(SHOWN)].join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_displayed_as_parsed() {
        for text in [
            "tps",
            "latency.p95",
            "instructions",
            "cpu_per_transaction",
            "blocks.hit_ratio",
            "pg.wal.bytes",
            "disk.write_bytes{vda}",
            "beside.tps{queue}",
            "beside.latency.p99{a b.sql}",
            "script.tps{a.sql}",
            "script.latency.mean{a b.sql}",
            "rows",
            "longest_stall",
            "phase.tps{l.i0}",
            "phase.rows{l.i0}",
            "phase.pg.wal.bytes{l.x}",
            "phase.beside.latency.p99{qr100/inserts}",
            "phase.script.tps{qr100/a b.sql}",
            "figure.recall",
            "cost.table_bytes",
        ] {
            assert_eq!(text.parse::<Metric>().unwrap().to_string(), text);
        }
        assert_eq!(
            "role.run_us{io worker}".parse(),
            Ok(Metric::Collected { name: "role.run_us".to_owned(), of: Some("io worker".to_owned()) })
        );
        for text in [
            "",
            "tsp",
            "latency.p42",
            "blocks.reads",
            "a b.c",
            "disk.write_bytes{vda",
            "phase.tps",
            "phase.tsp{a}",
            "phase.phase.tps{a/b}",
            "figure.",
            "figure.a b",
            "cost.bytes{all}",
        ] {
            let error = text.parse::<Metric>().unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
            assert!(error.contains("there are tps, latency.mean"), "{error}");
        }
    }
}
