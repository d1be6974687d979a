//! One row per figure: medians of the rounds and their ranges.

use std::io::{self, Write};

use crate::round::Round;

/// Target speed-up of pgdyno's filling, with both figures of the same round.
const MIN_FILL_SPEEDUP: f64 = 1.5;
/// Target speed-up of copying over filling anew.
const MIN_COPY_SPEEDUP: f64 = 3.0;

pub(crate) fn print(out: &mut impl Write, rounds: &[Round]) -> io::Result<()> {
    writeln!(out, "\n{:42} {:>20} {:>20} {:>18}  target", "wall time in seconds", "A", "B", "A/B")?;
    let mut row = |what: &str, target: Option<f64>, pair: fn(&Round) -> (f64, f64)| {
        let pairs: Vec<(f64, f64)> = rounds.iter().map(pair).collect();
        let a = Range::new(pairs.iter().map(|(a, _)| *a));
        let b = Range::new(pairs.iter().map(|(_, b)| *b));
        let ratio = Range::new(pairs.iter().map(|(a, b)| a / b));
        let verdict = target.map_or_else(String::new, |min| ratio.verdict(min));
        let line = format!("{what:42} {:>20} {:>20} {:>18}  {verdict}", a.text(), b.text(), ratio.text());
        writeln!(out, "{}", line.trim_end())
    };
    row("tables: pgbench -i, pgdyno", Some(MIN_FILL_SPEEDUP), |round| {
        (round.pgbench.tables, round.pgdyno.tables)
    })?;
    row("initdb to stop: pgbench -i, pgdyno", Some(MIN_FILL_SPEEDUP), |round| {
        (round.pgbench.whole, round.pgdyno.whole)
    })?;
    row("create a template, copy it", Some(MIN_COPY_SPEEDUP), |round| {
        (round.pgdyno.whole, round.clone.seconds)
    })?;
    row("fill tables by pgdyno, copy a template", None, |round| (round.pgdyno.tables, round.clone.seconds))?;
    row("copy a template, restore after a load", None, |round| (round.clone.seconds, round.restore.seconds))?;
    if let Some(round) = rounds.last() {
        for (what, copied) in [("copied", round.clone), ("restored", round.restore)] {
            writeln!(
                out,
                "{what}, in MB: {} reflinked, {} copied, {} unchanged",
                copied.reflinked_bytes / 1_000_000,
                copied.copied_bytes / 1_000_000,
                copied.kept_bytes / 1_000_000
            )?;
        }
    }
    Ok(())
}

/// The values of the rounds, of which there is at least one.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    median: f64,
    high: f64,
}

impl Range {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self { low: at(0), median: (at(last / 2) + at(last.div_ceil(2))) / 2.0, high: at(last) }
    }

    fn text(self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.median, self.low, self.high)
    }

    fn verdict(self, min: f64) -> String {
        let met = self.median >= min;
        let certain = [self.low, self.high].into_iter().all(|ratio| (ratio >= min) == met);
        let word = if met { "met" } else { "missed" };
        format!(">= {min:.2} {word}{}", if certain { "" } else { "?" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_the_medians_and_uncertain_if_the_range_has_both() {
        let verdict = |values: &[f64]| Range::new(values.iter().copied()).verdict(1.5);
        assert_eq!(verdict(&[1.7, 1.6, 1.5]), ">= 1.50 met");
        assert_eq!(verdict(&[1.7, 1.6, 1.4]), ">= 1.50 met?");
        assert_eq!(verdict(&[1.4, 1.6]), ">= 1.50 met?");
        assert_eq!(verdict(&[1.4, 1.3, 1.6]), ">= 1.50 missed?");
        assert_eq!(verdict(&[1.4]), ">= 1.50 missed");
    }

    #[test]
    fn medians_and_ranges() {
        assert_eq!(Range::new([3.0, 1.0, 2.0, 10.0].into_iter()).text(), "2.50 (1.00-10.00)");
    }
}
