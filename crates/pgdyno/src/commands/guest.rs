//! `pgdyno guest`: the first process of a virtual machine. Started by the kernel that pgdyno boots, not by users.

use anyhow::bail;
use clap::Args;
use host::Cache;
use machine::vm::Frame;
use machine::vm::guest::{Guest, Job};

use crate::exit::Exit;

/// Run as the first process of a virtual machine: execute its orders and power it off
#[derive(Debug, Args)]
pub(crate) struct GuestArgs {}

impl GuestArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if std::process::id() != 1 {
            bail!("this is for the first process of a virtual machine, which `pgdyno kernel boot` starts");
        }
        let (guest, orders) = Guest::begin()?;
        for (name, value) in &orders.variables {
            // SAFETY: the only other thread so far does not read the environment.
            unsafe { std::env::set_var(name, value) };
        }
        let code = match &orders.job {
            Job::Probe => 0,
            Job::Command(words) => guest.run(words),
            Job::Own(words) => match trial(&guest, words) {
                Ok(()) => 0,
                Err(error) => {
                    guest.send_frame(&Frame::Failed(format!("{error:#}")));
                    1
                }
            },
        };
        guest.end(code)
    }
}

fn trial(guest: &Guest, words: &[String]) -> anyhow::Result<()> {
    let [id] = words else { bail!("an order has the id of one trial, not {words:?}") };
    Ok(runner::guest::run_order(guest, id, &Cache::open()?)?)
}
