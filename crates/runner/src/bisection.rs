//! Choice of the next session of a bisection: a pure function of the plan and of the trials that have been run, as in `schedule.rs`.

use std::collections::BTreeSet;

use diagnose::{Bisection, LinkOrderCheck};
use model::paired::PAIRS;
use model::plan::{Plan, PlannedTrial};
use model::record::Trial;

use crate::schedule::{ComparisonState, NextTrial, Progress, Schedule};
use crate::sessions::SessionSchedule;

/// The sessions of a bisection: those that have been run and those still to run.
pub(crate) struct BisectionSchedule<'a> {
    plan: &'a Plan,
    sessions: SessionSchedule<'a>,
    state: Option<Bisection>,
    /// Of the commit that was found.
    link_order: Option<LinkOrderCheck>,
}

impl<'a> BisectionSchedule<'a> {
    /// As [`SessionSchedule::new`].
    pub(crate) fn new(plan: &'a Plan, trials: &[Trial], earlier: &BTreeSet<String>) -> Self {
        let mut state = Bisection::new(plan);
        if let Some(state) = &mut state {
            state.add(plan, trials, earlier);
        }
        let mut link_order = state.as_ref().and_then(|state| LinkOrderCheck::of(plan, state));
        if let Some(link_order) = &mut link_order {
            link_order.add(plan, trials, earlier);
        }
        Self { plan, sessions: SessionSchedule::new(plan, trials, earlier), state, link_order }
    }
}

impl Schedule for BisectionSchedule<'_> {
    fn next(&self) -> Vec<NextTrial> {
        let state = self.state.as_ref().filter(|_| !self.sessions.is_out_of_time());
        // Comparison i is that of position i + 1.
        let of_position =
            state.and_then(Bisection::next).map(|position| self.sessions.session_of(position - 1));
        let link_order = self.link_order.as_ref().filter(|check| state.is_some() && check.is_open());
        of_position
            .or(link_order.map(|check| self.sessions.session_of_cells(check.cells)))
            .unwrap_or_default()
    }

    fn record(&mut self, trial: &Trial) {
        self.sessions.record(trial);
        if let Some(state) = &mut self.state {
            state.add(self.plan, [trial], &BTreeSet::new());
            match &mut self.link_order {
                Some(check) => check.add(self.plan, [trial], &BTreeSet::new()),
                none => *none = LinkOrderCheck::of(self.plan, state),
            }
        }
    }

    fn progress(&self) -> Progress {
        let remaining = self.remaining().len();
        Progress { remaining, invalid: 0, ..self.sessions.progress() }
    }

    /// The next session: how many more there will be is not known.
    fn remaining(&self) -> Vec<PlannedTrial> {
        self.next().into_iter().map(|next| next.trial).collect()
    }

    fn possible(&self) -> Vec<PlannedTrial> {
        Vec::new()
    }

    fn comparison(&self, cell: usize) -> Option<ComparisonState<'_>> {
        let bisection = self.state.as_ref();
        if let Some(check) = self.link_order.as_ref().filter(|check| check.cells[1] == cell) {
            let [a, b] = check.cells.map(|cell| &self.plan.cells[cell]);
            let sequence = check.sequence.clone();
            return Some(ComparisonState {
                a,
                b,
                figure: check.figure,
                sequence,
                pairs: PAIRS,
                time_left: None,
                bisection,
            });
        }
        let state = self.sessions.comparison(cell)?;
        Some(ComparisonState { bisection, time_left: None, ..state })
    }
}

#[cfg(test)]
mod tests {
    use diagnose::{BisectionFinding, LinkOrderFinding};
    use model::cell::Cell;
    use model::paired::Side;
    use model::record::Status;
    use model::spec::Campaign;

    use super::*;
    use crate::sessions::tests::trial;

    const LEVELS: usize = 40;

