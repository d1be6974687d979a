//! The statements of a trace on two sides: which got slower or faster, how much of the whole change each is, which fail now,
//! and how their plans differ.

mod over_time;
mod plan;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use model::record::Trial;
use model::trace::{PlanNode, PlayedStatement};
use plaintext::figures::{change, counted};
use stats::{Estimate, Logs, MIN_RUNS, Verdict, benjamini_hochberg};
use store::{Part, StoreReader};

use crate::judgement::is_usable;

pub use over_time::{OverTime, over_time};
pub use plan::{PlanChange, plan_lines};
pub use waits::{WaitShare, wait_shares};

/// The share of false discoveries among the statements that are called changed.
pub const FALSE_DISCOVERY_RATE: f64 = 0.01;
/// Level of the interval within which a statement is equivalent.
const LEVEL: f64 = 0.95;

/// The statements of a cell that plays a trace, the baseline's against a variant's.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedStatements {
    /// Index of the pair of sides.
    pub pair: usize,
    /// Index of the cell among the pair's.
    pub cell: usize,
    /// SHA-256 of the trace.
    pub trace: String,
    /// Number of usable trials, of the baseline and of the variant.
    pub trials: [usize; 2],
    /// Time of all statements together, in microseconds a trial.
    pub total_us: [f64; 2],
    /// The largest ratio that is not a relevant change.
    pub margin: f64,
    /// The statements, those with the largest part of the change first.
    pub rows: Vec<StatementRow>,
}

/// A statement on two sides: arrays have the baseline's and the variant's.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementRow {
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its normal form.
    pub text: String,
    /// Executions in all usable trials.
    pub calls: [u64; 2],
    /// Failed ones by SQLSTATE.
    pub failures: [BTreeMap<String, u64>; 2],
    /// Executions that ended otherwise than recorded.
    pub different: [u64; 2],
    /// Rows received.
    pub rows: [u64; 2],
    /// Geometric mean of the trials' mean execution times in microseconds; `None` if none succeeded.
    pub mean_us: [Option<f64>; 2],
    /// Number of trials with a mean.
    pub n: [usize; 2],
    /// The ratio of the means; `None` for fewer than 3 trials together.
    pub estimate: Option<Estimate>,
    /// P of the hypothesis that the change is within the margin; `None` without a verdict.
    pub p: Option<f64>,
    /// The same by Benjamini and Hochberg over all statements of the comparison.
    pub p_benjamini_hochberg: Option<f64>,
    /// Whether it changed.
    pub verdict: Verdict,
    /// Time of all executions, in microseconds a trial.
    pub total_us: [f64; 2],
    /// Executions over the recorded time; `None` in bundles of before.
    pub over_time: [Option<OverTime>; 2],
    /// What its sessions waited for, the most frequent first; `None` if unknown.
    pub waits: [Option<Vec<WaitShare>>; 2],
    /// Why there are no waits.
    pub without_waits: [Option<String>; 2],
    /// The plan that most trials have.
    pub plans: [Option<PlanNode>; 2],
    /// Why there is no plan.
    pub without_plan: [Option<String>; 2],
    /// How the plans differ; empty if they do not, or one is not known.
    pub plan_changes: Vec<PlanChange>,
}

impl StatementRow {
    /// SQLSTATEs with which executions of the variant failed, but none of the baseline.
    pub fn new_failures(&self) -> BTreeSet<&str> {
        let [before, after] = &self.failures;
        after.keys().filter(|state| !before.contains_key(*state)).map(String::as_str).collect()
    }

    /// Change of the time of all executions, in microseconds a trial.
    pub fn change_us(&self) -> f64 {
        self.total_us[1] - self.total_us[0]
    }

    /// Whether it got slower or faster.
    pub fn is_changed(&self) -> bool {
        matches!(self.verdict, Verdict::Regression | Verdict::Improvement)
    }
}

impl ComparedStatements {
    /// Change of the time of all statements, in microseconds a trial.
    pub fn change_us(&self) -> f64 {
        self.total_us[1] - self.total_us[0]
    }

    /// The part of a statement in the whole change, as a share of it; `None` if there is none.
    pub fn share(&self, row: &StatementRow) -> Option<f64> {
        let whole_us = self.change_us();
        (whole_us != 0.0).then(|| row.change_us() / whole_us)
    }

