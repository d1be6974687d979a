//! Bisections as values: what is known of each level, the changes that were found, and the answer in a sentence.

mod kernels;
mod sentence;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use diagnose::{BisectionFinding, LinkOrderCheck, LinkOrderFinding, Position};
use model::cell::Cell;
use model::factor::Factor;
use model::machine::{KernelSpec, kernel_commit};
use model::paired::PairedFigure;
use model::plan::Plan;
use model::record::Trial;
use model::server::{Source, commit_of};
use plaintext::figures::counted;
use stats::{Culprits, Interval, StepSize};

use crate::context::TrialContext;
use crate::judgement::Refusal;
pub use sentence::probability;
use sentence::sentence;
pub use view::{
    Bisection, BisectionChange, BisectionEnds, BisectionLevel, BisectionLinkOrder, BisectionLinkOrderState,
    BisectionPlace, BisectionState,
};

/// The most levels that [candidates](Bisection::candidates) are.
const MAX_CANDIDATES: usize = 12;
/// Levels less probable than this are none, unless they are next to one.
const LEAST_PROBABILITY: f64 = 0.001;

/// The bisection that a plan is, by the trials of its run; `contexts` are by trial id, and may lack some; `place` finds the cells of an
/// overview. `None` if the plan is no bisection, or no session is complete.
pub fn bisection(
    plan: &Plan,
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
    place: &dyn Fn(&Cell) -> Option<BisectionPlace>,
) -> Option<Bisection> {
    let mut state = diagnose::Bisection::new(plan)?;
    state.add(plan, trials.iter().copied(), &BTreeSet::new());
    if state.sessions() == 0 {
        return None;
    }
    let (kind, refusal) = match state.finding() {
        BisectionFinding::EndsOpen => (BisectionState::EndsOpen, None),
        BisectionFinding::NothingToFind => (BisectionState::NothingToFind, None),
        BisectionFinding::Searching => (BisectionState::Searching, None),
        BisectionFinding::Found(_) => (BisectionState::Found, None),
        BisectionFinding::NoVerdict(gate) => {
            let refusal = if gate == "foreign-cpu" { Refusal::Foreign } else { Refusal::Driver };
            (BisectionState::NoVerdict, Some(refusal))
        }
    };
    let checks = link_order(plan, &state, trials);
    let ends = state.ends.interval();
    let mut levels = levels(plan, &state, trials, contexts);
    for (level, position) in levels.iter_mut().zip(&state.positions) {
        level.place = place(&plan.cells[position.cell]);
    }
    let mut bisection = Bisection {
        run: trials.first()?.run.id.clone(),
        searched: searched(plan, &levels),
        what: noun(plan),
        state: kind,
        sentence: String::new(),
        figure: state.figure.as_str(),
        label: figure_name(state.figure),
        better: state.figure.better().as_str(),
        confidence: state.confidence(),
        ends: BisectionEnds {
            sessions: state.ends.sessions(),
            change: state.ends.ratio().map(|ratio| ratio - 1.0),
            ci99_low: ends.map(|interval| interval.low - 1.0),
            ci99_high: ends.map(|interval| interval.high - 1.0),
            margin: state.ends.margin(),
        },
        two_changes: state.posterior().map(|posterior| posterior.two_steps),
        changes: state
            .changes()
            .iter()
            .map(|(culprits, size)| change(culprits, size.as_ref(), &checks, &levels))
            .collect(),
        is_in_slices: state.is_in_slices,
        candidates: candidates(&state.culprits()),
        measured: state.measured(),
        sessions: state.sessions(),
        seconds: state.seconds(),
        levels,
    };
    bisection.sentence = sentence(&bisection, state.has_failed(), refusal);
    Some(bisection)
}

