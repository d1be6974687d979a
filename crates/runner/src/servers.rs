//! The servers of a campaign: each installed and filled once, at most one running at a time, each trial on a state
//! that it can rely on.

use std::collections::{BTreeMap, HashMap};

use model::plan::{Cell, Plan, SettingsVariant};
use target::{Cache, Cluster, Installation, Server, StopMode, TargetError, Template};

/// Which copy of which data set under which server.
type Origin = (String, u32);

/// The server that runs.
pub(crate) struct Running {
    origin: Origin,
    settings: SettingsVariant,
    pub(crate) server: Server,
    state: State,
}

/// What a copy of a data set has been through.
#[derive(Clone, Copy)]
struct State {
    /// Written to, or left by a server that can't be trusted.
    altered: bool,
    /// The count of commits in the tested database, where it is known: a count takes a while to settle unless one
    /// knows what it settles at.
    commits: Option<u64>,
}

/// The servers of a campaign.
pub(crate) struct Servers<'a> {
    cache: &'a Cache,
    templates: HashMap<Origin, Template>,
    /// One copy of each template, while its server does not run.
    copies: HashMap<Origin, (Cluster, State)>,
    /// The count of commits that the copies of an origin begin with.
    first_commits: HashMap<Origin, u64>,
    running: Option<Running>,
}

impl<'a> Servers<'a> {
    /// Takes away what killed pgdynos left, installs every server of the plan, fills every data set, and starts each
    /// server once with each of its settings, so that what can't work is known before the first trial.
    ///
    /// # Errors
    /// A server that can't be got, filled or started.
    pub(crate) fn prepare(
        cache: &'a Cache,
        plan: &Plan,
        progress: &dyn target::Progress,
    ) -> Result<Self, TargetError> {
        if let Some(notice) = target::sweep(cache)?.notice() {
            progress.notice(&notice);
        }
        let mut installations: BTreeMap<&str, Installation> = BTreeMap::new();
        for server in plan.servers() {
            installations.insert(server, target::install(cache, server, progress)?);
        }
        let mut servers = Self {
            cache,
            templates: HashMap::new(),
            copies: HashMap::new(),
            first_commits: HashMap::new(),
            running: None,
        };
        for cell in &plan.cells {
            let origin = origin(cell);
            if let (false, Some(installation)) =
                (servers.templates.contains_key(&origin), installations.get(cell.server.as_str()))
            {
                let template = target::template(cache, installation, cell.scale, progress)?;
                servers.templates.insert(origin, template);
            }
        }
        let mut tried: Vec<(&str, &SettingsVariant)> = Vec::new();
        for cell in &plan.cells {
            if !tried.contains(&(&cell.server, &cell.settings)) {
                tried.push((&cell.server, &cell.settings));
                let what =
                    format!("starting PostgreSQL {} with settings {}", cell.server, cell.settings.name);
                progress.step(&what, 0, None);
                servers.start(cell, false)?;
            }
        }
        Ok(servers)
    }

    /// The server for a trial of this cell, running. Where the cell writes, on its data set as it was filled; where it
    /// only reads, on one that has only been read from.
    ///
    /// # Errors
    /// The copy can't be made, or the server does not start.
    pub(crate) fn for_cell(&mut self, cell: &Cell) -> Result<&mut Running, TargetError> {
        self.start(cell, cell.workload.writes())
    }

    /// To be called when a trial has ended: whether it has written, or left a server that can't be trusted, and the
    /// count of commits.
    pub(crate) fn ended(&mut self, altered: bool, commits: Option<u64>) {
        if let Some(running) = &mut self.running {
            running.state = State { altered: running.state.altered || altered, commits };
        }
    }

    fn start(&mut self, cell: &Cell, as_filled: bool) -> Result<&mut Running, TargetError> {
        let origin = origin(cell);
        let fits = |running: &Running| {
            let is_same = running.origin == origin && running.settings == cell.settings;
            is_same && !as_filled && !running.state.altered
        };
        let running = match self.running.take() {
            Some(running) if fits(&running) => running,
            other => {
                if let Some(previous) = other {
                    self.put_away(previous)?;
                }
                let (cluster, known) = self.copy(&origin, as_filled)?;
                let server = cluster.start(&cell.settings.values)?;
                let commits = match known {
                    Some(commits) => commits,
                    None => server.commits(None)?,
                };
                self.first_commits.entry(origin.clone()).or_insert(commits);
                let state = State { altered: false, commits: Some(commits) };
                Running { origin, settings: cell.settings.clone(), server, state }
            }
        };
        Ok(self.running.insert(running))
    }

    /// A copy that has not been written to, with its count of commits where it is known.
    fn copy(&mut self, origin: &Origin, as_filled: bool) -> Result<(Cluster, Option<u64>), TargetError> {
        let Some(template) = self.templates.get(origin) else {
            return Err(TargetError::NoTemplate { server: origin.0.clone(), scale: origin.1 });
        };
        let cluster = match self.copies.remove(origin) {
            None => template.clone_cluster(self.cache)?,
            Some((cluster, state)) if state.altered || as_filled => {
                template.restore(&cluster)?;
                cluster
            }
            Some((cluster, state)) => return Ok((cluster, state.commits)),
        };
        Ok((cluster, self.first_commits.get(origin).copied()))
    }

    fn put_away(&mut self, running: Running) -> Result<(), TargetError> {
        // What is put back anyway needs no checkpoint.
        let mode = if running.state.altered { StopMode::Immediate } else { StopMode::Fast };
        let cluster = running.server.stop(mode)?;
        self.copies.insert(running.origin, (cluster, running.state));
        Ok(())
    }
}

impl Running {
    /// What the count of commits in the tested database is to be, where that is known.
    pub(crate) fn expected_commits(&self) -> Option<u64> {
        self.state.commits
    }
}

fn origin(cell: &Cell) -> Origin {
    (cell.server.clone(), cell.scale)
}