    fn plan(run: &str) -> Plan {
        let levels: Vec<String> = (0..=LEVELS).map(|level| format!("'s{level}'")).collect();
        let tables: String =
            (1..=LEVELS).map(|level| format!("[settings.s{level}]\nwork_mem = '{level}MB'\n")).collect();
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['18']\nsettings = [{}]\nworkload = ['select-only']\nclients = [1]\n\
             [run]\norder = 'bisect'\nseed = 3\nretries = 1\n{run}\n[settings.s0]\n{tables}",
            levels.join(", ")
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    /// Runs a plan to its end, with a new schedule for each session, as after a crash. Levels that fail have no server.
    fn run(plan: &Plan, tps: impl Fn(usize) -> f64, fails: impl Fn(usize) -> bool) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        loop {
            let next = BisectionSchedule::new(plan, &trials, &BTreeSet::new()).next();
            let [a, b] = next.as_slice() else { return trials };
            assert!(trials.len() < 2000, "it never ends");
            let level = b.trial.cell;
            let luck = [0.0, 0.02, -0.015, 0.025, -0.025, 0.005, -0.01][b.trial.repeat as usize % 7];
            if fails(level) {
                let mut failed = trial(plan, b, Err("no-server"));
                failed.validity.findings[0].evidence = "could not compile".to_owned();
                trials.push(failed);
            } else {
                let mut first = trial(plan, a, Ok(100_000.0 * tps(a.trial.cell)));
                first.paired.as_mut().unwrap().side = Side::A;
                trials.push(first);
                trials.push(trial(plan, b, Ok(100_000.0 * (1.0 + luck) * tps(level))));
            }
        }
    }

    fn state(plan: &Plan, trials: &[Trial]) -> Bisection {
        BisectionSchedule::new(plan, trials, &BTreeSet::new()).state.unwrap()
    }

