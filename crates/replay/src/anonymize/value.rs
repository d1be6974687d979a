//! The replacement of a value: of the same length, and of the same type as far as its text shows it.
//!
//! A value is replaced word by word: numbers by numbers with as many digits and within the same integer types, dates and
//! times by valid ones, words by letters of the same case, UUIDs and other hexadecimal words by such. What is between words
//! stays, and with it the structure of arrays, JSON, addresses and patterns. Single digits, and words that are SQL's own,
//! such as `true` and units of time, stay, too: they tell little, and statements fail without them.

use jiff::civil::{Date, date};

use super::permutation::{Key, MAX_BOUND};

/// Words that stay.
const SQL_WORDS: [&str; 34] = [
    "true",
    "false",
    "on",
    "off",
    "yes",
    "no",
    "null",
    "t",
    "f",
    "y",
    "n",
    "infinity",
    "nan",
    "now",
    "today",
    "epoch",
    "microseconds",
    "milliseconds",
    "second",
    "seconds",
    "sec",
    "secs",
    "minute",
    "minutes",
    "min",
    "mins",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
];
const MORE_SQL_WORDS: [&str; 8] = ["mon", "mons", "year", "years", "utc", "hex", "base64", "escape"];

/// Largest values of integer types: a number stays within the smallest that it fits into.
const INTEGER_LIMITS: [u128; 3] = [i16::MAX as u128, i32::MAX as u128, i64::MAX as u128];

/// Fewest characters of a word that may be hexadecimal.
const HEX_WORD: usize = 6;

/// The replacement of a value.
pub(super) fn replaced(key: &Key, value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while !rest.is_empty() {
        let is_after_word = out.chars().next_back().is_some_and(char::is_alphanumeric);
        if !is_after_word && let Some((text, length)) = date_at(key, rest).or_else(|| time_at(key, rest)) {
            out.push_str(&text);
            rest = &rest[length..];
            continue;
        }
        if let Some(hex) = rest.strip_prefix("\\x").filter(|_| out.is_empty()) {
            out.push_str("\\x");
            out.push_str(&word(key, hex, Letters::Hexadecimal));
            break;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (text, after) = match end {
            0 => {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..first]);
                rest = &rest[first..];
                continue;
            }
            end => rest.split_at(end),
        };
        out.push_str(&replaced_word(key, text));
        rest = after;
    }
    out
}

/// The replacement of a text with backslashes: its digits, and letters after a backslash, stay.
pub(super) fn replaced_letters(key: &Key, value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut parts = value.split('\\');
    out.push_str(&parts.next().map_or(String::new(), |part| replaced(key, part)));
    for part in parts {
        out.push('\\');
        // An escape has up to eight hexadecimal digits.
        let escape: usize = part.chars().take(1).map(char::len_utf8).sum();
        let digits = part[escape..].bytes().take(8).take_while(u8::is_ascii_hexdigit).count();
        out.push_str(&part[..escape + digits]);
        out.push_str(&replaced(key, &part[escape + digits..]));
    }
    out
}

/// The replacement of the digits of a bit string.
pub(super) fn replaced_bits(key: &Key, value: &str) -> String {
    let letters = if value.bytes().all(|byte| matches!(byte, b'0' | b'1')) {
        Letters::Binary
    } else {
        Letters::Hexadecimal
    };
    word(key, value, letters)
}

fn replaced_word(key: &Key, text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(key, text);
    }
    let lower = text.to_ascii_lowercase();
    if SQL_WORDS.contains(&lower.as_str()) || MORE_SQL_WORDS.contains(&lower.as_str()) {
        return text.to_owned();
    }
    let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
    let is_hex = text.len() >= HEX_WORD
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && has(u8::is_ascii_digit)
        && !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
    word(key, text, if is_hex { Letters::Hexadecimal } else { Letters::All })
}

/// The replacement of a number: one with as many digits.
fn number(key: &Key, text: &str) -> String {
    let zeros = text.len() - text.trim_start_matches('0').len();
    let digits = &text[zeros..];
    // Longer ones are no numbers of SQL's types.
    if digits.len() < 2 || digits.len() > 37 {
        return if digits.len() < 2 { text.to_owned() } else { word(key, text, Letters::All) };
    }
    let Ok(number) = digits.parse::<u128>() else { return text.to_owned() };
    let least = 10_u128.pow(digits.len() as u32 - 1);
    let most = least * 10 - 1;
    let limits = || INTEGER_LIMITS.iter().copied().filter(|limit| (least..most).contains(limit));
    let most = limits().find(|limit| number <= *limit).unwrap_or(most);
    let least = limits().filter(|limit| number > *limit).max().map_or(least, |limit| limit + 1);
    let permuted = least + key.permuted(b"number", most - least + 1, number - least);
    format!("{}{permuted}", &text[..zeros])
}

/// The letters that a word may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    All,
    Hexadecimal,
    Binary,
}

