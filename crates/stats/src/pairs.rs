//! Measuring in pairs: the ratio of two sides, from sessions of pairs, and when it is decided.
//!
//! Pairs of one session share its luck, such as the memory layout of its servers: a session counts as one value, the
//! trimmed mean of the log ratios of its pairs. Sessions are added until their confidence sequence decides. Its intervals
//! hold at all numbers of sessions together (see `sequential.rs`), and so does their intersection.

use crate::power::smallest_number;
use crate::{Estimate, Interval, Verdict};

/// Probability that a decision is ever wrong.
const ALPHA: f64 = 0.01;

/// Share of the pairs that is left out at each end, by their ratios: those in which something else ran.
const TRIM: f64 = 0.2;

/// Least number of sessions for a decision: fewer do not show how much sessions differ.
const MIN_SESSIONS: usize = 3;

/// The log ratio of a session: the trimmed mean over its pairs `(a, b)` of ln b − ln a. `None` if no pair has two positive
/// figures; pairs that do not are left out.
///
/// Source: Tukey and McLaughlin, "Less Vulnerable Confidence and Significance Procedures for Location Based on a Single
/// Sample", Sankhyā A 25 (1963).
pub fn session_log_ratio(pairs: &[(f64, f64)]) -> Option<f64> {
    let log_ratio = |(a, b): &(f64, f64)| (b / a).ln();
    let is_positive = |(a, b): &&(f64, f64)| *a > 0.0 && *b > 0.0;
    let mut logs: Vec<f64> =
        pairs.iter().filter(is_positive).map(log_ratio).filter(|log| log.is_finite()).collect();
    logs.sort_by(f64::total_cmp);
    let left_out = (logs.len() as f64 * TRIM) as usize;
    let kept = &logs[left_out..logs.len() - left_out];
    (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
}

/// Number of sessions after which sides without a difference are equivalent, if their log ratios spread by `log_sd` and have the mean 0:
/// about the median. `margin` and `comparisons` as in [`PairedSequence::new`]. `None` if more than a million.
pub fn sessions_for_equivalence(log_sd: f64, margin: f64, comparisons: usize) -> Option<usize> {
    // Two values with this standard deviation.
    let half = log_sd / 2.0_f64.sqrt();
    let estimate = Estimate::of_pairs(&[half, -half])?;
    let alpha = ALPHA / comparisons.max(1) as f64;
    let is_within = |more: usize| {
        let interval = estimate.with_pairs(2 + more).confidence_interval(1.0 - alpha);
        interval.is_some_and(|interval| interval.high <= margin)
    };
    Some(2 + smallest_number(1, is_within)?)
}

/// The comparison of two sides by a growing number of sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedSequence {
    log_ratios: Vec<f64>,
    /// The largest ratio at which the sides are equivalent, such as 1.05.
    margin: f64,
    alpha: f64,
    /// Intersection of the intervals so far.
    interval: Interval,
}

impl PairedSequence {
    /// A comparison without sessions, one of `comparisons` that are decided together: the probability that one of all
    /// their decisions is wrong is at most 1 % (Bonferroni's inequality). `margin` is the largest ratio at which sides are
    /// equivalent, such as 1.05.
    pub fn new(margin: f64, comparisons: usize) -> Self {
        Self {
            log_ratios: Vec::new(),
            margin,
            alpha: ALPHA / comparisons.max(1) as f64,
            interval: Interval { low: 0.0, high: f64::INFINITY },
        }
    }

    /// Adds a session, by its log ratio ([`session_log_ratio`]).
    pub fn add(&mut self, log_ratio: f64) {
        self.log_ratios.push(log_ratio);
        let Some(latest) = self.latest() else { return };
        let Interval { low, high } = self.interval;
        let both = Interval { low: low.max(latest.low), high: high.min(latest.high) };
        // Intervals that exclude each other do so with a probability of at most α, or because the ratio has changed.
        self.interval = if both.low <= both.high { both } else { latest };
    }

    /// The log ratios of its sessions, in their order.
    pub fn log_ratios(&self) -> &[f64] {
        &self.log_ratios
    }

