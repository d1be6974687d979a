//! Gates: bounds on changes.

use std::fmt;
use std::str::FromStr;

use stats::Interval;

use super::Compared;
use crate::judgement::{Outcome, Row};
use crate::metric::Metric;

/// A bound on the change of a metric, such as `tps < -5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// The metric.
    pub metric: Metric,
    /// The side of the bound that hits the gate.
    pub beyond: Beyond,
    /// The bound as a share: −0.05 is a change of −5%.
    pub bound: f64,
}

/// The side of its bound on which a gate is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Below the bound.
    Below,
    /// Above the bound.
    Above,
}

/// The text is not a gate. Holds the message of the usage error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(String);

/// Outcome of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateOutcome {
    /// The gate.
    pub gate: Gate,
    /// Indices of the metric's rows that hit it: they changed, and by more than the bound.
    pub hit: Vec<usize>,
    /// Indices of the undecided rows: no change is shown, but one beyond the bound can't be excluded.
    pub undecided: Vec<usize>,
}

/// State of several gates together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Whether one is hit.
    pub hit: bool,
    /// Whether one is not decided for a cell.
    pub undecided: bool,
}

impl Gates {
    /// From whether each is hit, and whether it is not decided.
    pub(crate) fn new(gates: impl Iterator<Item = (bool, bool)>) -> Self {
        gates.fold(Self::default(), |all, (hit, undecided)| Self {
            hit: all.hit || hit,
            undecided: all.undecided || undecided,
        })
    }
}

impl Gate {
    pub(crate) fn is_beyond(&self, ratio: f64) -> bool {
        match self.beyond {
            Beyond::Below => ratio - 1.0 < self.bound,
            Beyond::Above => ratio - 1.0 > self.bound,
        }
    }

    pub(super) fn outcome(&self, compared: &Compared) -> GateOutcome {
        let rows = compared.metrics.iter().find(|of| of.metric == self.metric);
        let rows = rows.map(|of| of.rows.as_slice()).unwrap_or_default();
        let which = |is_so: &dyn Fn(&Row) -> bool| {
            rows.iter().enumerate().filter(|(_, row)| is_so(row)).map(|(at, _)| at).collect()
        };
        GateOutcome {
            hit: which(&|row| self.is_hit(row)),
            undecided: which(&|row| self.is_undecided(row)),
            gate: self.clone(),
        }
    }

    fn is_hit(&self, row: &Row) -> bool {
        row.judged.outcome.direction().is_some() && row.ratio().is_some_and(|ratio| self.is_beyond(ratio))
    }

    fn is_undecided(&self, row: &Row) -> bool {
        let reaches = |interval: Interval| self.is_beyond(interval.low) || self.is_beyond(interval.high);
        match row.judged.outcome {
            Outcome::Change { .. } | Outcome::Equivalent => false,
            // Unstable runs have no reliable interval.
            Outcome::Unstable
            | Outcome::Insufficient
            | Outcome::Refused(_)
            | Outcome::NoFigure
            | Outcome::Invalid => true,
            Outcome::Inconclusive => row.interval().is_none_or(reaches),
        }
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let wrong = |why: String| {
            GateError(format!(
                "{why}: a gate is METRIC < CHANGE% or METRIC > CHANGE%, such as \"tps < -5%\" or \"latency.p99 > 10%\""
            ))
        };
        let at = text.find(['<', '>']).ok_or_else(|| wrong(format!("\"{text}\" has neither < nor >")))?;
        let (metric, rest) = text.split_at(at);
        let beyond = if rest.starts_with('<') { Beyond::Below } else { Beyond::Above };
        let metric: Metric = metric.parse().map_err(|error| GateError(format!("{error}")))?;
        let figure = rest[1..].trim();
        let percent = figure
            .strip_suffix('%')
            .ok_or_else(|| wrong(format!("\"{figure}\" is not a change in percent")))?
            // The minus sign of people and tables.
            .replace('−', "-");
        let percent: f64 = percent
            .trim()
            .parse()
            .ok()
            .filter(|percent: &f64| percent.is_finite() && *percent > -100.0)
            .ok_or_else(|| wrong(format!("\"{figure}\" is not a possible change")))?;
        Ok(Self { metric, beyond, bound: percent / 100.0 })
    }
}

/// The form of the command line.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beyond = match self.beyond {
            Beyond::Below => '<',
            Beyond::Above => '>',
        };
        // 0.07 × 100 is not exactly 7 in binary.
        let percent = (self.bound * 1e8).round() / 1e6;
        write!(f, "{} {beyond} {percent}%", self.metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_displayed_as_parsed() {
        for text in ["tps < -5%", "latency.p99 > 7%", "disk.write_bytes{vda} > 12.5%"] {
            assert_eq!(text.parse::<Gate>().unwrap().to_string(), text);
        }
        assert_eq!("tps<−5 %".parse::<Gate>().unwrap().to_string(), "tps < -5%");
        let bound = "tps < -5%".parse::<Gate>().unwrap();
        assert!(bound.is_beyond(0.949) && !bound.is_beyond(0.951) && !bound.is_beyond(1.2));
    }

    #[test]
    fn invalid_gates_are_rejected_with_the_syntax() {
        for text in ["tps", "tps < -5", "tps < x%", "tps = 5%", "tps < -100%", "tps < NaN%"] {
            let error = text.parse::<Gate>().unwrap_err().to_string();
            assert!(error.contains("such as \"tps < -5%\""), "{error}");
        }
        assert!("tsp < -5%".parse::<Gate>().unwrap_err().to_string().contains("no metric \"tsp\""));
    }
}
