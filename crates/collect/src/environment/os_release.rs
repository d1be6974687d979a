//! The distribution. Source: os-release(5).

use crate::root::Root;

/// `PRETTY_NAME`, such as `Debian GNU/Linux 12 (bookworm)`.
pub(super) fn pretty_name(root: &Root) -> Option<String> {
    let text = root.text("etc/os-release").or_else(|| root.text("usr/lib/os-release"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let name = unquote(value);
    (!name.is_empty()).then_some(name)
}

/// Value of a shell assignment, as far as os-release(5) allows: in quotes, with backslash escapes.
fn unquote(value: &str) -> String {
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let Some(inner) = quoted('"').or_else(|| quoted('\'')) else { return value.to_owned() };
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    text
}
