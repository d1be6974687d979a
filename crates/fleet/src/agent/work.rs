//! A block on this machine: a campaign of its trials in a store of its own, whose bundles are sent.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use host::Scratch;
use jiff::Timestamp;
use model::plan::Plan;
use model::record::{Run, Trial};
use runner::blocks::{BlockContent, MoreBlocks, NextBlock, mark_as_lost};
use runner::campaign::{Campaign, RunOutcome};
use runner::observer::{self, Observer};
use runner::{HostContext, Progress, RunError};
use store::Store;

use super::{ConnectedAgent, Held};
use crate::error::FleetError;
use crate::events::BlockState;
use crate::load_hosts::FleetLoadHosts;
use crate::message::{self, Ending, Event, Job, ProgressMessage, SignedBlock, What};
use crate::requirement::Requirement;

/// A block that an agent runs, and those of the same campaign that follow.
pub(super) struct Work<'a> {
    agent: &'a ConnectedAgent<'a>,
    job: &'a Job,
    /// The first block: it shows load hosts who wants their drivers.
    signed: SignedBlock,
    job_sha256: String,
    /// The block that runs now; none between two.
    current: Mutex<Option<Held>>,
    /// Why a bundle could not be sent, which ends the work.
    failed: Mutex<Option<String>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(agent: &'a ConnectedAgent<'a>, job: &'a Job, held: Held) -> Self {
        let (signed, job_sha256) = (held.signed.clone(), held.queued.job_sha256.clone());
        Self { agent, job, signed, job_sha256, current: Mutex::new(Some(held)), failed: Mutex::default() }
    }

    fn failed(&self) -> MutexGuard<'_, Option<String>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> MutexGuard<'_, Option<Held>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the block, whose state this was, and those that follow, and says how each ended.
    pub(super) fn run(&self, state: &BlockState) {
        let outcome = self.measure(state);
        let Some(held) = self.current().take() else { return };
        let is_stopped = self.agent.agent.stop.load(Ordering::Relaxed);
        let how = match outcome {
            Ok(RunOutcome { interrupted: true, .. }) => Ending::GivenBack,
            Ok(_) => Ending::Complete,
            Err(_) if is_stopped => Ending::GivenBack,
            Err(why) => Ending::Failed { why },
        };
        self.agent.end(held, how);
    }

    /// Runs its trials; the error is why they could not be run.
    fn measure(&self, state: &BlockState) -> Result<RunOutcome, String> {
        let ConnectedAgent { agent, connection, .. } = self.agent;
        let run = self.job.run();
        let plan = self.job.plan().map_err(|error| format!("the campaign can't be read: {error}"))?;
        let first = self.next_block(&plan, state)?;
        let scratch = Scratch::new(agent.cache).map_err(|error| error.to_string())?;
        let store = Store::open(&scratch.path().join("store")).map_err(|error| error.to_string())?;
        let earlier: BTreeSet<String> = first.trials.iter().map(|trial| trial.id.clone()).collect();
        let load_hosts = FleetLoadHosts { connection, own: &agent.facts.name, block: &self.signed };
        let following = Following { work: self, plan: &plan };
        let observer = BlockObserver { work: self, store: &store, run: &run };
        let mut host = HostContext::detect();
        host.agent = Some(agent.facts.name.clone());
        let campaign = Campaign {
            plan: &plan,
            run: &run,
            trials: &first.trials,
            earlier: &earlier,
            block: Some(&first.block),
            more_blocks: Some(&following),
            host: &host,
            load_hosts: Some(&load_hosts),
            strict: false,
            allow_concurrent: false,
            store: &store,
            cache: agent.cache,
            program: agent.program,
            interrupt: agent.stop,
            observer: &observer,
        };
        let outcome = match campaign.execute() {
            Err(RunError::Interrupted) => Ok(RunOutcome { progress: Progress::default(), interrupted: true }),
            outcome => outcome.map_err(|error| error.to_string()),
        };
        match self.failed().take() {
            Some(why) => Err(why),
            None => outcome,
        }
    }

    /// The current block, whose state this was before, with the trials that earlier attempts have ended. Unless they are sessions,
    /// each of which is whole, those of other machines are invalid.
    fn next_block(&self, plan: &Plan, state: &BlockState) -> Result<NextBlock, String> {
        let current = self.current();
        let Some(Held { queued, attempt, .. }) = &*current else {
            return Err("there is no block".to_owned());
        };
        let block = &queued.block;
        if !block.is_of(plan) {
            return Err("the campaign has no such trials".to_owned());
        }
        // What was signed, or at least sent, is what counts: not what the message claims to need.
        let needed = Requirement::of(block, plan).map_err(|error| error.to_string())?;
        let unmet = needed.unmet(&self.agent.agent.facts);
        if !unmet.is_empty() {
            return Err(format!("this agent can't take it: {}", unmet.join("; ")));
        }
        let is_sessions = matches!(block.content, BlockContent::Comparison(_));
        let mut trials = Vec::new();
        for earlier in &state.attempts {
            for (trial, sum) in &earlier.trials {
                let record = self.agent.connection.trial(&queued.run, trial, sum);
                let mut record = record.map_err(|error| error.to_string())?;
                if !is_sessions && earlier.attempt.machine != attempt.machine {
                    mark_as_lost(&mut record, &earlier.attempt.agent);
                }
                trials.push(record.trial);
            }
        }
        Ok(NextBlock { block: block.clone(), trials })
    }
}

