//! `pgdyno doctor --threads`: whether another number of driver threads gives more than the default one, for point lookups,
//! which cost the driver most.

use std::io;
use std::time::Duration;

use anyhow::{Context, bail};
use bench::{
    ErrorOptions, Interrupt, Plan, Request, ScheduleOptions, ScriptOptions, ThreadsProbe, WeightedName,
};
use driver::Engine;
use host::{Cache, Turn, usable_cpus};
use model::factor::threads::{default_threads, other_threads};
use model::workload::Protocol;
use plaintext::table::Format;
use serde::Serialize;
use server::{Dataset, Server};

use crate::exit::Exit;
use crate::interrupt::{self, END_SIGNALS};
use crate::output::{print, print_json};
use crate::progress::{LoadProgress, PreparationProgress};

/// Scale of the data set.
const SCALE: u32 = 10;

/// Clients for each CPU: few enough for a thread each by default, and more.
const CLIENTS_PER_CPU: [u32; 3] = [2, 8, 32];

/// Length of the load before each probe, which reads the tables and shows how long transactions take.
const DURATION: Duration = Duration::from_secs(1);

/// `doctor --threads --format json`, schema 1.
#[derive(Serialize)]
struct Document {
    schema: u32,
    probes: Vec<ThreadsProbe>,
}

pub(super) fn run(version: &str, allow_concurrent: bool, format: Format) -> anyhow::Result<Exit> {
    let cpus = usable_cpus().unwrap_or(1);
    let progress = PreparationProgress::new();
    let turn = Turn::take("doctor --threads", allow_concurrent, &progress)?;
    let server = start(version, cpus, &progress)?;
    progress.clear();

    let interrupt = Interrupt::default();
    let first = interrupt.clone();
    interrupt::on_first_signal(&END_SIGNALS, move |_| first.request(), interrupt::exit)
        .context("could not handle Ctrl-C")?;
    let mut probes = Vec::new();
    for clients in CLIENTS_PER_CPU.map(|clients| clients * cpus) {
        let plan = Plan::new(request(&server, clients, cpus))?;
        let report = bench::run(plan, &interrupt, Some(&mut LoadProgress::new()), &mut io::stderr()).report?;
        if interrupt.is_requested() {
            return Ok(Exit::Interrupted);
        }
        match report.threads_probe() {
            Some(probe) => probes.push(probe.clone()),
            None => bail!("{}", report.warnings().collect::<Vec<_>>().join("\n")),
        }
    }
    drop(turn);
    match format {
        Format::Json => print_json(&Document { schema: 1, probes })?,
        Format::Table => print(&bench::probes_text(&probes))?,
        format => print(&bench::probes_table(&probes).render(format))?,
    }
    Ok(Exit::Ok)
}

/// A temporary server, which ends with its value.
fn start(version: &str, cpus: u32, progress: &PreparationProgress) -> Result<Server, server::Error> {
    let cache = Cache::open()?;
    server::sweep(&cache)?;
    let installation = server::install(&cache, version, progress)?;
    let content = SCALE.into();
    let dataset = Dataset { installation: &installation, initdb: &[], content: &content, copies: 1 };
    server::disk_need(&cache, &[dataset])?.check(&cache)?;
    let template = server::template(&cache, &installation, &[], &content, None, progress)?;
    let most = CLIENTS_PER_CPU.into_iter().max().unwrap_or_default() * cpus;
    let settings = [
        ("max_connections", (most + 20).to_string()),
        // The data set fits, and nothing but the load runs.
        ("shared_buffers", "256MB".to_owned()),
        ("autovacuum", "off".to_owned()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
    template.clone_cluster(&cache, progress)?.start(&settings)
}

/// Point lookups with the default number of threads, then with others.
fn request(server: &Server, clients: u32, cpus: u32) -> Request {
    let threads = default_threads(clients, cpus);
    Request {
        connection: server.socket_params(),
        scripts: ScriptOptions {
            named: Vec::new(),
            builtin: vec![WeightedName { name: "select-only".to_owned(), weight: 1 }],
            files: Vec::new(),
            define: Vec::new(),
            scale: Some(SCALE),
            seed: 1,
            setup: None,
            teardown: None,
        },
        clients,
        threads,
        other_threads: other_threads(threads, clients, cpus),
        duration: Some(DURATION),
        transactions: None,
        warmup: None,
        protocol: Protocol::Prepared,
        think: None,
        connect: false,
        engine: Engine::Auto,
        schedule: ScheduleOptions::default(),
        errors: ErrorOptions::default(),
        latency_limit: None,
        per_statement: false,
        interval: DURATION,
        interval_log: None,
    }
}
