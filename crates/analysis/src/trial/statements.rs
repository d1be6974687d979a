//! Cost of statements.

use model::waits::StatementUse;

use super::Statement;
use super::points::figure;

/// Statements, the most expensive first.
pub(super) fn statements(statements: &[StatementUse]) -> Vec<Statement> {
    let mut sorted: Vec<&StatementUse> = statements.iter().collect();
    sorted.sort_by(|a, b| b.total_us.total_cmp(&a.total_us));
    let statement = |of: &StatementUse| Statement {
        query: of.query.clone(),
        calls: of.calls,
        total_us: figure(of.total_us),
        rows: of.rows,
        shared_hit_blocks: of.shared_hit_blocks,
        shared_read_blocks: of.shared_read_blocks,
        wal_bytes: of.wal_bytes.map(figure),
    };
    sorted.into_iter().map(statement).collect()
}
