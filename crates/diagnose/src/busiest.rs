//! The processes that used the CPU time of others: neither the server's, nor pgdyno's, nor the kernel's.

use model::metrics::{Metrics, Series};
use model::process_share::ProcessShare;

/// Most names of one finding.
const MAX_NAMES: usize = 5;
/// Share of the CPU time from which a name is kept.
const MIN_SHARE: f64 = 0.005;

/// Names of those that used most CPU time in a span, busiest first, and the others summed; empty if no name is known.
/// `total_us` is the time of all CPUs, `foreign_us` what others used of it: none if it is not all theirs.
pub(crate) fn busiest(
    metrics: &Metrics,
    (from_us, to_us): (i64, i64),
    total_us: f64,
    foreign_us: Option<f64>,
) -> Vec<ProcessShare> {
    let names = metrics.all("foreign.run_us");
    let used = names.filter_map(|series| Some((series.label.as_deref()?, used_us(series, from_us, to_us)?)));
    let mut used: Vec<(&str, f64)> = used.filter(|(_, us)| *us > 0.0).collect();
    used.sort_by(|(a, a_us), (b, b_us)| b_us.total_cmp(a_us).then_with(|| a.cmp(b)));
    let all_us: f64 = used.iter().map(|(_, us)| us).sum();
    // The kernel counts the CPUs' time by samples and may take CPU steal from it, but not from that of processes.
    let scale = foreign_us.map_or(1.0, |foreign_us| (foreign_us / all_us).min(1.0));
    let shares = used.iter().map(|(name, us)| (*name, scale * us / total_us));
    let mut busiest: Vec<ProcessShare> = shares
        .filter(|(_, share)| *share >= MIN_SHARE)
        .take(MAX_NAMES)
        .map(|(name, share)| ProcessShare { name: Some(name.to_owned()), share })
        .collect();
    if busiest.is_empty() {
        return busiest;
    }
    let named: f64 = busiest.iter().map(|process| process.share).sum();
    let others = foreign_us.unwrap_or(all_us) / total_us - named;
    busiest.extend((others >= MIN_SHARE).then_some(ProcessShare { name: None, share: others }));
    busiest
}

/// CPU time of a name in a span. It is reported from when it had used much, and had hardly used any before.
fn used_us(series: &Series, from_us: i64, to_us: i64) -> Option<f64> {
    let first = series.points.iter().find(|point| point.value.is_some())?;
    if first.at_us <= from_us {
        return series.growth(from_us, to_us);
    }
    Some(first.value? + series.growth(first.at_us, to_us)?)
}

#[cfg(test)]
mod tests {
    use model::metric;
    use model::metrics::Point;

    use super::*;

    const SECOND: i64 = 1_000_000;

    fn metrics(names: &[(&str, &[(i64, f64)])]) -> Metrics {
        let series = |(name, points): &(&str, &[(i64, f64)])| {
            let points = points
                .iter()
                .map(|&(at_s, s)| Point { at_us: at_s * SECOND, value: Some(s * 1e6) })
                .collect();
            Series::new(metric!("foreign.run_us"), Some((*name).to_owned()), points)
        };
        Metrics(names.iter().map(series).collect())
    }

    fn shares(metrics: &Metrics, foreign_s: Option<f64>) -> Vec<(String, i64)> {
        let found = busiest(metrics, (2 * SECOND, 6 * SECOND), 8e6, foreign_s.map(|s| s * 1e6));
        let name = |process: ProcessShare| {
            (process.name.unwrap_or_default(), (process.share * 1000.0).round() as i64)
        };
        found.into_iter().map(name).collect()
    }

    fn named<const N: usize>(names: [(&str, i64); N]) -> Vec<(String, i64)> {
        names.map(|(name, share)| (name.to_owned(), share)).to_vec()
    }

    #[test]
    fn growth_in_the_window_counts_and_what_is_not_known_is_others() {
        let metrics = metrics(&[
            ("cargo", &[(0, 5.0), (2, 5.0), (6, 5.4)]),
            // Reported within the window.
            ("cc1", &[(4, 0.6), (6, 2.0)]),
            ("before", &[(0, 3.0), (2, 9.0), (6, 9.0)]),
            ("after", &[(7, 3.0)]),
            ("idle", &[(0, 0.0), (2, 0.0), (6, 0.01)]),
        ]);
        assert_eq!(shares(&metrics, Some(3.2)), named([("cc1", 250), ("cargo", 50), ("", 100)]));
        assert_eq!(shares(&metrics, None), named([("cc1", 250), ("cargo", 50)]));
        // The names' time is never more than all of it.
        assert_eq!(shares(&metrics, Some(1.205)), named([("cc1", 125), ("cargo", 25)]));
    }

    #[test]
    fn the_less_busy_are_others() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let points: Vec<[(i64, f64); 2]> = (1..=7).map(|n| [(2, 0.0), (6, f64::from(n) * 0.08)]).collect();
        let series: Vec<(&str, &[(i64, f64)])> =
            names.into_iter().zip(points.iter().map(|points| &points[..])).collect();
        let found = shares(&metrics(&series), Some(2.24));
        assert_eq!(found, named([("g", 70), ("f", 60), ("e", 50), ("d", 40), ("c", 30), ("", 30)]));
    }

    #[test]
    fn without_names_nothing_is_known() {
        assert!(shares(&Metrics::default(), Some(4.0)).is_empty());
    }
}
