//! Verifies a whole store: reads every file and trusts none.

mod values;

use std::path::Path;

use model::message::{Interval, Phase, ScriptInterval};
use model::record::TrialRecord;

use crate::error::{Defect, Problem, StoreError};
use crate::format;
use crate::{acceptances, bundle, hlog, index, phases, series};

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Number of bundles read.
    pub bundles: usize,
    /// All problems; empty if there are none.
    pub problems: Vec<Problem>,
}

/// Checks a store.
pub(crate) fn check(root: &Path, trials: &Path) -> Result<Check, StoreError> {
    let ids = bundle::list(trials)?;
    let mut problems: Vec<Problem> = ids
        .iter()
        .flat_map(|id| check_bundle(&trials.join(id)).into_iter().map(|defect| defect.in_bundle(id)))
        .collect();
    // Updates the index; its rows of unchanged bundles are compared below.
    index::listing(root, trials)?;
    problems.extend(index::differing(root, trials).into_iter().map(|id| Problem {
        bundle: None,
        file: Some(index::FILE.to_owned()),
        reason: format!("its entry for trial {id} differs from the bundle"),
        advice: "run `pgdyno store reindex`".to_owned(),
    }));
    problems.extend(leftovers(trials)?);
    problems.extend(acceptances::problems(root)?);
    Ok(Check { bundles: ids.len(), problems })
}

fn check_bundle(bundle: &Path) -> Vec<Defect> {
    let mut defects: Vec<Defect> =
        bundle::unlisted_files(bundle).into_iter().map(|file| Defect::unlisted(&file)).collect();
    let damaged = bundle::damaged_files(bundle);
    if !damaged.is_empty() {
        defects.extend(damaged);
        return defects;
    }
    match bundle::read(bundle) {
        Ok(record) => {
            defects.extend(values::problems(&record));
            defects.extend(check_counts(&record));
            for phase in &record.phases {
                let Some(of_phase) = record.of_phase(&phase.name) else { continue };
                let found = values::problems(&of_phase).into_iter().chain(check_counts(&of_phase));
                let directory = phases::directory(&phase.name);
                defects.extend(found.map(|defect| match defect.file.as_str() {
                    format::TRIAL => defect,
                    _ => defect.in_directory(&directory),
                }));
            }
        }
        Err(defect) => defects.push(defect),
    }
    defects
}

/// Compares the transaction counts of histograms, series and summary.
fn check_counts(record: &TrialRecord) -> Vec<Defect> {
    let mut defects = Vec::new();
    let (mut window, mut all) = (0, 0);
    for interval in &record.intervals {
        match check_interval(interval, record.trial.imported.is_some()) {
            Ok((count, background)) => {
                all += count + background;
                window += if interval.phase == Phase::Measure { count } else { 0 };
            }
            Err(defect) => defects.push(defect),
        }
    }
    if !defects.is_empty() || record.intervals.is_empty() || record.trial.imported.is_some() {
        return defects;
    }
    let summary = record.trial.summary.as_ref().and_then(|summary| summary.transactions);
    let accounting = record.trial.accounting.driver_transactions;
    for (what, histograms, stated) in [("in the window", window, summary), ("in total", all, accounting)] {
        if let Some(stated) = stated.filter(|stated| *stated != histograms) {
            let reason = format!(
                "the histograms contain {histograms} transactions {what}, {} {stated}",
                format::TRIAL
            );
            defects.push(Defect::damaged(hlog::FILE, reason));
        }
    }
    defects
}

/// Transactions in the interval's histograms without unfinished ones, of its workload and of background workloads; they
/// must equal those of the series. An imported trial may have no histograms, and its totals may come from another source.
fn check_interval(interval: &Interval, imported: bool) -> Result<(u64, u64), Defect> {
    let count = |scripts| check_scripts(scripts, interval.start_us, imported);
    Ok((count(&interval.scripts)?, count(&interval.background)?))
}

fn check_scripts(scripts: &[ScriptInterval], start_us: u64, imported: bool) -> Result<u64, Defect> {
    let mut total = 0;
    for script in scripts {
        let at = format!("script \"{}\" at {} µs of the load", script.script, start_us);
        if imported && script.latencies.is_empty() {
            continue;
        }
        let mut count = 0;
        for of_phase in &script.latencies {
            count += hlog::count(&of_phase.latency_ns)
                .map_err(|reason| Defect::damaged(hlog::FILE, format!("{at}: {reason}")))?;
        }
        let stated = script.transactions + script.unfinished.unwrap_or(0);
        if count != stated {
            let reason =
                format!("{at}: the histograms contain {count} transactions, {} {stated}", series::FILE);
            return Err(Defect::damaged(hlog::FILE, reason));
        }
        total += script.transactions;
    }
    Ok(total)
}

fn leftovers(trials: &Path) -> Result<Vec<Problem>, StoreError> {
    let unknown = bundle::unknown_entries(trials)?;
    let other = |name: String| Problem {
        bundle: None,
        file: Some(format!("trials/{name}")),
        reason: "it is not a bundle".to_owned(),
        advice: "move it out of the store".to_owned(),
    };
    let partial = |name: String| Problem {
        bundle: None,
        file: Some(format!("trials/{name}")),
        reason: "it is incomplete: its writer was killed".to_owned(),
        advice: "it is removed when the next trial is stored".to_owned(),
    };
    let mut problems: Vec<Problem> = unknown.others.into_iter().map(other).collect();
    if !bundle::is_being_written(trials) {
        problems.extend(unknown.partials.into_iter().map(partial));
    }
    Ok(problems)
}
