//! Margins: the smallest change of a metric that matters.

use std::str::FromStr;

use model::units::Share;

use crate::judgement::Runs;
use crate::metric::Metric;

/// A margin that was asked for, written as `3%` for all metrics, or as `latency.p99=10%` for one.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    /// The metric; all others than those with a margin of their own if none.
    pub metric: Option<Metric>,
    /// The change, as a share.
    pub share: f64,
}

/// The text is not a margin. Holds the message of the usage error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: a margin is CHANGE% or METRIC=CHANGE%, such as \"3%\" or \"latency.p99=10%\"")]
pub struct MarginError(String);

impl FromStr for Margin {
    type Err = MarginError;

    fn from_str(text: &str) -> Result<Self, MarginError> {
        let (metric, share) = match text.split_once('=') {
            None => (None, text),
            Some((metric, share)) => {
                let metric = metric.trim().parse().map_err(|error| MarginError(format!("{error}")))?;
                (Some(metric), share)
            }
        };
        let Share(share) = share.trim().parse().map_err(|error| MarginError(format!("{error}")))?;
        Ok(Self { metric, share })
    }
}

/// The margin of a metric between cells: that which was asked for; else the campaigns' `effect`; else 5%. Gates on the
/// metric make it as small as their bound: otherwise a change beyond the bound could be equivalent. Cells with counted
/// instructions have at most 1% unless a margin was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricMargin {
    given: Option<f64>,
    /// The tightest gate, as a share.
    tightest: f64,
}

impl MetricMargin {
    /// That of a metric whose gates have these bounds.
    pub(crate) fn new(metric: &Metric, margins: &[Margin], bounds: impl Iterator<Item = f64>) -> Self {
        let own = margins.iter().rev().find(|margin| margin.metric.as_ref() == Some(metric));
        let given = own.or_else(|| margins.iter().rev().find(|margin| margin.metric.is_none()));
        Self {
            given: given.map(|margin| margin.share),
            tightest: bounds.map(f64::abs).filter(|bound| *bound > 0.0).fold(f64::INFINITY, f64::min),
        }
    }

    /// The margin of two cells whose campaigns are for this effect, as a ratio.
    pub(crate) fn of(self, effect: f64, a: &Runs, b: &Runs) -> f64 {
        let default = stats::margin(effect, a.is_counted() && b.is_counted()) - 1.0;
        1.0 + self.given.unwrap_or(default).min(self.tightest)
    }
}

#[cfg(test)]
mod tests {
    use model::machine::Acceleration;
    use model::record::Run;

    use super::*;
    use crate::design::Campaigns;

    fn run(id: &str, effect: &str) -> Run {
        Run {
            id: id.to_owned(),
            campaign: "c".to_owned(),
            campaign_toml: format!("name = 'c'\n[factors]\nserver = ['18']\n[run]\n{effect}\n"),
            seed: None,
            processors: None,
            pgdyno_version: String::new(),
            tags: Vec::new(),
            notes: None,
        }
    }

    fn margin(margins: &[&str], bounds: &[f64], effects: &[&str], acceleration: Acceleration) -> f64 {
        let margins: Vec<Margin> = margins.iter().map(|text| text.parse().unwrap()).collect();
        let runs: Vec<Run> =
            effects.iter().enumerate().map(|(at, effect)| run(&at.to_string(), effect)).collect();
        let cell = Runs { acceleration, ..Runs::default() };
        let effect = Campaigns::default().smallest_effect(runs.iter());
        let margin =
            MetricMargin::new(&Metric::Tps, &margins, bounds.iter().copied()).of(effect, &cell, &cell);
        (margin * 1e6).round() / 1e6
    }

    #[test]
    fn the_margin_is_what_was_asked_for_else_the_campaigns_effect_and_no_wider_than_a_gate() {
        use Acceleration::{Icount, None};
        assert_eq!(margin(&[], &[], &[], None), 1.05);
        assert_eq!(margin(&[], &[], &["effect = '2%'", "", "effect = '3%'"], None), 1.02);
        assert_eq!(margin(&[], &[], &["effect = '10%'"], None), 1.1);
        assert_eq!(margin(&["3%", "latency.p99=1%"], &[], &["effect = '2%'"], None), 1.03);
        assert_eq!(margin(&["3%", "tps=1%"], &[], &[], None), 1.01);
        assert_eq!(margin(&[], &[-0.03, 0.2], &[], None), 1.03);
        assert_eq!(margin(&["1%"], &[-0.03, 0.0], &[], None), 1.01);
        assert_eq!(margin(&[], &[], &["effect = '2%'"], Icount), 1.01);
        assert_eq!(margin(&["4%"], &[], &[], Icount), 1.04);
    }

    #[test]
    fn other_texts_are_no_margins() {
        for text in ["3", "0%", "-3%", "tps", "tps=3", "nothing=3%", ""] {
            let error = text.parse::<Margin>().unwrap_err().to_string();
            assert!(error.contains("METRIC=CHANGE%"), "{error}");
        }
    }
}
