//! Blocks: the parts of a campaign that the machines of a fleet take. Trials that are compared with each other are in one
//! block, and so on one machine.

use std::collections::{BTreeMap, BTreeSet};

use model::cell::Cell;
use model::plan::{Order, Plan, PlannedTrial};
use model::record::{Trial, TrialRecord};
use model::units::Span;

pub use crate::block::{Block, BlockContent, BlockTrial, MoreBlocks, NextBlock};
use crate::host_context::FLEET;
use crate::observer::{Event, Observer};
use crate::schedule::{Progress, Schedule, TrialSchedule};
use crate::sessions::SessionSchedule;
use crate::trial;

/// The blocks of a campaign that are still to be measured after `trials`, those of its run in the store: the planned ones,
/// and, if there are none left, more repeats. `earlier` has the ids of those that earlier commands of the user ran.
pub fn open_blocks(plan: &Plan, trials: &[Trial], earlier: &BTreeSet<String>) -> Vec<Block> {
    match plan.run.order {
        Order::Paired => SessionSchedule::new(plan, trials, earlier)
            .open()
            .into_iter()
            .map(|of| Block { name: format!("comparison-{}", of + 1), content: BlockContent::Comparison(of) })
            .collect(),
        // One machine goes from one comparison to the next.
        Order::Bisect => Vec::new(),
        Order::Sequential | Order::RandomizedBlocks => {
            let schedule = TrialSchedule::new(plan, &FLEET, trials, earlier);
            let planned = schedule.open().into_iter().map(|next| (next.trial, None));
            let mut open: Vec<(PlannedTrial, Option<String>)> = planned.collect();
            if open.is_empty() {
                open = schedule
                    .extra_repeats()
                    .into_iter()
                    .map(|(trial, reason)| (trial, Some(reason)))
                    .collect();
            }
            of_trials(plan, open)
        }
    }
}

/// Blocks of these trials, in their order.
fn of_trials(plan: &Plan, trials: Vec<(PlannedTrial, Option<String>)>) -> Vec<Block> {
    let group = groups(plan);
    let in_blocks = plan.run.order == Order::RandomizedBlocks;
    let mut blocks: BTreeMap<(u32, usize), Vec<BlockTrial>> = BTreeMap::new();
    for (PlannedTrial { position, cell, repeat }, reason) in trials {
        let key = (if in_blocks { repeat } else { 0 }, group[cell]);
        blocks.entry(key).or_default().push(BlockTrial { position, cell, repeat, reason });
    }
    let named = |((repeat, group), trials)| Block {
        name: match in_blocks {
            true => format!("repeat-{repeat}-group-{}", group + 1),
            false => format!("group-{}", group + 1),
        },
        content: BlockContent::Trials(trials),
    };
    blocks.into_iter().map(named).collect()
}

/// The group of each cell: those of a group are compared with each other, and can run on one machine. Without a compared factor
/// that is every cell.
fn groups(plan: &Plan) -> Vec<usize> {
    let comparisons = plan.comparisons();
    let baseline = |cell: usize| match plan.run.compare {
        Some(_) => comparisons.iter().find(|(_, other)| *other == cell).map_or(cell, |(a, _)| *a),
        None => 0,
    };
    let mut keys: Vec<(usize, Place<'_>)> = Vec::new();
    let mut groups = Vec::with_capacity(plan.cells.len());
    for (at, cell) in plan.cells.iter().enumerate() {
        let key = (baseline(at), Place::of(cell));
        let known = keys.iter().position(|other| *other == key);
        groups.push(known.unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        }));
    }
    groups
}

/// Marks a trial of a block that its agent did not complete, and that was measured anew.
pub fn mark_as_lost(record: &mut TrialRecord, agent: &str) {
    trial::add_finding(record, diagnose::lost_agent(agent));
}

/// Trials of a run that others measure, as they arrive: its progress.
pub struct ArrivingTrials<'a> {
    plan: &'a Plan,
    schedule: Box<dyn Schedule + 'a>,
    /// The cell of the trial that has arrived, of sessions of which one has.
    half: BTreeMap<u32, usize>,
    observer: &'a dyn Observer,
}

impl<'a> ArrivingTrials<'a> {
    /// Those after `trials`, which are in the store.
    pub fn new(
        plan: &'a Plan,
        trials: &[Trial],
        earlier: &'a BTreeSet<String>,
        observer: &'a dyn Observer,
    ) -> Self {
        let schedule: Box<dyn Schedule> = match plan.run.order {
            Order::Paired | Order::Bisect => Box::new(SessionSchedule::new(plan, trials, earlier)),
            Order::Sequential | Order::RandomizedBlocks => {
                Box::new(TrialSchedule::new(plan, &FLEET, trials, earlier))
            }
        };
        Self { plan, schedule, half: BTreeMap::new(), observer }
    }

