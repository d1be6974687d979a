//! The child's side of the pipes.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::ExitCode;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::message::{self, Reply, Request, Slice, VERSION};
use model::part::Part;
use model::record::ClockReading;
use model::workload::{BackgroundWorkload, Workload};
use script::{EvalError, Names, Script, Seeds, Value, Variables};

use crate::arrivals::{Arrivals, Rate, Spacing};
use crate::clock;
use crate::connect::connect_params;
use crate::control::{Control, Stopper};
use crate::engine::run;
use crate::error::LoadError;
use crate::load::{ErrorPolicy, Group, Load, WeightedScript};
use crate::observer::{DriverMessage, Observer};
use crate::program::COMMITS_PER_CONNECTION;
use crate::record::Record;
use crate::replies::Replies;
use crate::requests::next_request;
use crate::summary::Summary;
use crate::trace_load;

/// Time that transactions in flight have after the end of the load before they are aborted.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// `application_name` of the load's sessions, which identifies them in `pg_stat_activity`.
pub const APPLICATION_NAME: &str = "pgdyno";
/// The same for sessions of background workloads.
pub const BACKGROUND_APPLICATION_NAME: &str = "pgdyno-beside";

/// How [`serve`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeOutcome {
    /// The load has ended, and its outcome has been reported.
    Finished,
    /// The load could not be run, and the reason has been reported.
    Failed,
    /// The runner has exited: nothing has been reported.
    Abandoned,
}

impl From<ServeOutcome> for ExitCode {
    fn from(ended: ServeOutcome) -> Self {
        match ended {
            ServeOutcome::Finished => Self::SUCCESS,
            ServeOutcome::Failed | ServeOutcome::Abandoned => Self::FAILURE,
        }
    }
}

/// Reads a load from `input`, runs it, and reports on `output`, in the messages of `model::message`.
///
/// A driver process does nothing else: when this returns, threads may still be running, which end with the process. It
/// returns at once when `input` or `output` is closed from the other side. After a part of a load it returns only then, so that
/// its clock can be read once more.
pub fn serve(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> ServeOutcome {
    let replies = Replies::new(output);
    let ended = match run_load(input, &replies) {
        Ok(EndedLoad { outcome, clock_reader }) => replies.write(&outcome).map(|()| {
            // It has reported a panic itself.
            let _ = clock_reader.map(JoinHandle::join);
            ServeOutcome::Finished
        }),
        Err(LoadError::RunnerExited) => Ok(ServeOutcome::Abandoned),
        Err(error) => {
            let failed = Reply::Failed { message: error.to_string(), outage: error.outage() };
            replies.write(&failed).map(|()| ServeOutcome::Failed)
        }
    };
    ended.unwrap_or(ServeOutcome::Abandoned)
}

/// A load that has ended.
struct EndedLoad {
    outcome: Reply,
    /// The thread that reads requests to their end, if the clock may still be asked for.
    clock_reader: Option<JoinHandle<()>>,
}

fn run_load<W: Write + Send + 'static>(
    input: impl Read + Send + 'static,
    replies: &Replies<W>,
) -> Result<EndedLoad, LoadError> {
    replies.write(&Reply::Hello { version: VERSION }).map_err(|_| LoadError::RunnerExited)?;
    let mut requests = BufReader::new(input).lines();
    let load = match next_request(&mut requests)? {
        Request::Run(load) => load,
        Request::Stop
        | Request::Resume
        | Request::Pause
        | Request::ReadClock { .. }
        | Request::Start { .. }
        | Request::Sampled(_) => {
            return Err(LoadError::Request("something else was requested before a load".to_owned()));
        }
    };
    if let Some(cpus) = &load.cpus {
        pin_to_cpus(cpus)?;
    }
    if let Some(path) = &load.trace {
        let outcome = trace_load::run(&load, path, requests, replies)?;
        return Ok(EndedLoad { outcome, clock_reader: None });
    }
    let names = background(&load.workload).map(|background| background.workload.name().to_owned()).collect();
    let is_part = load.part.is_some();
    let load = load_from_message(&load)?;
    let control = Control::default();
    let stopper = control.stopper();
    let of_requests = replies.clone();
    let reader = thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || handle_requests(requests, &of_requests, &stopper))
        .map_err(LoadError::Thread)?;
    let summary = Summary::new(&load, names)?;
    let mut observer = ReplyObserver { stopper: control.stopper(), replies, summary };
    let outcome = run(load, control, &mut observer)?;
    let other_commits = outcome.connections * COMMITS_PER_CONNECTION;
    let outcome = Reply::Finished(Box::new(observer.summary.outcome(&outcome, other_commits)));
    Ok(EndedLoad { outcome, clock_reader: is_part.then_some(reader) })
}

