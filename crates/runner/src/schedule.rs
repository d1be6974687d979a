//! Which trial is next: a pure function of the plan and of what has been run, so that a campaign goes on after any end
//! where it was.

use std::collections::BTreeMap;

use model::cell::Cell;
use model::factor::Factor;
use model::machine::SysctlVariant;
use model::plan::{Plan, PlannedTrial};
use model::record::{Run, Status, Trial};
use model::shuffle::Shuffler;

use crate::repeats;

/// A trial of the plan that has been run, once.
#[derive(Clone, Debug, PartialEq)]
struct Done {
    cell: usize,
    repeat: u32,
    attempt: u32,
    position: u32,
    /// Transactions a second; none where it may not be used.
    tps: Option<f64>,
    /// Whether the user ended it: it then counts as not run.
    interrupted: bool,
    /// Why it may not be used.
    why: Option<String>,
}

/// The trial to be run next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Next {
    /// Which.
    pub(crate) trial: PlannedTrial,
    /// Which try at it, from 1.
    pub(crate) attempt: u32,
    /// Why it is run beyond what was planned; none where it was planned.
    pub(crate) reason: Option<String>,
}

impl Next {
    /// The head of this trial, of the campaign's run and with its cell, of which nothing is known yet.
    pub(crate) fn head(&self, run: &Run, cell: &Cell) -> Trial {
        Trial {
            repeat: self.trial.repeat,
            attempt: self.attempt,
            position: self.trial.position,
            reason: self.reason.clone(),
            ..Trial::of(store::new_id(), run.clone(), cell.clone())
        }
    }
}

/// Where pgdyno is: what cells can be run here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// Release of the running kernel, such as `6.1.0-37-amd64`.
    pub kernel: String,
    /// What it was booted with.
    pub command_line: String,
    /// What it was booted for, where a campaign boots its kernels by itself.
    pub booted: Option<BootedFor>,
    /// Host name.
    pub host: String,
}

/// The levels that a kernel was booted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootedFor {
    /// Of `kernel_args`.
    pub kernel_args: String,
    /// Of `sysctl`: they are set.
    pub sysctl: String,
}

impl Here {
    /// Whether a cell can be run here: its kernel and its host, where it names them, are these. A virtual machine boots any
    /// kernel.
    pub fn runs(&self, cell: &Cell) -> bool {
        let is_kernel = |label: &str| {
            cell.acceleration.is_virtual() || is_release(&self.kernel, label) && self.is_booted_for(cell)
        };
        cell.kernel.as_deref().is_none_or(is_kernel) && self.is_host(cell)
    }

    /// Whether a cell is to be run on this host.
    pub fn is_host(&self, cell: &Cell) -> bool {
        cell.host.as_deref().is_none_or(|label| self.host == label)
    }

    /// Whoever boots a kernel by hand gives it its arguments; nobody sets parameters then.
    fn is_booted_for(&self, cell: &Cell) -> bool {
        match &self.booted {
            Some(booted) => booted.kernel_args == cell.kernel_args && booted.sysctl == cell.sysctl.name,
            None => {
                let has = |arg| self.command_line.split_whitespace().any(|there| there == arg);
                cell.kernel_args.split_whitespace().all(has) && cell.sysctl == SysctlVariant::none()
            }
        }
    }
}

/// Whether a release is of the series that a label names: `6.1` is that of `6.1.0-37-amd64`, and not of `6.12.9`.
pub fn is_release(release: &str, label: &str) -> bool {
    release.strip_prefix(label).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Trials that may be used, one for each repeat of a cell.
    pub usable: usize,
    /// Repeats that have been tried, as often as is allowed, and of which no trial may be used.
    pub invalid: usize,
    /// Trials that are still to be run here.
    pub ahead: usize,
    /// Trials that wait for another kernel or host.
    pub elsewhere: usize,
}

/// What has been run of a plan, and what is to be run.
pub(crate) struct Schedule<'a> {
    plan: &'a Plan,
    here: &'a Here,
    /// By cell and repeat, the tries in their order.
    done: BTreeMap<(usize, u32), Vec<Done>>,
}

