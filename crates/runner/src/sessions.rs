//! Choice of the next session of a paired campaign: a pure function of the plan and of the trials that have been run, as
//! in `schedule.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use model::merit::Merit;
use model::metrics::Better;
use model::paired::{PAIRS, PairedFigure, Side};
use model::plan::{Plan, PlannedTrial};
use model::record::Trial;
use model::session::SessionSide;
use model::shuffle::Shuffler;
use model::units::Span;
use stats::{DecidingFigure, PairedSequence, Sample, deciding, session_log_ratio};

use crate::schedule::{ComparisonState, NextTrial, Progress, Schedule};

/// Time that a session usually takes in addition to its slices, in relation to the time of a pair.
const RESTART_IN_PAIRS: f64 = 14.0;

/// The most pairs of a session.
const MAX_PAIRS: u32 = 4 * PAIRS;

/// The sessions of a plan: those that have been run and those still to run.
pub(crate) struct SessionSchedule<'a> {
    plan: &'a Plan,
    comparisons: Vec<Comparison>,
    /// The one whose sessions run here; none for all.
    only: Option<usize>,
    /// By their number.
    sessions: BTreeMap<u32, Session>,
}

/// A cell compared with its baseline: indices in [`Plan::cells`], and the figures that decide, the one that matters most first.
struct Comparison {
    a: usize,
    b: usize,
    figures: Vec<PairedFigure>,
}

/// The trials of a session in the store.
#[derive(Default)]
struct Session {
    /// Index of its comparison; none as long as only the baseline's trial is known.
    comparison: Option<usize>,
    /// Usable ones, by side.
    sides: [Option<SessionSide>; 2],
    /// Whether the user interrupted it.
    interrupted: bool,
    /// Whether an earlier command of the user made it.
    is_earlier: bool,
    /// Start of the first trial and end of the last one.
    span: Option<(Timestamp, Timestamp)>,
}

impl<'a> SessionSchedule<'a> {
    /// The schedule after `trials`, those of the run that are in the store. `earlier` has the ids of those that earlier
    /// commands of the user ran.
    pub(crate) fn new(plan: &'a Plan, trials: &[Trial], earlier: &BTreeSet<String>) -> Self {
        let comparison = |(a, b): (usize, usize)| {
            let merit = Merit::of(&plan.cells[b].clone().into());
            let deciding = || PairedFigure::deciding(merit, plan.run.cpu_decides);
            Comparison { a, b, figures: plan.run.figure.map_or_else(deciding, |figure| vec![figure]) }
        };
        let comparisons = plan.comparisons().into_iter().map(comparison).collect();
        let mut schedule = Self { plan, comparisons, only: None, sessions: BTreeMap::new() };
        for trial in trials {
            schedule.add(trial, earlier.contains(&trial.id));
        }
        schedule
    }

    /// The same for the sessions of one comparison. Other machines run those of others, under other numbers.
    pub(crate) fn of_comparison(self, comparison: usize) -> Self {
        Self { only: Some(comparison), ..self }
    }

    fn add(&mut self, trial: &Trial, is_earlier: bool) {
        let Some(cell) = self.plan.cells.iter().position(|cell| trial.cell == *cell) else { return };
        let session = self.sessions.entry(trial.repeat).or_default();
        let comparison = self.comparisons.iter().position(|comparison| comparison.b == cell);
        session.comparison = comparison.or(session.comparison);
        let side = if comparison.is_some() { Side::B } else { Side::A };
        if let Some(figures) = SessionSide::from_trial(trial) {
            session.sides[side.index()] = Some(figures);
        }
        session.interrupted |=
            trial.validity.findings.iter().any(|finding| finding.gate == diagnose::INTERRUPTED);
        session.is_earlier |= is_earlier;
        if let Some((started, ended)) = trial.started.zip(trial.ended) {
            let (first, last) = session.span.unwrap_or((started, ended));
            session.span = Some((first.min(started), last.max(ended)));
        }
    }