/// The blocks of a campaign that follow on the same servers.
struct Following<'a> {
    work: &'a Work<'a>,
    plan: &'a Plan,
}

impl MoreBlocks for Following<'_> {
    fn next(&self) -> Option<NextBlock> {
        let Self { work, plan } = *self;
        let agent = work.agent;
        if work.failed().is_some() {
            return None;
        }
        let held = work.current().take()?;
        agent.end(held, Ending::Complete);
        let can_take = |requirement: &Requirement| requirement.unmet(&agent.agent.facts).is_empty();
        while !agent.agent.is_draining() {
            // An error of the server is reported when the agent looks for other blocks.
            let delivery = agent.connection.take(Some(&work.job.run), &can_take).ok()??;
            let Some((held, state)) = agent.begin(delivery) else { continue };
            let is_same = held.queued.job_sha256 == work.job_sha256;
            *work.current() = Some(held);
            let next = match is_same {
                true => work.next_block(plan, &state).map_err(|why| Ending::Failed { why }),
                // The campaign was changed.
                false => Err(Ending::GivenBack),
            };
            match next {
                Ok(next) => return Some(next),
                Err(how) => {
                    let held = work.current().take()?;
                    agent.end(held, how);
                    return None;
                }
            }
        }
        None
    }
}

/// Sends each bundle when its trial has ended, and what happens to those who listen.
struct BlockObserver<'a> {
    work: &'a Work<'a>,
    store: &'a Store,
    run: &'a Run,
}

impl BlockObserver<'_> {
    fn send(&self, trial: &Trial) -> Result<(), FleetError> {
        let agent = self.work.agent;
        let current = self.work.current();
        let Some(Held { queued, attempt, .. }) = &*current else { return Ok(()) };
        let archive = self.store.archived(&trial.id)?;
        let sha256 = agent.insist(|| agent.connection.put_bundle(&queued.run, &trial.id, &archive))?;
        let what = What::Trial { attempt: attempt.id.clone(), trial: trial.id.clone(), sha256 };
        let event = Event { at: Timestamp::now(), what };
        let id = format!("{}-trial", trial.id);
        agent.insist(|| agent.connection.publish_event(&queued.run, &queued.block.name, &id, &event))?;
        agent.count_trial();
        Ok(())
    }

    /// Tells those who listen.
    fn tell(&self, text: &str) {
        let ConnectedAgent { agent, connection, .. } = self.work.agent;
        let message = ProgressMessage { agent: agent.facts.name.clone(), text: text.to_owned() };
        let Ok(bytes) = message::encode(&message) else { return };
        let (client, subject) = (connection.client.clone(), connection.subjects.progress(&self.run.id));
        // Nobody may listen, and nobody needs to.
        let _ = connection.wait(async move { client.publish(subject, bytes.into()).await });
    }
}

impl Observer for BlockObserver<'_> {
    fn on_event(&self, event: &observer::Event) {
        match event {
            observer::Event::Notice(text) => {
                self.work.agent.agent.log(text);
                self.tell(text);
            }
            observer::Event::TrialEnded(trial) => {
                if let Err(error) = self.send(trial) {
                    let why = format!("a bundle can't be sent: {error}");
                    self.work.failed().get_or_insert(why);
                }
            }
            observer::Event::Preparing { what, done: 0, .. } => self.tell(what),
            _ => {}
        }
    }
}
