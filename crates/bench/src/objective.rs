//! Objectives that a rate has to meet: `p99 < 10ms`, `errors < 1%`.

use std::fmt;
use std::str::FromStr;

use driver::{Intended, Record};
use hdrhistogram::Histogram;
use replay::Responses;

use crate::figures::{ms, percent};
use crate::quantity;

/// A bound on a figure of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    figure: Figure,
    /// Nanoseconds; a share for errors.
    limit: f64,
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Figure {
    Quantile(f64),
    Mean,
    Max,
    /// Share of the transactions that failed or were skipped.
    Errors,
}

/// The measured value of an objective's figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evaluation {
    /// Microseconds; a share for errors. None if there was nothing to measure.
    pub(crate) value: Option<f64>,
    pub(crate) holds: bool,
}

/// Factor by which the number of transactions of a random schedule may exceed the expected one.
const ARRIVALS_MARGIN: f64 = 1.1;

impl Objective {
    /// The objectives of a search, with one for errors if there is none: a rate at which transactions fail is not one that
    /// the server keeps up with.
    pub(crate) fn with_errors(mut objectives: Vec<Self>) -> Vec<Self> {
        if !objectives.iter().any(Self::is_share) {
            objectives.push(Self { figure: Figure::Errors, limit: 0.001, text: "errors < 0.1%".to_owned() });
        }
        objectives
    }

    /// The figure of a load, and whether it holds.
    pub(crate) fn evaluate(&self, window: &Window) -> Evaluation {
        let value = match &self.figure {
            Figure::Errors => window.error_share(),
            _ if window.latency.is_empty() => None,
            Figure::Quantile(quantile) => Some(window.latency.value_at_quantile(*quantile) as f64),
            Figure::Mean => Some(window.mean_ns),
            Figure::Max => Some(window.max_ns as f64),
        };
        let unit = if self.figure == Figure::Errors { 1.0 } else { 1e3 };
        Evaluation {
            value: value.map(|value| value / unit),
            holds: value.is_some_and(|value| value < self.limit),
        }
    }

    /// Whether it can no longer be met: `expected` transactions are planned in all.
    pub(crate) fn is_violated(&self, window: &Window, expected: f64) -> bool {
        let expected = (expected * ARRIVALS_MARGIN).max(1.0);
        match &self.figure {
            Figure::Quantile(quantile) => {
                let within = window.latency.count_between(0, (self.limit as u64).saturating_sub(1));
                let beyond = window.latency.len() - within;
                beyond as f64 > (1.0 - quantile) * expected + 1.0
            }
            Figure::Mean => window.mean_ns * window.latency.len() as f64 > self.limit * expected,
            Figure::Max => window.max_ns as f64 >= self.limit,
            Figure::Errors => (window.failed + window.skipped) as f64 > self.limit * expected + 1.0,
        }
    }

    /// In what it is not met: `p99 12.3 ms`.
    pub(crate) fn violation(&self, value: Option<f64>) -> String {
        match value {
            None => "nothing succeeded".to_owned(),
            Some(share) if self.is_share() => format!("{} {}", self.figure_name(), percent(share)),
            Some(us) => format!("{} {} ms", self.figure_name(), ms(us * 1e3)),
        }
    }

    /// The figure's name: `p99`.
    pub(crate) fn figure_name(&self) -> &str {
        self.text.split(['<', ' ']).next().unwrap_or_default()
    }

    /// Whether two values contradict each other, in its unit: one near the limit at a rate, and less than half of it at a
    /// higher one.
    pub(crate) fn is_contradiction(&self, at_lower_rate: f64, at_higher_rate: f64) -> bool {
        let is_near = at_lower_rate * 1e3 >= self.limit / 2.0;
        !self.is_share() && is_near && at_lower_rate > 2.0 * at_higher_rate
    }

    /// Whether its value is a share, not a time.
    pub(crate) fn is_share(&self) -> bool {
        self.figure == Figure::Errors
    }
}

/// The window of a load, all scripts together.
pub(crate) struct Window {
    latency: Histogram<u64>,
    mean_ns: f64,
    max_ns: u64,
    failed: u64,
    skipped: u64,
}

impl Window {
    /// The transactions that ended in the window; in an open loop with the latencies of those that were to start in it.
    pub(crate) fn from_record(record: &Record) -> Option<Self> {
        let (first, others) = record.scripts.split_first()?;
        let mut sum = first.clone();
        others.iter().for_each(|script| sum.add(script));
        let (failed, skipped) = (sum.failures.sum(), sum.skipped);
        Some(Self {
            latency: sum.latency,
            mean_ns: sum.moments.mean,
            max_ns: sum.moments.max,
            failed,
            skipped,
        })
    }

    /// The statements of a trace that have ended.
    pub(crate) fn from_responses(responses: &Responses) -> Self {
        let count = responses.latency.len();
        Self {
            latency: responses.latency.clone(),
            mean_ns: if count == 0 { 0.0 } else { responses.total_ns as f64 / count as f64 },
            max_ns: if count == 0 { 0 } else { responses.latency.max() },
            failed: responses.wrong,
            skipped: 0,
        }
    }

