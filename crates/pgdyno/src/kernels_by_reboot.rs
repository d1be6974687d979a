//! `--kernels-by-reboot`: the kernels of a campaign on the machine itself, one after the other. What a boot came to is in
//! the store as trials are; what is only of the machine is in its journal ([`machine::reboot`]).

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use host::Cache;
use machine::reboot::{
    Asked, Boot, Campaign, CrashLog, Journal, Loader, Machine, Prepared, Step, Sysctl, carry_out,
};
use model::cell::Cell;
use model::plan::Plan;
use model::record::{Run, Trial};
use plaintext::table::Format;
use runner::campaign::RunOutcome;
use runner::is_release;
use runner::without_kernel::{OpenTrial, open_trials};
use store::Store;

use crate::campaign_run::{CampaignRun, Outcome, here};
use crate::exit::{Exit, Usage};
use crate::output::{note, print};

/// How long a boot may take until trials begin though it is not over.
const BOOTED_WITHIN: Duration = Duration::from_secs(300);

/// `--kernels-by-reboot`, for the commands that run campaigns.
#[derive(Debug, Args)]
pub(crate) struct RebootArgs {
    /// Boot the kernels that cells wait for, one after the other, each once, and go on by itself after each boot; they
    /// have to be installed
    #[arg(long)]
    kernels_by_reboot: bool,

    /// How kernels are booted [default: grub where it can boot an entry once, else kexec]
    #[arg(long, value_enum, value_name = "LOADER", requires = "kernels_by_reboot")]
    by: Option<LoaderName>,

    /// With --kernels-by-reboot: print each step, and do none
    #[arg(long, requires = "kernels_by_reboot")]
    pub(crate) dry_run: bool,

    /// With --kernels-by-reboot: do not ask before the machine is changed
    #[arg(long, requires = "kernels_by_reboot")]
    yes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LoaderName {
    Grub,
    Kexec,
}

impl RebootArgs {
    /// Whether kernels are to be booted.
    pub(crate) fn is_asked(&self) -> bool {
        self.kernels_by_reboot
    }

    fn loader(&self) -> Option<Loader> {
        self.by.map(|name| match name {
            LoaderName::Grub => Loader::Grub,
            LoaderName::Kexec => Loader::Kexec,
        })
    }
}

/// A run whose kernels are booted.
pub(crate) struct KernelsByReboot<'a> {
    /// What it comes to.
    pub(crate) plan: &'a Plan,
    /// Which.
    pub(crate) run: &'a Run,
    /// Directory of its store.
    pub(crate) root: &'a Path,
    /// Whether nothing is to be measured where there are confounds.
    pub(crate) strict: bool,
    /// How tables are printed.
    pub(crate) format: Format,
}

/// The run that goes on on this machine after boots, by its journal; none where there is no such journal, or it is of
/// another run than the one that is asked for.
pub(crate) fn journaled(root: &Path, run: Option<&str>) -> anyhow::Result<Option<(Journal, Run)>> {
    let Some(journal) = Machine::here().journal()? else { return Ok(None) };
    let campaign = &journal.campaign;
    let is_it = root.canonicalize().is_ok_and(|root| root == campaign.store)
        && run.is_none_or(|id| campaign.run.starts_with(&id.to_uppercase()));
    let run = Run {
        id: campaign.run.clone(),
        campaign: campaign.name.clone(),
        campaign_toml: campaign.text.clone(),
        seed: campaign.seed,
        pgdyno_version: campaign.pgdyno_version.clone(),
        tags: campaign.tags.clone(),
        notes: campaign.notes.clone(),
    };
    Ok(is_it.then_some((journal, run)))
}

/// Leaves the machine as it was found, whatever campaign there is.
pub(crate) fn restore() -> anyhow::Result<Exit> {
    let machine = Machine::here();
    let Some(journal) = machine.journal()? else {
        note("no campaign boots kernels on this machine: nothing is to be put back\n");
        return Ok(Exit::Ok);
    };
    carry_out(&machine.restore(&journal)?)?;
    let Campaign { name, store, .. } = &journal.campaign;
    let store = store.display();
    note(&format!("the machine is as the campaign {name} found it; what was measured is in {store}\n"));
    if machine.running()? != journal.home {
        note(&format!("{} ran before: the next boot is the usual one\n", journal.home.release));
    }
    Ok(Exit::Ok)
}

