//! `series.parquet`: the load's metrics, one row per interval (1 s, or less at the end of a phase).
//!
//! `start_us`, `width_us` and `phase` are in every row. Every other column is a metric that may be null, named
//! `<source>.<metric>[.<label>]`, with the unit as suffix of the metric's name. Readers find columns by name and ignore
//! unknown ones. docs/bundle.md lists them.

use model::message::{Interval, ScriptInterval};

use crate::columns::{self, Column, Table, Text, Values};
use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "series.parquet";

const START: &str = "start_us";
const WIDTH: &str = "width_us";
const PHASE: &str = "phase";
const BUSY: &str = "driver.busy_share";
const LAG_MAX: &str = "driver.lag_max_us";
const RESPONSES: &str = "driver.responses";
const LAG_MEAN: &str = "driver.lag_mean_us";
const SEND_LAG_MAX: &str = "driver.send_lag_max_us";

/// Prefixes of the columns of scripts.
struct Prefixes {
    transactions: &'static str,
    failed: &'static str,
    unfinished: &'static str,
}

const MAIN: Prefixes = Prefixes {
    transactions: "driver.transactions.",
    failed: "driver.failed.",
    unfinished: "driver.unfinished.",
};
const BACKGROUND: Prefixes = Prefixes {
    transactions: "beside.transactions.",
    failed: "beside.failed.",
    unfinished: "beside.unfinished.",
};

/// Encodes intervals as a file.
pub(crate) fn write(trial: &str, intervals: &[Interval]) -> Result<Vec<u8>, Defect> {
    columns::write(FILE, trial, &columns(intervals)?)
}

/// Reads a series. The histograms are in `latency.hlog`: `latencies` is empty in every interval.
pub(crate) fn read(file: Vec<u8>) -> Result<Vec<Interval>, Defect> {
    let table = columns::read(FILE, file)?;
    let start_us = table.required(START, Table::later_times)?;
    let width_us = table.required(WIDTH, Table::later_times)?;
    let phase = table.required(PHASE, Table::texts)?;
    let scripts = Script::all(&table, &MAIN)?;
    let background = Script::all(&table, &BACKGROUND)?;
    let busy = table.reals(BUSY)?;
    let lag_max_us = table.reals(LAG_MAX)?;
    let lag_mean_us = table.reals(LAG_MEAN)?;
    let responses = table.counts(RESPONSES)?;
    let send_lag_max_us = table.reals(SEND_LAG_MAX)?;
    let interval = |row: usize| {
        Ok(Interval {
            start_us: start_us[row],
            width_us: width_us[row],
            phase: phase[row].parse().map_err(|_| {
                let name = &phase[row];
                let reason = format!("column {PHASE} contains \"{name}\", which is not a phase");
                Defect::damaged(FILE, format!("row {}: {reason}", row + 1))
            })?,
            scripts: scripts.iter().filter_map(|script| script.interval(row)).collect(),
            background: background.iter().filter_map(|script| script.interval(row)).collect(),
            spans: Vec::new(),
            busy: busy[row],
            lag_max_us: lag_max_us[row],
            lag_mean_us: lag_mean_us[row],
            responses: responses[row],
            send_lag_max_us: send_lag_max_us[row],
        })
    };
    (0..table.rows()).map(interval).collect()
}

fn columns(intervals: &[Interval]) -> Result<Vec<Column>, Defect> {
    let counts = |of: fn(&Interval) -> Option<u64>| Values::counts(FILE, intervals.iter().map(of));
    let reals = |of: fn(&Interval) -> Option<f64>| Values::Real(intervals.iter().map(of).collect());
    let phase = intervals.iter().map(|interval| Some(Text::from(interval.phase.as_str()))).collect();
    let mut columns = vec![
        Column::required(START, counts(|i| Some(i.start_us))?),
        Column::required(WIDTH, counts(|i| Some(i.width_us))?),
        Column::required(PHASE, Values::Text(phase)),
    ];
    script_columns(&mut columns, intervals, |interval| &interval.scripts, &MAIN)?;
    script_columns(&mut columns, intervals, |interval| &interval.background, &BACKGROUND)?;
    columns.push(Column::optional(BUSY, reals(|i| i.busy)));
    columns.push(Column::optional(LAG_MAX, reals(|i| i.lag_max_us)));
    columns.push(Column::optional(LAG_MEAN, reals(|i| i.lag_mean_us)));
    columns.push(Column::optional(RESPONSES, counts(|i| i.responses)?));
    columns.push(Column::optional(SEND_LAG_MAX, reals(|i| i.send_lag_max_us)));
    Ok(columns)
}

