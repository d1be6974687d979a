//! One row per figure and cell: medians of the rounds and their ranges.

use std::fmt;
use std::io::{self, Write};

use crate::cost::{Cell, Cost};
use crate::peer::Competitor;
use crate::servers::Setup;
use crate::targets::{self, Target};

pub(crate) fn head(out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    row(out, ["server", "transport", "clients", "figure", "A", "B", "ratio", "target"].map(str::to_owned))
}

/// The rows of a cell; with memory if there is a cell of fewer clients, and with the targets against this load driver.
pub(crate) fn rows(
    out: &mut impl Write,
    cell: &Cell,
    fewest: Option<&Cell>,
    competitor: Option<Competitor>,
) -> io::Result<()> {
    let setup = &cell.setup;
    let mut write = |figure: &str, values: &[[f64; 2]], digits, target: Option<Target>| {
        let side = |which: usize| Range::new(values.iter().map(|value| value[which]));
        let ratio = Range::new(values.iter().map(|[theirs, ours]| ours / theirs));
        row(
            out,
            [
                setup.kind.name().to_owned(),
                setup.transport.as_str().to_owned(),
                setup.clients.to_string(),
                figure.to_owned(),
                side(0).map_or_else(String::new, |range| format!("{range:.digits$}")),
                side(1).map_or_else(String::new, |range| format!("{range:.digits$}")),
                ratio.map_or_else(String::new, |range| format!("{range:.3}")),
                target.zip(ratio).map_or_else(String::new, |(target, ratio)| verdict(target, ratio)),
            ],
        )
    };
    let target = |of: fn(Competitor, &Setup) -> Option<Target>| of(competitor?, setup);
    write("tps", &each(cell, |cost| cost.tps), 0, target(targets::of_tps))?;
    write("cpu, µs/transaction", &each(cell, |cost| cost.cpu_us), 2, target(targets::of_cpu))?;
    write("switches/transaction", &each(cell, |cost| cost.switches), 3, None)?;
    if let Some(syscalls) = cell.syscalls {
        write("syscalls/transaction", &[syscalls], 2, None)?;
    }
    if let Some(fewest) = fewest {
        write("memory, kB/client", &memory(cell, fewest), 1, None)?;
    }
    Ok(())
}

fn row(out: &mut impl Write, cells: [String; 8]) -> io::Result<()> {
    let [server, transport, clients, figure, theirs, ours, ratio, target] = cells;
    let line = format!(
        "{server:6} {transport:9} {clients:>7} {figure:20} {theirs:>25} {ours:>25} {ratio:>21}  {target}"
    );
    writeln!(out, "{}", line.trim_end())
}

fn each(cell: &Cell, figure: fn(&Cost) -> f64) -> Vec<[f64; 2]> {
    cell.costs.iter().map(|costs| [figure(&costs[0]), figure(&costs[1])]).collect()
}

/// Growth of the peak resident size per client, in each round in which it is known.
fn memory(cell: &Cell, fewest: &Cell) -> Vec<[f64; 2]> {
    let clients = f64::from(cell.setup.clients - fewest.setup.clients);
    let growth = |cost: &Cost, from: &Cost| Some((cost.peak_bytes? - from.peak_bytes?) / 1024.0 / clients);
    let rounds = cell.costs.iter().zip(&fewest.costs);
    rounds.filter_map(|([a, b], [from_a, from_b])| Some([growth(a, from_a)?, growth(b, from_b)?])).collect()
}

fn verdict(target: Target, ratio: Range) -> String {
    let (sign, bound) = match target {
        Target::AtMost(max) => ("<=", max),
        Target::AtLeast(min) => (">=", min),
    };
    let met = target.is_met_by(ratio.median);
    let word = if met { "met" } else { "missed" };
    let certain = [ratio.low, ratio.high].into_iter().all(|ratio| target.is_met_by(ratio) == met);
    format!("{sign} {bound:.2} {word}{}", if certain { "" } else { "?" })
}

/// The values of the rounds.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    median: f64,
    high: f64,
}

impl Range {
    /// None without values, or if one is not finite.
    fn new(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { low, median, high })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = to.precision().unwrap_or(0);
        let Self { low, median, high } = self;
        write!(to, "{median:.digits$} ({low:.digits$}-{high:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_uncertain_if_the_range_has_both() {
        let verdict_for = |target, values: [f64; 3]| verdict(target, Range::new(values.into_iter()).unwrap());
        assert_eq!(verdict_for(Target::AtMost(0.7), [0.69, 0.6, 0.65]), "<= 0.70 met");
        assert_eq!(verdict_for(Target::AtMost(0.7), [0.71, 0.6, 0.65]), "<= 0.70 met?");
        assert_eq!(verdict_for(Target::AtMost(0.7), [0.71, 0.6, 0.72]), "<= 0.70 missed?");
        assert_eq!(verdict_for(Target::AtLeast(1.05), [1.0, 1.01, 1.04]), ">= 1.05 missed");
    }

    #[test]
    fn medians_and_ranges() {
        let range = Range::new([3.0, 1.0, 2.0, 10.0].into_iter()).unwrap();
        assert_eq!(format!("{range:.1}"), "2.5 (1.0-10.0)");
        assert!(Range::new([1.0, f64::NAN].into_iter()).is_none());
        assert!(Range::new([].into_iter()).is_none());
    }
}
