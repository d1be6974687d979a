//! Resumption: the run that is continued, and the campaign that it continues with.

use std::path::{Path, PathBuf};

use host::Progress;
use model::cell::Cell;
use model::changes::Changes;
use model::record::{Run, Trial};
use model::secret::masked_keys;
use model::workload::{Custom, Workload, Workloads};
use store::{Store, StoreError};

use crate::campaign_file::{CampaignFile, CampaignFileError, overrides, pin, workloads_of};

/// Request to resume a run.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The campaign file, if one is named, with its text.
    pub file: Option<(&'a Path, &'a str)>,
    /// The run's id or the beginning of it; the newest run without one.
    pub run: Option<&'a str>,
    /// Whether to continue with an edited campaign.
    pub accepts_edits: bool,
    /// Overrides of the stored campaign, which continue with it as they say; only without a file.
    pub overrides: &'a [String],
    /// Receives progress while a large data set is read.
    pub progress: &'a dyn Progress,
}

/// A run that can be continued.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// Its campaign.
    pub file: CampaignFile,
    /// Path of the campaign file; without one, paths in the campaign are relative to the store's directory.
    pub path: PathBuf,
    /// The run, with the tags and notes of the campaign as it is now.
    pub run: Run,
    /// Its trials in the store.
    pub trials: Vec<Trial>,
    /// Changes of the campaign since the run began.
    pub changes: Changes,
}

/// Error of resuming a run.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The store has no such run.
    #[error(
        "there is no {wanted} in {}: a run that ended before its first trial was stored has nothing to resume\n\
         Start one with `pgdyno run`, or name another store with --store",
        store.display()
    )]
    NoRun {
        /// The run.
        wanted: String,
        /// Directory of the store.
        store: PathBuf,
    },
    /// Trials of the edited campaign would not be comparable with those of the run.
    #[error(
        "{path} has been edited such that its trials would differ from those of this run\n{}Start a new run with \
         `pgdyno run {path}`, or undo these changes",
        summary(changes),
        path = path.display()
    )]
    Conflict {
        /// The campaign file.
        path: PathBuf,
        /// Its changes.
        changes: Box<Changes>,
    },
    /// Trials with these overrides would not be comparable with those of the run.
    #[error(
        "with --set, trials would differ from those of this run\n{}Start a new run instead",
        summary(changes)
    )]
    ConflictingSet {
        /// Their changes.
        changes: Box<Changes>,
    },
    /// The campaign was edited.
    #[error(
        "{path} has been edited since this run began, or the run began with --set\n{}Continue with the file as it is now: \
         `pgdyno resume {path} --edited`; or as it was: `pgdyno resume --store …`",
        summary(changes),
        path = path.display()
    )]
    Edited {
        /// The campaign file.
        path: PathBuf,
        /// Its changes.
        changes: Box<Changes>,
    },
    /// The campaign in the store is without its secrets.
    #[error(
        "the campaign of run {run} is in the store without its secrets ({})\nName the campaign file: `pgdyno resume FILE`",
        masked.join(", ")
    )]
    Masked {
        /// The run.
        run: String,
        /// Keys of the campaign and scripts of its workloads.
        masked: Vec<String>,
    },
    /// The campaign can't be read.
    #[error(transparent)]
    Campaign(#[from] CampaignFileError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ResumeError {
    /// Whether there is nothing that can be continued as requested.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Campaign(_) | Self::Store(_))
    }
}

