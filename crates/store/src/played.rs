//! `played.parquet`: what became of the statements of a trace, and their plans.

use std::collections::BTreeMap;

use model::trace::{PlanNode, PlayedStatement};

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
            plan,
            without_plan: without_plan[row].as_deref().map(str::to_owned),
        })
    };
    (0..table.rows()).map(statement).collect()
}
