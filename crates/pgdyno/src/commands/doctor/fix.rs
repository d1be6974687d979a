//! `pgdyno doctor --fix`: settings of the kernel that make checks better, for the time of a command.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use anyhow::Context;
use clap::Args;
use diagnose::{Check, fixes};
use host::{Cache, ChangedKernel, KernelSetting, Restored, kernel_settings, restore_kernel_settings};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Exit, Usage};
use crate::interrupt::on_each_signal;
use crate::output::{note, print};

#[derive(Debug, Args)]
pub(super) struct FixArgs {
    /// Show what can be set for better measurements; with a COMMAND, ask for each setting, set it, run the COMMAND, and restore all
    #[arg(long, group = "measurement")]
    pub(super) fix: bool,

    /// With --fix: set everything without asking
    #[arg(short = 'y', long, requires = "fix")]
    yes: bool,

    /// Restore what a --fix has set that was killed
    #[arg(long, group = "measurement")]
    pub(super) restore: bool,

    /// With --fix: the command that is run with the settings, as root
    #[arg(last = true, value_name = "COMMAND", requires = "fix")]
    command: Vec<OsString>,
}

/// A setting in words, with the name of its check.
struct Proposal {
    check: &'static str,
    settings: Vec<KernelSetting>,
}

impl Proposal {
    /// `huge-pages: /sys/…/enabled from always to madvise`.
    fn in_words(&self) -> String {
        let KernelSetting { path, before, set } = &self.settings[0];
        format!("{}: {}{} from {before} to {set}", self.check, path.display(), and_more(self.settings.len()))
    }

    /// Command lines that set it.
    fn commands(&self) -> String {
        self.settings
            .iter()
            .map(|KernelSetting { path, set, .. }| format!("echo {set} > {}\n", path.display()))
            .collect()
    }
}

impl FixArgs {
    /// Restores what a killed `--fix` has left.
    pub(super) fn restore() -> anyhow::Result<Exit> {
        let restored = restore_kernel_settings(&Cache::open()?)?;
        if restored.is_empty() {
            note("there is nothing to restore\n");
        }
        Ok(report(&restored))
    }

    /// Shows what can be set, or runs the command with it.
    pub(super) fn run(&self, checks: &[Check]) -> anyhow::Result<Exit> {
        let proposals = proposals(checks)?;
        if self.command.is_empty() {
            return show(&proposals);
        }
        if !proposals.is_empty() && !geteuid().is_root() {
            return Err(Usage(
                "error: only root can set them: sudo pgdyno doctor --fix -- COMMAND".to_owned(),
            )
            .into());
        }
        let cache = Cache::open()?;
        report(&restore_kernel_settings(&cache)?);
        let settings = self.chosen(proposals)?;
        let changed = ChangedKernel::apply(&cache, settings)?;
        let status = self.run_command();
        let restored = report(&changed.restore()?);
        match status? {
            Exit::Ok => Ok(restored),
            failed => Ok(failed),
        }
    }

    /// The settings that the user agrees to.
    fn chosen(&self, proposals: Vec<Proposal>) -> anyhow::Result<Vec<KernelSetting>> {
        if !self.yes && !proposals.is_empty() && !io::stdin().is_terminal() {
            return Err(Usage(
                "error: standard input is no terminal to ask on: --yes sets everything".to_owned(),
            )
            .into());
        }
        let mut chosen = Vec::new();
        for proposal in proposals {
            note(&format!("{}{}", proposal.in_words(), if self.yes { "\n" } else { "? [Y/n] " }));
            if self.yes || is_yes()? {
                chosen.extend(proposal.settings);
            }
        }
        Ok(chosen)
    }

    /// Runs the command. Signals that end pgdyno are the command's: settings are restored after it.
    fn run_command(&self) -> anyhow::Result<Exit> {
        let program = self.command[0].to_string_lossy();
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .spawn()
            .with_context(|| format!("could not start {program}"))?;
        let pid = Pid::from_child(&child);
        // A terminal sends Ctrl-C to the command, too.
        on_each_signal(&[SIGINT, SIGTERM, SIGHUP], move |signal| {
            if signal != SIGINT {
                let _ = kill_process(pid, if signal == SIGTERM { Signal::TERM } else { Signal::HUP });
            }
        })
        .context("could not handle signals")?;
        let status = child.wait().with_context(|| format!("could not wait for {program}"))?;
        // As shells do: 128 and the signal.
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
        Ok(if code == 0 { Exit::Ok } else { Exit::Code(u8::try_from(code).unwrap_or(1)) })
    }
}

fn proposals(checks: &[Check]) -> anyhow::Result<Vec<Proposal>> {
    let mut proposals = Vec::new();
    for fix in fixes(checks) {
        let settings = kernel_settings(fix.files, fix.value)?;
        if !settings.is_empty() {
            proposals.push(Proposal { check: fix.check, settings });
        }
    }
    Ok(proposals)
}

fn show(proposals: &[Proposal]) -> anyhow::Result<Exit> {
    if proposals.is_empty() {
        note("there is nothing to set: pgdyno doctor shows what else helps\n");
        return Ok(Exit::Ok);
    }
    for proposal in proposals {
        print(&format!("# {}\n{}", proposal.in_words(), proposal.commands()))?;
    }
    note("\nwith these for the time of a command, restored after it: sudo pgdyno doctor --fix -- COMMAND\n");
    Ok(Exit::Ok)
}

/// Whether the answer is not no.
fn is_yes() -> anyhow::Result<bool> {
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("could not read the answer")?;
    Ok(!answer.is_empty() && !answer.trim().to_ascii_lowercase().starts_with('n'))
}

/// Reports what was restored, and what could not be.
fn report(restored: &[Restored]) -> Exit {
    let mut exit = Exit::Ok;
    let mut done: Vec<&KernelSetting> = Vec::new();
    for outcome in restored {
        match outcome {
            Restored::Yes(setting) => done.push(setting),
            Restored::ChangedBy(KernelSetting { path, .. }, now) => {
                note(&format!("{} was changed to {now} meanwhile: left so\n", path.display()));
            }
            Restored::Failed(KernelSetting { path, before, .. }, why) => {
                note(&format!("could not restore {} to {before}: {why}\n", path.display()));
                exit = Exit::Error;
            }
        }
    }
    if let Some(KernelSetting { path, before, .. }) = done.first() {
        note(&format!("restored {} to {before}{}\n", path.display(), and_more(done.len())));
    }
    exit
}

/// The number of those that are not named; nothing if there is none.
fn and_more(all: usize) -> String {
    if all > 1 { format!(" and {} more", all - 1) } else { String::new() }
}