    /// The largest ratio at which the sides are equivalent.
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        self.log_ratios.len()
    }

    /// The ratio: the geometric mean over the sessions. `None` without any.
    pub fn ratio(&self) -> Option<f64> {
        let n = self.log_ratios.len() as f64;
        (n > 0.0).then(|| (self.log_ratios.iter().sum::<f64>() / n).exp())
    }

    /// The interval of the ratio, with 99 % confidence for all numbers of sessions and all comparisons together. `None`
    /// while it is unbounded.
    pub fn interval(&self) -> Option<Interval> {
        self.interval.high.is_finite().then_some(self.interval)
    }

    /// The verdict so far: [`Verdict::Inconclusive`] until it is decided. A change that is certain and surely within the
    /// margin is equivalence.
    pub fn verdict(&self) -> Verdict {
        if self.sessions() < MIN_SESSIONS {
            return Verdict::Insufficient;
        }
        match self.interval {
            Interval { low, high } if low >= 1.0 / self.margin && high <= self.margin => Verdict::Equivalent,
            Interval { high, .. } if high < 1.0 => Verdict::Regression,
            Interval { low, .. } if low > 1.0 => Verdict::Improvement,
            _ => Verdict::Inconclusive,
        }
    }

    /// Number of further sessions until a decision, if their mean and spread stay as they are: 0 if it is decided. `None`
    /// if that is not known yet, or more than a million.
    pub fn sessions_left(&self) -> Option<usize> {
        if !self.verdict().is_open() {
            return Some(0);
        }
        let now = Estimate::of_pairs(&self.log_ratios)?;
        let n = self.sessions();
        let (mean, margin) = (now.ratio.ln().abs(), self.margin.ln());
        let decides = |left: usize| {
            let interval = now.with_pairs(n + left).confidence_interval(1.0 - self.alpha);
            let half = interval.map_or(f64::INFINITY, |interval| (interval.high / now.ratio).ln());
            n + left >= MIN_SESSIONS && (mean > half || mean + half <= margin)
        };
        smallest_number(1, decides)
    }

    /// The interval by the sessions so far, regardless of earlier ones. `None` while it is unbounded.
    fn latest(&self) -> Option<Interval> {
        Estimate::of_pairs(&self.log_ratios)?.sequential().confidence_interval(1.0 - self.alpha)
    }
}

/// A figure by which two sides are compared.
#[derive(Clone, Copy, Debug)]
pub struct DecidingFigure<'a> {
    /// Its sessions.
    pub sequence: &'a PairedSequence,
    /// Whether more of it is better.
    pub higher_is_better: bool,
}

impl DecidingFigure<'_> {
    fn is_open(&self) -> bool {
        self.sequence.verdict().is_open()
    }

    fn has_changed(&self) -> bool {
        matches!(self.sequence.verdict(), Verdict::Regression | Verdict::Improvement)
    }

    /// By how much the second side is better so far, as a log ratio; 0 without a session.
    fn gain(&self) -> f64 {
        let log_ratio = self.sequence.ratio().map_or(0.0, f64::ln);
        if self.higher_is_better { log_ratio } else { -log_ratio }
    }

    /// Whether its sessions so far differ by more than the margin: then they will show a change, not equivalence.
    fn is_beyond_margin(&self) -> bool {
        self.gain().abs() > self.sequence.margin.ln()
    }
}

