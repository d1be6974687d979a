//! A report in one file: the view, the histories, and as much detail of each trial as the file may hold.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use model::record::TrialRecord;
use store::{StoreError, StoreReader};

use crate::history;
use crate::html::{compressed, page};
use crate::json::json;
use analysis::history::run_histories;
use analysis::overview::view::View;
use analysis::trial::{Points, detail};

/// Error of a report file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// An acceptance of a shift can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The figures could not be compressed.
    #[error("the figures could not be compressed: {0}")]
    Compress(#[from] io::Error),
    /// A directory has the file's name.
    #[error("could not write the report to {}: it is a directory; name a file in it", .0.display())]
    Directory(PathBuf),
    /// The file could not be written.
    #[error("could not write the report to {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

/// A report as a file, and the details that it omits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// The page.
    pub html: String,
    /// Most points of a series if trials are thinned; none if no trial was longer.
    pub thinned_to: Option<usize>,
    /// Number of trials without detail in it, for lack of room.
    pub left_out: usize,
}

impl ReportFile {
    /// Writes the page under a temporary name and renames it: readers see the old file or the new one.
    ///
    /// # Errors
    /// The path is a directory, or can't be written.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        // A symbolic link is kept: its target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.is_dir() {
            return Err(FileError::Directory(path));
        }
        let written = if path.exists() && !path.is_file() {
            // A device or a pipe can't be replaced.
            fs::write(&path, &self.html)
        } else {
            replace(&path, &self.html)
        };
        written.map_err(|source| FileError::Write { path, source })
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    write_synced(&temporary, text).and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Most bytes that the details of all trials take in a file, so that it can be sent by mail.
pub const MAX_DETAIL_BYTES: usize = 20_000_000;
/// Fewest points of a series: with less room, trials lose their detail instead.
const MIN_POINTS: usize = 60;
/// Most points of a series: more than the width of a screen.
const MAX_POINTS: usize = 2000;
/// Share of the room that is planned for, because trials differ.
const TARGET_SHARE: f64 = 0.85;

/// Creates the file of a view, with details of trials in at most `room_bytes`. Series are thinned until every trial
/// fits; if even the fewest points do not fit, only the trials nearest to their cell's median have detail. Trials that
/// can't be read have none, and are added to those that the view leaves out.
///
/// # Errors
/// An acceptance of a shift can't be read.
pub fn file(reader: &StoreReader, mut view: View, room_bytes: usize) -> Result<ReportFile, FileError> {
    let trials = by_distance_from_mean(&view);
    let mut histories = Vec::new();
    for run in &view.runs {
        let found = run_histories(reader, &run.id)?;
        histories.extend(found.iter().map(history::Document::new));
    }
    let points = match trials.iter().find_map(|trial| reader.load(trial)) {
        Some(first) => points(&first, trials.len(), room_bytes)?,
        None => MAX_POINTS,
    };
    let (mut details, mut left) = (Vec::new(), room_bytes);
    let (mut is_thinned, mut unreadable) = (false, 0);
    for trial in &trials {
        let Some(record) = reader.load(trial) else {
            unreadable += 1;
            continue;
        };
        let detail = detail(&record, Points::AtMost(points));
        is_thinned |=
            detail.load.tps_low.is_some() || detail.metrics.iter().any(|metric| metric.low.is_some());
        let data = compressed(&json(&detail))?;
        match left.checked_sub(base64_len(data.len())) {
            Some(rest) => left = rest,
            None => break,
        }
        details.push((trial.clone(), data));
    }
    let left_out = trials.len() - unreadable - details.len();
    view.left_out = analysis::left_out(reader.left_out());
    let html = page(&view, &histories, details)?;
    Ok(ReportFile { html, thinned_to: is_thinned.then_some(points), left_out })
}

fn base64_len(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// Points of each series at which all trials fit if they are like this one, found by compressing its detail.
fn points(record: &TrialRecord, trials: usize, room: usize) -> Result<usize, FileError> {
    let each = TARGET_SHARE * room as f64 / trials as f64;
    let mut points = MAX_POINTS;
    while points > MIN_POINTS {
        let data = compressed(&json(&detail(record, Points::AtMost(points))))?;
        if base64_len(data.len()) as f64 <= each {
            return Ok(points);
        }
        // Thinned series have extremes in addition to the mean: slight thinning takes more room, not less.
        points = points * 3 / 4;
    }
    Ok(MIN_POINTS)
}

/// Ids of all trials: of each cell the nearest to its mean, then the second, and so on; a cell's invalid ones last.
fn by_distance_from_mean(view: &View) -> Vec<String> {
    let mut by_rank: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let points = view.panels.iter().flat_map(|panel| &panel.rows).flat_map(|row| row.points.iter().flatten());
    for point in points {
        let mut trials: Vec<_> = point.runs.iter().collect();
        trials.sort_by(|a, b| {
            let distance = |trial: &analysis::overview::view::Trial| {
                Some((trial.figure?.ln() - point.mean?.ln()).abs()).filter(|far| far.is_finite())
            };
            let key = |trial| (trial_is_invalid(trial), distance(trial).unwrap_or(f64::INFINITY));
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        for (rank, trial) in trials.into_iter().enumerate() {
            by_rank.entry(rank).or_default().push(&trial.id);
        }
    }
    by_rank.into_values().flatten().map(str::to_owned).collect()
}

fn trial_is_invalid(trial: &analysis::overview::view::Trial) -> bool {
    trial.validity == model::record::Status::Invalid.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, html: &str) -> Result<(), FileError> {
        ReportFile { html: html.to_owned(), thinned_to: None, left_out: 0 }.write(path)
    }

    #[test]
    fn a_report_replaces_the_last_one_and_leaves_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write(&path, "old").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.html"), folder.path().join("latest.html"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
    }

    #[test]
    fn errors_name_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(folder.path(), "").unwrap_err().to_string();
        assert!(error.contains("is a directory"), "{error}");
        let missing = folder.path().join("missing/report.html");
        let error = write(&missing, "").unwrap_err().to_string();
        assert!(error.contains("missing/report.html") && error.contains("No such file"), "{error}");
    }
}
