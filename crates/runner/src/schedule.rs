//! Choice of the next trials: a pure function of the plan and of the trials that have been run, so that a campaign
//! continues where it ended, however it ended.

use std::collections::{BTreeMap, BTreeSet};

use diagnose::Bisection;
use model::cell::Cell;
use model::machine::Acceleration;
use model::merit::Merit;
use model::paired::PairedFigure;
use model::plan::{Plan, PlannedTrial};
use model::record::{Run, Status, Trial};
use model::shuffle::Shuffler;
use model::units::Span;
use stats::PairedSequence;

use crate::block::BlockTrial;
use crate::host_context::HostContext;
use crate::repeats::{self, Pair};

/// One attempt at a planned trial.
#[derive(Clone, Debug, PartialEq)]
struct Attempt {
    cell: usize,
    repeat: u32,
    attempt: u32,
    position: u32,
    /// The figure that the cell is judged by; none if the trial is invalid, or does not have it.
    figure: Option<f64>,
    /// Whether the trial may be used.
    usable: bool,
    /// Whether the user interrupted it: it then counts as not run.
    interrupted: bool,
    /// Whether an earlier command of the user made it: it then does not count towards `retries`.
    is_earlier: bool,
    /// Reason of an invalid trial; none for others.
    why: Option<String>,
}

/// The trial to run next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NextTrial {
    /// Its place in the plan.
    pub(crate) trial: PlannedTrial,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u32,
    /// Reason for a trial in addition to the plan; none for a planned trial.
    pub(crate) reason: Option<String>,
}

impl NextTrial {
    /// The trial of this run and cell, without results.
    pub(crate) fn head(&self, run: &Run, cell: &Cell) -> Trial {
        Trial {
            repeat: self.trial.repeat,
            attempt: self.attempt,
            position: self.trial.position,
            reason: self.reason.clone(),
            ..Trial::new(store::new_id(), run.clone(), cell.clone())
        }
    }
}

/// Progress of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Repeats of cells that have a usable trial.
    pub usable: usize,
    /// Repeats that have none after all attempts that one command allows; the next one tries them again.
    pub invalid: usize,
    /// Trials still to run on this host.
    pub remaining: usize,
    /// Trials that wait for another kernel or host.
    pub elsewhere: usize,
}

/// The trials of a run: those that have been run and those still to run.
pub(crate) trait Schedule {
    /// The next trials, one or both of a session; empty if nothing is left to run on this host.
    fn next(&self) -> Vec<NextTrial>;

    /// Adds a trial that has been run.
    fn record(&mut self, trial: &Trial);

    /// Progress of the campaign.
    fn progress(&self) -> Progress;

    /// The planned trials still to run on this host.
    fn remaining(&self) -> Vec<PlannedTrial>;

    /// The trials in addition to the plan that may still run on this host: all repeats of each cell.
    fn possible(&self) -> Vec<PlannedTrial>;

    /// The state of the comparison of a cell with its baseline; none unless trials are paired, and of a baseline.
    fn comparison(&self, cell: usize) -> Option<ComparisonState<'_>>;

    /// Whether the next trials have to wait for the server that is being built.
    fn waits_for_build(&self) -> bool {
        false
    }

    /// The cell whose server is to be built while trials of others run.
    fn next_build(&self) -> Option<usize> {
        None
    }

    /// Notes what the data set of each cell depends on, next to the campaign: cells of the same share it. None if unknown.
    fn set_data(&mut self, _: Vec<Option<String>>) {}

    /// Notes the cells whose servers have been built so, or could not be.
    fn set_built(&mut self, _: &BTreeSet<usize>) {}
}

/// The state of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonState<'a> {
    /// The baseline.
    pub a: &'a Cell,
    /// The other cell.
    pub b: &'a Cell,
    /// The figure that decides it, or keeps it open.
    pub figure: PairedFigure,
    /// Its sessions so far.
    pub sequence: PairedSequence,
    /// Pairs of its next session.
    pub pairs: u32,
    /// Time until it is decided, if mean and spread stay as they are; zero if it is, none if unknown.
    pub time_left: Option<Span>,
    /// The bisection that it is a part of; none unless trials bisect.
    pub bisection: Option<&'a Bisection>,
}

