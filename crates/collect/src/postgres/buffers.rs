//! Contents of the server's shared buffers, from the extension `pg_buffercache`.
//!
//! Source: PostgreSQL manual, "pg_buffercache". It scans every buffer: with large shared buffers that takes a while and
//! slows down other sessions.

use super::session::{MARK, Session};
use crate::error::CollectError;

/// Relations of the session's database, including system catalogs, with their numbers of buffers; most first. None if
/// the database lacks the extension.
///
/// # Errors
/// The server does not respond, or not within the session's time limit, or denies permission.
pub fn buffers(session: &mut Session) -> Result<Option<Vec<(String, u64)>>, CollectError> {
    let schema = format!(
        "SELECT {MARK} quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
         WHERE e.extname = 'pg_buffercache'"
    );
    let found = session.query(&schema)?.next();
    let Some(schema) = found.and_then(|row| row.get(0)) else { return Ok(None) };
    let sql = format!(
        "SELECT {MARK} CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname, b.buffers \
         FROM (SELECT relfilenode, reltablespace, reldatabase, count(*) AS buffers FROM {schema}.pg_buffercache \
         WHERE relfilenode IS NOT NULL GROUP BY 1, 2, 3) b \
         JOIN pg_database d ON d.datname = current_database() AND b.reldatabase IN (0, d.oid) \
         JOIN pg_class c ON pg_relation_filenode(c.oid) = b.relfilenode AND c.relisshared = (b.reldatabase = 0) \
         AND CASE WHEN c.relisshared OR c.reltablespace <> 0 THEN c.reltablespace ELSE d.dattablespace END \
         = b.reltablespace JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY 2 DESC, 1"
    );
    let rows = session.query(&sql)?;
    Ok(Some(rows.filter_map(|row| Some((row.get(0)?.into_owned(), row.get(1)?.parse().ok()?))).collect()))
}
