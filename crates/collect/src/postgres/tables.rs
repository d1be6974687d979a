//! Counters of the tested database's tables and indexes: read from within that database, which therefore counts these
//! queries as transactions.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System" and "Progress Reporting", of each major.

use model::metrics::Majors;

use super::session::{Commits, MARK, Session};
use super::view::{View, ViewQueries, column, when_on};
use crate::error::CollectError;
use crate::{Reading, Source, Value};

/// The 20 largest user tables and indexes each, and operations in progress on any relation that have a progress view. A
/// [`Source`].
#[derive(Debug)]
pub struct Tables {
    session: Session,
    queries: ViewQueries,
    /// Queried only while there is something in progress, which is rare.
    progress: ViewQueries,
}

/// The largest user tables and indexes by current size, without temporary ones, which concern only their sessions.
macro_rules! largest {
    ($kinds:literal) => {
        concat!(
            "coalesce((SELECT string_agg(oid::text, ',') FROM (SELECT c.oid FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN (",
            $kinds,
            ") AND c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
             ORDER BY pg_relation_size(c.oid) DESC, c.oid LIMIT 20) largest), '0')"
        )
    };
}

impl Tables {
    /// The session is with the tested database. Determines the largest relations now, once.
    ///
    /// # Errors
    /// The server does not respond.
    pub fn new(mut session: Session) -> Result<Self, CollectError> {
        let sql = format!("SELECT {MARK} {}, {}", largest!("'r', 'm'"), largest!("'i'"));
        let found = session.query(&sql)?.next();
        let list = |column| found.and_then(|row| row.get(column)).unwrap_or("0".into()).into_owned();
        let (tables, indexes) = (list(0), list(1));
        let given = [(":tables", tables.as_str()), (":indexes", indexes.as_str())];
        let queries = |views: &'static [View]| {
            ViewQueries::new(&views.iter().collect::<Vec<&View>>(), session.major(), &given)
        };
        let (queries, progress) = (queries(&VIEWS), queries(&PROGRESS));
        Ok(Self { session, queries, progress })
    }

    /// Commits that the tested database counts for it: one per query.
    pub fn commits(&self) -> Commits {
        self.session.commits()
    }
}

impl Source for Tables {
    fn name(&self) -> &'static str {
        "tables"
    }

    fn read(&mut self, into: &mut Reading) -> Result<(), CollectError> {
        self.queries.read(&mut self.session, into)?;
        let is_any = |value: &Value| value.metric.name == IN_PROGRESS && value.value > 0.0;
        if into.values().iter().any(is_any) {
            self.progress.read(&mut self.session, into)?;
        }
        Ok(())
    }
}

pub(super) static VIEWS: [View; 5] = [TABLES, TABLE_BLOCKS, INDEXES, INDEX_BLOCKS, COMMANDS];
pub(super) static PROGRESS: [View; 5] = [VACUUM, ANALYZE, CREATE_INDEX, CLUSTER, COPY];

/// Commands that report their progress.
const IN_PROGRESS: &str = "pg.progress.commands";

const TABLES: View = View {
    majors: Majors::ALL,
    label: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || relname",
    from: "pg_stat_user_tables WHERE relid IN (:tables)",
    columns: &[
        column("pg.table.seq_scans", "seq_scan"),
        column("pg.table.seq_tuples_read", "seq_tup_read"),
        column("pg.table.index_scans", "idx_scan"),
        column("pg.table.index_tuples_fetched", "idx_tup_fetch"),
        column("pg.table.tuples_inserted", "n_tup_ins"),
        column("pg.table.tuples_updated", "n_tup_upd"),
        column("pg.table.tuples_deleted", "n_tup_del"),
        column("pg.table.tuples_hot_updated", "n_tup_hot_upd"),
        column("pg.table.tuples_newpage_updated", "n_tup_newpage_upd"),
        column("pg.table.live_tuples", "n_live_tup"),
        column("pg.table.dead_tuples", "n_dead_tup"),
        column("pg.table.modified_since_analyze", "n_mod_since_analyze"),
        column("pg.table.inserted_since_vacuum", "n_ins_since_vacuum"),
        column("pg.table.vacuums", "vacuum_count"),
        column("pg.table.autovacuums", "autovacuum_count"),
        column("pg.table.analyzes", "analyze_count"),
        column("pg.table.autoanalyzes", "autoanalyze_count"),
        column("pg.table.vacuum_us", "total_vacuum_time * 1000"),
        column("pg.table.autovacuum_us", "total_autovacuum_time * 1000"),
        column("pg.table.analyze_us", "total_analyze_time * 1000"),
        column("pg.table.autoanalyze_us", "total_autoanalyze_time * 1000"),
    ],
};

const TABLE_BLOCKS: View = View {
    majors: Majors::ALL,
    label: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || relname",
    from: "pg_statio_user_tables WHERE relid IN (:tables)",
    columns: &[
        column("pg.table.heap_blks_read", "heap_blks_read"),
        column("pg.table.heap_blks_hit", "heap_blks_hit"),
        column("pg.table.index_blks_read", "idx_blks_read"),
        column("pg.table.index_blks_hit", "idx_blks_hit"),
        column("pg.table.toast_blks_read", "toast_blks_read"),
        column("pg.table.toast_blks_hit", "toast_blks_hit"),
    ],
};