impl KernelsByReboot<'_> {
    /// Begins: makes the machine ready, runs what can be run under the running kernel, and boots the first other one.
    /// `file` is the campaign's.
    ///
    /// # Errors
    /// The machine can't boot these kernels, the user does not want it, or as [`CampaignRun::execute`].
    pub(crate) fn begin(&self, args: &RebootArgs, file: &Path) -> anyhow::Result<Exit> {
        let machine = Machine::here();
        let trials = if self.root.is_dir() { self.trials()? } else { Vec::new() };
        let open = open_trials(self.plan, &trials);
        let here = here();
        let is_here = |trial: &&OpenTrial| here.runs(trial.cell);
        let boots = boots(self.plan, &open, &machine).map_err(|why| Usage(format!("error: {why}")))?;
        if boots.is_empty() {
            note("no trial waits for another kernel: nothing is booted\n");
            if args.dry_run {
                return Ok(Exit::Ok);
            }
            return self.campaign(&self.store()?, &trials).execute(self.format);
        }
        let wanted: Vec<Boot> = boots.iter().map(|(boot, _)| boot.clone()).collect();
        let campaign = self.journaled(file)?;
        let program = std::env::current_exe().context("the path of pgdyno itself is not known")?;
        let prepared = machine
            .prepare(campaign, &wanted, args.loader(), &program, &environment()?)
            .map_err(|error| Usage(format!("error: {error}")))?;
        if args.dry_run {
            let here = format!("{}, which runs", here.kernel);
            return self.print(&machine, &prepared, &here, open.iter().filter(is_here).count(), &boots);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Usage("error: only root may boot other kernels".to_owned()).into());
        }
        self.confirm(args, &prepared.journal, &boots)?;
        // Before the machine is changed.
        let store = self.store()?;
        carry_out(&prepared.steps)?;
        self.go_on(&machine, prepared.journal, &store, true)
    }

    /// Goes on after a boot.
    ///
    /// # Errors
    /// As [`KernelsByReboot::begin`].
    pub(crate) fn after_boot(&self, mut journal: Journal) -> anyhow::Result<Exit> {
        let machine = Machine::here();
        let store = self.store()?;
        wait_for_boot();
        self.settle(&machine, &mut journal, &store)?;
        self.go_on(&machine, journal, &store, false)
    }

    /// What came of the last boot. A kernel that did not come up, or went down, costs each trial that waits for it a try.
    fn settle(&self, machine: &Machine, journal: &mut Journal, store: &Store) -> anyhow::Result<()> {
        let Some(last) = &mut journal.last else { return Ok(()) };
        let running = machine.running()?;
        if last.boot.is_up(&running) {
            note(&format!("{} came up\n", last.boot));
            match machine.set_parameters(&last.boot) {
                Ok(()) => last.came_up = true,
                Err(error) => {
                    let boot = last.boot.clone();
                    journal.last = None;
                    machine.note(journal)?;
                    return self.lose(store, &boot, &format!("under {boot}: {error}"), None);
                }
            }
        } else {
            let last = last.clone();
            let remains = CrashLog::find(&last.boot.release, last.at);
            let evidence = evidence(&last, journal.loader, &running.release, remains.as_ref());
            self.lose(store, &last.boot, &evidence, remains.as_ref().map(|remains| remains.text.as_str()))?;
            journal.last = None;
        }
        Ok(machine.note(journal)?)
    }

    /// Runs what can be run here, and boots the next kernel.
    fn go_on(
        &self,
        machine: &Machine,
        mut journal: Journal,
        store: &Store,
        is_first: bool,
    ) -> anyhow::Result<Exit> {
        match self.campaign(store, &self.trials()?).measure() {
            Ok(Outcome::Interrupted | Outcome::Executed(RunOutcome { interrupted: true, .. })) => {
                if is_first {
                    carry_out(&machine.restore(&journal)?)?;
                    note("interrupted: the machine is as it was found\n");
                } else {
                    journal.take_back();
                    machine.note(&journal)?;
                    note(
                        "interrupted: it goes on after the next boot, unless `pgdyno kernel restore` ends it\n",
                    );
                }
                return Ok(Exit::Interrupted);
            }
            Ok(Outcome::Executed(_)) => {}
            Err(error) => match journal.last.take().filter(|last| last.came_up) {
                Some(last) => {
                    self.lose(store, &last.boot, &format!("under {} {error:#}", last.boot), None)?;
                }
                None => {
                    carry_out(&machine.restore(&journal)?)?;
                    return Err(error);
                }
            },
        }
        journal.last = None;
        self.boot_next(machine, journal, store)
    }

    /// Boots the next kernel that trials wait for; where there is none, the usual one, with the machine as it was found.
    fn boot_next(&self, machine: &Machine, mut journal: Journal, store: &Store) -> anyhow::Result<Exit> {
        loop {
            let trials = self.trials()?;
            let open = open_trials(self.plan, &trials);
            let Some(cell) = waiting(self.plan, &open).next() else {
                return self.end(machine, &journal, store, &trials);
            };
            // The kernels were there when it began; what has become of them since is no reason to end.
            let boot = match boot_of(cell, machine) {
                Ok(boot) => boot,
                Err(why) => {
                    self.lose_where(
                        store,
                        |open| !open.acceleration.is_virtual() && open.kernel == cell.kernel,
                        &why,
                        None,
                    )?;
                    continue;
                }
            };
            if journal.times_asked(&boot) > self.plan.run.retries {
                let why = format!("{boot} has been booted {} times already", journal.times_asked(&boot));
                self.lose(store, &boot, &why, None)?;
                continue;
            }
            journal.ask(&boot);
            let steps = match machine.boot(&journal, &boot) {
                Ok(steps) => steps,
                Err(error) => {
                    self.lose(store, &boot, &error.to_string(), None)?;
                    continue;
                }
            };
            note(&format!("booting {boot}; what comes of it is in {}\n", journal.campaign.log().display()));
            if let Err(error) = carry_out(&steps) {
                carry_out(&machine.restore(&journal)?)?;
                return Err(error.into());
            }
            return Ok(Exit::Partial);
        }
    }

    fn end(
        &self,
        machine: &Machine,
        journal: &Journal,
        store: &Store,
        trials: &[Trial],
    ) -> anyhow::Result<Exit> {
        carry_out(&machine.restore(journal)?)?;
        // Nothing is left to be run: it prints the tables.
        let exit = self.campaign(store, trials).execute(self.format)?;
        if machine.running()? != journal.home {
            note("every kernel has had its turn: booting the usual one\n");
            carry_out(&[machine.reboot()])?;
        }
        Ok(exit)
    }

    /// Writes what the trials leave that a boot was for.
    fn lose(&self, store: &Store, boot: &Boot, evidence: &str, log: Option<&str>) -> anyhow::Result<()> {
        self.lose_where(store, |cell| is_of(cell, boot), evidence, log)
    }

    fn lose_where(
        &self,
        store: &Store,
        is_lost: impl Fn(&Cell) -> bool,
        evidence: &str,
        log: Option<&str>,
    ) -> anyhow::Result<()> {
        let trials = self.trials()?;
        let here = here();
        let open = open_trials(self.plan, &trials);
        let lost: Vec<&OpenTrial> =
            open.iter().filter(|trial| is_lost(trial.cell) && here.is_host(trial.cell)).collect();
        for trial in &lost {
            store.write(&trial.without_kernel(self.run, evidence, log))?;
        }
        note(&format!("{evidence}\n{} trials are invalid by that\n", lost.len()));
        Ok(())
    }

    /// Prints what would be done.
    fn print(
        &self,
        machine: &Machine,
        prepared: &Prepared,
        here: &str,
        trials_here: usize,
        boots: &[(Boot, usize)],
    ) -> anyhow::Result<Exit> {
        let Prepared { journal, steps } = prepared;
        let list = |steps: &[Step]| steps.iter().map(|step| format!("  {step}\n")).collect::<String>();
        let mut text = format!("{here}: {trials_here} trials\n\nbefore the first boot:\n{}", list(steps));
        for (boot, trials) in boots {
            let mut journal = journal.clone();
            journal.ask(boot);
            let times = 1 + self.plan.run.retries;
            let by = journal.loader.name();
            text += &format!("\n{boot}, by {by}, {times} times at most: {trials} trials\n");
            text += &list(&machine.boot(&journal, boot)?);
        }
        text += &format!("\nin the end:\n{}", list(&machine.restore(journal)?));
        text += &format!("  {}, where another kernel runs\n", machine.reboot());
        print(&text)?;
        Ok(Exit::Ok)
    }

    /// Asks on a terminal.
    fn confirm(&self, args: &RebootArgs, journal: &Journal, boots: &[(Boot, usize)]) -> Result<(), Usage> {
        if args.yes {
            return Ok(());
        }
        let kernels: String =
            boots.iter().map(|(boot, trials)| format!("  {boot}: {trials} trials\n")).collect();
        note(&format!(
            "This machine will be booted again and again, by {}:\n{kernels}",
            journal.loader.name()
        ));
        if !io::stdin().is_terminal() {
            return Err(Usage("error: nobody can be asked whether it may: say --yes".to_owned()));
        }
        note("What else runs on it is ended each time. Go on? [y/N] ");
        let mut answer = String::new();
        let _ = io::stdin().lock().read_line(&mut answer);
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Usage("nothing has been done".to_owned())),
        }
    }

    fn campaign<'a>(&'a self, store: &'a Store, trials: &'a [Trial]) -> CampaignRun<'a> {
        CampaignRun { plan: self.plan, run: self.run, trials, store, strict: self.strict }
    }

    /// What of the campaign has to outlive a boot.
    fn journaled(&self, file: &Path) -> anyhow::Result<Campaign> {
        let absolute = |path: &Path| -> anyhow::Result<PathBuf> {
            let path = std::path::absolute(path)?;
            Ok(path.canonicalize().unwrap_or(path))
        };
        let Run { id, campaign, campaign_toml, seed, pgdyno_version, tags, notes } = self.run.clone();
        Ok(Campaign {
            store: absolute(self.root)?,
            run: id,
            name: campaign,
            file: absolute(file)?,
            text: campaign_toml,
            seed,
            tags,
            notes,
            pgdyno_version,
            strict: self.strict,
        })
    }

    fn store(&self) -> anyhow::Result<Store> {
        Ok(Store::open(self.root)?)
    }

    /// What has been run of it.
    fn trials(&self) -> anyhow::Result<Vec<Trial>> {
        let all = Store::existing(self.root)?.trials()?;
        Ok(all.into_iter().filter(|trial| trial.run.id == self.run.id).collect())
    }
}

