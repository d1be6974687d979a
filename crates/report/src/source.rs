//! The trials of one run, from the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use diagnose::KernelOptions;
use model::record::{Run, Trial};
use store::{Part, Store, StoreError};

use crate::analyse::{Surroundings, analyse};
use crate::profile::{Kind, TrialProfile};
use crate::spans::spans;
use crate::view::View;

/// Which run to report on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// The latest in the store.
    #[default]
    Latest,
    /// The latest of this campaign.
    Campaign(String),
    /// The one whose id begins so.
    Run(String),
}

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are no trials at all.
    #[error("the store has no trials yet: run a campaign first (`pgdyno run FILE.toml`)")]
    Empty,
    /// No run is selected.
    #[error("the store has no run {wanted}; it has{known}")]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// The runs that there are, one a line.
        known: String,
    },
    /// The beginning of an id is not enough.
    #[error("more than one run begins with \"{wanted}\":{known}")]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The runs that begin so, one a line.
        known: String,
    },
}

/// Reads the trials of the selected run with what surrounded them, and analyses them.
///
/// # Errors
/// The store or one of the run's bundles can't be read, or nothing there is what the selection asks for.
pub fn read(store: &Store, selection: &Selection) -> Result<View, ReadError> {
    let trials = store.trials()?;
    let id = select(trials.iter().map(|trial| &trial.run), selection)?;
    Ok(view(store, trials, &id)?)
}

/// Reads and analyses the trials of the run with this id; none where it has left no trial.
///
/// # Errors
/// The store or one of the run's bundles can't be read.
pub fn of_run(store: &Store, id: &str) -> Result<Option<View>, StoreError> {
    let trials = store.trials()?;
    match trials.iter().any(|trial| trial.run.id == id) {
        true => view(store, trials, id).map(Some),
        false => Ok(None),
    }
}

fn view(store: &Store, trials: Vec<Trial>, run: &str) -> Result<View, StoreError> {
    let trials: Vec<Trial> = trials.into_iter().filter(|trial| trial.run.id == run).collect();
    let mut surroundings = surroundings(store, &trials.iter().collect::<Vec<_>>())?;
    read_kernel_options(store, &mut surroundings)?;
    Ok(analyse(&trials, &surroundings))
}

/// Reads what surrounded these trials, by their ids.
pub(crate) fn surroundings(
    store: &Store,
    trials: &[&Trial],
) -> Result<BTreeMap<String, Surroundings>, StoreError> {
    let mut surroundings = BTreeMap::new();
    let mut reader = store.surroundings();
    // Of an imported trial's surroundings nothing is known.
    for trial in trials.iter().filter(|trial| trial.imported.is_none()) {
        let store::Surroundings { environment, settings, has_spans } = reader.of(&trial.id)?;
        let mut of_trial = Surroundings { environment, settings, ..Surroundings::default() };
        // Bundles are large, and most have neither.
        if has_spans {
            of_trial.spans = spans(&store.load_parts(&trial.id, &[Part::Spans, Part::Metrics])?);
        }
        if trial.profile.is_some() {
            let record = store.load_parts(&trial.id, &[Part::Stacks, Part::Series])?;
            of_trial.profiles =
                Kind::ALL.iter().filter_map(|kind| TrialProfile::of(&record, *kind)).collect();
        }
        surroundings.insert(trial.id.clone(), of_trial);
    }
    Ok(surroundings)
}

/// Puts to each trial how its kernel was configured, where not all have the same: each configuration is read once, of the
/// first bundle that has it.
pub(crate) fn read_kernel_options(
    store: &Store,
    surroundings: &mut BTreeMap<String, Surroundings>,
) -> Result<(), StoreError> {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for (id, known) in &*surroundings {
        if let Some(config) = &known.environment.kernel_facts.config {
            first.entry(config.sha256.clone()).or_insert_with(|| id.clone());
        }
    }
    if first.len() < 2 {
        return Ok(());
    }
    let mut options: BTreeMap<String, Arc<KernelOptions>> = BTreeMap::new();
    for (hash, id) in first {
        if let Some(read) = kernel_options(store, &id)? {
            options.insert(hash, Arc::new(read));
        }
    }
    for known in surroundings.values_mut() {
        let config = known.environment.kernel_facts.config.as_ref();
        known.kernel_options = config.and_then(|config| options.get(&config.sha256)).cloned();
    }
    Ok(())
}

