//! `pgdyno guest`: the first process of a virtual machine. Started by the kernel that pgdyno boots, not by users.

use std::ffi::OsString;

use anyhow::bail;
use clap::Args;
use host::Cache;
use machine::vm::Frame;
use machine::vm::guest::{Guest, Job, is_first_process};

use crate::exit::Exit;

/// Run as the first process of a virtual machine: run its job and power it off
#[derive(Debug, Args)]
pub(crate) struct GuestArgs {}

/// The arguments of this process; in a virtual machine's first one, only those for this command.
pub(crate) fn arguments() -> Vec<OsString> {
    let all = std::env::args_os();
    if is_first_process() { all.take(1).chain(["guest".into()]).collect() } else { all.collect() }
}

impl GuestArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if !is_first_process() {
            bail!(
                "`pgdyno guest` is only for the first process of a virtual machine; use `pgdyno kernel boot`"
            );
        }
        let (guest, config) = Guest::start()?;
        for (name, value) in &config.variables {
            // SAFETY: the only other thread so far does not read the environment.
            unsafe { std::env::set_var(name, value) };
        }
        let code = match &config.job {
            Job::Probe => 0,
            Job::Command(words) => guest.run(words),
            Job::Pgdyno(words) => match trial(&guest, words) {
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
    let [id] = words else { bail!("expected the id of one trial, not {words:?}") };
    Ok(runner::guest::run_job(guest, id, &Cache::open()?)?)
}
