//! The answer of a bisection in words, for text and page alike.

use diagnose::{LinkOrderCheck, LinkOrderFinding};
use plaintext::figures::{change, counted};

use crate::judgement::Refusal;

use super::view::{Bisection, BisectionChange, BisectionLevel, BisectionState};

/// What was found, in a sentence or two; `has_failed` if an end can't be measured, `refusal` if there is no verdict.
pub(super) fn sentence(bisection: &Bisection, has_failed: bool, refusal: Option<Refusal>) -> String {
    let figure = bisection.label;
    let [first, last] = [bisection.levels.first(), bisection.levels.last()]
        .map(|level| level.map_or("", |level| &level.short));
    let of_ends = &bisection.ends;
    let between = in_words(of_ends.ci99_low, of_ends.ci99_high, "99%");
    let ends = format!("{}{between}", of_ends.change.map(change).unwrap_or_default());
    let sessions = counted(of_ends.sessions, "session");
    match bisection.state {
        _ if has_failed => {
            format!("Not decided: {last} against {first}, as one of them can't be measured any more.")
        }
        BisectionState::NoVerdict => {
            format!("{last} against {first}: {}.", refusal.map_or("no verdict", Refusal::in_words))
        }
        BisectionState::EndsOpen => format!(
            "Not decided: {last} against {first}, {figure} {ends} after {sessions}. More time decides it."
        ),
        BisectionState::NothingToFind => {
            format!("Nothing to find: {last} is equivalent to {first}, {figure} {ends} after {sessions}.")
        }
        BisectionState::Searching => format!(
            "Not known yet: {figure} changed by {ends} from {first} to {last}. More time decides where."
        ),
        BisectionState::Found => {
            let is_higher = of_ends.change > Some(0.0);
            let is_better = of_ends.change.is_some() && is_higher == (bisection.better == "higher");
            let opposite = if is_better { format!(" {last} is better than {first}.") } else { String::new() };
            let steps: Vec<String> =
                bisection.changes.iter().map(|step| in_a_sentence(step, bisection)).collect();
            steps.join(" ") + &opposite
        }
    }
}

/// Whether a change is one of code layout alone, in a sentence.
pub(super) fn link_order(check: &LinkOrderCheck, figure: &str) -> String {
    let sessions = check.sequence.sessions();
    let ratio = check.sequence.ratio().map(|ratio| change(ratio - 1.0)).unwrap_or_default();
    let interval = check.sequence.interval();
    let interval = in_words(interval.map(|of| of.low - 1.0), interval.map(|of| of.high - 1.0), "99%");
    let measured = format!(
        "with the functions of both builds in the order of their names, {figure} {ratio}{interval} by {}",
        counted(sessions, "session")
    );
    match check.finding() {
        LinkOrderFinding::Confirmed => format!("It is not one of code layout: {measured}."),
        LinkOrderFinding::LayoutAlone => format!("It is one of code layout alone: {measured}."),
        LinkOrderFinding::Open if sessions == 0 => {
            "Whether it is one of code layout was not measured: more time shows it.".to_owned()
        }
        LinkOrderFinding::Open => format!("Whether it is one of code layout is not known: {measured}."),
        LinkOrderFinding::Failed(why) => format!(
            "Whether it is one of code layout is not known, as a build with the functions in the order of their names can't be \
             measured: {}",
            why.lines().next().unwrap_or_default()
        ),
    }
}

/// Where the change is and its size, and whether it is one of code layout.
fn in_a_sentence(step: &BisectionChange, bisection: &Bisection) -> String {
    let levels: &[BisectionLevel] = bisection.levels.get(step.first..=step.last).unwrap_or_default();
    let size = step.change.map(|ratio| {
        format!("{} {}{}", bisection.label, change(ratio), in_words(step.ci95_low, step.ci95_high, "95%"))
    });
    let size = size.unwrap_or_default();
    let probability = probability(step.probability);
    let layout = step.link_order.as_ref().map(|layout| format!(" {}", layout.sentence)).unwrap_or_default();
    match levels {
        [level] => {
            let title = level.title.as_ref().map(|title| format!(", \"{title}\"")).unwrap_or_default();
            format!("The change is at {}{title} (probability {probability}): {size}.{layout}", level.short)
        }
        several => {
            let names: Vec<&str> = several.iter().map(|level| level.short.as_str()).collect();
            format!(
                "The change is at one of {}, which can't be told apart, as no level between them can be measured (probability \
                 {probability}): {size}.{layout}",
                names.join(", ")
            )
        }
    }
}

/// An interval in parentheses after the value; nothing while it is unbounded.
fn in_words(low: Option<f64>, high: Option<f64>, confidence: &str) -> String {
    let interval = low.zip(high);
    let interval = interval.map(|(low, high)| format!("{} to {}", change(low), change(high)));
    interval.map(|interval| format!(" ({confidence} interval {interval})")).unwrap_or_default()
}

/// A probability in per cent; one of more than 99.9% is not certain.
pub fn probability(share: f64) -> String {
    match share {
        share if share > 0.999 => ">99.9%".to_owned(),
        share => format!("{:.1}%", 100.0 * share),
    }
}