/// The run to continue and its campaign.
///
/// # Errors
/// There is no such run; the campaign was edited.
pub fn resume(store: &Store, request: Request<'_>) -> Result<Resumption, ResumeError> {
    let all = store.trials()?;
    let name = match request.file {
        Some((path, text)) => {
            let (text, none) = (text.to_owned(), Workloads::default());
            Some(CampaignFile::parse_with(path, text, None, &none, request.progress)?.plan.campaign)
        }
        None => None,
    };
    let mut run = newest(&all, name.as_deref(), request.run, store.root())?.clone();
    let trials: Vec<Trial> = all.into_iter().filter(|trial| trial.run.id == run.id).collect();
    if request.file.is_none() {
        let masked = masked_parts(&run, &trials);
        if !masked.is_empty() {
            return Err(ResumeError::Masked { run: run.id, masked });
        }
    }
    let path = request
        .file
        .map_or_else(|| store.root().with_file_name("campaign.toml"), |(path, _)| path.to_owned());
    // Bundles have the workloads that ran, even if their files have changed.
    let original = CampaignFile::parse_with(
        &path,
        run.campaign_toml.clone(),
        run.basis(),
        &workloads_of(trials.iter()),
        request.progress,
    )?;
    let file = match request.file {
        None if request.overrides.is_empty() => {
            return Ok(Resumption { file: original, path, run, trials, changes: Changes::default() });
        }
        None => {
            let text =
                overrides::apply(&run.campaign_toml, request.overrides).map_err(CampaignFileError::from)?;
            CampaignFile::parse_with(
                &path,
                text,
                run.basis(),
                &workloads_of(trials.iter()),
                request.progress,
            )?
        }
        Some((_, text)) => {
            let text = pin::with_table_of(text, &run.campaign_toml);
            CampaignFile::parse_with(&path, text, run.basis(), &Workloads::default(), request.progress)?
        }
    };
    let changes = Changes::between(&original.plan, &file.plan);
    if !changes.conflicting.is_empty() {
        let changes = Box::new(changes);
        return Err(match request.file {
            Some(_) => ResumeError::Conflict { path, changes },
            None => ResumeError::ConflictingSet { changes },
        });
    }
    if !changes.is_empty() && request.file.is_some() && !request.accepts_edits {
        return Err(ResumeError::Edited { path, changes: Box::new(changes) });
    }
    run.campaign_toml.clone_from(&file.text);
    // Tags of the command line stay.
    run.tags.retain(|tag| !original.plan.tags.contains(tag));
    run.tags.splice(0..0, file.plan.tags.iter().cloned());
    run.notes.clone_from(&file.plan.notes);
    Ok(Resumption { file, path, run, trials, changes })
}

/// Masked parts of a stored campaign, without which it can't be run.
fn masked_parts(run: &Run, trials: &[Trial]) -> Vec<String> {
    let Workloads(workloads) = workloads_of(trials.iter());
    let scripts = workloads.values().filter_map(Workload::custom).flat_map(Custom::masked_parts);
    masked_keys(&run.campaign_toml).into_iter().chain(scripts).collect()
}

/// The newest run of a campaign, or with an id.
fn newest<'t>(
    trials: &'t [Trial],
    campaign: Option<&str>,
    id: Option<&str>,
    store: &Path,
) -> Result<&'t Run, ResumeError> {
    let is_selected = |run: &Run| {
        campaign.is_none_or(|name| run.campaign == name)
            && id.is_none_or(|id| run.id.starts_with(&id.to_uppercase()))
    };
    // Imports have no campaign that could be run.
    let runs = trials.iter().filter(|trial| trial.imported.is_none()).map(|trial| &trial.run);
    runs.filter(|run| is_selected(run)).max_by(|a, b| a.id.cmp(&b.id)).ok_or_else(|| {
        let wanted = match (campaign, id) {
            (_, Some(id)) => format!("run {id}"),
            (Some(name), None) => format!("run of the campaign {name}"),
            (None, None) => "run".to_owned(),
        };
        ResumeError::NoRun { wanted, store: store.to_owned() }
    })
}

/// Changes of a campaign, a line each.
pub fn summary(changes: &Changes) -> String {
    const MAX_SHOWN: usize = 10;
    let list = |title: &str, cells: &[Cell]| -> String {
        if cells.is_empty() {
            return String::new();
        }
        let shown: String = cells.iter().take(MAX_SHOWN).map(|cell| format!("    {cell}\n")).collect();
        let more = cells.len().saturating_sub(MAX_SHOWN);
        let more = if more > 0 { format!("    and {more} more\n") } else { String::new() };
        format!("  {title}: {} cells\n{shown}{more}", cells.len())
    };
    let mut text = list("new", &changes.added);
    text += &list("removed (their trials stay in the store)", &changes.removed);
    text += &format!("  unchanged: {} cells\n", changes.kept);
    for change in changes.allowed.iter().chain(&changes.conflicting) {
        text += &format!("  {change}\n");
    }
    text
}
