//! An error in a file as a compiler shows it: file, line, caret and help.

use std::io::IsTerminal;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use model::spec::SpecError;

/// Renders an error at its position in a file's text.
pub(crate) fn render(path: &Path, text: &str, error: &SpecError) -> String {
    let is_terminal = std::io::stderr().is_terminal();
    let renderer = if is_terminal { Renderer::styled() } else { Renderer::plain() };
    let path = path.display().to_string();
    let at = error.at.clone().unwrap_or(0..0);
    let place = AnnotationKind::Primary.span(at).label(error.help.as_deref().unwrap_or_default());
    let text = masked(text);
    let snippet = Snippet::source(&text).path(&path).annotation(place);
    let group = Group::with_title(Level::ERROR.primary_title(&error.message)).element(snippet);
    renderer.render(&[group]).to_string()
}

/// The text with an asterisk for each byte of a password, so that positions stay the same. Masks values after
/// `password=` in any case, as in connection strings and PGPASSWORD, and passwords in URIs.
fn masked(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut secret = Vec::new();
    for (at, _) in lower.match_indices("password") {
        let rest = &text[at + "password".len()..];
        let Some(value) = rest.trim_start_matches([' ', '\t']).strip_prefix('=') else { continue };
        let value = value.trim_start_matches([' ', '\t']);
        let from = text.len() - value.len();
        let (from, end) = match value.strip_prefix('\'') {
            Some(quoted) => (from + 1, quoted.find(['\'', '\n'])),
            None => (from, value.find([' ', '\t', '\n', '\r', '&', '"', '\''])),
        };
        secret.push(from..end.map_or(text.len(), |length| from + length));
    }
    for (at, scheme) in lower.match_indices("://") {
        let from = at + scheme.len();
        let rest = &text[from..];
        let authority =
            &rest[..rest.find([' ', '\t', '\n', '\r', '/', '?', '"', '\'']).unwrap_or(rest.len())];
        if let Some((user, _)) = authority.rsplit_once('@')
            && let Some((name, _)) = user.split_once(':')
        {
            secret.push(from + name.len() + 1..from + user.len());
        }
    }
    let mut masked = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match secret.iter().any(|secret| secret.contains(&at)) {
            true => masked.extend(std::iter::repeat_n('*', c.len_utf8())),
            false => masked.push(c),
        }
    }
    masked
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
            ("run = 'PGPASSWORD=x psql'\n", "run = 'PGPASSWORD=* psql'\n"),
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
