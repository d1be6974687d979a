//! Load hosts: drivers on agents' machines, for a load that another agent runs. Their requests and replies are messages, line by
//! line as on the pipes of a driver process.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use async_nats::{Client, Subscriber};
use driver::{DriverError, ProcessEvent};
use futures_util::StreamExt as _;
use model::fleet::{AgentState, AgentStatus};
use model::load_hosts::RequestedHosts;
use model::message::{Reply, Request, VERSION};
use runner::{Driver, LoadHosts, LoadHostsError, NamedDriver};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::error::FleetError;
use crate::message::{self, SignedBlock};

/// Time in which load hosts have to become free.
const FREE_LIMIT: Duration = Duration::from_secs(30);
/// Time in which an agent has to say whether it starts a driver.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// Interval of the signs of life that keep a driver running.
pub(crate) const ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// A request to start a driver.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartDriver {
    /// Unique: part of the subjects of its requests and replies.
    pub(crate) session: String,
    /// The agent that runs the load.
    pub(crate) agent: String,
    /// The block that the load belongs to.
    pub(crate) block: SignedBlock,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Started {
    /// The driver runs.
    Yes,
    /// It does not.
    No {
        /// Why.
        why: String,
    },
}

/// A driver that has exited.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Exited {
    /// Its status, as wait(2) returns it.
    pub(crate) status: i32,
    /// The end of its standard error.
    pub(crate) stderr: String,
}

/// What a message of a session is, by its first byte: the others are JSON.
pub(crate) mod kind {
    /// A line: a request or a reply.
    pub(crate) const LINE: u8 = b'{';
    /// A sign of life.
    pub(crate) const ALIVE: u8 = b'.';
    /// The driver is not needed any more.
    pub(crate) const CLOSE: u8 = b'x';
    /// The driver has exited.
    pub(crate) const EXITED: u8 = b'!';
}

/// The agents of a fleet as load hosts.
pub(crate) struct FleetLoadHosts<'a> {
    pub(crate) connection: &'a Connection,
    /// The agent that runs the load: its machine is not one of them.
    pub(crate) own: &'a str,
    /// The block that the load belongs to.
    pub(crate) block: &'a SignedBlock,
}

impl LoadHosts for FleetLoadHosts<'_> {
    fn start(&self, hosts: &RequestedHosts) -> Result<Vec<NamedDriver>, LoadHostsError> {
        let deadline = Instant::now() + FREE_LIMIT;
        loop {
            let mut refused = Vec::new();
            let mut started: Vec<NamedDriver> = Vec::new();
            let agents = self.connection.agents()?;
            for name in self.candidates(hosts, &agents, &mut refused) {
                if started.len() == hosts.count() as usize {
                    break;
                }
                match self.start_one(&name)? {
                    Ok(driver) => started.push((name, Box::new(driver))),
                    Err(why) => refused.push(format!("{name}: {why}")),
                }
            }
            if started.len() == hosts.count() as usize {
                return Ok(started);
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "{} of {} load hosts are free{}{}",
                    started.len(),
                    hosts.count(),
                    if refused.is_empty() { "" } else { "; " },
                    refused.join("; ")
                )
                .into());
            }
            // Those that have started are free again.
            drop(started);
            thread::sleep(Duration::from_secs(1));
        }
    }
}

