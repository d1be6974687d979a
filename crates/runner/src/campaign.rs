//! Runs a plan, trial after trial.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use collect::{Host, Perf};
use diagnose::confounds;
use host::{Cache, Turn};
use model::cell::Cell;
use model::commit_log::COMMITS_LOG;
use model::factor::Factor;
use model::machine::KernelSpec;
use model::outage::Outage;
use model::paired::{PAIRS, Side};
use model::plan::{Order, Plan, PlannedTrial};
use model::record::{Log, Run, Trial, TrialRecord};
use model::secret::MaskSecrets;
use model::server::Source;
use model::units::Span;
use store::{Store, StoreError};

use crate::background_build::BackgroundBuild;
use crate::bisection::BisectionSchedule;
use crate::block::{Block, BlockContent, MoreBlocks, NextBlock};
use crate::error::RunError;
use crate::hooks::{self, HookEnv};
use crate::host_context::HostContext;
use crate::load_hosts::LoadHosts;
use crate::machines::Machines;
use crate::observer::{Event, Observer, OtherTrial};
use crate::outage::{MAX_WAIT, MAX_WAIT_TEXT, TrialOutage, outlast};
use crate::provision::Provision;
use crate::rig::LiveRig;
use crate::schedule::{NextTrial, Progress, Schedule, TrialSchedule};
use crate::servers::Servers;
use crate::session;
use crate::sessions::SessionSchedule;
use crate::trial::{self, RunContext};

/// A run of a campaign.
pub struct Campaign<'a> {
    /// The trials to run.
    pub plan: &'a Plan,
    /// The run that the trials belong to.
    pub run: &'a Run,
    /// The trials of the run that are in the store.
    pub trials: &'a [Trial],
    /// Ids of those that earlier commands of the user ran: they do not count as attempts.
    pub earlier: &'a BTreeSet<String>,
    /// The part of the campaign to run; none for all of it.
    pub block: Option<&'a Block>,
    /// Parts of it to run after that one.
    pub more_blocks: Option<&'a dyn MoreBlocks>,
    /// The host it runs on.
    pub host: &'a HostContext,
    /// Whether confounds are an error, before anything is measured.
    pub strict: bool,
    /// Whether to measure at the same time as other pgdynos on this host, instead of waiting for them.
    pub allow_concurrent: bool,
    /// The store of the bundles.
    pub store: &'a Store,
    /// The cache of servers and data sets.
    pub cache: &'a Cache,
    /// The program that becomes a driver process if called with `driver`: pgdyno itself.
    pub program: &'a Path,
    /// Where drivers on other hosts come from, for a plan that asks for load hosts; none if there are no such hosts.
    pub load_hosts: Option<&'a dyn LoadHosts>,
    /// Set when the user wants to stop: the running trial ends and is stored as invalid.
    pub interrupt: &'a AtomicBool,
    /// The receiver of its events.
    pub observer: &'a dyn Observer,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOutcome {
    /// Progress of the campaign.
    pub progress: Progress,
    /// Whether the user interrupted the run.
    pub interrupted: bool,
}

/// Number of trials in a row without a load after which a campaign gives up.
const MAX_CONSECUTIVE_FAILURES: u32 = 3;

impl<'a> Campaign<'a> {
    /// Waits for other pgdynos that measure on this host, prepares the servers and runs every trial still to run here; each
    /// is stored as soon as it ends.
    ///
    /// # Errors
    /// The plan asks for load hosts and there are none; a server can't be prepared, the hook before the campaign fails, a bundle
    /// can't be written, or several trials in a row have no load.
    pub fn execute(&self) -> Result<RunOutcome, RunError> {
        if let (Some(hosts), None) = (&self.plan.load_hosts, self.load_hosts) {
            return Err(RunError::NoLoadHosts { count: hosts.count() });
        }
        let mut schedule = self.schedule(self.block, self.trials, self.earlier);
        if schedule.next().is_empty() {
            return Ok(RunOutcome { progress: schedule.progress(), interrupted: false });
        }
        // Preparations would disturb the others, too.
        let label = format!("campaign {}", self.plan.campaign);
        let turn = match Turn::take(&label, self.allow_concurrent, &Preparation(self)) {
            Err(host::Error::Interrupted) => return Err(RunError::Interrupted),
            turn => turn?,
        };
        let hooks = &self.plan.hooks;
        let env = HookEnv::new(&self.plan.campaign, &self.run.id);
        if let Some(hook) = &hooks.before_campaign {
            hooks::run(hook, &env, self.interrupt).map_err(RunError::Hook)?;
        }
        let outcome = thread::scope(|scope| {
            let is_wanted = self.plan.run.build_while_measuring;
            let builds =
                is_wanted.then(|| BackgroundBuild::new(scope, self.cache, self.plan, self.interrupt));
            self.run_trials(&mut schedule, &turn, builds)
        });
        if let Some(hook) = &hooks.after_campaign
            && let Err(error) = hooks::run(hook, &env, &AtomicBool::new(false))
        {
            self.observer.on_event(&Event::Notice(&error.to_string()));
        }
        outcome?;
        Ok(RunOutcome { progress: schedule.progress(), interrupted: self.interrupted() })
    }

