//! The answer of a bisection, from its plan and its trials in the store.

use std::collections::BTreeMap;

use analysis::bisection::{BisectionState, bisection};
use analysis::overview::read_trials;
use clap::ValueEnum;
use model::factor::Factor;
use model::plan::Plan;
use model::record::{Run, Trial};
use model::units::Rate;
use report::bisect::{Document, text};
use store::Store;

use crate::exit::Exit;
use crate::output::{command_line, print, print_json};
use crate::reading::Reading;

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
    let reading = Reading::of(store)?;
    let trials: Vec<&Trial> = reading.trials().iter().filter(|trial| trial.run.id == run.id).collect();
    if trials.is_empty() {
        return Ok(None);
    }
    let mut contexts = BTreeMap::new();
    let view = read_trials(&reading, &trials, &mut contexts)?;
    // By this plan, which may have changed since the trials were run.
    let Some(bisection) = bisection(plan, &trials, &contexts, &|_| None) else { return Ok(None) };
    match format {
        BisectionFormat::Table => {
            let mut facts = vec![("bisect", bisection.searched.clone()), ("load", load(plan))];
            facts.extend(view.environment.machine.map(|machine| ("machine", machine.replace(" · ", ", "))));
            facts.push(("measured by", measured_by(run, &trials)));
            print(&text(&bisection, &facts, &command_line(&[])))?;
        }
        BisectionFormat::Json => print_json(&Document::new(&bisection))?,
    }
    Ok(Some(match bisection.state {
        BisectionState::Found | BisectionState::NothingToFind => Exit::Ok,
        BisectionState::EndsOpen | BisectionState::Searching | BisectionState::NoVerdict => {
            Exit::UndecidedGate
        }
    }))
}

/// The levels that all cells have.
fn load(plan: &Plan) -> String {
    let Some(first) = plan.cells.first() else { return String::new() };
    let mut load = vec![Factor::Workload, Factor::Scale, Factor::Clients, Factor::Protocol];
    if first.rate != Rate::MAX {
        load.push(Factor::Rate);
    }
    let load = load.iter().map(|factor| format!("{} {}", factor.name(), factor.level(first)));
    load.collect::<Vec<_>>().join(", ")
}

/// The release that measured it, and the day.
fn measured_by(run: &Run, trials: &[&Trial]) -> String {
    let day = trials.iter().filter_map(|trial| trial.started).min();
    let day = day.map(|at| format!(", {}", at.strftime("%Y-%m-%d"))).unwrap_or_default();
    format!("pgdyno {}{day}", run.pgdyno_version)
}
