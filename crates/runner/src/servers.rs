//! The servers of a campaign: each is installed and filled once, at most one runs at a time, and each trial finds the state
//! that it asks for.

mod named;
mod start;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use diagnose::{Facts, facts_of_settings};
use host::{Cache, Lock};
use model::cell::Cell;
use model::commit_log::COMMIT_LOG;
use model::environment::ServerFacts;
use model::extension::Named;
use model::factor::Factor;
use model::factor::cache::CacheState;
use model::factor::settings::SettingsVariant;
use model::limits::Limits;
use model::plan::{Order, Plan};
use model::record::{Commit, Log, TrialRecord};
use model::server::{ServerSpec, Source};
use model::topology::{Companion, Topology};
use model::workload::{Statement, Transport};
use server::{
    Cluster, Content, Dataset, ExtensionSource, ExternalServer, Installation, Setup, StopMode, Template,
};

use crate::rig::{ServerPool, ServerUnderTest, StartedServer};
use crate::server_handle::{OwnServer, ServerHandle};
use named::{OfServer, named, title};

/// A server and the data set that it runs on.
type Origin = (String, Content);

/// Parameters of a server's start; a trial with other parameters needs another start.
#[derive(Clone, PartialEq, Eq)]
struct Start {
    origin: Origin,
    settings: SettingsVariant,
    /// The processors it is pinned to; none for all.
    cpus: Option<String>,
    /// Its limits, from its start on.
    limits: Limits,
    /// Only a server of cells with the transport TCP listens on it.
    transport: Transport,
    topology: Topology,
    /// The most connections of clients, and of a pooler to the server; none without a pooler.
    pooled: Option<[u32; 2]>,
}

impl Start {
    fn from_cell(cell: &Cell) -> Self {
        Self {
            origin: origin(cell),
            settings: cell.settings.clone(),
            cpus: cell.pin.server.clone(),
            limits: cell.limits(),
            transport: cell.transport,
            topology: cell.topology,
            pooled: (cell.topology.companion() == Some(Companion::Pgbouncer))
                .then(|| [cell.all_clients(), cell.pool_size().unwrap_or(cell.all_clients())]),
        }
    }
}

/// The running server.
struct Running {
    start: Start,
    /// Identity of its programs; none for an external server.
    build: Option<String>,
    server: ServerHandle,
    state: State,
}

/// State of a copy of a data set.
#[derive(Clone, Copy)]
struct State {
    /// Whether it was written to, or its server may have failed.
    altered: bool,
    /// The count of commits in the tested database, if known: reading the count takes a while unless its value is known.
    commits: Option<u64>,
}

/// The servers of a campaign.
pub(crate) struct Servers<'a> {
    cache: &'a Cache,
    installations: BTreeMap<String, Installation>,
    /// Prevent the removal of installations, also while no server runs on them.
    in_use: Vec<Lock>,
    /// Commits of servers built from a git ref, by name of server.
    commits: HashMap<String, Commit>,
    /// What their repositories say about these, in the same way.
    commit_texts: HashMap<String, String>,
    /// External servers, while no trial runs on them.
    externals: HashMap<String, ExternalServer>,
    progress: &'a dyn host::Progress,
    templates: HashMap<Origin, Template>,
    /// One copy of each template, while no server runs on it.
    copies: HashMap<Origin, (Cluster, State)>,
    /// Another copy of templates that had a replica, while none runs on it: as the replica left it.
    replicas: HashMap<Origin, Cluster>,
    /// The count of commits in a new copy.
    first_commits: HashMap<Origin, u64>,
    /// Build and settings in force, by names of server and settings, and topology.
    facts: HashMap<(String, String, Topology), Facts>,
    /// Facts that each server reports about itself, queried once.
    server_facts: HashMap<Origin, ServerFacts>,
    running: Option<Running>,
    /// Whether each trial has a newly started server.
    restarts: bool,
}