    fn schedule(
        &self,
        block: Option<&Block>,
        trials: &[Trial],
        earlier: &BTreeSet<String>,
    ) -> Box<dyn Schedule + 'a> {
        let content = block.map(|block| &block.content);
        match self.plan.run.order {
            Order::Paired => {
                let all = SessionSchedule::new(self.plan, trials, earlier);
                match content {
                    Some(BlockContent::Comparison(of)) => Box::new(all.of_comparison(*of)),
                    _ => Box::new(all),
                }
            }
            Order::Bisect => Box::new(BisectionSchedule::new(self.plan, trials, earlier)),
            Order::Sequential | Order::RandomizedBlocks => {
                let all = TrialSchedule::new(self.plan, self.host, trials, earlier);
                match content {
                    Some(BlockContent::Trials(trials)) => Box::new(all.of_block(trials)),
                    _ => Box::new(all),
                }
            }
        }
    }

    fn run_trials(
        &self,
        schedule: &mut Box<dyn Schedule + 'a>,
        turn: &Turn,
        mut builds: Option<BackgroundBuild<'_, '_>>,
    ) -> Result<(), RunError> {
        // A fast check, made before servers are fetched and filled.
        let cells: Vec<&Cell> = self.first_cells().filter(|cell| self.host.runs(cell)).collect();
        let is_here = cells.iter().any(|cell| !cell.acceleration.is_virtual());
        let profile = self.plan.profile.as_ref().filter(|_| is_here);
        let perf = profile.map(Perf::find).transpose().map_err(RunError::Profile)?;
        let preparation = Preparation(self);
        let mut machines = match Machines::prepare(self.cache, self.plan, &cells, &preparation) {
            Err(error) if error.is_interrupted() => return Err(RunError::Interrupted),
            machines => machines?,
        };
        let mut servers = match Servers::prepare(self.cache, self.plan, &cells, &preparation) {
            Err(error) if error.is_interrupted() => return Err(RunError::Interrupted),
            servers => servers?,
        };
        self.report_confounds(&servers)?;
        let is_in_slices = self.plan.run.order.is_paired() && self.plan.is_in_slices();
        let mut second = is_in_slices.then(|| servers.second_pool());
        let host = Host::read();
        let rig = LiveRig { load_hosts: self.load_hosts.zip(self.plan.load_hosts.as_ref()) };
        let context = RunContext {
            run: self.run,
            plan: self.plan,
            host: &host,
            side: None,
            perf: perf.as_ref(),
            program: self.program,
            rig: &rig,
            interrupt: self.interrupt,
            on_ready: &|| (),
        };
        let mut without_load = 0;
        let mut outage_began = None;
        let mut any_loaded = false;
        // In the first bundle, as they are many, and the same for all.
        let mut subjects = self.subjects();
        schedule.set_data(self.data());
        let mut pace = Pace { begun: Instant::now(), estimated: 0 };
        loop {
            if let Some(builds) = &mut builds {
                schedule.set_built(builds.ended());
                if let Some(name) = schedule.next_build().and_then(|cell| builds.begin(cell)) {
                    self.notice(&format!("building {name} while sessions of others run"));
                }
                if schedule.waits_for_build() && builds.wait() && !self.interrupted() {
                    continue;
                }
            }
            let trials = schedule.next();
            if trials.is_empty()
                && !self.interrupted()
                && let Some(NextBlock { block, trials }) = self.more_blocks.and_then(MoreBlocks::next)
            {
                let earlier = trials.iter().map(|trial| trial.id.clone()).collect();
                *schedule = self.schedule(Some(&block), &trials, &earlier);
                without_load = 0;
                continue;
            }
            let Some(next) = trials.first().filter(|_| !self.interrupted()) else { break };
            let cell = self.plan.cell(&next.trial);
            if let Some(builds) = &mut builds {
                let is_there = |next: &NextTrial| {
                    servers.has(self.plan.cell(&next.trial)) || builds.ended().contains(&next.trial.cell)
                };
                // One that is needed now does not wait for another one.
                if !trials.iter().all(is_there) {
                    builds.cancel();
                }
            }
            if self.plan.run.order == Order::Bisect || self.more_blocks.is_some() {
                // Both trials, also if they run one after the other.
                let session = match is_in_slices {
                    true => trials.iter().map(|next| next.trial).collect(),
                    false => schedule.remaining(),
                };
                let provision =
                    Provision { servers: &mut servers, second: second.as_mut(), machines: machines.as_mut() };
                match provision.provide(&context, self.cache, &session, &preparation) {
                    Ok(None) => {}
                    Ok(Some(mut failed)) => {
                        let mut cells = session.iter().map(|trial| self.plan.cell(trial));
                        if let Some(cell) = cells.find(|cell| failed.record.trial.cell == **cell) {
                            servers.add_commit(cell, &mut failed.record);
                            if let Some(machines) = &machines {
                                machines.add_commit(cell, &mut failed.record);
                            }
                        }
                        failed.record.logs.extend(subjects.take());
                        self.write(&mut failed.record)?;
                        schedule.record(&failed.record.trial);
                        self.observer.on_event(&Event::TrialEnded(&failed.record.trial));
                        continue;
                    }
                    Err(error) if error.is_interrupted() => break,
                    Err(error) => return Err(error),
                }
            }
            self.report_begin(&**schedule, &trials, 0, &pace);
            let on_interval = |interval: &_, waits: Option<&_>| {
                self.observer.on_event(&Event::Load { interval, side: None, waits });
            };
            let on_side = |side: Side, interval: &_, waits: Option<&_>| {
                self.observer.on_event(&Event::Load { interval, side: Some(side), waits });
            };
            let (ended, others) = turn.watch(|| match (&machines, &mut second, trials.as_slice()) {
                (_, Some(second), [a, b]) => {
                    let pairs = schedule.comparison(b.trial.cell).map_or(PAIRS, |state| state.pairs);
                    session::run(&context, [&mut servers, second], [a, b], pairs, &on_side).map(Vec::from)
                }
                (Some(machines), ..) if cell.acceleration.is_virtual() => {
                    machines.run(&context, self.cache, &servers, next, on_interval).map(|ended| vec![ended])
                }
                _ => trial::run(&context, &mut servers, next, on_interval).map(|ended| vec![ended]),
            });
            let mut ended = ended?;
            let mut outages = ended.iter().filter(|ended| !ended.loaded && !self.interrupted());
            if let Some(outage) = outages.find_map(|ended| ended.outage.as_ref()) {
                let began = *outage_began.get_or_insert_with(Instant::now);
                self.outlast(outage, began, cell, &mut servers)?;
                continue;
            }
            outage_began = None;
            let others: Vec<&str> = others.iter().map(|other| &*other.label).collect();
            // First, so that an error leaves none of them out.
            for (ended, next) in ended.iter_mut().zip(&trials) {
                let cell = self.plan.cell(&next.trial);
                if let Some(finding) = diagnose::other_pgdynos(cell.acceleration, &others) {
                    trial::add_finding(&mut ended.record, finding);
                }
                servers.add_commit(cell, &mut ended.record);
                if let Some(machines) = &machines {
                    machines.add_commit(cell, &mut ended.record);
                }
                ended.record.logs.extend(subjects.take());
                // Users see what is stored.
                ended.record.trial.mask_secrets();
                self.write(&mut ended.record)?;
                schedule.record(&ended.record.trial);
                pace.estimated += self.plan.estimate_of(&[next.trial]).us();
            }
            for (at, (ended, next)) in ended.into_iter().zip(&trials).enumerate() {
                let cell = self.plan.cell(&next.trial);
                let shown_cell = || cell.clone().masked().to_string();
                if let Some(reason) = ended.refusal.as_deref().filter(|_| !self.interrupted()) {
                    return Err(RunError::Refused {
                        reason: model::secret::mask(reason),
                        cell: shown_cell(),
                        store: self.store.root().to_owned(),
                    });
                }
                let validity = &ended.record.trial.validity;
                if at > 0 {
                    self.report_begin(&**schedule, &trials, at, &pace);
                }
                self.observer.on_event(&Event::TrialEnded(&ended.record.trial));
                if let Some(TrialOutage { kind: Outage::Exhausted, reason }) = ended.outage {
                    return Err(self.exhausted(reason));
                }
                without_load = if ended.loaded || self.interrupted() { 0 } else { without_load + 1 };
                any_loaded |= ended.loaded;
                // A kernel that fails to boot is no reason to skip the others; a bisection goes round it.
                let kernel_may_be_at_fault = cell.acceleration.is_virtual()
                    && (any_loaded
                        || self.plan.run.order == Order::Bisect
                        || schedule
                            .remaining()
                            .iter()
                            .any(|trial| self.plan.cell(trial).kernel != cell.kernel));
                if without_load >= MAX_CONSECUTIVE_FAILURES && !kernel_may_be_at_fault {
                    let reason = validity.findings.first().map(|finding| finding.evidence.clone());
                    return Err(RunError::RepeatedFailures {
                        count: without_load,
                        cell: shown_cell(),
                        reason: reason.unwrap_or_default(),
                        store: self.store.root().to_owned(),
                    });
                }
            }
            if let Some(state) = trials.last().and_then(|next| schedule.comparison(next.trial.cell)) {
                self.observer.on_event(&Event::SessionEnded(&state));
            }
        }
        Ok(())
    }

    /// The cells whose servers are prepared before the first trial: of a bisection those at its ends, of a block its own.
    fn first_cells(&self) -> impl Iterator<Item = &Cell> {
        let is_bisection = self.plan.run.order == Order::Bisect;
        let cells: BTreeSet<usize> = match self.block {
            Some(block) => block.cell_indices(self.plan),
            None if is_bisection => self.plan.trials.iter().map(|trial| trial.cell).collect(),
            None => (0..self.plan.cells.len()).collect(),
        };
        cells.into_iter().map(|cell| &self.plan.cells[cell])
    }

    /// The subjects of a bisection's commits, also of those that will not be built.
    fn subjects(&self) -> Option<Log> {
        let (repository, names) = self.commits()?;
        let text = host::git::commit_subjects(repository, &names)?;
        Some(Log { name: COMMITS_LOG.to_owned(), text })
    }

    /// What the data sets of a bisection's commits depend on, by cell; none if unknown, and of other cells.
    fn data(&self) -> Vec<Option<String>> {
        let of_commits: BTreeMap<&str, String> = self
            .commits()
            .and_then(|(repository, names)| {
                let catalogs = server::catalogs_of_commits(repository, &names)?;
                Some(names.into_iter().zip(catalogs).collect())
            })
            .unwrap_or_default();
        let of_cell = |cell: &Cell| match &self.plan.server(cell)?.source {
            Source::Build(build) => of_commits.get(build.git_ref.as_deref()?).cloned(),
            _ => None,
        };
        self.plan.cells.iter().map(of_cell).collect()
    }

    /// The repository of a bisection's commits, and their names; none if there are none.
    fn commits(&self) -> Option<(&Path, Vec<&str>)> {
        if self.plan.run.order != Order::Bisect {
            return None;
        }
        let of_servers = self.plan.servers.iter().filter_map(|server| match &server.source {
            Source::Build(build) => Some((build.location.as_path(), build.git_ref.as_deref()?)),
            _ => None,
        });
        let of_kernels = self.plan.kernels.iter().filter_map(KernelSpec::commit);
        let commits: Vec<(&Path, &str)> = match self.plan.run.compare {
            Some(Factor::Kernel) => of_kernels.collect(),
            _ => of_servers.collect(),
        };
        let (repository, _) = *commits.first()?;
        let names = commits.iter().filter(|(of, _)| *of == repository);
        Some((repository, names.map(|(_, name)| *name).collect()))
    }

    /// Reports the begin of the trial at this place, among those that run at the same time.
    fn report_begin(&self, schedule: &dyn Schedule, trials: &[NextTrial], at: usize, pace: &Pace) {
        let next = &trials[at];
        let cell_of = |next: &NextTrial| self.plan.cell(&next.trial).clone().masked();
        let cell = cell_of(next);
        let other = if at == 0 { trials.get(1) } else { None };
        let other = other.map(|other| (other, cell_of(other)));
        let of = self.plan.trials.len().max(next.trial.position as usize);
        let (remaining, extra) = (schedule.remaining(), schedule.possible());
        let estimate = |trials: &[PlannedTrial]| pace.remaining(self.plan.estimate_of(trials));
        self.observer.on_event(&Event::TrialBegins {
            trial: &next.trial,
            cell: &cell,
            attempt: next.attempt,
            reason: next.reason.as_deref(),
            of,
            of_at_most: of.max(self.plan.cells.len() * self.plan.run.repeats.max as usize),
            remaining: estimate(&remaining),
            remaining_at_most: estimate(&[remaining, extra].concat()),
            side: (trials.len() > 1).then_some([Side::A, Side::B][at.min(1)]),
            other: other.as_ref().map(|(other, cell)| OtherTrial {
                trial: &other.trial,
                cell,
                attempt: other.attempt,
            }),
        });
    }

    /// Handles an outage that kept a trial from running: waits until its server can be reached again, or ends the
    /// campaign.
    fn outlast(
        &self,
        outage: &TrialOutage,
        began: Instant,
        cell: &Cell,
        servers: &mut Servers,
    ) -> Result<(), RunError> {
        if outage.kind == Outage::Exhausted {
            return Err(self.exhausted(outage.reason.clone()));
        }
        self.notice(&format!("waiting for the server, up to {MAX_WAIT_TEXT}: {}", outage.reason));
        // The session that locks the server may end a moment later than the others.
        let may_end = |error: &server::Error| {
            error.outage() == Some(Outage::Unreachable) || matches!(error, server::Error::InUse { .. })
        };
        let deadline = began + MAX_WAIT;
        let unreachable = |reason| Err(RunError::Unreachable { reason, store: self.store.root().to_owned() });
        match outlast(deadline, self.interrupt, || servers.reconnect(cell), may_end, |_| ()) {
            // Trials find it unreachable all the same.
            Ok(()) if Instant::now() >= deadline => unreachable(outage.reason.clone()),
            Ok(()) => Ok(()),
            Err(error) if !may_end(&error) => Err(error.into()),
            Err(_) if self.interrupted() => Ok(()),
            Err(error) => unreachable(error.to_string()),
        }
    }

    /// Stores a trial; if the disk is full, waits for space.
    fn write(&self, record: &mut TrialRecord) -> Result<(), RunError> {
        record.trial.agent.clone_from(&self.host.agent);
        let attempt = || self.store.write(record);
        let is_full = |error: &StoreError| host::is_exhausted(error);
        let written = outlast(Instant::now() + MAX_WAIT, self.interrupt, attempt, is_full, |error| {
            self.notice(&format!(
                "waiting for space, up to {MAX_WAIT_TEXT}; then this trial is lost: {error}"
            ));
        });
        written.map(drop).map_err(RunError::from)
    }

    fn exhausted(&self, reason: String) -> RunError {
        RunError::Exhausted { reason, store: self.store.root().to_owned() }
    }

    fn notice(&self, text: &str) {
        self.observer.on_event(&Event::Notice(text));
    }

    /// Reports confounds: differences between compared cells other than the factor they are compared by.
    fn report_confounds(&self, servers: &Servers) -> Result<(), RunError> {
        let confounds = confounds(self.plan, |cell| servers.facts(cell));
        if confounds.is_empty() {
            return Ok(());
        }
        let text = diagnose::in_words(&confounds);
        if self.strict {
            return Err(RunError::Confounded { text });
        }
        self.observer.on_event(&Event::Notice(&text));
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// Duration of trials relative to the plan's estimate.
struct Pace {
    begun: Instant,
    /// Estimated duration of the trials since then, in microseconds.
    estimated: u64,
}

impl Pace {
    fn remaining(&self, estimate: Span) -> Span {
        if self.estimated == 0 {
            return estimate;
        }
        let ratio = self.begun.elapsed().as_micros() as f64 / self.estimated as f64;
        Span::from_us((estimate.us() as f64 * ratio) as u64)
    }
}

/// Passes the progress of preparations on to the observer.
struct Preparation<'a>(&'a Campaign<'a>);

impl host::Progress for Preparation<'_> {
    fn step(&self, what: &str, done: u64, total: Option<u64>) {
        self.0.observer.on_event(&Event::Preparing { what, done, total });
    }

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }

    fn notice(&self, text: &str) {
        self.0.observer.on_event(&Event::Notice(text));
    }
}
