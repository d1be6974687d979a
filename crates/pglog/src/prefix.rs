//! `log_line_prefix`: what the server writes before each line of a stderr log.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::entry::SessionKey;
use crate::error::PrefixError;
use crate::severity::Label;
use crate::time::{self, Stamp};

/// Prefixes that are tried if none is named: PostgreSQL's default, Debian's, those of cloud providers and of other tools.
pub const KNOWN_PREFIXES: [&str; 13] = [
    "%m [%p] ",
    "%m [%p] %q%u@%d ",
    // Amazon's RDS and Aurora.
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%m:%r:%u@%d:[%p]:",
    // Google's Cloud SQL.
    "%m [%p]: [%l-1] db=%d,user=%u ",
    // Those that pgBadger's manual names.
    "%m [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%m [%p] user=%u,db=%d,app=%a,client=%h ",
    // pgdyno's own servers.
    "%m [%p] %e <%b> <%a> ",
    // Without milliseconds: recognised to say so.
    "%t:%r:%u@%d:[%p]:",
    "%t-%c-",
    "%t [%p] ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
];

/// Longest text of a field, in bytes.
const MAX_FIELD: usize = 256;
/// Ends of free texts that are tried for one line.
const MAX_TRIES: u32 = 200;

/// A parsed `log_line_prefix`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefix {
    text: String,
    pieces: Vec<Piece>,
    lacks: Option<PrefixError>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Literal(String),
    /// An escape, and the width that it is padded to, in bytes.
    Field(char, usize),
    /// `%q`: lines of processes without a session end here.
    SessionOnly,
}

