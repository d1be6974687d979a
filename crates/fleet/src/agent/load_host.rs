//! An agent as load host: starts a driver for a load that another agent runs, and relays its lines.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures_util::StreamExt as _;
use host::process::withhold_variables;
use jiff::Timestamp;
use model::fleet::{AgentState, Allows};
use model::message::Request;
use model::secret::is_secret_name;
use runner::DRIVER_COMMAND;
use rustix::process::Signal;
use tokio::runtime::Handle;

use super::{Agent, SharedStatus};
use crate::connection::Connection;
use crate::error::FleetError;
use crate::load_hosts::{Exited, StartDriver, Started, kind};
use crate::message;
use crate::requirement::may_run_commands;
use crate::signature::TrustedKeys;
use crate::subjects::{Subjects, is_token};

/// Time without a sign of life after which nobody needs the driver.
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// Starts drivers for others, as long as the connection exists and the agent is not busy.
pub(super) fn serve(
    agent: &Agent<'_>,
    connection: &Connection,
    status: &SharedStatus,
    busy: &Arc<AtomicBool>,
) -> Result<(), FleetError> {
    let host = Host {
        program: agent.program.to_owned(),
        trusted: agent.trusted.clone(),
        allows: agent.facts.allows,
        drain: Arc::clone(&agent.drain),
        runtime: connection.handle(),
        client: connection.client.clone(),
        subjects: connection.subjects.clone(),
        status: status.clone(),
        busy: Arc::clone(busy),
    };
    let mut questions = connection
        .wait(connection.client.subscribe(connection.subjects.load_host(&agent.facts.name)))
        .map_err(|error| FleetError::nats("accept a subscription", error))?;
    let runtime = connection.handle();
    let start = move || {
        while let Some(question) = runtime.block_on(questions.next()) {
            let Some(reply) = question.reply else { continue };
            let answer = match message::decode::<StartDriver>(question.subject.as_str(), &question.payload) {
                Ok(request) => host.start(&request),
                Err(error) => Started::No { why: error.to_string() },
            };
            if let Ok(bytes) = message::encode(&answer) {
                let _ = runtime.block_on(host.client.publish(reply, bytes.into()));
            }
        }
    };
    thread::Builder::new().name("load host".to_owned()).spawn(start).map(drop).map_err(FleetError::Threads)
}

/// What is needed to start drivers.
struct Host {
    program: PathBuf,
    trusted: Option<TrustedKeys>,
    allows: Allows,
    drain: Arc<AtomicBool>,
    runtime: Handle,
    client: Client,
    subjects: Subjects,
    status: SharedStatus,
    /// Set while the agent has a block or a driver.
    busy: Arc<AtomicBool>,
}

impl Host {
    fn start(&self, request: &StartDriver) -> Started {
        let no = |why: &str| Started::No { why: why.to_owned() };
        if !self.allows.load {
            return no("it is no load host (--allow load)");
        }
        if !is_token(&request.session) {
            return no("the request is damaged");
        }
        if let Err(error) = request.block.verified("a request for a driver", self.trusted.as_ref()) {
            return Started::No { why: error.to_string() };
        }
        if self.drain.load(Ordering::Relaxed) || self.busy.swap(true, Ordering::Relaxed) {
            return no("it is busy");
        }
        match self.begin(request) {
            Ok(()) => Started::Yes,
            Err(error) => {
                self.busy.store(false, Ordering::Relaxed);
                Started::No { why: format!("it can't start a driver: {error}") }
            }
        }
    }

    fn begin(&self, request: &StartDriver) -> io::Result<()> {
        let [requests, replies] = self.subjects.driver(&request.session);
        let requests = self.runtime.block_on(self.client.subscribe(requests)).map_err(io::Error::other)?;
        let session = Session {
            runtime: self.runtime.clone(),
            client: self.client.clone(),
            replies,
            allows_shell: self.allows.hooks,
        };
        let (program, status, busy) = (self.program.clone(), self.status.clone(), Arc::clone(&self.busy));
        status.lock().state = AgentState::Load { agent: request.agent.clone(), since: Timestamp::now() };
        let run = move || {
            // The kernel ends the driver with the thread that started it.
            if let Err(error) = session.run(&program, requests) {
                session.exited(1, error.to_string());
            }
            status.lock().state = AgentState::Idle;
            busy.store(false, Ordering::Relaxed);
        };
        thread::Builder::new().name("driver".to_owned()).spawn(run).map(drop)
    }
}

/// A driver process whose lines are relayed.
#[derive(Clone)]
struct Session {
    runtime: Handle,
    client: Client,
    replies: String,
    allows_shell: bool,
}

impl Session {
    /// Runs a driver until it exits, or nobody needs it.
    fn run(&self, program: &Path, mut requests: Subscriber) -> io::Result<()> {
        let mut command = Command::new(program);
        command.arg(DRIVER_COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        withhold_variables(&mut command, is_secret_name);
        let mut child = host::process::spawn(command, Signal::KILL)?;
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("it has no pipes"));
        };
        let stderr = thread::spawn(move || driver::tail(errors));
        let child = Arc::new(Mutex::new(child));
        let relay = {
            let (session, child) = (self.clone(), Arc::clone(&child));
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    session.publish(line.into_bytes());
                }
                let status = child.lock().unwrap_or_else(PoisonError::into_inner).wait();
                let stderr = stderr.join().unwrap_or_default();
                session.exited(status.map_or(0, |status| status.into_raw()), stderr);
            })
        };
        while !relay.is_finished() {
            let next =
                self.runtime.block_on(async { tokio::time::timeout(DEAD_AFTER, requests.next()).await });
            let Ok(Some(message)) = next else { break };
            match message.payload.first() {
                Some(&kind::LINE) => {
                    if !self.allows_shell && has_shell(&message.payload) {
                        self.exited(1, "this agent runs no commands of scripts (--allow hooks)".to_owned());
                        break;
                    }
                    // A driver that does not read has exited, and the relay says so.
                    let line = [&message.payload[..], b"\n"].concat();
                    if input.write_all(&line).and_then(|()| input.flush()).is_err() {
                        break;
                    }
                }
                Some(&kind::CLOSE) => break,
                _ => {}
            }
        }
        // One that has exited is none that could be killed.
        drop(input);
        kill(&child);
        let _ = relay.join();
        Ok(())
    }

    fn publish(&self, bytes: Vec<u8>) {
        let (client, subject) = (&self.client, self.replies.clone());
        // Nobody may be there any more.
        let _ = self.runtime.block_on(async {
            client.publish(subject, bytes.into()).await.map_err(|_| ())?;
            client.flush().await.map_err(|_| ())
        });
    }

    fn exited(&self, status: i32, stderr: String) {
        let mut bytes = vec![kind::EXITED];
        bytes.extend(serde_json::to_vec(&Exited { status, stderr }).unwrap_or_default());
        self.publish(bytes);
    }
}

/// Kills a driver that still runs, unless it is being waited for: then its output is closed, and it exits.
fn kill(child: &Mutex<Child>) {
    if let Ok(mut child) = child.try_lock() {
        let _ = child.kill();
    }
}

/// Whether a request is a load whose scripts run commands.
fn has_shell(request: &[u8]) -> bool {
    match serde_json::from_slice(request) {
        Ok(Request::Run(load)) => load.workload.custom().is_some_and(may_run_commands),
        _ => false,
    }
}
