//! Checks of a machine as text and JSON.

use std::fmt::Write as _;

use diagnose::{Check, State};
use model::fitness::Facts;
use plaintext::table::Table;
use serde::Serialize;

/// Select Graphic Rendition of ECMA-48.
const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "1;31";

/// Style of the page.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Columns that text is wrapped to.
    pub width: usize,
    /// Whether to use escape sequences for colours.
    pub colours: bool,
}

impl Style {
    fn paint(self, text: &str, rendition: &str) -> String {
        if self.colours { format!("\x1b[{rendition}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Groups of checks, each with its evidence and advice, and a summary.
pub fn page(facts: &Facts, checks: &[Check], style: Style) -> String {
    let name_width = checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    let mut page = format!("{}\n", style.paint(&machine(facts), BOLD));
    let mut group = "";
    for check in checks {
        if check.group != group {
            group = check.group;
            let _ = write!(page, "\n{}\n", style.paint(&heading(group), BOLD));
        }
        let state = style.paint(&format!("{:7}", check.state.name()), colour(check.state));
        let indent = 2 + 7 + 2 + name_width + 2;
        let mut evidence = wrapped(&check.evidence, style.width - indent).into_iter();
        let first = evidence.next().unwrap_or_default();
        let _ = writeln!(page, "  {state}  {:name_width$}  {first}", check.name);
        for line in evidence {
            let _ = writeln!(page, "{:indent$}{line}", "");
        }
        let advice = check.advice.iter().flat_map(|advice| wrapped(advice, style.width - indent - 2));
        for (at, line) in advice.enumerate() {
            let arrow = if at == 0 { "→ " } else { "  " };
            let _ = writeln!(page, "{:indent$}{}", "", style.paint(&format!("{arrow}{line}"), DIM));
        }
    }
    let _ = write!(page, "\n{}\n", summary(checks, style));
    page
}

fn machine(facts: &Facts) -> String {
    let environment = &facts.environment;
    let parts = [&environment.hostname, &environment.os, &environment.kernel, &environment.architecture];
    parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" · ")
}

fn heading(group: &str) -> String {
    let mut letters = group.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

const fn colour(state: State) -> &'static str {
    match state {
        State::Ok => GREEN,
        State::Unknown => DIM,
        State::Warn => YELLOW,
        State::Bad => RED,
    }
}

/// `2 bad, 3 warn, 10 ok: …`, the worst first.
fn summary(checks: &[Check], style: Style) -> String {
    let counts: Vec<String> = [State::Bad, State::Warn, State::Unknown, State::Ok]
        .into_iter()
        .filter_map(|state| {
            let count = checks.iter().filter(|check| check.state == state).count();
            (count > 0).then(|| style.paint(&format!("{count} {}", state.name()), colour(state)))
        })
        .collect();
    let verdict = match checks.iter().map(|check| check.state).max() {
        Some(State::Bad) => "not fit for measurements: fix the bad ones first",
        Some(State::Warn) => "fit for comparisons, with the warnings in mind",
        _ => "fit for measurements",
    };
    format!("{}: {verdict}", counts.join(", "))
}

/// Lines of at most `width` characters, unless a word is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `doctor --format json`, schema 1.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoctorDocument<'a> {
    schema: u32,
    /// The worst state of all checks.
    state: &'static str,
    checks: Vec<CheckDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CheckDocument<'a> {
    group: &'static str,
    name: &'static str,
    state: &'static str,
    evidence: &'a str,
    advice: Option<&'a str>,
}

/// `doctor --format json`, with the worst state of the checks.
pub fn document(worst: State, checks: &[Check]) -> DoctorDocument<'_> {
    let checks = checks.iter().map(|check| CheckDocument {
        group: check.group,
        name: check.name,
        state: check.state.name(),
        evidence: &check.evidence,
        advice: check.advice.as_deref(),
    });
    DoctorDocument { schema: 1, state: worst.name(), checks: checks.collect() }
}

/// One row per check.
pub fn table(checks: &[Check]) -> Table {
    let mut table = Table::new(["group", "check", "state", "evidence", "advice"]);
    for Check { group, name, state, evidence, advice } in checks {
        table.push(vec![
            (*group).to_owned(),
            (*name).to_owned(),
            state.name().to_owned(),
            evidence.clone(),
            advice.clone().unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        let check = |group, name, state, evidence: &str, advice: Option<&str>| Check {
            group,
            name,
            state,
            evidence: evidence.to_owned(),
            advice: advice.map(str::to_owned),
        };
        vec![
            check("processor", "governor", State::Ok, "performance", None),
            check(
                "disk",
                "space",
                State::Bad,
                &"so many words ".repeat(4),
                Some("make room or look elsewhere"),
            ),
        ]
    }

    #[test]
    fn evidence_and_advice_are_aligned() {
        let page = page(&Facts::default(), &checks(), Style { width: 60, colours: false });
        let expected = "

Processor
  ok       governor  performance

Disk
  bad      space     so many words so many words so many
                     words so many words
                     → make room or look elsewhere

1 bad, 1 ok: not fit for measurements: fix the bad ones first
";
        let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(lines(&page), lines(expected));
    }

    #[test]
    fn colours_are_only_added() {
        let with = |colours| page(&Facts::default(), &checks(), Style { width: 80, colours });
        let coloured = with(true);
        assert!(coloured.contains("\x1b[1;31mbad    \x1b[0m"), "{coloured:?}");
        let mut plain = coloured;
        for rendition in [BOLD, DIM, GREEN, YELLOW, RED, "0"] {
            plain = plain.replace(&format!("\x1b[{rendition}m"), "");
        }
        assert_eq!(plain, with(false));
    }
}
