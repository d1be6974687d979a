//! Choice of the next session of a bisection: a pure function of the plan and of the trials that have been run, as in `schedule.rs`.

use std::collections::BTreeSet;

use diagnose::{Bisection, LinkOrderCheck};
use model::paired::PAIRS;
use model::plan::{Plan, PlannedTrial};
use model::record::Trial;
use model::session::SessionSide;

use crate::schedule::{ComparisonState, NextTrial, Progress, Schedule};
use crate::sessions::SessionSchedule;

/// The sessions of a bisection: those that have been run and those still to run.
pub(crate) struct BisectionSchedule<'a> {
    plan: &'a Plan,
    sessions: SessionSchedule<'a>,
    state: Option<Bisection>,
    /// Of the commits that were found, in their order.
    link_order: Vec<LinkOrderCheck>,
    /// The second trial of a session whose first one has just been run, if they run one after the other.
    second: Option<NextTrial>,
}

impl<'a> BisectionSchedule<'a> {
    /// As [`SessionSchedule::new`].
    pub(crate) fn new(plan: &'a Plan, trials: &[Trial], earlier: &BTreeSet<String>) -> Self {
        let mut state = Bisection::new(plan);
        if let Some(state) = &mut state {
            state.add(plan, trials, earlier);
        }
        let mut link_order = state.as_ref().map(|state| LinkOrderCheck::of(plan, state)).unwrap_or_default();
        for check in &mut link_order {
            check.add(plan, trials, earlier);
        }
        let sessions = SessionSchedule::new(plan, trials, earlier);
        Self { plan, sessions, state, link_order, second: None }
    }
}

impl BisectionSchedule<'_> {
    /// Both trials of the next session.
    fn session(&self) -> Vec<NextTrial> {
        let state = self.state.as_ref().filter(|_| !self.sessions.is_out_of_time());
        // Comparison i is that of position i + 1.
        let of_position =
            state.and_then(Bisection::next).map(|position| self.sessions.session_of(position - 1));
        let link_order = self.link_order.iter().find(|check| state.is_some() && check.is_open());
        of_position
            .or(link_order.map(|check| self.sessions.session_of_cells(check.cells)))
            .unwrap_or_default()
    }
}

impl Schedule for BisectionSchedule<'_> {
    /// The next session; of one whose trials run one after the other, the first, and then the second.
    fn next(&self) -> Vec<NextTrial> {
        if let Some(second) = &self.second {
            return vec![second.clone()];
        }
        let mut session = self.session();
        if !self.plan.is_in_slices() {
            session.truncate(1);
        }
        session
    }

    fn record(&mut self, trial: &Trial) {
        let is_first = self.second.take().is_none() && !self.plan.is_in_slices();
        // Without its first trial, a session needs no second one.
        if is_first && SessionSide::from_trial(trial).is_some() {
            self.second = self.session().into_iter().find(|next| trial.cell != *self.plan.cell(&next.trial));
        }
        self.sessions.record(trial);
        if let Some(state) = &mut self.state {
            state.add(self.plan, [trial], &BTreeSet::new());
            if self.link_order.is_empty() {
                self.link_order = LinkOrderCheck::of(self.plan, state);
            }
            for check in &mut self.link_order {
                check.add(self.plan, [trial], &BTreeSet::new());
            }
        }
    }

    fn progress(&self) -> Progress {
        let remaining = self.remaining().len();
        let has_failed = self.state.as_ref().is_some_and(Bisection::has_failed);
        Progress { remaining, invalid: usize::from(has_failed), ..self.sessions.progress() }
    }

    /// The next session, or what is left of it: how many more there will be is not known.
    fn remaining(&self) -> Vec<PlannedTrial> {
        let rest = || self.second.iter().cloned().collect();
        let next: Vec<NextTrial> = if self.second.is_some() { rest() } else { self.session() };
        next.into_iter().map(|next| next.trial).collect()
    }

    fn possible(&self) -> Vec<PlannedTrial> {
        Vec::new()
    }

    /// Also of a baseline whose trial ends a session; none within a session.
    fn comparison(&self, cell: usize) -> Option<ComparisonState<'_>> {
        if self.second.is_some() {
            return None;
        }
        let bisection = self.state.as_ref();
        if let Some(check) = self.link_order.iter().find(|check| check.cells[1] == cell) {
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
        let state = self.sessions.comparison(cell).or_else(|| self.sessions.latest())?;
        Some(ComparisonState { bisection, time_left: None, ..state })
    }

    fn waits_for_build(&self) -> bool {
        self.state.as_ref().is_some_and(Bisection::waits_for_build)
    }

    fn next_build(&self) -> Option<usize> {
        self.state.as_ref().filter(|_| !self.sessions.is_out_of_time()).and_then(Bisection::next_build)
    }

    fn set_data(&mut self, data: Vec<Option<String>>) {
        if let Some(state) = &mut self.state {
            state.set_data(data);
        }
    }

    fn set_built(&mut self, cells: &BTreeSet<usize>) {
        if let Some(state) = &mut self.state {
            state.set_built(cells);
        }
    }
}

