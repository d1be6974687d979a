//! A running campaign, from its live file.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use model::factor::Factor;
use model::paired::Side;
use store::format::live::{Interval, Line, Run, TrialBegins};
use store::{LiveReader, Totals};

use super::family::{
    Family, LIVE_COLUMNS, RUN, RUN_PHASE, RUN_PLANNED, RUN_REMAINING, RUN_START, RUN_TRIALS, SESSIONS, TRIAL,
    TRIAL_LOADED, TRIAL_START, TRIAL_WARMUP, TRIAL_WINDOW,
};
use super::load::load_values;
use super::point::{Add, Stream};
use crate::export_tables::Table;

/// Phases of a run.
const PHASES: [&str; 4] = ["prepare", "warmup", "measure", "drain"];

/// State of a run, as far as its live file was read.
pub struct LiveRun {
    id: String,
    reader: LiveReader,
    run: Option<Run>,
    /// Trials that have ended since [`Self::run`] was written, by validity.
    ended: Vec<String>,
    /// The running load; of a campaign in pairs, those of both sides.
    loads: [Load; 2],
}

/// The load of the running trials of a run, or of a side.
#[derive(Default)]
struct Load {
    trial: Option<TrialBegins>,
    /// The latest interval; none while there is no load.
    interval: Option<Interval>,
    loaded_us: u64,
    totals: Totals,
}

impl LiveRun {
    /// A run that nothing was read of.
    pub fn new(id: String, reader: LiveReader) -> Self {
        Self { id, reader, run: None, ended: Vec::new(), loads: <[Load; 2]>::default() }
    }

    /// Reads what is new. False if the run is over, or its process was killed.
    pub fn update(&mut self) -> bool {
        // A file that can't be read now may be read next time.
        let Ok(update) = self.reader.poll() else { return true };
        let mut is_running = update.alive;
        for line in update.lines {
            is_running &= !matches!(line, Line::Ended(_));
            self.add(line);
        }
        is_running
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Run(run) => {
                self.run = Some(run);
                self.ended.clear();
            }
            // The first side's line had it.
            Line::TrialBegins(TrialBegins { side: Some(Side::B), .. }) => {}
            Line::TrialBegins(mut trial) => {
                let other = trial.other.take().map(|other| *other);
                for (load, trial) in self.loads.iter_mut().zip([Some(trial), other]) {
                    load.trial = trial;
                    load.loaded_us = 0;
                }
            }
            Line::Interval(interval) => self.loads[interval.side.map_or(0, Side::index)].add(interval),
            Line::TrialEnded(trial) => {
                self.ended.push(trial.validity);
                // Both loads of a session have ended.
                self.loads.iter_mut().for_each(|load| load.interval = None);
            }
            Line::Preparing(_) | Line::Notice(_) | Line::Ended(_) => {}
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Passes on its values by family, in any order.
    pub(super) fn values<'a>(&'a self, now: Timestamp, add: Add<'_, 'a>) {
        if let Some(run) = &self.run {
            self.run_values(run, now, add);
        }
        self.loads.iter().for_each(|load| load.values(add));
    }

    fn run_values<'a>(&'a self, run: &'a Run, now: Timestamp, add: Add<'_, 'a>) {
        let labels =
            vec![("campaign", run.campaign.as_str().into()), ("version", run.pgdyno_version.as_str().into())];
        add(&RUN, Stream::now(labels, 1.0));
        add(&RUN_START, one(run.begun.as_microsecond() as f64));
        add(&RUN_PLANNED, one(run.planned as f64));
        let (mut valid, mut suspect, mut invalid) = (0, 0, 0);
        for cell in &run.cells {
            valid += cell.valid;
            suspect += cell.suspect;
            invalid += cell.invalid;
        }
        for (validity, before) in [("valid", valid), ("suspect", suspect), ("invalid", invalid)] {
            let since = self.ended.iter().filter(|ended| *ended == validity).count();
            add(&RUN_TRIALS, Stream::now(vec![("validity", validity.into())], (before + since) as f64));
        }
        if let Some(trial) = &self.loads[0].trial {
            let since_us = now.as_microsecond().saturating_sub(trial.at.as_microsecond());
            add(&RUN_REMAINING, one((trial.remaining_us as f64 - since_us as f64).max(0.0)));
        }
        let interval = self.loads.iter().find_map(|load| load.interval.as_ref());
        let current = interval.map_or("prepare", |interval| interval.phase.as_str());
        for phase in PHASES {
            let is_current = f64::from(u8::from(phase == current));
            add(&RUN_PHASE, Stream::now(vec![("phase", phase.into())], is_current));
        }
    }
}