impl<'a> Schedule<'a> {
    /// `trials` are those of the run that are in the store. Those of cells that the plan does not have count for nothing.
    pub(crate) fn new<'t>(
        plan: &'a Plan,
        here: &'a Here,
        trials: impl IntoIterator<Item = &'t Trial>,
    ) -> Self {
        let mut schedule = Self { plan, here, done: BTreeMap::new() };
        for trial in trials {
            schedule.note(trial);
        }
        schedule
    }

    /// A trial has been run.
    pub(crate) fn note(&mut self, trial: &Trial) {
        let Some(cell) = self.plan.cells.iter().position(|cell| trial.cell == *cell) else { return };
        let invalid = trial.validity.findings.iter().find(|finding| finding.status == Status::Invalid);
        let is_usable = trial.validity.status != Status::Invalid;
        self.done.entry((cell, trial.repeat)).or_default().push(Done {
            cell,
            repeat: trial.repeat,
            attempt: trial.attempt,
            position: trial.position,
            tps: trial.summary.as_ref().filter(|_| is_usable).map(|summary| summary.tps),
            interrupted: trial.validity.findings.iter().any(|finding| finding.gate == diagnose::INTERRUPTED),
            why: invalid.map(|finding| format!("{}: {}", finding.gate, finding.evidence)),
        });
    }

    /// The next trial; none where everything is done that can be done here.
    pub(crate) fn next(&self) -> Option<Next> {
        self.planned().or_else(|| self.again()).or_else(|| self.further())
    }

    /// The first planned trial that has not been run.
    fn planned(&self) -> Option<Next> {
        let not_run = |trial: &&PlannedTrial| {
            self.here.runs(self.plan.cell(trial))
                && self.tries(trial.cell, trial.repeat).all(|done| done.interrupted)
        };
        let trial = *self.plan.trials.iter().find(not_run)?;
        Some(Next { trial, attempt: self.attempt(trial.cell, trial.repeat), reason: None })
    }

    /// The first trial all of whose tries are invalid, where another one is allowed.
    fn again(&self) -> Option<Next> {
        let mut failed: Vec<&Done> = self
            .all()
            .filter(|done| self.is_open(done) && self.here.runs(&self.plan.cells[done.cell]))
            .collect();
        failed.sort_by_key(|done| (done.position, done.attempt));
        let last = failed.iter().rfind(|done| done.position == failed[0].position)?;
        let trial = PlannedTrial { position: last.position, cell: last.cell, repeat: last.repeat };
        let attempt = self.attempt(last.cell, last.repeat);
        let why = last.why.as_deref().unwrap_or("invalid");
        Some(Next { trial, attempt, reason: Some(format!("attempt {} was invalid: {why}", last.attempt)) })
    }

    /// Whether a try left its repeat without a usable trial, and others are allowed.
    fn is_open(&self, done: &Done) -> bool {
        let failures = self.tries(done.cell, done.repeat).filter(|done| !done.interrupted).count();
        let usable = self.tries(done.cell, done.repeat).any(|done| done.tps.is_some());
        !usable && failures <= self.plan.run.retries as usize
    }

    /// A trial beyond those that were planned, where what has been measured asks for it. They come in blocks too: the
    /// cells with the fewest repeats first, in an order of their own.
    fn further(&self) -> Option<Next> {
        let asking = self.asking();
        let fewest = asking.iter().map(|(cell, _)| self.repeats(*cell)).min()?;
        let mut order: Vec<usize> = (0..self.plan.cells.len()).collect();
        Shuffler::new(self.plan.run.seed.wrapping_add(u64::from(fewest))).shuffle(&mut order);
        let (cell, reason) = order
            .iter()
            .filter(|cell| self.repeats(**cell) == fewest)
            .find_map(|cell| asking.iter().find(|(asking, _)| asking == cell))?;
        let last = self.all().map(|done| done.position).max().unwrap_or(0);
        let position = last.max(self.plan.trials.len() as u32) + 1;
        let trial = PlannedTrial { position, cell: *cell, repeat: fewest + 1 };
        Some(Next { trial, attempt: 1, reason: Some(reason.clone()) })
    }

    /// The cells that want another trial, each with the reason.
    fn asking(&self) -> Vec<(usize, String)> {
        let repeats = &self.plan.run.repeats;
        let cells = (0..self.plan.cells.len())
            .filter(|cell| self.repeats(*cell) < repeats.max && self.here.runs(&self.plan.cells[*cell]));
        cells
            .filter_map(|cell| {
                let tps = self.tps(cell);
                let wanted = repeats::of_cell(&tps, repeats).or_else(|| {
                    self.rivals(cell).find_map(|rival| {
                        let against = self.plan.run.compare?.level(&self.plan.cells[rival]);
                        repeats::of_pair(&tps, &self.tps(rival), &against, repeats)
                    })
                });
                Some((cell, wanted?))
            })
            .collect()
    }

    /// The cells that a cell is compared with: those with the baseline's level of the compared factor, or, for a cell
    /// that has it, all others, in all else alike.
    fn rivals(&self, cell: usize) -> impl Iterator<Item = usize> {
        let compare = self.plan.run.compare;
        let baseline = compare.zip(self.plan.cells.first()).map(|(factor, first)| factor.level(first));
        let cells = &self.plan.cells;
        (0..cells.len()).filter(move |&other| {
            let (Some(compare), Some(baseline)) = (compare, &baseline) else { return false };
            let pair = [&cells[cell], &cells[other]];
            Factor::varied(pair) == [compare] && pair.iter().any(|cell| compare.level(cell) == *baseline)
        })
    }

    /// How far it is.
    pub(crate) fn standing(&self) -> Standing {
        let mut standing = Standing::default();
        let mut repeats: Vec<(usize, u32)> =
            self.plan.trials.iter().map(|trial| (trial.cell, trial.repeat)).collect();
        repeats.extend(self.done.keys());
        repeats.sort_unstable();
        repeats.dedup();
        for (cell, repeat) in repeats {
            let mut tries = self.tries(cell, repeat).filter(|done| !done.interrupted).peekable();
            let open = tries.peek().is_none_or(|done| self.is_open(done));
            if tries.any(|done| done.tps.is_some()) {
                standing.usable += 1;
            } else if !open {
                standing.invalid += 1;
            } else if self.here.runs(&self.plan.cells[cell]) {
                standing.ahead += 1;
            } else {
                standing.elsewhere += 1;
            }
        }
        standing
    }

    /// The planned trials that are still to be run here.
    pub(crate) fn ahead(&self) -> Vec<PlannedTrial> {
        let open = self.open().into_iter().map(|next| next.trial);
        open.filter(|trial| self.here.runs(self.plan.cell(trial))).collect()
    }

    /// The planned trials that are still to be run, here or elsewhere, each as its next try.
    pub(crate) fn open(&self) -> Vec<Next> {
        let is_open = |trial: &&PlannedTrial| {
            self.tries(trial.cell, trial.repeat).all(|done| done.interrupted || self.is_open(done))
        };
        let next = |trial: &PlannedTrial| {
            let attempt = self.attempt(trial.cell, trial.repeat);
            Next { trial: *trial, attempt, reason: None }
        };
        self.plan.trials.iter().filter(is_open).map(next).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Done> {
        self.done.values().flatten()
    }

    fn tries(&self, cell: usize, repeat: u32) -> impl Iterator<Item = &Done> {
        self.done.get(&(cell, repeat)).into_iter().flatten()
    }

    fn attempt(&self, cell: usize, repeat: u32) -> u32 {
        self.tries(cell, repeat).map(|done| done.attempt).max().unwrap_or(0) + 1
    }

    /// The repeats that a cell has, planned or run.
    fn repeats(&self, cell: usize) -> u32 {
        let last = self.done.range((cell, 0)..=(cell, u32::MAX)).next_back().map(|((_, repeat), _)| *repeat);
        last.unwrap_or(0).max(self.plan.run.repeats.min)
    }

    /// The usable results of a cell, by repeat.
    fn tps(&self, cell: usize) -> Vec<f64> {
        let of_cell = self.done.range((cell, 0)..=(cell, u32::MAX));
        of_cell.flat_map(|(_, tries)| tries.iter().filter_map(|done| done.tps)).collect()
    }
}