fn handle_requests<W: Write>(mut requests: Lines<impl BufRead>, replies: &Replies<W>, stopper: &Stopper) {
    loop {
        match next_request(&mut requests) {
            Ok(Request::ReadClock { number }) => {
                if replies.write_clock(number, clock::now_us()).is_err() {
                    return stopper.abandon(LoadError::RunnerExited);
                }
            }
            Ok(Request::Start { at_us }) => {
                stopper.start_at(u64::try_from(at_us).unwrap_or(0).saturating_mul(1_000))
            }
            Ok(Request::Stop) => stopper.stop(),
            Ok(Request::Resume) => stopper.resume(),
            Ok(Request::Pause) => stopper.pause(),
            // Of traces.
            Ok(Request::Sampled(_)) => {}
            Ok(Request::Run(_)) => {
                let problem = "a second load was requested while the first runs".to_owned();
                return stopper.abandon(LoadError::Request(problem));
            }
            Err(error) => return stopper.abandon(error),
        }
    }
}

/// Pins this thread, and those that it will start, to some CPUs.
fn pin_to_cpus(cpus: &[u32]) -> Result<(), LoadError> {
    host::pin_to_cpus(None, cpus)
        .map_err(|error| LoadError::Request(format!("cannot pin the driver to CPUs {cpus:?}: {error}")))
}

/// The load that a runner requests.
pub(crate) fn load_from_message(load: &message::Load) -> Result<Load, LoadError> {
    let clients = background(&load.workload).map(|background| background.clients).sum::<u32>() + load.clients;
    let part = load.part.unwrap_or(Part::WHOLE);
    if part.host >= part.hosts {
        let problem = format!("a load on {} hosts has no part {}", part.hosts, part.host);
        return Err(LoadError::Request(problem));
    }
    if load.part.is_some() && part.hosts > load.clients {
        return Err(LoadError::Invalid(format!("{} hosts can't share {} clients", part.hosts, load.clients)));
    }
    // Each host has at least one thread.
    let threads = load.threads.max(part.hosts);
    let seeds = Seeds::draw(load.seed, clients as usize, threads as usize, false);
    let known = [
        ("scale", Some(i64::from(load.scale))),
        ("random_seed", Some(load.seed as i64)),
        ("default_seed", seeds.default_seed),
    ];
    let main = Group { clients: load.clients, ..group(&load.workload, str::to_owned, load.rate, &known)? };
    let mut others = Vec::new();
    let params = |connection| {
        let mut params = connect_params(connection).map_err(|error| LoadError::Invalid(error.to_string()))?;
        params.application_name = Some(APPLICATION_NAME.to_owned());
        Ok::<_, LoadError>(params)
    };
    for background in background(&load.workload) {
        let replica = load.replica.as_ref().filter(|_| background.replica);
        let group = group(&background.workload, |script| background.script(script), background.rate, &known)?;
        others.push(Group {
            clients: background.clients,
            connection: replica.map(params).transpose()?,
            application_name: Some(BACKGROUND_APPLICATION_NAME.to_owned()),
            start: background.start.duration(),
            ..group
        });
    }
    let mut errors = ErrorPolicy::pgbench(Some(1));
    if load.workload.custom().is_none() {
        // pgbench's scripts should not fail: an error aborts its client and is reported.
        errors.rules.clear();
    }
    let connection = params(&load.connection)?;
    // A load in slices ends by a stop.
    let (warmup, length) = match load.slices {
        None => (Duration::from_micros(load.warmup_us), Duration::from_micros(load.duration_us)),
        Some(_) => (Duration::ZERO, Duration::MAX),
    };
    Ok(Load {
        background: others,
        protocol: load.protocol,
        length: Some(length),
        warmup,
        slice_guard: load.slices.map(|slices| Duration::from_micros(slices.guard_us)),
        interval: Duration::from_micros(load.interval_us),
        drain: Some(DRAIN_TIMEOUT),
        errors,
        part,
        awaits_start: load.part.is_some(),
        ..Load::new(connection, main, seeds)
    })
}