/// What builds with another order of functions show of each commit that was found.
fn link_order(plan: &Plan, state: &diagnose::Bisection, trials: &[&Trial]) -> Vec<BisectionLinkOrder> {
    let view = |mut check: LinkOrderCheck| {
        check.add(plan, trials.iter().copied(), &BTreeSet::new());
        let interval = check.sequence.interval();
        BisectionLinkOrder {
            state: match check.finding() {
                LinkOrderFinding::Confirmed => BisectionLinkOrderState::Confirmed,
                LinkOrderFinding::LayoutAlone => BisectionLinkOrderState::LayoutAlone,
                LinkOrderFinding::Open => BisectionLinkOrderState::Open,
                LinkOrderFinding::Failed(_) => BisectionLinkOrderState::Failed,
            },
            sentence: sentence::link_order(&check, figure_name(check.figure)),
            before: check.before,
            after: check.after,
            sessions: check.sequence.sessions(),
            change: check.sequence.ratio().map(|ratio| ratio - 1.0),
            ci99_low: interval.map(|interval| interval.low - 1.0),
            ci99_high: interval.map(|interval| interval.high - 1.0),
        }
    };
    LinkOrderCheck::of(plan, state).into_iter().map(view).collect()
}

fn change(
    culprits: &Culprits,
    size: Option<&StepSize>,
    checks: &[BisectionLinkOrder],
    levels: &[BisectionLevel],
) -> BisectionChange {
    let (first, last) = (*culprits.positions.start(), *culprits.positions.end());
    let is_measured = |at: &usize| !levels[*at].sessions.is_empty();
    BisectionChange {
        first,
        last,
        probability: culprits.probability,
        change: size.map(|size| size.ratio - 1.0),
        ci95_low: size.map(|size| size.interval.low - 1.0),
        ci95_high: size.map(|size| size.interval.high - 1.0),
        before: (0..first).rev().find(is_measured).unwrap_or_default(),
        after: (first..levels.len()).find(is_measured).unwrap_or(last),
        link_order: checks.iter().find(|check| check.after == last).cloned(),
    }
}

/// The most probable levels and those before and after them, in their order.
fn candidates(culprits: &[Culprits]) -> Vec<usize> {
    let probable = culprits.iter().filter(|culprits| culprits.probability >= LEAST_PROBABILITY);
    let with_neighbours = probable.take(MAX_CANDIDATES / 2).flat_map(|culprits| {
        let (first, last) = (*culprits.positions.start(), *culprits.positions.end());
        [first - 1, first, last]
    });
    let levels: BTreeSet<usize> =
        with_neighbours.take(MAX_CANDIDATES).filter(|position| *position > 0).collect();
    levels.into_iter().collect()
}

/// The levels with what is known of them.
fn levels(
    plan: &Plan,
    state: &diagnose::Bisection,
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
) -> Vec<BisectionLevel> {
    let contexts: Vec<(&Trial, &TrialContext)> =
        trials.iter().filter_map(|trial| Some((*trial, contexts.get(&trial.id)?))).collect();
    let subject = |name: &str| contexts.iter().find_map(|(_, context)| context.subjects.get(name));
    let posterior = state.posterior();
    let level = |(at, position): (usize, &Position)| {
        let cell = &plan.cells[position.cell].clone().masked();
        let name = plan.run.compare.map(|factor| factor.level(cell)).unwrap_or_default();
        let git_ref = git_ref(plan, cell);
        let commit = git_ref.and_then(|_| {
            let is_of_level = |trial: &Trial| {
                plan.run.compare.and_then(|factor| factor.known_level(&trial.cell)).as_ref() == Some(&name)
            };
            let of_level = contexts.iter().filter(|(trial, _)| is_of_level(trial));
            let mut commits = of_level.filter_map(|(_, context)| match plan.run.compare {
                Some(Factor::Kernel) => context.kernel_commit.as_ref(),
                _ => context.commit.as_ref(),
            });
            commits.next()
        });
        let subject = git_ref.and_then(subject).or(commit.map(|commit| &commit.subject));
        let interval: Option<Interval> = position.level.and_then(|level| level.interval);
        BisectionLevel {
            short: short(plan, &name).filter(|_| git_ref.is_some()).unwrap_or(&name).to_owned(),
            name,
            title: subject.cloned(),
            author: commit.map(|commit| commit.author.clone()),
            files: commit.map(|commit| commit.files.clone()).unwrap_or_default(),
            probability: posterior.and_then(|posterior| posterior.steps.get(at.checked_sub(1)?)).copied(),
            sessions: position.log_ratios.iter().map(|log_ratio| log_ratio.exp_m1()).collect(),
            change: position.level.map(|level| level.ratio - 1.0),
            ci95_low: interval.map(|interval| interval.low - 1.0),
            ci95_high: interval.map(|interval| interval.high - 1.0),
            unavailable: position.unavailable.clone(),
            place: None,
        }
    };
    let mut levels: Vec<BisectionLevel> = state.positions.iter().enumerate().map(level).collect();
    match plan.run.compare {
        Some(Factor::Kernel) => kernels::describe(plan, &mut levels, &contexts),
        Some(Factor::KernelArgs) => kernels::describe_arguments(&mut levels),
        _ => {}
    }
    levels
}

