//! What a coordinator and agents send each other: JSON, with the version of these messages.

use std::path::Path;

use jiff::Timestamp;
use model::plan::Plan;
use model::record::Run;
use model::workload::{Workload, Workloads};
use runner::blocks::Block;
use runner::campaign_file::CampaignFile;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::requirement::Requirement;

/// Version of these messages; others are refused.
pub const VERSION: u32 = 1;

/// The largest message that is read, in bytes; bundles and campaigns are objects.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// The largest campaign with its workloads, in bytes.
pub(crate) const MAX_JOB_BYTES: usize = 16 << 20;

/// A message with its version.
#[derive(Debug, Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// A campaign's run with everything that its blocks need: an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The run's id.
    pub run: String,
    /// The campaign's name.
    pub campaign: String,
    /// The campaign's text.
    pub text: String,
    /// Seed of the run.
    pub seed: Option<u64>,
    /// CPUs from which the default number of the driver's threads follows.
    pub processors: Option<u32>,
    /// Tags of the run.
    pub tags: Vec<String>,
    /// Notes of the campaign.
    pub notes: Option<String>,
    /// The release of pgdyno that queued it, and runs it.
    pub pgdyno_version: String,
    /// Its workloads that are not pgbench's.
    pub workloads: Vec<Workload>,
}

impl Job {
    /// That of a run.
    pub fn new(run: &Run, workloads: Vec<Workload>) -> Self {
        let Run { id, campaign, campaign_toml, seed, processors, pgdyno_version, tags, notes } = run.clone();
        Self {
            run: id,
            campaign,
            text: campaign_toml,
            seed,
            processors,
            tags,
            notes,
            pgdyno_version,
            workloads,
        }
    }

    /// The run.
    pub fn run(&self) -> Run {
        Run {
            id: self.run.clone(),
            campaign: self.campaign.clone(),
            campaign_toml: self.text.clone(),
            seed: self.seed,
            processors: self.processors,
            pgdyno_version: self.pgdyno_version.clone(),
            tags: self.tags.clone(),
            notes: self.notes.clone(),
        }
    }

    /// The plan of the campaign on a machine of the fleet: its workloads are those of the job, whatever files the machine has.
    pub(crate) fn plan(&self) -> Result<Plan, FleetError> {
        let mut workloads = Workloads::default();
        workloads.add_custom(self.workloads.iter());
        let run = self.run();
        let (path, basis) = (Path::new("campaign.toml"), run.basis());
        Ok(CampaignFile::parse_received(path, run.campaign_toml, basis, &workloads)?.plan)
    }
}

/// A block in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedBlock {
    /// The run's id.
    pub run: String,
    /// The block.
    pub block: Block,
    /// SHA-256 of the run's [`Job`], in hexadecimal.
    pub job_sha256: String,
    /// What an agent must have or be.
    pub requirement: Requirement,
    /// How often the block was queued before.
    pub round: u32,
    /// Unique: the message is kept once, if it is sent twice.
    pub id: String,
}

/// A message of the queue: a block, signed where the coordinator has a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedBlock {
    /// A [`QueuedBlock`], as JSON: exactly these bytes are signed.
    pub(crate) block: String,
    /// Public key of the signature.
    pub(crate) key: Option<String>,
    /// The signature, in base64.
    pub(crate) signature: Option<String>,
}

/// What an agent does with a block, from when it takes it on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt {
    /// Unique.
    pub id: String,
    /// The agent.
    pub agent: String,
    /// Its machine: continues a block that it began.
    pub machine: String,
}

/// An event of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: What,
}

/// What happened to a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It is in the queue.
    Queued(Box<QueuedBlock>),
    /// An agent has taken it.
    Begun(Attempt),
    /// A trial of it has ended, and its bundle can be fetched.
    Trial {
        /// Id of the attempt.
        attempt: String,
        /// Id of the trial.
        trial: String,
        /// SHA-256 of the archive of its bundle, in hexadecimal.
        sha256: String,
    },
    /// An agent has finished an attempt.
    Ended {
        /// Id of the attempt.
        attempt: String,
        /// How.
        how: Ending,
    },
    /// Nobody tries it any more, as it ended too many attempts.
    SetAside,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All of its trials have ended.
    Complete,
    /// The agent gave it back, as it was stopped.
    GivenBack,
    /// It could not be run.
    Failed {
        /// Why.
        why: String,
    },
}

