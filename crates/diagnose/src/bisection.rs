//! The state of a bisection: at which level of the compared factor, in their order, did the performance change?

pub(crate) mod link_order;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use model::machine::{Acceleration, KernelSpec};
use model::merit::Merit;
use model::paired::{PairedFigure, Side};
use model::plan::{Order, Plan};
use model::record::{Status, Trial};
use model::server::Source;
use model::session::SessionSide;
use stats::{
    Culprits, Interval, PairedSequence, ProbeCost, StepPosterior, StepSearch, StepSize, Verdict,
    mean_half_width, session_log_ratio,
};

use crate::gates::{INTERRUPTED, NO_KERNEL, NO_SERVER};

/// Assumed cost of a server or kernel that is measured for the first time, as long as none is known.
const BUILD_S: f64 = 60.0;
const KERNEL_BUILD_S: f64 = 300.0;
const DOWNLOAD_S: f64 = 10.0;
/// The same for a data set of another catalog than those before: `initdb`, and each unit of pgbench's scale.
const INITDB_S: f64 = 3.0;
const SCALE_S: f64 = 0.15;
/// The same for a session.
const SESSION_S: f64 = 3.0;
/// Gates that leave comparisons by the driver's figures without a verdict, if they make at least half of the trials of both sides
/// suspect; the second one only where load alternates between servers.
const REFUSING: [&str; 2] = ["driver-saturated", "foreign-cpu"];
/// The fewest trials of a side that show it.
const LEAST_TRIALS: usize = 3;
/// The longest time of a build: what is longer is a pause between commands.
const LONGEST_PREPARATION_S: f64 = 1800.0;

/// A bisection, from its plan and its trials in the store. Position 0 is the first level, the baseline; positions are in the
/// order of the levels.
#[derive(Clone, Debug)]
pub struct Bisection {
    /// The figure whose change is searched.
    pub figure: PairedFigure,
    /// Sessions of the last level with the first, until they show whether they differ.
    pub ends: PairedSequence,
    /// What is known of each position.
    pub positions: Vec<Position>,
    /// Whether a session is slices of two servers that run at the same time; else it is two trials, one after the other.
    pub is_in_slices: bool,
    confidence: f64,
    retries: u32,
    clients: u32,
    sessions: BTreeMap<u32, Session>,
    /// Usable trials of both sides, and those that each of [`REFUSING`] made suspect.
    usable: [usize; 2],
    suspect: [[usize; 2]; REFUSING.len()],
    search: Option<(StepSearch, StepPosterior)>,
    /// Whether servers are built while sessions run: then only those that are built are measured.
    builds_apart: bool,
    /// Cells whose servers have been built so, or could not be.
    built: BTreeSet<usize>,
    /// What the data set of each cell depends on, next to the campaign; none if unknown.
    data: Vec<Option<String>>,
    scale: u32,
}

/// A position.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// Index of its cell in the plan.
    pub cell: usize,
    /// Log ratios of its sessions to the baseline.
    pub log_ratios: Vec<f64>,
    /// Its figure in relation to the baseline; none without a session.
    pub level: Option<Level>,
    /// Why it can't be measured; none if it can.
    pub unavailable: Option<String>,
    /// Time from the end of the session before until its first one began, in seconds.
    preparation_s: Option<f64>,
    /// Whether that was also the time of its data set, as no position before had the same one.
    filled_data: bool,
    /// Mean length of its sessions, in seconds.
    session_s: Option<f64>,
    /// Assumed cost of its first session, as long as none is known, in seconds.
    assumed_s: f64,
    /// Whether its server is built.
    is_build: bool,
    /// Sessions in succession that failed.
    failures: u32,
}

/// The figure at a position in relation to the baseline, by the sessions of this position alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Geometric mean of the sessions' ratios.
    pub ratio: f64,
    /// Its interval of 95 %, by Student's t; none with a single session.
    pub interval: Option<Interval>,
}

impl Level {
    fn new(log_ratios: &[f64]) -> Option<Self> {
        let mean = log_ratios.iter().sum::<f64>() / log_ratios.len() as f64;
        let half = mean_half_width(log_ratios, 0.95);
        let interval = half.map(|half| Interval { low: (mean - half).exp(), high: (mean + half).exp() });
        (!log_ratios.is_empty()).then(|| Self { ratio: mean.exp(), interval })
    }
}