/// How the kernel of a trial was configured; none where its bundle does not have that.
pub(crate) fn kernel_options(store: &Store, id: &str) -> Result<Option<KernelOptions>, StoreError> {
    Ok(store.log(id, "kernel-config")?.map(|text| KernelOptions::read(&text)))
}

/// The id of the selected run. Ids sort by time.
pub(crate) fn select<'a>(
    runs: impl Iterator<Item = &'a Run>,
    selection: &Selection,
) -> Result<String, ReadError> {
    let runs: BTreeMap<&str, &Run> = runs.map(|run| (run.id.as_str(), run)).collect();
    if runs.is_empty() {
        return Err(ReadError::Empty);
    }
    let selected: Vec<&Run> = runs
        .values()
        .copied()
        .filter(|run| match selection {
            Selection::Latest => true,
            Selection::Campaign(name) => run.campaign == *name,
            Selection::Run(prefix) => run.id.starts_with(&prefix.to_ascii_uppercase()),
        })
        .collect();
    match (selection, selected.as_slice()) {
        (Selection::Run(wanted), [_, _, ..]) => {
            Err(ReadError::Ambiguous { wanted: wanted.clone(), known: list(&selected) })
        }
        (_, [.., latest]) => Ok(latest.id.clone()),
        (selection, []) => {
            let wanted = match selection {
                Selection::Latest => String::new(),
                Selection::Campaign(name) => format!("of a campaign \"{name}\""),
                Selection::Run(prefix) => format!("\"{prefix}\""),
            };
            let all: Vec<&Run> = runs.into_values().collect();
            Err(ReadError::Unknown { wanted, known: list(&all) })
        }
    }
}

/// The latest runs, one a line.
fn list(runs: &[&Run]) -> String {
    const SHOWN: usize = 10;
    let mut out = String::new();
    for run in runs.iter().rev().take(SHOWN) {
        out += &format!("\n  {} {}", run.id, run.campaign);
    }
    if runs.len() > SHOWN {
        out += &format!("\n  and {} older", runs.len() - SHOWN);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<Run> {
        [("01B", "nightly"), ("01A", "quick"), ("01C2", "quick"), ("01C1", "nightly")]
            .map(|(id, campaign)| Run {
                id: id.to_owned(),
                campaign: campaign.to_owned(),
                campaign_toml: String::new(),
                seed: Some(1),
                pgdyno_version: "0.1.0".to_owned(),
                tags: Vec::new(),
                notes: None,
            })
            .into()
    }

    fn selected(selection: Selection) -> Result<String, String> {
        select(runs().iter(), &selection).map_err(|error| error.to_string())
    }

    #[test]
    fn the_latest_is_the_one_with_the_greatest_id() {
        assert_eq!(selected(Selection::Latest), Ok("01C2".to_owned()));
        assert_eq!(selected(Selection::Campaign("nightly".to_owned())), Ok("01C1".to_owned()));
        assert_eq!(selected(Selection::Run("01b".to_owned())), Ok("01B".to_owned()));
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        let error = selected(Selection::Campaign("quik".to_owned())).unwrap_err();
        assert_eq!(
            error,
            "the store has no run of a campaign \"quik\"; it has\n  01C2 quick\n  01C1 nightly\n  01B nightly\n  01A quick"
        );
        let error = selected(Selection::Run("01C".to_owned())).unwrap_err();
        assert_eq!(error, "more than one run begins with \"01C\":\n  01C2 quick\n  01C1 nightly");
        assert!(
            select(std::iter::empty(), &Selection::Latest).unwrap_err().to_string().contains("pgdyno run")
        );
    }
}