impl<'a> Servers<'a> {
    /// Removes the remains of killed pgdyno processes, installs every server of the cells, fills every data set, and
    /// starts each server once with each of its settings and limits, so that errors are reported before the first
    /// trial.
    ///
    /// # Errors
    /// A server can't be installed, filled or started.
    pub(crate) fn prepare(
        cache: &'a Cache,
        plan: &Plan,
        cells: &[&Cell],
        progress: &'a dyn host::Progress,
    ) -> Result<Self, server::Error> {
        // A fast check, made before servers are fetched and filled.
        for limits in limits_of(cells) {
            server::check_limits(cache, &limits)?;
        }
        if let Some(notice) = server::sweep(cache)?.notice() {
            progress.notice(&notice);
        }
        for restored in server::restore_settings(cache, progress)? {
            progress.notice(&restored.notice());
        }
        let mut servers = Self::new(cache, progress);
        servers.install(plan, cells)?;
        servers.check_not_identical(plan)?;
        servers.fill(plan, cells)?;
        Ok(servers)
    }

    /// Whether the server of a cell has been provided, with its settings.
    pub(crate) fn has(&self, cell: &Cell) -> bool {
        self.facts(cell).is_some()
    }

    /// Installs every server of the cells that is not, fills every data set, and starts each server once with each of its
    /// settings and limits.
    ///
    /// # Errors
    /// As [`Servers::prepare`].
    pub(crate) fn provide(&mut self, plan: &Plan, cells: &[&Cell]) -> Result<(), server::Error> {
        self.install(plan, cells)?;
        self.fill(plan, cells)
    }

    fn install(&mut self, plan: &Plan, cells: &[&Cell]) -> Result<(), server::Error> {
        let (cache, progress) = (self.cache, self.progress);
        let needed = |server: &&ServerSpec| cells.iter().any(|cell| cell.server == server.name);
        for server in plan.servers.iter().filter(needed) {
            if let Source::Dsn(dsn) = &server.source {
                let external = ExternalServer::connect(cache, &server.name, dsn, progress)?;
                self.externals.insert(server.name.clone(), external);
                continue;
            }
            if let Source::Build(build) = &server.source {
                let name = || server.name.clone();
                self.commits.extend(server::commit(build).map(|commit| (name(), commit)));
                let git_ref = build.git_ref.as_deref();
                let text = git_ref.and_then(|git_ref| host::git::commit_text(&build.location, git_ref));
                self.commit_texts.extend(text.map(|text| (name(), text)));
            }
            let progress = OfServer { name: &server.name, progress };
            let installation = server::installation(cache, &server.source, &progress)
                .map_err(|error| named(&server.name, error))?;
            self.in_use.push(installation.in_use(self.cache)?);
            for cell in cells.iter().filter(|cell| cell.server == server.name) {
                let programs = programs(cell);
                let named = cell.extension.named().filter(|named| named.source.is_some());
                if self.installations.contains_key(&programs) {
                    continue;
                }
                if let Some(Named { name, source: Some(source), .. }) = named {
                    let source =
                        ExtensionSource { name: name.clone(), directory: plan.directory.join(source) };
                    let extended = server::with_extension(cache, &installation, &source, &progress)
                        .map_err(|error| self::named(&server.name, error))?;
                    self.in_use.push(extended.in_use(self.cache)?);
                    self.installations.insert(programs, extended);
                }
            }
            self.installations.insert(server.name.clone(), installation);
        }
        Ok(())
    }

    /// The installation of a cell, with its extension; none for an external server.
    fn installation(&self, cell: &Cell) -> Option<&Installation> {
        self.installations.get(&programs(cell))
    }

    fn fill(&mut self, plan: &Plan, cells: &[&Cell]) -> Result<(), server::Error> {
        let (cache, progress) = (self.cache, self.progress);
        self.check_topologies(cells)?;
        self.check_disk(plan, cells)?;
        for cell in cells {
            let origin = origin(cell);
            if let Some(external) = self.externals.get(&cell.server) {
                external.connection(cell.transport)?;
                external.prepare(&origin.1, plan.dataset(cell), progress)?;
            } else if let (false, Some(installation), Some(server)) =
                (self.templates.contains_key(&origin), self.installation(cell), plan.server(cell))
            {
                let progress = OfServer { name: &server.name, progress };
                let own = plan.dataset(cell);
                let template =
                    server::template(cache, installation, &server.initdb, &origin.1, own, &progress)
                        .map_err(|error| named(&server.name, error))?;
                self.templates.insert(origin, template);
            }
        }
        let mut tried: Vec<(String, &SettingsVariant, Limits, Topology)> = Vec::new();
        for cell in cells {
            let start = (programs(cell), &cell.settings, cell.limits(), cell.topology);
            if !tried.contains(&start) {
                tried.push(start);
                let next_to_it = cell.topology.companion();
                let next_to_it = next_to_it.map(|companion| format!(" and a {}", companion.as_str()));
                let what = format!(
                    "starting {}{} with settings {}",
                    title(&cell.server),
                    next_to_it.unwrap_or_default(),
                    cell.settings.name
                );
                progress.step(&what, 0, None);
                let settings =
                    self.start_server(cell, false).and_then(|(running, _)| running.server.settings());
                let settings = settings.map_err(|error| match self.installation(cell) {
                    Some(_) => named(&cell.server, error),
                    // Errors of an external server have its name.
                    None => error,
                })?;
                let mut facts = facts_of_settings(&settings);
                facts.extend(self.installation(cell).map(build_facts).unwrap_or_default());
                self.facts.insert(facts_key(cell), facts);
            }
        }
        Ok(())
    }