/// What a bisection has found.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Whether the ends differ is not known yet.
    EndsOpen,
    /// They are equivalent: there is nothing to find.
    NothingToFind,
    /// They differ, and the position is not known yet.
    Searching,
    /// The positions of the change or of both changes; if they can't be told from others, with them.
    Found(Vec<Culprits>),
    /// There is no verdict, whatever the figures: because of this gate.
    NoVerdict(&'static str),
}

/// The trials of a session in the store.
#[derive(Clone, Debug, Default)]
struct Session {
    position: Option<usize>,
    sides: [Option<SessionSide>; 2],
    /// Why a side has no figures.
    failures: [Option<Failure>; 2],
    span: Option<(Timestamp, Timestamp)>,
}

#[derive(Clone, Debug)]
enum Failure {
    /// There is no such server or kernel.
    Unavailable(String),
    /// Another reason, which a later command may have removed.
    Other(String),
}

impl Session {
    /// The position that failed, and why; none if none did. If servers run at the same time and one fails, so does the other: it
    /// is that of the level which is measured.
    fn failure(&self, figure: PairedFigure) -> Option<(usize, Failure)> {
        let [of_baseline, of_level] = &self.failures;
        if let Some((failure, position)) = of_level.as_ref().zip(self.position) {
            return Some((position, failure.clone()));
        }
        if let Some(failure) = of_baseline {
            return Some((0, failure.clone()));
        }
        let is_complete = self.sides.iter().all(Option::is_some);
        let missing = || Failure::Other(format!("its trials do not have the figure {}", figure.as_str()));
        self.position.filter(|_| is_complete).map(|position| (position, missing()))
    }
}

impl Bisection {
    /// The bisection of a plan, without trials; none if the plan is not one.
    pub fn new(plan: &Plan) -> Option<Self> {
        let comparisons = Some(plan.comparisons()).filter(|_| plan.run.order == Order::Bisect)?;
        let baseline = comparisons.first()?.0;
        let position = |cell: usize| {
            let source = plan.server(&plan.cells[cell]).map(|server| &server.source);
            let assumed_s = match (plan.kernel(&plan.cells[cell]).and_then(KernelSpec::commit), source) {
                (Some(_), _) => KERNEL_BUILD_S,
                (None, Some(Source::Build(_))) => BUILD_S,
                _ => DOWNLOAD_S,
            };
            let is_build = matches!(source, Some(Source::Build(_)));
            Position { cell, assumed_s, is_build, ..Position::default() }
        };
        let cells = std::iter::once(baseline).chain(comparisons.iter().map(|(_, cell)| *cell));
        let merit = Merit::of(&plan.cells[baseline].clone().into());
        let is_counted = plan.cells[baseline].acceleration == Acceleration::Icount;
        Some(Self {
            figure: plan.run.figure.unwrap_or(PairedFigure::of(merit)),
            ends: PairedSequence::new(stats::margin(plan.run.effect, is_counted), 1),
            positions: cells.map(position).collect(),
            is_in_slices: plan.is_in_slices(),
            confidence: plan.run.confidence,
            retries: plan.run.retries,
            clients: plan.cells[baseline].clients,
            sessions: BTreeMap::new(),
            usable: [0; 2],
            suspect: [[0; 2]; REFUSING.len()],
            search: None,
            builds_apart: plan.run.build_while_measuring,
            built: BTreeSet::new(),
            data: vec![None; plan.cells.len()],
            scale: plan.cells[baseline].scale,
        })
    }