/// Background workloads of a workload.
fn background(workload: &Workload) -> impl Iterator<Item = &BackgroundWorkload> {
    workload.custom().into_iter().flat_map(|custom| &custom.background)
}

/// The clients of a workload, whose number the caller sets. `script_name` returns the names of its scripts.
fn group(
    workload: &Workload,
    script_name: impl Fn(&str) -> String,
    rate: model::units::Rate,
    known: &[(&str, Option<i64>)],
) -> Result<Group, LoadError> {
    let mut names = Names::default();
    let scripts = scripts(workload, script_name, &mut names)?;
    let mut variables = Variables::new(&names);
    let script_error = |error: EvalError| LoadError::Script(error.to_string());
    for (variable, value) in known {
        if let (Some(slot), Some(value)) = (names.find(variable), *value) {
            variables.set(slot, Value::Int(value)).map_err(script_error)?;
        }
    }
    let custom = workload.custom();
    for (parameter, value) in custom.iter().flat_map(|custom| &custom.parameters) {
        if let Some(slot) = names.find(parameter) {
            variables.set_text(slot, value).map_err(script_error)?;
        }
    }
    Ok(Group {
        client_id: names.find("client_id"),
        arrivals: match rate.get() {
            None => Arrivals::Closed,
            Some(rate) => Arrivals::Rate(Rate::constant(rate, Spacing::Poisson)),
        },
        reconnect: custom.is_some_and(|custom| custom.reconnect),
        stagger: custom.map(|custom| custom.stagger.duration()).unwrap_or_default(),
        transactions: custom.and_then(|custom| custom.iterations).map(u64::from),
        spans: custom.is_some_and(|custom| custom.spans),
        ..Group::new(1, scripts, variables)
    })
}

/// The scripts of a workload.
fn scripts(
    workload: &Workload,
    script_name: impl Fn(&str) -> String,
    names: &mut Names,
) -> Result<Vec<WeightedScript>, LoadError> {
    let mut parse = |name: &str, text: &str, weight| match Script::parse(&script_name(name), text, names) {
        Ok(script) => Ok(WeightedScript { script, weight }),
        Err(error) => Err(LoadError::Script(error.to_string())),
    };
    match workload.custom() {
        Some(custom) => {
            custom.scripts.iter().map(|script| parse(&script.name, &script.text, script.weight)).collect()
        }
        None => {
            let name = workload.name();
            let builtin = script::builtin(name)
                .ok_or_else(|| LoadError::Script(format!("there is no built-in script \"{name}\"")))?;
            Ok(vec![parse(name, builtin.text, 1)?])
        }
    }
}

/// Observer that sends the events of a load as replies.
struct ReplyObserver<'a, W: Write> {
    replies: &'a Replies<W>,
    summary: Summary,
    stopper: Stopper,
}

impl<W: Write> ReplyObserver<'_, W> {
    fn send(&mut self, reply: &Reply) {
        if self.replies.write(reply).is_err() {
            self.stopper.abandon(LoadError::RunnerExited);
        }
    }
}

impl<W: Write> Observer for ReplyObserver<'_, W> {
    fn connected(&mut self, took: Duration, background: &[i32]) {
        let connect_us = took.as_micros() as u64;
        self.send(&Reply::Connected { connect_us, background: background.to_vec() });
    }

    fn started(&mut self, at: ClockReading, late: Duration) {
        self.send(&Reply::Started { at, late_us: late.as_micros() as u64 });
    }

    fn interval(&mut self, record: &Record) {
        match self.summary.interval(record) {
            Ok(interval) => self.send(&Reply::Interval(interval)),
            Err(error) => self.stopper.abandon(error),
        }
    }

    fn paused(&mut self, slice: &Slice) {
        self.send(&Reply::Paused(*slice));
    }

    fn on_message(&mut self, message: &DriverMessage) {
        if message.aborted {
            let location = self.summary.location(message);
            // What pgbench adds to an error of preparing follows from it.
            let text = message.text.lines().filter(|line| !line.starts_with("so that prepared statement "));
            let text = text.collect::<Vec<_>>().join(" ");
            self.send(&Reply::ClientDied(message::ClientDeath {
                at_us: message.at_ns / 1_000,
                client: message.client,
                sqlstate: message.sqlstate.clone(),
                message: format!("{} ({location})", text.trim_end()),
            }));
        }
    }
}
