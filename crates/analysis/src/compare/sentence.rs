//! Results of a comparison, in sentences.

use model::metrics::Better;
use plaintext::figures::{change, counted};

use super::advice::Advice;
use super::{Compared, GateOutcome, MetricRows, Pair};
use crate::judgement::{Outcome, Refusal, Row};
use crate::levels::{in_words, part, varied};

/// The largest share of undecided cells that is named after the equivalent ones.
pub(crate) const MAX_SMALL_SHARE: f64 = 0.1;

/// `3 of 12 cells regressed, 9 equivalent; worst: clients 16, -14.9% (-20.0% to -9.4%)`, for one pair and metric, and what would
/// decide the undecided cells.
pub fn sentence(of: &MetricRows, pair: usize, pairs: &[Pair]) -> String {
    let advice = of.advice.get(pair).into_iter().flatten().map(Advice::to_string);
    std::iter::once(result(of, pair, pairs)).chain(advice).collect::<Vec<_>>().join(". ")
}

/// As [`sentence`], without what would decide the others.
pub(crate) fn result(of: &MetricRows, pair: usize, pairs: &[Pair]) -> String {
    let better = of.metric.better();
    let rows: Vec<&Row> = of.rows.iter().filter(|row| row.pair == pair).collect();
    let is_refused = |refusal: &Refusal| {
        !rows.is_empty() && rows.iter().all(|row| row.judged.outcome == Outcome::Refused(*refusal))
    };
    if let Some(refusal) = Refusal::ALL.into_iter().find(is_refused) {
        return refusal.in_words().to_owned();
    }
    if let [only] = rows.as_slice() {
        let change = change_in_words(only).map(|change| format!(": {change}")).unwrap_or_default();
        // Its metric has one cell, but the pair has others.
        let cell = (pairs[pair].cells.len() > 1).then(|| format!(" at {}", cell_of(only, &pairs[pair])));
        return format!("{}{}{change}", only.judged.outcome.name(better), cell.unwrap_or_default());
    }
    let count = |is: &dyn Fn(Outcome) -> bool| rows.iter().filter(|row| is(row.judged.outcome)).count();
    let changed = match better {
        Better::Neither => [
            (count(&|outcome| outcome.name(better).starts_with("LOWER")), "lower"),
            (count(&|outcome| outcome.name(better).starts_with("HIGHER")), "higher"),
        ],
        _ => [
            (count(&|outcome| outcome.is_worse(better) == Some(true)), "regressed"),
            (count(&|outcome| outcome.is_worse(better) == Some(false)), "improved"),
        ],
    };
    let n = rows.len();
    let undecided = [
        Outcome::Inconclusive,
        Outcome::Unstable,
        Outcome::Insufficient,
        Outcome::NoFigure,
        Outcome::Invalid,
    ];
    let mut undecided: Vec<(usize, String)> = undecided
        .map(|outcome| (count(&|other| other == outcome), outcome.name(better).to_lowercase()))
        .into();
    undecided.push((count(&|outcome| matches!(outcome, Outcome::Refused(_))), "no verdict".to_owned()));
    let without_verdict: usize = undecided.iter().map(|(n, _)| n).sum();
    // The first words are what readers take away: they must not reassure where little is known.
    let is_mostly_decided = without_verdict as f64 <= MAX_SMALL_SHARE * n as f64;
    let in_words = |(n, word): &(usize, String)| (*n > 0).then(|| format!("{n} {word}"));
    let undecided: Vec<String> = undecided.iter().filter_map(in_words).collect();
    let equivalent = count(&|outcome| outcome == Outcome::Equivalent);
    let equivalent = in_words(&(equivalent, "equivalent".to_owned()));
    let cells = counted(n, "cell");
    let [(first, first_word), (second, second_word)] = changed;
    if first + second == 0 && !is_mostly_decided {
        let is_noise = |outcome| matches!(outcome, Outcome::Unstable | Outcome::Inconclusive);
        let reasons = match count(&is_noise) == without_verdict {
            true => format!("too noisy ({})", undecided.join(", ")),
            false => undecided.join(", "),
        };
        let equivalent = equivalent.map(|equivalent| format!("; {equivalent}")).unwrap_or_default();
        return format!("no verdict in {without_verdict} of {cells}: {reasons}{equivalent}");
    }
    let mut parts = Vec::new();
    if first > 0 {
        parts.push(format!("{first} of {cells} {first_word}"));
    } else if second == 0 && better == Better::Neither {
        parts.push(format!("none of {cells} changed"));
    } else if second == 0 || is_mostly_decided {
        parts.push(format!("none of {cells} {first_word}"));
    }
    if second > 0 {
        let of_cells = if parts.is_empty() { format!(" of {cells}") } else { String::new() };
        parts.push(format!("{second}{of_cells} {second_word}"));
    }
    match is_mostly_decided {
        true => parts.extend(equivalent.into_iter().chain(undecided)),
        false => parts.extend(undecided.into_iter().chain(equivalent)),
    }
    let mut text = parts.join(", ");
    if let Some((word, row)) = extreme(&rows, better) {
        text += &format!("; {word}: {}", with_change(row, &pairs[pair]));
    }
    text
}

