//! What a fleet does: its agents and its runs.

use std::time::{Duration, Instant};

use model::fleet::{AgentStatus, FleetStatus, QueuedRun, RunStatus, RunningBlock, SetAsideBlock};

use crate::connection::Connection;
use crate::error::FleetError;
use crate::events::{BlockState, RunState};
use crate::message;

/// Time that agents have to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// Time without an answer after which no more are expected.
const QUIET: Duration = Duration::from_millis(500);

impl Connection {
    /// The agents that answer now.
    ///
    /// # Errors
    /// The NATS server does not answer.
    pub fn agents(&self) -> Result<Vec<AgentStatus>, FleetError> {
        let inbox = self.client.new_inbox();
        let mut answers = self.listen(inbox.clone())?;
        let (client, subject) = (self.client.clone(), self.subjects.agents());
        self.wait(async move { client.publish_with_reply(subject, inbox, "".into()).await })
            .map_err(|error| FleetError::nats("take a message", error))?;
        let end = Instant::now() + ANSWER_LIMIT;
        let mut agents: Vec<AgentStatus> = Vec::new();
        while Instant::now() < end {
            let Some(answer) = answers.next(QUIET) else { break };
            if answer.payload.len() <= message::MAX_BYTES {
                agents.extend(message::decode(answer.subject.as_str(), &answer.payload).ok());
            }
        }
        agents.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
        Ok(agents)
    }

    /// What the fleet does.
    ///
    /// # Errors
    /// The NATS server does not answer.
    pub fn status(&self) -> Result<FleetStatus, FleetError> {
        let agents = self.agents()?;
        let mut runs = Vec::new();
        for run in self.runs()? {
            let state = self.run_state(&run.run, RunState::default())?;
            runs.push(run_status(run, &state));
        }
        Ok(FleetStatus { agents, runs })
    }

    /// The state of a block of a run.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn block_state(&self, run: &str, block: &str) -> Result<BlockState, FleetError> {
        let mut state = BlockState::default();
        for placed in self.events(run, Some(block), 0)? {
            state.add(placed.event);
        }
        Ok(state)
    }

    /// The state of a run's blocks after the events since this one.
    pub(crate) fn run_state(&self, run: &str, mut state: RunState) -> Result<RunState, FleetError> {
        for placed in self.events(run, None, state.last + 1)? {
            state.add(placed.block, placed.sequence, placed.event);
        }
        Ok(state)
    }
}

/// Counts a run's blocks.
fn run_status(run: QueuedRun, state: &RunState) -> RunStatus {
    let mut status =
        RunStatus { run, waiting: 0, running: Vec::new(), complete: 0, set_aside: Vec::new(), trials: 0 };
    for (name, block) in &state.blocks {
        status.trials += block.attempts.iter().map(|attempt| attempt.trials.len()).sum::<usize>();
        let name = name.clone();
        match (block.running(), block.is_set_aside) {
            (Some(running), _) => {
                status.running.push(RunningBlock { block: name, agent: running.attempt.agent.clone() });
            }
            (None, true) => {
                status.set_aside.push(SetAsideBlock { block: name, reasons: block.evidence() });
            }
            (None, false) if block.is_open() => status.waiting += 1,
            (None, false) => status.complete += 1,
        }
    }
    status
}