    fn of(&self, comparison: usize) -> impl DoubleEndedIterator<Item = &Session> {
        self.sessions.values().filter(move |session| session.comparison == Some(comparison))
    }

    /// A figure of a comparison in its complete sessions.
    fn sequence(&self, comparison: usize, figure: PairedFigure) -> PairedSequence {
        let Comparison { a, b, .. } = self.comparisons[comparison];
        let clients = [a, b].map(|cell| self.plan.cells[cell].clients);
        let together = self.comparisons.iter().map(|comparison| comparison.figures.len()).sum();
        let mut sequence = PairedSequence::new(1.0 + self.plan.run.effect, together);
        for session in self.of(comparison) {
            let [Some(a), Some(b)] = &session.sides else { continue };
            if let Some(log_ratio) = session_log_ratio(&figure.pairs_of_session([a, b], clients)) {
                sequence.add(log_ratio);
            }
        }
        sequence
    }

    /// The figure that decides a comparison, or keeps it open.
    fn deciding(&self, comparison: usize) -> (PairedFigure, PairedSequence) {
        let figures = self.comparisons[comparison].figures.iter();
        let mut all: Vec<_> = figures.map(|figure| (*figure, self.sequence(comparison, *figure))).collect();
        let of_all: Vec<DecidingFigure> = all
            .iter()
            .map(|(figure, sequence)| DecidingFigure {
                sequence,
                higher_is_better: figure.better() == Better::Higher,
            })
            .collect();
        all.swap_remove(deciding(&of_all))
    }

    /// Pairs of a comparison's next session: if starting its servers took longer than is usual, more, as the square root of that
    /// time. That is the best number for a given ratio of the variances within and between sessions.
    fn pairs(&self, comparison: usize) -> u32 {
        let restarts = Sample::new(self.of(comparison).filter_map(Session::restart_in_pairs));
        let longer = restarts.map_or(1.0, |restarts| restarts.median() / RESTART_IN_PAIRS);
        ((f64::from(PAIRS) * longer.sqrt()) as u32).clamp(PAIRS, MAX_PAIRS)
    }

    /// Time that all sessions took.
    fn spent(&self) -> Duration {
        self.sessions.values().filter_map(Session::length).sum()
    }

    /// Whether another session of a comparison is wanted: it is not decided, and may have more.
    fn is_open(&self, comparison: usize) -> bool {
        let repeats = self.plan.run.repeats;
        let (_, sequence) = self.deciding(comparison);
        let sessions = sequence.sessions() as u32;
        let wanted = sessions < repeats.min || (sessions < repeats.max && sequence.verdict().is_open());
        wanted && !self.has_failed(comparison)
    }

    /// Whether the last sessions of a comparison failed, all that one command may try.
    fn has_failed(&self, comparison: usize) -> bool {
        let has_failed = |session: &&Session| session.sides.contains(&None);
        let counts = |session: &&Session| !session.interrupted && !session.is_earlier;
        let failures = self.of(comparison).rev().filter(counts).take_while(has_failed).count();
        failures > self.plan.run.retries as usize
    }