#[cfg(test)]
mod tests {
    use model::record::{Finding, Summary, Validity};
    use model::spec::Campaign;

    use super::*;

    fn plan(factors: &str, run: &str) -> Plan {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [1]\n{factors}[run]\nseed = 3\n{run}"
        );
        Plan::of(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    fn here() -> Here {
        Here { kernel: "6.1.0-37-amd64".to_owned(), host: "here".to_owned(), ..Here::default() }
    }

    /// What running a trial came to: a result, or the gate that made it invalid.
    fn trial(plan: &Plan, next: &Next, outcome: Result<f64, &str>) -> Trial {
        let status = if outcome.is_ok() { Status::Valid } else { Status::Invalid };
        let findings = outcome.err().map(|gate| Finding {
            gate: gate.to_owned(),
            status,
            evidence: "why".to_owned(),
            threshold: None,
            advice: None,
        });
        let now = jiff::Timestamp::UNIX_EPOCH;
        Trial {
            started: Some(now),
            ended: Some(now),
            validity: Validity { status, findings: findings.into_iter().collect() },
            summary: Some(Summary {
                instructions_per_transaction: None,
                window_us: Some(1_000_000),
                transactions: Some(1),
                failed: Some(0),
                tps: outcome.unwrap_or(0.0),
                latency: None,
                service: None,
                beside: Vec::new(),
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

    /// Runs a plan to its end, each time asking a schedule that knows only the trials, as after a crash.
    fn run(
        plan: &Plan,
        here: &Here,
        mut outcome: impl FnMut(&Next, usize) -> Result<f64, &'static str>,
    ) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        while let Some(next) = Schedule::new(plan, here, &trials).next() {
            assert!(trials.len() < 1000, "it never ends");
            let came_out = outcome(&next, trials.len());
            trials.push(trial(plan, &next, came_out));
        }
        trials
    }

    #[test]
    fn planned_trials_come_in_their_order_once() {
        let plan = plan("", "repeats = 3\n");
        let trials = run(&plan, &here(), |_, n| Ok(100.0 + n as f64 / 100.0));
        let positions: Vec<u32> = trials.iter().map(|trial| trial.position).collect();
        assert_eq!(positions, [1, 2, 3, 4, 5, 6]);
        assert!(trials.iter().all(|trial| trial.reason.is_none() && trial.attempt == 1));
        let standing = Schedule::new(&plan, &here(), &trials).standing();
        assert_eq!(standing, Standing { usable: 6, ..Standing::default() });
    }

    #[test]
    fn invalid_trials_are_run_again_after_the_others_up_to_a_limit() {
        let plan = plan("", "repeats = 2\nretries = 2\n");
        let trials = run(
            &plan,
            &here(),
            |next, _| if next.trial.position == 2 { Err("client-died") } else { Ok(9.0) },
        );
        let run: Vec<(u32, u32)> = trials.iter().map(|trial| (trial.position, trial.attempt)).collect();
        assert_eq!(run, [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (2, 3)]);
        assert_eq!(trials[5].reason.as_deref(), Some("attempt 2 was invalid: client-died: why"));
        let standing = Schedule::new(&plan, &here(), &trials).standing();
        assert_eq!(standing, Standing { usable: 3, invalid: 1, ..Standing::default() });
    }

    #[test]
    fn what_the_user_ended_counts_as_not_run() {
        let plan = plan("", "repeats = 1\nretries = 0\n");
        let mut ended = false;
        let trials = run(&plan, &here(), |_, _| match std::mem::replace(&mut ended, true) {
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
        let trials = run(&plan, &here(), |_, _| Ok(9.0));
        assert!(trials.iter().all(|trial| Factor::Kernel.level(&trial.cell) == "6.1"));
        let standing = Schedule::new(&plan, &here(), &trials).standing();
        assert_eq!((standing.usable, standing.elsewhere), (2, 2));
        let there = Here { kernel: "6.12.9".to_owned(), ..here() };
        assert_eq!(Schedule::new(&plan, &there, &trials).next().unwrap().trial.cell % 2, 1);
        let virtual_machines = super::tests::plan("kernel = ['host', '5.10']\n", "repeats = 1\n");
        assert!(virtual_machines.cells.iter().all(|cell| here().runs(cell)));
        assert!(!is_release("6.12.9", "6.1") && is_release("6.1.0-37", "6.1") && is_release("6.1", "6.1"));
    }

    #[test]
    fn arguments_are_those_that_a_kernel_was_booted_with_and_parameters_are_set_by_who_booted_it() {
        let factors = "kernel = ['6.1']\nacceleration = ['none']\nkernel_args = ['none', 'mitigations=off']\n\
                       sysctl = ['default', 'calm']\n[sysctls.calm]\n'vm.swappiness' = 1\n";
        let plan = plan(factors, "repeats = 1\n");
        let levels = |here: &Here| -> Vec<(&str, &str)> {
            let cells = plan.cells.iter().filter(|cell| cell.server == "18" && here.runs(cell));
            cells.map(|cell| (cell.kernel_args.as_str(), cell.sysctl.name.as_str())).collect()
        };
        assert_eq!(levels(&here()), [("", "default")]);
        let by_hand = Here { command_line: "ro mitigations=off".to_owned(), ..here() };
        assert_eq!(levels(&by_hand), [("", "default"), ("mitigations=off", "default")]);
        let booted = BootedFor { kernel_args: "mitigations=off".to_owned(), sysctl: "calm".to_owned() };
        assert_eq!(levels(&Here { booted: Some(booted), ..by_hand }), [("mitigations=off", "calm")]);
    }

    #[test]
    fn an_unstable_cell_gets_more_runs_in_blocks_and_says_why() {
        let plan = plan("", "repeats = { min = 5, max = 20 }\n");
        // One server is steady, the other has two modes.
        let trials = run(&plan, &here(), |next, n| {
            Ok(if next.trial.cell == 0 { 100.0 } else { [100.0, 150.0][n % 2] + n as f64 / 1000.0 })
        });
        let of =
            |server: &str| trials.iter().filter(|trial| Factor::Server.level(&trial.cell) == server).count();
        assert_eq!(of("18"), 15);
        let more: Vec<&Trial> = trials.iter().filter(|trial| trial.reason.is_some()).collect();
        assert_eq!((more[0].position, more[0].repeat), (11, 6));
        assert!(
            more.iter().any(|trial| trial.reason.as_ref().unwrap().contains("unstable")),
            "{:?}",
            more[0].reason
        );
    }

    #[test]
    fn a_difference_that_shows_gets_its_second_stage_on_both_sides() {
        let plan = plan("", "repeats = { min = 5, max = 20 }\n");
        let trials = run(&plan, &here(), |next, n| {
            Ok((if next.trial.cell == 0 { 100.0 } else { 104.0 }) + (n % 3) as f64 / 10.0)
        });
        assert_eq!(trials.len(), 20, "10 of each");
        assert_eq!(trials.iter().filter(|trial| trial.reason.is_some()).count(), 10);
        let reason = trials[10].reason.as_deref().unwrap();
        assert!(reason.contains("it may differ from 1"), "{reason}");
        let same = run(&plan, &here(), |_, n| Ok(100.0 + (n / 2 % 3) as f64 / 10.0));
        assert_eq!(same.len(), 10);
    }

    #[test]
    fn runs_are_added_until_the_mean_is_known_well_enough() {
        let plan = plan("", "repeats = { min = 3, max = 12, until_ci = '1%' }\ncompare = 'server'\n");
        let trials = run(&plan, &here(), |next, _| Ok(100.0 + f64::from(next.trial.repeat % 2) * 2.0));
        let of_one = trials.iter().filter(|trial| Factor::Server.level(&trial.cell) == "17").count();
        assert!((6..=12).contains(&of_one), "{of_one}");
        assert!(trials.last().unwrap().reason.as_ref().unwrap().contains("± 1.0 %"));
    }
}