impl FleetLoadHosts<'_> {
    /// Names of the agents to ask, in their order; why others are not asked.
    fn candidates(
        &self,
        hosts: &RequestedHosts,
        agents: &[AgentStatus],
        refused: &mut Vec<String>,
    ) -> Vec<String> {
        let mut fit = BTreeSet::new();
        for AgentStatus { facts, state, is_draining, .. } in agents {
            let why = if facts.name == self.own {
                "it runs the trial"
            } else if facts.pgdyno_version != model::release::VERSION {
                "it is another version of pgdyno"
            } else if !facts.allows.load {
                "it is no load host (--allow load)"
            } else if *is_draining {
                "it is being stopped"
            } else if *state != AgentState::Idle {
                "it is busy"
            } else {
                fit.insert(facts.name.clone());
                continue;
            };
            refused.push(format!("{}: {why}", facts.name));
        }
        match hosts {
            RequestedHosts::Number(_) => fit.into_iter().collect(),
            RequestedHosts::Named(names) => {
                let unknown = |name: &&String| !agents.iter().any(|agent| agent.facts.name == **name);
                refused.retain(|text| names.iter().any(|name| text.starts_with(&format!("{name}: "))));
                refused.extend(names.iter().filter(unknown).map(|name| format!("{name} does not answer")));
                names.iter().filter(|name| fit.contains(*name)).cloned().collect()
            }
        }
    }

    /// Has an agent start a driver; the inner error is why it does not.
    fn start_one(&self, agent: &str) -> Result<Result<RemoteDriver, String>, FleetError> {
        let Self { connection, own, block } = self;
        let session = store::new_id();
        let driver = RemoteDriver::open(connection, &session)?;
        let request = StartDriver { session, agent: (*own).to_owned(), block: (*block).clone() };
        let (client, subject) = (connection.client.clone(), connection.subjects.load_host(agent));
        let bytes = message::encode(&request)?;
        let answer = connection.wait(async move {
            tokio::time::timeout(ANSWER_LIMIT, client.request(subject, bytes.into())).await
        });
        Ok(match answer {
            Ok(Ok(answer)) => match message::decode(answer.subject.as_str(), &answer.payload)? {
                Started::Yes => Ok(driver),
                Started::No { why } => Err(why),
            },
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it does not answer".to_owned()),
        })
    }
}

/// A driver on another machine.
struct RemoteDriver {
    runtime: Handle,
    client: Client,
    requests: String,
    replies: Subscriber,
    alive: JoinHandle<()>,
}

impl RemoteDriver {
    fn open(connection: &Connection, session: &str) -> Result<Self, FleetError> {
        let [requests, replies] = connection.subjects.driver(session);
        let replies = connection
            .wait(connection.client.subscribe(replies))
            .map_err(|error| FleetError::nats("accept a subscription", error))?;
        let client = connection.client.clone();
        let (of_alive, subject) = (client.clone(), requests.clone());
        let alive = connection.spawn(async move {
            loop {
                let _ = of_alive.publish(subject.clone(), vec![kind::ALIVE].into()).await;
                tokio::time::sleep(ALIVE_INTERVAL).await;
            }
        });
        Ok(Self { runtime: connection.handle(), client, requests, replies, alive })
    }

    fn publish(&self, bytes: Vec<u8>) -> Result<(), DriverError> {
        let (client, subject) = (&self.client, self.requests.clone());
        self.runtime
            .block_on(async {
                client.publish(subject, bytes.into()).await?;
                client.flush().await.map_err(std::io::Error::other).map_err(Into::into)
            })
            .map_err(|error: Box<dyn std::error::Error + Send + Sync>| {
                DriverError::Send(std::io::Error::other(error))
            })
    }
}

impl Driver for RemoteDriver {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        let line = serde_json::to_vec(request).map_err(|error| DriverError::Send(error.into()))?;
        if line.len() > message::MAX_BYTES {
            let why = format!("a request of {} bytes is too large for load hosts", line.len());
            return Err(DriverError::Send(std::io::Error::other(why)));
        }
        self.publish(line)
    }

    fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError> {
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let replies = &mut self.replies;
            let next = self.runtime.block_on(async { tokio::time::timeout(left, replies.next()).await });
            let Ok(Some(message)) = next else { return Ok(ProcessEvent::TimedOut) };
            match message.payload.first() {
                Some(&kind::LINE) => {
                    let reply: Reply = serde_json::from_slice(&message.payload).map_err(|error| {
                        let line = String::from_utf8_lossy(&message.payload).chars().take(80).collect();
                        DriverError::InvalidReply { problem: error.to_string(), line }
                    })?;
                    if let Reply::Hello { version } = reply
                        && version != VERSION
                    {
                        return Err(DriverError::Version { driver: version, runner: VERSION });
                    }
                    return Ok(ProcessEvent::Reply(reply));
                }
                Some(&kind::EXITED) => {
                    let exited: Exited = serde_json::from_slice(&message.payload[1..])
                        .unwrap_or(Exited { status: 0, stderr: String::new() });
                    let status = ExitStatus::from_raw(exited.status);
                    return Ok(ProcessEvent::Exited { status, stderr: exited.stderr });
                }
                _ => {}
            }
        }
    }
}

impl Drop for RemoteDriver {
    fn drop(&mut self) {
        self.alive.abort();
        // An agent that does not get it ends the driver when the signs of life end.
        let _ = self.publish(vec![kind::CLOSE]);
    }
}
