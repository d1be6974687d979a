//! The state of a comparison by sessions, in a line.

use model::cell::Cell;
use model::factor::Factor;
use model::paired::PairedFigure;
use plaintext::figures::{counted, duration};
use runner::ComparisonState;

/// Columns of the strip of sessions, odd so that no change has its own.
const WIDTH: usize = 27;

/// Margins to each side of the strip's center.
const MARGINS: f64 = 3.0;

/// A comparison after a session: sessions as dots around no change, change with its interval, and the time left; then what is
/// compared, among cells that differ in these factors, which a narrow terminal cuts off.
pub(super) fn line(state: &ComparisonState, varied: &[Factor]) -> String {
    let ComparisonState { a, b, figure, sequence, time_left, .. } = state;
    let percent = |ratio: f64| format!("{:+.1}%", (ratio - 1.0) * 100.0);
    let figure = match figure {
        PairedFigure::Throughput => "throughput",
        PairedFigure::Latency => "mean latency",
        PairedFigure::ServerCpu => "server CPU",
        PairedFigure::ServerInstructions => "server instructions",
        PairedFigure::Instructions => "instructions",
    };
    let change = match (sequence.ratio(), sequence.interval()) {
        (Some(ratio), Some(interval)) => {
            format!("{} ({} to {})", percent(ratio), percent(interval.low), percent(interval.high))
        }
        (Some(ratio), None) => percent(ratio),
        (None, _) => "no session yet".to_owned(),
    };
    let rest = match (sequence.verdict(), time_left) {
        (verdict, _) if !verdict.is_open() => "decided".to_owned(),
        (_, Some(left)) if !left.is_zero() => format!("about {} left", duration(left.seconds())),
        _ => "time left unknown".to_owned(),
    };
    format!(
        "{} {change}, {}, {rest}: {figure} of {}",
        strip(state),
        counted(sequence.sessions(), "session"),
        differing(a, b, varied)
    )
}

/// What a cell has unlike its baseline, and then unlike other comparisons: `18 against 17, clients=4`.
fn differing(baseline: &Cell, cell: &Cell, varied: &[Factor]) -> String {
    let compared = Factor::varied([baseline, cell]);
    let levels = |cell: &Cell| compared.iter().map(|factor| factor.level(cell)).collect::<Vec<_>>().join(" ");
    let others = varied.iter().filter(|factor| !compared.contains(factor));
    let others: Vec<String> =
        others.map(|factor| format!("{}={}", factor.name(), factor.level(cell))).collect();
    let separator = if others.is_empty() { "" } else { ", " };
    format!("{} against {}{separator}{}", levels(cell), levels(baseline), others.join(","))
}

/// Sessions as dots on a logarithmic scale around no change, with the margins (`:`) and the interval (`[` and `]`).
fn strip(state: &ComparisonState) -> String {
    let sequence = &state.sequence;
    let scale = sequence.margin().ln() * MARGINS;
    let column = |log_ratio: f64| {
        let place = (log_ratio / scale).clamp(-1.0, 1.0);
        (((place + 1.0) / 2.0) * (WIDTH - 1) as f64).round() as usize
    };
    let mut cells = vec![' '; WIDTH];
    for margin in [-sequence.margin().ln(), sequence.margin().ln()] {
        cells[column(margin)] = ':';
    }
    cells[WIDTH / 2] = '|';
    for log_ratio in sequence.log_ratios() {
        let cell = &mut cells[column(*log_ratio)];
        *cell = match *cell {
            '·' => '∙',
            '∙' | '•' => '•',
            _ => '·',
        };
    }
    if let Some(interval) = sequence.interval() {
        cells[column(interval.low.ln())] = '[';
        cells[column(interval.high.ln())] = ']';
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use model::plan::Plan;
    use model::spec::Campaign;
    use model::units::Span;
    use stats::PairedSequence;

    use super::*;

    fn state(plan: &Plan, log_ratios: &[f64]) -> String {
        let mut sequence = PairedSequence::new(1.05, 1);
        log_ratios.iter().for_each(|log_ratio| sequence.add(*log_ratio));
        let left = sequence.sessions_left();
        let state = ComparisonState {
            a: &plan.cells[0],
            b: &plan.cells[2],
            figure: PairedFigure::Throughput,
            sequence,
            pairs: 15,
            time_left: left.map(|left| Span::from_us(left as u64 * 2_500_000)),
            bisection: None,
        };
        line(&state, &Factor::varied(&plan.cells))
    }

    #[test]
    fn a_comparison_is_shown_in_a_line() {
        let text =
            "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [4, 8]\n";
        let plan = Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
        let first = state(&plan, &[-0.1]);
        assert!(first.ends_with("throughput of 18 against 17, clients=4"), "{first}");
        assert!(first.contains("-9.5%, 1 session, time left unknown: throughput of 18"), "{first}");
        let spread: Vec<f64> = (0..6).map(|nth| if nth % 2 == 0 { -0.02 } else { 0.04 }).collect();
        let open = state(&plan, &spread);
        assert!(open.contains("6 sessions, about ") && open.contains(" [") && open.contains("] "), "{open}");
        let halved = state(&plan, &[-0.7, -0.69, -0.71, -0.7, -0.69, -0.7, -0.7, -0.71]);
        assert!(halved.contains("decided: throughput") && halved.contains(" -50."), "{halved}");
    }
}