/// Progress of a running block, which is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProgressMessage {
    /// The agent.
    pub(crate) agent: String,
    /// What it does.
    pub(crate) text: String,
}

/// The bytes of a message.
pub(crate) fn encode(content: &impl Serialize) -> Result<Vec<u8>, FleetError> {
    serde_json::to_vec(&Versioned { version: VERSION, content })
        .map_err(|error| FleetError::nats("take a message", error))
}

/// A message from its bytes.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(subject: &str, bytes: &[u8]) -> Result<T, FleetError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let message = |why: String| FleetError::Message { subject: subject.to_owned(), why };
    if bytes.len() > MAX_JOB_BYTES {
        return Err(message(format!("it has {} bytes", bytes.len())));
    }
    let Version { version } = serde_json::from_slice(bytes).map_err(|error| message(error.to_string()))?;
    if version != VERSION {
        return Err(message(format!("its version is {version}, that of this pgdyno {VERSION}")));
    }
    let Versioned { content, .. } =
        serde_json::from_slice(bytes).map_err(|error| message(error.to_string()))?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use model::workload::{BackgroundWorkload, Custom, WeightedScript};

    use super::*;

    /// A job with these lines of its campaign, and these workloads.
    fn job(lines: &str, workloads: Vec<Workload>) -> Job {
        Job {
            run: "R".to_owned(),
            campaign: "n".to_owned(),
            text: format!("name = 'n'\n[factors]\nclients = [1]\n{lines}"),
            seed: Some(1),
            processors: Some(1),
            tags: Vec::new(),
            notes: None,
            pgdyno_version: model::release::VERSION.to_owned(),
            workloads,
        }
    }

    fn custom(name: &str, text: &str) -> Custom {
        let script = WeightedScript { name: "a.sql".to_owned(), weight: 1, text: text.to_owned() };
        Custom::new(name, vec![script])
    }

    #[test]
    fn no_workload_is_read_from_files_of_the_machine() {
        let directory = tempfile::tempdir().unwrap();
        let secret = directory.path().join("pgpass.sql");
        fs::write(&secret, "secret").unwrap();
        let secret = secret.display();
        for (lines, name) in [
            (format!("workload = ['own']\n[workloads.own]\nscript = '{secret}'\n"), "own".to_owned()),
            (format!("workload = ['own']\n[workloads.own]\ndirectory = '{secret}'\n"), "own".to_owned()),
            (format!("workload = ['own']\n[workloads.own]\ntrace = '{secret}'\n"), "own".to_owned()),
            (format!("workload = ['{secret}']\n"), secret.to_string()),
            (format!("workload = ['replay:{secret}']\n"), format!("replay:{secret}")),
        ] {
            let refused =
                job(&format!("server = ['18']\n{lines}"), Vec::new()).plan().unwrap_err().to_string();
            let expected = format!("the workload \"{name}\" did not come with the campaign");
            assert!(refused.contains(&expected), "{refused}");
        }
    }

    #[test]
    fn a_job_has_the_workloads_that_came_with_it() {
        let mut own = custom("own", "SELECT 1;");
        own.background.push(BackgroundWorkload {
            workload: Workload::Custom(Arc::new(custom("other", "SELECT 2;"))),
            clients: 1,
            rate: model::units::Rate::MAX,
            start: model::units::Span::default(),
            per_client: false,
            replica: false,
        });
        let own = Workload::Custom(Arc::new(own));
        // A table that no cell names is that of a background workload, which is in the workload that has it.
        let lines = "server = ['18']\nworkload = ['own', 'select-only', 'connect', 'mine']\n[workloads.own]\nscript = 'a.sql'\n\
                     background = [{ workload = 'other' }]\n[workloads.other]\nscript = 'other.sql'\n[workloads.mine]\n\
                     builtin = 'tpcb-like'\n";
        let plan = job(lines, vec![own.clone()]).plan().unwrap();
        let names: Vec<&str> = plan.cells.iter().map(|cell| cell.workload.name()).collect();
        assert_eq!(names, ["own", "select-only", "connect", "tpcb-like"]);
        assert_eq!(plan.cells[0].workload, own);
    }

    #[test]
    fn no_commits_are_listed_on_the_machine() {
        let lines = "server = { repo = '/nowhere', commits = 'a..b' }\nworkload = ['select-only']\n";
        let refused = job(lines, Vec::new()).plan().unwrap_err().to_string();
        assert!(refused.contains("the commits of \"/nowhere\" were not listed"), "{refused}");
    }
}
