//! Questions on a terminal.

use std::fmt::Display;
use std::io;
use std::str::FromStr;

use anyhow::Context;

use crate::output::note;

/// Asks until the answer can be parsed; without an answer, or if nothing is asked, it is the suggestion.
///
/// # Errors
/// Standard input can't be read, or the suggestion can't be parsed.
pub(super) fn ask<T, E: Display>(
    asks: bool,
    question: &str,
    suggestion: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> anyhow::Result<T> {
    let parsed = |text: &str| parse(text).map_err(|error| anyhow::anyhow!("{error}"));
    if !asks {
        return parsed(suggestion);
    }
    loop {
        note(&format!("{question} [{suggestion}]: "));
        let mut answer = String::new();
        let length = io::stdin().read_line(&mut answer).context("could not read the answer")?;
        if length == 0 {
            note("\n");
        }
        let answer = answer.trim();
        match parsed(if answer.is_empty() { suggestion } else { answer }) {
            Ok(value) => return Ok(value),
            Err(error) if answer.is_empty() => return Err(error),
            Err(error) => note(&format!("{error}\n")),
        }
    }
}

/// A list separated by commas or spaces.
pub(super) fn list<T: FromStr<Err: Display>>(text: &str) -> Result<Vec<T>, String> {
    let elements = text.split([',', ' ']).filter(|element| !element.is_empty());
    elements.map(|element| element.parse().map_err(|error| format!("{element}: {error}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_separated_by_commas_or_spaces() {
        assert_eq!(list::<u32>("1, 4,8 16"), Ok(vec![1, 4, 8, 16]));
        assert!(list::<u32>("1,x").unwrap_err().starts_with("x: "));
    }

    #[test]
    fn what_is_not_asked_is_the_suggestion() {
        assert_eq!(ask(false, "", "1,4", list::<u32>).unwrap(), [1, 4]);
        assert!(ask(false, "", "x", list::<u32>).is_err());
    }
}
