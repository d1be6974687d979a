//! An error in a file the way a compiler shows it: file, line, caret, and what was expected.

use std::io::IsTerminal;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use model::spec::SpecError;

/// The error at its place in a file's text.
pub(crate) fn render(path: &Path, text: &str, error: &SpecError) -> String {
    let is_terminal = std::io::stderr().is_terminal();
    let renderer = if is_terminal { Renderer::styled() } else { Renderer::plain() };
    let path = path.display().to_string();
    let at = error.at.clone().unwrap_or(0..0);
    let place = AnnotationKind::Primary.span(at).label(error.help.as_deref().unwrap_or_default());
    let snippet = Snippet::source(text).path(&path).annotation(place);
    let group = Group::with_title(Level::ERROR.primary_title(&error.message)).element(snippet);
    renderer.render(&[group]).to_string()
}