/// Trials one after another: those that have been run and those still to run.
pub(crate) struct TrialSchedule<'a> {
    plan: &'a Plan,
    /// Those of the plan, or of a block of it.
    planned: Vec<PlannedTrial>,
    /// Reasons for those in addition to the plan, by position.
    reasons: BTreeMap<u32, String>,
    /// Whether the plan may have more repeats; not in a block, which others add.
    adds_repeats: bool,
    host: &'a HostContext,
    /// Attempts in their order, by cell and repeat.
    attempts: BTreeMap<(usize, u32), Vec<Attempt>>,
}

impl<'a> TrialSchedule<'a> {
    /// The schedule after `trials`, those of the run that are in the store. `earlier` has the ids of those that earlier
    /// commands of the user ran: each command has all attempts. Trials of cells that are not in the plan are ignored.
    pub(crate) fn new(
        plan: &'a Plan,
        host: &'a HostContext,
        trials: &[Trial],
        earlier: &BTreeSet<String>,
    ) -> Self {
        let mut schedule = Self {
            plan,
            planned: plan.trials.clone(),
            reasons: BTreeMap::new(),
            adds_repeats: true,
            host,
            attempts: BTreeMap::new(),
        };
        for trial in trials {
            schedule.add(trial, earlier.contains(&trial.id));
        }
        schedule
    }

    /// The same for some trials of the campaign.
    pub(crate) fn of_block(self, trials: &[BlockTrial]) -> Self {
        let reasons = trials.iter().filter_map(|trial| Some((trial.position, trial.reason.clone()?)));
        Self {
            planned: trials.iter().map(BlockTrial::planned).collect(),
            reasons: reasons.collect(),
            adds_repeats: false,
            ..self
        }
    }

    fn add(&mut self, trial: &Trial, is_earlier: bool) {
        let Some(cell) = self.plan.cells.iter().position(|cell| trial.cell == *cell) else { return };
        let invalid = trial.validity.findings.iter().find(|finding| finding.status == Status::Invalid);
        let is_usable = trial.validity.status != Status::Invalid;
        self.attempts.entry((cell, trial.repeat)).or_default().push(Attempt {
            cell,
            repeat: trial.repeat,
            attempt: trial.attempt,
            position: trial.position,
            figure: trial
                .summary
                .as_ref()
                .filter(|_| is_usable)
                .and_then(|summary| Merit::of(&trial.cell).value(summary)),
            usable: is_usable && trial.summary.is_some(),
            interrupted: trial.validity.findings.iter().any(|finding| finding.gate == diagnose::INTERRUPTED),
            is_earlier,
            why: invalid.map(|finding| format!("{}: {}", finding.gate, finding.evidence)),
        });
    }

    /// The first planned trial that has not been run.
    fn planned(&self) -> Option<NextTrial> {
        let not_run = |trial: &&PlannedTrial| {
            self.host.runs(self.plan.cell(trial))
                && self.attempts_at(trial.cell, trial.repeat).all(|attempt| attempt.interrupted)
        };
        let trial = *self.planned.iter().find(not_run)?;
        let reason = self.reasons.get(&trial.position).cloned();
        Some(NextTrial { trial, attempt: self.next_attempt(trial.cell, trial.repeat), reason })
    }

    /// The next attempt at the first trial that has only invalid ones, if another is allowed.
    fn retry(&self) -> Option<NextTrial> {
        let mut failed: Vec<&Attempt> = self
            .all()
            .filter(|attempt| self.is_open(attempt) && self.host.runs(&self.plan.cells[attempt.cell]))
            .collect();
        failed.sort_by_key(|attempt| (attempt.position, attempt.attempt));
        let last = failed.iter().rfind(|attempt| attempt.position == failed[0].position)?;
        let trial = PlannedTrial { position: last.position, cell: last.cell, repeat: last.repeat };
        let attempt = self.next_attempt(last.cell, last.repeat);
        let why = last.why.as_deref().unwrap_or("invalid");
        Some(NextTrial {
            trial,
            attempt,
            reason: Some(format!("attempt {} was invalid: {why}", last.attempt)),
        })
    }

