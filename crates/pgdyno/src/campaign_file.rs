//! Reads a campaign file and shows what is wrong with it the way a compiler does: file, line, caret, what was expected.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use clap::Args;
use model::plan::Plan;
use model::spec::{Campaign, SpecError, outdated_keys};
use model::workload::Workloads;
use workload::WorkloadError;

use crate::exit::Usage;
use crate::output::note;
use crate::overrides;
use crate::seed::drawn_seed;

/// A campaign file, and what is to be otherwise than it says.
#[derive(Clone, Debug, Args)]
pub(crate) struct CampaignArg {
    /// The campaign: a TOML file
    #[arg(value_name = "FILE")]
    pub(crate) campaign: PathBuf,

    /// Another value for a factor (levels parted by commas), a key of [run], or a dotted key [example: --set
    /// scale=100,1000 --set duration=60s]
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl CampaignArg {
    /// Reads and plans it; with `seed` for what it leaves to chance.
    ///
    /// # Errors
    /// [`Usage`]: the file can't be read, or is not a campaign.
    pub(crate) fn read(&self, seed: Option<u64>) -> Result<CampaignFile, Usage> {
        CampaignFile::of(&self.campaign, self.text()?, seed)
    }

    /// As [`CampaignArg::read`], with kernels that run on the machine itself.
    ///
    /// # Errors
    /// As [`CampaignArg::read`].
    pub(crate) fn read_for_the_machine(&self) -> Result<CampaignFile, Usage> {
        CampaignFile::of(&self.campaign, overrides::on_the_machine(&self.text()?)?, None)
    }

    /// The text with what `--set` says; notes on keys that have other names now.
    fn text(&self) -> Result<String, Usage> {
        let text = std::fs::read_to_string(&self.campaign).map_err(|error| {
            Usage(format!("error: the campaign {} can't be read: {error}", self.campaign.display()))
        })?;
        let text = overrides::apply(&text, &self.set)?;
        for outdated in outdated_keys(&text) {
            note(&format!("{}: {outdated}\n", self.campaign.display()));
        }
        Ok(text)
    }

    /// The directory of the file.
    pub(crate) fn directory(&self) -> &Path {
        directory(&self.campaign)
    }
}

fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// A campaign that has been read, with its plan.
pub(crate) struct CampaignFile {
    path: PathBuf,
    /// The text to the letter.
    pub(crate) text: String,
    campaign: Campaign,
    /// What it comes to.
    pub(crate) plan: Plan,
}

impl CampaignFile {
    /// Plans a campaign's text; `path` is where it is from. Relative paths in it are relative to that file's directory.
    ///
    /// # Errors
    /// [`Usage`]: it is not a campaign.
    pub(crate) fn of(path: &Path, text: String, seed: Option<u64>) -> Result<Self, Usage> {
        Self::with(path, text, seed, &Workloads::default())
    }

    /// As [`CampaignFile::of`], with workloads that are known already: their files are not read.
    ///
    /// # Errors
    /// As [`CampaignFile::of`].
    pub(crate) fn with(
        path: &Path,
        text: String,
        seed: Option<u64>,
        known: &Workloads,
    ) -> Result<Self, Usage> {
        let planned = Campaign::parse(&text).map_err(WorkloadError::from).and_then(|campaign| {
            let workloads = workload::workloads(&campaign, directory(path), known)?;
            let plan = Plan::with(&campaign, seed.unwrap_or_else(drawn_seed), &workloads)?;
            workload::check(&plan.cells)?;
            Ok((campaign, plan))
        });
        match planned {
            Ok((campaign, mut plan)) => {
                plan.relative_to(directory(path));
                Ok(Self { path: path.to_owned(), text, campaign, plan })
            }
            Err(WorkloadError::Campaign(error)) => Err(Usage(render(path, &text, &error))),
            Err(WorkloadError::Directory { path, text, error }) => Err(Usage(render(&path, &text, &error))),
            Err(WorkloadError::Script(told)) => Err(Usage(told)),
        }
    }

    /// Whether nothing says how kernels in virtual machines are to run.
    pub(crate) fn leaves_acceleration_open(&self) -> bool {
        let matrices = self.campaign.matrix.iter().map(|matrix| matrix.get_ref());
        std::iter::once(&self.campaign.factors).chain(matrices).all(|matrix| {
            matrix.acceleration.is_none()
                && matrix.include.iter().all(|point| point.get_ref().acceleration.is_none())
        })
    }

    /// The same with another value, and the same seed.
    ///
    /// # Errors
    /// [`Usage`]: with that value it is no campaign.
    pub(crate) fn with_set(self, setting: &str) -> Result<Self, Usage> {
        let text = overrides::apply(&self.text, &[setting.to_owned()])?;
        Self::of(&self.path, text, Some(self.plan.run.seed))
    }

    /// A complaint about a server, shown at its place in the file.
    pub(crate) fn refuse_server(&self, name: &str, message: String, help: String) -> Usage {
        let matrices = self.campaign.matrix.iter().map(|matrix| matrix.get_ref());
        let mut levels = std::iter::once(&self.campaign.factors)
            .chain(matrices)
            .filter_map(|matrix| matrix.server.as_ref())
            .flat_map(|levels| levels.get_ref());
        let at = levels.find(|level| level.get_ref() == name).map(|level| level.span());
        Usage(render(&self.path, &self.text, &SpecError { message, at, help: Some(help) }))
    }
}

fn render(path: &Path, text: &str, error: &SpecError) -> String {
    let renderer = match std::io::stderr().is_terminal() {
        true => Renderer::styled(),
        false => Renderer::plain(),
    };
    let path = path.display().to_string();
    let at = error.at.clone().unwrap_or(0..0);
    let place = AnnotationKind::Primary.span(at).label(error.help.as_deref().unwrap_or_default());
    let snippet = Snippet::source(text).path(&path).annotation(place);
    let group = Group::with_title(Level::ERROR.primary_title(&error.message)).element(snippet);
    renderer.render(&[group]).to_string()
}
