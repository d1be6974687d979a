//! The answer of a bisection, from its plan and its trials in the store.

mod kernels;

use std::collections::BTreeSet;
use std::path::Path;

use clap::ValueEnum;
use diagnose::{Bisection, BisectionFinding, LinkOrderCheck};
use model::factor::Factor;
use model::plan::Plan;
use model::record::{Run, Trial};
use model::server::{Source, commit_of};
use model::units::Rate;
use plaintext::figures::counted;
use report::bisect::{Document, Level, Subject, text};
use store::Store;

use crate::exit::Exit;
use crate::output::{command_line, print, print_json};
use crate::reading::Reading;

/// The most files of a commit that are listed.
const MAX_FILES: usize = 12;

/// A format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BisectionFormat {
    /// Text for people
    Table,
    /// A versioned document with everything
    Json,
}

/// Prints the answer of a run so far, and returns its exit code: whether the change was found; none if the run is no bisection, or
/// has no session.
pub(crate) fn print_answer(
    store: &Store,
    plan: &Plan,
    run: &Run,
    format: BisectionFormat,
) -> anyhow::Result<Option<Exit>> {
    let Some(mut bisection) = Bisection::new(plan) else { return Ok(None) };
    let reading = Reading::of(store)?;
    let trials: Vec<&Trial> = reading.trials().iter().filter(|trial| trial.run.id == run.id).collect();
    bisection.add(plan, trials.iter().copied(), &BTreeSet::new());
    if bisection.sessions() == 0 {
        return Ok(None);
    }
    let subject = subject(&reading, plan, run, &bisection, &trials)?;
    match format {
        BisectionFormat::Table => print(&text(&bisection, &subject))?,
        BisectionFormat::Json => print_json(&Document::new(&bisection, &subject))?,
    }
    Ok(Some(match bisection.finding() {
        BisectionFinding::Found(_) | BisectionFinding::NothingToFind => Exit::Ok,
        BisectionFinding::EndsOpen | BisectionFinding::Searching | BisectionFinding::NoVerdict(_) => {
            Exit::UndecidedGate
        }
    }))
}

fn subject(
    reading: &Reading,
    plan: &Plan,
    run: &Run,
    bisection: &Bisection,
    trials: &[&Trial],
) -> anyhow::Result<Subject> {
    let levels = levels(plan, bisection);
    let mut facts = vec![("bisect".to_owned(), searched(plan, &levels))];
    let first = &plan.cells[bisection.positions[0].cell];
    let mut load = vec![Factor::Workload, Factor::Scale, Factor::Clients, Factor::Protocol];
    if first.rate != Rate::MAX {
        load.push(Factor::Rate);
    }
    let load = load.iter().map(|factor| format!("{} {}", factor.name(), factor.level(first)));
    facts.push(("load".to_owned(), load.collect::<Vec<_>>().join(", ")));
    if let Some(view) = analysis::overview::read_run(reading, &run.id)? {
        facts.extend(
            view.environment.machine.map(|machine| ("machine".to_owned(), machine.replace(" · ", ", "))),
        );
    }
    let day = trials.iter().filter_map(|trial| trial.started).min();
    let day = day.map(|at| format!(", {}", at.strftime("%Y-%m-%d"))).unwrap_or_default();
    facts.push(("measured by".to_owned(), format!("pgdyno {}{day}", run.pgdyno_version)));
    let mut link_order = LinkOrderCheck::of(plan, bisection);
    if let Some(check) = &mut link_order {
        check.add(plan, trials.iter().copied(), &BTreeSet::new());
    }
    Ok(Subject { facts, levels, seconds: bisection.seconds(), link_order, command: command_line(&[]) })
}

/// What was searched, in words.
fn searched(plan: &Plan, levels: &[Level]) -> String {
    let count = levels.len().saturating_sub(1);
    let commits = plan.servers.first().and_then(|server| match &server.source {
        Source::Build(build) if build.git_ref.is_some() => Some(build.location.display().to_string()),
        _ => None,
    });
    let server = plan.servers.first().map_or("", |server| &server.name);
    let kernel = plan.kernels.first().map_or("", |kernel| &kernel.name);
    let what = match (&commits, plan.run.compare) {
        (Some(repository), Some(Factor::Server)) => format!("{} of {repository}", counted(count, "commit")),
        (_, Some(Factor::Server)) => counted(count, "release"),
        (_, Some(Factor::Settings)) => format!("{} of {server}", counted(count, "setting")),
        (_, Some(Factor::Kernel)) => format!("{} under {server}", counted(count, "kernel")),
        (_, Some(Factor::KernelArgs)) => format!("{} of {kernel}", counted(count, "kernel argument")),
        (_, Some(Factor::Sysctl)) => format!("{} of {kernel}", counted(count, "kernel parameter")),
        _ => counted(count, "level"),
    };
    let [good, bad] = [levels.first(), levels.last()].map(|level| level.map_or("", |level| &level.short));
    format!("{what}, from {good} to {bad}")
}

/// The levels with their names; of commits with their subjects, and with more about those that were found; of kernels with their
/// releases.
fn levels(plan: &Plan, bisection: &Bisection) -> Vec<Level> {
    let level = |position: &diagnose::Position| {
        let cell = plan.cells[position.cell].clone().masked();
        let name = plan.run.compare.map(|factor| factor.level(&cell)).unwrap_or_default();
        let commit = plan.server(&cell).and_then(|server| commit_of(&server.name)).map(|(_, commit)| commit);
        Level { short: commit.map_or_else(|| name.clone(), str::to_owned), name, ..Level::default() }
    };
    let mut levels: Vec<Level> = bisection.positions.iter().map(level).collect();
    match plan.run.compare {
        Some(Factor::Kernel) => kernels::describe(plan, &mut levels),
        Some(Factor::KernelArgs) => kernels::describe_arguments(&mut levels),
        _ => {}
    }
    let Some(Source::Build(build)) = plan.servers.first().map(|server| &server.source) else { return levels };
    if build.git_ref.is_none() || plan.run.compare != Some(Factor::Server) {
        return levels;
    }
    let commits = levels.iter().map(|level| level.short.as_str()).collect::<Vec<_>>().join("\n");
    let subjects = git(&build.location, &["log", "--no-walk=unsorted", "--format=%s", "--stdin"], &commits);
    for (level, subject) in levels.iter_mut().zip(subjects.lines()) {
        level.title = Some(subject.to_owned());
    }
    if let BisectionFinding::Found(found) = bisection.finding() {
        for position in found.into_iter().flat_map(|culprits| culprits.positions) {
            levels[position].details = details(&build.location, &levels[position].short);
        }
    }
    levels
}

/// Author, date and files of a commit.
pub(crate) fn details(repository: &Path, commit: &str) -> Vec<String> {
    let shown = git(repository, &["show", "--format=%an, %as", "--stat=74", "--end-of-options", commit], "");
    let mut lines: Vec<String> =
        shown.lines().filter(|line| !line.trim().is_empty()).map(|line| line.trim_end().to_owned()).collect();
    let summary = lines.pop();
    if lines.len() > MAX_FILES {
        lines.truncate(MAX_FILES);
        lines.push(" …".to_owned());
    }
    lines.extend(summary);
    lines
}

/// What a command of git prints; nothing if it fails, as the repository may be gone.
fn git(repository: &Path, arguments: &[&str], input: &str) -> String {
    host::git::read(repository, arguments, input).ok().flatten().unwrap_or_default()
}
