//! Conversion between a trial's record and the files of its bundle, in memory.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use model::metrics::Metrics;
use model::record::{Environment, Log, Setting, Trial, TrialRecord};
use model::secret::MaskSecrets;
use model::waits::Waits;

use crate::compressed::{Unpacker, pack, shortened};
use crate::error::{Defect, StoreError};
use crate::files::Files;
use crate::format::{self, environment, event, setting, trial};
use crate::{hlog, id, intervals, metrics, phases, played, series, spans, stacks, statements, waits};

/// Text of the run's campaign.
pub(crate) const CAMPAIGN: &str = "campaign.toml";

/// Environment and settings of a trial, and what else tells where its server is from.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredContext {
    /// The machine.
    pub environment: Environment,
    /// The server's settings, shared by all trials with identical ones.
    pub settings: Arc<Vec<Setting>>,
    /// Whether the bundle has the spans of its transactions.
    pub has_spans: bool,
    /// The [logs](model::commit_log) about commits.
    pub commit_logs: Vec<Log>,
}

impl MaskSecrets for StoredContext {
    fn mask_secrets(&mut self) {
        // The settings, which are shared, are masked already.
        self.environment.mask_secrets();
        self.commit_logs.mask_secrets();
    }
}

/// Encodes a record as files, and verifies that they decode to the same record.
pub(crate) fn encode(record: &TrialRecord) -> Result<Files, StoreError> {
    if !id::is_id(&record.trial.id) {
        return Err(StoreError::NotStorable { what: format!("\"{}\" is not a ULID", record.trial.id) });
    }
    let not_storable =
        |defect: Defect| StoreError::NotStorable { what: format!("{}: {}", defect.file, defect.reason) };
    let files = files(record).map_err(not_storable)?;
    let mut expected = record.clone();
    expected.logs.sort_by(|a, b| a.name.cmp(&b.name));
    for log in &mut expected.logs {
        if let Cow::Owned(shorter) = shortened(&log.text) {
            log.text = shorter;
        }
    }
    expected.stacks.sort_by(|a, b| a.role.cmp(&b.role));
    expected.off_cpu.sort_by(|a, b| a.role.cmp(&b.role));
    expected.waits.iter_mut().for_each(Waits::rename_event);
    for statement in &mut expected.played {
        statement.waits = statement.waits.take().map(played::with_canonical_names);
    }
    expected.metrics.0.retain(|series| !series.points.is_empty());
    expected.phases.iter_mut().for_each(phases::normalize);
    if decode(files.clone()).map_err(not_storable)? != expected {
        // For example, a figure that is NaN, or two logs of the same name.
        let what = "reading it back gives a different record".to_owned();
        return Err(StoreError::NotStorable { what });
    }
    Ok(files)
}

/// Reads the environment from a bundle's files.
pub(crate) fn environment(files: &mut Files) -> Result<Environment, Defect> {
    let stored: format::Environment =
        format::from_json(environment::FILE, &required(files, environment::FILE)?)?;
    Ok(Environment::from(stored))
}

/// Reads the server's settings; empty if there is no such file.
pub(crate) fn settings(file: Option<Vec<u8>>) -> Result<Vec<Setting>, Defect> {
    let stored: Vec<format::Setting> =
        file.map_or(Ok(Vec::new()), |text| format::from_json(setting::FILE, &text))?;
    Ok(stored.into_iter().map(Setting::from).collect())
}

/// Decodes a bundle's files into a record.
pub(crate) fn decode(mut files: Files) -> Result<TrialRecord, Defect> {
    let head = head(&mut files)?;
    let environment = environment(&mut files)?;
    let mut unpacker = Unpacker::new();
    let names_of_phases: Vec<String> = head.phases.iter().map(|phase| phase.name.clone()).collect();
    Ok(TrialRecord {
        trial: head,
        environment,
        settings: settings(files.remove(setting::FILE))?,
        intervals: intervals::read(&mut files)?,
        spans: files.remove(spans::FILE).map_or(Ok(Vec::new()), spans::read)?,
        metrics: files.remove(metrics::FILE).map_or(Ok(Metrics::default()), metrics::read)?,
        waits: files.remove(waits::FILE).map_or(Ok(Vec::new()), waits::read)?,
        statements: files.remove(statements::FILE).map_or(Ok(Vec::new()), statements::read)?,
        played: files.remove(played::FILE).map_or(Ok(Vec::new()), played::read)?,
        stacks: stacks::read(stacks::STACKS, &mut files, &mut unpacker)?,
        off_cpu: stacks::read(stacks::OFF_CPU, &mut files, &mut unpacker)?,
        events: files.remove(event::FILE).map_or(Ok(Vec::new()), |lines| event::read(&lines))?,
        phases: phases::read(&names_of_phases, &mut files)?,
        logs: logs(files, &mut unpacker)?,
    })
}