    /// Whether the repeat of an attempt has no usable trial yet, and more attempts are allowed.
    fn is_open(&self, attempt: &Attempt) -> bool {
        let counts = |attempt: &&Attempt| !attempt.interrupted && !attempt.is_earlier;
        let failures = self.attempts_at(attempt.cell, attempt.repeat).filter(counts).count();
        let usable = self.attempts_at(attempt.cell, attempt.repeat).any(|attempt| attempt.usable);
        !usable && failures <= self.plan.run.retries as usize
    }

    /// The trials in addition to the plan that the results so far call for, with the reason for each. They run in blocks too: the
    /// cells with the fewest repeats, in a shuffled order.
    pub(crate) fn extra_repeats(&self) -> Vec<(PlannedTrial, String)> {
        let candidates = self.cells_to_repeat();
        let Some(fewest) = candidates.iter().map(|(cell, _)| self.repeats(*cell)).min() else {
            return Vec::new();
        };
        let mut order: Vec<usize> = (0..self.plan.cells.len()).collect();
        Shuffler::new(self.plan.run.seed.wrapping_add(u64::from(fewest))).shuffle(&mut order);
        let last = self.all().map(|attempt| attempt.position).max().unwrap_or(0);
        let first = last.max(self.plan.trials.len() as u32) + 1;
        let cells = order
            .into_iter()
            .filter(|cell| self.repeats(*cell) == fewest)
            .filter_map(|cell| candidates.iter().find(|(candidate, _)| *candidate == cell));
        let trial = |(position, (cell, reason)): (u32, &(usize, String))| {
            (PlannedTrial { position, cell: *cell, repeat: fewest + 1 }, reason.clone())
        };
        (first..).zip(cells).map(trial).collect()
    }

    /// The next of these.
    fn extra_repeat(&self) -> Option<NextTrial> {
        let (trial, reason) = self.extra_repeats().into_iter().next()?;
        Some(NextTrial { trial, attempt: 1, reason: Some(reason) })
    }

    /// The cells that need another repeat, each with the reason.
    fn cells_to_repeat(&self) -> Vec<(usize, String)> {
        let run = &self.plan.run;
        if run.repeats.min == run.repeats.max || !self.adds_repeats {
            return Vec::new();
        }
        let open = self.open_pairs();
        let cells = (0..self.plan.cells.len())
            .filter(|cell| self.repeats(*cell) < run.repeats.max && self.host.runs(&self.plan.cells[*cell]));
        cells
            .filter_map(|cell| {
                let figures: Vec<f64> = self.results(cell).into_iter().map(|(_, figure)| figure).collect();
                let reason =
                    repeats::reason_for_cell(&figures, self.spread(cell), &run.repeats).or_else(|| {
                        let (a, b) = open.iter().find(|(a, b)| [*a, *b].contains(&cell))?;
                        let other = if *a == cell { *b } else { *a };
                        let against = run.compare?.level(&self.plan.cells[other]);
                        Some(repeats::reason_for_pair(figures.len(), &against, run))
                    });
                Some((cell, reason?))
            })
            .collect()
    }

    /// The comparisons that are not decided yet.
    fn open_pairs(&self) -> Vec<(usize, usize)> {
        let cells = &self.plan.cells;
        let pairs = self.plan.comparisons();
        // Only complete blocks are looked at: one that has begun is completed.
        let results: Vec<[Vec<(u32, f64)>; 2]> = pairs
            .iter()
            .map(|&(a, b)| {
                let last = self.repeats(a).min(self.repeats(b));
                [a, b].map(|cell| self.results(cell).into_iter().filter(|(of, _)| *of <= last).collect())
            })
            .collect();
        let is_counted = |cell: usize| cells[cell].acceleration == Acceleration::Icount;
        let compared: Vec<Pair<'_>> = pairs
            .iter()
            .zip(&results)
            .map(|(&(a, b), [baseline, variant])| Pair {
                baseline,
                variant,
                spread: self.spread(a),
                is_counted: is_counted(a) && is_counted(b),
            })
            .collect();
        let decided = repeats::decided(&compared, &self.plan.run);
        pairs.into_iter().zip(decided).filter(|(_, is_decided)| !is_decided).map(|(pair, _)| pair).collect()
    }

    /// The planned trials still to run on any host, each as its next attempt.
    pub(crate) fn open(&self) -> Vec<NextTrial> {
        let is_open = |trial: &&PlannedTrial| {
            self.attempts_at(trial.cell, trial.repeat)
                .all(|attempt| attempt.interrupted || self.is_open(attempt))
        };
        let next = |trial: &PlannedTrial| {
            let attempt = self.next_attempt(trial.cell, trial.repeat);
            NextTrial { trial: *trial, attempt, reason: None }
        };
        self.planned.iter().filter(is_open).map(next).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.values().flatten()
    }