    fn found(plan: &Plan, trials: &[Trial]) -> Vec<std::ops::RangeInclusive<usize>> {
        match state(plan, trials).finding() {
            BisectionFinding::Found(found) => found.into_iter().map(|culprits| culprits.positions).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sessions_are_added_until_the_level_is_known() {
        let plan = plan("");
        let trials = run(&plan, |level| if level >= 23 { 0.9 } else { 1.0 }, |_| false);
        assert_eq!(found(&plan, &trials), [23..=23]);
        // Both ends first.
        let cells: Vec<usize> =
            (0..6).map(|at| plan.cells.iter().position(|cell| trials[at].cell == *cell).unwrap()).collect();
        assert_eq!(cells, [0, LEVELS, 0, LEVELS, 0, LEVELS]);
        let state = state(&plan, &trials);
        assert!(state.measured() < 20 && state.next().is_none(), "{}", state.measured());
        let progress = BisectionSchedule::new(&plan, &trials, &BTreeSet::new()).progress();
        assert_eq!((progress.usable, progress.invalid, progress.remaining), (trials.len(), 0, 0));
    }

    #[test]
    fn levels_without_a_server_keep_their_probability_and_their_neighbours_are_measured() {
        let plan = plan("");
        let fails = |level: usize| (20..=23).contains(&level) || level == 30;
        let trials = run(&plan, |level| if level >= 22 { 0.9 } else { 1.0 }, fails);
        assert_eq!(found(&plan, &trials), [20..=24]);
        let state = state(&plan, &trials);
        let failed: Vec<usize> =
            (0..=LEVELS).filter(|at| state.positions[*at].unavailable.is_some()).collect();
        assert!(failed.iter().all(|level| fails(*level)) && failed.contains(&22), "{failed:?}");
        assert_eq!(state.positions[22].unavailable.as_deref(), Some("could not compile"));
        // Each is tried once.
        let invalid = trials.iter().filter(|trial| trial.validity.status == Status::Invalid).count();
        assert_eq!(invalid, failed.len());
    }

    /// A search among commits, whose builds with sorted functions have these levels: what it found, and the sessions of these builds.
    fn link_order(sorted: impl Fn(usize) -> f64, fails: impl Fn(usize) -> bool) -> (LinkOrderFinding, usize) {
        const COMMITS: usize = 12;
        let levels: Vec<String> = (0..=COMMITS).map(|commit| format!("'pg@c{commit}'")).collect();
        let text = format!(
            "name = 'n'\n[factors]\nserver = [{}]\nworkload = ['select-only']\nclients = [1]\n\
             [run]\norder = 'bisect'\nseed = 3\nretries = 1\n[servers.pg]\nsource = 'postgres'\n",
            levels.join(", ")
        );
        let plan = Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap();
        assert_eq!((plan.cells.len(), plan.comparisons().len()), (2 * (COMMITS + 1), COMMITS));
        let of_commit = |commit: usize| if commit >= 5 { 0.9 } else { 1.0 };
        let tps = |cell: usize| match cell.checked_sub(COMMITS + 1) {
            Some(commit) => sorted(commit),
            None => of_commit(cell),
        };
        let trials = run(&plan, tps, |cell| cell.checked_sub(COMMITS + 1).is_some_and(&fails));
        assert_eq!(found(&plan, &trials), [5..=5]);
        let schedule = BisectionSchedule::new(&plan, &trials, &BTreeSet::new());
        let check = schedule.link_order.unwrap();
        let sorted: Vec<&Cell> = plan.cells[COMMITS + 1..].iter().collect();
        let is_sorted = |trial: &&Trial| sorted.iter().any(|cell| trial.cell == **cell);
        let pair = check.cells.map(|cell| plan.cells[cell].server.as_str());
        assert_eq!(pair, ["pg@c4+sorted", "pg@c5+sorted"]);
        assert!(
            trials
                .iter()
                .filter(is_sorted)
                .all(|trial| check.cells.iter().any(|cell| trial.cell == plan.cells[*cell]))
        );
        (check.finding(), trials.iter().filter(is_sorted).count() / 2)
    }

    #[test]
    fn a_commit_is_compared_with_the_one_before_it_in_builds_with_another_order_of_functions() {
        let (finding, sessions) = link_order(|commit| if commit >= 5 { 0.91 } else { 1.0 }, |_| false);
        assert_eq!(finding, LinkOrderFinding::Confirmed);
        assert!((3..40).contains(&sessions), "{sessions}");
        // Layout alone: nothing changes with it, or the other way round.
        assert_eq!(link_order(|_| 1.0, |_| false).0, LinkOrderFinding::LayoutAlone);
        let opposite = link_order(|commit| if commit >= 5 { 1.1 } else { 1.0 }, |_| false);
        assert_eq!(opposite.0, LinkOrderFinding::LayoutAlone);
        let failed = link_order(|_| 1.0, |commit| commit == 5);
        assert_eq!(failed, (LinkOrderFinding::Failed("could not compile".to_owned()), 0));
    }

    #[test]
    fn equal_ends_leave_nothing_to_find() {
        let plan = plan("effect = '5%'\n");
        let trials = run(&plan, |_| 1.0, |_| false);
        assert_eq!(state(&plan, &trials).finding(), BisectionFinding::NothingToFind);
        assert!(
            trials.iter().all(|trial| [0, LEVELS].map(|cell| trial.cell == plan.cells[cell]).contains(&true))
        );
    }

    #[test]
    fn the_time_ends_a_search_and_more_time_continues_it() {
        let tps = |level| if level >= 7 { 0.9 } else { 1.0 };
        let short = plan("max_time = '9s'\n");
        let trials = run(&short, tps, |_| false);
        assert_eq!(trials.len(), 2 * 5, "none begins after 9 s of sessions of 2 s");
        assert!(!matches!(state(&short, &trials).finding(), BisectionFinding::Found(_)));
        let schedule = |trials| BisectionSchedule::new(&short, trials, &BTreeSet::new()).next();
        assert!(schedule(&trials).is_empty());
        let long = plan("max_time = '1h'\n");
        assert!(!BisectionSchedule::new(&long, &trials, &BTreeSet::new()).next().is_empty());
    }

    #[test]
    fn ends_that_fail_end_it_and_the_next_command_tries_again() {
        let plan = plan("");
        let mut trials = Vec::new();
        for _ in 0..2 {
            let next = BisectionSchedule::new(&plan, &trials, &BTreeSet::new()).next();
            trials.extend(next.iter().map(|next| trial(&plan, next, Err("server-exited"))));
        }
        assert!(BisectionSchedule::new(&plan, &trials, &BTreeSet::new()).next().is_empty());
        let earlier = trials.iter().map(|trial| trial.id.clone()).collect();
        assert_eq!(BisectionSchedule::new(&plan, &trials, &earlier).next().len(), 2);
    }
}
