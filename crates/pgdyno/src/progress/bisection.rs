//! The state of a bisection, in a line.

use diagnose::Bisection;
use model::factor::Factor;
use plaintext::figures::{change, counted, duration};
use report::bisect::chart;
use runner::ComparisonState;

/// The probabilities of all levels as bars; the most probable one; what was measured last; sessions and time so far.
pub(super) fn line(bisection: &Bisection, state: &ComparisonState) -> String {
    let level = |cell| {
        Factor::varied([state.a, state.b]).first().map(|factor| factor.level(cell)).unwrap_or_default()
    };
    let bars = bisection.posterior().map(|posterior| chart(&posterior.steps)).unwrap_or_default();
    let most = bisection.culprits().first().map(|most| format!("{:.0}%", 100.0 * most.probability));
    let last = state.sequence.ratio().map(|ratio| change(ratio - 1.0)).unwrap_or_default();
    let left = bisection.seconds_left().map(|left| format!(", about {} left", duration(left)));
    format!(
        "{bars} {}, {}, {}{}: {last} by {} of {}",
        most.unwrap_or_default(),
        counted(bisection.sessions(), "session"),
        duration(bisection.seconds()),
        left.unwrap_or_default(),
        counted(state.sequence.sessions(), "session"),
        level(state.b)
    )
}