    fn attempts_at(&self, cell: usize, repeat: u32) -> impl Iterator<Item = &Attempt> {
        self.attempts.get(&(cell, repeat)).into_iter().flatten()
    }

    fn next_attempt(&self, cell: usize, repeat: u32) -> u32 {
        self.attempts_at(cell, repeat).map(|attempt| attempt.attempt).max().unwrap_or(0) + 1
    }

    /// Number of a cell's repeats, planned or run.
    fn repeats(&self, cell: usize) -> u32 {
        let last =
            self.attempts.range((cell, 0)..=(cell, u32::MAX)).next_back().map(|((_, repeat), _)| *repeat);
        last.unwrap_or(0).max(self.plan.run.repeats.min)
    }

    /// The figures of a cell's usable trials, with the number of the repeat.
    fn results(&self, cell: usize) -> Vec<(u32, f64)> {
        let of_cell = self.attempts.range((cell, 0)..=(cell, u32::MAX));
        let usable = |attempt: &Attempt| Some((attempt.repeat, attempt.figure?));
        of_cell.flat_map(|(_, attempts)| attempts.iter().filter_map(usable)).collect()
    }

    /// The figure that a cell is judged by.
    fn merit(&self, cell: usize) -> Merit {
        Merit::of(&self.plan.cells[cell].clone().into())
    }

    /// The spreads at which a cell's figures are noisy and wide.
    fn spread(&self, cell: usize) -> stats::Spread {
        diagnose::spread(self.merit(cell))
    }
}