    /// Takes over what another pool has provided.
    pub(crate) fn adopt(&mut self, other: &Self) {
        self.installations.clone_from(&other.installations);
        self.templates.clone_from(&other.templates);
        self.first_commits.clone_from(&other.first_commits);
        self.server_facts.clone_from(&other.server_facts);
    }

    /// Drops the copies of all data sets but a cell's.
    pub(crate) fn keep_copies_of(&mut self, cell: &Cell) {
        let kept = origin(cell);
        self.copies.retain(|origin, _| *origin == kept);
        self.replicas.retain(|origin, _| *origin == kept);
    }

    /// The one server of a guest, on the data directory for one trial of this cell.
    pub(crate) fn from_guest(
        cache: &'a Cache,
        cell: &Cell,
        (installation, cluster): (Installation, Cluster),
        progress: &'a dyn host::Progress,
    ) -> Self {
        let state = State { altered: false, commits: None };
        Self {
            installations: BTreeMap::from([(programs(cell), installation)]),
            copies: HashMap::from([(origin(cell), (cluster, state))]),
            ..Self::new(cache, progress)
        }
    }

    /// A second pool, for the other side of sessions: the same servers, on copies of its own. From now on both start a
    /// server for each trial.
    pub(crate) fn second_pool(&mut self) -> Self {
        self.restarts = true;
        let mut second = Self { restarts: true, ..Self::new(self.cache, self.progress) };
        second.adopt(self);
        second
    }

    fn new(cache: &'a Cache, progress: &'a dyn host::Progress) -> Self {
        Self {
            cache,
            installations: BTreeMap::new(),
            in_use: Vec::new(),
            commits: HashMap::new(),
            commit_texts: HashMap::new(),
            externals: HashMap::new(),
            progress,
            templates: HashMap::new(),
            copies: HashMap::new(),
            replicas: HashMap::new(),
            first_commits: HashMap::new(),
            facts: HashMap::new(),
            server_facts: HashMap::new(),
            running: None,
            restarts: false,
        }
    }

    /// The filled data directory of a cell; none for an external server.
    pub(crate) fn template(&self, cell: &Cell) -> Option<&Template> {
        self.templates.get(&origin(cell))
    }

    /// Refuses a plan of pairs that compare byte-identical programs only. A server that has two names is compared with itself
    /// on purpose.
    fn check_not_identical(&self, plan: &Plan) -> Result<(), server::Error> {
        if !plan.run.order.is_paired() || plan.run.compare != Some(Factor::Server) {
            return Ok(());
        }
        let mut comparisons = plan.comparisons();
        if plan.run.order == Order::Bisect {
            // Only the ends are known to exist.
            comparisons.drain(..comparisons.len() - 1);
        }
        for (a, b) in comparisons {
            let (a, b) = (&plan.cells[a], &plan.cells[b]);
            let source = |cell| plan.server(cell).map(|server| (&server.source, &server.initdb));
            let (Some(one), Some(other)) =
                (self.installations.get(&a.server), self.installations.get(&b.server))
            else {
                return Ok(());
            };
            if source(a) == source(b) || !server::are_identical(one, other)? {
                return Ok(());
            }
        }
        let servers = plan.servers.iter().map(|server| format!("the programs of \"{}\"", server.name));
        Err(server::Error::Identical { servers: servers.collect() })
    }