impl Letters {
    /// The characters that may take the place of one; empty if it stays.
    fn class(self, c: char) -> &'static str {
        match (self, c) {
            (Self::Binary, '0' | '1') => "01",
            (Self::Hexadecimal, '0'..='9' | 'a'..='f') => "0123456789abcdef",
            (Self::Hexadecimal, 'A'..='F') => "0123456789ABCDEF",
            (_, '0'..='9') => "0123456789",
            (_, 'a'..='z') => "abcdefghijklmnopqrstuvwxyz",
            (_, 'A'..='Z') => "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            _ => "",
        }
    }
}

/// The replacement of a word: one with characters of the same classes. Two words become the same only if they are so long
/// that this does not happen, or have letters beyond ASCII.
fn word(key: &Key, text: &str, letters: Letters) -> String {
    let classes: Vec<&str> = text.chars().map(|c| letters.class(c)).collect();
    let is_ascii = text.is_ascii();
    let bound = classes.iter().filter(|class| !class.is_empty()).try_fold(1_u128, |bound, class| {
        bound.checked_mul(class.len() as u128).filter(|bound| *bound <= MAX_BOUND)
    });
    match bound {
        Some(bound) if is_ascii => {
            // The classes are a part of the domain: each kind of word has a permutation.
            let domain: Vec<u8> =
                classes.iter().map(|class| class.bytes().next_back().unwrap_or(b'-')).collect();
            let place = |class: &str, c: char| class.find(c).unwrap_or_default() as u128;
            let number =
                classes.iter().zip(text.chars()).fold(0, |number, (class, c)| match class.is_empty() {
                    true => number,
                    false => number * class.len() as u128 + place(class, c),
                });
            let mut permuted = key.permuted(&domain, bound, number);
            let mut chars: Vec<char> = text.chars().collect();
            for (c, class) in chars.iter_mut().zip(&classes).rev().filter(|(_, class)| !class.is_empty()) {
                let size = class.len() as u128;
                *c = class.as_bytes().get((permuted % size) as usize).map_or(*c, |byte| char::from(*byte));
                permuted /= size;
            }
            chars.into_iter().collect()
        }
        _ => hashed_word(key, text, &classes),
    }
}

/// The replacement of a word that is too long for a permutation, or not ASCII.
fn hashed_word(key: &Key, text: &str, classes: &[&str]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut bits = [0; 32];
    for (at, (c, class)) in text.chars().zip(classes).enumerate() {
        if at % bits.len() == 0 {
            bits = key.bits(&[b"word", text.as_bytes(), &(at as u64).to_le_bytes()]);
        }
        let byte = bits[at % bits.len()];
        let size = class.len().max(1);
        out.push(match (class.as_bytes().get(usize::from(byte) % size), c.len_utf8()) {
            (Some(other), _) => char::from(*other),
            // Letters of as many bytes: Latin, Hangul, and of the supplementary planes.
            (None, 2) => char::from_u32(0xe0 + u32::from(byte % 23)).unwrap_or(c),
            (None, 3) => char::from_u32(0xac00 + u32::from(byte)).unwrap_or(c),
            (None, 4) => char::from_u32(0x2_0000 + u32::from(byte)).unwrap_or(c),
            (None, _) => c,
        });
    }
    out
}

/// A date at the start of a text, `2026-01-02`: another, and its length.
fn date_at(key: &Key, text: &str) -> Option<(String, usize)> {
    const LENGTH: usize = 10;
    let head = text.get(..LENGTH)?;
    if text[LENGTH..].starts_with(|c: char| c.is_ascii_digit())
        || head.as_bytes()[4] != b'-'
        || head.as_bytes()[7] != b'-'
    {
        return None;
    }
    let part = |from: usize, to: usize| head.get(from..to)?.parse::<i16>().ok();
    let day =
        Date::new(part(0, 4)?, i8::try_from(part(5, 7)?).ok()?, i8::try_from(part(8, 10)?).ok()?).ok()?;
    // Within the same century, which keeps four digits and the range of all types.
    let century = day.year() / 100 * 100;
    let first = date(century.max(1), 1, 1);
    let days_between = |from: Date, to: Date| from.until(to).map_or(0, |span| span.get_days());
    let days = days_between(first, date(century + 99, 12, 31)) + 1;
    let number = key.permuted(b"date", days as u128, days_between(first, day) as u128);
    let other = first.checked_add(jiff::Span::new().try_days(number as i64).ok()?).ok()?;
    Some((other.to_string(), LENGTH))
}

/// A time at the start of a text, `03:04:05` with or without a fraction: another, and its length.
fn time_at(key: &Key, text: &str) -> Option<(String, usize)> {
    const LENGTH: usize = 8;
    let head = text.get(..LENGTH)?.as_bytes();
    let part = |from: usize| -> Option<u32> {
        let digits = [head[from], head[from + 1]];
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| u32::from(digits[0] - b'0') * 10 + u32::from(digits[1] - b'0'))
    };
    let (hour, minute, second) = (part(0)?, part(3)?, part(6)?);
    if head[2] != b':' || head[5] != b':' || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let number = u128::from((hour * 60 + minute) * 60 + second);
    let other = key.permuted(b"time", 86_400, number);
    Some((format!("{:02}:{:02}:{:02}", other / 3600, other / 60 % 60, other % 60), LENGTH))
}