#[cfg(test)]
mod tests {
    use diagnose::{BisectionFinding, LinkOrderFinding};
    use model::cell::Cell;
    use model::paired::Side;
    use model::record::{Status, Summary};
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

    /// A plan of a search among so many commits, each also built with sorted functions.
    fn plan_of_commits(count: usize) -> Plan {
        let levels: Vec<String> = (0..=count).map(|commit| format!("'pg@c{commit}'")).collect();
        let text = format!(
            "name = 'n'\n[factors]\nserver = [{}]\nworkload = ['select-only']\nclients = [1]\n\
             [run]\norder = 'bisect'\nseed = 3\nretries = 1\n[servers.pg]\nsource = 'postgres'\n",
            levels.join(", ")
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    /// A search among commits, whose builds with sorted functions have these levels: what it found, and the sessions of these builds.
    fn link_order(sorted: impl Fn(usize) -> f64, fails: impl Fn(usize) -> bool) -> (LinkOrderFinding, usize) {
        const COMMITS: usize = 12;
        let plan = plan_of_commits(COMMITS);
        assert_eq!((plan.cells.len(), plan.comparisons().len()), (2 * (COMMITS + 1), COMMITS));
        let of_commit = |commit: usize| if commit >= 5 { 0.9 } else { 1.0 };
        let tps = |cell: usize| match cell.checked_sub(COMMITS + 1) {
            Some(commit) => sorted(commit),
            None => of_commit(cell),
        };
        let trials = run(&plan, tps, |cell| cell.checked_sub(COMMITS + 1).is_some_and(&fails));
        assert_eq!(found(&plan, &trials), [5..=5]);
        let schedule = BisectionSchedule::new(&plan, &trials, &BTreeSet::new());
        let [check] = schedule.link_order.as_slice() else { panic!("{:?}", schedule.link_order) };
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
    fn each_of_two_changes_is_compared_in_builds_with_another_order_of_functions() {
        const COMMITS: usize = 20;
        let plan = plan_of_commits(COMMITS);
        let steps = |commit: usize, second: f64| match commit {
            0..6 => 1.0,
            6..12 => 0.85,
            _ => 0.85 * second,
        };
        let tps = |cell: usize| match cell.checked_sub(COMMITS + 1) {
            // The second change is one of code layout alone.
            Some(commit) => steps(commit, 1.0),
            None => steps(cell, 0.85),
        };
        let trials = run(&plan, tps, |_| false);
        assert_eq!(found(&plan, &trials), [6..=6, 12..=12]);
        let schedule = BisectionSchedule::new(&plan, &trials, &BTreeSet::new());
        let findings: Vec<(usize, usize, LinkOrderFinding)> =
            schedule.link_order.iter().map(|check| (check.before, check.after, check.finding())).collect();
        assert_eq!(findings, [(5, 6, LinkOrderFinding::Confirmed), (11, 12, LinkOrderFinding::LayoutAlone)]);
        assert_eq!(schedule.progress().remaining, 0);
    }

    /// A build takes as long as so many sessions.
    #[test]
    fn sessions_run_on_what_is_built_while_the_next_one_is_built() {
        const BUILD: usize = 6;
        let levels: Vec<String> = (0..=LEVELS).map(|commit| format!("'pg@c{commit}'")).collect();
        let text = format!(
            "name = 'n'\n[factors]\nserver = [{}]\nworkload = ['select-only']\nclients = [1]\n[run]\norder = 'bisect'\n\
             seed = 3\nlink_order = false\nbuild_while_measuring = true\n[servers.pg]\nsource = 'postgres'\n",
            levels.join(", ")
        );
        let plan = Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap();
        let mut random = Luck(1);
        let mut schedule = BisectionSchedule::new(&plan, &[], &BTreeSet::new());
        let (mut built, mut trials) = (BTreeSet::from([0, LEVELS]), Vec::new());
        let (mut building, mut waited, mut sessions): (Option<(usize, usize)>, usize, usize) = (None, 0, 0);
        loop {
            if let Some((cell, _)) = building.take_if(|(_, until)| *until <= sessions + waited) {
                built.insert(cell);
            }
            schedule.set_built(&built);
            let wanted = schedule.next_build();
            assert!(wanted.is_none_or(|cell| !built.contains(&cell)), "{wanted:?} is built");
            building = building.or(wanted.map(|cell| (cell, sessions + waited + BUILD)));
            if schedule.waits_for_build() {
                waited += 1;
                continue;
            }
            let next = schedule.next();
            let [a, b] = next.as_slice() else { break };
            assert!(built.contains(&b.trial.cell), "session {sessions}: {} is not built", b.trial.cell);
            let level = if b.trial.cell >= 29 { 0.95 } else { 1.0 };
            let mut first = trial(&plan, a, Ok(100_000.0));
            first.paired.as_mut().unwrap().side = Side::A;
            let second = trial(&plan, b, Ok(100_000.0 * level * random.next(0.03)));
            for ended in [first, second] {
                schedule.record(&ended);
                trials.push(ended);
            }
            sessions += 1;
            assert!(sessions < 2000, "it never ends");
        }
        assert_eq!(found(&plan, &trials), [29..=29]);
        let measured = state(&plan, &trials).measured();
        assert!(measured > 6 && waited < BUILD * measured / 2, "{measured} levels, waited {waited} sessions");
    }

    #[test]
    fn a_commit_whose_data_exist_is_measured_before_those_whose_data_take_long() {
        let levels: Vec<String> = (0..=LEVELS).map(|commit| format!("'pg@c{commit}'")).collect();
        let text = format!(
            "name = 'n'\n[factors]\nserver = [{}]\nworkload = ['select-only']\nclients = [1]\nscale = [10000]\n\
             [run]\norder = 'bisect'\nseed = 3\n[servers.pg]\nsource = 'postgres'\n",
            levels.join(", ")
        );
        let plan = Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap();
        let is_shared = |cell: usize| cell == 0 || (12..15).contains(&cell);
        let data = |cell| {
            let own = if is_shared(cell) { 0 } else { cell };
            (cell <= LEVELS).then(|| own.to_string())
        };
        let mut schedule = BisectionSchedule::new(&plan, &[], &BTreeSet::new());
        let mut luck = Luck(1);
        let mut next = || {
            let next = schedule.next();
            let [a, b] = next.as_slice() else { panic!("it has ended") };
            let mut first = trial(&plan, a, Ok(100_000.0));
            first.paired.as_mut().unwrap().side = Side::A;
            let level = if b.trial.cell >= 14 { 0.9 } else { 1.0 };
            let second = trial(&plan, b, Ok(100_000.0 * level * luck.next(0.02)));
            schedule.set_data((0..plan.cells.len()).map(data).collect());
            [first, second].iter().for_each(|trial| schedule.record(trial));
            b.trial.cell
        };
        let probe = (0..50).map(|_| next()).find(|cell| *cell != LEVELS).unwrap();
        assert!(is_shared(probe), "{probe}");
    }

    /// Draws ratios around 1.
    struct Luck(u64);

    impl Luck {
        /// As far from 1 as a uniform variate of this standard deviation.
        fn next(&mut self, sd: f64) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1.0 + sd * 12.0_f64.sqrt() * ((self.0 >> 11) as f64 / (1_u64 << 53) as f64 - 0.5)
        }
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
        let schedule = BisectionSchedule::new(&plan, &trials, &BTreeSet::new());
        assert!(schedule.next().is_empty());
        assert_eq!(schedule.progress().invalid, 1);
        let earlier = trials.iter().map(|trial| trial.id.clone()).collect();
        assert_eq!(BisectionSchedule::new(&plan, &trials, &earlier).next().len(), 2);
    }

    const KERNELS: usize = 8;

    fn plan_of_kernels() -> Plan {
        let levels: Vec<String> = (0..=KERNELS).map(|level| format!("'6.{level}'")).collect();
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\nkernel = [{}]\n\
             acceleration = ['icount']\n[run]\norder = 'bisect'\nseed = 3\nretries = 1\n",
            levels.join(", ")
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    /// A trial in a virtual machine: with its instructions per transaction, or invalid because of a gate.
    fn whole(plan: &Plan, next: &NextTrial, outcome: Result<f64, &str>) -> Trial {
        let mut trial = trial(plan, next, outcome.map(|_| 1.0));
        let summary = trial.summary.take().filter(|_| outcome.is_ok());
        let instructions_per_transaction = outcome.ok();
        trial.summary = summary.map(|summary| Summary { instructions_per_transaction, ..summary });
        trial.paired = None;
        trial
    }

    /// Runs a plan in virtual machines to its end. Kernels that fail do not boot.
    fn run_kernels(
        plan: &Plan,
        instructions: impl Fn(usize) -> f64,
        fails: impl Fn(usize) -> bool,
    ) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        let mut schedule = BisectionSchedule::new(plan, &trials, &BTreeSet::new());
        loop {
            let next = schedule.next();
            let [next] = next.as_slice() else { return trials };
            assert!(trials.len() < 200, "it never ends");
            let level = next.trial.cell;
            let luck = [0.0, 0.001, -0.001, 0.0005, -0.0005][next.trial.position as usize % 5];
            let outcome =
                if fails(level) { Err("load-failed") } else { Ok((1.0 + luck) * instructions(level)) };
            let trial = whole(plan, next, outcome);
            schedule.record(&trial);
            trials.push(trial);
        }
    }

    fn levels(plan: &Plan, trials: &[Trial]) -> Vec<(u32, usize)> {
        let level = |trial: &Trial| plan.cells.iter().position(|cell| trial.cell == *cell).unwrap();
        trials.iter().map(|trial| (trial.repeat, level(trial))).collect()
    }

    #[test]
    fn a_session_in_virtual_machines_is_two_trials_one_after_the_other() {
        let plan = plan_of_kernels();
        // Instructions fall and rise.
        for (ratio, step) in [(0.97, 5), (1.05, 1)] {
            let instructions = |level| if level >= step { 66_000.0 * ratio } else { 66_000.0 };
            let trials = run_kernels(&plan, instructions, |_| false);
            assert_eq!(found(&plan, &trials), [step..=step]);
            let mut orders = BTreeSet::new();
            for session in levels(&plan, &trials).chunks(2) {
                let [(one, first), (other, second)] = session else { panic!("{session:?}") };
                assert!(one == other && (*first == 0) != (*second == 0), "{session:?}");
                orders.insert(*first == 0);
            }
            assert_eq!(orders.len(), 2, "in an order that is drawn");
            let state = state(&plan, &trials);
            assert!(state.sessions() <= 20 && state.next().is_none(), "{} sessions", state.sessions());
            let posterior = state.posterior().unwrap();
            assert!((posterior.sizes[0].ratio - ratio).abs() < 0.002, "{:?}", posterior.sizes);
        }
    }

    #[test]
    fn a_kernel_that_does_not_boot_is_named_with_its_neighbours() {
        let plan = plan_of_kernels();
        let fails = |level| level == 4;
        let trials = run_kernels(&plan, |level| if level >= 5 { 65_000.0 } else { 66_000.0 }, fails);
        assert_eq!(found(&plan, &trials), [4..=5]);
        // One attempt and one retry; a level that failed needs no trial of the baseline after it.
        let levels = levels(&plan, &trials);
        let failed: Vec<u32> =
            levels.iter().filter(|(_, level)| *level == 4).map(|(session, _)| *session).collect();
        assert_eq!(failed.len(), 2, "{levels:?}");
        for (at, (session, level)) in levels.iter().enumerate() {
            let is_last = levels.get(at + 1).is_none_or(|(next, _)| next != session);
            assert!(*level != 4 || is_last, "{levels:?}");
        }
        assert_eq!(state(&plan, &trials).positions[4].unavailable.as_deref(), Some("why"));
        assert_eq!(BisectionSchedule::new(&plan, &trials, &BTreeSet::new()).progress().invalid, 0);
    }

    #[test]
    fn equal_kernels_leave_nothing_to_find() {
        let plan = plan_of_kernels();
        let trials = run_kernels(&plan, |_| 66_000.0, |_| false);
        assert_eq!(state(&plan, &trials).finding(), BisectionFinding::NothingToFind);
    }

    /// As for other comparisons: the driver's speed was compared.
    #[test]
    fn a_saturated_driver_on_both_sides_leaves_no_verdict() {
        let saturated = |plan: &Plan, figure: f64, side: usize| {
            let mut trials: Vec<Trial> = Vec::new();
            for _ in 0..3 {
                for next in BisectionSchedule::new(plan, &trials, &BTreeSet::new()).next() {
                    let is_saturated = side == 2 || usize::from(next.trial.cell != 0) == side;
                    let mut ended = trial(plan, &next, Ok(figure));
                    if is_saturated {
                        let failed = trial(plan, &next, Err("driver-saturated"));
                        ended.validity = failed.validity;
                        ended.validity.status = Status::Suspect;
                        ended.validity.findings[0].status = Status::Suspect;
                    }
                    trials.push(ended);
                }
            }
            state(plan, &trials).finding()
        };
        let plan = plan("");
        assert_eq!(saturated(&plan, 1e5, 2), BisectionFinding::NoVerdict("driver-saturated"));
        assert_eq!(saturated(&plan, 1e5, 1), BisectionFinding::EndsOpen, "one side only");
        let by_cpu = self::plan("figure = 'server-cpu'\n");
        assert_eq!(saturated(&by_cpu, 1e5, 2), BisectionFinding::EndsOpen, "no figure of the driver");
    }

    #[test]
    fn half_a_session_does_not_count_and_another_begins() {
        let plan = plan_of_kernels();
        let first = BisectionSchedule::new(&plan, &[], &BTreeSet::new()).next().remove(0);
        let half = [whole(&plan, &first, Ok(66_000.0))];
        let mut killed = BisectionSchedule::new(&plan, &half, &BTreeSet::new());
        let next = killed.next().remove(0);
        assert_eq!((next.trial.repeat, next.trial.position), (2, 3));
        assert_eq!(killed.progress().usable, 0);
        // Without an interruption the same session goes on.
        killed.record(&whole(&plan, &next, Ok(66_000.0)));
        assert_eq!(killed.next().remove(0).trial.repeat, 2);
        assert_eq!(killed.remaining().len(), 1);
        let cells = [next.trial.cell, killed.next().remove(0).trial.cell];
        assert!(cells == [0, KERNELS] || cells == [KERNELS, 0], "{cells:?}");
    }

    #[test]
    fn a_baseline_that_does_not_boot_ends_it() {
        let plan = plan_of_kernels();
        let trials = run_kernels(&plan, |_| 66_000.0, |level| level == 0);
        assert_eq!(state(&plan, &trials).finding(), BisectionFinding::EndsOpen);
        let of_baseline = levels(&plan, &trials).iter().filter(|(_, level)| *level == 0).count();
        assert_eq!(of_baseline, 2);
        let schedule = BisectionSchedule::new(&plan, &trials, &BTreeSet::new());
        assert_eq!((schedule.progress().usable, schedule.progress().invalid), (0, 1));
    }
}
