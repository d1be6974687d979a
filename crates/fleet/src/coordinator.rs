//! A coordinator: queues the blocks of a run, and stores the trials that agents send back. It may stop at any time: the fleet goes
//! on, and the next one collects what is there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use host::sha256_of_bytes;
use jiff::Timestamp;
use model::fleet::QueuedRun;
use model::plan::{Order, Plan};
use model::record::{Run, Trial, TrialRecord};
use model::secret::campaign_secrets;
use model::workload::{Workload, Workloads};
use runner::Claimed;
use runner::blocks::{ArrivingTrials, Block, BlockContent, mark_as_lost, open_blocks};
use runner::campaign::RunOutcome;
use runner::observer::{Event, Observer};
use store::{MAX_ARCHIVE_BYTES, Store, StoreError, archived_trial};

use crate::connection::{Connection, Listener, bundle_name};
use crate::error::FleetError;
use crate::events::{AttemptState, BlockState, RunState};
use crate::message::{self, Job, MAX_JOB_BYTES, ProgressMessage, QueuedBlock};
use crate::requirement::Requirement;
use crate::signature::SecretKey;

/// Time between two looks at the events, which are announced.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a block is queued for one command of the user.
const MAX_ROUNDS: u32 = 3;
/// Time after which blocks that nobody takes are explained.
const EXPLAIN_AFTER: Duration = Duration::from_secs(5);
/// Most messages of agents that are passed on between two looks at the events.
const MAX_TOLD: usize = 300;

/// A run of a fleet, and the store that its trials go to.
pub struct Coordinator<'a> {
    /// The fleet.
    pub connection: &'a Connection,
    /// The plan of the run.
    pub plan: &'a Plan,
    /// The run.
    pub run: &'a Run,
    /// Its trials in the store.
    pub trials: &'a [Trial],
    /// Signs the blocks.
    pub key: Option<&'a SecretKey>,
    /// The store.
    pub store: &'a Store,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// The receiver of events.
    pub observer: &'a dyn Observer,
}

impl Coordinator<'_> {
    /// Queues what is still to be measured, and stores all trials, until none is left.
    ///
    /// # Errors
    /// A fleet can't run the campaign; the NATS server does not answer; a bundle can't be stored.
    pub fn execute(&self) -> Result<RunOutcome, FleetError> {
        self.check()?;
        let Self { store, plan, run, trials, .. } = *self;
        let claimed = Claimed { store, plan, run, trials };
        let execute = |observer: &dyn Observer| Collecting::new(self, observer).run();
        claimed.execute(self.observer, execute, |error| matches!(error, FleetError::Interrupted))
    }

    /// Whether a fleet can run the campaign.
    fn check(&self) -> Result<(), FleetError> {
        if self.plan.run.order == Order::Bisect {
            return Err(FleetError::Campaign(
                "a bisection measures every level against one baseline, on one machine: run it there, without --fleet"
                    .to_owned(),
            ));
        }
        if let Some(place) = campaign_secrets(&self.run.campaign_toml).first() {
            return Err(FleetError::Campaign(format!(
                "line {} of the campaign: {place}\nSecrets do not travel to the machines of a fleet: keep it in a file there, \
                 such as ~/.pgpass for passwords",
                place.line
            )));
        }
        Ok(())
    }

    fn job(&self) -> Result<Vec<u8>, FleetError> {
        let custom = self.plan.custom_workloads().into_iter();
        let workloads = custom.map(|custom| Workload::Custom(Arc::new(custom.clone()))).collect();
        let job = message::encode(&Job::new(self.run, workloads))?;
        if job.len() > MAX_JOB_BYTES {
            return Err(FleetError::Campaign(format!(
                "the campaign and its workloads have {} bytes: a fleet takes up to {MAX_JOB_BYTES}",
                job.len()
            )));
        }
        Ok(job)
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// A coordinator at work.
struct Collecting<'a> {
    of: &'a Coordinator<'a>,
    observer: &'a dyn Observer,
    /// Ids of the trials that were in the store when it began, or were queued with another campaign: attempts of earlier
    /// commands of the user.
    earlier: BTreeSet<String>,
    /// The run's trials in the store.
    trials: RefCell<Vec<Trial>>,
    /// Ids of all trials in the store, and of those that arrived damaged.
    stored: RefCell<BTreeSet<String>>,
    /// Blocks that were set aside while it collected.
    set_aside: RefCell<BTreeSet<String>>,
}

