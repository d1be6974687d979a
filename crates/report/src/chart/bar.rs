//! Bars of shares, of a range of runs, and of differences.

use plaintext::figures::change;

/// Bars of one eighth of a character's width to seven eighths.
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of a share, 0 to 1, in `width` characters. Every share above 0 is visible.
pub(crate) fn bar(share: f64, width: usize) -> String {
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let mut eighths = (share * width as f64 * 8.0).round() as usize;
    if share > 0.0 {
        eighths = eighths.max(1);
    }
    let part = (eighths % 8).checked_sub(1).map(|part| PARTS[part]);
    "█".repeat(eighths / 8).chars().chain(part).collect()
}

/// A bar of a figure between two powers of ten on a logarithmic scale.
pub(crate) fn log_bar(value: f64, (low, high): (f64, f64), width: usize) -> String {
    bar((value.ln() - low.ln()) / (high.ln() - low.ln()), width)
}

/// A bar that is full up to the least of three ascending shares, shaded to the middle one, and lightly shaded to the
/// greatest.
pub(crate) fn ranged_bar([least, middle, greatest]: [f64; 3], width: usize) -> String {
    let place = |share: f64| (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    let (least, middle, greatest) = (place(least), place(middle), place(greatest));
    let ink = |from: usize, to: usize, ink: &str| ink.repeat(to.saturating_sub(from));
    ink(0, least, "█") + &ink(least, middle, "▓") + &ink(middle.max(least), greatest, "░")
}

/// A bar to the left or right of the middle of `width` characters, for shares of -1 to 1.
pub(crate) fn signed_bar(share: f64, width: usize) -> String {
    let half = width / 2;
    let length = (share.abs().min(1.0) * half as f64).round() as usize;
    match share < 0.0 {
        true => format!("{}{}│", " ".repeat(half - length), "█".repeat(length)),
        false => format!("{}│{}", " ".repeat(half), "█".repeat(length)),
    }
}

/// A ratio with its confidence interval; without one if there are too few runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) ratio: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

/// A logarithmic scale shared by ratios, with no change in the middle and the margin marked on either side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratios {
    /// The right end; the left one is its reciprocal.
    end: f64,
    margin: f64,
    width: usize,
}

impl Ratios {
    /// A scale of `width` characters (one less if `width` is even) that has room for all ratios and for most intervals;
    /// others are cut off. Changes by less than the factor `margin` are equivalent.
    pub(crate) fn new(changes: &[Change], margin: f64, width: usize) -> Self {
        const ENDS: [f64; 7] = [1.10, 1.20, 1.50, 2.0, 4.0, 10.0, 100.0];
        let mut reach: Vec<f64> = changes
            .iter()
            .filter_map(|change| change.interval)
            .map(|(low, high)| low.ln().abs().max(high.ln().abs()))
            .collect();
        reach.sort_by(f64::total_cmp);
        let ratios = changes.iter().map(|change| change.ratio.ln().abs());
        let widest = ratios.chain(reach.get(reach.len() / 2).copied()).fold(0.0, f64::max);
        let end = ENDS.into_iter().find(|end| widest <= end.ln()).unwrap_or(1000.0);
        Self { end, margin, width: width - (width + 1) % 2 }
    }

    /// The ratio, its interval, and the margin.
    pub(crate) fn row(&self, change: Change) -> String {
        let mut row = vec![' '; self.width];
        let last = self.width - 1;
        row[self.place(1.0)] = '│';
        for ratio in [1.0 / self.margin, self.margin] {
            row[self.place(ratio)] = '┊';
        }
        if let Some((low, high)) = change.interval {
            let (from, to) = (self.place(low), self.place(high));
            row[from..=to].iter_mut().for_each(|ink| *ink = if *ink == ' ' { '─' } else { '┼' });
            row[from] = if low < 1.0 / self.end { '◂' } else { '├' };
            row[to] = if high > self.end { '▸' } else { '┤' };
        }
        row[self.place(change.ratio).min(last)] = '●';
        row.into_iter().collect::<String>().trim_end().to_owned()
    }

    fn place(&self, ratio: f64) -> usize {
        let share = (ratio.ln() / self.end.ln()).clamp(-1.0, 1.0);
        ((share + 1.0) / 2.0 * (self.width - 1) as f64).round() as usize
    }

    /// Head above the rows: both ends and the middle.
    pub(crate) fn head(&self) -> String {
        let half = self.width / 2;
        let (left, right) = (change(1.0 / self.end - 1.0), change(self.end - 1.0));
        format!("{left:<half$}0{right:>half$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_empty_for_a_share() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.30, 10), "███");
        assert_eq!(bar(0.33, 10), "███▎");
        assert_eq!(
            (bar(1e-9, 10), bar(0.0, 10), bar(f64::NAN, 10)),
            ("▏".to_owned(), String::new(), String::new())
        );
        assert_eq!(bar(7.0, 3), "███");
    }

    #[test]
    fn powers_of_ten_have_equal_lengths() {
        let length = |value| log_bar(value, (0.1, 100.0), 30).chars().count();
        assert_eq!([0.1, 1.0, 10.0, 100.0].map(length), [0, 10, 20, 30]);
    }

    #[test]
    fn a_range_is_drawn_if_it_is_wider_than_a_character() {
        assert_eq!(ranged_bar([0.5, 0.7, 1.0], 10), "█████▓▓░░░");
        assert_eq!(ranged_bar([0.5, 0.501, 0.502], 10), "█████");
    }

    #[test]
    fn growth_goes_right_and_decline_left() {
        assert_eq!(signed_bar(0.5, 8), "    │██");
        assert_eq!(signed_bar(-1.0, 8), "████│");
    }

    fn row(ratio: f64, interval: Option<(f64, f64)>) -> String {
        let change = Change { ratio, interval };
        Ratios::new(&[change], 1.05, 21).row(change)
    }

    #[test]
    fn a_change_is_drawn_relative_to_the_margin() {
        assert_eq!(row(1.0, Some((0.98, 1.02))), "     ┊  ├─●─┤  ┊");
        assert_eq!(row(0.93, Some((0.91, 0.95))), "├─●──┤    │    ┊");
        assert_eq!(row(0.93, None), "  ●  ┊    │    ┊");
    }

    #[test]
    fn an_interval_beyond_the_scale_has_arrows() {
        let [wide, narrow] =
            [(0.5, 3.0), (0.97, 1.03)].map(|interval| Change { ratio: 1.0, interval: Some(interval) });
        let scale = Ratios::new(&[wide, narrow, narrow], 1.05, 21);
        assert_eq!(scale.head(), "-9.1%     0    +10.0%");
        assert_eq!(scale.row(wide), "◂────┼────●────┼────▸");
        assert_eq!(scale.row(narrow), "     ┊ ├──●──┤ ┊");
    }
}
