//! An agent: takes blocks of the queue, one at a time, runs their trials on this machine, and sends each bundle back.

mod load_host;
mod work;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use host::Cache;
use jiff::Timestamp;
use model::fleet::{AgentFacts, AgentState, AgentStatus};

use crate::connection::Connection;
use crate::error::FleetError;
use crate::events::{BlockState, Decision};
use crate::message::{self, Attempt, Ending, Event, Job, QueuedBlock, SignedBlock, What};
use crate::queue::{Delivery, Kept};
use crate::requirement::Requirement;
use crate::signature::TrustedKeys;
use work::Work;

/// Time between two looks at the queue; new blocks are announced.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Time after which others may take a block that failed here.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// Time after which others may take a block that is not signed for this agent.
const AFTER_REFUSAL: Duration = Duration::from_secs(10);
/// Time after which a block can be taken again whose event is still to come.
const UNTIL_QUEUED: Duration = Duration::from_secs(1);

/// An agent on this machine.
pub struct Agent<'a> {
    /// What it is.
    pub facts: AgentFacts,
    /// The keys whose campaigns it runs; none for all campaigns of the fleet.
    pub trusted: Option<TrustedKeys>,
    /// The cache of servers and data sets.
    pub cache: &'a Cache,
    /// The program that becomes a driver process if called with `driver`: pgdyno itself.
    pub program: &'a Path,
    /// Set when it is to take no more blocks: it completes the one that it has.
    pub drain: Arc<AtomicBool>,
    /// Set when it is to give that one back as well, at once.
    pub stop: &'a AtomicBool,
    /// Receives what it does, line by line.
    pub log: &'a (dyn Fn(&str) + Sync),
}

/// Its state, which it answers questions with.
#[derive(Clone)]
struct SharedStatus(Arc<Mutex<AgentStatus>>);

impl SharedStatus {
    fn lock(&self) -> MutexGuard<'_, AgentStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent with its connection.
struct ConnectedAgent<'a> {
    agent: &'a Agent<'a>,
    connection: &'a Connection,
    status: SharedStatus,
    /// Set while it has a block, or a driver for another agent.
    busy: Arc<AtomicBool>,
    /// The job of the last block, with its SHA-256: consecutive blocks mostly have the same.
    last_job: Mutex<Option<(String, Arc<Job>)>>,
}

impl Agent<'_> {
    /// Takes blocks until it is drained.
    ///
    /// # Errors
    /// The NATS server refuses a subscription.
    pub fn run(&self, connection: &Connection) -> Result<(), FleetError> {
        let status = SharedStatus(Arc::new(Mutex::new(AgentStatus {
            facts: self.facts.clone(),
            state: AgentState::Idle,
            is_draining: false,
            trouble: None,
        })));
        answer(connection, status.clone(), Arc::clone(&self.drain))?;
        let busy = Arc::new(AtomicBool::new(false));
        load_host::serve(self, connection, &status, &busy)?;
        ConnectedAgent { agent: self, connection, status, busy, last_job: Mutex::default() }.take_blocks()
    }

    fn is_draining(&self) -> bool {
        self.drain.load(Ordering::Relaxed)
    }

    fn log(&self, text: &str) {
        (self.log)(text);
    }
}