    /// Adds trials of its run. A failure in one of `earlier`, the ids of trials of earlier commands of the user, is tried again.
    pub fn add<'t>(
        &mut self,
        plan: &Plan,
        trials: impl IntoIterator<Item = &'t Trial>,
        earlier: &BTreeSet<String>,
    ) {
        for trial in trials {
            self.add_trial(plan, trial, earlier.contains(&trial.id));
        }
        self.update_positions();
        // Sessions after the decision belong to the search.
        let of_last = self.positions.last().into_iter().flat_map(|last| &last.log_ratios).copied();
        self.ends = until_decided(self.ends.margin(), of_last);
        let differ = matches!(self.ends.verdict(), Verdict::Regression | Verdict::Improvement);
        self.search = differ.then(|| self.start_search(self.positions.len() - 1));
    }

    fn add_trial(&mut self, plan: &Plan, trial: &Trial, is_earlier: bool) {
        let is_of = |position: &Position| trial.cell == plan.cells[position.cell];
        let Some(position) = self.positions.iter().position(is_of) else { return };
        let session = self.sessions.entry(trial.repeat).or_default();
        session.position = session.position.or(Some(position).filter(|position| *position > 0));
        let side = if position == 0 { Side::A } else { Side::B }.index();
        if let Some(figures) = SessionSide::from_trial(trial) {
            session.sides[side] = Some(figures);
            self.usable[side] += 1;
            let is_suspect = |gate: &str| {
                let mut findings = trial.validity.findings.iter();
                findings.any(|finding| finding.gate == gate && finding.status == Status::Suspect)
            };
            for (suspect, gate) in self.suspect.iter_mut().zip(REFUSING) {
                suspect[side] += usize::from(is_suspect(gate));
            }
        }
        if let Some(failure) = failure_of(trial, is_earlier) {
            session.failures[side] = Some(failure);
        }
        if let Some((started, ended)) = trial.started.zip(trial.ended) {
            let (first, last) = session.span.unwrap_or((started, ended));
            session.span = Some((first.min(started), last.max(ended)));
        }
    }

    /// Notes what the data set of each cell of the plan depends on: cells of the same share it. None if unknown.
    pub fn set_data(&mut self, data: Vec<Option<String>>) {
        self.data = data;
        self.update_positions();
    }

    /// Fills in what the sessions show of each position.
    fn update_positions(&mut self) {
        for position in &mut self.positions {
            let Position { cell, assumed_s, is_build, .. } = *position;
            *position = Position { cell, assumed_s, is_build, ..Position::default() };
        }
        let mut ended_before: Option<Timestamp> = None;
        let mut filled = BTreeSet::from([self.data[self.positions[0].cell].clone()]);
        let mut lengths: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for session in self.sessions.values() {
            let gap = ended_before.zip(session.span).map(|(before, (started, _))| seconds(before, started));
            ended_before = session.span.map(|(_, ended)| ended).or(ended_before);
            let log_ratio = match &session.sides {
                [Some(a), Some(b)] => {
                    session_log_ratio(&self.figure.pairs_of_session([a, b], [self.clients; 2]))
                }
                _ => None,
            };
            if let Some((log_ratio, number)) = log_ratio.zip(session.position) {
                self.positions[0].failures = 0;
                let position = &mut self.positions[number];
                if position.log_ratios.is_empty() {
                    position.preparation_s = gap.filter(|gap| *gap < LONGEST_PREPARATION_S);
                    position.filled_data = filled.insert(self.data[position.cell].clone());
                }
                position.failures = 0;
                position.log_ratios.push(log_ratio);
                let of_position = lengths.entry(number).or_default();
                of_position.extend(session.span.map(|(started, ended)| seconds(started, ended)));
                position.session_s = Some(of_position.iter().sum::<f64>() / of_position.len().max(1) as f64);
                continue;
            }
            let Some((number, failure)) = session.failure(self.figure) else { continue };
            let position = &mut self.positions[number];
            match failure {
                Failure::Unavailable(reason) => position.unavailable = Some(reason),
                Failure::Other(reason) => {
                    position.failures += 1;
                    if position.failures > self.retries {
                        position.unavailable = Some(reason);
                    }
                }
            }
        }
        for position in &mut self.positions {
            position.level = Level::new(&position.log_ratios);
        }
    }

    fn start_search(&self, last: usize) -> (StepSearch, StepPosterior) {
        let mut search = StepSearch::new(last, &self.positions[last].log_ratios);
        for (position, state) in self.positions.iter().enumerate().take(last).skip(1) {
            if !state.log_ratios.is_empty() {
                search.add(position, &state.log_ratios);
            }
            if state.unavailable.is_some() {
                search.exclude(position);
            }
        }
        let posterior = search.posterior();
        (search, posterior)
    }

    /// What has been found.
    pub fn finding(&self) -> Finding {
        if let Some(gate) = self.refusing_gate() {
            return Finding::NoVerdict(gate);
        }
        match (&self.search, self.ends.verdict()) {
            (Some((search, posterior)), _) => {
                let is_exhausted = || search.next(posterior, |position| self.cost(position)).is_none();
                let found = search.found(posterior, self.confidence);
                let narrowed = || search.narrowed(posterior, self.confidence).filter(|_| is_exhausted());
                found.or_else(narrowed).map_or(Finding::Searching, Finding::Found)
            }
            (None, Verdict::Equivalent) => Finding::NothingToFind,
            (None, _) => Finding::EndsOpen,
        }
    }

    /// The changes that were found, in the order of the positions, with their sizes; none unless the finding is that they are known.
    pub fn changes(&self) -> Vec<(Culprits, Option<StepSize>)> {
        let Finding::Found(mut found) = self.finding() else { return Vec::new() };
        found.sort_by_key(|culprits| *culprits.positions.start());
        let sizes = self.posterior().map(|posterior| posterior.sizes.as_slice()).unwrap_or_default();
        found.into_iter().enumerate().map(|(at, culprits)| (culprits, sizes.get(at).copied())).collect()
    }

    /// The gate because of which there is no verdict.
    fn refusing_gate(&self) -> Option<&'static str> {
        let is_of_driver = matches!(self.figure, PairedFigure::Throughput | PairedFigure::Latency);
        let gates = REFUSING.into_iter().zip(self.suspect).take(if self.is_in_slices { 2 } else { 1 });
        let is_mostly = |suspect: [usize; 2]| {
            let mut sides = suspect.into_iter().zip(self.usable);
            sides.all(|(suspect, usable)| usable >= LEAST_TRIALS && 2 * suspect >= usable)
        };
        gates.filter(|_| is_of_driver).find(|(_, suspect)| is_mostly(*suspect)).map(|(gate, _)| gate)
    }

    /// The posterior over the place of the change; none before the ends are known to differ.
    pub fn posterior(&self) -> Option<&StepPosterior> {
        self.search.as_ref().map(|(_, posterior)| posterior)
    }

    /// All positions after the baseline by the probability of a change, the most probable first; those that can't be told apart are
    /// together.
    pub fn culprits(&self) -> Vec<Culprits> {
        self.search.as_ref().map(|(search, posterior)| search.culprits(posterior)).unwrap_or_default()
    }

    /// The position to measure next; none if the search has ended, no session would tell more, or the baseline can't be measured.
    pub fn next(&self) -> Option<usize> {
        let [baseline, last] = self.ends_unavailable();
        if baseline {
            return None;
        }
        match (self.finding(), &self.search) {
            (Finding::EndsOpen, _) => Some(self.positions.len() - 1).filter(|_| !last),
            (Finding::Searching, Some((search, posterior))) => {
                let cost = |position: usize| self.cost(position);
                // What is ready costs no build.
                let of_ready = |position| cost(position).only_if(self.is_ready(position));
                let ready = self.builds_apart.then(|| search.next(posterior, of_ready)).flatten();
                ready.or_else(|| search.next(posterior, cost))
            }
            _ => None,
        }
    }

    /// Whether the next session has to wait for a build, as it would tell nothing more of the servers that are built.
    pub fn waits_for_build(&self) -> bool {
        let is_search = self.builds_apart && self.search.is_some();
        is_search && self.next().is_some_and(|position| !self.is_ready(position))
    }

    /// The cell whose server is to be built while sessions of others run; none if servers are not built so, or none is needed.
    pub fn next_build(&self) -> Option<usize> {
        let is_open = |position: &usize| !self.is_ready(*position);
        let position = match (self.finding(), &self.search) {
            _ if !self.builds_apart => None,
            // If the ends differ, it is the first.
            (Finding::EndsOpen, _) => Some(self.positions.len() / 2).filter(is_open),
            // What would be built next if nothing were measured meanwhile.
            (Finding::Searching, Some((search, posterior))) => {
                search.next(posterior, |position| self.cost(position)).filter(is_open)
            }
            _ => None,
        };
        position.map(|position| self.positions[position].cell)
    }

    /// Notes the cells whose servers have been built while sessions ran, or could not be: the next session shows why.
    pub fn set_built(&mut self, cells: &BTreeSet<usize>) {
        self.built.clone_from(cells);
    }

    /// Whether a position needs no build: also if it was measured, or can't be.
    fn is_ready(&self, position: usize) -> bool {
        let state = &self.positions[position];
        let is_known = !state.log_ratios.is_empty() || state.unavailable.is_some();
        !state.is_build || is_known || self.built.contains(&state.cell)
    }

    /// Whether it can't go on, because an end can't be measured.
    pub fn has_failed(&self) -> bool {
        let [baseline, last] = self.ends_unavailable();
        match self.finding() {
            Finding::EndsOpen => baseline || last,
            Finding::Searching => baseline,
            Finding::NothingToFind | Finding::Found(_) | Finding::NoVerdict(_) => false,
        }
    }

    fn ends_unavailable(&self) -> [bool; 2] {
        [self.positions.first(), self.positions.last()]
            .map(|position| position.is_some_and(|position| position.unavailable.is_some()))
    }

    /// Probability at which a position is named.
    pub fn confidence(&self) -> f64 {
        self.confidence
    }

    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        self.positions.iter().map(|position| position.log_ratios.len()).sum()
    }

    /// Number of levels that were measured, the baseline included.
    pub fn measured(&self) -> usize {
        1 + self.positions.iter().filter(|position| !position.log_ratios.is_empty()).count()
    }

    /// Time of its sessions and of what was prepared between them, in seconds, without the pauses between commands of the user.
    pub fn seconds(&self) -> f64 {
        let (mut sum, mut until): (f64, Option<Timestamp>) = (0.0, None);
        for (from, to) in self.sessions.values().filter_map(|session| session.span) {
            let gap = until.map(|until| seconds(until, from)).filter(|gap| *gap < LONGEST_PREPARATION_S);
            sum += seconds(from, to) + gap.unwrap_or_default();
            until = Some(to);
        }
        sum
    }

    /// Rough time that the search still takes, in seconds; none before it and after it.
    pub fn seconds_left(&self) -> Option<f64> {
        let (search, posterior) = self.search.as_ref().filter(|_| self.finding() == Finding::Searching)?;
        search.expected_s(posterior, |position| self.cost(position))
    }

    /// Expected cost of measuring at a position: as long as the others took.
    fn cost(&self, position: usize) -> ProbeCost {
        let state = &self.positions[position];
        if state.unavailable.is_some() {
            return ProbeCost { preparation_s: f64::INFINITY, session_s: SESSION_S };
        }
        let session_s = median(self.positions.iter().filter_map(|other| other.session_s));
        let session_s = session_s.unwrap_or(SESSION_S).max(0.1);
        if !state.log_ratios.is_empty() {
            return ProbeCost { preparation_s: 0.0, session_s };
        }
        let took = |with_data: bool| {
            let others = self.positions.iter().filter(|other| other.filled_data == with_data);
            median(others.filter_map(|other| other.preparation_s))
        };
        let is_of_same_data = |other: &Position| self.data[other.cell] == self.data[state.cell];
        let mut measured = self.positions.iter().enumerate();
        let has_data =
            measured.any(|(at, other)| (at == 0 || !other.log_ratios.is_empty()) && is_of_same_data(other));
        let is_built = self.built.contains(&state.cell);
        // Of builds while sessions run, these do not show how long they took.
        let known = took(false).filter(|_| !self.builds_apart);
        let build_s = if is_built { 0.0 } else { known.unwrap_or(state.assumed_s) };
        let data_s = match (has_data, took(true).zip(took(false))) {
            (true, _) => 0.0,
            (false, Some((with_data, without))) => (with_data - without).max(0.0),
            (false, None) => INITDB_S + SCALE_S * f64::from(self.scale),
        };
        ProbeCost { preparation_s: build_s + data_s, session_s }
    }
}

/// The median; of an even number, the greater one of both in the middle.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Why a trial has no figures; none if it has, if the user interrupted it, and of an earlier command if it can be tried again.
fn failure_of(trial: &Trial, is_earlier: bool) -> Option<Failure> {
    let invalid = trial.validity.findings.iter().find(|finding| finding.status == Status::Invalid)?;
    let reason = invalid.evidence.clone();
    match invalid.gate.as_str() {
        NO_SERVER | NO_KERNEL => Some(Failure::Unavailable(reason)),
        gate => (gate != INTERRUPTED && !is_earlier).then_some(Failure::Other(reason)),
    }
}

/// The sequence of sessions with these log ratios, up to its decision.
fn until_decided(margin: f64, log_ratios: impl Iterator<Item = f64>) -> PairedSequence {
    let mut sequence = PairedSequence::new(margin, 1);
    for log_ratio in log_ratios {
        if !sequence.verdict().is_open() {
            break;
        }
        sequence.add(log_ratio);
    }
    sequence
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    Duration::try_from(to.duration_since(from)).unwrap_or_default().as_secs_f64()
}
