//! Selection of a run of a store.

use std::collections::BTreeMap;

use model::record::Run;
use store::StoreError;

/// A run to report on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunSelection {
    /// The latest run in the store.
    #[default]
    Latest,
    /// The latest run of this campaign.
    Campaign(String),
    /// The run whose id has this prefix.
    Run(String),
}

/// Error of selecting a run.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store has no trials.
    #[error("the store has no trials yet: run a campaign first (`pgdyno run FILE.toml`)")]
    Empty,
    /// No run is selected.
    #[error("the store has no run {wanted}; it has{known}")]
    Unknown {
        /// The requested run or campaign.
        wanted: String,
        /// The existing runs, one per line.
        known: String,
    },
    /// The prefix of an id matches several runs.
    #[error("more than one run begins with \"{wanted}\":{known}")]
    Ambiguous {
        /// The requested prefix.
        wanted: String,
        /// The matching runs, one per line.
        known: String,
    },
}

/// The id of the selected run. Ids sort by time.
pub fn select_run<'a>(
    runs: impl Iterator<Item = &'a Run>,
    selection: &RunSelection,
) -> Result<String, ReadError> {
    let runs: BTreeMap<&str, &Run> = runs.map(|run| (run.id.as_str(), run)).collect();
    if runs.is_empty() {
        return Err(ReadError::Empty);
    }
    let selected: Vec<&Run> = runs
        .values()
        .copied()
        .filter(|run| match selection {
            RunSelection::Latest => true,
            RunSelection::Campaign(name) => run.campaign == *name,
            RunSelection::Run(prefix) => run.id.starts_with(&prefix.to_ascii_uppercase()),
        })
        .collect();
    match (selection, selected.as_slice()) {
        (RunSelection::Run(wanted), [_, _, ..]) => {
            Err(ReadError::Ambiguous { wanted: wanted.clone(), known: list(&selected) })
        }
        (_, [.., latest]) => Ok(latest.id.clone()),
        (selection, []) => {
            let wanted = match selection {
                RunSelection::Latest => String::new(),
                RunSelection::Campaign(name) => format!("of a campaign \"{name}\""),
                RunSelection::Run(prefix) => format!("\"{prefix}\""),
            };
            let all: Vec<&Run> = runs.into_values().collect();
            Err(ReadError::Unknown { wanted, known: list(&all) })
        }
    }
}

/// The latest runs, one per line.
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
                processors: None,
                pgdyno_version: "0.1.0".to_owned(),
                tags: Vec::new(),
                notes: None,
            })
            .into()
    }

    fn selected(selection: RunSelection) -> Result<String, String> {
        select_run(runs().iter(), &selection).map_err(|error| error.to_string())
    }

    #[test]
    fn the_latest_is_the_one_with_the_greatest_id() {
        assert_eq!(selected(RunSelection::Latest), Ok("01C2".to_owned()));
        assert_eq!(selected(RunSelection::Campaign("nightly".to_owned())), Ok("01C1".to_owned()));
        assert_eq!(selected(RunSelection::Run("01b".to_owned())), Ok("01B".to_owned()));
    }

    #[test]
    fn an_unknown_run_is_reported_with_the_existing_ones() {
        let error = selected(RunSelection::Campaign("quik".to_owned())).unwrap_err();
        assert_eq!(
            error,
            "the store has no run of a campaign \"quik\"; it has\n  01C2 quick\n  01C1 nightly\n  01B nightly\n  01A quick"
        );
        let error = selected(RunSelection::Run("01C".to_owned())).unwrap_err();
        assert_eq!(error, "more than one run begins with \"01C\":\n  01C2 quick\n  01C1 nightly");
        assert!(
            select_run(std::iter::empty(), &RunSelection::Latest)
                .unwrap_err()
                .to_string()
                .contains("pgdyno run")
        );
    }
}