    /// The result in sentences: verdicts, the whole change, the statements that are most of it, failures and plans.
    pub fn sentences(&self) -> Vec<String> {
        let verdicts: Vec<String> = [
            Verdict::Regression,
            Verdict::Improvement,
            Verdict::Equivalent,
            Verdict::Inconclusive,
            Verdict::Insufficient,
        ]
        .into_iter()
        .map(|verdict| (verdict, self.with_verdict(verdict).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("{count} {verdict}"))
        .collect();
        let mut lines = vec![format!("{}: {}.", counted(self.rows.len(), "statement"), verdicts.join(", "))];
        let [before_us, after_us] = self.total_us;
        if before_us > 0.0 && after_us > 0.0 {
            let whole_us = self.change_us();
            let (verdict, what) = match whole_us > 0.0 {
                true => (Verdict::Regression, "slowdown"),
                false => (Verdict::Improvement, "speedup"),
            };
            let mut line = format!(
                "All executions of a trial take {:.1} ms instead of {:.1} ms ({})",
                after_us / 1e3,
                before_us / 1e3,
                change(after_us / before_us - 1.0)
            );
            let count = self.with_verdict(verdict).count();
            if count > 0 {
                let share: f64 = self.with_verdict(verdict).filter_map(|row| self.share(row)).sum();
                let (these, are) =
                    if count == 1 { ("the statement", "is") } else { ("the statements", "are") };
                line +=
                    &format!("; {these} with {verdict} ({count}) {are} {:.0}% of the {what}", share * 100.0);
            }
            lines.push(line + ".");
        }
        let failing = self.rows.iter().filter(|row| !row.new_failures().is_empty()).count();
        if failing > 0 {
            lines.push(format!(
                "{} with errors that the baseline does not have.",
                counted(failing, "statement")
            ));
        }
        let other_plans = self.rows.iter().filter(|row| !row.plan_changes.is_empty()).count();
        if other_plans > 0 {
            lines.push(format!("{} with another plan.", counted(other_plans, "statement")));
        }
        lines
    }

    /// Rows with this verdict.
    pub fn with_verdict(&self, verdict: Verdict) -> impl Iterator<Item = &StatementRow> {
        self.rows.iter().filter(move |row| row.verdict == verdict)
    }
}

/// What the usable trials of two sides of a cell have played.
pub(crate) struct PlayedCell {
    /// Index of the pair of sides.
    pub(crate) pair: usize,
    /// Index of the cell among the pair's.
    pub(crate) cell: usize,
    /// SHA-256 of the trace.
    pub(crate) trace: String,
    /// The statements of each trial, of the baseline and of the variant.
    pub(crate) played: [Vec<Vec<PlayedStatement>>; 2],
    /// The largest ratio that is not a relevant change.
    pub(crate) margin: f64,
}

impl PlayedCell {
    /// What was played in the usable trials of a cell's two sides; `None` if they do not all play the same trace.
    pub(crate) fn read(
        reader: &StoreReader,
        [pair, cell]: [usize; 2],
        sides: [&[&Trial]; 2],
        margin: f64,
    ) -> Option<Self> {
        let trace = common_trace(sides.iter().flat_map(|trials| trials.iter().copied()))?;
        let played = sides.map(|trials| {
            let usable = trials.iter().filter(|trial| is_usable(trial));
            let read = usable.filter_map(|trial| reader.load_parts(&trial.id, &[Part::Played]));
            read.map(|record| record.played).filter(|played| !played.is_empty()).collect::<Vec<_>>()
        });
        Some(Self { pair, cell, trace: trace.to_owned(), played, margin })
    }
}

/// The trace that all of these trials play; `None` if they play none, or several.
pub(crate) fn common_trace<'a>(trials: impl Iterator<Item = &'a Trial>) -> Option<&'a str> {
    let mut traces = trials.map(|trial| {
        let workload = trial.cell.workload.known()?;
        Some(workload.trace()?.sha256.as_str())
    });
    let first = traces.next()??;
    traces.all(|trace| trace == Some(first)).then_some(first)
}

/// Compares the statements of these cells. Verdicts hold for all of them together.
pub(crate) fn compare_statements(cells: &[PlayedCell]) -> Vec<ComparedStatements> {
    let mut compared: Vec<ComparedStatements> = cells.iter().map(compare_cell).collect();
    let rows = || compared.iter().flat_map(|cell| &cell.rows);
    let p: Vec<f64> = rows().filter_map(|row| row.p).collect();
    let mut adjusted = benjamini_hochberg(&p).into_iter();
    for cell in &mut compared {
        let margin = cell.margin;
        for row in &mut cell.rows {
            row.p_benjamini_hochberg = row.p.and_then(|_| adjusted.next());
            row.verdict = verdict(row, margin);
        }
    }
    compared
}

