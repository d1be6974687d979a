//! What the machines of a fleet are, and what they do.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetStatus {
    /// The agents that answered, by name.
    pub agents: Vec<AgentStatus>,
    /// The runs, the oldest first.
    pub runs: Vec<RunStatus>,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStatus {
    /// What it is.
    pub facts: AgentFacts,
    /// What it does.
    pub state: AgentState,
    /// Whether it takes no more blocks, as it is being stopped.
    pub is_draining: bool,
    /// What it waits for, if it waits for the NATS server.
    pub trouble: Option<String>,
}

/// What an agent is and has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentFacts {
    /// Its name.
    pub name: String,
    /// Release of pgdyno.
    pub pgdyno_version: String,
    /// Labels.
    pub labels: Vec<String>,
    /// Identity of its machine.
    pub machine: String,
    /// Host name.
    pub hostname: String,
    /// CPUs that it can use.
    pub cpus: Option<u32>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Main memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Release of the running kernel.
    pub kernel: String,
    /// The kernel's command line.
    pub kernel_command_line: String,
    /// Servers that are installed or built there; others are fetched.
    pub servers: Vec<String>,
    /// Version of PgBouncer; null if there is none.
    #[serde(default)]
    pub pgbouncer: Option<String>,
    /// Checks of `pgdyno doctor` that are not ok, in words.
    pub findings: Vec<String>,
    /// What campaigns may do there.
    pub allows: Allows,
    /// Whether it takes signed campaigns only.
    pub is_trusting_keys: bool,
}

/// What campaigns may do on an agent's machine in addition to measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allows {
    /// Run commands of their own: hooks, and `\shell` in scripts.
    pub hooks: bool,
    /// Build servers, and run those that are in directories there.
    pub builds: bool,
    /// Put load on servers elsewhere: be a load host.
    pub load: bool,
}

/// What an agent does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AgentState {
    /// It waits for a block.
    #[default]
    Idle,
    /// Its driver puts load on the server of another agent's trial.
    Load {
        /// That agent.
        agent: String,
        /// Since when.
        since: Timestamp,
    },
    /// It runs a block.
    Running {
        /// The run's id.
        run: String,
        /// The campaign's name.
        campaign: String,
        /// The block.
        block: String,
        /// Since when.
        since: Timestamp,
        /// Trials that have ended.
        trials: usize,
    },
}

/// A run of the fleet, and its blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStatus {
    /// The run.
    #[serde(flatten)]
    pub run: QueuedRun,
    /// Blocks that wait for an agent.
    pub waiting: usize,
    /// Blocks that an agent has.
    pub running: Vec<RunningBlock>,
    /// Blocks that are complete.
    pub complete: usize,
    /// Blocks that no agent gets any more, as they ended too many attempts.
    pub set_aside: Vec<SetAsideBlock>,
    /// Trials that have ended.
    pub trials: usize,
}

/// A run of the fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueuedRun {
    /// The run's id.
    pub run: String,
    /// The campaign's name.
    pub campaign: String,
    /// Host of its coordinator.
    pub coordinator: String,
    /// When it was queued.
    pub at: Timestamp,
}

/// A block that an agent has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningBlock {
    /// The block.
    pub block: String,
    /// The agent's name.
    pub agent: String,
}

/// A block that no agent gets any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetAsideBlock {
    /// The block.
    pub block: String,
    /// How its attempts ended.
    pub reasons: Vec<String>,
}
