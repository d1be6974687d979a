//! The phase before the load: brings the server into the state in which the load begins.

use std::time::Duration;

use model::factor::cache::CacheState;
use model::outage::Outage;
use model::record::RawRead;
use server::RawReading;

use super::ActiveTrial;
use crate::hooks::{HookEnv, HookError};
use crate::rig::ServerUnderTest;

/// Time limit of a replica to receive what the preparation wrote.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// Results of the preparation.
#[derive(Default)]
pub(super) struct Prepared {
    /// The expected count of commits in the tested database, if known.
    pub(super) commits: Option<u64>,
    /// The throughput of the disk, if the workload asks for it.
    pub(super) raw_read: Option<RawRead>,
    /// Notes for the record.
    pub(super) notes: Vec<String>,
}

/// Error of the preparation.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error("the server could not be prepared: {0}")]
    Server(#[from] server::Error),
}

impl PrepareError {
    /// The outage that is the reason, if it is one.
    pub(super) fn outage(&self) -> Option<Outage> {
        match self {
            Self::Hook(error) => host::is_exhausted(error).then_some(Outage::Exhausted),
            Self::Server(error) => error.outage(),
        }
    }
}

/// Prepares a server whose tested database has counted `commits`, if known.
///
/// # Errors
/// The hook fails; the server reports an error, or does not answer.
pub(super) fn prepare(
    trial: &ActiveTrial,
    server: &dyn ServerUnderTest,
    mut commits: Option<u64>,
    env: &HookEnv,
) -> Result<Prepared, PrepareError> {
    let context = trial.context;
    let settings = &context.plan.run;
    let (mut raw_read, mut notes) = (None, Vec::new());
    if let Some(hook) = &context.plan.hooks.before_trial {
        context.rig.run_hook(hook, env, context.interrupt)?;
        // It may have used the tested database.
        commits = None;
    }
    let mut count = |more: u64| commits = commits.map(|known| known + more);
    if let Some(statement) = settings.vacuum.statement() {
        count(server.run(statement)?);
    }
    if settings.checkpoint && !server.checkpoint()? {
        notes.push("no checkpoint before the load: the role may not run CHECKPOINT".to_owned());
    }
    if trial.cell.cache == CacheState::Warm {
        let warmed = server.warm()?;
        count(warmed.commits);
        if !warmed.prewarmed {
            notes.push(
                "pg_prewarm is not available: tables were warmed by scans, and indexes not at all".to_owned(),
            );
        }
    }
    let relation = trial.cell.workload.custom().and_then(|custom| custom.raw_read.as_deref());
    if let (CacheState::Cold, Some(relation)) = (trial.cell.cache, relation) {
        match server.raw_read(relation, context.program, context.interrupt)? {
            None => {
                notes.push(format!(
                    "no raw read of \"{relation}\": the server's files are not on this machine"
                ));
            }
            Some(RawReading { outcome, commits }) => {
                count(commits);
                match outcome {
                    Ok(read) => raw_read = Some(read),
                    Err(why) => notes.push(format!("no raw read of \"{relation}\": {why}")),
                }
            }
        }
    }
    if !server.catch_up(CATCH_UP_TIMEOUT)? {
        notes.push(format!(
            "the replica had not received everything {} s after the preparation: it lags from the start of the load on",
            CATCH_UP_TIMEOUT.as_secs()
        ));
    }
    if !settings.settle.is_zero() {
        context.rig.pause(settings.settle.duration(), context.interrupt);
    }
    Ok(Prepared { commits, raw_read, notes })
}
