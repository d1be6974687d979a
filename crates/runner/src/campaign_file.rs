//! A campaign's text with its plan, before it is run: overrides, workloads, servers and acceleration.

pub mod ab;
mod acceleration;
pub mod commits;
pub mod draft;
mod error;
pub mod overrides;
mod patterns;
pub mod pin;
mod toml_text;
mod transport;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use host::{Cache, NoProgress, Progress, usable_cpus};
use model::factor::Factor;
use model::plan::{Basis, Plan};
use model::record::{Run, Trial};
use model::server::Source;
use model::spec::{Campaign, Matrix, Point, SpecError};
use model::version::Major;
use model::workload::Workloads;
use server::Installation;
use workload::WorkloadError;

pub use error::CampaignFileError;

/// A campaign that has been read and planned.
#[derive(Clone, Debug)]
pub struct CampaignFile {
    path: PathBuf,
    /// The text, byte for byte, with the CPUs of the pin `separate`, the commits of ranges and the names of bundled workloads.
    pub text: String,
    campaign: Campaign,
    /// Its plan.
    pub plan: Plan,
}

impl CampaignFile {
    /// Plans a campaign's text; relative paths in it are relative to the directory of `path`. Without a seed in the text
    /// or here, one is drawn.
    ///
    /// # Errors
    /// The text is not a campaign.
    pub fn parse(path: &Path, text: String, basis: Option<Basis>) -> Result<Self, CampaignFileError> {
        Self::parse_with(path, text, basis, &Workloads::default(), &NoProgress)
    }

    /// As [`CampaignFile::parse`], with workloads whose files need not be read, and with progress while those of a large data
    /// set are.
    ///
    /// # Errors
    /// As [`CampaignFile::parse`].
    pub fn parse_with(
        path: &Path,
        text: String,
        basis: Option<Basis>,
        known: &Workloads,
        progress: &dyn Progress,
    ) -> Result<Self, CampaignFileError> {
        let directory = directory(path);
        let text = patterns::with_names(text.clone()).map_err(|error| invalid(path, &text, error))?;
        let text =
            commits::with_commits(text.clone(), directory).map_err(|error| invalid(path, &text, error))?;
        let workloads = |campaign: &Campaign| workload::workloads(campaign, directory, known, progress);
        Self::planned(path, text, basis, workloads)
    }

    /// Plans the text of a [`CampaignFile`] of another machine, with the workloads that came with it: no other file of a workload
    /// is read, and no repository. `path` is its name in messages.
    ///
    /// # Errors
    /// The text is not a campaign; a workload did not come with it; its commits were not listed where it is from.
    pub fn parse_received(
        path: &Path,
        text: String,
        basis: Option<Basis>,
        received: &Workloads,
    ) -> Result<Self, CampaignFileError> {
        commits::check_listed(&text).map_err(|error| invalid(path, &text, error))?;
        Self::planned(path, text, basis, |campaign| workload::received_workloads(campaign, received))
    }

    /// Plans a campaign's text without patterns and ranges, with these workloads.
    fn planned(
        path: &Path,
        text: String,
        basis: Option<Basis>,
        workloads: impl FnOnce(&Campaign) -> Result<Workloads, WorkloadError>,
    ) -> Result<Self, CampaignFileError> {
        let text = pin::with_table(text);
        let planned = Campaign::parse(&text).map_err(WorkloadError::from).and_then(|campaign| {
            let workloads = workloads(&campaign)?;
            let plan = Plan::with_workloads(&campaign, basis.unwrap_or_else(new_basis), &workloads)?;
            workload::check(&plan.cells)?;
            Ok((campaign, plan))
        });
        match planned {
            Ok((campaign, mut plan)) => {
                plan.relative_to(directory(path));
                Self { path: path.to_owned(), text, campaign, plan }.derive_transport()
            }
            Err(WorkloadError::Campaign(error)) => Err(invalid(path, &text, error)),
            Err(WorkloadError::Directory { path, text, error }) => Err(invalid(&path, &text, error)),
            Err(WorkloadError::Script(message)) => Err(CampaignFileError::Script(message)),
        }
    }

    /// Checks that each server to be downloaded, or built before, exists.
    ///
    /// # Errors
    /// One does not exist, or the archive can't be reached.
    pub fn check_servers(&self, cache: &Cache) -> Result<(), CampaignFileError> {
        for server in &self.plan.servers {
            let unknown = |message: String, help: String| {
                self.invalid(SpecError { message, at: self.server_span(&server.name), help: Some(help) })
            };
            match &server.source {
                Source::Embedded(version) => match server::resolve(cache, version) {
                    Ok(_) => {}
                    Err(server::Error::NoSuchVersion { available, .. }) => {
                        return Err(unknown(
                            format!("there is no PostgreSQL {version}"),
                            format!("expected a major or one of: {}", available.join(", ")),
                        ));
                    }
                    Err(error) => return Err(error.into()),
                },
                Source::Installed(name) if server::find(cache, name)?.is_none() => {
                    return Err(unknown(
                        format!("there is no build {name}"),
                        "`pgdyno server list` lists the builds, `pgdyno server build` makes one".to_owned(),
                    ));
                }
                Source::Installed(_) | Source::Bin(_) | Source::Build(_) | Source::Dsn(_) => {}
            }
        }
        Ok(())
    }

