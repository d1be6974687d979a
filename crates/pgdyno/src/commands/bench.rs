//! `pgdyno bench`: one load against a server that is there, and its report.

mod args;
mod describe;
mod figures;
mod find_max;
mod interrupt;
mod interval_log;
mod live;
mod measure;
mod objective;
mod omission;
mod once;
mod plan;
mod quantity;
mod report;
mod search;
mod text;
mod warnings;

use std::fs::OpenOptions;
use std::path::Path;

use anyhow::Context;
use clap::Args;
use driver::{Load, Spacing};

use self::describe::Described;
use self::find_max::Search;
use self::interrupt::Interrupt;
use self::interval_log::IntervalLog;
use self::live::Live;
use self::measure::Measured;
use self::plan::Plan;
use self::report::Report;
use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::output::{in_colour, note, print};

const EXAMPLES: &str = "\
Examples:
  pgdyno bench -c 16 -T 30s -d mydb                    the built-in tpcb-like, as fast as 16 clients can
  pgdyno bench select-only -c 64 -j 2 --warmup 5s      one of pgbench's scripts
  pgdyno bench read.sql@9 write.sql@1 -r -d mydb       one's own, nine to one, each statement measured
  pgdyno bench --rate 400/s -c 32 -T 1min              400 a second, whether or not the server keeps up
  pgdyno bench --stage 30s:100..1000 --stage 10s:1000  a ramp, then its end held
  pgdyno bench --find-max 'p99 < 10ms' -c 32           the highest rate with 99 % below 10 ms
  pgdyno bench app.sql --on-error 23505=count --think 10ms..50ms --setup make.sql --teardown drop.sql
  pgdyno bench --format json -o out.json --hlog out.hlog -- 'host=db.example dbname=mydb sslmode=require'

The tables of the built-in scripts come from `pgdyno pgbench -i DBNAME`. What each figure means, and how to
choose between closed and open loop, is in docs/bench.md.

Exit codes: 0 ok; 1 error, all clients were aborted, or no rate holds; 2 usage, nothing was started; 5 some
clients were aborted, or a longer run did not confirm the rate; 130 interrupted, what ran is reported.";

/// Put a load on a server, and report throughput and latency
///
/// Clients run scripts in pgbench's language, in a closed loop (each as fast as it can) or an open one (on a schedule).
/// In an open loop latency counts from the intended start of a transaction, so that nothing that had to wait is missing.
/// The report goes to standard output, a live view to standard error; the first Ctrl-C ends the load and reports it.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    scripts: args::ScriptArgs,

    #[command(flatten)]
    load: args::LoadArgs,

    #[command(flatten)]
    arrivals: args::ArrivalArgs,

    #[command(flatten)]
    errors: args::ErrorArgs,

    #[command(flatten)]
    output: args::OutputArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// A load that has been run, and the search that led to it.
struct Ran {
    load: Load,
    measured: Measured,
    search: Option<Search>,
}

impl BenchArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut plan = Plan::of(&self)?;
        let names = plan.load.main.scripts.iter().map(|script| script.script.name().to_owned()).collect();
        let mut log = match &self.output.hlog {
            Some(path) => Some(IntervalLog::create(path, names)?),
            None => None,
        };
        if let Some(path) = &self.output.output {
            // Before the load, and not after it, is the time to learn that there is no such directory.
            let opened = OpenOptions::new().append(true).create(true).open(path);
            opened.with_context(|| cannot_write(path))?;
        }
        let interrupt = Interrupt::watch()?;
        let ran = plan
            .setup
            .as_ref()
            .map_or(Ok(()), |setup| once::run("the set-up", setup, &plan.load, interrupt.control()));
        let ran = ran.and_then(|()| {
            let version = once::ask_server(&mut plan)?;
            self.measure(&plan, &interrupt, log.as_mut()).map(|ran| (version, ran))
        });
        // Whatever has happened, what the set-up made has to go.
        let torn_down = plan.teardown.as_ref().map_or(Ok(()), |teardown| {
            once::run("the teardown", teardown, &plan.load, interrupt.uninterrupted())
        });
        let (version, ran) = match (ran, torn_down) {
            (Ok(ran), Ok(())) => ran,
            (Err(error), Err(also)) => {
                note(&format!("error: {also:#}\n"));
                return Err(error);
            }
            (Err(error), Ok(())) => return Err(error),
            (Ok((version, ran)), Err(error)) => {
                self.print(&plan, version, ran, &interrupt)?;
                return Err(error);
            }
        };
        self.print(&plan, version, ran, &interrupt)
    }

    fn measure(
        &self,
        plan: &Plan,
        interrupt: &Interrupt,
        log: Option<&mut IntervalLog>,
    ) -> anyhow::Result<Ran> {
        let mut live = Live::new(self.output.quiet);
        if plan.default_script && !self.output.quiet {
            note("no script is given: running the built-in tpcb-like\n");
        }
        if plan.objectives.is_empty() {
            live.expect(&plan.load, "");
            let load = plan.load.clone();
            let measured = measure::measure(load.clone(), interrupt.control(), &mut live, log, &|_| false)?;
            return Ok(Ran { load, measured, search: None });
        }
        let spacing = match self.arrivals.arrivals.as_deref() {
            Some("uniform") => Spacing::Uniform,
            _ => Spacing::Poisson,
        };
        let found = find_max::find_max(&plan.load, spacing, &plan.objectives, interrupt, &mut live, log)?;
        Ok(Ran { load: found.load, measured: found.measured, search: Some(found.search) })
    }

    fn print(&self, plan: &Plan, version: u32, ran: Ran, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let described = Described::of(plan, &ran.load, version);
        let report =
            Report::of(&ran.load, described, &ran.measured, ran.search, interrupt.happened_already());
        let text = match self.output.format {
            args::FormatName::Json => {
                serde_json::to_string_pretty(&report).context("could not write JSON")? + "\n"
            }
            args::FormatName::Table => text::of(&report, self.output.output.is_none() && in_colour()),
        };
        match &self.output.output {
            Some(path) => std::fs::write(path, text).with_context(|| cannot_write(path))?,
            None => print(&text)?,
        }
        exit(&report)
    }
}

fn cannot_write(path: &Path) -> String {
    format!("the report can't be written to {}", path.display())
}

fn exit(report: &Report) -> anyhow::Result<Exit> {
    let clients = report.load.clients;
    Ok(match report.clients_aborted {
        _ if report.interrupted => Exit::Interrupted,
        0 => match &report.find_max {
            Some(Search { rate_per_s: None, .. }) => Exit::Error,
            Some(Search { confirmed: false, .. }) => Exit::Partial,
            _ => Exit::Ok,
        },
        aborted if aborted == clients => Exit::Error,
        _ => Exit::Partial,
    })
}
