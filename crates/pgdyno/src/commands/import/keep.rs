//! Puts what was read into the store: all of it, once.

use std::collections::BTreeSet;
use std::path::Path;

use diagnose::within_run;
use import::Import;
use jiff::Timestamp;
use model::record::{Run, Trial};
use plaintext::table::{Format, Table};
use serde::Serialize;
use store::Store;

use super::ToArgs;
use crate::exit::{Exit, Usage};
use crate::output::{note, print, print_json};

/// `import --format json`, schema 1.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    run: &'a str,
    campaign: &'a str,
    tags: &'a [String],
    trials: usize,
    cells: usize,
    skipped: Vec<SkippedDocument<'a>>,
    unused_columns: &'a [String],
}

#[derive(Serialize)]
struct SkippedDocument<'a> {
    line: u64,
    column: Option<&'a str>,
    reason: &'a str,
}

/// Stores the trials. Each is there whole or not at all; where a process was killed between two of them, the next import
/// of the same goes on with the same run.
///
/// # Errors
/// They are there already; the store can't be written.
pub(super) fn keep(import: &Import, to: &ToArgs) -> anyhow::Result<Exit> {
    let store = Store::open(&to.store.root())?;
    let first = import.files.first().map_or("", |file| file.sha256.as_str());
    // Nobody else imports the same at the same time.
    let _claim = store.claim(&format!("import-{}", first.get(..16).unwrap_or(first)))?;
    let description = import.description();
    let trials = store.trials()?;
    let of_files =
        |trial: &&Trial| trial.imported.as_ref().is_some_and(|imported| import.is_of_same_files(imported));
    let earlier: Vec<&Trial> = trials.iter().filter(of_files).collect();
    let begun = earlier
        .iter()
        .copied()
        .find(|trial| trial.run.campaign_toml == description && !is_whole(&earlier, trial));
    let run = match (begun, earlier.last()) {
        (Some(begun), _) => {
            note(&format!("going on with run {}, whose import did not come to its end\n", begun.run.id));
            begun.run.clone()
        }
        (None, Some(there)) if !to.again => return Err(refusal(there, &description)),
        (None, _) => Run {
            id: store::new_id(),
            campaign: to.name.clone().unwrap_or_else(|| name(import)),
            campaign_toml: description,
            seed: None,
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            tags: to.tag.clone(),
            notes: None,
        },
    };
    let there: BTreeSet<u32> =
        earlier.iter().filter(|trial| trial.run.id == run.id).map(|trial| trial.position).collect();
    let at = Timestamp::now();
    for nth in 0..import.drafts.len() {
        if there.contains(&u32::try_from(nth + 1)?) {
            continue;
        }
        if let Some(mut record) = import.record(nth, store::new_id(), &run, at) {
            if let Some(summary) = record.trial.summary.as_mut().filter(|_| !record.intervals.is_empty()) {
                summary.statistics = Some(within_run(&record.intervals, store::hlog::latencies));
            }
            store.write(&record)?;
        }
    }
    tell(import, to, &run)?;
    Ok(Exit::Ok)
}

/// Whether the import that a trial is of has made all its trials.
fn is_whole(earlier: &[&Trial], trial: &Trial) -> bool {
    let made = earlier.iter().filter(|other| other.run.id == trial.run.id).count();
    trial.imported.as_ref().is_none_or(|imported| made >= imported.trials as usize)
}

fn refusal(there: &Trial, description: &str) -> anyhow::Error {
    let how = match there.run.campaign_toml == *description {
        true => "",
        false => ", in another way",
    };
    let at = there.imported.as_ref().map(|imported| imported.at.strftime(" on %Y-%m-%d").to_string());
    Usage(format!(
        "error: these files are in the store already{how}: as run {} ({}), imported{}\n\
         Look at it with `pgdyno report --run {}`, or import them once more with --again",
        there.run.id,
        there.run.campaign,
        at.unwrap_or_default(),
        there.run.id
    ))
    .into()
}

/// The first file's name without its ending, as campaigns are named.
fn name(import: &Import) -> String {
    let file = import.files.first().map_or(import.format, |file| file.name.as_str());
    let stem = Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
    stem.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

fn tell(import: &Import, to: &ToArgs, run: &Run) -> anyhow::Result<()> {
    let cells: BTreeSet<_> = import.drafts.iter().map(|draft| &draft.cell).collect();
    if !import.unused.is_empty() {
        note(&format!("columns that were not used: {}\n", import.unused.join(", ")));
    }
    for row in &import.skipped {
        note(&format!("left out: {row}\n"));
    }
    match to.format.get() {
        Format::Json => print_json(&Document {
            schema: 1,
            run: &run.id,
            campaign: &run.campaign,
            tags: &run.tags,
            trials: import.drafts.len(),
            cells: cells.len(),
            skipped: import
                .skipped
                .iter()
                .map(|row| SkippedDocument {
                    line: row.line,
                    column: row.column.as_deref(),
                    reason: &row.message,
                })
                .collect(),
            unused_columns: &import.unused,
        }),
        format => {
            let mut table = Table::new(["run", "campaign", "#trials", "#cells", "#left out"]);
            table.push(vec![
                run.id.clone(),
                run.campaign.clone(),
                import.drafts.len().to_string(),
                cells.len().to_string(),
                import.skipped.len().to_string(),
            ]);
            print(&table.render(format))
        }
    }
}
