//! `pgdyno guest`: the first process of a virtual machine. Started by the kernel that pgdyno boots, not by people.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, bail};
use clap::Args;
use host::Cache;
use machine::vm::Frame;
use machine::vm::guest::{Guest, Job, PROGRAM};
use runner::campaign_file::{CampaignFile, workloads_of};
use runner::guest::Order;
use runner::machines::{ORDER, RESULT};
use store::Store;

use crate::exit::Exit;

/// The exit codes of shells: of a command that is not there, that can't be run, and what is added to a signal's number.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
const SIGNALLED: i32 = 128;

/// Be the first process of a virtual machine: do what its orders say, and switch it off
#[derive(Debug, Args)]
pub(crate) struct GuestArgs {}

impl GuestArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if std::process::id() != 1 {
            bail!("this is for the first process of a virtual machine, which `pgdyno kernel boot` starts");
        }
        let (guest, orders) = Guest::begin()?;
        for (name, value) in &orders.variables {
            // SAFETY: the one other thread that there is by now does not look at the environment.
            unsafe { std::env::set_var(name, value) };
        }
        let code = match &orders.job {
            Job::Probe => 0,
            Job::Command(words) => command(&guest, words),
            Job::Own(words) => match trial(&guest, words) {
                Ok(()) => 0,
                Err(error) => {
                    guest.say(&Frame::Failed(format!("{error:#}")));
                    1
                }
            },
        };
        guest.end(code)
    }
}

/// Runs the trial that an order asks for, and sends its bundle.
fn trial(guest: &Guest, words: &[String]) -> anyhow::Result<()> {
    let [id] = words else { bail!("an order has the id of one trial, not {words:?}") };
    let orders = Store::existing(Path::new(ORDER))?;
    let order = orders.head(id)?;
    let known = workloads_of(orders.trials()?.iter());
    let run = &order.run;
    let file =
        CampaignFile::parse_with(Path::new("campaign.toml"), run.campaign_toml.clone(), run.seed, &known)?;
    let cache = Cache::open()?;
    let cell = order.cell.to_cell().context("the order does not have every level of its cell")?;
    let order = Order { trial: &order, cell, plan: file.plan, cache: &cache, program: Path::new(PROGRAM) };
    let record = order.run(&|| guest.say(&Frame::Ready), |interval| {
        // An interval is plain data; without it, the host shows none.
        guest.say(&Frame::Interval(serde_json::to_vec(interval).unwrap_or_default()));
    })?;
    let result = Path::new("/").join(RESULT);
    Store::open(&result)?.write(&record)?;
    guest.send(&result, RESULT).context("the bundle can't be read")
}

/// Runs a command, whose output goes to the host as it comes; its exit code as a shell has it.
fn command(guest: &Guest, words: &[String]) -> u8 {
    let Some((program, arguments)) = words.split_first() else { return 0 };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match command.spawn() {
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            guest.say(&Frame::Stderr(format!("{program}: {error}\n").into_bytes()));
            if missing { NOT_FOUND } else { NOT_RUN }
        }
        Ok(child) => wait(guest, child).unwrap_or(NOT_RUN),
    }
}

fn wait(guest: &Guest, mut child: Child) -> io::Result<u8> {
    let output = child.stdout.take().map(|output| forward(guest.clone(), output, Frame::Stdout));
    let errors = child.stderr.take().map(|errors| forward(guest.clone(), errors, Frame::Stderr));
    let status = child.wait()?;
    for forwarding in [output, errors].into_iter().flatten() {
        // What could not be forwarded is lost, and the command's code still holds.
        let _ = forwarding.join();
    }
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_RUN))
}

fn forward(
    guest: Guest,
    mut from: impl Read + Send + 'static,
    frame: fn(Vec<u8>) -> Frame,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            guest.say(&frame(buffer[..length].to_vec()));
        }
    })
}
