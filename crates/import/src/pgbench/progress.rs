//! Progress reports: `progress: 1.0 s, 5120.3 tps, lat 0.195 ms stddev 0.041, 0 failed`.
//!
//! Without latency up to 9.3, with failures from 15; with `--progress-timestamp` the time is since the Unix epoch.

use model::message::{Interval, Phase, ScriptInterval};
use model::metrics::{Kind, Metrics, Point, Series};

use super::timestamp;
use crate::import::Draft;

/// One report.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    at_s: f64,
    tps: f64,
    mean_ms: Option<f64>,
    stddev_ms: Option<f64>,
    failed: Option<u64>,
}

/// All reports in a text, in order.
pub(super) fn read(text: &str) -> Vec<Report> {
    // A report may follow other output on its line.
    text.lines().filter_map(|line| report(line.split_once("progress: ")?.1)).collect()
}

fn report(text: &str) -> Option<Report> {
    let mut parts = text.trim_end().split(", ");
    let figure =
        |text: &str| text.trim().parse::<f64>().ok().filter(|figure| figure.is_finite() && *figure >= 0.0);
    let at_s = figure(parts.next()?.strip_suffix(" s")?)?;
    let tps = figure(parts.next()?.strip_suffix(" tps")?)?;
    let mut report = Report { at_s, tps, mean_ms: None, stddev_ms: None, failed: None };
    for part in parts {
        if let Some(latency) = part.strip_prefix("lat ") {
            let (mean, stddev) = latency.split_once(" ms stddev ").unwrap_or((latency, ""));
            // Without transactions there is no latency.
            if tps > 0.0 {
                report.mean_ms = figure(mean.trim_end_matches(" ms"));
                report.stddev_ms = figure(stddev);
            }
        } else if let Some(failed) = part.strip_suffix(" failed") {
            report.failed = failed.parse().ok();
        }
    }
    Some(report)
}

/// Times from this on must be since the epoch.
const MIN_EPOCH_S: f64 = 1e9;
/// Maximum time between two reports of a run; anything longer is damaged.
const MAX_INTERVAL_S: f64 = 1e6;

/// Adds the series of reports to a draft. Transactions are the reported throughput times the time since the previous
/// report: as exact as pgbench rounds these.
pub(super) fn add_to(reports: &[Report], script: &str, draft: &mut Draft) {
    let Some(first) = reports.first() else { return };
    let since_epoch = first.at_s >= MIN_EPOCH_S;
    let origin_s = match (since_epoch, reports.get(1)) {
        (false, _) => 0.0,
        (true, Some(second)) => first.at_s - (second.at_s - first.at_s),
        // The length of its interval is unknown.
        (true, None) => return,
    };
    let mut before_s = origin_s;
    let mut intervals = Vec::new();
    let mut gauges = [("pgbench.latency_mean_us", Vec::new()), ("pgbench.latency_stddev_us", Vec::new())];
    for report in reports {
        let width_s = report.at_s - before_s;
        if !(0.0..MAX_INTERVAL_S).contains(&width_s) {
            let note = "the progress reports are not in order of time and were ignored";
            draft.notes.push(note.to_owned());
            return;
        }
        if width_s == 0.0 {
            continue;
        }
        let us = |at_s: f64| ((at_s - origin_s) * 1e6).round() as u64;
        let (start_us, end_us) = (us(before_s), us(report.at_s));
        intervals.push(Interval {
            start_us,
            width_us: end_us - start_us,
            phase: Phase::Measure,
            scripts: vec![ScriptInterval {
                script: script.to_owned(),
                transactions: (report.tps * width_s).round() as u64,
                failed: report.failed,
                unfinished: None,
                latencies: Vec::new(),
            }],
            background: Vec::new(),
            spans: Vec::new(),
            busy: None,
            lag_max_us: None,
            lag_mean_us: None,
            responses: None,
            send_lag_max_us: None,
        });
        for (points, value_ms) in
            gauges.iter_mut().map(|(_, points)| points).zip([report.mean_ms, report.stddev_ms])
        {
            points.push(Point { at_us: end_us as i64, value: value_ms.map(|ms| ms * 1e3) });
        }
        before_s = report.at_s;
    }
    draft.intervals = intervals;
    let series = |(metric, points): (&str, Vec<Point>)| Series {
        metric: metric.to_owned(),
        label: None,
        kind: Kind::Gauge,
        points,
    };
    let known = gauges.into_iter().filter(|(_, points)| points.iter().any(|point| point.value.is_some()));
    draft.metrics = Metrics(known.map(series).collect());
    if since_epoch {
        draft.load_started = timestamp((origin_s * 1e6) as i64);
        draft.started = draft.load_started;
    }
    draft.notes.push(
        "transactions of each second are the reported throughput times the time between reports, both rounded by \
         pgbench"
            .to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use model::cell::RecordedCell;
    use proptest::prelude::*;

    use super::*;

    fn draft_of(text: &str) -> Draft {
        let mut draft = Draft::new(RecordedCell::default(), 1.0);
        add_to(&read(text), "select-only", &mut draft);
        draft
    }

    #[test]
    fn every_form_of_a_report_is_read() {
        let reports = read(
            "progress: 1.0 s, 512.3 tps\n\
             progress: 2.0 s, 6.5 tps, lat 1.954 ms stddev 0.411, lag 0.123 ms, 3 skipped\n\
             pgbench: x progress: 1447774123.456 s, 0.0 tps, lat -nan ms stddev -nan\n\
             progress: 4.0 s, 10.0 tps, lat 2.000 ms stddev 0.500, 7 failed, 1 retried, 2 retries\n\
             progress: never\nprogress: 5.0 s, many tps\n",
        );
        let known: Vec<_> =
            reports.iter().map(|r| (r.at_s, r.tps, r.mean_ms, r.stddev_ms, r.failed)).collect();
        assert_eq!(
            known,
            [
                (1.0, 512.3, None, None, None),
                (2.0, 6.5, Some(1.954), Some(0.411), None),
                (1_447_774_123.456, 0.0, None, None, None),
                (4.0, 10.0, Some(2.0), Some(0.5), Some(7)),
            ]
        );
    }

    #[test]
    fn a_series_is_as_long_as_the_time_between_reports() {
        let draft = draft_of("progress: 1.0 s, 100.4 tps\nprogress: 3.0 s, 50.0 tps\n");
        let each: Vec<_> =
            draft.intervals.iter().map(|i| (i.start_us, i.width_us, i.scripts[0].transactions)).collect();
        assert_eq!(each, [(0, 1_000_000, 100), (1_000_000, 2_000_000, 100)]);
        assert_eq!(draft.metrics, Metrics::default());
        let disorder = draft_of("progress: 2.0 s, 100.4 tps\nprogress: 1.0 s, 50.0 tps\n");
        assert!(disorder.intervals.is_empty() && disorder.notes.len() == 1);
    }

    #[test]
    fn timestamps_since_the_epoch_determine_the_start() {
        let draft = draft_of("progress: 1447774123.500 s, 9.0 tps\nprogress: 1447774124.500 s, 9.0 tps\n");
        assert_eq!(draft.started.unwrap().to_string(), "2015-11-17T15:28:42.5Z");
        assert_eq!(draft.intervals.len(), 2);
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "(progress: [0-9e.-]{0,12} s, [0-9e.]{0,6} tps(, lat [0-9.na-]{0,5} ms stddev [0-9.]{0,4})?\n){0,5}") {
            draft_of(&text);
        }
    }
}
