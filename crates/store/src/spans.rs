//! `spans.parquet`: start and end of each transaction, one row each, in order of their starts.

use model::message::TransactionSpan;

use crate::columns::{self, Column, Table, Text, Values};
use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "spans.parquet";

const SCRIPT: &str = "script";
const CLIENT: &str = "client";
const START: &str = "start_us";
const END: &str = "end_us";
const FAILED: &str = "failed";

/// Encodes spans as a file.
pub(crate) fn write(trial: &str, spans: &[TransactionSpan]) -> Result<Vec<u8>, Defect> {
    let counts =
        |of: fn(&TransactionSpan) -> u64| Values::counts(FILE, spans.iter().map(|span| Some(of(span))));
    let mut last = Text::from("");
    let scripts = spans.iter().map(|span| {
        if *last != *span.script {
            last = Text::from(span.script.as_str());
        }
        Some(Text::clone(&last))
    });
    let columns = [
        Column::required(SCRIPT, Values::Text(scripts.collect())),
        Column::required(CLIENT, counts(|span| span.client.into())?),
        Column::required(START, counts(|span| span.start_us)?),
        Column::required(END, counts(|span| span.end_us)?),
        Column::required(FAILED, counts(|span| span.failed.into())?),
    ];
    columns::write(FILE, trial, &columns)
}

/// Reads the file.
pub(crate) fn read(file: Vec<u8>) -> Result<Vec<TransactionSpan>, Defect> {
    let table = columns::read(FILE, file)?;
    let script = table.required(SCRIPT, Table::texts)?;
    let client = table.required(CLIENT, Table::small_counts)?;
    let start_us = table.required(START, Table::later_times)?;
    let end_us = table.required(END, Table::later_times)?;
    let failed = table.required(FAILED, Table::counts)?;
    if let Some(row) = (0..table.rows()).find(|row| end_us[*row] < start_us[*row]) {
        let (start, end) = (start_us[row], end_us[row]);
        let reason =
            format!("row {}: a transaction ends at {end} µs, before its start at {start} µs", row + 1);
        return Err(Defect::damaged(FILE, reason));
    }
    let span = |row: usize| TransactionSpan {
        script: script[row].to_string(),
        client: client[row],
        start_us: start_us[row],
        end_us: end_us[row],
        failed: failed[row] != 0,
    };
    Ok((0..table.rows()).map(span).collect())
}
