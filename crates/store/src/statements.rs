//! `statements.parquet`: cost of each statement during the load, from `pg_stat_statements`.

use model::waits::StatementUse;

use crate::columns::{self, Column, Table, Text, Values};
use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "statements.parquet";

const QUERY_ID: &str = "query_id";
const QUERY: &str = "query";
const CALLS: &str = "calls";
const TOTAL: &str = "total_us";
const ROWS: &str = "rows";
const HIT: &str = "shared_hit_blocks";
const READ: &str = "shared_read_blocks";
const DIRTIED: &str = "shared_dirtied_blocks";
const WAL: &str = "wal_bytes";

/// Encodes statements as a file.
pub(crate) fn write(trial: &str, statements: &[StatementUse]) -> Result<Vec<u8>, Defect> {
    let counts = |of: fn(&StatementUse) -> u64| Values::counts(FILE, statements.iter().map(|s| Some(of(s))));
    let reals = |of: fn(&StatementUse) -> Option<f64>| Values::Real(statements.iter().map(of).collect());
    let columns = [
        Column::required(QUERY_ID, Values::Integer(statements.iter().map(|s| Some(s.query_id)).collect())),
        Column::required(
            QUERY,
            Values::Text(statements.iter().map(|s| Some(Text::from(s.query.as_str()))).collect()),
        ),
        Column::required(CALLS, counts(|s| s.calls)?),
        Column::required(TOTAL, reals(|s| Some(s.total_us))),
        Column::required(ROWS, counts(|s| s.rows)?),
        Column::required(HIT, counts(|s| s.shared_hit_blocks)?),
        Column::required(READ, counts(|s| s.shared_read_blocks)?),
        Column::required(DIRTIED, counts(|s| s.shared_dirtied_blocks)?),
        Column::optional(WAL, reals(|s| s.wal_bytes)),
    ];
    columns::write(FILE, trial, &columns)
}

/// Reads the file.
pub(crate) fn read(file: Vec<u8>) -> Result<Vec<StatementUse>, Defect> {
    let table = columns::read(FILE, file)?;
    let query_id = table.required(QUERY_ID, Table::whole)?;
    let query = table.required(QUERY, Table::texts)?;
    let calls = table.required(CALLS, Table::counts)?;
    let total_us = table.required(TOTAL, Table::reals)?;
    let rows = table.required(ROWS, Table::counts)?;
    let shared_hit_blocks = table.required(HIT, Table::counts)?;
    let shared_read_blocks = table.required(READ, Table::counts)?;
    let shared_dirtied_blocks = table.required(DIRTIED, Table::counts)?;
    let wal_bytes = table.reals(WAL)?;
    let statement = |row: usize| StatementUse {
        query_id: query_id[row],
        query: query[row].to_string(),
        calls: calls[row],
        total_us: total_us[row],
        rows: rows[row],
        shared_hit_blocks: shared_hit_blocks[row],
        shared_read_blocks: shared_read_blocks[row],
        shared_dirtied_blocks: shared_dirtied_blocks[row],
        wal_bytes: wal_bytes[row],
    };
    Ok((0..table.rows()).map(statement).collect())
}
