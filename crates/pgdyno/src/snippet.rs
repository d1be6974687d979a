//! An error in a file as a compiler shows it: file, line, caret and help.

use std::io::IsTerminal;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use model::secret::{mask, secrets};
use model::spec::SpecError;

/// Renders an error at its position in a file's text, without the secrets of either.
pub(crate) fn render(path: &Path, text: &str, error: &SpecError) -> String {
    let is_terminal = std::io::stderr().is_terminal();
    let renderer = if is_terminal { Renderer::styled() } else { Renderer::plain() };
    let path = path.display().to_string();
    let at = error.at.clone().unwrap_or(0..0);
    let (message, help) = (mask(&error.message), error.help.as_deref().map(mask).unwrap_or_default());
    let place = AnnotationKind::Primary.span(at).label(&help);
    let text = masked(text);
    let snippet = Snippet::source(&text).path(&path).annotation(place);
    let group = Group::with_title(Level::ERROR.primary_title(&message)).element(snippet);
    renderer.render(&[group]).to_string()
}

/// The text with an asterisk for each byte of a secret, so that positions stay the same.
fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for secret in secrets(text) {
        masked.push_str(&text[from..secret.start]);
        masked.extend(std::iter::repeat_n('*', secret.len()));
        from = secret.end;
    }
    masked + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_in_place() {
        for (text, shown) in [
            ("dsn = \"host=a password=geh€im port=5\"", "dsn = \"host=a password=******** port=5\""),
            ("dsn = \"password = 'it is' user=b\"", "dsn = \"password = '*****' user=b\""),
            (
                "dsn = 'postgresql://me:se@cret@host/db?sslmode=require'",
                "dsn = 'postgresql://me:*******@host/db?sslmode=require'",
            ),
            (
                "dsn = 'postgresql://host/db?password=x&port=1'",
                "dsn = 'postgresql://host/db?password=*&port=1'",
            ),
            ("run = 'set -e; PGPASSWORD=x psql'\n", "run = 'set -e; PGPASSWORD=* psql'\n"),
            (
                "passfile = 'a' # password_encryption = 'md5', http://a/b",
                "passfile = 'a' # password_encryption = 'md5', http://a/b",
            ),
        ] {
            assert_eq!(masked(text), shown);
            assert_eq!(masked(text).len(), text.len());
        }
    }
}
