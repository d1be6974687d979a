//! `phases/<name>/`: the measurements of a phase that is not judged, in the files that a trial has for its own.

use jiff::Timestamp;
use model::record::{PhaseRecord, TrialRecord};
use model::waits::Waits;

use crate::error::Defect;
use crate::files::Files;
use crate::format;
use crate::{hlog, intervals, metrics, series, statements, waits};

/// Directory of the phases.
const PHASES: &str = "phases/";

/// The file of a phase within the phase's directory; none for a file of the trial.
pub(crate) fn file_of_phase(path: &str) -> Option<&str> {
    let (_, file) = path.strip_prefix(PHASES)?.split_once('/')?;
    Some(file)
}

/// The directory of a phase, with the slash at its end.
pub(crate) fn directory(phase: &str) -> String {
    format!("{PHASES}{phase}/")
}

/// The part of a record that its files keep.
pub(crate) fn normalize(phase: &mut PhaseRecord) {
    phase.waits.iter_mut().for_each(Waits::rename_event);
    phase.metrics.0.retain(|series| !series.points.is_empty());
}

/// Adds the files of a record's phases.
pub(crate) fn write(record: &TrialRecord, files: &mut Files) -> Result<(), Defect> {
    let id = &record.trial.id;
    for phase in &record.phases {
        check_name(&phase.name)?;
        let outcome = record.trial.phases.iter().find(|outcome| outcome.name == phase.name);
        let load_started = outcome.and_then(|outcome| outcome.load_started).unwrap_or(Timestamp::UNIX_EPOCH);
        let directory = directory(&phase.name);
        let mut add = |file: &str, content: Vec<u8>| {
            files.insert(format!("{directory}{file}"), content);
        };
        // It marks the phase as one that ran.
        add(series::FILE, series::write(id, &phase.intervals)?);
        if let Some(log) = hlog::write(load_started, &phase.intervals)? {
            add(hlog::FILE, log.into_bytes());
        }
        if phase.metrics.0.iter().any(|series| !series.points.is_empty()) {
            add(metrics::FILE, metrics::write(id, &phase.metrics)?);
        }
        if !phase.waits.is_empty() {
            add(waits::FILE, waits::write(id, &phase.waits)?);
        }
        if !phase.statements.is_empty() {
            add(statements::FILE, statements::write(id, &phase.statements)?);
        }
    }
    Ok(())
}

/// Takes the phases with these names out of a bundle's files; one without any file is left out.
pub(crate) fn read(names: &[String], files: &mut Files) -> Result<Vec<PhaseRecord>, Defect> {
    let mut phases = Vec::new();
    for name in names {
        check_name(name)?;
        let directory = directory(name);
        let paths: Vec<String> = files.keys().filter(|path| path.starts_with(&directory)).cloned().collect();
        let mut own = Files::new();
        for path in paths {
            own.extend(files.remove(&path).map(|content| (path[directory.len()..].to_owned(), content)));
        }
        if own.is_empty() {
            continue;
        }
        let phase = read_phase(name, own);
        phases.push(phase.map_err(|defect| defect.in_directory(&directory))?);
    }
    Ok(phases)
}

fn read_phase(name: &str, mut files: Files) -> Result<PhaseRecord, Defect> {
    Ok(PhaseRecord {
        name: name.to_owned(),
        intervals: intervals::read(&mut files)?,
        metrics: files.remove(metrics::FILE).map_or_else(|| Ok(Default::default()), metrics::read)?,
        waits: files.remove(waits::FILE).map_or(Ok(Vec::new()), waits::read)?,
        statements: files.remove(statements::FILE).map_or(Ok(Vec::new()), statements::read)?,
    })
}

/// Refuses a name that is no directory's.
fn check_name(name: &str) -> Result<(), Defect> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(plain) {
        true => Ok(()),
        false => {
            let reason = format!(
                "\"{name}\" is no name of a phase: it consists of letters, digits, `-`, `_` and `.`, and begins with none of these"
            );
            Err(Defect::damaged(format::TRIAL, reason))
        }
    }
}
