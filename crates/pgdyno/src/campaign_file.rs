//! Reads a campaign file and shows what is wrong with it the way a compiler does: file, line, caret, what was expected.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use model::plan::Plan;
use model::spec::{Campaign, SpecError};

use crate::exit::Usage;

/// A campaign file that has been read, with its plan.
pub(crate) struct CampaignFile {
    path: PathBuf,
    /// The text to the letter.
    pub(crate) text: String,
    campaign: Campaign,
    /// What it comes to.
    pub(crate) plan: Plan,
}

impl CampaignFile {
    /// Reads and plans a campaign.
    ///
    /// # Errors
    /// [`Usage`]: the file can't be read, or is not a campaign.
    pub(crate) fn read(path: &Path) -> Result<Self, Usage> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Usage(format!("error: the campaign {} can't be read: {error}", path.display()))
        })?;
        let planned = Campaign::parse(&text).and_then(|campaign| {
            let plan = Plan::of(&campaign, drawn_seed())?;
            Ok((campaign, plan))
        });
        match planned {
            Ok((campaign, plan)) => Ok(Self { path: path.to_owned(), text, campaign, plan }),
            Err(error) => Err(Usage(render(path, &text, &error))),
        }
    }

    /// A complaint about a server version, shown at its place in the file.
    pub(crate) fn refuse_server(&self, version: &str, message: String, help: String) -> Usage {
        let servers = self.campaign.factors.server.get_ref();
        let at = servers.iter().find(|server| server.get_ref() == version).map(|server| server.span());
        Usage(render(&self.path, &self.text, &SpecError { message, at, help: Some(help) }))
    }
}

/// A seed that nobody chose: short enough to be copied by hand.
fn drawn_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id())) % 1_000_000_000
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