    /// The same with the latencies of all that were to start in it, whenever they ended.
    pub(crate) fn with_intended(self, intended: &Intended) -> Self {
        Self {
            latency: intended.latency.clone(),
            mean_ns: intended.moments.mean,
            max_ns: intended.moments.max,
            ..self
        }
    }

    fn error_share(&self) -> Option<f64> {
        let bad = self.failed + self.skipped;
        let all = bad + self.latency.len();
        (all > 0).then(|| bad as f64 / all as f64)
    }
}

/// A text that is not an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an objective: expected FIGURE < LIMIT, such as \"p99 < 10ms\" or \"errors < 1%\"; FIGURE is p50 to \
     p99.99, mean, max or errors"
)]
pub struct ObjectiveError(String);

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let invalid = || ObjectiveError(text.to_owned());
        let (name, limit) = text.split_once('<').ok_or_else(invalid)?;
        let (name, limit) = (name.trim(), limit.trim_start_matches('=').trim());
        let figure = match name {
            "mean" => Figure::Mean,
            "max" => Figure::Max,
            "errors" => Figure::Errors,
            _ => {
                let percent: f64 = name.strip_prefix('p').and_then(|p| p.parse().ok()).ok_or_else(invalid)?;
                if !(percent > 0.0 && percent < 100.0) {
                    return Err(invalid());
                }
                Figure::Quantile(percent / 100.0)
            }
        };
        let limit = if figure == Figure::Errors {
            let percent = limit.strip_suffix('%').ok_or_else(invalid)?;
            let percent: f64 = percent.trim().parse().map_err(|_| invalid())?;
            percent / 100.0
        } else {
            // Without a unit it could mean seconds or milliseconds.
            if limit.parse::<f64>().is_ok() {
                return Err(invalid());
            }
            quantity::positive_duration(limit).map_err(|_| invalid())?.as_nanos() as f64
        };
        if limit.is_nan() || limit <= 0.0 {
            return Err(invalid());
        }
        let shown = text.split_once('<').map_or("", |(_, limit)| limit.trim_start_matches('=').trim());
        Ok(Self { figure, limit, text: format!("{name} < {shown}") })
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objective(text: &str) -> Objective {
        text.parse().unwrap()
    }

    fn window(latencies_ms: impl IntoIterator<Item = u64>, failed: u64) -> Window {
        let mut latency = Histogram::new(3).unwrap();
        latencies_ms.into_iter().for_each(|ms| latency.record(ms * 1_000_000).unwrap());
        let (mean_ns, max_ns) = (latency.mean(), latency.max());
        Window { latency, mean_ns, max_ns, failed, skipped: 0 }
    }

    #[test]
    fn spaces_and_equal_signs_are_optional() {
        for (text, shown) in [
            ("p99 < 10ms", "p99 < 10ms"),
            ("p99.99<1s", "p99.99 < 1s"),
            ("mean <= 500us", "mean < 500us"),
            (" errors < 1 %", "errors < 1 %"),
        ] {
            assert_eq!(objective(text).to_string(), shown);
        }
        assert_eq!(objective("p99.9<1s").figure_name(), "p99.9");
        for wrong in ["p99", "p99 < 10", "p100 < 1s", "errors < 1s", "tps < 5ms", "p99 > 1ms", "errors < 0%"]
        {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_objective_is_met_below_its_limit() {
        let window = window((0..100).map(|n| if n < 98 { 1 } else { 50 }), 1);
        let holds = |text: &str| objective(text).evaluate(&window).holds;
        assert!(holds("p90 < 2ms") && !holds("p99 < 10ms") && holds("p99 < 60ms"));
        assert!(holds("max < 51ms") && !holds("max < 49ms") && holds("mean < 2ms"));
        assert!(holds("errors < 1%") && !holds("errors < 0.5%"));
        let none = super::tests::window([], 0);
        assert_eq!(objective("p99 < 10ms").evaluate(&none), Evaluation { value: None, holds: false });
    }

    #[test]
    fn values_contradict_each_other_if_a_higher_rate_is_much_faster() {
        let p99 = objective("p99 < 30ms");
        assert!(p99.is_contradiction(21_512.0, 8_520.0));
        assert!(!p99.is_contradiction(21_512.0, 19_000.0) && !p99.is_contradiction(8_520.0, 21_512.0));
        assert!(!p99.is_contradiction(6_000.0, 1_000.0), "far from the limit");
        assert!(!objective("errors < 1%").is_contradiction(0.009, 0.0));
    }

    #[test]
    fn an_objective_is_violated_once_it_can_no_longer_be_met() {
        let bad = window([50; 20], 0);
        // 10 of 1,000 may be beyond the limit, and 100 of 10,000.
        assert!(objective("p99 < 10ms").is_violated(&bad, 1_000.0));
        assert!(!objective("p99 < 10ms").is_violated(&bad, 10_000.0));
        assert!(objective("max < 10ms").is_violated(&bad, 1e9));
        assert!(!objective("mean < 10ms").is_violated(&bad, 1_000.0));
    }
}