    /// Whether its time is over.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.plan.run.max_time.is_some_and(|max_time| self.spent() >= max_time.duration())
    }

    /// The open comparisons; none if the time is over.
    pub(crate) fn open(&self) -> Vec<usize> {
        match self.is_out_of_time() {
            true => Vec::new(),
            false => self.all().filter(|of| self.is_open(*of)).collect(),
        }
    }

    /// The comparisons whose sessions run here.
    fn all(&self) -> impl Iterator<Item = usize> {
        (0..self.comparisons.len()).filter(|of| self.only.is_none_or(|only| only == *of))
    }

    /// Both trials of the session of this number.
    fn planned(&self, comparison: usize, number: u32) -> [PlannedTrial; 2] {
        let Comparison { a, b, .. } = self.comparisons[comparison];
        self.plan.session((a, b), number)
    }

    /// The next session, of this comparison.
    pub(crate) fn session_of(&self, comparison: usize) -> Vec<NextTrial> {
        let Comparison { a, b, .. } = self.comparisons[comparison];
        self.session_of_cells([a, b])
    }

    /// The next session, of these cells.
    pub(crate) fn session_of_cells(&self, [a, b]: [usize; 2]) -> Vec<NextTrial> {
        let trials = self.plan.session((a, b), self.next_number());
        trials.map(|trial| NextTrial { trial, attempt: 1, reason: None }).into()
    }

    /// The state of the comparison of the latest session.
    pub(crate) fn latest(&self) -> Option<ComparisonState<'_>> {
        let comparison = self.sessions.values().rev().find_map(|session| session.comparison)?;
        self.comparison(self.comparisons[comparison].b)
    }

    fn next_number(&self) -> u32 {
        let next = self.sessions.keys().next_back().map_or(1, |last| last + 1);
        let Some(only) = self.only else { return next };
        // Each comparison has every n-th number.
        let (count, own) = (self.comparisons.len() as u32, only as u32 + 1);
        own + count * next.saturating_sub(own).div_ceil(count)
    }
}

impl Session {
    fn length(&self) -> Option<Duration> {
        let (started, ended) = self.span?;
        Duration::try_from(ended.duration_since(started)).ok()
    }

    /// Time that a complete session took in addition to its slices, in relation to the time of one of its pairs.
    fn restart_in_pairs(&self) -> Option<f64> {
        let [Some(SessionSide::Slices(a)), Some(SessionSide::Slices(b))] = &self.sides else { return None };
        let slices = a.slices.iter().chain(&b.slices);
        let load_us: u64 = slices.map(|slice| slice.load.end_us.saturating_sub(slice.load.start_us)).sum();
        let load = Duration::from_micros(load_us);
        let pair = load.checked_div(a.slices.len() as u32)?;
        Some(self.length()?.saturating_sub(load).as_secs_f64() / pair.as_secs_f64())
    }
}

