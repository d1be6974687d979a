//! A run under its claim and with its live file.

use crate::campaign::{Campaign, RunOutcome};
use crate::error::RunError;
use crate::live_file::LiveFile;

/// Claims the run, so that no other pgdyno runs it at the same time, executes it, and reports its progress to its live file
/// in the store as well.
///
/// # Errors
/// As [`Campaign::execute`]; another pgdyno has claimed the run.
pub fn run(campaign: &Campaign) -> Result<RunOutcome, RunError> {
    let _claim = campaign.store.claim(&campaign.run.id)?;
    let Campaign { plan, run, trials, store, observer, .. } = *campaign;
    let live = LiveFile::begin(store, plan, run, trials, observer);
    let outcome = Campaign { observer: &live, ..*campaign }.execute();
    live.end(&outcome);
    outcome
}