/// The cells with open trials that wait for another kernel on this host, in the order of the campaign.
fn waiting<'a>(plan: &'a Plan, open: &[OpenTrial<'a>]) -> impl Iterator<Item = &'a Cell> {
    let here = here();
    let waits = move |cell: &Cell| !here.runs(cell) && here.is_host(cell);
    let open: Vec<&Cell> = open.iter().map(|trial| trial.cell).collect();
    plan.cells.iter().filter(move |cell| waits(cell) && open.contains(cell))
}

/// The kernels that open trials wait for, in the order of the campaign, and how many trials.
fn boots(plan: &Plan, open: &[OpenTrial], machine: &Machine) -> Result<Vec<(Boot, usize)>, String> {
    let mut boots: Vec<(Boot, usize)> = Vec::new();
    for cell in waiting(plan, open) {
        let boot = boot_of(cell, machine)?;
        let trials = open.iter().filter(|trial| trial.cell == cell).count();
        match boots.iter_mut().find(|(known, _)| *known == boot) {
            Some((_, count)) => *count += trials,
            None => boots.push((boot, trials)),
        }
    }
    Ok(boots)
}

/// The installed kernel that a cell waits for: the newest that its label names.
fn boot_of(cell: &Cell, machine: &Machine) -> Result<Boot, String> {
    let label = cell.kernel.as_deref().unwrap_or_default();
    let installed = machine.installed().map_err(|error| error.to_string())?;
    let named = installed.iter().rev().find(|kernel| is_release(&kernel.release, label));
    let named = named.ok_or_else(|| {
        let all: Vec<&str> = installed.iter().map(|kernel| kernel.release.as_str()).collect();
        format!(
            "no installed kernel is a {label}: install its package (Debian: `apt-get install linux-image-…`; \
             `apt-cache search --names-only linux-image-{label}` lists them), or name it as `uname -r` does; installed \
             are {}",
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        )
    })?;
    let sysctl = Sysctl { name: cell.sysctl.name.clone(), values: cell.sysctl.values.clone() };
    Ok(Boot { release: named.release.clone(), args: cell.kernel_args.clone(), sysctl })
}

/// Whether a cell's trials are run under this boot.
fn is_of(cell: &Cell, boot: &Boot) -> bool {
    !cell.acceleration.is_virtual()
        && cell.kernel.as_deref().is_some_and(|label| is_release(&boot.release, label))
        && cell.kernel_args == boot.args
        && cell.sysctl.name == boot.sysctl.name
}

/// Why a kernel's trials are lost.
fn evidence(last: &Asked, loader: Loader, running: &str, remains: Option<&CrashLog>) -> String {
    let what = match last.came_up {
        true => format!("the kernel {} went down under its trials", last.boot),
        false => format!("the kernel {} was booted by {} and did not come up", last.boot, loader.name()),
    };
    let why = match remains {
        Some(remains) => format!("\"{}\" ({})", remains.headline(), remains.found),
        None => "it left no word (neither pstore nor the journal has any)".to_owned(),
    };
    format!("{what}: {why}; {running} runs now")
}

/// What pgdyno needs of this environment after a boot.
fn environment() -> anyhow::Result<BTreeMap<String, String>> {
    let kept = |name: &str| ["PATH", "HOME"].contains(&name) || name.starts_with("PGDYNO_");
    let mut kept: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| kept(name)).collect();
    // Where it is now, though there may be no home then.
    kept.insert("PGDYNO_CACHE".to_owned(), Cache::open()?.directory().display().to_string());
    Ok(kept)
}

/// Waits until the units of a boot have started: they would run beside the first trial.
fn wait_for_boot() {
    let waits = Command::new("systemctl").args(["is-system-running", "--wait"]).stdout(Stdio::null()).spawn();
    let Ok(mut waits) = waits else { return };
    let end = Instant::now() + BOOTED_WITHIN;
    while matches!(waits.try_wait(), Ok(None)) {
        if Instant::now() > end {
            let _ = waits.kill();
            let _ = waits.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