/// The verdict on a statement. A whole 95% interval within the margin is equivalence; the false discovery rate decides on
/// changes. Both exclude each other: p of the change is above 1/2 if the ratio is within the margin.
fn verdict(row: &StatementRow, margin: f64) -> Verdict {
    let (Some(estimate), Some(p)) = (row.estimate, row.p_benjamini_hochberg) else {
        return Verdict::Insufficient;
    };
    if p <= FALSE_DISCOVERY_RATE {
        return if estimate.ratio > 1.0 { Verdict::Regression } else { Verdict::Improvement };
    }
    match estimate.confidence_interval(LEVEL) {
        Some(interval) if interval.low >= 1.0 / margin && interval.high <= margin => Verdict::Equivalent,
        _ => Verdict::Inconclusive,
    }
}

fn compare_cell(cell: &PlayedCell) -> ComparedStatements {
    let records = &cell.played;
    let fingerprints: BTreeSet<&str> =
        records.iter().flatten().flatten().map(|statement| statement.fingerprint.as_str()).collect();
    let by_fingerprint = records.each_ref().map(|trials| trials.iter().map(|trial| index(trial)).collect());
    let mut rows: Vec<StatementRow> =
        fingerprints.into_iter().map(|fingerprint| row(fingerprint, &by_fingerprint, cell.margin)).collect();
    rows.sort_by(|a, b| {
        let by_change = b.change_us().abs().total_cmp(&a.change_us().abs());
        by_change.then_with(|| a.fingerprint.cmp(&b.fingerprint))
    });
    ComparedStatements {
        pair: cell.pair,
        cell: cell.cell,
        trace: cell.trace.clone(),
        trials: records.each_ref().map(Vec::len),
        total_us: [0, 1].map(|side| rows.iter().map(|row| row.total_us[side]).sum()),
        margin: cell.margin,
        rows,
    }
}

/// The statements of a trial by fingerprint.
type Index<'a> = BTreeMap<&'a str, &'a PlayedStatement>;

fn index(played: &[PlayedStatement]) -> Index<'_> {
    played.iter().map(|statement| (statement.fingerprint.as_str(), statement)).collect()
}

fn row(fingerprint: &str, sides: &[Vec<Index<'_>>; 2], margin: f64) -> StatementRow {
    let of = sides.each_ref().map(|trials| {
        trials.iter().filter_map(|trial| trial.get(fingerprint).copied()).collect::<Vec<&PlayedStatement>>()
    });
    let sums = |figure: fn(&PlayedStatement) -> u64| {
        of.each_ref().map(|trials| trials.iter().map(|statement| figure(statement)).sum::<u64>())
    };
    let totals_ns = sums(|statement| statement.total_ns);
    let logs =
        of.each_ref().map(|trials| Logs::new(trials.iter().filter_map(|statement| statement.mean_us())));
    let estimate = match &logs {
        // Both sides of a statement that did not change spread alike.
        [Some(a), Some(b)] => Estimate::pooled(a, b),
        _ => None,
    };
    let n = logs.each_ref().map(|logs| logs.as_ref().map_or(0, Logs::n));
    let plans = of.each_ref().map(|trials| most_frequent(trials));
    StatementRow {
        fingerprint: fingerprint.to_owned(),
        text: of.iter().flatten().next().map(|statement| statement.text.clone()).unwrap_or_default(),
        calls: sums(|statement| statement.calls),
        failures: of.each_ref().map(|trials| failures(trials)),
        different: sums(|statement| statement.different),
        rows: sums(|statement| statement.rows),
        mean_us: logs.each_ref().map(|logs| logs.as_ref().map(|logs| logs.mean().exp())),
        n,
        estimate,
        p: estimate
            .filter(|_| n.into_iter().min() >= Some(MIN_RUNS))
            .map(|estimate| estimate.p_beyond(margin)),
        p_benjamini_hochberg: None,
        verdict: Verdict::Insufficient,
        total_us: [0, 1].map(|side| totals_ns[side] as f64 / 1e3 / sides[side].len().max(1) as f64),
        over_time: of.each_ref().map(|trials| over_time(trials.iter().copied())),
        waits: of.each_ref().map(|trials| wait_shares(trials.iter().copied())),
        without_waits: of
            .each_ref()
            .map(|trials| trials.iter().find_map(|statement| statement.without_waits.clone())),
        plan_changes: match &plans {
            [Some(a), Some(b)] => plan::changes(a, b),
            _ => Vec::new(),
        },
        without_plan: of
            .each_ref()
            .map(|trials| trials.iter().find_map(|statement| statement.without_plan.clone())),
        plans,
    }
}

fn failures(trials: &[&PlayedStatement]) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (state, count) in trials.iter().flat_map(|statement| &statement.failures) {
        *sums.entry(state.clone()).or_default() += count;
    }
    sums
}

