//! The result of `pgdyno bisect`: as plain text for a mailing list or a pull request, and as data.

mod document;
pub mod tested;

use analysis::bisection::{Bisection, BisectionLevel, probability};
use plaintext::figures::{change, counted, duration};
use plaintext::table::{GAP, Table};
use plaintext::wrap;

use crate::ab::{WIDTH, fact};
use crate::answers::command;
pub use document::Document;

/// Columns of the chart of probabilities.
const CHART: usize = 60;

/// The result as text: after these lines, each with its label, and before the command that repeats it.
pub fn text(bisection: &Bisection, facts: &[(&str, String)], repeat: &str) -> String {
    let mut out: String = facts.iter().map(|(label, text)| fact(label, text)).collect();
    out.push('\n');
    out += &wrap(&bisection.sentence, WIDTH);
    let found = bisection.changes.iter().flat_map(|found| found.first..=found.last);
    for level in found.filter_map(|at| bisection.levels.get(at)) {
        out.extend(level.author.iter().chain(&level.files).map(|line| format!("  {line}\n")));
    }
    let probabilities: Vec<f64> = bisection.levels.iter().filter_map(|level| level.probability).collect();
    if !probabilities.is_empty() {
        out += &format!("\n{}\n", chart(&probabilities));
        out += &ends_of_chart(&bisection.levels);
        out += &candidates(bisection).fitted(WIDTH);
    }
    out += &format!("\n{}", wrap(&measured(bisection), WIDTH));
    out.extend(bisection.levels.iter().filter_map(unavailable));
    out += &format!("\nTo repeat it:\n{}", command(repeat, WIDTH));
    out
}

/// The probabilities of all positions as bars, each of as many positions as fit a column.
pub fn chart(probabilities: &[f64]) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = probabilities.len().clamp(1, CHART);
    let mut sums = vec![0.0; columns];
    for (at, share) in probabilities.iter().enumerate() {
        sums[at * columns / probabilities.len()] += share;
    }
    let bar = |share: &f64| match share {
        share if *share < 0.005 => BARS[0],
        share => BARS[((share.sqrt() * 8.0).ceil() as usize).clamp(1, 8)],
    };
    format!("[{}]", sums.iter().map(bar).collect::<String>())
}

fn ends_of_chart(levels: &[BisectionLevel]) -> String {
    let columns = levels.len().saturating_sub(1).clamp(1, CHART) + 2;
    let name = |level: Option<&BisectionLevel>| level.map(|level| level.short.clone()).unwrap_or_default();
    let (first, last) = (name(levels.get(1)), name(levels.last()));
    match columns.checked_sub(first.chars().count() + last.chars().count()) {
        Some(gap) if gap > 0 => format!("{first}{}{last}\n\n", " ".repeat(gap)),
        _ => format!("{first} … {last}\n\n"),
    }
}

/// The most probable levels and those measured around them: their changes against the first level.
fn candidates(bisection: &Bisection) -> Table {
    let mut table = Table::new(["#probability", "level", "#sessions", "#change", "#95% interval", "title"]);
    for level in bisection.candidates.iter().filter_map(|at| bisection.levels.get(*at)) {
        let interval = level.ci95_low.zip(level.ci95_high);
        table.push(vec![
            level.probability.map(probability).unwrap_or_default(),
            level.short.clone(),
            if level.unavailable.is_some() { GAP.to_owned() } else { level.sessions.len().to_string() },
            level.change.map_or(GAP.to_owned(), change),
            interval.map_or(GAP.to_owned(), |(low, high)| format!("{} to {}", change(low), change(high))),
            level.title.clone().unwrap_or_default(),
        ]);
    }
    if table.rows.iter().all(|row| row.last().is_none_or(String::is_empty)) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    table
}

fn measured(bisection: &Bisection) -> String {
    let baseline = bisection.levels.first().map_or("", |level| &level.short);
    let sessions = counted(bisection.sessions, "session");
    let sessions = match bisection.is_in_slices {
        true => format!("{sessions} of pairs with {baseline}"),
        false => format!("{sessions}, each of a trial of {baseline} and one of the level"),
    };
    format!(
        "Measured: {} of {} levels in {sessions}, {}.",
        bisection.measured,
        bisection.levels.len(),
        duration(bisection.seconds)
    )
}

/// Why a level can't be measured, if it can't: the first line of the reason.
fn unavailable(level: &BisectionLevel) -> Option<String> {
    let reason = level.unavailable.as_ref()?.lines().next()?;
    // The log of a build is that of a later one by now; the bundle has its end.
    let reason = reason.split_once(". The log is ").map_or(reason, |(reason, _)| reason);
    Some(wrap(&format!("Not measured: {}: {reason}", level.short), WIDTH))
}
