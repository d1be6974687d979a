//! The output: a Markdown table.

use std::fmt;
use std::time::Duration;

use stats::{Comparison, Estimate, Logs, MARGIN, PairedSequence, Spread, Verdict, verdicts};

use crate::cases::Case;
use crate::sessions::Round;

pub(crate) const HEAD: &str = "\
| case | right | wrong | open | seconds | sessions | throughput | server CPU | spread | paused |
|---|---:|---:|---:|---:|---:|---|---|---:|---:|";

/// The paired rounds of a case.
pub(crate) struct Outcomes<'a> {
    pub(crate) case: &'a Case,
    pub(crate) rounds: &'a [Round],
}

impl Outcomes<'_> {
    fn log_ratios(&self, of: fn(&Round) -> &PairedSequence) -> Vec<f64> {
        self.rounds.iter().flat_map(|round| of(round).log_ratios()).copied().collect()
    }
}

impl fmt::Display for Outcomes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdicts = self.rounds.iter().map(|round| round.sessions.verdict());
        let [right, wrong, open] = counts(self.case, verdicts);
        let sessions = median(self.rounds.iter().map(|round| round.sessions.throughput.sessions() as f64));
        let throughput = self.log_ratios(|round| &round.sessions.throughput);
        let server_cpu = self.log_ratios(|round| &round.sessions.server_cpu);
        let spread = Logs::new(throughput.iter().map(|log_ratio| log_ratio.exp()));
        let spread = spread.and_then(|logs| logs.standard_deviation());
        let leftover = median(self.rounds.iter().map(|round| round.sessions.leftover));
        write!(
            f,
            "| {} | {right} | {wrong} | {open} | {:.0} | {sessions:.0} | {} | {} | {:.1}% | {:.1}% |",
            self.case.name,
            median(self.rounds.iter().map(|round| round.elapsed.as_secs_f64())),
            change(Estimate::of_pairs(&throughput)),
            change(Estimate::of_pairs(&server_cpu)),
            100.0 * spread.unwrap_or(f64::NAN),
            100.0 * leftover
        )
    }
}

/// Trials of a case one after another.
pub(crate) struct Unpaired {
    comparison: Option<Comparison>,
    trials: usize,
    elapsed: Duration,
}

impl Unpaired {
    /// Throughputs of both sides, each with its block.
    pub(crate) fn new(a: &[(u32, f64)], b: &[(u32, f64)], elapsed: Duration) -> Self {
        let figures = |of: &[(u32, f64)]| of.iter().map(|(_, tps)| *tps).collect::<Vec<f64>>();
        let blocks: Vec<(f64, f64)> = a
            .iter()
            .filter_map(|(block, a)| Some((*a, b.iter().find(|(other, _)| other == block)?.1)))
            .collect();
        let comparison = Comparison::with_spread(&figures(a), &figures(b), Spread::MEAN);
        let comparison = comparison.map(|comparison| comparison.with_margin(MARGIN).in_blocks(&blocks));
        Self { comparison, trials: a.len(), elapsed }
    }

    fn verdict(&self) -> Verdict {
        let verdict = self.comparison.iter().flat_map(|of| verdicts(std::slice::from_ref(of))).next();
        verdict.unwrap_or(Verdict::Insufficient)
    }

    fn estimate(&self) -> Option<Estimate> {
        self.comparison.as_ref().and_then(|comparison| comparison.estimate)
    }
}

/// The rounds of a case by trials one after another.
pub(crate) struct UnpairedOutcomes<'a> {
    pub(crate) case: &'a Case,
    pub(crate) rounds: &'a [Unpaired],
}

impl fmt::Display for UnpairedOutcomes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [right, wrong, open] = counts(self.case, self.rounds.iter().map(Unpaired::verdict));
        let estimate = match self.rounds {
            [only] => only.estimate(),
            rounds => {
                let log_ratios: Vec<f64> =
                    rounds.iter().filter_map(|round| Some(round.estimate()?.ratio.ln())).collect();
                Estimate::of_pairs(&log_ratios)
            }
        };
        write!(
            f,
            "| … one after another | {right} | {wrong} | {open} | {:.0} | {:.0} trials a side | {} | | | |",
            median(self.rounds.iter().map(|round| round.elapsed.as_secs_f64())),
            median(self.rounds.iter().map(|round| round.trials as f64)),
            change(estimate)
        )
    }
}

/// Rounds with the expected verdict, or any where none is; with another one; and without.
fn counts(case: &Case, verdicts: impl Iterator<Item = Verdict>) -> [usize; 3] {
    let mut counts = [0; 3];
    for verdict in verdicts {
        let is_right = case.expected.is_none_or(|expected| expected == verdict);
        let at = match verdict {
            _ if verdict.is_open() => 2,
            _ if is_right => 0,
            _ => 1,
        };
        counts[at] += 1;
    }
    counts
}

/// A change with its 95 % confidence interval.
fn change(estimate: Option<Estimate>) -> String {
    let percent = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
    let Some(estimate) = estimate else { return "unknown".to_owned() };
    match estimate.confidence_interval(0.95) {
        Some(interval) => {
            format!("{}% ({} to {})", percent(estimate.ratio), percent(interval.low), percent(interval.high))
        }
        None => format!("{}%", percent(estimate.ratio)),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