/// What the prefix of a line says, and its label. Ranges are bytes of the line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Head {
    pub(crate) at_us: i64,
    pub(crate) has_unknown_zone: bool,
    pub(crate) session: SessionKey,
    pub(crate) user: Range<usize>,
    pub(crate) database: Range<usize>,
    pub(crate) application: Range<usize>,
    pub(crate) backend: Range<usize>,
    pub(crate) sqlstate: Range<usize>,
    /// The word after the prefix, and where the text after it begins.
    pub(crate) label: Option<Label>,
    pub(crate) text_at: usize,
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                push_literal(&mut pieces, c);
                continue;
            }
            chars.next_if_eq(&'-');
            let mut width: usize = 0;
            while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                chars.next();
                width = (width * 10 + digit as usize).min(MAX_FIELD);
            }
            match chars.next() {
                None => return Err(PrefixError::LoneEscape),
                Some('%') => push_literal(&mut pieces, '%'),
                Some('q') => pieces.push(Piece::SessionOnly),
                Some(escape) if "mtnspPclaudrhbievxQL".contains(escape) => {
                    if let Some(Piece::Field(before, _)) = pieces.last()
                        && is_free_text(*before)
                    {
                        return Err(PrefixError::NotSeparated(*before, escape));
                    }
                    pieces.push(Piece::Field(escape, width));
                }
                Some(unknown) => return Err(PrefixError::UnknownEscape(unknown)),
            }
        }
        let has = |escapes: &str| {
            pieces.iter().any(|piece| matches!(piece, Piece::Field(escape, _) if escapes.contains(*escape)))
        };
        let lacks = if has("mn") {
            (!has("pc")).then_some(PrefixError::NoSession)
        } else if has("t") {
            Some(PrefixError::NoMilliseconds)
        } else {
            Some(PrefixError::NoTime)
        };
        Ok(Self { text: text.to_owned(), pieces, lacks })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Prefix {
    /// The known prefixes.
    pub(crate) fn known() -> Vec<Self> {
        KNOWN_PREFIXES.iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// Checks that it has what sessions and their times need.
    ///
    /// # Errors
    /// What it lacks.
    pub fn check(&self) -> Result<(), PrefixError> {
        self.lacks.clone().map_or(Ok(()), Err)
    }

    /// Parses the start of a line whose prefix is not known. A name with blanks is more likely a part of another prefix.
    pub(crate) fn recognise(&self, line: &str) -> Option<Head> {
        let has_blank = |range: &Range<usize>| line[range.clone()].contains(' ');
        self.head(line).filter(|head| !has_blank(&head.user) && !has_blank(&head.database))
    }

    /// Parses the start of a line. None if the line has another prefix.
    pub(crate) fn head(&self, line: &str) -> Option<Head> {
        let mut head = Head::default();
        let mut tries = MAX_TRIES;
        step(&self.pieces, line, 0, &mut head, &mut tries).then_some(head)
    }
}

fn push_literal(pieces: &mut Vec<Piece>, c: char) {
    match pieces.last_mut() {
        Some(Piece::Literal(text)) => text.push(c),
        _ => pieces.push(Piece::Literal(c.to_string())),
    }
}

/// Fields that may contain anything.
fn is_free_text(escape: char) -> bool {
    "audrhbiL".contains(escape)
}

/// Matches the pieces and a label from a place of the line on.
fn step(pieces: &[Piece], line: &str, at: usize, head: &mut Head, tries: &mut u32) -> bool {
    let Some(rest) = line.get(at..) else { return false };
    let Some((piece, others)) = pieces.split_first() else { return end(rest, at, head) };
    match piece {
        Piece::Literal(text) => {
            rest.starts_with(text.as_str()) && step(others, line, at + text.len(), head, tries)
        }
        Piece::SessionOnly => step(others, line, at, head, tries) || end(rest, at, head),
        Piece::Field(escape, width) if is_free_text(*escape) => {
            for length in lengths(others, rest, *width) {
                let Some(left) = tries.checked_sub(1) else { return false };
                *tries = left;
                let mut range = at..at + length;
                if *width > 0 {
                    let text = &rest[..length];
                    range = at + length - text.trim_start().len()..at + text.trim_end().len();
                }
                match escape {
                    'u' => head.user = range,
                    'd' => head.database = range,
                    'a' => head.application = range,
                    'b' => head.backend = range,
                    _ => {}
                }
                if step(others, line, at + length, head, tries) {
                    return true;
                }
            }
            false
        }
        Piece::Field(escape, width) => {
            let blanks = |text: &str| text.len() - text.trim_start_matches(' ').len();
            let before = if *width > 0 { blanks(rest) } else { 0 };
            let Some(length) = fixed(*escape, &rest[before..], at + before, head) else { return false };
            let length = before + length;
            let after = width.saturating_sub(length).min(blanks(&rest[length..]));
            step(others, line, at + length + after, head, tries)
        }
    }
}

/// The end of the prefix: a label must follow.
fn end(rest: &str, at: usize, head: &mut Head) -> bool {
    let Some((label, length)) = Label::parse(rest) else { return false };
    head.label = Some(label);
    head.text_at = at + length;
    true
}

/// The lengths that a free text may have, given its width and the pieces that follow it.
fn lengths<'a>(others: &'a [Piece], rest: &'a str, width: usize) -> impl Iterator<Item = usize> + 'a {
    let literal = match others.first() {
        Some(Piece::Literal(text)) => Some(text.as_str()),
        _ => None,
    };
    let fits = move |length: &usize| {
        rest.is_char_boundary(*length)
            && match literal {
                Some(literal) => rest[*length..].starts_with(literal),
                None => Label::parse(&rest[*length..]).is_some(),
            }
    };
    (width..=rest.len().min(MAX_FIELD)).filter(fits)
}

/// Length of a field of fixed form; its value goes to the head.
fn fixed(escape: char, text: &str, at: usize, head: &mut Head) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    match escape {
        'm' | 't' => {
            let stamp = Stamp::parse(text).filter(|stamp| stamp.has_millis == (escape == 'm'))?;
            head.at_us = stamp.at_us;
            head.has_unknown_zone = stamp.unknown_zone.is_some();
            Some(stamp.length)
        }
        'n' => {
            let (at_us, length) = time::parse_epoch(text)?;
            head.at_us = at_us;
            Some(length)
        }
        's' => {
            let stamp = Stamp::parse(text)?;
            head.session.started_s = Some(stamp.at_us.div_euclid(1_000_000));
            Some(stamp.length)
        }
        'p' => {
            let length = digits(text);
            head.session.process_id = text[..length].parse().ok()?;
            Some(length)
        }
        'c' => {
            let length = text.bytes().take_while(|byte| byte.is_ascii_hexdigit() || *byte == b'.').count();
            head.session = SessionKey::parse(&text[..length])?;
            Some(length)
        }
        'e' => {
            let is_state = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
            let state = text.as_bytes().get(..5)?;
            state.iter().all(|byte| is_state(*byte)).then(|| {
                head.sqlstate = at..at + 5;
                5
            })
        }
        'v' => Some(text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'/').count()),
        // 64 bits, signed; empty if there is none: %P, %Q, %l, %x.
        _ => {
            Some(usize::from(text.starts_with('-') && escape == 'Q')).map(|sign| sign + digits(&text[sign..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::severity::Severity;

    const TIME: &str = "2026-01-02 03:04:05.678 UTC";
    const AT_US: i64 = 1_767_323_045_678_000;

    fn head(prefix: &str, line: &str) -> Option<Head> {
        prefix.parse::<Prefix>().unwrap().head(line)
    }

    #[test]
    fn fields_are_found_by_what_separates_them() {
        let line = format!("{TIME} [42] alice@app LOG:  duration: 1 ms");
        let found = head("%m [%p] %q%u@%d ", &line).unwrap();
        assert_eq!((found.at_us, found.session.process_id), (AT_US, 42));
        assert_eq!((&line[found.user], &line[found.database]), ("alice", "app"));
        assert_eq!(found.label, Some(Label::Entry(Severity::Log)));
        assert_eq!(&line[found.text_at..], "duration: 1 ms");
    }

    #[test]
    fn lines_without_a_session_end_at_q() {
        let line = format!("{TIME} [42] LOG:  checkpoint starting");
        let found = head("%m [%p] %q%u@%d ", &line).unwrap();
        assert_eq!((found.user, &line[found.text_at..]), (0..0, "checkpoint starting"));
    }

    #[test]
    fn every_escape_is_read() {
        let line = format!(
            "x% psql|me|db|10.0.0.1(5432)|10.0.0.1|client backend|42||{TIME}|2026-01-02 03:04:05 UTC|1767323045.678|SELECT|\
             22012|65926f54.2a|7|2026-01-02 03:04:00 UTC|3/14|0|-99|[local]ERROR:  division by zero"
        );
        let prefix = "x%% %a|%u|%d|%r|%h|%b|%p|%P|%m|%t|%n|%i|%e|%c|%l|%s|%v|%x|%Q|%L";
        let found = head(prefix, &line).unwrap();
        assert_eq!(found.at_us, AT_US);
        assert_eq!(found.session, SessionKey { started_s: Some(1_767_323_040), process_id: 42 });
        let texts = [&found.application, &found.user, &found.database, &found.sqlstate]
            .map(|range| &line[range.clone()]);
        assert_eq!(texts, ["psql", "me", "db", "22012"]);
        assert_eq!(&line[found.text_at..], "division by zero");
    }

    #[test]
    fn names_may_contain_what_follows_them() {
        let line = format!("{TIME} [42] 00000 <client backend> <a> LOG: <b>> WARNING:  beware");
        let found = head("%m [%p] %e <%b> <%a> ", &line).unwrap();
        assert_eq!((&line[found.application], &line[found.text_at..]), ("a> LOG: <b>", "beware"));
    }

    #[test]
    fn padded_fields_are_trimmed() {
        let line = format!("{TIME}    42 me         db LOG:  x");
        let found = head("%m %5p %-10u %d ", &line).unwrap();
        assert_eq!((found.session.process_id, &line[found.user], &line[found.database]), (42, "me", "db"));
    }

    #[test]
    fn what_a_prefix_lacks_is_named() {
        let check = |prefix: &str| prefix.parse::<Prefix>().and_then(|prefix| prefix.check());
        assert_eq!(check("%m [%p] "), Ok(()));
        assert_eq!(check("%n %c "), Ok(()));
        assert_eq!(check("%t [%p] "), Err(PrefixError::NoMilliseconds));
        assert_eq!(check("[%p] "), Err(PrefixError::NoTime));
        assert_eq!(check("%m "), Err(PrefixError::NoSession));
        assert_eq!(check("%m %p %u%d "), Err(PrefixError::NotSeparated('u', 'd')));
        assert_eq!(check("%m %p %z"), Err(PrefixError::UnknownEscape('z')));
        assert_eq!(check("%m %p %"), Err(PrefixError::LoneEscape));
    }

    #[test]
    fn known_prefixes_are_valid_and_told_apart() {
        let known = Prefix::known();
        assert_eq!(known.len(), KNOWN_PREFIXES.len());
        let line = |prefix: &str| {
            let values = [
                ("%m", TIME),
                ("%t", "2026-01-02 03:04:05 UTC"),
                ("%p", "42"),
                ("%u", "me"),
                ("%d", "app"),
                ("%r", "10.0.0.1(5000)"),
                ("%h", "10.0.0.1"),
                ("%l", "7"),
                ("%e", "00000"),
                ("%s", "2026-01-02 03:04:00 UTC"),
                ("%v", "3/14"),
                ("%x", "0"),
                ("%c", "65926f54.2a"),
                ("%a", "psql"),
                ("%b", "client backend"),
                ("%q", ""),
            ];
            values.iter().fold(prefix.to_owned(), |line, (escape, value)| line.replace(escape, value))
                + "LOG:  duration: 1 ms"
        };
        for prefix in &known {
            let line = line(&prefix.to_string());
            // Debian's is also that of lines without a session, which the default's lines are like.
            let first = known.iter().find(|known| known.head(&line).is_some());
            assert_eq!(first, Some(prefix), "{line}");
        }
    }

    #[test]
    fn the_time_for_a_line_is_bounded() {
        let line = format!("{TIME} {}", "a a ".repeat(100_000));
        assert_eq!(head("%m %p %u %d %a %h %b LOG ", &line), None);
        assert_eq!(head("%m %u %d %a %h %b %i %p ", &line), None);
    }
}
