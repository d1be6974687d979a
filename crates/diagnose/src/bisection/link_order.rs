//! Whether a change at a commit is one of code layout alone: the commit and the one before it once more, in builds with their
//! functions in another order.

use std::collections::{BTreeMap, BTreeSet};

use model::paired::PairedFigure;
use model::plan::Plan;
use model::record::Trial;
use model::session::SessionSide;
use stats::{Culprits, PairedSequence, StepSize, Verdict, session_log_ratio};

use super::{Bisection, Failure, failure_of, until_decided};

/// Sessions after which it ends undecided.
const MOST_SESSIONS: usize = 200;

/// A comparison of two commits in builds with another order of functions.
#[derive(Clone, Debug)]
pub struct LinkOrderCheck {
    /// Position of the last commit before the change.
    pub before: usize,
    /// Position of the commit of the change; if several can't be told apart, of the last of them.
    pub after: usize,
    /// Indices of both builds' cells in the plan.
    pub cells: [usize; 2],
    /// The figure that is compared.
    pub figure: PairedFigure,
    /// Its sessions, until they show whether it changed. They are equivalent within half of the change that was found.
    pub sequence: PairedSequence,
    /// Ratio of the figure that was found.
    found: f64,
    retries: u32,
    clients: u32,
    sessions: BTreeMap<u32, [Option<SessionSide>; 2]>,
    failures: u32,
    failure: Option<String>,
}

/// What it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOrderFinding {
    /// The change is there in these builds, too.
    Confirmed,
    /// It is not: it is one of code layout.
    LayoutAlone,
    /// Not known yet, or not known within the most sessions.
    Open,
    /// A build can't be measured: why.
    Failed(String),
}

impl LinkOrderCheck {
    /// The checks of the changes that a bisection has found, in the order of the levels, without trials; none if they are not wanted, or
    /// nothing is found yet.
    pub fn of(plan: &Plan, bisection: &Bisection) -> Vec<Self> {
        if !plan.run.link_order || !plan.is_in_slices() {
            return Vec::new();
        }
        let check = |(culprits, size): (Culprits, Option<StepSize>)| {
            let found = size?.ratio;
            let (before, after) = (culprits.positions.start() - 1, *culprits.positions.end());
            let cell = |position: usize| plan.sorted(bisection.positions[position].cell);
            let cells = [cell(before)?, cell(after)?];
            Some(Self {
                before,
                after,
                cells,
                figure: bisection.figure,
                sequence: PairedSequence::new((found.ln().abs() / 2.0).exp(), 1),
                found,
                retries: plan.run.retries,
                clients: plan.cells[cells[0]].clients,
                sessions: BTreeMap::new(),
                failures: 0,
                failure: None,
            })
        };
        bisection.changes().into_iter().filter_map(check).collect()
    }

    /// Adds trials of its run, of which others are ignored. A failure in one of `earlier`, the ids of trials of earlier commands of the
    /// user, is tried again.
    pub fn add<'t>(
        &mut self,
        plan: &Plan,
        trials: impl IntoIterator<Item = &'t Trial>,
        earlier: &BTreeSet<String>,
    ) {
        for trial in trials {
            if !self.cells.iter().any(|cell| trial.cell == plan.cells[*cell]) {
                continue;
            }
            let side = usize::from(trial.cell == plan.cells[self.cells[1]]);
            if let Some(figures) = SessionSide::from_trial(trial) {
                self.sessions.entry(trial.repeat).or_default()[side] = Some(figures);
            }
            match failure_of(trial, earlier.contains(&trial.id)) {
                Some(Failure::Unavailable(why)) => self.failure = Some(why),
                Some(Failure::Other(why)) => {
                    self.failures += 1;
                    // Each session has two trials.
                    if self.failures > 2 * self.retries + 1 {
                        self.failure = Some(why);
                    }
                }
                None => {}
            }
        }
        let log_ratios = self.sessions.values().filter_map(|session| match session {
            [Some(a), Some(b)] => session_log_ratio(&self.figure.pairs_of_session([a, b], [self.clients; 2])),
            _ => None,
        });
        self.sequence = until_decided(self.sequence.margin(), log_ratios);
    }

    /// Whether another session is wanted.
    pub fn is_open(&self) -> bool {
        self.finding() == LinkOrderFinding::Open && self.sequence.sessions() < MOST_SESSIONS
    }

    /// What it shows.
    pub fn finding(&self) -> LinkOrderFinding {
        let is_same_way = self.sequence.ratio().is_some_and(|ratio| (ratio > 1.0) == (self.found > 1.0));
        match (&self.failure, self.sequence.verdict()) {
            (_, Verdict::Regression | Verdict::Improvement) if is_same_way => LinkOrderFinding::Confirmed,
            (_, verdict) if !verdict.is_open() => LinkOrderFinding::LayoutAlone,
            (Some(why), _) => LinkOrderFinding::Failed(why.clone()),
            (None, _) => LinkOrderFinding::Open,
        }
    }
}
