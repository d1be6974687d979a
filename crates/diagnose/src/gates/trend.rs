//! Was throughput stationary?

use stats::{Sample, Trend};

use super::{Gate, GateFinding, Observation, at_most, percent, suspect};

pub(super) const GATES: [Gate; 1] = [("trend", trend)];

/// Length of the spans whose mean throughputs are tested: neighbouring seconds are correlated.
const SPAN_US: u64 = 30_000_000;

fn trend(observed: &Observation) -> Option<GateFinding> {
    // A trial that ends early is invalid, and one in an open loop has the schedule's throughput.
    if observed.interrupted || observed.idle_at_times {
        return None;
    }
    let spans = spans(observed);
    let trend = Trend::new(&spans)?;
    let median = Sample::new(spans.iter().copied())?.median();
    let drift = trend.slope * (spans.len() - 1) as f64 / median;
    let thresholds = &observed.thresholds;
    if trend.p > thresholds.trend_p || drift.is_nan() || drift.abs() <= thresholds.trend_share {
        return None;
    }
    let direction = if drift > 0.0 { "rose" } else { "fell" };
    let evidence = format!(
        "throughput {direction} by {} over the window (Mann-Kendall p = {:.2e})",
        percent(drift.abs()),
        trend.p
    );
    Some(
        suspect(evidence)
            .with_threshold(format!("{}, or p above {}", at_most(thresholds.trend_share), thresholds.trend_p))
            .with_advice(
                "use a longer warm-up (run.warmup), or find out what grows: tables, WAL, a filling cache",
            ),
    )
}

/// Transactions per second in each complete span of the window.
fn spans(observed: &Observation) -> Vec<f64> {
    let (mut spans, mut transactions, mut width_us) = (Vec::new(), 0, 0);
    for interval in observed.measured() {
        transactions += interval.scripts.iter().map(|script| script.transactions).sum::<u64>();
        width_us += interval.width_us;
        if width_us >= SPAN_US {
            spans.push(transactions as f64 / width_us as f64 * 1e6);
            (transactions, width_us) = (0, 0);
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use model::message::Phase;
    use model::record::Status;

    use super::super::fixture::{TrialFixture, gates, interval};

    /// A window of this many seconds whose throughput changes by `slope` per second.
    fn window(seconds: u64, slope: i64) -> (Status, Vec<&'static str>) {
        let mut trial = TrialFixture::new();
        let each = |second: u64| {
            let noise = [0, 70, -40, 20, -60, 10, 50, -50][second as usize / 7 % 8];
            let transactions = (10_000 + noise + slope * second as i64) as u64;
            interval(second * 1_000_000, Phase::Measure, transactions)
        };
        trial.intervals = (0..seconds).map(each).collect();
        gates(&trial.observed())
    }

    #[test]
    fn drifting_throughput_in_a_long_window_makes_the_trial_suspect() {
        assert_eq!(window(300, -10), (Status::Suspect, vec!["trend"]));
        assert_eq!(window(300, 10), (Status::Suspect, vec!["trend"]));
        assert_eq!(window(300, 0), (Status::Valid, vec![]));
        assert_eq!(window(300, 1), (Status::Valid, vec![]), "a trend, of 3%");
        assert_eq!(window(299, -10), (Status::Valid, vec![]), "too short to tell");
    }
}