    /// Adds one, which is in the store now. `agents` measure at the same time.
    pub fn add(&mut self, trial: &Trial, agents: usize) {
        self.schedule.record(trial);
        let Some(cell) = self.plan.cells.iter().position(|cell| trial.cell == *cell) else { return };
        let planned = PlannedTrial { position: trial.position, cell, repeat: trial.repeat };
        let estimate = |trials: &[PlannedTrial]| {
            Span::from_us(self.plan.estimate_of(trials).us() / agents.max(1) as u64)
        };
        let (remaining, extra) = (self.schedule.remaining(), self.schedule.possible());
        let of = self.plan.trials.len().max(trial.position as usize);
        self.observer.on_event(&Event::TrialBegins {
            trial: &planned,
            cell: &self.plan.cells[cell].clone().masked(),
            attempt: trial.attempt,
            reason: trial.reason.as_deref(),
            of,
            of_at_most: of.max(self.plan.cells.len() * self.plan.run.repeats.max as usize),
            remaining: estimate(&remaining),
            remaining_at_most: estimate(&[remaining, extra].concat()),
            side: None,
            other: None,
        });
        self.observer.on_event(&Event::TrialEnded(trial));
        if self.plan.run.order != Order::Paired {
            return;
        }
        match self.half.remove(&trial.repeat) {
            None => {
                self.half.insert(trial.repeat, cell);
            }
            Some(other) => {
                if let Some(state) = [cell, other].into_iter().find_map(|of| self.schedule.comparison(of)) {
                    self.observer.on_event(&Event::SessionEnded(&state));
                }
            }
        }
    }

    /// Progress of the run.
    pub fn progress(&self) -> Progress {
        self.schedule.progress()
    }
}

/// Where a cell can run.
#[derive(PartialEq)]
struct Place<'a> {
    host: Option<&'a str>,
    /// The kernel that has to be booted, with its arguments and parameters; none of a virtual machine.
    kernel: Option<(Option<&'a str>, &'a str, &'a str)>,
}

impl<'a> Place<'a> {
    fn of(cell: &'a Cell) -> Self {
        let booted = (cell.kernel.as_deref(), &*cell.kernel_args, &*cell.sysctl.name);
        Self { host: cell.host.as_deref(), kernel: (!cell.acceleration.is_virtual()).then_some(booted) }
    }
}

#[cfg(test)]
mod tests {
    use model::factor::Factor;
    use model::spec::Campaign;

    use super::*;

    fn plan(factors: &str, run: &str) -> Plan {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\n{factors}[run]\nseed = 3\n{run}"
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    fn open(plan: &Plan) -> Vec<Block> {
        open_blocks(plan, &[], &BTreeSet::new())
    }

    fn trials(block: &Block) -> &[BlockTrial] {
        match &block.content {
            BlockContent::Trials(trials) => trials,
            BlockContent::Comparison(_) => panic!("no trials"),
        }
    }

    #[test]
    fn compared_trials_of_a_repeat_are_one_block() {
        let plan = plan("clients = [1, 2, 4]\n", "repeats = 3\ncompare = 'server'\n");
        let blocks = open(&plan);
        assert_eq!(blocks.len(), 9);
        for block in &blocks {
            let trials = trials(block);
            let cells: Vec<&Cell> = trials.iter().map(|trial| &plan.cells[trial.cell]).collect();
            assert_eq!(trials.len(), 2, "{block:?}");
            assert_eq!(cells[0].clients, cells[1].clients);
            assert_ne!(cells[0].server, cells[1].server);
            assert_eq!(trials[0].repeat, trials[1].repeat);
        }
        let names: BTreeSet<&str> = blocks.iter().map(|block| &*block.name).collect();
        assert_eq!(names.len(), blocks.len(), "each has a name of its own");
        let positions: BTreeSet<u32> = blocks.iter().flat_map(trials).map(|trial| trial.position).collect();
        assert_eq!(positions.len(), plan.trials.len(), "each trial is in one block");
    }

    #[test]
    fn cells_of_several_hosts_are_not_in_one_block() {
        let plan = plan("host = ['big', 'small']\nclients = [1]\n", "repeats = 2\ncompare = 'host'\n");
        let blocks = open(&plan);
        assert_eq!(blocks.len(), 8, "a comparison of hosts is over several machines");
        let of_one = |block: &Block| {
            let hosts: BTreeSet<String> =
                block.cells(&plan).into_iter().map(|cell| Factor::Host.level(cell)).collect();
            hosts.len() == 1
        };
        assert!(blocks.iter().all(of_one));
    }

    #[test]
    fn a_comparison_in_pairs_is_one_block() {
        let plan = plan("clients = [1, 2]\n", "order = 'paired'\n");
        let blocks = open(&plan);
        let contents: Vec<&BlockContent> = blocks.iter().map(|block| &block.content).collect();
        assert_eq!(contents, [&BlockContent::Comparison(0), &BlockContent::Comparison(1)]);
        assert!(blocks.iter().all(|block| block.is_of(&plan) && block.cells(&plan).len() == 2));
    }
}
