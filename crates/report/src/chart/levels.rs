//! A series as a row of bars, with the letters of shifts: bars show changes of the level, not its size.

use super::EIGHTHS;
/// Least range of the bars as a share of the middle value, so that noise does not fill the full height.
const MIN_RANGE: f64 = 0.10;

/// Columns that all series of a history share: steps, several per column if they do not fit, and gaps for the letters
/// of shifts.
pub(crate) struct Columns(Vec<Column>);

enum Column {
    /// Steps from the first up to, but not including, the second.
    Steps(usize, usize),
    /// Gap before this step, for the letter of a shift.
    Gap(usize),
}

impl Columns {
    /// Columns for `steps` steps with gaps before the steps `gaps`, at most `width` columns if possible.
    pub(crate) fn new(steps: usize, gaps: &[usize], width: usize) -> Self {
        let each = steps.div_ceil(width.saturating_sub(gaps.len()).max(1)).max(1);
        let mut columns = Vec::new();
        let mut at = 0;
        while at < steps {
            if gaps.contains(&at) {
                columns.push(Column::Gap(at));
            }
            // No column spans a gap, so that each bar belongs to one side of it.
            let end = gaps.iter().copied().filter(|gap| *gap > at).min().unwrap_or(steps);
            let to = (at + each).min(end).min(steps);
            columns.push(Column::Steps(at, to));
            at = to;
        }
        Self(columns)
    }

    /// The row of a series, with letters before some of its steps. A dot marks a missing figure.
    pub(crate) fn row(&self, values: &[Option<f64>], letters: &[(usize, char)]) -> String {
        let means: Vec<Option<f64>> = self.0.iter().map(|column| column.mean(values)).collect();
        let known = || means.iter().flatten().copied();
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        let middle = f64::midpoint(low, high);
        let range = (high - low).max(middle.abs() * MIN_RANGE);
        let bar = |mean: f64| {
            let share = if range > 0.0 { (mean - middle) / range + 0.5 } else { 0.5 };
            EIGHTHS[((share * 7.0).round().max(0.0) as usize).min(7)]
        };
        let cell = |(column, mean): (&Column, &Option<f64>)| match column {
            Column::Gap(step) => letters.iter().find(|(at, _)| at == step).map_or(' ', |(_, letter)| *letter),
            Column::Steps(..) => mean.map_or('·', bar),
        };
        self.0.iter().zip(&means).map(cell).collect()
    }
}

impl Column {
    fn mean(&self, values: &[Option<f64>]) -> Option<f64> {
        let Self::Steps(from, to) = self else { return None };
        let known: Vec<f64> = values[*from..*to].iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_has_its_letter_between_the_levels() {
        let values = [10.0, 10.0, 10.0, 20.0, 20.0].map(Some);
        let columns = Columns::new(5, &[3, 4], 40);
        assert_eq!(columns.row(&values, &[(3, 'A')]), "▁▁▁A█ █");
        assert_eq!(columns.row(&[None; 5], &[]), "···  ·".replace("  ·", " · ·"));
    }

    #[test]
    fn noise_does_not_fill_the_height() {
        let row = Columns::new(3, &[], 40).row(&[Some(100.0), Some(101.0), Some(100.0)], &[]);
        assert!(row.chars().all(|bar| "▄▅".contains(bar)), "{row}");
    }

    #[test]
    fn many_steps_share_columns_but_not_over_a_shift() {
        let values: Vec<Option<f64>> =
            (0..1000).map(|step| Some(if step < 503 { 1.0 } else { 2.0 })).collect();
        let row = Columns::new(1000, &[503], 50).row(&values, &[(503, 'A')]);
        assert!(row.chars().count() <= 52, "{row}");
        let (before, after) = row.split_once('A').unwrap();
        assert!(before.chars().all(|bar| bar == '▁') && after.chars().all(|bar| bar == '█'), "{row}");
    }
}
