//! The live file of a run: the campaign's events for `pgdyno serve` and other readers of the store.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use model::cell::{Cell as PlannedCell, Levels as _};
use model::factor::Factor;
use model::paired::Side;
use model::plan::Plan;
use model::record::{Run, Status, Trial};
use model::secret::mask;
use store::format::live::{
    self, Cell, Ended, How, Interval, Line, Notice, Preparing, TrialBegins, TrialEnded,
};
use store::{LiveWriter, Store, StoreError, Totals};

use crate::observer::{Event, Observer, OtherTrial};

/// Shortest time between two reported steps of a preparation.
const MIN_STEP_INTERVAL: Duration = Duration::from_millis(500);

/// An observer that writes events to the run's live file and passes them on. A file that can't be written is reported once
/// and tried again with the next trial.
pub(crate) struct LiveFile<'a> {
    store: &'a Store,
    plan: &'a Plan,
    run: &'a Run,
    begun: Timestamp,
    next: &'a dyn Observer,
    state: Mutex<State>,
}

struct State {
    writer: Option<LiveWriter>,
    cells: Vec<Cell>,
    /// The running trial.
    trial: Option<TrialBegins>,
    /// Time of the last reported step of a preparation.
    last_step: Option<Instant>,
    /// Of all trials of this execution of the run; of campaigns in pairs, those of each side.
    totals: [Totals; 2],
    reported: bool,
}

impl<'a> LiveFile<'a> {
    /// Begins the live file of a run. `trials` are those of the run that are in the store; `next` receives every event too.
    pub(crate) fn begin(
        store: &'a Store,
        plan: &'a Plan,
        run: &'a Run,
        trials: &[Trial],
        next: &'a dyn Observer,
    ) -> Self {
        let mut cells: Vec<Cell> = plan
            .cells
            .iter()
            .map(|cell| Cell { cell: cell.to_string(), planned: 0, valid: 0, suspect: 0, invalid: 0 })
            .collect();
        for trial in &plan.trials {
            cells[trial.cell].planned += 1;
        }
        for trial in trials {
            if let Some(at) = plan.cells.iter().position(|cell| trial.cell == *cell) {
                count(&mut cells[at], trial);
            }
        }
        let totals = <[Totals; 2]>::default();
        let state = State { writer: None, cells, trial: None, last_step: None, totals, reported: false };
        let live = Self { store, plan, run, begun: Timestamp::now(), next, state: Mutex::new(state) };
        live.begin_run();
        live
    }