impl Schedule for TrialSchedule<'_> {
    fn next(&self) -> Vec<NextTrial> {
        self.planned().or_else(|| self.retry()).or_else(|| self.extra_repeat()).into_iter().collect()
    }

    fn record(&mut self, trial: &Trial) {
        self.add(trial, false);
    }

    fn progress(&self) -> Progress {
        let mut progress = Progress::default();
        let mut repeats: Vec<(usize, u32)> =
            self.planned.iter().map(|trial| (trial.cell, trial.repeat)).collect();
        repeats.extend(self.attempts.keys());
        repeats.sort_unstable();
        repeats.dedup();
        for (cell, repeat) in repeats {
            let mut attempts =
                self.attempts_at(cell, repeat).filter(|attempt| !attempt.interrupted).peekable();
            let open = attempts.peek().is_none_or(|attempt| self.is_open(attempt));
            if attempts.any(|attempt| attempt.usable) {
                progress.usable += 1;
            } else if !open {
                progress.invalid += 1;
            } else if self.host.runs(&self.plan.cells[cell]) {
                progress.remaining += 1;
            } else {
                progress.elsewhere += 1;
            }
        }
        progress
    }

    fn remaining(&self) -> Vec<PlannedTrial> {
        let open = self.open().into_iter().map(|next| next.trial);
        open.filter(|trial| self.host.runs(self.plan.cell(trial))).collect()
    }

    fn possible(&self) -> Vec<PlannedTrial> {
        if !self.adds_repeats {
            return Vec::new();
        }
        let cells = (0..self.plan.cells.len()).filter(|cell| self.host.runs(&self.plan.cells[*cell]));
        let repeats =
            |cell| (self.repeats(cell) + 1..=self.plan.run.repeats.max).map(move |repeat| (cell, repeat));
        let first = self.plan.trials.len() as u32 + 1;
        (first..)
            .zip(cells.flat_map(repeats))
            .map(|(position, (cell, repeat))| PlannedTrial { position, cell, repeat })
            .collect()
    }

    fn comparison(&self, _: usize) -> Option<ComparisonState<'_>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use model::factor::Factor;
    use model::record::{Finding, Summary, Validity};
    use model::spec::Campaign;

    use super::*;
    use crate::host_context::{BootedFor, is_release};

    fn plan(factors: &str, run: &str) -> Plan {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [1]\n{factors}[run]\nseed = 3\n{run}"
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    fn host() -> HostContext {
        HostContext {
            kernel: "6.1.0-37-amd64".to_owned(),
            hostname: "here".to_owned(),
            ..HostContext::default()
        }
    }

    /// A trial that ran: with its throughput, or invalid because of a gate.
    fn trial(plan: &Plan, next: &NextTrial, outcome: Result<f64, &str>) -> Trial {
        let status = if outcome.is_ok() { Status::Valid } else { Status::Invalid };
        let findings = outcome.err().map(|gate| Finding {
            gate: gate.to_owned(),
            status,
            evidence: "why".to_owned(),
            threshold: None,
            advice: None,
            processes: Vec::new(),
        });
        let now = jiff::Timestamp::UNIX_EPOCH;
        Trial {
            started: Some(now),
            ended: Some(now),
            validity: Validity { status, findings: findings.into_iter().collect() },
            summary: Some(Summary {
                worst_second_tps: None,
                longest_stall_us: None,
                instructions_per_transaction: None,
                window_us: Some(1_000_000),
                transactions: Some(1),
                failed: Some(0),
                tps: outcome.unwrap_or(0.0),
                latency: None,
                service: None,
                background: Vec::new(),
                connect_us: Some(0),
                driver_cpu_us: Some(0),
                driver_busy_max: Some(0.0),
                driver_lag_max_us: Some(0.0),
                driver_engine: None,
                driver_engine_reason: None,
                statistics: None,
            }),
            ..next.head(&Run::default(), plan.cell(&next.trial))
        }
    }

    /// The schedule of the command that ran these trials.
    fn schedule<'a>(plan: &'a Plan, host: &'a HostContext, trials: &[Trial]) -> TrialSchedule<'a> {
        TrialSchedule::new(plan, host, trials, &BTreeSet::new())
    }

    /// Runs a plan to its end, with a new schedule for each trial, as after a crash.
    fn run(
        plan: &Plan,
        host: &HostContext,
        mut outcome: impl FnMut(&NextTrial, usize) -> Result<f64, &'static str>,
    ) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        while let Some(next) = schedule(plan, host, &trials).next().pop() {
            assert!(trials.len() < 1000, "it never ends");
            let result = outcome(&next, trials.len());
            trials.push(trial(plan, &next, result));
        }
        trials
    }

    #[test]
    fn planned_trials_come_in_their_order_once() {
        let plan = plan("", "repeats = 3\n");
        let trials = run(&plan, &host(), |_, n| Ok(100.0 + n as f64 / 100.0));
        let positions: Vec<u32> = trials.iter().map(|trial| trial.position).collect();
        assert_eq!(positions, [1, 2, 3, 4, 5, 6]);
        assert!(trials.iter().all(|trial| trial.reason.is_none() && trial.attempt == 1));
        let progress = schedule(&plan, &host(), &trials).progress();
        assert_eq!(progress, Progress { usable: 6, ..Progress::default() });
    }

    /// The throughput of an open loop is the schedule's: its runs agree however much latency spreads.
    #[test]
    fn repeats_at_a_rate_follow_latency() {
        let plan = plan("rate = [100]\n", "repeats = { min = 5, max = 8 }\n");
        let host = host();
        let repeats = |spread: f64| {
            let mut trials: Vec<Trial> = Vec::new();
            while let Some(next) = schedule(&plan, &host, &trials).next().pop() {
                assert!(trials.len() < 100, "it never ends");
                let mut ended = trial(&plan, &next, Ok(100.0));
                let p99_us = 7000.0 * (1.0 + spread * f64::from(next.trial.repeat % 3));
                let latency = model::record::Latency { p99_us: Some(p99_us), ..Default::default() };
                ended.summary.as_mut().unwrap().latency = Some(latency);
                trials.push(ended);
            }
            trials.len()
        };
        // A spread of 8% would be wide for a throughput. Six blocks are compared by their differences.
        assert_eq!(repeats(0.1), 12);
        assert_eq!(repeats(0.5), 16);
    }

    #[test]
    fn invalid_trials_are_run_again_after_the_others_up_to_a_limit() {
        let plan = plan("", "repeats = 2\nretries = 2\n");
        let trials = run(
            &plan,
            &host(),
            |next, _| if next.trial.position == 2 { Err("client-died") } else { Ok(9.0) },
        );
        let run: Vec<(u32, u32)> = trials.iter().map(|trial| (trial.position, trial.attempt)).collect();
        assert_eq!(run, [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (2, 3)]);
        assert_eq!(trials[5].reason.as_deref(), Some("attempt 2 was invalid: client-died: why"));
        let progress = schedule(&plan, &host(), &trials).progress();
        assert_eq!(progress, Progress { usable: 3, invalid: 1, ..Progress::default() });
    }

    #[test]
    fn each_command_of_the_user_has_all_attempts() {
        let plan = plan("", "repeats = 1\nretries = 1\n");
        let outcome =
            |next: &NextTrial, _| if next.trial.position == 2 { Err("load-failed") } else { Ok(9.0) };
        let mut trials = run(&plan, &host(), outcome);
        let attempts =
            |trials: &[Trial]| trials.iter().map(|trial| (trial.position, trial.attempt)).collect::<Vec<_>>();
        assert_eq!(attempts(&trials), [(1, 1), (2, 1), (2, 2)]);
        let earlier: BTreeSet<String> = trials.iter().map(|trial| trial.id.clone()).collect();
        let host = host();
        let mut resumed = TrialSchedule::new(&plan, &host, &trials, &earlier);
        assert_eq!(resumed.progress(), Progress { usable: 1, remaining: 1, ..Progress::default() });
        assert_eq!(resumed.open().len(), 1);
        while let Some(next) = resumed.next().pop() {
            assert!(trials.len() < 10, "it never ends");
            assert_eq!(
                next.reason.as_deref(),
                Some(&*format!("attempt {} was invalid: load-failed: why", next.attempt - 1))
            );
            let ended = trial(&plan, &next, Err("load-failed"));
            resumed.record(&ended);
            trials.push(ended);
        }
        assert_eq!(attempts(&trials), [(1, 1), (2, 1), (2, 2), (2, 3), (2, 4)], "the numbers go on");
        assert_eq!(resumed.progress(), Progress { usable: 1, invalid: 1, ..Progress::default() });
    }

    #[test]
    fn interrupted_trials_count_as_not_run() {
        let plan = plan("", "repeats = 1\nretries = 0\n");
        let mut ended = false;
        let trials = run(&plan, &host(), |_, _| match std::mem::replace(&mut ended, true) {
            false => Err(diagnose::INTERRUPTED),
            true => Ok(9.0),
        });
        let run: Vec<(u32, u32)> = trials.iter().map(|trial| (trial.position, trial.attempt)).collect();
        assert_eq!(run, [(1, 1), (1, 2), (2, 1)]);
    }

    #[test]
    fn trials_of_other_kernels_and_hosts_wait() {
        let booted = "kernel = ['6.1', '6.12']\nacceleration = ['none']\n";
        let plan = plan(booted, "repeats = 1\n");
        let trials = run(&plan, &host(), |_, _| Ok(9.0));
        assert!(trials.iter().all(|trial| Factor::Kernel.level(&trial.cell) == "6.1"));
        let progress = schedule(&plan, &host(), &trials).progress();
        assert_eq!((progress.usable, progress.elsewhere), (2, 2));
        let other = HostContext { kernel: "6.12.9".to_owned(), ..host() };
        assert_eq!(schedule(&plan, &other, &trials).next()[0].trial.cell % 2, 1);
        let virtual_machines = super::tests::plan("kernel = ['host', '5.10']\n", "repeats = 1\n");
        assert!(virtual_machines.cells.iter().all(|cell| host().runs(cell)));
        assert!(!is_release("6.12.9", "6.1") && is_release("6.1.0-37", "6.1") && is_release("6.1", "6.1"));
    }

    #[test]
    fn kernel_args_and_sysctl_match_those_of_the_boot() {
        let factors = "kernel = ['6.1']\nacceleration = ['none']\nkernel_args = ['none', 'mitigations=off']\n\
                       sysctl = ['default', 'calm']\n[sysctls.calm]\n'vm.swappiness' = 1\n";
        let plan = plan(factors, "repeats = 1\n");
        let levels = |host: &HostContext| -> Vec<(&str, &str)> {
            let cells = plan.cells.iter().filter(|cell| cell.server == "18" && host.runs(cell));
            cells.map(|cell| (cell.kernel_args.as_str(), cell.sysctl.name.as_str())).collect()
        };
        assert_eq!(levels(&host()), [("", "default")]);
        let by_hand = HostContext { command_line: "ro mitigations=off".to_owned(), ..host() };
        assert_eq!(levels(&by_hand), [("", "default"), ("mitigations=off", "default")]);
        let booted = BootedFor { kernel_args: "mitigations=off".to_owned(), sysctl: "calm".to_owned() };
        assert_eq!(levels(&HostContext { booted: Some(booted), ..by_hand }), [("mitigations=off", "calm")]);
    }

    #[test]
    fn an_unstable_cell_gets_more_runs_in_blocks_with_a_reason() {
        let plan = plan("", "repeats = { min = 5, max = 20 }\n");
        // One server is steady, the other has two modes.
        let trials = run(&plan, &host(), |next, n| {
            Ok(if next.trial.cell == 0 { 100.0 } else { [100.0, 150.0][n % 2] + n as f64 / 1000.0 })
        });
        let runs_of =
            |server: &str| trials.iter().filter(|trial| Factor::Server.level(&trial.cell) == server).count();
        assert_eq!((runs_of("17"), runs_of("18")), (20, 20), "they can't be told apart");
        let more: Vec<&Trial> = trials.iter().filter(|trial| trial.reason.is_some()).collect();
        assert_eq!((more[0].position, more[0].repeat), (11, 6));
        assert!(
            more.iter().any(|trial| trial.reason.as_ref().unwrap().contains("unstable")),
            "{:?}",
            more[0].reason
        );
    }

    #[test]
    fn a_comparison_gets_blocks_until_it_is_decided() {
        let plan = plan("", "repeats = { min = 3, max = 20 }\n");
        let noise = |block: u32| [0.0, 2.0, -2.0, 1.0, -1.0][block as usize % 5];
        let with = |change: f64| {
            run(&plan, &host(), |next, n| {
                let own = (n * 7 % 5) as f64 / 10.0;
                let level = if next.trial.cell == 0 { 100.0 } else { change };
                Ok(level + noise(next.trial.repeat) + own)
            })
        };
        // Three runs a side can't decide, whatever they are. Blocks differ by more than the sides.
        for (change, most) in [(100.0, 9), (95.0, 10), (50.0, 7)] {
            let trials = with(change);
            let blocks = trials.len() / 2;
            assert!(
                blocks > 3 && blocks <= most && trials.len() % 2 == 0,
                "{change}: {} trials",
                trials.len()
            );
            let reason = trials[6].reason.as_deref().unwrap();
            assert!(reason.contains("nor one within 5.0 % is certain after 3 runs: up to 20"), "{reason}");
        }
        // Neither a change nor equivalence: all that may run.
        let open = run(&plan, &host(), |next, n| {
            Ok(if next.trial.cell == 0 { 100.0 } else { 98.0 } + (n * n % 11) as f64 * 2.0)
        });
        assert_eq!(open.len(), 40);
    }

    #[test]
    fn a_decided_comparison_of_a_matrix_gets_no_more_runs() {
        let plan = plan("scale = [1, 2]\n", "repeats = { min = 5, max = 12 }\n");
        let trials = run(&plan, &host(), |next, n| {
            let cell = plan.cell(&next.trial);
            let halved = cell.scale == 2 && cell.server == "18";
            let noise = if cell.scale == 2 { 0.1 } else { (n * n % 11) as f64 * 3.0 };
            Ok(if halved { 50.0 } else { 100.0 } + noise + n as f64 / 1e4)
        });
        let of =
            |scale: &str| trials.iter().filter(|trial| Factor::Scale.level(&trial.cell) == scale).count();
        assert!(of("1") == 24 && of("2") < 16, "{} {}", of("1"), of("2"));
    }

    #[test]
    fn runs_are_added_until_the_mean_is_precise_enough() {
        let plan = plan("", "repeats = { min = 3, max = 12, until_ci = '1%' }\ncompare = 'server'\n");
        let trials = run(&plan, &host(), |next, _| Ok(100.0 + f64::from(next.trial.repeat % 2) * 2.0));
        let of_one = trials.iter().filter(|trial| Factor::Server.level(&trial.cell) == "17").count();
        assert!((8..=12).contains(&of_one), "{of_one}");
        assert!(trials.last().unwrap().reason.as_ref().unwrap().contains("± 1.0 %"));
    }
}
