//! Names of a fleet's subjects, streams and objects. All begin with the fleet's name.

use host::sha256_of_bytes;

use crate::error::FleetError;

/// The names of one fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subjects {
    fleet: String,
}

impl Subjects {
    /// Those of the fleet of this name.
    ///
    /// # Errors
    /// It can't be part of a subject.
    pub(crate) fn new(fleet: &str) -> Result<Self, FleetError> {
        if !is_token(fleet) {
            return Err(FleetError::Campaign(format!(
                "\"{fleet}\" can't be the name of a fleet: 1 to 32 letters, digits, - and _ are expected"
            )));
        }
        Ok(Self { fleet: fleet.to_owned() })
    }

    /// The stream of blocks that wait for an agent.
    pub(crate) fn queue(&self) -> String {
        format!("{}-blocks", self.fleet)
    }

    /// All blocks of the queue.
    pub(crate) fn all_blocks(&self) -> String {
        format!("{}.block.>", self.fleet)
    }

    /// Blocks of a run with one requirement.
    pub(crate) fn blocks(&self, run: &str, requirement: &str) -> String {
        format!("{}.block.{run}.{requirement}", self.fleet)
    }

    /// Blocks of a run.
    pub(crate) fn blocks_of(&self, run: &str) -> String {
        format!("{}.block.{run}.>", self.fleet)
    }

    /// The stream of events.
    pub(crate) fn events(&self) -> String {
        format!("{}-events", self.fleet)
    }

    /// All of its subjects.
    pub(crate) fn all_events(&self) -> [String; 2] {
        [format!("{}.event.>", self.fleet), format!("{}.run.*", self.fleet)]
    }

    /// Events of a block.
    pub(crate) fn event(&self, run: &str, block: &str) -> String {
        format!("{}.event.{run}.{block}", self.fleet)
    }

    /// Events of all blocks of a run.
    pub(crate) fn events_of(&self, run: &str) -> String {
        format!("{}.event.{run}.*", self.fleet)
    }

    /// A run.
    pub(crate) fn run(&self, run: &str) -> String {
        format!("{}.run.{run}", self.fleet)
    }

    /// All runs.
    pub(crate) fn runs(&self) -> String {
        format!("{}.run.*", self.fleet)
    }

    /// The bucket of bundles and of campaigns.
    pub(crate) fn bucket(&self) -> String {
        self.fleet.clone()
    }

    /// Where agents are asked for their state.
    pub(crate) fn agents(&self) -> String {
        format!("{}.agents", self.fleet)
    }

    /// What happens in the trials of a run, for whoever listens.
    pub(crate) fn progress(&self, run: &str) -> String {
        format!("{}.progress.{run}", self.fleet)
    }

    /// Where an agent is asked for a driver. Names of agents may have dots, which subjects give a meaning.
    pub(crate) fn load_host(&self, agent: &str) -> String {
        format!("{}.host.{}", self.fleet, sha256_of_bytes(agent.as_bytes()))
    }

    /// Where the requests and the replies of a driver on another machine are.
    pub(crate) fn driver(&self, session: &str) -> [String; 2] {
        ["requests", "replies"].map(|what| format!("{}.driver.{session}.{what}", self.fleet))
    }

    /// Where agents learn that there are new blocks.
    pub(crate) fn wake(&self) -> String {
        format!("{}.wake", self.fleet)
    }
}

/// Whether a text can be a part of a subject, a stream's name and a file's name.
pub(crate) fn is_token(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}