    /// Ends the run, which was interrupted or failed with an error, and removes its file.
    pub(crate) fn end(self, interrupted: bool, error: Option<String>) {
        let (how, why) = match error {
            _ if interrupted => (How::Interrupted, None),
            None => (How::Finished, None),
            Some(error) => (How::Failed, Some(error)),
        };
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = state.writer {
            writer.end(Ended { at: Timestamp::now(), how, why });
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head(&self, state: &State) -> live::Run {
        live::Run {
            format: live::VERSION,
            campaign: self.run.campaign.clone(),
            pgdyno_version: self.run.pgdyno_version.clone(),
            begun: self.begun,
            planned: self.plan.trials.len(),
            cells: state.cells.clone(),
        }
    }

    fn write(&self, event: &Event) {
        let state = &mut *self.state();
        let at = Timestamp::now();
        let line = match event {
            Event::TrialBegins { trial, cell, attempt, reason, of, remaining, side, other, .. } => {
                let mut begins = TrialBegins {
                    at,
                    position: trial.position,
                    of: *of,
                    cell: cell.to_string(),
                    cell_index: trial.cell,
                    repeat: trial.repeat,
                    attempt: *attempt,
                    reason: reason.map(str::to_owned),
                    remaining_us: remaining.us(),
                    warmup_us: cell.warmup.us(),
                    duration_us: cell.duration.us(),
                    levels: levels(cell),
                    side: *side,
                    other: None,
                };
                begins.other = other.as_ref().map(|OtherTrial { trial, cell, attempt }| {
                    let side = side.map(Side::other);
                    Box::new(TrialBegins {
                        position: trial.position,
                        cell: cell.to_string(),
                        cell_index: trial.cell,
                        repeat: trial.repeat,
                        attempt: *attempt,
                        warmup_us: cell.warmup.us(),
                        duration_us: cell.duration.us(),
                        levels: levels(cell),
                        side,
                        ..begins.clone()
                    })
                });
                state.trial = Some(begins.clone());
                let begun = self.begin_trial(state, begins);
                return self.report(state, begun);
            }
            Event::Preparing { what, done, total } => {
                let is_last = *total == Some(*done);
                if !is_last && state.last_step.is_some_and(|last| last.elapsed() < MIN_STEP_INTERVAL) {
                    return;
                }
                state.last_step = Some(Instant::now());
                Line::Preparing(Preparing { at, what: (*what).to_owned(), done: *done, total: *total })
            }
            Event::Notice(text) => Line::Notice(Notice { at, text: (*text).to_owned() }),
            Event::Load { interval, side, waits } => {
                let totals = &mut state.totals[side.map_or(0, Side::index)];
                Line::Interval(Interval::new(interval, *side, *waits, totals))
            }
            Event::SessionEnded(_) => return,
            Event::TrialEnded(trial) => {
                let Some(begun) = state.trial.take() else { return };
                count(&mut state.cells[begun.cell_index], trial);
                Line::TrialEnded(ended(at, &begun, trial))
            }
        };
        if let Some(writer) = &mut state.writer {
            let written = writer.append(&line);
            self.report(state, written);
        }
    }

    fn begin_run(&self) {
        let state = &mut *self.state();
        let begun =
            self.store.begin_live(&self.run.id, self.head(state)).map(|writer| state.writer = Some(writer));
        self.report(state, begun);
    }

    fn begin_trial(&self, state: &mut State, trial: TrialBegins) -> Result<(), StoreError> {
        let head = self.head(state);
        let mut writer = match state.writer.take() {
            Some(writer) => writer,
            None => self.store.begin_live(&self.run.id, head.clone())?,
        };
        writer.trial(head, trial)?;
        state.writer = Some(writer);
        Ok(())
    }

    fn report(&self, state: &mut State, outcome: Result<(), StoreError>) {
        let Err(error) = outcome else { return };
        state.writer = None;
        if !std::mem::replace(&mut state.reported, true) {
            let text = format!("this run can't be watched by `pgdyno serve`: {error}");
            self.next.on_event(&Event::Notice(&text));
        }
    }
}

impl Observer for LiveFile<'_> {
    fn on_event(&self, event: &Event) {
        match event {
            // Users see what is stored.
            Event::Notice(text) => self.next.on_event(&Event::Notice(&mask(text))),
            _ => self.next.on_event(event),
        }
        self.write(event);
    }
}

fn levels(cell: &PlannedCell) -> BTreeMap<String, String> {
    let level = |factor: Factor| Some((factor.name().to_owned(), cell.known_level(factor)?));
    Factor::ALL.into_iter().filter_map(level).collect()
}

fn count(cell: &mut Cell, trial: &Trial) {
    *match trial.validity.status {
        Status::Valid => &mut cell.valid,
        Status::Suspect => &mut cell.suspect,
        Status::Invalid => &mut cell.invalid,
    } += 1;
}

fn ended(at: Timestamp, begun: &TrialBegins, trial: &Trial) -> TrialEnded {
    let against = trial.validity.findings.iter().filter(|finding| finding.status != Status::Valid);
    TrialEnded {
        at,
        id: trial.id.clone(),
        position: begun.position,
        cell_index: begun.cell_index,
        repeat: begun.repeat,
        attempt: begun.attempt,
        validity: trial.validity.status.as_str().to_owned(),
        tps: trial.summary.as_ref().map(|summary| summary.tps),
        reasons: against.map(|finding| finding.evidence.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Notices(Mutex<Vec<String>>);

    impl Observer for Notices {
        fn on_event(&self, event: &Event) {
            if let Event::Notice(text) = event {
                self.0.lock().unwrap().push((*text).to_owned());
            }
        }
    }

    fn plan() -> Plan {
        let campaign = "name = 'a'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n\
                        [run]\nduration = '1s'\nwarmup = '0s'\nrepeats = 3\n";
        Plan::new(&model::spec::Campaign::parse(campaign).unwrap(), 1).unwrap()
    }

    fn run() -> Run {
        Run {
            id: store::new_id(),
            campaign: "a".to_owned(),
            campaign_toml: String::new(),
            seed: Some(1),
            processors: None,
            pgdyno_version: "0.1.0".to_owned(),
            tags: Vec::new(),
            notes: None,
        }
    }

    #[test]
    fn a_live_file_that_can_not_be_written_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let (plan, run, notices) = (plan(), run(), Notices(Mutex::default()));
        // A directory with its name, which can't be replaced.
        std::fs::create_dir_all(folder.path().join(format!(".live-{}.jsonl/x", run.id))).unwrap();
        let live = LiveFile::begin(&store, &plan, &run, &[], &notices);
        live.on_event(&Event::TrialBegins {
            trial: &plan.trials[0],
            cell: plan.cell(&plan.trials[0]),
            attempt: 1,
            reason: None,
            of: 6,
            of_at_most: 6,
            remaining: model::units::Span::from_us(1),
            remaining_at_most: model::units::Span::from_us(1),
            side: None,
            other: None,
        });
        live.end(false, None);
        let notices = notices.0.into_inner().unwrap();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].contains("pgdyno serve") && notices[0].contains(&run.id), "{notices:?}");
    }

    #[test]
    fn the_head_has_the_planned_trials_of_each_cell() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let (plan, run, notices) = (plan(), run(), Notices(Mutex::default()));
        let live = LiveFile::begin(&store, &plan, &run, &[], &notices);
        let update = store.open_live(&run.id).unwrap().poll().unwrap();
        let Line::Run(head) = &update.lines[0] else { panic!("{update:?}") };
        assert_eq!((head.planned, head.campaign.as_str()), (6, "a"));
        assert_eq!(head.cells.iter().map(|cell| cell.planned).collect::<Vec<_>>(), [3, 3]);
        assert!(update.alive);
        live.end(true, Some("interrupted".to_owned()));
        assert!(store.live_runs().is_empty());
    }
}