    /// Checks that the databases of the user's own can be made for the servers of their cells, as far as their files show.
    ///
    /// # Errors
    /// A file is no dump, or can't be read here; a base backup is none, or of another major than a server.
    pub fn check_datasets(&self, progress: &dyn Progress) -> Result<(), CampaignFileError> {
        if self.plan.datasets.is_empty() {
            return Ok(());
        }
        let cache = Cache::open().ok();
        let mut checked = Vec::new();
        for cell in &self.plan.cells {
            let (Some(source), Some(server)) = (self.plan.dataset(cell), self.plan.server(cell)) else {
                continue;
            };
            if checked.contains(&(source, server)) {
                continue;
            }
            checked.push((source, server));
            let programs = cache.as_ref().and_then(|cache| installed(cache, &server.source, progress));
            let major = match (&programs, &server.source) {
                (Some(programs), _) => Some(programs.version().major()),
                (None, Source::Embedded(version) | Source::Installed(version)) => {
                    Major::from_reported(version)
                }
                (None, Source::Bin(_) | Source::Build(_) | Source::Dsn(_)) => None,
            };
            server::check_source(source, major, programs.as_ref()).map_err(|error| {
                let own = cell.workload.own_database();
                let mut tables = self.campaign.datasets.keys();
                let table = tables.find(|name| own.is_some_and(|own| own.name == *name.get_ref()));
                self.invalid(SpecError {
                    message: error.to_string(),
                    at: table.map(|name| name.span()),
                    help: Some(format!("the workload \"{}\" runs on it", cell.workload.name())),
                })
            })?;
        }
        Ok(())
    }

    /// A new run of the campaign, with tags in addition to its own.
    pub fn new_run(&self, tags: &[String]) -> Run {
        Run {
            id: store::new_id(),
            campaign: self.plan.campaign.clone(),
            campaign_toml: self.text.clone(),
            seed: Some(self.plan.run.seed),
            processors: self.plan.run.processors,
            pgdyno_version: model::release::VERSION.to_owned(),
            tags: self.plan.tags.iter().chain(tags).cloned().collect(),
            notes: self.plan.notes.clone(),
        }
    }

    /// The campaign with another name, and these levels of a factor, whose names have no commas. `known` are workloads whose files need
    /// not be read.
    ///
    /// # Errors
    /// As [`CampaignFile::parse`].
    pub fn with_levels(
        &self,
        name: &str,
        factor: Factor,
        levels: &[String],
        basis: Basis,
        known: &Workloads,
    ) -> Result<Self, CampaignFileError> {
        let text = overrides::with_levels(&self.text, name, factor, levels)?;
        Self::parse_with(&self.path, text, Some(basis), known, &NoProgress)
    }

    /// The campaign with one override, and the same basis.
    fn with_setting(self, setting: &str) -> Result<Self, CampaignFileError> {
        let text = overrides::apply(&self.text, &[setting.to_owned()])?;
        Self::parse(&self.path, text, Some(self.plan.run.basis()))
    }

    fn invalid(&self, error: SpecError) -> CampaignFileError {
        invalid(&self.path, &self.text, error)
    }

    /// Whether no matrix and no included cell names a level of a factor.
    fn leaves_open(&self, matrix: fn(&Matrix) -> bool, point: fn(&Point) -> bool) -> bool {
        let matrices = self.campaign.matrix.iter().map(|matrix| matrix.get_ref());
        std::iter::once(&self.campaign.factors)
            .chain(matrices)
            .all(|one| matrix(one) && one.include.iter().all(|included| point(included.get_ref())))
    }

    /// Byte range of a server's level in the text.
    fn server_span(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let matrices = self.campaign.matrix.iter().map(|matrix| matrix.get_ref());
        let mut levels = std::iter::once(&self.campaign.factors)
            .chain(matrices)
            .filter_map(|matrix| matrix.server.as_ref())
            .flat_map(|levels| levels.get_ref());
        levels.find(|level| level.get_ref() == name).map(|level| level.span())
    }
}

fn invalid(path: &Path, text: &str, error: SpecError) -> CampaignFileError {
    let (path, text) = (path.to_owned(), text.to_owned());
    CampaignFileError::Invalid { path, text, error: Box::new(error) }
}

/// The programs of a server that is in place or was built before.
fn installed(cache: &Cache, source: &Source, progress: &dyn Progress) -> Option<Installation> {
    match source {
        Source::Installed(name) => server::find(cache, name).ok()?,
        Source::Bin(_) => server::installation(cache, source, progress).ok(),
        Source::Embedded(_) | Source::Build(_) | Source::Dsn(_) => None,
    }
}

/// The workloads of stored trials, so that the files they came from need not be read again.
pub fn workloads_of<'t>(trials: impl Iterator<Item = &'t Trial>) -> Workloads {
    let mut workloads = Workloads::default();
    workloads.add_custom(trials.filter_map(|trial| trial.cell.workload.known()));
    workloads
}

/// Directory of a campaign file.
pub fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// The basis of a new run on this machine.
pub fn new_basis() -> Basis {
    Basis { seed: draw_seed(), processors: usable_cpus() }
}

/// A new seed, short enough to be copied by hand.
pub fn draw_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id())) % 1_000_000_000
}