/// Adds the columns of each script, in the load's order; that of unfinished transactions if they are known.
fn script_columns(
    columns: &mut Vec<Column>,
    intervals: &[Interval],
    scripts: fn(&Interval) -> &Vec<ScriptInterval>,
    prefixes: &Prefixes,
) -> Result<(), Defect> {
    let mut names: Vec<&str> = Vec::new();
    for script in intervals.iter().flat_map(scripts) {
        if !names.contains(&script.script.as_str()) {
            names.push(&script.script);
        }
    }
    for name in names {
        let counts = |of: fn(&ScriptInterval) -> Option<u64>| {
            let value = |i: &Interval| scripts(i).iter().find(|s| s.script == name).and_then(of);
            Values::counts(FILE, intervals.iter().map(value))
        };
        let Prefixes { transactions, failed, unfinished } = prefixes;
        columns.push(Column::optional(format!("{transactions}{name}"), counts(|s| Some(s.transactions))?));
        columns.push(Column::optional(format!("{failed}{name}"), counts(|s| s.failed)?));
        let mut all = intervals.iter().flat_map(scripts).filter(|script| script.script == name);
        if all.any(|script| script.unfinished.is_some()) {
            columns.push(Column::optional(format!("{unfinished}{name}"), counts(|s| s.unfinished)?));
        }
    }
    Ok(())
}

/// The columns of one script.
struct Script {
    name: String,
    transactions: Vec<Option<u64>>,
    failed: Vec<Option<u64>>,
    unfinished: Vec<Option<u64>>,
}

impl Script {
    fn all(table: &Table, prefixes: &Prefixes) -> Result<Vec<Self>, Defect> {
        let Prefixes { transactions, failed, unfinished } = prefixes;
        let series = |name: &str| {
            Ok(Self {
                name: name.to_owned(),
                transactions: table.counts(&format!("{transactions}{name}"))?,
                failed: table.counts(&format!("{failed}{name}"))?,
                unfinished: table.counts(&format!("{unfinished}{name}"))?,
            })
        };
        table.names().filter_map(|column| column.strip_prefix(*transactions)).map(series).collect()
    }

    /// The script's results in a row; `None` if it was not part of the interval.
    fn interval(&self, row: usize) -> Option<ScriptInterval> {
        Some(ScriptInterval {
            script: self.name.clone(),
            transactions: self.transactions[row]?,
            failed: self.failed[row],
            unfinished: self.unfinished[row],
            latencies: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::message::Phase;
    use proptest::prelude::*;

    use super::*;

    fn intervals() -> Vec<Interval> {
        let interval = |n: u64| Interval {
            start_us: n * 1_000_000,
            width_us: 1_000_000,
            phase: if n == 0 { Phase::Warmup } else { Phase::Measure },
            scripts: vec![ScriptInterval {
                script: "select-only".to_owned(),
                transactions: 1000 + n,
                failed: Some(0),
                unfinished: (n > 25).then_some(n % 2),
                latencies: Vec::new(),
            }],
            background: Vec::new(),
            spans: Vec::new(),
            busy: Some(0.5),
            lag_max_us: Some(n as f64),
            lag_mean_us: n.is_multiple_of(2).then_some(0.25),
            responses: (n > 2).then_some(1000 + n),
            send_lag_max_us: (n > 3).then_some(2.0),
        };
        (0..30).map(interval).collect()
    }

    #[test]
    fn a_script_that_began_late_is_null_before() {
        let mut intervals = intervals();
        intervals[0].scripts.clear();
        intervals[1].lag_mean_us = None;
        assert_eq!(read(write("trial", &intervals).unwrap()).unwrap(), intervals);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn no_file_crashes_the_reader(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
            let mut file = write("trial", &intervals()).unwrap();
            for (at, byte) in changes {
                let at = at.index(file.len());
                file[at] = byte;
            }
            let _ = read(file);
        }
    }
}
