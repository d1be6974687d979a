//! Figures over time. A column that stands for several figures shows their extremes: no spike is dropped.

use super::EIGHTHS;

/// Mark of a missing figure.
const GAP: char = '·';

/// Indices of those of `n` figures that column `at` of `columns` stands for: one or more.
fn share(n: usize, at: usize, columns: usize) -> std::ops::Range<usize> {
    let from = at * n / columns;
    let to = ((at + 1) * n).div_ceil(columns).min(n);
    // Neighbours share no figure if there are at least as many figures as columns.
    if n >= columns { from..((at + 1) * n / columns).max(from + 1) } else { from..to.min(from + 1) }
}

/// Smallest and largest known figure of each column; none if none is known.
fn envelope(values: &[Option<f64>], columns: usize) -> Vec<Option<(f64, f64)>> {
    let of_column = |at: usize| {
        let known = values[share(values.len(), at, columns)].iter().flatten();
        known.fold(None, |ends: Option<(f64, f64)>, &value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })
    };
    (0..columns).map(of_column).collect()
}

/// A row of bars from zero to the largest figure, in `width` columns. A column of several figures shows the one
/// furthest from the median of all: spikes and gaps are visible.
pub(crate) fn sparkline(values: &[Option<f64>], width: usize) -> String {
    let mut known: Vec<f64> = values.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    let (Some(&middle), Some(&top)) = (known.get(known.len() / 2), known.last()) else {
        return String::new();
    };
    let bar = |ends: Option<(f64, f64)>| {
        let Some((low, high)) = ends else { return GAP };
        let value = if middle - low > high - middle { low } else { high };
        let eighths = if top > 0.0 { (value / top * 8.0).round().clamp(0.0, 8.0) as usize } else { 0 };
        eighths.checked_sub(1).map_or('▁', |at| EIGHTHS[at])
    };
    envelope(values, width).into_iter().map(bar).collect()
}

/// Lines of Braille dots, four per character's height and two per its width, from zero at the bottom to `top`: each
/// column of dots spans its figures from the smallest to the largest and is joined with the column before.
pub(crate) fn plot(values: &[Option<f64>], top: f64, width: usize, height: usize) -> Vec<String> {
    let (columns, rows) = (width * 2, height * 4);
    let mut dots = vec![vec![false; columns]; rows];
    let row = |value: f64| {
        let share = if top > 0.0 { (value / top).clamp(0.0, 1.0) } else { 0.0 };
        rows - 1 - (share * (rows - 1) as f64).round() as usize
    };
    let mut before: Option<(usize, usize)> = None;
    for (column, ends) in envelope(values, columns).into_iter().enumerate() {
        let Some((low, high)) = ends else {
            before = None;
            continue;
        };
        let (high, low) = (row(high), row(low));
        // Up or down to the end of the column before, so that the line is unbroken.
        let (from, to) = match before {
            Some((_, end)) if end < high => (end, low),
            Some((start, _)) if start > low => (high, start),
            _ => (high, low),
        };
        dots[from..=to].iter_mut().for_each(|row| row[column] = true);
        before = Some((high, low));
    }
    // The bits of the eight dots of a Braille pattern, by row and column.
    const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
    let character = |line: usize, at: usize| {
        let set = (0..8).filter(|dot| dots[line * 4 + dot / 2][at * 2 + dot % 2]);
        char::from_u32(set.fold(0x2800, |bits, dot| bits | BITS[dot / 2][dot % 2])).unwrap_or(' ')
    };
    (0..height)
        .map(|line| (0..width).map(|at| character(line, at)).collect::<String>())
        .map(|line| line.replace('\u{2800}', " "))
        .collect()
}

/// A line of `width` columns that marks spans of `0..end`; a short span has one column.
pub(crate) fn lane(spans: &[(f64, f64)], end: f64, mark: char, width: usize) -> String {
    let mut line = vec![' '; width];
    for (from, to) in spans {
        let place = |at: f64| at / end * width as f64;
        let first = (place(*from).max(0.0) as usize).min(width - 1);
        let last = (place(*to).ceil().max(0.0) as usize).clamp(first + 1, width);
        line[first..last].fill(mark);
    }
    line.into_iter().collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(values: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn every_value_is_in_a_column() {
        for n in [1, 2, 7, 59, 60, 61, 600] {
            for columns in [1, 8, 60] {
                let mut seen = vec![0; n];
                (0..columns).flat_map(|at| share(n, at, columns)).for_each(|at| seen[at] += 1);
                assert!(seen.iter().all(|times| *times > 0), "{n} in {columns}: {seen:?}");
                assert!(n < columns || seen.iter().all(|times| *times == 1), "{n} in {columns}: {seen:?}");
            }
        }
    }

    #[test]
    fn neither_a_spike_nor_a_gap_is_lost_among_a_thousand() {
        let mut values = vec![50.0; 1000];
        (values[300], values[700]) = (100.0, 0.0);
        let line = sparkline(&known(values.iter().copied()), 20);
        assert_eq!(line, "▄▄▄▄▄▄█▄▄▄▄▄▄▄▁▄▄▄▄▄");
        let lines = plot(&known(values), 100.0, 20, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].chars().nth(6).is_some_and(|c| c != ' '), "{lines:#?}");
        assert!(lines[1].chars().nth(14).is_some_and(|c| c != ' '), "{lines:#?}");
    }

    #[test]
    fn a_plot_is_one_line_from_column_to_column() {
        assert_eq!(plot(&known([0.0, 1.0, 0.0, 1.0]), 1.0, 2, 1), ["⣸⣿"]);
        assert_eq!(plot(&known([0.0, 0.0, 1.0, 1.0]), 1.0, 2, 1), ["⣀⡏"]);
        assert_eq!(plot(&[Some(1.0), None, None, Some(1.0)], 1.0, 2, 1), ["⠁⠈"]);
    }

    #[test]
    fn unknown_values_are_not_zero() {
        assert_eq!(sparkline(&[Some(0.0), None, Some(1.0)], 3), "▁·█");
        assert_eq!(sparkline(&[None, None], 2), "");
    }

    #[test]
    fn a_short_span_is_marked_and_all_stay_within_the_line() {
        assert_eq!(lane(&[(5.0, 5.1), (-3.0, 1.0), (9.9, 12.0)], 10.0, '×', 10), "×    ×   ×");
    }
}