const INDEXES: View = View {
    majors: Majors::ALL,
    label: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || indexrelname",
    from: "pg_stat_user_indexes WHERE indexrelid IN (:indexes)",
    columns: &[
        column("pg.index.scans", "idx_scan"),
        column("pg.index.tuples_read", "idx_tup_read"),
        column("pg.index.tuples_fetched", "idx_tup_fetch"),
    ],
};

const INDEX_BLOCKS: View = View {
    majors: Majors::ALL,
    label: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || indexrelname",
    from: "pg_statio_user_indexes WHERE indexrelid IN (:indexes)",
    columns: &[column("pg.index.blks_read", "idx_blks_read"), column("pg.index.blks_hit", "idx_blks_hit")],
};

/// Number of commands of these kinds in progress in the whole server.
macro_rules! commands {
    ($first:literal $(, $more:literal)*) => {
        concat!(
            "(SELECT count(*) FROM pg_stat_get_progress_info('", $first, "'))",
            $(" + (SELECT count(*) FROM pg_stat_get_progress_info('", $more, "'))"),*
        )
    };
}

const COMMANDS: View = View {
    majors: Majors::ALL,
    label: "NULL",
    from: "(SELECT 1) one",
    columns: &[
        column(IN_PROGRESS, commands!("VACUUM")).only(Majors::before(12)),
        column(IN_PROGRESS, commands!("VACUUM", "CLUSTER", "CREATE INDEX")).only(Majors::between(12, 12)),
        column(IN_PROGRESS, commands!("VACUUM", "CLUSTER", "CREATE INDEX", "ANALYZE"))
            .only(Majors::between(13, 13)),
        column(IN_PROGRESS, commands!("VACUUM", "CLUSTER", "CREATE INDEX", "ANALYZE", "COPY"))
            .only(Majors::since(14)),
    ],
};

/// Name of the relation in progress; without a schema if that is `public`.
const RELATION: &str = "CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname";

/// A progress view of this database's relations.
macro_rules! progress {
    ($view:literal) => {
        concat!(
            $view,
            " p JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE p.datname = current_database()"
        )
    };
}

const VACUUM: View = View {
    majors: Majors::ALL,
    label: RELATION,
    from: progress!("pg_stat_progress_vacuum"),
    columns: &[
        column("pg.progress.vacuum.heap_blks_total", "p.heap_blks_total"),
        column("pg.progress.vacuum.heap_blks_scanned", "p.heap_blks_scanned"),
        column("pg.progress.vacuum.heap_blks_vacuumed", "p.heap_blks_vacuumed"),
        column("pg.progress.vacuum.index_vacuums", "p.index_vacuum_count"),
        column("pg.progress.vacuum.dead_tuples", "p.num_dead_tuples").only(Majors::before(17)),
        column("pg.progress.vacuum.dead_tuples", "p.num_dead_item_ids").only(Majors::since(17)),
        column("pg.progress.vacuum.delay_us", when_on!("track_cost_delay_timing", "p.delay_time * 1000")),
    ],
};

const ANALYZE: View = View {
    majors: Majors::since(13),
    label: RELATION,
    from: progress!("pg_stat_progress_analyze"),
    columns: &[
        column("pg.progress.analyze.blks_total", "p.sample_blks_total"),
        column("pg.progress.analyze.blks_scanned", "p.sample_blks_scanned"),
    ],
};

const CREATE_INDEX: View = View {
    majors: Majors::since(12),
    label: RELATION,
    from: progress!("pg_stat_progress_create_index"),
    columns: &[
        column("pg.progress.create_index.blks_total", "p.blocks_total"),
        column("pg.progress.create_index.blks_done", "p.blocks_done"),
        column("pg.progress.create_index.tuples_total", "p.tuples_total"),
        column("pg.progress.create_index.tuples_done", "p.tuples_done"),
    ],
};

const CLUSTER: View = View {
    majors: Majors::since(12),
    label: RELATION,
    from: progress!("pg_stat_progress_cluster"),
    columns: &[
        column("pg.progress.cluster.heap_blks_total", "p.heap_blks_total"),
        column("pg.progress.cluster.heap_blks_scanned", "p.heap_blks_scanned"),
        column("pg.progress.cluster.heap_tuples_written", "p.heap_tuples_written"),
    ],
};

/// Several sessions may copy into one table.
const COPY: View = View {
    majors: Majors::since(14),
    label: RELATION,
    from: concat!(progress!("pg_stat_progress_copy"), " GROUP BY n.nspname, c.relname"),
    columns: &[
        column("pg.progress.copy.sessions", "count(*)"),
        column("pg.progress.copy.processed_bytes", "sum(p.bytes_processed)"),
        column("pg.progress.copy.tuples_processed", "sum(p.tuples_processed)"),
    ],
};