/// Reads the head of a bundle: needs only `trial.json` and `campaign.toml`.
pub(crate) fn head(files: &mut Files) -> Result<Trial, Defect> {
    let document = required(files, format::TRIAL)?;
    let campaign = intervals::text(CAMPAIGN, required(files, CAMPAIGN)?)?;
    trial::read(&document, campaign)
}

fn files(record: &TrialRecord) -> Result<Files, Defect> {
    let environment = format::Environment::from(record.environment.clone());
    let mut files = Files::from([
        (format::TRIAL.to_owned(), trial::write(&record.trial, format::of(record))?),
        (CAMPAIGN.to_owned(), record.trial.run.campaign_toml.clone().into_bytes()),
        (environment::FILE.to_owned(), format::to_json(environment::FILE, &environment)?),
    ]);
    if !record.settings.is_empty() {
        let settings: Vec<format::Setting> = record.settings.iter().cloned().map(Into::into).collect();
        files.insert(setting::FILE.to_owned(), format::to_json(setting::FILE, &settings)?);
    }
    if !record.intervals.is_empty() {
        files.insert(series::FILE.to_owned(), series::write(&record.trial.id, &record.intervals)?);
    }
    if !record.spans.is_empty() {
        files.insert(spans::FILE.to_owned(), spans::write(&record.trial.id, &record.spans)?);
    }
    if let Some(log) = hlog::write(base_time(record), &record.intervals)? {
        files.insert(hlog::FILE.to_owned(), log.into_bytes());
    }
    if record.metrics.0.iter().any(|series| !series.points.is_empty()) {
        files.insert(metrics::FILE.to_owned(), metrics::write(&record.trial.id, &record.metrics)?);
    }
    if !record.waits.is_empty() {
        files.insert(waits::FILE.to_owned(), waits::write(&record.trial.id, &record.waits)?);
    }
    if !record.statements.is_empty() {
        files.insert(statements::FILE.to_owned(), statements::write(&record.trial.id, &record.statements)?);
    }
    if !record.played.is_empty() {
        files.insert(played::FILE.to_owned(), played::write(&record.trial.id, &record.played)?);
    }
    if !record.events.is_empty() {
        files.insert(event::FILE.to_owned(), event::write(&record.events)?);
    }
    phases::write(record, &mut files)?;
    stacks::write(stacks::STACKS, &record.stacks, &mut files)?;
    stacks::write(stacks::OFF_CPU, &record.off_cpu, &mut files)?;
    for log in &record.logs {
        let file = log_file(&log.name)?;
        let content = pack(&file, &shortened(&log.text))?;
        files.insert(file, content);
    }
    Ok(files)
}

/// Base time of the histogram log; the Unix epoch if an imported log does not contain one.
fn base_time(record: &TrialRecord) -> Timestamp {
    record.trial.load_started.or(record.trial.started).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn required(files: &mut Files, name: &str) -> Result<Vec<u8>, Defect> {
    files.remove(name).ok_or_else(|| Defect::damaged(name, "it is missing"))
}

const LOGS: &str = "logs/";
const LOG_ENDING: &str = ".log.zst";

/// Path of a log within the bundle.
pub(crate) fn log_file(name: &str) -> Result<String, Defect> {
    let file = format!("{LOGS}{name}{LOG_ENDING}");
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(Defect::damaged(&file, "a log's name consists of letters, digits, `-`, `_` and `.`"));
    }
    Ok(file)
}

/// All logs among a bundle's remaining files, by name.
fn logs(files: Files, unpacker: &mut Unpacker) -> Result<Vec<Log>, Defect> {
    files
        .into_iter()
        .filter_map(|(file, content)| {
            let name = file.strip_prefix(LOGS)?.strip_suffix(LOG_ENDING)?.to_owned();
            Some(unpacker.unpack(&file, &content).map(|text| Log { name, text }))
        })
        .collect()
}
