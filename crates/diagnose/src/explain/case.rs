//! A trial's record, restricted to its measured window.

use model::message::Phase;
use model::record::{Event, Summary, TrialRecord};
use model::waits::{SessionKind, Waits};

/// Why a trial can't be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotExplained {
    /// It was imported.
    #[error("it was imported: nothing is known about the server's activity")]
    Imported,
    /// No load ran.
    #[error("no load ran in this trial")]
    NoLoad,
    /// The number of transactions is missing.
    #[error("the number of transactions is unknown")]
    NoTransactionCount,
    /// No transaction ended in the window.
    #[error("no transaction ended in the window")]
    NoTransactions,
    /// The window is empty.
    #[error("the window has no intervals")]
    NoIntervals,
    /// Neither waits nor metrics were collected.
    #[error(
        "no metrics were collected during the load: the campaign disabled them by `[collect]`, or an earlier release \
         measured the trial"
    )]
    NotCollected,
}

/// A trial with a load and collected data.
pub(crate) struct Case<'a> {
    pub(crate) record: &'a TrialRecord,
    pub(crate) summary: &'a Summary,
    /// Transactions that ended in the window.
    pub(crate) transactions: f64,
    /// Mean latency from the intended start, in microseconds.
    pub(crate) latency_us: f64,
    /// The measured window, in microseconds after the load's start.
    pub(crate) from_us: i64,
    pub(crate) to_us: i64,
    /// Number of samples of the server's sessions in the window.
    pub(crate) samples: u32,
}

impl<'a> Case<'a> {
    pub(crate) fn new(record: &'a TrialRecord) -> Result<Self, NotExplained> {
        if record.trial.imported.is_some() {
            return Err(NotExplained::Imported);
        }
        let summary = record.trial.summary.as_ref().ok_or(NotExplained::NoLoad)?;
        let transactions = summary.transactions.ok_or(NotExplained::NoTransactionCount)?;
        let latency_us = summary.latency.as_ref().and_then(|latency| latency.mean_us);
        let latency_us = latency_us.ok_or(NotExplained::NoTransactions)?;
        let window = || record.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
        let (Some(first), Some(last)) = (window().next(), window().next_back()) else {
            return Err(NotExplained::NoIntervals);
        };
        let (from_us, to_us) = (signed(first.start_us), signed(last.start_us + last.width_us));
        let mut case = Self {
            record,
            summary,
            transactions: transactions as f64,
            latency_us,
            from_us,
            to_us,
            samples: 0,
        };
        let mut spans: Vec<(i64, u32)> = case.waits().map(|waits| (waits.at_us, waits.samples)).collect();
        spans.sort_unstable();
        spans.dedup_by_key(|(at_us, _)| *at_us);
        case.samples = spans.iter().map(|(_, samples)| samples).sum();
        if case.samples > 0 || !record.metrics.0.is_empty() {
            Ok(case)
        } else {
            Err(NotExplained::NotCollected)
        }
    }

    /// Length of the window in microseconds.
    pub(crate) fn window_us(&self) -> f64 {
        (self.to_us - self.from_us) as f64
    }

    /// Time in the window in which the load ran, in microseconds: of a paired trial, without its pauses.
    pub(crate) fn load_time_us(&self) -> f64 {
        // The window also has the warm-up, whose slice is not known.
        let paired = self.record.trial.paired.as_ref();
        paired.and_then(|paired| paired.load_time_us(self.transactions)).unwrap_or(self.window_us())
    }

    /// Waits in the window: spans of which more than half lies in it.
    pub(crate) fn waits(&self) -> impl Iterator<Item = &'a Waits> {
        let (from_us, to_us) = (self.from_us, self.to_us);
        self.record.waits.iter().filter(move |waits| {
            let middle_us = waits.at_us + signed(waits.width_us) / 2;
            (from_us..to_us).contains(&middle_us)
        })
    }

    /// Mean number of matching sessions in the window.
    pub(crate) fn sessions(&self, which: impl Fn(&Waits) -> bool) -> f64 {
        let seen: u32 = self.waits().filter(|waits| which(waits)).map(|waits| waits.seen).sum();
        if self.samples == 0 { 0.0 } else { f64::from(seen) / f64::from(self.samples) }
    }

    /// Time of matching sessions of the load per transaction, in microseconds.
    pub(crate) fn load_us(&self, which: impl Fn(&Waits) -> bool) -> f64 {
        self.per_transaction(
            self.sessions(|waits| waits.session == SessionKind::Load && which(waits)) * self.load_time_us(),
        )
    }

    /// Time per transaction for which clients had none, in microseconds: their number times the window, less the time of
    /// transactions. Of the sampled sessions if the number of clients is unknown.
    pub(crate) fn idle_clients_us(&self, service_us: f64) -> f64 {
        let clients = self.record.trial.cell.clients.known().map_or_else(
            || self.sessions(|waits| waits.session == SessionKind::Load),
            |clients| f64::from(*clients),
        );
        (self.per_transaction(clients * self.load_time_us()) - service_us).max(0.0)
    }

    /// An amount of the whole window, per transaction.
    pub(crate) fn per_transaction(&self, amount: f64) -> f64 {
        amount / self.transactions
    }

    /// An amount of the whole window, per transaction of any workload: the driver's costs are counted for all workloads
    /// together.
    pub(crate) fn per_any_transaction(&self, amount: f64) -> f64 {
        let background: u64 = self.summary.background.iter().map(|background| background.transactions).sum();
        amount / (self.transactions + background as f64)
    }

    /// Growth of a counter in the window.
    pub(crate) fn growth(&self, metric: &str, of: Option<&str>) -> Option<f64> {
        self.record.metrics.growth(metric, of, self.from_us, self.to_us)
    }

    /// Events of a kind with their times in microseconds after the load's start.
    pub(crate) fn events(&self, kind: &'a str) -> impl Iterator<Item = (i64, &'a Event)> {
        let record = self.record;
        let of_kind = record.events.iter().filter(move |event| event.kind == kind);
        of_kind.filter_map(move |event| Some((record.after_start_us(event)?, event)))
    }

    /// Value of a server setting, in its base unit.
    pub(crate) fn setting(&self, name: &str) -> Option<&'a str> {
        self.record.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}