impl<'a> Collecting<'a> {
    fn new(of: &'a Coordinator<'a>, observer: &'a dyn Observer) -> Self {
        Self {
            of,
            observer,
            earlier: of.trials.iter().map(|trial| trial.id.clone()).collect(),
            trials: RefCell::new(of.trials.to_vec()),
            stored: RefCell::new(of.trials.iter().map(|trial| trial.id.clone()).collect()),
            set_aside: RefCell::default(),
        }
    }

    fn run(mut self) -> Result<RunOutcome, FleetError> {
        let Coordinator { connection, plan, run, .. } = *self.of;
        let job = self.of.job()?;
        let sum = sha256_of_bytes(&job);
        let mut progress = connection.listen(connection.subjects.progress(&run.id))?;
        let mut events = connection.listen(connection.subjects.events_of(&run.id))?;
        let mut state = connection.run_state(&run.id, RunState::default())?;
        // A changed campaign, such as more repeats, has other blocks.
        let is_changed =
            |block: &BlockState| block.queued.as_ref().is_some_and(|queued| queued.job_sha256 != sum);
        if state.blocks.values().any(is_changed) {
            state = self.remove_changed(&state)?;
        }
        let mut arriving = ArrivingTrials::new(plan, &self.trials.borrow(), &self.earlier, self.observer);
        let mut is_known = !state.blocks.is_empty();
        let mut unexplained_since = Instant::now();
        let mut explained = String::new();
        loop {
            self.collect(&mut arriving, &state, false)?;
            self.tell(&mut progress);
            if self.of.interrupted() {
                return Ok(RunOutcome { progress: arriving.progress(), interrupted: true });
            }
            if state.open().next().is_none() {
                let blocks = self.to_queue(&state);
                if blocks.is_empty() {
                    break;
                }
                if !is_known {
                    let queued = self.queued_run();
                    self.insist(|| connection.put_run(&queued, &job))?;
                    is_known = true;
                }
                for block in blocks {
                    self.queue(block, &state, &sum)?;
                }
                unexplained_since = Instant::now();
            } else if state.open().all(|(_, block)| block.running().is_none()) {
                if unexplained_since.elapsed() > EXPLAIN_AFTER {
                    self.explain(&state, &mut explained)?;
                    unexplained_since = Instant::now();
                }
            } else {
                unexplained_since = Instant::now();
            }
            let has_begun = Instant::now();
            events.wait_until(LOOK_INTERVAL, &|| self.of.interrupted());
            // Several events that come at once are read at once.
            if has_begun.elapsed() < LOOK_INTERVAL / 10 {
                std::thread::sleep(LOOK_INTERVAL / 10);
            }
            state = match self.insist(|| connection.run_state(&run.id, state.clone())) {
                // The loop ends with what is there.
                Err(FleetError::Interrupted) => state,
                known => known?,
            };
        }
        for (name, reasons) in self.reasons(&state) {
            self.observer.on_event(&Event::Notice(&format!(
                "block {name} was set aside after {} attempts: {}",
                reasons.len(),
                reasons.join("; ")
            )));
        }
        self.insist(|| connection.remove_run(&run.id, &bundles(&run.id, &state)))?;
        Ok(RunOutcome { progress: arriving.progress(), interrupted: false })
    }

    /// Removes the blocks of the campaign as it was, once all trials that have ended are stored. Returns the state without them.
    fn remove_changed(&mut self, state: &RunState) -> Result<RunState, FleetError> {
        let Coordinator { connection, plan, run, trials, .. } = *self.of;
        self.observer.on_event(&Event::Notice(
            "the campaign was changed: its blocks are queued anew; trials of blocks that were not complete are kept as invalid \
             (lost-agent)",
        ));
        let state = {
            let mut arriving = ArrivingTrials::new(plan, trials, &self.earlier, self.observer);
            self.collect(&mut arriving, state, false)?;
            // That may have taken a while, in which others have ended.
            let state = connection.run_state(&run.id, state.clone())?;
            self.collect(&mut arriving, &state, true)?;
            state
        };
        connection.remove_run(&run.id, &bundles(&run.id, &state))?;
        self.earlier.extend(self.trials.borrow().iter().map(|trial| trial.id.clone()));
        self.set_aside.borrow_mut().clear();
        Ok(RunState { last: state.last, ..RunState::default() })
    }

    /// Tries until the NATS server does it.
    fn insist<T>(&self, attempt: impl Fn() -> Result<T, FleetError>) -> Result<T, FleetError> {
        let report = |text: &str| self.observer.on_event(&Event::Notice(text));
        self.of.connection.insist(self.of.interrupt, &report, attempt)
    }