impl Load {
    fn add(&mut self, interval: Interval) {
        self.loaded_us = interval.start_us.saturating_add(interval.width_us);
        if !interval.totals.is_empty() {
            self.totals = interval.totals.clone();
        }
        self.interval = Some(interval);
    }

    /// Passes on its values, with the side as a label if it has one.
    fn values<'a>(&'a self, add: Add<'_, 'a>) {
        let side = self.trial.as_ref().and_then(|trial| trial.side);
        let add: Add<'_, 'a> = &mut |family, mut stream: Stream<'a>| {
            stream.labels.extend(side.map(|side| ("side", side.as_str().into())));
            add(family, stream);
        };
        if let Some(trial) = &self.trial {
            self.trial_values(trial, add);
        }
        load_values(&self.totals, None, add);
        if let Some(interval) = &self.interval {
            interval_values(interval, add);
        }
    }

    fn trial_values<'a>(&'a self, trial: &'a TrialBegins, add: Add<'_, 'a>) {
        let mut labels: Vec<(&str, Cow<'_, str>)> = vec![
            ("cell", trial.cell.as_str().into()),
            ("position", trial.position.to_string().into()),
            ("repeat", trial.repeat.to_string().into()),
            ("attempt", trial.attempt.to_string().into()),
        ];
        // The file may be of a release with other factors.
        let is_known = |name: &str| Factor::ALL.iter().any(|factor| factor.name() == name);
        let levels = trial.levels.iter().filter(|(name, _)| is_known(name));
        labels.extend(levels.map(|(name, level)| (name.as_str(), level.into())));
        add(&TRIAL, Stream::now(labels, 1.0));
        add(&TRIAL_START, one(trial.at.as_microsecond() as f64));
        add(&TRIAL_WARMUP, one(trial.warmup_us as f64));
        add(&TRIAL_WINDOW, one(trial.duration_us as f64));
        add(&TRIAL_LOADED, one(self.loaded_us as f64));
    }
}

fn interval_values<'a>(interval: &'a Interval, add: Add<'_, 'a>) {
    // Two states may have the same names here.
    let mut sessions: BTreeMap<[&str; 3], f64> = BTreeMap::new();
    for wait in interval.waits.iter().flatten() {
        let names = [wait.session.as_str(), &wait.kind, wait.event.as_deref().unwrap_or_default()];
        *sessions.entry(names).or_default() += wait.sessions;
    }
    for (names, sessions) in sessions {
        let labels = SESSIONS.labels.iter().copied().zip(names.map(Cow::Borrowed)).collect();
        add(&SESSIONS, Stream::now(labels, sessions));
    }
    let values = [Some(interval.tps), interval.p50_us, interval.p95_us, interval.p99_us, interval.max_us];
    let columns = Table::Intervals.columns();
    for (name, value) in LIVE_COLUMNS.into_iter().zip(values) {
        if let (Some(column), Some(value)) = (columns.iter().find(|column| column.name == name), value) {
            add(&Family::of_interval(column), one(value));
        }
    }
}

fn one(value: f64) -> Stream<'static> {
    Stream::now(Vec::new(), value)
}
