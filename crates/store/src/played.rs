//! `played.parquet`: what became of the statements of a trace, and their plans.

use std::collections::BTreeMap;

use model::trace::{OverTime, PlanNode, PlayedStatement, SLICES, Slice};
use model::wait_events::canonical;

use crate::columns::{self, Column, Table, Text, Values};
use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "played.parquet";

const FINGERPRINT: &str = "fingerprint";
const TEXT: &str = "statement";
const CALLS: &str = "calls";
const FAILURES: &str = "failures";
const DIFFERENT: &str = "different";
const NOT_EXECUTED: &str = "not_executed";
const ROWS: &str = "rows";
const TOTAL: &str = "total_ns";
const LATENCY: &str = "latency_ns";
const SLICE: &str = "slice_us";
const SLICES_OF: &str = "slices";
const WAITS: &str = "waits";
const WITHOUT_WAITS: &str = "without_waits";
const PLAN: &str = "plan";
const WITHOUT_PLAN: &str = "without_plan";

/// Encodes statements as a file.
pub(crate) fn write(trial: &str, statements: &[PlayedStatement]) -> Result<Vec<u8>, Defect> {
    let counts =
        |of: fn(&PlayedStatement) -> u64| Values::counts(FILE, statements.iter().map(|s| Some(of(s))));
    let texts = |of: fn(&PlayedStatement) -> Option<&str>| {
        Values::Text(statements.iter().map(|s| of(s).map(Text::from)).collect())
    };
    let json = |texts: Result<Vec<Option<String>>, serde_json::Error>| {
        let texts = texts.map_err(|error| Defect::damaged(FILE, error))?;
        Ok::<_, Defect>(Values::Text(texts.into_iter().map(|text| text.map(Text::from)).collect()))
    };
    let failures = statements.iter().map(|s| serde_json::to_string(&s.failures).map(Some));
    let slices = statements.iter().map(|s| s.over_time.as_ref().map(|of| slices(&of.slices)).transpose());
    let waits = statements.iter().map(|s| s.waits.as_ref().map(serde_json::to_string).transpose());
    let plans = statements.iter().map(|s| s.plan.as_ref().map(serde_json::to_string).transpose());
    let columns = [
        Column::required(FINGERPRINT, texts(|s| Some(&s.fingerprint))),
        Column::required(TEXT, texts(|s| Some(&s.text))),
        Column::required(CALLS, counts(|s| s.calls)?),
        Column::required(FAILURES, json(failures.collect())?),
        Column::required(DIFFERENT, counts(|s| s.different)?),
        Column::required(NOT_EXECUTED, counts(|s| s.not_executed)?),
        Column::required(ROWS, counts(|s| s.rows)?),
        Column::required(TOTAL, counts(|s| s.total_ns)?),
        Column::required(LATENCY, texts(|s| Some(&s.latency_ns))),
        Column::optional(
            SLICE,
            Values::counts(FILE, statements.iter().map(|s| s.over_time.as_ref().map(|of| of.slice_us)))?,
        ),
        Column::optional(SLICES_OF, json(slices.collect())?),
        Column::optional(WAITS, json(waits.collect())?),
        Column::optional(WITHOUT_WAITS, texts(|s| s.without_waits.as_deref())),
        Column::optional(PLAN, json(plans.collect())?),
        Column::optional(WITHOUT_PLAN, texts(|s| s.without_plan.as_deref())),
    ];
    columns::write(FILE, trial, &columns)
}

/// Reads the file.
pub(crate) fn read(file: Vec<u8>) -> Result<Vec<PlayedStatement>, Defect> {
    let table = columns::read(FILE, file)?;
    let fingerprint = table.required(FINGERPRINT, Table::texts)?;
    let text = table.required(TEXT, Table::texts)?;
    let calls = table.required(CALLS, Table::counts)?;
    let failures = table.required(FAILURES, Table::texts)?;
    let different = table.required(DIFFERENT, Table::counts)?;
    let not_executed = table.required(NOT_EXECUTED, Table::counts)?;
    let rows = table.required(ROWS, Table::counts)?;
    let total_ns = table.required(TOTAL, Table::counts)?;
    let latency_ns = table.required(LATENCY, Table::texts)?;
    let slice_us = table.counts(SLICE)?;
    let slices = table.texts(SLICES_OF)?;
    let waits = table.texts(WAITS)?;
    let without_waits = table.texts(WITHOUT_WAITS)?;
    let plan = table.texts(PLAN)?;
    let without_plan = table.texts(WITHOUT_PLAN)?;
    let damaged = |error: serde_json::Error| Defect::damaged(FILE, error);
    let statement = |row: usize| {
        let failures: BTreeMap<String, u64> = serde_json::from_str(&failures[row]).map_err(damaged)?;
        let plan: Option<PlanNode> =
            plan[row].as_deref().map(serde_json::from_str).transpose().map_err(damaged)?;
        Ok(PlayedStatement {
            fingerprint: fingerprint[row].to_string(),
            text: text[row].to_string(),
            calls: calls[row],
            failures,
            different: different[row],
            not_executed: not_executed[row],
            rows: rows[row],
            total_ns: total_ns[row],
            latency_ns: latency_ns[row].to_string(),
            over_time: over_time(slice_us[row], slices[row].as_deref())?,
            waits: waits[row].as_deref().map(read_waits).transpose()?,
            without_waits: without_waits[row].as_deref().map(str::to_owned),
            plan,
            without_plan: without_plan[row].as_deref().map(str::to_owned),
        })
    };
    (0..table.rows()).map(statement).collect()
}

/// Slices as JSON: an array of number, calls, failures and time for each.
fn slices(slices: &[Slice]) -> Result<String, serde_json::Error> {
    let figures = |slice: &Slice| (slice.number, slice.calls, slice.failures, slice.total_ns);
    serde_json::to_string(&slices.iter().map(figures).collect::<Vec<_>>())
}

fn over_time(slice_us: Option<u64>, slices: Option<&str>) -> Result<Option<OverTime>, Defect> {
    let (Some(slice_us), Some(slices)) = (slice_us, slices) else { return Ok(None) };
    let figures: Vec<(u32, u64, u64, u64)> =
        serde_json::from_str(slices).map_err(|error| Defect::damaged(FILE, error))?;
    let is_ascending = figures.is_sorted_by(|a, b| a.0 < b.0);
    if !is_ascending || figures.last().is_some_and(|last| last.0 >= SLICES) {
        let why = format!("the numbers of slices are not ascending and below {SLICES}");
        return Err(Defect::damaged(FILE, why));
    }
    let slices = figures.into_iter().map(|(number, calls, failures, total_ns)| Slice {
        number,
        calls,
        failures,
        total_ns,
    });
    Ok(Some(OverTime { slice_us, slices: slices.collect() }))
}

fn read_waits(text: &str) -> Result<BTreeMap<String, u64>, Defect> {
    serde_json::from_str(text).map(with_canonical_names).map_err(|error| Defect::damaged(FILE, error))
}

/// Waits with the names of PostgreSQL 18.
pub(crate) fn with_canonical_names(stored: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut waits: BTreeMap<String, u64> = BTreeMap::new();
    for (wait, samples) in stored {
        let name = match wait.split_once(':') {
            Some((kind, event)) => {
                let (kind, event) = canonical(kind, event);
                format!("{kind}:{event}")
            }
            None => wait,
        };
        let sum = waits.entry(name).or_default();
        *sum = sum.saturating_add(samples);
    }
    waits
}