    /// Checks that what the topologies of the cells need is there, and that it fits their servers and protocols.
    fn check_topologies(&self, cells: &[&Cell]) -> Result<(), server::Error> {
        for cell in cells {
            let version = self.installation(cell).map(Installation::version);
            crate::topology::check(cell, version)?;
        }
        Ok(())
    }

    /// Checks that the data sets of the cells, and a copy of each, fit on the disk.
    fn check_disk(&self, plan: &Plan, cells: &[&Cell]) -> Result<(), server::Error> {
        let mut origins: BTreeMap<Origin, &Cell> = BTreeMap::new();
        for cell in cells {
            origins.entry(origin(cell)).or_insert(cell);
        }
        let mut datasets = Vec::new();
        for (of, cell) in &origins {
            let (Some(server), Some(installation)) = (plan.server(cell), self.installation(cell)) else {
                continue;
            };
            let content = &of.1;
            let has_replica = |cell: &&Cell| cell.topology.has_replica() && origin(cell) == *of;
            let copies = 1 + u32::from(cells.iter().any(has_replica));
            datasets.push(Dataset { installation, initdb: &server.initdb, content, copies });
        }
        server::disk_need(self.cache, &datasets)?.check(self.cache)
    }

    /// Connects again to a cell's server if pgdyno does not own it and the connection was lost.
    ///
    /// # Errors
    /// The server can't be reached or used, or is another one now.
    pub(crate) fn reconnect(&mut self, cell: &Cell) -> Result<(), server::Error> {
        let running = self.running.as_mut().filter(|running| running.start.origin.0 == programs(cell));
        let external = match running.map(|running| &mut running.server) {
            Some(ServerHandle::External(external)) => Some(external),
            Some(ServerHandle::Own(_)) => None,
            None => self.externals.get_mut(&cell.server),
        };
        external.map_or(Ok(()), ExternalServer::reconnect)
    }

    /// Adds to the record of a cell's trial the commit that its server was built from.
    pub(crate) fn add_commit(&self, cell: &Cell, record: &mut TrialRecord) {
        record.trial.server_commit = self.commits.get(&cell.server).cloned();
        let text = self.commit_texts.get(&cell.server).cloned();
        record.logs.extend(text.map(|text| Log { name: COMMIT_LOG.to_owned(), text }));
    }

    /// Settings in force and build of a cell's server.
    pub(crate) fn facts(&self, cell: &Cell) -> Option<&Facts> {
        self.facts.get(&facts_key(cell))
    }

    /// Starts the server of a cell, unless it runs already, and returns it with the facts that it reports. For a trial
    /// it runs on the data set as filled if the cell writes, and is newly started if the cell begins with cold caches.
    fn start_server(
        &mut self,
        cell: &Cell,
        for_trial: bool,
    ) -> Result<(&mut Running, &ServerFacts), server::Error> {
        self.reconnect(cell)?;
        let start = Start::from_cell(cell);
        let fresh_data = for_trial && cell.workload.writes();
        let cold = for_trial && cell.cache == CacheState::Cold;
        let must_restart = for_trial && self.restarts || fresh_data || cold;
        let fits = |running: &Running| running.start == start && !must_restart && !running.state.altered;
        let running = match self.running.take() {
            Some(running) if fits(&running) => running,
            other => {
                let previous_state =
                    other.as_ref().map(|previous| (previous.start.origin.clone(), previous.state.altered));
                if let Some(previous) = other {
                    self.release(previous)?;
                }
                let reusable = previous_state == Some((start.origin.clone(), false)) && !fresh_data;
                match self.reset_external(cell, reusable)? {
                    Some((server, commits)) => {
                        let state = State { altered: false, commits: Some(commits) };
                        Running { start, build: None, server: ServerHandle::External(server), state }
                    }
                    None => self.start_own(cell, start, fresh_data, cold)?,
                }
            }
        };
        let running = self.running.insert(running);
        let facts = match self.server_facts.entry(running.start.origin.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let facts = entry.insert(running.server.facts());
                // The queries are counted.
                running.state.commits = Some(running.server.commits(None)?);
                facts
            }
        };
        Ok((running, facts))
    }

    /// The external server of a cell in the state that the cell asks for, with its count of commits; none if pgdyno starts
    /// the cell's server itself.
    fn reset_external(
        &mut self,
        cell: &Cell,
        reusable: bool,
    ) -> Result<Option<(ExternalServer, u64)>, server::Error> {
        let Some(external) = self.externals.get_mut(&cell.server) else { return Ok(None) };
        if !reusable {
            external.recreate_database(&origin(cell).1, self.progress)?;
        }
        external.set(&cell.topology.settings(&cell.settings.values))?;
        let commits = external.commits(None)?;
        Ok(self.externals.remove(&cell.server).map(|external| (external, commits)))
    }

    fn release(&mut self, running: Running) -> Result<(), server::Error> {
        // A copy that will be restored needs no checkpoint.
        let mode = if running.state.altered { StopMode::Immediate } else { StopMode::Fast };
        match running.server {
            ServerHandle::Own(OwnServer { companion, server }) => {
                if let Some(cluster) = companion.map(server::Companion::stop).transpose()?.flatten() {
                    self.replicas.insert(running.start.origin.clone(), cluster);
                }
                let cluster = server.stop(mode)?;
                self.copies.insert(running.start.origin, (cluster, running.state));
            }
            ServerHandle::External(external) => {
                self.externals.insert(running.start.origin.0, external);
            }
        }
        Ok(())
    }
}

