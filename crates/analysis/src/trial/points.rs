//! Number of points in a series, and grouping of readings.

use std::ops::Range;

/// Limit of the number of points per series. With more readings, neighbours are grouped; the smallest and the largest
/// of each group are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// Every reading, except for trials too long for a browser to hold.
    All,
    /// At most this many.
    AtMost(usize),
}

impl Points {
    /// The limits for one series, and for all series of a trial together.
    const MAX_PER_SERIES: usize = 100_000;
    const MAX_TOTAL: usize = 2_000_000;

    /// The limit of each of this many series.
    pub(super) fn of_each(self, series: usize) -> usize {
        match self {
            Self::All => Self::MAX_PER_SERIES.min(Self::MAX_TOTAL / series.max(1)).max(1),
            Self::AtMost(most) => most.max(1),
        }
    }

    /// Whether metrics without information may be omitted.
    pub(super) fn may_leave_out(self) -> bool {
        self != Self::All
    }
}

/// Groups of neighbours among `n`, at most `most` groups: all but the last have the same size.
pub(super) fn groups(n: usize, most: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    let size = n.div_ceil(most.max(1)).max(1);
    (0..n.div_ceil(size)).map(move |group| group * size..((group + 1) * size).min(n))
}

/// A value with a weight, such as a rate with its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weighed {
    pub(super) value: Option<f64>,
    pub(super) weight: f64,
}

/// A series, with the extremes of its groups.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Envelope {
    pub(super) values: Vec<Option<f64>>,
    pub(super) low: Option<Vec<Option<f64>>>,
    pub(super) high: Option<Vec<Option<f64>>>,
}

impl Envelope {
    /// Groups values. Each group is the mean of its known values; `None` if it has none.
    pub(super) fn new(values: &[Weighed], groups: impl Iterator<Item = Range<usize>> + Clone) -> Self {
        let is_thinned = groups.clone().any(|group| group.len() > 1);
        let each = |of: fn(&[Weighed]) -> Option<f64>| {
            groups.clone().map(|group| of(values.get(group)?).map(figure)).collect::<Vec<_>>()
        };
        Self {
            values: each(mean),
            low: is_thinned.then(|| each(|group| known(group).reduce(f64::min))),
            high: is_thinned.then(|| each(|group| known(group).reduce(f64::max))),
        }
    }
}

fn known(group: &[Weighed]) -> impl Iterator<Item = f64> {
    group.iter().filter_map(|weighed| weighed.value)
}

fn mean(group: &[Weighed]) -> Option<f64> {
    if let [alone] = group {
        return alone.value;
    }
    let of_known = || group.iter().filter_map(|weighed| Some((weighed.value?, weighed.weight)));
    let weight: f64 = of_known().map(|(_, weight)| weight).sum();
    (weight > 0.0).then(|| of_known().map(|(value, weight)| value * weight).sum::<f64>() / weight)
}

/// Rounds to five significant digits: more are useless on a page, and double the size of a document.
pub(super) fn figure(value: f64) -> f64 {
    const DIGITS: i32 = 5;
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Powers of ten up to 10²² are exact, and the result is as accurate as a double can be.
    let places = DIGITS - 1 - value.abs().log10().floor() as i32;
    match places {
        0.. => {
            let scale = 10_f64.powi(places.min(22));
            (value * scale).round() / scale
        }
        _ => {
            let scale = 10_f64.powi((-places).min(22));
            (value / scale).round() * scale
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(values: &[Option<f64>]) -> Vec<Weighed> {
        values.iter().map(|&value| Weighed { value, weight: 1.0 }).collect()
    }

    #[test]
    fn an_envelope_keeps_the_extremes() {
        let mut values: Vec<Option<f64>> = (0..1000).map(|n| Some(f64::from(n % 7))).collect();
        values[503] = Some(900.0);
        values[504] = Some(-900.0);
        let thinned = Envelope::new(&even(&values), groups(values.len(), 60));
        let (low, high) = (thinned.low.unwrap(), thinned.high.unwrap());
        assert!(thinned.values.len() <= 60, "{}", thinned.values.len());
        assert_eq!(low.iter().flatten().copied().reduce(f64::min), Some(-900.0));
        assert_eq!(high.iter().flatten().copied().reduce(f64::max), Some(900.0));
        assert_eq!(
            high.iter().flatten().filter(|value| **value > 6.0).count(),
            1,
            "the spike is in one place"
        );
        for ((value, low), high) in thinned.values.iter().zip(&low).zip(&high) {
            assert!(low <= value && value <= high, "{low:?} {value:?} {high:?}");
        }
    }

    #[test]
    fn gaps_stay_gaps() {
        let values: Vec<Option<f64>> =
            (0..100).map(|n| (!(20..40).contains(&n)).then_some(f64::from(n))).collect();
        let thinned = Envelope::new(&even(&values), groups(values.len(), 20));
        let gaps: Vec<usize> = thinned
            .values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_none())
            .map(|(at, _)| at)
            .collect();
        assert_eq!(gaps, [4, 5, 6, 7]);
        assert_eq!(thinned.low.unwrap()[5], None);
    }

    #[test]
    fn a_short_series_is_unchanged() {
        let values = [Some(1.0), None, Some(3.0)];
        let whole = Envelope::new(&even(&values), groups(3, 3));
        assert_eq!(whole, Envelope { values: values.to_vec(), low: None, high: None });
        assert_eq!(Envelope::new(&[], groups(0, 3)).values, []);
    }

    #[test]
    fn a_mean_is_by_weight() {
        let values = [(10.0, 1.0), (40.0, 2.0)].map(|(value, weight)| Weighed { value: Some(value), weight });
        assert_eq!(Envelope::new(&values, groups(2, 1)).values, [Some(30.0)]);
    }

    #[test]
    fn figures_have_five_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (123_456.0, "123460"),
            (99_999.6, "100000"),
            (-0.001_234_567, "-0.0012346"),
            (1.0 / 3.0, "0.33333"),
            (2.0_f64.powi(60), "1152900000000000000"),
            (5e-9, "0.000000005"),
        ] {
            assert_eq!(figure(value).to_string(), expected);
        }
    }
}
