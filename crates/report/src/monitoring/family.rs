//! Families of metrics, and their names in other systems: Prometheus' base units and endings.
//!
//! Names are given in pgdyno's words, with their unit at the end, as in the catalogue of metrics and in columns of the
//! export tables: those of collectors and of intervals are derived from these lists, and [`LIVE`] has the others.

use std::borrow::Cow;

use model::metrics::{self, Series};

use crate::export_tables::{self, Table};

/// A family: samples with one name and meaning, told apart by labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name in pgdyno's words: `load.latency_us`.
    name: Cow<'static, str>,
    /// Interpretation of its values.
    pub kind: Kind,
    /// Labels in addition to `run` and `trial`.
    pub labels: &'static [&'static str],
    /// Meaning, a phrase in plain text.
    pub help: Cow<'static, str>,
}

/// Interpretation of a family's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; a smaller value is a new start.
    Counter,
    /// The value at a time.
    Gauge,
    /// Counts by bucket, which only grow, and the sum of what was counted.
    Histogram,
    /// Labels alone: its value is 1.
    Info,
}

impl Kind {
    /// Its name in OpenMetrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// Base unit of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Hertz.
    Hertz,
    /// Degrees Celsius.
    Celsius,
    /// A share, 0 to 1.
    Ratio,
}

impl Unit {
    /// Its name in Prometheus, at the end of a family's name; none for plain counts.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Count => None,
            Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::Hertz => Some("hertz"),
            Self::Celsius => Some("celsius"),
            Self::Ratio => Some("ratio"),
        }
    }
}

const fn family(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name: Cow::Borrowed(name), kind, labels, help: Cow::Borrowed(help) }
}

pub(super) const BUILD: Family = family("build", Kind::Info, &["version"], "release of this pgdyno");
pub(super) const RUNNING: Family = family("running_runs", Kind::Gauge, &[], "campaigns running on the store");
pub(super) const RUN: Family = family(
    "run",
    Kind::Info,
    &["campaign", "version"],
    "a running campaign, and the release of pgdyno that runs it",
);
pub(super) const RUN_START: Family =
    family("run.start_timestamp_us", Kind::Gauge, &[], "time when the run began or was resumed");
pub(super) const RUN_PLANNED: Family =
    family("run.planned_trials", Kind::Gauge, &[], "planned trials, including those that have ended");
pub(super) const RUN_TRIALS: Family = family(
    "run.trials",
    Kind::Counter,
    &["validity"],
    "trials that have ended, including those before a resume",
);
pub(super) const RUN_REMAINING: Family =
    family("run.remaining_us", Kind::Gauge, &[], "estimated time until the run ends");
pub(super) const RUN_PHASE: Family = family(
    "run.phase",
    Kind::Gauge,
    &["phase"],
    "1 for the current phase, else 0: prepare (no load), warmup, measure, drain",
);
pub(super) const TRIAL: Family = family(
    "trial",
    Kind::Info,
    &["cell", "position", "repeat", "attempt"],
    "the trial, and the level of each factor under the factor's name",
);
pub(super) const TRIAL_START: Family =
    family("trial.start_timestamp_us", Kind::Gauge, &[], "time when the trial began, including server start");
pub(super) const TRIAL_WARMUP: Family = family("trial.warmup_us", Kind::Gauge, &[], "length of its warm-up");
pub(super) const TRIAL_WINDOW: Family =
    family("trial.window_us", Kind::Gauge, &[], "length of its measured window");
pub(super) const TRIAL_LOADED: Family =
    family("trial.loaded_us", Kind::Gauge, &[], "how long its load has been running");
pub(super) const TRANSACTIONS: Family = family(
    "load.transactions",
    Kind::Counter,
    &["phase"],
    "successful transactions of the measured workload, by the phase in which they ended",
);
pub(super) const FAILED: Family = family(
    "load.failed_transactions",
    Kind::Counter,
    &["phase"],
    "failed transactions of the measured workload, by the phase in which they ended",
);
pub(super) const LATENCY: Family = family(
    "load.latency_us",
    Kind::Histogram,
    &["phase"],
    "latency from the intended start; in an open loop by the phase in which the transaction was to start",
);
pub(super) const SESSIONS: Family = family(
    "load.sessions",
    Kind::Gauge,
    &["session", "wait_event_type", "wait_event"],
    "mean number of sessions in a state, in a second: wait_event_type is CPU for active ones that do not wait, \
     and the state for others",
);

/// Families of running campaigns, except those of the latest second, which [`all_live`] adds.
const LIVE: [&Family; 17] = [
    &BUILD,
    &RUNNING,
    &RUN,
    &RUN_START,
    &RUN_PLANNED,
    &RUN_TRIALS,
    &RUN_REMAINING,
    &RUN_PHASE,
    &TRIAL,
    &TRIAL_START,
    &TRIAL_WARMUP,
    &TRIAL_WINDOW,
    &TRIAL_LOADED,
    &TRANSACTIONS,
    &FAILED,
    &LATENCY,
    &SESSIONS,
];

/// Columns of the intervals table that a live file has.
pub(super) const LIVE_COLUMNS: [&str; 5] =
    ["tps", "latency_p50_us", "latency_p95_us", "latency_p99_us", "latency_max_us"];

/// Families of running campaigns, in the order of `/metrics`.
pub fn all_live() -> Vec<Family> {
    let mut families: Vec<Family> = LIVE.into_iter().cloned().collect();
    let columns = Table::Intervals.columns();
    families
        .extend(columns.iter().filter(|column| LIVE_COLUMNS.contains(&column.name)).map(Family::of_interval));
    families
}