impl ServerPool for Servers<'_> {
    fn start(&mut self, cell: &Cell) -> Result<StartedServer<'_>, server::Error> {
        let (running, facts) = self.start_server(cell, true)?;
        Ok(StartedServer {
            build: running.build.clone(),
            facts: facts.clone(),
            commits: running.state.commits,
            server: &mut running.server,
        })
    }

    fn end_trial(&mut self, altered: bool, commits: Option<u64>) {
        if let Some(running) = &mut self.running {
            running.state = State { altered: running.state.altered || altered, commits };
        }
    }
}

/// The limits of the cells, each once.
fn limits_of(cells: &[&Cell]) -> Vec<Limits> {
    let mut limits: Vec<Limits> = cells.iter().map(|cell| cell.limits()).collect();
    limits.retain(|limits| !limits.is_none());
    limits.sort();
    limits.dedup();
    limits
}

fn facts_key(cell: &Cell) -> (String, String, Topology) {
    (programs(cell), cell.settings.name.clone(), cell.topology)
}

fn origin(cell: &Cell) -> Origin {
    (programs(cell), content(cell))
}

/// Name of a cell's programs: of its server, and of the extension that is built for it.
fn programs(cell: &Cell) -> String {
    match cell.extension.source() {
        None => cell.server.clone(),
        Some(_) => format!("{} with {}", cell.server, cell.extension),
    }
}

/// The content of a cell's data set.
pub(crate) fn content(cell: &Cell) -> Content {
    let custom = cell.workload.custom().filter(|custom| {
        !custom.pgbench_tables && custom.dataset.is_none()
            || custom.star_tables
            || custom.with_background().any(|workload| !workload.setup.is_empty())
    });
    let extension = cell.extension.named();
    let setup = (custom.is_some() || extension.is_some()).then(|| {
        let mut statements: Vec<Statement> = extension.map(created).into_iter().collect();
        // Checked with the plan.
        statements.extend(
            custom.into_iter().flat_map(|custom| workload::setup(custom, cell.scale).unwrap_or_default()),
        );
        let names = [custom.map(|custom| custom.name.clone()), extension.map(|of| of.name.clone())];
        let workload = names.into_iter().flatten().collect::<Vec<_>>().join(", ");
        // Of a workload without a setup of its own, too.
        let pgbench_tables = cell.workload.custom().is_none_or(|custom| custom.pgbench_tables);
        let star_tables = custom.is_some_and(|custom| custom.star_tables);
        Arc::new(Setup { workload, pgbench_tables, star_tables, statements })
    });
    Content { scale: cell.scale, own: cell.workload.own_database().cloned().map(Arc::new), setup }
}

/// The statement that creates an extension.
fn created(extension: &Named) -> Statement {
    Statement { place: format!("the extension {}", extension.name), sql: extension.statement() }
}

/// Build options of a server's programs, for the confound guard.
pub(crate) fn build_facts(installation: &Installation) -> Facts {
    let flags = installation.build_flags();
    let known = [("CC", flags.cc), ("CFLAGS", flags.cflags), ("configure", flags.configure)];
    known.into_iter().filter_map(|(name, value)| Some((format!("build {name}"), value?))).collect()
}