    fn queued_run(&self) -> QueuedRun {
        QueuedRun {
            run: self.of.run.id.clone(),
            campaign: self.of.run.campaign.clone(),
            coordinator: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            at: Timestamp::now(),
        }
    }

    /// The blocks to queue now.
    fn to_queue(&self, state: &RunState) -> Vec<Block> {
        let set_aside = self.set_aside.borrow();
        let mut blocks = open_blocks(self.of.plan, &self.trials.borrow(), &self.earlier);
        blocks.retain(|block| !set_aside.contains(&block.name));
        // Bundles that arrive damaged are measured again, but not for ever.
        blocks.retain(|block| round(state, &block.name) < MAX_ROUNDS);
        blocks
    }

    fn queue(&self, block: Block, state: &RunState, job_sha256: &str) -> Result<(), FleetError> {
        let Coordinator { connection, plan, run, key, .. } = *self.of;
        let queued = QueuedBlock {
            run: run.id.clone(),
            requirement: Requirement::of(&block, plan)?,
            round: round(state, &block.name),
            id: store::new_id(),
            job_sha256: job_sha256.to_owned(),
            block,
        };
        self.insist(|| connection.queue_block(&queued, key, plan.fleet.lease.duration()))
    }

    /// Stores the trials of blocks that are complete or set aside, and those of sessions, each of which is whole. If it `is_last`,
    /// nobody completes the other blocks: their trials are stored as well, and marked, as the rest may run on another machine.
    fn collect(
        &self,
        arriving: &mut ArrivingTrials<'_>,
        state: &RunState,
        is_last: bool,
    ) -> Result<(), FleetError> {
        let agents = state.open().filter(|(_, block)| block.running().is_some()).count();
        for (name, block) in &state.blocks {
            let is_sessions = block
                .queued
                .as_ref()
                .is_some_and(|queued| matches!(queued.block.content, BlockContent::Comparison(_)));
            let machine = block.completed().map(|completed| &completed.attempt.machine);
            if !is_sessions && machine.is_none() && !block.is_set_aside && !is_last {
                continue;
            }
            for AttemptState { attempt, trials, .. } in &block.attempts {
                let is_lost = !is_sessions && machine != Some(&attempt.machine);
                for (trial, sum) in trials {
                    self.store(arriving, trial, sum, is_lost.then_some(&*attempt.agent), agents)?;
                }
            }
            // Only now: it may be queued again when its evidence is stored.
            if block.is_set_aside {
                self.set_aside.borrow_mut().insert(name.clone());
            }
        }
        Ok(())
    }