impl Family {
    /// The family of a column of [`Table::Intervals`].
    pub fn of_interval(column: &export_tables::Column) -> Self {
        Self {
            name: format!("interval.{}", column.name).into(),
            kind: Kind::Gauge,
            labels: &[],
            help: format!("{}, in an interval of about a second", column.about).into(),
        }
    }

    /// The family of a collector's series, also if this release does not know the metric.
    pub fn of_series(series: &Series) -> Self {
        let kind = match series.kind {
            metrics::Kind::Counter => Kind::Counter,
            metrics::Kind::Gauge => Kind::Gauge,
        };
        let group = metrics::GROUPS
            .iter()
            .find(|group| group.metrics.iter().any(|metric| metric.name == series.metric));
        let help = match (metrics::find(&series.metric), group.and_then(|group| group.label)) {
            (Some(metric), Some(label)) => format!("{} (of: {label})", metric.meaning),
            (Some(metric), None) => metric.meaning.to_owned(),
            (None, _) => "metric of another release of pgdyno".to_owned(),
        };
        let labels: &[&str] = if series.label.is_some() { &["of"] } else { &[] };
        // The catalogue's texts are Markdown.
        Self { name: series.metric.clone().into(), kind, labels, help: help.replace('`', "").into() }
    }

    /// Whether its values count from the start of the load.
    pub(super) fn is_of_load(&self) -> bool {
        [&TRANSACTIONS, &FAILED, &LATENCY].contains(&self)
    }

    /// Unit of its values, and how many of pgdyno's units are one.
    fn conversion(&self) -> (Unit, f64) {
        if self.name.ends_with("_share") {
            return (Unit::Ratio, 1.0);
        }
        match metrics::Unit::from_name(&self.name) {
            metrics::Unit::Microseconds => (Unit::Seconds, 1e6),
            metrics::Unit::Bytes => (Unit::Bytes, 1.0),
            metrics::Unit::Hertz => (Unit::Hertz, 1.0),
            metrics::Unit::Celsius => (Unit::Celsius, 1.0),
            metrics::Unit::Count => (Unit::Count, 1.0),
        }
    }

    /// Unit of its values.
    pub fn unit(&self) -> Unit {
        self.conversion().0
    }

    /// A value in this unit.
    pub fn value(&self, value: f64) -> f64 {
        value / self.conversion().1
    }

    /// Its name with the base unit at the end, in dotted parts: `pgdyno.load.latency_seconds`. Unlike most dotted names
    /// it has the unit: `disk.read_us` and `disk.read_bytes` would be the same otherwise. `_total` is for counters, whose
    /// samples get it.
    pub fn dotted_name(&self) -> String {
        let name = match (self.unit().name(), self.name.rfind(['_', '.'])) {
            (Some(unit), Some(end)) => format!("{}{unit}", &self.name[..=end]),
            _ => self.name.to_string(),
        };
        let name = name.strip_suffix("_total").map(|amount| format!("{amount}_all")).unwrap_or(name);
        format!("pgdyno.{name}")
    }

    /// Its name in Prometheus, without the ending of samples: `pgdyno_load_latency_seconds`.
    pub fn metric_name(&self) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.dotted_name().replace(|c| !is_word(c), "_")
    }

    /// Ending of its samples' names; of a histogram there are several.
    pub const fn ending(&self) -> &'static str {
        match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::metrics::GROUPS;

    use super::*;

    fn of_catalogue() -> impl Iterator<Item = Family> {
        let metrics = GROUPS.into_iter().flat_map(|group| group.metrics);
        metrics.map(|metric| Family::of_series(&Series::new(metric, None, Vec::new())))
    }

    #[test]
    fn names_have_base_units_and_endings() {
        let name = |family: &Family| family.metric_name() + family.ending();
        for (metric, expected) in [
            ("cpu.user_us", "pgdyno_cpu_user_seconds_total"),
            ("pg.wal.bytes", "pgdyno_pg_wal_bytes_total"),
            ("pg.database.commits", "pgdyno_pg_database_commits_total"),
            ("memory.cached_bytes", "pgdyno_memory_cached_bytes"),
            ("pg.progress.analyze.blks_total", "pgdyno_pg_progress_analyze_blks_all"),
        ] {
            let metric = metrics::find(metric).unwrap();
            assert_eq!(name(&Family::of_series(&Series::new(metric, None, Vec::new()))), expected);
        }
        assert_eq!(name(&LATENCY), "pgdyno_load_latency_seconds");
        assert_eq!(LATENCY.value(1500.0), 0.0015);
        assert_eq!(name(&BUILD), "pgdyno_build_info");
        let columns = Table::Intervals.columns();
        let busy = columns.iter().find(|column| column.name == "driver_busy_share").unwrap();
        assert_eq!(name(&Family::of_interval(busy)), "pgdyno_interval_driver_busy_ratio");
        let unknown = Series {
            metric: "a.b-c_us".to_owned(),
            label: None,
            kind: metrics::Kind::Gauge,
            points: Vec::new(),
        };
        assert_eq!(name(&Family::of_series(&unknown)), "pgdyno_a_b_c_seconds");
    }

    /// Samples of different families would be mixed otherwise; and the endings of OpenMetrics are no family's own.
    #[test]
    fn names_are_unique_and_have_no_ending_of_another_kind() {
        let mut names = BTreeSet::new();
        for family in of_catalogue().chain(all_live()) {
            let name = family.metric_name();
            assert!(!family.help.is_empty() && !family.help.contains('`'), "{name}");
            for ending in ["_total", "_created", "_count", "_sum", "_bucket", "_info"] {
                assert!(!name.ends_with(ending), "{name}");
            }
            assert!(names.insert(name.clone()), "twice: {name}");
        }
    }
}
