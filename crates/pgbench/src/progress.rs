//! The lines of `--progress`.

use std::fmt::Write;

use driver::Record;

use crate::counts::Counts;
use crate::task::Benchmark;

/// The line of an interval; the load began at `started_unix_us` (microseconds since the Unix epoch).
pub(crate) fn line(task: &Benchmark, record: &Record, started_unix_us: i64) -> String {
    let counts = Counts::from_scripts(&record.scripts);
    let timestamp = task.progress.is_some_and(|progress| progress.timestamp);
    let time = if timestamp {
        format!("{:.3}", started_unix_us as f64 / 1e6 + record.end_ns as f64 / 1e9)
    } else {
        format!("{:.1}", record.end_ns as f64 / 1e9)
    };
    let length_s = record.end_ns.saturating_sub(record.start_ns) as f64 / 1e9;
    let tps = if length_s > 0.0 { counts.done() as f64 / length_s } else { 0.0 };
    let ms = |ns: f64| ns / 1e6;
    let mut line = format!(
        "progress: {time} s, {tps:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
        ms(counts.latency.mean),
        ms(counts.latency.stddev()),
        counts.failed()
    );
    if task.rate.is_some() {
        let _ = write!(line, ", lag {:.3} ms", ms(counts.lag.mean));
        if task.latency_limit.is_some() {
            let _ = write!(line, ", {} skipped", counts.skipped);
        }
    }
    if task.max_tries != Some(1) {
        let _ = write!(line, ", {} retried, {} retries", counts.retried, counts.retries);
    }
    line.push('\n');
    line
}