    /// Stores a trial, unless it is stored. That of a lost agent is marked.
    fn store(
        &self,
        arriving: &mut ArrivingTrials<'_>,
        trial: &str,
        sum: &str,
        lost: Option<&str>,
        agents: usize,
    ) -> Result<(), FleetError> {
        let Coordinator { connection, run, store, .. } = *self.of;
        if self.stored.borrow().contains(trial) {
            return Ok(());
        }
        let measure_again = |error: &dyn Display| {
            self.observer.on_event(&Event::Notice(&format!("trial {trial} is measured again: {error}")));
            self.stored.borrow_mut().insert(trial.to_owned());
        };
        let mut record = match self.insist(|| connection.trial(&run.id, trial, sum)) {
            Ok(record) => record,
            Err(error @ (FleetError::Message { .. } | FleetError::Store(_))) => {
                measure_again(&error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if let Some(agent) = lost {
            mark_as_lost(&mut record, agent);
        }
        let written = store.write(&record);
        // It was stored before, and was damaged since: as everywhere, it counts as missing.
        if let Err(StoreError::Exists { .. }) = written
            && let Err(damaged) = store.head(trial)
        {
            measure_again(&damaged);
            return Ok(());
        }
        written?;
        self.stored.borrow_mut().insert(trial.to_owned());
        arriving.add(&record.trial, agents);
        self.trials.borrow_mut().push(record.trial);
        Ok(())
    }

    /// Passes on what agents say; what is beyond [`MAX_TOLD`] waits until the next time.
    fn tell(&self, progress: &mut Listener<'_>) {
        for _ in 0..MAX_TOLD {
            let Some(said) = progress.next(Duration::ZERO) else { return };
            if let Ok(ProgressMessage { agent, text }) = message::decode(said.subject.as_str(), &said.payload)
            {
                self.observer.on_event(&Event::Notice(&format!("{agent}: {text}")));
            }
        }
    }

    /// Says why no agent takes the blocks that wait, unless it has been said.
    fn explain(&self, state: &RunState, explained: &mut String) -> Result<(), FleetError> {
        let agents = self.insist(|| self.of.connection.agents())?;
        let waiting = state.open().filter_map(|(_, block)| Some(&block.queued.as_ref()?.requirement));
        let mut reasons: Vec<String> = Vec::new();
        for requirement in waiting {
            for agent in &agents {
                let unmet = requirement.unmet(&agent.facts);
                let reason = match (unmet.is_empty(), agent.is_draining) {
                    (false, _) => format!("{}: {}", agent.facts.name, unmet.join("; ")),
                    (true, true) => {
                        format!("{} takes no more blocks, as it is being stopped", agent.facts.name)
                    }
                    (true, false) => continue,
                };
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        let text = match (agents.is_empty(), reasons.is_empty()) {
            (true, _) => {
                "no agent answers; blocks wait for one: `pgdyno agent` on a machine of the fleet".to_owned()
            }
            (false, false) => format!("blocks wait for an agent that can take them; {}", reasons.join("; ")),
            (false, true) => "the agents have other blocks first".to_owned(),
        };
        if text != *explained {
            self.observer.on_event(&Event::Notice(&text));
            *explained = text;
        }
        Ok(())
    }

    fn reasons(&self, state: &RunState) -> Vec<(String, Vec<String>)> {
        let set_aside = state.blocks.iter().filter(|(_, block)| block.is_set_aside);
        set_aside.map(|(name, block)| (name.clone(), block.evidence())).collect()
    }
}

/// How often a block was queued.
fn round(state: &RunState, block: &str) -> u32 {
    let known = state.blocks.get(block).and_then(|known| known.queued.as_ref());
    known.map_or(0, |queued| queued.round + 1)
}

/// Names of the objects of a run's trials.
fn bundles(run: &str, state: &RunState) -> Vec<String> {
    let attempts = state.blocks.values().flat_map(|block| &block.attempts);
    attempts.flat_map(|attempt| &attempt.trials).map(|(trial, _)| bundle_name(run, trial)).collect()
}

impl Connection {
    /// The run of the fleet whose id begins so, or the newest one of a campaign, with its workloads.
    ///
    /// # Errors
    /// There is none.
    pub fn queued_run(
        &self,
        id: Option<&str>,
        campaign: Option<&str>,
    ) -> Result<(Run, Workloads), FleetError> {
        let is_wanted = |run: &QueuedRun| {
            id.is_none_or(|id| run.run.starts_with(&id.to_uppercase()))
                && campaign.is_none_or(|name| run.campaign == name)
        };
        let runs = self.runs()?;
        let run = runs.iter().rfind(|run| is_wanted(run)).ok_or_else(|| FleetError::NoRun {
            wanted: match (id, campaign) {
                (Some(id), _) => format!("run {id}"),
                (None, Some(name)) => format!("run of the campaign {name}"),
                (None, None) => "run".to_owned(),
            },
        })?;
        let job = self.job(&run.run, None)?;
        let mut workloads = Workloads::default();
        workloads.add_custom(job.workloads.iter());
        Ok((job.run(), workloads))
    }

    /// Removes a run from the fleet: its blocks are not measured any more, and what was not collected is lost.
    ///
    /// # Errors
    /// There is none, or the NATS server does not answer.
    pub fn cancel(&self, id: &str) -> Result<String, FleetError> {
        let (run, _) = self.queued_run(Some(id), None)?;
        let state = self.run_state(&run.id, RunState::default())?;
        self.remove_run(&run.id, &bundles(&run.id, &state))?;
        Ok(run.id)
    }

    /// A trial of a run, whose archive has this SHA-256.
    pub(crate) fn trial(&self, run: &str, trial: &str, sum: &str) -> Result<TrialRecord, FleetError> {
        let name = bundle_name(run, trial);
        let archive = self.get(&name, MAX_ARCHIVE_BYTES)?;
        let refused = |why: &str| FleetError::Message { subject: name.clone(), why: why.to_owned() };
        if sha256_of_bytes(&archive) != sum {
            return Err(refused("its checksum is not that of its event: it was damaged or replaced"));
        }
        let record = archived_trial(&mut archive.as_slice())?;
        if record.trial.id != trial || record.trial.run.id != run {
            return Err(refused("it has another trial"));
        }
        Ok(record)
    }
}