/// Name of the commit that the compared server or kernel of a cell is built from.
fn git_ref<'p>(plan: &'p Plan, cell: &Cell) -> Option<&'p str> {
    match plan.run.compare {
        Some(Factor::Server) => match &plan.server(cell)?.source {
            Source::Build(build) => build.git_ref.as_deref(),
            _ => None,
        },
        Some(Factor::Kernel) => plan.kernel(cell)?.commit().map(|(_, name)| name),
        _ => None,
    }
}

/// The name of a commit in that of its level.
fn short<'n>(plan: &Plan, name: &'n str) -> Option<&'n str> {
    let commit = if plan.run.compare == Some(Factor::Kernel) { kernel_commit(name) } else { commit_of(name) };
    commit.map(|(_, commit)| commit)
}

/// What was searched, in words.
fn searched(plan: &Plan, levels: &[BisectionLevel]) -> String {
    let count = counted(levels.len().saturating_sub(1), noun(plan));
    let first = plan.servers.first();
    let under = first.map(|server| format!(" under {}", server.name)).unwrap_or_default();
    let of = match (noun(plan), first.map(|server| &server.source)) {
        ("commit", _) if plan.run.compare == Some(Factor::Kernel) => {
            let repository = repository_of_kernels(plan).map(|path| path.display().to_string());
            format!(" of {}{under}", repository.unwrap_or_default())
        }
        ("commit", Some(Source::Build(build))) => format!(" of {}", build.location.display()),
        ("setting", _) => first.map(|server| format!(" of {}", server.name)).unwrap_or_default(),
        ("kernel", _) => under,
        ("kernel argument" | "kernel parameter", _) => {
            plan.kernels.first().map(|kernel| format!(" of {}", kernel.name)).unwrap_or_default()
        }
        _ => String::new(),
    };
    let [good, bad] = [levels.first(), levels.last()].map(|level| level.map_or("", |level| &level.short));
    format!("{count}{of}, from {good} to {bad}")
}

/// What a level is.
fn noun(plan: &Plan) -> &'static str {
    let is_commit = plan
        .servers
        .first()
        .is_some_and(|server| matches!(&server.source, Source::Build(build) if build.git_ref.is_some()));
    match plan.run.compare {
        Some(Factor::Server) if is_commit => "commit",
        Some(Factor::Server) => "release",
        Some(Factor::Settings) => "setting",
        Some(Factor::Kernel) if repository_of_kernels(plan).is_some() => "commit",
        Some(Factor::Kernel) => "kernel",
        Some(Factor::KernelArgs) => "kernel argument",
        Some(Factor::Sysctl) => "kernel parameter",
        _ => "level",
    }
}

/// The repository of which all kernels are commits.
fn repository_of_kernels(plan: &Plan) -> Option<&Path> {
    let (repository, _) = plan.kernels.first()?.commit()?;
    let is_of_it = |kernel: &KernelSpec| kernel.commit().is_some_and(|(of, _)| of == repository);
    plan.kernels.iter().all(is_of_it).then_some(repository)
}

/// A figure's name in sentences.
fn figure_name(figure: PairedFigure) -> &'static str {
    match figure {
        PairedFigure::Throughput => "throughput",
        PairedFigure::Latency => "mean latency",
        PairedFigure::ServerCpu => "server CPU time per transaction",
        PairedFigure::ServerInstructions => "server instructions per transaction",
        PairedFigure::Instructions => "instructions per transaction",
    }
}