/// The plan that most trials have, of several the first.
fn most_frequent(trials: &[&PlayedStatement]) -> Option<PlanNode> {
    let plans: Vec<&PlanNode> = trials.iter().filter_map(|statement| statement.plan.as_ref()).collect();
    let count = |plan: &PlanNode| plans.iter().filter(|other| **other == plan).count();
    let most = plans.iter().map(|plan| count(plan)).max()?;
    plans.iter().find(|plan| count(plan) == most).map(|plan| (*plan).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(fingerprint: &str, mean_us: f64, calls: u64) -> PlayedStatement {
        PlayedStatement {
            fingerprint: fingerprint.to_owned(),
            calls,
            total_ns: (mean_us * 1e3) as u64 * calls,
            ..PlayedStatement::default()
        }
    }

    fn compared(played: [Vec<Vec<PlayedStatement>>; 2]) -> ComparedStatements {
        let cell = PlayedCell { pair: 0, cell: 0, trace: "5e".to_owned(), played, margin: 1.05 };
        let mut found = compare_statements(&[cell]).remove(0);
        found.rows.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
        found
    }

    #[test]
    fn a_slower_statement_is_named_with_its_part_of_the_whole() {
        let noise = [1.0, 1.01, 0.99, 1.005];
        let side = |slow: f64| {
            let trial = |noise: &f64| {
                vec![statement("a", 100.0 * noise, 50), statement("b", 200.0 * noise * slow, 10)]
            };
            noise.iter().map(trial).collect::<Vec<_>>()
        };
        let found = compared([side(1.0), side(2.0)]);
        let verdicts: Vec<Verdict> = found.rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Equivalent, Verdict::Regression]);
        assert!((found.share(&found.rows[1]).unwrap() - 1.0).abs() < 0.01);
        let found = compared([side(2.0), side(1.0)]);
        assert_eq!(found.rows[1].verdict, Verdict::Improvement);
        let few = compared([side(1.0)[..2].to_vec(), side(2.0)]);
        assert_eq!(few.rows[1].verdict, Verdict::Insufficient);
    }

    #[test]
    fn failures_that_only_the_variant_has_are_new() {
        let failing = |states: &[&str]| {
            let mut one = statement("a", 1.0, 5);
            one.failures = states.iter().map(|state| ((*state).to_owned(), 1)).collect();
            vec![one]
        };
        let found = compared([vec![failing(&["23505"])], vec![failing(&["23505", "42703"])]]);
        assert_eq!(found.rows[0].new_failures(), BTreeSet::from(["42703"]));
    }

    /// Statements without a change, of sides that differ by chance: at most one of a hundred is called changed.
    #[test]
    fn equal_sides_have_hardly_any_changed_statement() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut called, mut all) = (0, 0);
        for _ in 0..40 {
            // A trial is fast or slow as a whole, too.
            let mut side = || -> Vec<Vec<PlayedStatement>> {
                let trial = |whole: f64, uniform: &mut dyn FnMut() -> f64| {
                    let one = |number: usize, noise: f64| {
                        statement(&format!("{number:03}"), 1000.0 * (0.2 * noise + 0.1 * whole).exp(), 3)
                    };
                    (0..50).map(|number| one(number, uniform() - 0.5)).collect::<Vec<_>>()
                };
                (0..4)
                    .map(|_| {
                        let whole = uniform();
                        trial(whole, &mut uniform)
                    })
                    .collect()
            };
            let found = compared([side(), side()]);
            called += found.rows.iter().filter(|row| row.is_changed()).count();
            all += found.rows.len();
        }
        assert!(called * 100 <= all, "{called} of {all}");
    }
}