impl Schedule for SessionSchedule<'_> {
    /// The open comparison with the fewest sessions, in a shuffled order.
    fn next(&self) -> Vec<NextTrial> {
        let open = self.open();
        let count = |comparison: &usize| self.of(*comparison).count();
        let Some(fewest) = open.iter().map(count).min() else { return Vec::new() };
        let mut order = open;
        Shuffler::new(self.plan.run.seed.wrapping_add(fewest as u64)).shuffle(&mut order);
        let Some(comparison) = order.into_iter().find(|comparison| count(comparison) == fewest) else {
            return Vec::new();
        };
        self.session_of(comparison)
    }

    fn record(&mut self, trial: &Trial) {
        self.add(trial, false);
    }

    fn progress(&self) -> Progress {
        let of_session = |session: &Session| session.sides.iter().flatten().count();
        let usable = self.sessions.values().filter(|session| !session.sides.contains(&None)).map(of_session);
        Progress {
            usable: usable.sum(),
            invalid: self.all().filter(|comparison| self.has_failed(*comparison)).count(),
            remaining: self.remaining().len(),
            elsewhere: 0,
        }
    }

    fn remaining(&self) -> Vec<PlannedTrial> {
        let repeats = self.plan.run.repeats;
        let wanted = |comparison: usize| {
            let (_, sequence) = self.deciding(comparison);
            let sessions = sequence.sessions() as u32;
            let left = sequence.sessions_left().map_or(1, |left| u32::try_from(left).unwrap_or(u32::MAX));
            let least = repeats.min.saturating_sub(sessions).max(1);
            (comparison, left.clamp(least, (repeats.max - sessions).max(least)))
        };
        let sessions = self.open().into_iter().map(wanted);
        let sessions = sessions.flat_map(|(comparison, count)| (0..count).map(move |_| comparison));
        (self.next_number()..).zip(sessions).flat_map(|(number, of)| self.planned(of, number)).collect()
    }

    /// Those that decide are [remaining](Self::remaining).
    fn possible(&self) -> Vec<PlannedTrial> {
        Vec::new()
    }

    fn comparison(&self, cell: usize) -> Option<ComparisonState<'_>> {
        let comparison = self.comparisons.iter().position(|comparison| comparison.b == cell)?;
        let Comparison { a, b, .. } = self.comparisons[comparison];
        let (figure, sequence) = self.deciding(comparison);
        let mean = self.spent().checked_div(self.sessions.len() as u32);
        let time_left = mean
            .zip(sequence.sessions_left())
            .map(|(mean, left)| Span::from_us((mean.as_micros() as u64).saturating_mul(left as u64)));
        let [a, b] = [a, b].map(|cell| &self.plan.cells[cell]);
        let pairs = self.pairs(comparison);
        Some(ComparisonState { a, b, figure, sequence, pairs, time_left, bisection: None })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use jiff::SignedDuration;
    use model::message::Slice;
    use model::paired::{MeasuredSlice, PairedTrial};
    use model::record::{Finding, Run, Status, Summary, Validity};
    use model::spec::Campaign;
    use stats::Verdict;

    use super::*;

    const SESSION_US: i64 = 2_000_000;

    fn plan(run: &str) -> Plan {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['16', '17', '18']\nworkload = ['select-only']\nclients = [1]\n\
             [run]\norder = 'paired'\nseed = 3\nretries = 1\n{run}"
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    /// A trial with slices of this throughput, or invalid because of a gate.
    pub(crate) fn trial(plan: &Plan, next: &NextTrial, outcome: Result<f64, &str>) -> Trial {
        let side = if next.trial.cell == 0 { Side::A } else { Side::B };
        let load = Slice {
            start_us: 0,
            pause_us: 50_000,
            end_us: 50_000,
            transactions: outcome.unwrap_or(1.0) as u64,
            failed: 0,
            guarded: 0,
            client_us: 1_000_000,
            latency_us: 0,
            service_us: None,
        };
        let slices =
            vec![
                MeasuredSlice { load, server_cpu_us: None, paused_cpu_us: None, server_instructions: None };
                3
            ];
        let status = if outcome.is_ok() { Status::Valid } else { Status::Invalid };
        let findings = outcome.err().map(|gate| Finding {
            gate: gate.to_owned(),
            status,
            evidence: "why".to_owned(),
            threshold: None,
            advice: None,
            processes: Vec::new(),
        });
        let at = |us: i64| Timestamp::from_microsecond(us).unwrap();
        let started_us = i64::from(next.trial.repeat) * 10 * SESSION_US;
        Trial {
            started: Some(at(started_us)),
            ended: Some(at(started_us + SESSION_US)),
            validity: Validity { status, findings: findings.into_iter().collect() },
            summary: Some(Summary { tps: outcome.unwrap_or_default(), ..Summary::default() }),
            paired: Some(PairedTrial { session: next.trial.repeat, side, slices }),
            ..next.head(&Run::default(), plan.cell(&next.trial))
        }
    }

    /// Runs a plan to its end, with a new schedule for each session, as after a crash.
    fn run(plan: &Plan, outcome: impl Fn(u32, usize) -> Result<f64, &'static str>) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        loop {
            let next = SessionSchedule::new(plan, &trials, &BTreeSet::new()).next();
            if next.is_empty() {
                return trials;
            }
            assert!(trials.len() < 3000, "it never ends");
            assert_eq!(next.len(), 2);
            trials.extend(next.iter().map(|of| trial(plan, of, outcome(of.trial.repeat, of.trial.cell))));
        }
    }

    /// Sessions of each comparison, by the cell of its second side.
    fn counts(trials: &[Trial], plan: &Plan) -> [usize; 2] {
        [1, 2].map(|cell| trials.iter().filter(|trial| trial.cell == plan.cells[cell]).count())
    }

    /// Sessions spread by 4 %; the last server is slower.
    fn slower(session: u32, cell: usize, by: f64) -> f64 {
        let luck = [0.0, 0.04, -0.03, 0.05, -0.05, 0.01, -0.02][session as usize % 7];
        match cell {
            0 => 100_000.0,
            1 => 100_000.0 * (1.0 + luck),
            _ => 100_000.0 * (1.0 + luck) * (1.0 - by),
        }
    }

    #[test]
    fn sessions_are_added_until_each_comparison_is_decided() {
        let plan = plan("");
        let trials = run(&plan, |session, cell| Ok(slower(session, cell, 0.2)));
        let schedule = SessionSchedule::new(&plan, &trials, &BTreeSet::new());
        let verdicts = [1, 2].map(|cell| schedule.comparison(cell).unwrap().sequence.verdict());
        assert_eq!(verdicts, [Verdict::Equivalent, Verdict::Regression]);
        assert!(schedule.comparison(0).is_none(), "the baseline");
        let [equal, slower] = counts(&trials, &plan);
        assert!((3..equal).contains(&slower) && equal < 150, "{equal} {slower}");
        let numbers: Vec<u32> = trials.iter().map(|trial| trial.position).collect();
        assert_eq!(numbers, (1..=trials.len() as u32).collect::<Vec<_>>());
        // Comparisons take turns while both are open.
        assert_eq!(counts(&trials[..12], &plan), [3, 3]);
        let progress = schedule.progress();
        assert_eq!((progress.usable, progress.invalid, progress.remaining), (trials.len(), 0, 0));
    }

    /// Both servers are as fast as far as throughput shows, but the last one's uses more CPU time.
    #[test]
    fn cpu_time_that_decides_ends_what_throughput_leaves_open() {
        let with_cpu = |plan: &Plan| {
            let mut trials: Vec<Trial> = Vec::new();
            loop {
                let next = SessionSchedule::new(plan, &trials, &BTreeSet::new()).next();
                if next.is_empty() {
                    return trials;
                }
                for next in next {
                    let (session, cell) = (next.trial.repeat, next.trial.cell);
                    let mut trial = trial(plan, &next, Ok(slower(session, cell, 0.02)));
                    let cpu_us = slower(session + 3, cell, -0.2) * if cell == 0 { 1.0 } else { 0.999 };
                    for slice in &mut trial.paired.as_mut().unwrap().slices {
                        slice.server_cpu_us = Some((slice.load.transactions as f64 * cpu_us / 1e3) as u64);
                    }
                    trials.push(trial);
                }
            }
        };
        let states = |plan: &Plan, trials: &[Trial]| {
            let schedule = SessionSchedule::new(plan, trials, &BTreeSet::new());
            assert!(schedule.remaining().is_empty());
            [1, 2].map(|cell| {
                let state = schedule.comparison(cell).unwrap();
                (state.figure, state.sequence.verdict())
            })
        };
        let (alone, both) = (plan("max_time = '1h'\n"), plan("max_time = '1h'\ncpu_decides = true\n"));
        let (by_one, by_both) = (with_cpu(&alone), with_cpu(&both));
        assert_eq!(states(&alone, &by_one)[1], (PairedFigure::Throughput, Verdict::Equivalent));
        let [equal, slower] = states(&both, &by_both);
        assert_eq!(equal.1, Verdict::Equivalent);
        // More CPU time.
        assert_eq!(slower, (PairedFigure::ServerCpu, Verdict::Improvement));
        let ([same, more], [same_alone, more_alone]) = (counts(&by_both, &both), counts(&by_one, &alone));
        assert!(more < more_alone, "{more} {more_alone}");
        // Equivalence takes both figures, each with half of the error.
        assert!(same >= same_alone, "{same} {same_alone}");
    }

    #[test]
    fn a_fixed_number_of_sessions_is_run_whatever_they_show() {
        let plan = plan("repeats = 6\n");
        let trials = run(&plan, |session, cell| Ok(slower(session, cell, 0.5)));
        assert_eq!(counts(&trials, &plan), [6, 6]);
    }

    #[test]
    fn the_time_for_sessions_includes_those_of_earlier_commands() {
        let plan = plan("max_time = '21s'\n");
        let trials = run(&plan, |session, cell| Ok(slower(session, cell, 0.02)));
        assert_eq!(trials.len(), 2 * 11, "none begins after 21 s of sessions of 2 s");
        let state = SessionSchedule::new(&plan, &trials, &BTreeSet::new());
        let left = state.comparison(2).unwrap().time_left.unwrap();
        assert!(left.seconds() > 2.0 && left.seconds() % 2.0 == 0.0, "{left}");
        assert_eq!(state.progress().remaining, 0);
    }

    #[test]
    fn sessions_that_take_long_to_start_have_more_pairs() {
        let plan = plan("");
        let pairs = |seconds: i64| {
            let next = SessionSchedule::new(&plan, &[], &BTreeSet::new()).next();
            let mut session = next.iter().map(|next| trial(&plan, next, Ok(100.0))).collect::<Vec<_>>();
            for trial in &mut session {
                trial.ended = Some(trial.started.unwrap() + SignedDuration::from_secs(seconds));
            }
            let cell = session[1].cell.clone();
            let cell = plan.cells.iter().position(|planned| cell == *planned).unwrap();
            SessionSchedule::new(&plan, &session, &BTreeSet::new()).comparison(cell).unwrap().pairs
        };
        // Three pairs of 0.1 s each; the time of two servers' starts is the rest.
        assert_eq!([1, 6, 12, 60].map(pairs), [15, 30, 43, 60]);
    }

    #[test]
    fn half_a_session_does_not_count_and_its_number_is_not_used_again() {
        let plan = plan("repeats = 1\n");
        let first = SessionSchedule::new(&plan, &[], &BTreeSet::new()).next();
        let half = [trial(&plan, &first[0], Ok(100.0))];
        let schedule = SessionSchedule::new(&plan, &half, &BTreeSet::new());
        assert_eq!(schedule.progress().usable, 0);
        let next = schedule.next();
        assert_eq!(
            next.iter().map(|next| (next.trial.repeat, next.trial.position)).collect::<Vec<_>>(),
            [(2, 3), (2, 4)]
        );
    }

    #[test]
    fn failing_sessions_are_repeated_up_to_a_limit_and_by_the_next_command() {
        let plan = plan("repeats = 4\n");
        let failing = |_, cell| if cell == 1 { Err("server-exited") } else { Ok(100.0) };
        let mut trials = run(&plan, failing);
        // One attempt and one retry.
        assert_eq!(counts(&trials, &plan), [2, 4]);
        let progress = SessionSchedule::new(&plan, &trials, &BTreeSet::new()).progress();
        assert_eq!((progress.usable, progress.invalid, progress.remaining), (8, 1, 0));
        let earlier: BTreeSet<String> = trials.iter().map(|trial| trial.id.clone()).collect();
        let mut resumed = SessionSchedule::new(&plan, &trials, &earlier);
        assert_eq!(resumed.progress().remaining, 8);
        for _ in 0..4 {
            for next in resumed.next() {
                let ended = trial(&plan, &next, Ok(100.0));
                resumed.record(&ended);
                trials.push(ended);
            }
        }
        assert!(resumed.next().is_empty());
        // A session that the user interrupted does not count as a failure.
        let interrupted =
            run(&plan, |session, _| if session < 9 { Err(diagnose::INTERRUPTED) } else { Ok(100.0) });
        assert_eq!(counts(&interrupted, &plan), [8, 8]);
    }
}
