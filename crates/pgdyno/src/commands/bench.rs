//! `pgdyno bench`: one load against a running server, and its report.

mod errors;
mod load;
mod report;
mod schedule;
mod workload;

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use anyhow::Context;
use bench::{Conclusion, Interrupt, LiveView, Outcome, Plan, Report, Request};
use clap::Args;
use host::{Turn, usable_cpus};
use model::factor::threads::{default_threads, other_threads};

use crate::connection::ConnectionArgs;
use crate::exit::{Exit, Usage, print_error};
use crate::interrupt::{self, END_SIGNALS};
use crate::output::{in_colour, note, print};
use crate::progress::LoadProgress;
use errors::ErrorArgs;
use load::LoadArgs;
pub(super) use load::ProtocolName;
use report::{FormatName, ReportArgs};
use schedule::ScheduleArgs;
use workload::WorkloadArgs;

const EXAMPLES: &str = "\
Examples:
  pgdyno bench -c 16 -T 30s -d mydb                    the built-in tpcb-like, as fast as 16 clients can
  pgdyno bench select-only -c 64 -j 2 --warmup 5s      one of pgbench's scripts
  pgdyno bench read.sql@9 write.sql@1 -r -d mydb       two files, nine to one, each statement measured
  pgdyno bench --rate 400/s -c 32 -T 1min              400 a second, whether or not the server keeps up
  pgdyno bench --stage 30s:100..1000 --stage 10s:1000  a ramp, then a constant rate
  pgdyno bench --find-max 'p99 < 10ms' -c 32           the highest rate with 99 % below 10 ms
  pgdyno bench app.sql --on-error 23505=count --think 10ms..50ms --setup make.sql --teardown drop.sql
  pgdyno bench --format json -o out.json --hlog out.hlog -- 'host=db.example dbname=mydb sslmode=require'

The tables of the built-in scripts come from `pgdyno pgbench -i DBNAME`. What each figure means, and how to
choose between closed and open loop, is in docs/bench.md.

Exit codes: 0 ok; 1 error, all clients were aborted, or no rate meets the objectives; 2 usage, nothing was started;
5 some clients were aborted, or a longer run did not confirm the rate; 130 interrupted, what ran is reported.";

/// Put a load on a server, and report throughput and latency
///
/// Clients run scripts in pgbench's language, in a closed loop (each as fast as it can) or an open one (on a schedule).
/// In an open loop latency counts from the intended start of a transaction, waiting included.
/// The report goes to standard output, a live view to standard error; the first Ctrl-C ends the load and reports it.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    workload: WorkloadArgs,

    #[command(flatten)]
    load: LoadArgs,

    #[command(flatten)]
    schedule: ScheduleArgs,

    #[command(flatten)]
    errors: ErrorArgs,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// Do not wait for other pgdynos that measure on this host: the report warns of them
    #[arg(long, help_heading = "Load")]
    allow_concurrent: bool,
}

impl BenchArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let (output, format, quiet) = (self.report.output.clone(), self.report.format, self.report.quiet);
        let allow_concurrent = self.allow_concurrent;
        let plan = Plan::new(self.request()?).map_err(Usage::from_error)?;
        if let Some(path) = &output {
            // A path that can't be written is reported before the load, not after it.
            let opened = OpenOptions::new().append(true).create(true).open(path);
            opened.with_context(|| cannot_write(path))?;
        }
        let interrupt = Interrupt::default();
        let first = interrupt.clone();
        interrupt::on_first_signal(&END_SIGNALS, move |_| first.request(), interrupt::exit)
            .context("could not handle Ctrl-C")?;
        let turn = match Turn::take("bench", allow_concurrent, &Waiting(&interrupt)) {
            Err(host::Error::Interrupted) => {
                note("interrupted while waiting for other pgdynos\n");
                return Ok(Exit::Interrupted);
            }
            turn => turn?,
        };
        let mut progress = (!quiet).then(LoadProgress::new);
        let view = progress.as_mut().map(|progress| progress as &mut dyn LiveView);
        let (Outcome { mut report, teardown }, others) =
            turn.watch(|| bench::run(plan, &interrupt, view, &mut io::stderr()));
        drop(turn);
        if let Ok(report) = &mut report {
            report.warn_of_others(&others.iter().map(|other| &*other.label).collect::<Vec<_>>());
        }
        let report = match (report, teardown) {
            (Ok(report), teardown) => {
                print_report(&report, format, output.as_deref())?;
                teardown?;
                report
            }
            (Err(error), Ok(())) if error.is_interrupted() => {
                note(&format!("{error}\n"));
                return Ok(Exit::Interrupted);
            }
            (Err(error), teardown) => {
                teardown.unwrap_or_else(|error| print_error(&error.into()));
                return Err(error.into());
            }
        };
        Ok(match report.conclusion() {
            Conclusion::Complete => Exit::Ok,
            Conclusion::Partial => Exit::Partial,
            Conclusion::Failed => Exit::Error,
            Conclusion::Interrupted => Exit::Interrupted,
        })
    }

    fn request(self) -> Result<Request, Usage> {
        let Self { workload, load, schedule, errors, report, connection, .. } = self;
        let (clients, cpus) = (load.clients, usable_cpus().unwrap_or(1));
        let threads = load.threads.unwrap_or_else(|| default_threads(clients, cpus));
        let other_threads =
            if load.probe_threads { other_threads(threads, clients, cpus) } else { Vec::new() };
        if load.probe_threads && other_threads.is_empty() {
            return Err(Usage("error: --probe-threads needs at least two clients (-c)".to_owned()));
        }
        Ok(Request {
            connection: connection.resolve()?,
            scripts: workload.into(),
            clients,
            threads,
            other_threads,
            duration: load.duration,
            transactions: load.transactions,
            warmup: load.warmup,
            protocol: load.protocol.into(),
            think: load.think,
            connect: load.connect,
            engine: load.engine.into(),
            schedule: schedule.into(),
            latency_limit: errors.latency_limit,
            errors: errors.into(),
            per_statement: report.per_statement,
            interval: report.interval,
            interval_log: report.hlog,
        })
    }
}

/// Progress of the wait for other pgdynos.
struct Waiting<'a>(&'a Interrupt);

impl host::Progress for Waiting<'_> {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        self.0.is_requested()
    }

    fn notice(&self, text: &str) {
        note(&format!("{text}\n"));
    }
}

fn print_report(report: &Report, format: FormatName, path: Option<&Path>) -> anyhow::Result<()> {
    let text = match format {
        FormatName::Json => serde_json::to_string_pretty(report).context("could not write JSON")? + "\n",
        FormatName::Table => bench::text(report, path.is_none() && in_colour()),
    };
    match path {
        Some(path) => std::fs::write(path, text).with_context(|| cannot_write(path)),
        None => print(&text),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("the report can't be written to {}", path.display())
}