impl ConnectedAgent<'_> {
    fn take_blocks(&self) -> Result<(), FleetError> {
        let Self { agent, connection, .. } = self;
        let mut wake = connection.listen(connection.subjects.wake())?;
        let is_over = || agent.is_draining();
        let can_take = |requirement: &Requirement| requirement.unmet(&agent.facts).is_empty();
        while !is_over() {
            if self.busy.swap(true, Ordering::Relaxed) {
                wake.wait_until(LOOK_INTERVAL, &is_over);
                continue;
            }
            let taken = connection.take(None, &can_take);
            if !matches!(taken, Ok(Some(_))) {
                self.busy.store(false, Ordering::Relaxed);
            }
            match taken {
                Ok(Some(delivery)) => {
                    self.set_trouble(None);
                    self.handle(delivery);
                    self.status.lock().state = AgentState::Idle;
                    self.busy.store(false, Ordering::Relaxed);
                }
                Ok(None) => {
                    self.set_trouble(None);
                    wake.wait_until(LOOK_INTERVAL, &is_over);
                }
                Err(error) => {
                    self.set_trouble(Some(format!("{error}; trying again")));
                    let end = Instant::now() + LOOK_INTERVAL;
                    while !is_over() && Instant::now() < end {
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes what it waits for, and says it once.
    fn set_trouble(&self, trouble: Option<String>) {
        let mut status = self.status.lock();
        if status.trouble != trouble {
            if let Some(text) = &trouble {
                self.agent.log(text);
            }
            status.trouble = trouble;
        }
    }

    /// Notes that another trial has ended.
    fn count_trial(&self) {
        if let AgentState::Running { trials, .. } = &mut self.status.lock().state {
            *trials += 1;
        }
    }

    /// Tries until the NATS server does it, or the agent is to stop.
    fn insist<T>(&self, attempt: impl Fn() -> Result<T, FleetError>) -> Result<T, FleetError> {
        let report = |text: &str| self.set_trouble(Some(text.to_owned()));
        let done = self.connection.insist(self.agent.stop, &report, attempt);
        self.set_trouble(None);
        done
    }

    /// Runs a block that it was given, and those of the same campaign that follow.
    fn handle(&self, delivery: Delivery) {
        let Some((held, state)) = self.begin(delivery) else { return };
        match self.job(&held.queued) {
            Ok(job) => Work::new(self, &job, held).run(&state),
            Err(error) => self.end(held, Ending::Failed { why: error.to_string() }),
        }
    }

    /// Begins a block that it was given; none if it is not to run it, which it has said.
    fn begin(&self, delivery: Delivery) -> Option<(Held, BlockState)> {
        let Self { agent, connection, .. } = *self;
        let kept = delivery.keep(connection);
        let signed = delivery.signed().and_then(|signed| {
            let queued = delivery.block(agent.trusted.as_ref())?;
            Ok((signed, queued))
        });
        let (signed, queued) = match signed {
            Ok(known) => known,
            Err(error) => {
                agent.log(&format!("refused a block: {error}"));
                // Nobody waits for what nobody of the fleet has sent; with --trust, another agent may take it.
                let ended = match agent.trusted {
                    None => delivery.done(connection),
                    Some(_) => delivery.give_back(connection, AFTER_REFUSAL),
                };
                self.log_error("a refused block", ended);
                return None;
            }
        };
        let name = format!("block {} of run {}", queued.block.name, queued.run);
        let attempt = Attempt {
            id: store::new_id(),
            agent: agent.facts.name.clone(),
            machine: agent.facts.machine.clone(),
        };
        let held = Held { delivery, _kept: kept, queued, signed, attempt, name };
        match self.announce(&held) {
            Ok(state) => state.map(|state| (held, state)),
            Err(error) => {
                agent.log(&format!("{}: {error}", held.name));
                self.log_error(&held.name, held.delivery.give_back(connection, AFTER_FAILURE));
                None
            }
        }
    }

    /// Says that it runs a block, and returns the block's state before; none if it is not to run it: it is removed from the queue
    /// or given back.
    fn announce(&self, held: &Held) -> Result<Option<BlockState>, FleetError> {
        let Self { agent, connection, .. } = *self;
        let Held { delivery, queued, attempt, name, .. } = held;
        let QueuedBlock { run, block, round, .. } = queued;
        let state = connection.block_state(run, &block.name)?;
        let decision = state.decision(*round);
        match decision {
            Decision::Run => {}
            Decision::Wait => {
                delivery.give_back(connection, UNTIL_QUEUED)?;
                return Ok(None);
            }
            Decision::SetAside | Decision::Remove => {
                if decision == Decision::SetAside {
                    self.publish(queued, &format!("{}-set-aside", queued.id), What::SetAside)?;
                    agent.log(&format!("{name}: set aside: {}", state.evidence().join("; ")));
                }
                self.insist(|| delivery.done(connection))?;
                return Ok(None);
            }
        }
        let job = self.job(queued)?;
        self.publish(queued, &format!("{}-begun", attempt.id), What::Begun(attempt.clone()))?;
        agent.log(&format!("{name} ({})", job.campaign));
        self.status.lock().state = AgentState::Running {
            run: run.clone(),
            campaign: job.campaign.clone(),
            block: block.name.clone(),
            since: Timestamp::now(),
            trials: 0,
        };
        Ok(Some(state))
    }

    /// Says how a block ended, and removes it from the queue or gives it back.
    fn end(&self, held: Held, how: Ending) {
        let Self { agent, connection, .. } = *self;
        let Held { delivery, queued, attempt, name, .. } = &held;
        if let Ending::Failed { why } = &how {
            agent.log(&format!("{name} failed: {why}"));
        }
        let what = What::Ended { attempt: attempt.id.clone(), how: how.clone() };
        let said = self.publish(queued, &format!("{}-ended", attempt.id), what);
        let ended = said.and_then(|()| match how {
            Ending::Complete => self.insist(|| delivery.done(connection)),
            Ending::GivenBack => delivery.give_back(connection, Duration::ZERO),
            Ending::Failed { .. } => self.insist(|| delivery.give_back(connection, AFTER_FAILURE)),
        });
        self.log_error(name, ended);
    }

    fn publish(&self, queued: &QueuedBlock, id: &str, what: What) -> Result<(), FleetError> {
        let event = Event { at: Timestamp::now(), what };
        self.insist(|| self.connection.publish_event(&queued.run, &queued.block.name, id, &event))
    }

    fn log_error(&self, what: &str, outcome: Result<(), FleetError>) {
        if let Err(error) = outcome {
            self.agent.log(&format!("{what}: {error}"));
        }
    }

    fn job(&self, queued: &QueuedBlock) -> Result<Arc<Job>, FleetError> {
        let mut last = self.last_job.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, job)) = last.as_ref().filter(|(sum, _)| *sum == queued.job_sha256) {
            return Ok(Arc::clone(job));
        }
        let job = Arc::new(self.connection.job(&queued.run, Some(&queued.job_sha256))?);
        *last = Some((queued.job_sha256.clone(), Arc::clone(&job)));
        Ok(job)
    }
}

/// A block that an agent has taken.
struct Held {
    delivery: Delivery,
    _kept: Kept,
    queued: QueuedBlock,
    signed: SignedBlock,
    attempt: Attempt,
    /// For its log.
    name: String,
}

/// Answers those who ask for the agents of the fleet, as long as the connection exists.
fn answer(connection: &Connection, status: SharedStatus, drain: Arc<AtomicBool>) -> Result<(), FleetError> {
    let client = connection.client.clone();
    let mut questions = connection
        .wait(client.subscribe(connection.subjects.agents()))
        .map_err(|error| FleetError::nats("accept a subscription", error))?;
    connection.spawn(async move {
        while let Some(question) = questions.next().await {
            let Some(reply) = question.reply else { continue };
            let mut now = status.lock().clone();
            now.is_draining = drain.load(Ordering::Relaxed);
            if let Ok(bytes) = message::encode(&now) {
                let _ = client.publish(reply, bytes.into()).await;
            }
        }
    });
    Ok(())
}
