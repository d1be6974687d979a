//! Intervals of a load, which two files have: the counts are in `series.parquet`, the histograms in `latency.hlog`.

use model::message::Interval;

use crate::error::Defect;
use crate::files::Files;
use crate::{hlog, series};

/// The series, each row with its histograms from `latency.hlog`.
pub(crate) fn read(files: &mut Files) -> Result<Vec<Interval>, Defect> {
    let mut intervals = files.remove(series::FILE).map_or(Ok(Vec::new()), series::read)?;
    let Some(log) = files.remove(hlog::FILE) else { return Ok(intervals) };
    let mut row = 0;
    for line in hlog::read(&text(hlog::FILE, log)?)? {
        // The lines are in the order of the rows.
        while intervals.get(row).is_some_and(|interval| !line.matches(interval)) {
            row += 1;
        }
        let mut scripts =
            intervals.get_mut(row).into_iter().flat_map(|i| i.scripts.iter_mut().chain(&mut i.background));
        let script = scripts.find(|script| script.script == line.script);
        let Some(script) = script else {
            let reason = format!(
                "{} has no row for script \"{}\" at {} µs, or not in this order",
                series::FILE,
                line.script,
                line.start_us
            );
            return Err(Defect::damaged(hlog::FILE, reason));
        };
        if !line.service {
            script.latencies_of(line.phase).latency_ns = line.payload;
        } else if let Some(known) = script.latencies.iter_mut().find(|known| known.phase == line.phase) {
            known.service_ns = Some(line.payload);
        } else {
            let reason = format!(
                "script \"{}\" at {} µs has service times without latencies",
                line.script, line.start_us
            );
            return Err(Defect::damaged(hlog::FILE, reason));
        }
    }
    Ok(intervals)
}

/// A file as text.
pub(crate) fn text(file: &str, content: Vec<u8>) -> Result<String, Defect> {
    String::from_utf8(content).map_err(|error| Defect::damaged(file, format!("it is not UTF-8: {error}")))
}