/// The cell with the largest loss, or else with the largest gain; if the metric has no better direction, the one with the largest
/// change.
pub(crate) fn extreme<'r>(rows: &[&'r Row], better: Better) -> Option<(&'static str, &'r Row)> {
    let size = |row: &&&Row| row.ratio().map_or(0.0, |ratio| ratio.ln().abs());
    let most = |is: &dyn Fn(Outcome) -> bool| {
        rows.iter().filter(|row| is(row.judged.outcome)).max_by(|a, b| size(a).total_cmp(&size(b))).copied()
    };
    match better {
        Better::Neither => most(&|outcome| outcome.direction().is_some()).map(|row| ("largest change", row)),
        _ => {
            let worst = most(&|outcome| outcome.is_worse(better) == Some(true)).map(|row| ("worst", row));
            let best = || most(&|outcome| outcome.is_worse(better) == Some(false)).map(|row| ("best", row));
            worst.or_else(best)
        }
    }
}

/// The levels that distinguish a cell from the pair's others.
pub fn cell_of(row: &Row, pair: &Pair) -> String {
    let levels = &pair.cells[row.cell];
    match pair.cells.len() {
        1 => in_words(levels),
        _ => in_words(&part(levels, &varied(pair.cells.iter()), true)),
    }
}

fn with_change(row: &Row, pair: &Pair) -> String {
    let change = change_in_words(row).map(|change| format!(", {change}")).unwrap_or_default();
    format!("{}{change}", cell_of(row, pair))
}

/// The change with its interval.
pub fn change_in_words(row: &Row) -> Option<String> {
    let change = change(row.ratio()? - 1.0);
    Some(match interval(row) {
        Some(interval) => format!("{change} ({interval})"),
        None => change,
    })
}

/// The interval of the change.
pub fn interval(row: &Row) -> Option<String> {
    let interval = row.interval()?;
    // A wider interval carries no information.
    let high = if interval.high > 100.0 { ">+9900%".to_owned() } else { change(interval.high - 1.0) };
    Some(format!("{} to {high}", change(interval.low - 1.0)))
}

/// Outcome of a gate, one line per statement.
pub fn gate_sentences(compared: &Compared, outcome: &GateOutcome) -> Vec<String> {
    const SHOWN: usize = 8;
    let GateOutcome { gate, hit, undecided } = outcome;
    let Some(of) = compared.metrics.iter().find(|of| of.metric == gate.metric) else { return Vec::new() };
    let cells = |rows: &[usize], with_reason: bool| {
        let cell = |at: &usize| {
            let row = &of.rows[*at];
            let pair = &compared.pairs[row.pair];
            let side = compared.sides[pair.variant].name;
            let cell = cell_of(row, pair);
            let figure = row.ratio().map(|ratio| change(ratio - 1.0)).into_iter();
            let why = with_reason.then(|| row.judged.outcome.name(gate.metric.better()).to_owned());
            format!("{side} at {cell} ({})", figure.chain(why).collect::<Vec<_>>().join(", "))
        };
        let mut sentence = rows.iter().take(SHOWN).map(cell).collect::<Vec<_>>().join("; ");
        if rows.len() > SHOWN {
            sentence += &format!("; and {} more", rows.len() - SHOWN);
        }
        sentence
    };
    let mut lines = vec![match hit.as_slice() {
        [] => format!("gate {gate}: not hit"),
        hit => format!("gate {gate}: HIT by {}", cells(hit, false)),
    }];
    if !undecided.is_empty() {
        lines.push(format!(
            "gate {gate}: not decided for {}: check these runs, or run more",
            cells(undecided, true)
        ));
    }
    let is_apart = |row: &Row| row.sessions.is_some_and(|sessions| sessions.spread.is_none());
    if of.rows.iter().any(is_apart) {
        lines.push(format!(
            "gate {gate}: the sides were not measured next to each other, and how much sessions differ is unknown: `pgdyno ab` \
             measures them in pairs"
        ));
    }
    lines
}
