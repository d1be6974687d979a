//! The histories in a run's report: of its campaign over time, and over the run's own factors.

use std::collections::BTreeSet;

use model::factor::Factor;
use model::merit::Merit;
use model::record::Trial;
use store::{StoreError, StoreReader};

use super::{History, HistoryAxis, HistoryError, Request, history};
use crate::metric::Metric;
use crate::select::Selector;

/// The fewest steps of a history.
const MIN_STEPS: usize = 4;

/// Histories of what the run's cells are judged by: over the runs of the same campaign, and over versions, commits and kernels within the run;
/// each if it has at least four steps.
///
/// # Errors
/// An acceptance can't be read.
pub fn run_histories(reader: &StoreReader, run: &str) -> Result<Vec<History>, StoreError> {
    let all = reader.trials();
    let of_run: Vec<&Trial> = all.iter().filter(|trial| trial.run.id == run).collect();
    let Some(first) = of_run.first() else { return Ok(Vec::new()) };
    let campaign = &first.run.campaign;
    let of_campaign = all.iter().filter(|trial| trial.run.campaign == *campaign);
    let runs: BTreeSet<&str> = of_campaign.map(|trial| trial.run.id.as_str()).collect();
    let levels = |factor: Factor| factor.levels(of_run.iter().map(|trial| &trial.cell)).len();
    let may_have = [
        (HistoryAxis::Date, Selector::from_campaign(campaign), runs.len()),
        (HistoryAxis::Version, Selector::from_run(run), levels(Factor::Server)),
        (HistoryAxis::Commit, Selector::from_run(run), levels(Factor::Server)),
        (HistoryAxis::Kernel, Selector::from_run(run), levels(Factor::Kernel)),
    ];
    let merits: BTreeSet<Merit> = of_run.iter().map(|trial| Merit::of(&trial.cell)).collect();
    let mut found = Vec::new();
    let may_have = may_have.into_iter().filter(|(.., steps)| *steps >= MIN_STEPS);
    for ((over, selector, _), merit) in
        may_have.flat_map(|one| merits.iter().map(move |merit| (one.clone(), merit)))
    {
        let request = Request {
            metric: Metric::of(*merit),
            over,
            selectors: vec![selector],
            only_own: true,
            control: None,
            without: Vec::new(),
            gates: Vec::new(),
            newest: None,
            repository: None,
        };
        match history(reader, &request) {
            Ok(history) if history.steps.len() >= MIN_STEPS => found.push(history),
            // Histories that this run does not support are omitted.
            Ok(_) => {}
            Err(HistoryError::Store(error)) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(found)
}