/// The figure that decides a comparison by several, or that keeps it open; the first one matters most. A change of any figure
/// decides, unless the first is open and so far differs by more than the margin in the other direction; equivalence takes all of them. As each figure is
/// one of the comparisons that are decided together ([`PairedSequence::new`]), the probability of a wrong decision is that of all.
///
/// Returns its index. Figures without a session, which could not be measured, do not count.
pub fn deciding(figures: &[DecidingFigure<'_>]) -> usize {
    let Some((first, others)) = figures.split_first() else { return 0 };
    let known = || others.iter().zip(1..).filter(|(of, _)| of.sequence.sessions() > 0);
    let agrees = |of: &DecidingFigure<'_>| {
        !first.is_open() || !first.is_beyond_margin() || of.gain() * first.gain() > 0.0
    };
    if first.has_changed() {
        return 0;
    }
    if let Some((_, at)) = known().find(|(of, _)| of.has_changed() && agrees(of)) {
        return at;
    }
    let open = || known().chain(std::iter::once((first, 0))).filter(|(of, _)| of.is_open());
    // A number that is not known yet is large.
    let left = |(of, _): &(&DecidingFigure<'_>, usize)| of.sequence.sessions_left().unwrap_or(usize::MAX);
    let soonest = open().filter(|(of, _)| of.is_beyond_margin() && agrees(of)).min_by_key(left);
    soonest.or_else(|| open().max_by_key(left)).map_or(0, |(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(margin: f64, log_ratios: &[f64]) -> PairedSequence {
        let mut sequence = PairedSequence::new(margin, 1);
        log_ratios.iter().for_each(|log_ratio| sequence.add(*log_ratio));
        sequence
    }

    /// Sessions that differ by ±4 % around this log ratio.
    fn around(center: f64, count: usize) -> Vec<f64> {
        (0..count).map(|nth| center + if nth % 2 == 0 { 0.04 } else { -0.04 }).collect()
    }

    #[test]
    fn a_disturbed_pair_does_not_change_its_session() {
        let mut pairs = vec![(100.0, 90.0); 10];
        let undisturbed = session_log_ratio(&pairs).unwrap();
        assert!((undisturbed - 0.9_f64.ln()).abs() < 1e-12);
        (pairs[3], pairs[7]) = ((100.0, 5.0), (0.0, 90.0));
        assert!((session_log_ratio(&pairs).unwrap() - undisturbed).abs() < 1e-12);
        assert_eq!(session_log_ratio(&[(0.0, 1.0), (1.0, f64::NAN)]), None);
        assert_eq!(session_log_ratio(&[(1.0, 1.0)]), Some(0.0));
    }

    #[test]
    fn sessions_decide_between_change_and_equivalence() {
        assert_eq!(sequence(1.05, &around(-0.1, 2)).verdict(), Verdict::Insufficient);
        assert_eq!(sequence(1.05, &around(-0.1, 4)).verdict(), Verdict::Inconclusive);
        assert_eq!(sequence(1.05, &around(-0.1, 20)).verdict(), Verdict::Regression);
        assert_eq!(sequence(1.05, &around(0.1, 20)).verdict(), Verdict::Improvement);
        assert_eq!(sequence(1.05, &around(0.0, 100)).verdict(), Verdict::Equivalent);
        // Certainly not 0, and certainly within the margin.
        assert_eq!(sequence(1.05, &around(-0.02, 300)).verdict(), Verdict::Equivalent);
        assert_eq!(sequence(1.01, &around(-0.02, 300)).verdict(), Verdict::Regression);
    }

    #[test]
    fn intervals_only_shrink_until_they_exclude_each_other() {
        let mut one = sequence(1.05, &around(0.0, 60));
        let narrow = one.interval().unwrap();
        [0.3, -0.3].iter().for_each(|log_ratio| one.add(*log_ratio));
        assert_eq!(one.interval(), Some(narrow));
        // A machine that has changed.
        around(0.3, 60).iter().for_each(|log_ratio| one.add(*log_ratio));
        let interval = one.interval().unwrap();
        assert!(interval.low > narrow.high && interval.low < interval.high, "{interval:?}");
        let constant = sequence(1.05, &[0.1; 6]).interval().unwrap();
        assert_eq!(constant.low, constant.high);
    }

    /// The verdict by throughput and CPU time, and which of them it is.
    fn by_either(throughput: &[f64], cpu: &[f64]) -> (usize, Verdict) {
        let sequences = [sequence(1.05, throughput), sequence(1.05, cpu)];
        let figures = [(&sequences[0], true), (&sequences[1], false)];
        let at = deciding(
            &figures.map(|(sequence, higher_is_better)| DecidingFigure { sequence, higher_is_better }),
        );
        (at, sequences[at].verdict())
    }

    #[test]
    fn a_change_of_either_figure_decides_and_equivalence_takes_both() {
        // Ratios of CPU time above 1 are losses.
        let (open, same) = (around(-0.02, 4), around(0.0, 100));
        assert_eq!(by_either(&around(-0.1, 20), &around(0.1, 20)), (0, Verdict::Regression));
        assert_eq!(by_either(&open, &around(0.1, 20)), (1, Verdict::Improvement), "a rise of CPU time");
        assert_eq!(by_either(&same, &around(0.1, 20)), (1, Verdict::Improvement));
        assert_eq!(by_either(&around(-0.1, 20), &same), (0, Verdict::Regression));
        assert_eq!(by_either(&same, &same), (0, Verdict::Equivalent));
        assert_eq!(by_either(&same, &open), (1, Verdict::Inconclusive));
        assert_eq!(by_either(&open, &same), (0, Verdict::Inconclusive));
        // What could not be measured has no say.
        assert_eq!(by_either(&same, &[]), (0, Verdict::Equivalent));
        assert_eq!(by_either(&[], &[]), (0, Verdict::Insufficient));
    }

    #[test]
    fn the_other_figure_does_not_decide_against_a_change_that_the_first_may_show() {
        // So far throughput has fallen, and CPU time, too, certainly.
        let less = around(-0.1, 20);
        assert_eq!(by_either(&around(-0.08, 4), &less), (0, Verdict::Inconclusive));
        assert_eq!(by_either(&around(-0.03, 4), &less), (1, Verdict::Regression), "within the margin");
        assert_eq!(by_either(&around(-0.02, 300), &less), (1, Verdict::Regression), "a fall of CPU time");
        assert_eq!(by_either(&around(-0.1, 20), &less), (0, Verdict::Regression));
    }

    #[test]
    fn of_two_open_figures_the_one_that_will_decide_is_named() {
        let (slow, fast) = (around(-0.02, 8), around(0.08, 8));
        assert_eq!(by_either(&slow, &fast), (1, Verdict::Inconclusive), "the change");
        // Equivalence takes longer by the first.
        let tight: Vec<f64> = around(0.0, 8).iter().map(|log| log / 1.2).collect();
        assert_eq!(by_either(&around(0.0, 8), &tight), (0, Verdict::Inconclusive));
        assert_eq!(by_either(&tight, &around(0.0, 8)), (1, Verdict::Inconclusive));
    }

    /// As simulated in `bench/verdicts`: a median of 35 sessions at a spread of 6.3 %, 139 at 14 %, 169 within 2 %.
    #[test]
    fn the_sessions_for_equivalence_are_those_of_the_simulation() {
        let sessions = |log_sd, margin| sessions_for_equivalence(log_sd, margin, 1).unwrap() as f64;
        for (sessions, simulated) in
            [(sessions(0.063, 1.05), 35.0), (sessions(0.14, 1.05), 139.0), (sessions(0.063, 1.02), 169.0)]
        {
            assert!((sessions / simulated - 1.0_f64).abs() < 0.25, "{sessions} instead of {simulated}");
        }
        assert!(sessions_for_equivalence(0.063, 1.05, 10) > sessions_for_equivalence(0.063, 1.05, 1));
    }

    #[test]
    fn comparisons_that_are_decided_together_need_more_sessions() {
        let left = |comparisons| {
            let mut sequence = PairedSequence::new(1.05, comparisons);
            around(-0.05, 6).iter().for_each(|log_ratio| sequence.add(*log_ratio));
            sequence.sessions_left().unwrap()
        };
        assert!(left(50) > left(1), "{} and {}", left(50), left(1));
    }

    #[test]
    fn the_sessions_left_are_those_that_it_takes() {
        for center in [0.0, -0.03, -0.05, -0.08] {
            let mut sequence = sequence(1.05, &around(center, 6));
            let left = sequence.sessions_left().unwrap();
            assert!(left > 0 && left < 200, "{center}: {left}");
            let mut added = 0;
            while sequence.verdict() == Verdict::Inconclusive {
                sequence.add(around(center, 2)[added % 2]);
                added += 1;
            }
            // The standard deviation of these sessions falls with their number, by 9 % in all.
            assert!((left * 3 / 4..=left + 2).contains(&added), "{center}: {added} instead of {left}");
            assert_eq!(sequence.sessions_left(), Some(0));
        }
        assert_eq!(sequence(1.05, &[0.1]).sessions_left(), None);
    }
}
