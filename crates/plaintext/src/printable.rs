//! Text for a terminal.

use std::borrow::Cow;

/// The text with U+FFFD for control characters other than line ends, tabs and colours (`ESC [ … m`): text from servers,
/// bundles and imported files must not move the cursor, change the terminal's title or fake its output.
pub fn printable(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len());
    shown.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(c) = rest.chars().next() {
        let (taken, replacement) = match c {
            '\x1b' if colour(rest) > 0 => (colour(rest), None),
            '\r' if rest[1..].starts_with('\n') => (1, Some("")),
            '\n' | '\t' => (1, None),
            c if c.is_control() => (c.len_utf8(), Some("\u{FFFD}")),
            c => (c.len_utf8(), None),
        };
        shown.push_str(replacement.unwrap_or(&rest[..taken]));
        rest = &rest[taken..];
    }
    Cow::Owned(shown)
}

/// Length of the colour sequence at the start of the text, in bytes; 0 if there is none. Source: ECMA-48, SGR.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    match parameters.find(|c: char| !c.is_ascii_digit() && c != ';') {
        Some(end) if parameters[end..].starts_with('m') => "\x1b[".len() + end + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_line_ends_and_tabs_are_kept_of_control_characters() {
        for same in ["", "plain\n\ttext", "Größe Δ", "\x1b[1;31mred\x1b[0m\n", "\x1b[m"] {
            assert_eq!(printable(same), same);
        }
        for (text, shown) in [
            ("\x1b]0;title\x07", "\u{FFFD}]0;title\u{FFFD}"),
            ("a\x1b[2Jb", "a\u{FFFD}[2Jb"),
            ("\x1b[31", "\u{FFFD}[31"),
            ("a\x1b", "a\u{FFFD}"),
            ("one\r\ntwo\rthree", "one\ntwo\u{FFFD}three"),
            ("\u{9b}2J\x7f", "\u{FFFD}2J\u{FFFD}"),
            ("\x1b[1mü\x1b[6n", "\x1b[1mü\u{FFFD}[6n"),
        ] {
            assert_eq!(printable(text), shown, "{text:?}");
        }
    }
}
