//! `metrics.parquet`: the collectors' readings, one row each.
//!
//! The readings of a series are contiguous and in order of time, and the series are in the order of the record: similar
//! values are adjacent, which makes the file small, and a record is read back unchanged.

use model::metrics::{Metrics, Point, Series};

use crate::columns::{self, Column, Table, Text, Values};
use crate::error::Defect;
use crate::format::known;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "metrics.parquet";

const AT: &str = "at_us";
const METRIC: &str = "metric";
const LABEL: &str = "of";
const KIND: &str = "kind";
const VALUE: &str = "value";

/// Encodes readings as a file.
pub(crate) fn write(trial: &str, metrics: &Metrics) -> Result<Vec<u8>, Defect> {
    let text = |of: fn(&Series) -> Option<&str>| {
        let each = |series| std::iter::repeat_n(of(series).map(Text::from), series.points.len());
        Values::Text(metrics.0.iter().flat_map(each).collect())
    };
    let points = || metrics.0.iter().flat_map(|series| &series.points);
    let columns = [
        Column::required(AT, Values::Integer(points().map(|point| Some(point.at_us)).collect())),
        Column::required(METRIC, text(|series| Some(&series.metric))),
        Column::optional(LABEL, text(|series| series.label.as_deref())),
        Column::required(KIND, text(|series| Some(series.kind.as_str()))),
        Column::optional(VALUE, Values::Real(points().map(|point| point.value).collect())),
    ];
    columns::write(FILE, trial, &columns)
}

/// Reads the file.
pub(crate) fn read(file: Vec<u8>) -> Result<Metrics, Defect> {
    let table = columns::read(FILE, file)?;
    let at_us = table.required(AT, Table::times)?;
    let metric = table.required(METRIC, Table::texts)?;
    let label = table.texts(LABEL)?;
    let kind = table.required(KIND, Table::texts)?;
    let value = table.reals(VALUE)?;
    let same = |row: usize| (&metric[row], &label[row], &kind[row]);
    let mut metrics: Vec<Series> = Vec::new();
    for row in 0..table.rows() {
        if row == 0 || same(row) != same(row - 1) {
            metrics.push(Series {
                metric: metric[row].to_string(),
                label: label[row].as_deref().map(str::to_owned),
                kind: known(FILE, "kind of metric", &kind[row])?,
                points: Vec::new(),
            });
        }
        if let Some(series) = metrics.last_mut() {
            series.points.push(Point { at_us: at_us[row], value: value[row] });
        }
    }
    Ok(Metrics(metrics))
}

#[cfg(test)]
mod tests {
    use model::metrics::Kind;

    use super::*;

    /// Ten minutes of 400 series as from a busy server: five sources, read at slightly different times; 60% counters,
    /// of which a third never change, and gauges.
    fn ten_minutes() -> Metrics {
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut metrics = Metrics::default();
        let moments: Vec<Vec<i64>> = (0..5)
            .map(|_| (0..600).map(|second| second * 1_000_000 + random(900) as i64).collect())
            .collect();
        for number in 0..400_usize {
            let kind = if number % 5 < 3 { Kind::Counter } else { Kind::Gauge };
            let step = 10_u64.pow(number as u32 % 6);
            let mut counter = random(1 << 34);
            let points = moments[number % 5].iter().map(|&at_us| {
                let value = match kind {
                    Kind::Counter if number % 3 == 0 => counter,
                    Kind::Counter => {
                        counter += step + random(step);
                        counter
                    }
                    Kind::Gauge => 4096 * random(step),
                };
                Point { at_us, value: Some(value as f64) }
            });
            let points = points.collect();
            let (metric, of) =
                (format!("source{}.metric{}_us", number % 5, number / 8), format!("cpu{}", number % 8));
            metrics.0.push(Series { metric, label: Some(of), kind, points });
        }
        metrics
    }

    #[test]
    fn ten_minutes_of_many_series_stay_small() {
        let metrics = ten_minutes();
        let file = write("trial", &metrics).unwrap();
        assert!(file.len() < 700_000, "{} bytes for 240000 readings", file.len());
        assert_eq!(read(file).unwrap(), metrics);
    }
}
