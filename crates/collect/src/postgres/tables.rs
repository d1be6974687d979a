//! What the server counts of the tested database's tables and indexes: read from within that database, which therefore
//! counts these questions as transactions.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System" and "Progress Reporting", of each major.

use super::session::{Commits, MARK, Session};
use super::view::{ALWAYS, Questions, View, before, counter, gauge, since, where_on};
use crate::{Reading, Source};

/// Tables and indexes of users, the 20 largest of each, and what is done to any relation that has a progress view. A
/// [`Source`].
#[derive(Debug)]
pub struct Tables {
    session: Session,
    questions: Questions,
    /// Asked only while there is anything in progress, which is rare.
    progress: Questions,
}

/// The largest tables and indexes of users by what they are now: temporary ones are their session's own business.
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
    /// By a session with the tested database. Which relations are the largest is found out now, once.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn new(mut session: Session) -> Result<Self, String> {
        let sql = format!("SELECT {MARK} {}, {}", largest!("'r', 'm'"), largest!("'i'"));
        let found = session.ask(&sql).map_err(|refusal| refusal.why)?.next();
        let list = |column| found.and_then(|row| row.get(column)).unwrap_or("0".into()).into_owned();
        let (tables, indexes) = (list(0), list(1));
        let given = [(":tables", tables.as_str()), (":indexes", indexes.as_str())];
        let questions = |views: &'static [View]| {
            Questions::new(&views.iter().collect::<Vec<&View>>(), session.major(), &given)
        };
        let (questions, progress) = (questions(&VIEWS), questions(&PROGRESS));
        Ok(Self { session, questions, progress })
    }

    /// What the tested database counts for it: a commit for each question.
    pub fn commits(&self) -> Commits {
        self.session.commits()
    }
}

impl Source for Tables {
    fn name(&self) -> &'static str {
        "tables"
    }

    fn read(&mut self, into: &mut Reading) -> Result<(), String> {
        self.questions.read(&mut self.session, into)?;
        let is_any = into.values().any(|(metric, _, _, value)| metric == IN_PROGRESS && value > 0.0);
        match is_any {
            true => self.progress.read(&mut self.session, into),
            false => Ok(()),
        }
    }
}

static VIEWS: [View; 5] = [TABLES, TABLE_BLOCKS, INDEXES, INDEX_BLOCKS, COMMANDS];
static PROGRESS: [View; 5] = [VACUUM, ANALYZE, CREATE_INDEX, CLUSTER, COPY];

/// Commands that report their progress.
const IN_PROGRESS: &str = "pg.progress.commands";

const TABLES: View = View {
    majors: ALWAYS,
    of: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || relname",
    from: "pg_stat_user_tables WHERE relid IN (:tables)",
    columns: &[
        counter("pg.table.seq_scans", "seq_scan"),
        counter("pg.table.seq_tuples_read", "seq_tup_read"),
        counter("pg.table.index_scans", "idx_scan"),
        counter("pg.table.index_tuples_fetched", "idx_tup_fetch"),
        counter("pg.table.tuples_inserted", "n_tup_ins"),
        counter("pg.table.tuples_updated", "n_tup_upd"),
        counter("pg.table.tuples_deleted", "n_tup_del"),
        counter("pg.table.tuples_hot_updated", "n_tup_hot_upd"),
        counter("pg.table.tuples_newpage_updated", "n_tup_newpage_upd").only(since(16)),
        gauge("pg.table.live_tuples", "n_live_tup"),
        gauge("pg.table.dead_tuples", "n_dead_tup"),
        gauge("pg.table.modified_since_analyze", "n_mod_since_analyze"),
        gauge("pg.table.inserted_since_vacuum", "n_ins_since_vacuum").only(since(13)),
        counter("pg.table.vacuums", "vacuum_count"),
        counter("pg.table.autovacuums", "autovacuum_count"),
        counter("pg.table.analyzes", "analyze_count"),
        counter("pg.table.autoanalyzes", "autoanalyze_count"),
        counter("pg.table.vacuum_us", "total_vacuum_time * 1000").only(since(18)),
        counter("pg.table.autovacuum_us", "total_autovacuum_time * 1000").only(since(18)),
        counter("pg.table.analyze_us", "total_analyze_time * 1000").only(since(18)),
        counter("pg.table.autoanalyze_us", "total_autoanalyze_time * 1000").only(since(18)),
    ],
};

const TABLE_BLOCKS: View = View {
    majors: ALWAYS,
    of: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || relname",
    from: "pg_statio_user_tables WHERE relid IN (:tables)",
    columns: &[
        counter("pg.table.heap_blks_read", "heap_blks_read"),
        counter("pg.table.heap_blks_hit", "heap_blks_hit"),
        counter("pg.table.index_blks_read", "idx_blks_read"),
        counter("pg.table.index_blks_hit", "idx_blks_hit"),
        counter("pg.table.toast_blks_read", "toast_blks_read"),
        counter("pg.table.toast_blks_hit", "toast_blks_hit"),
    ],
};

const INDEXES: View = View {
    majors: ALWAYS,
    of: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || indexrelname",
    from: "pg_stat_user_indexes WHERE indexrelid IN (:indexes)",
    columns: &[
        counter("pg.index.scans", "idx_scan"),
        counter("pg.index.tuples_read", "idx_tup_read"),
        counter("pg.index.tuples_fetched", "idx_tup_fetch"),
    ],
};

const INDEX_BLOCKS: View = View {
    majors: ALWAYS,
    of: "CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || indexrelname",
    from: "pg_statio_user_indexes WHERE indexrelid IN (:indexes)",
    columns: &[counter("pg.index.blks_read", "idx_blks_read"), counter("pg.index.blks_hit", "idx_blks_hit")],
};

/// How many commands of these kinds are in progress in the whole server.
macro_rules! commands {
    ($first:literal $(, $more:literal)*) => {
        concat!(
            "(SELECT count(*) FROM pg_stat_get_progress_info('", $first, "'))",
            $(" + (SELECT count(*) FROM pg_stat_get_progress_info('", $more, "'))"),*
        )
    };
}

const COMMANDS: View = View {
    majors: ALWAYS,
    of: "NULL",
    from: "(SELECT 1) one",
    columns: &[
        gauge(IN_PROGRESS, commands!("VACUUM")).only(before(12)),
        gauge(IN_PROGRESS, commands!("VACUUM", "CLUSTER", "CREATE INDEX")).only((12, 13)),
        gauge(IN_PROGRESS, commands!("VACUUM", "CLUSTER", "CREATE INDEX", "ANALYZE")).only((13, 14)),
        gauge(IN_PROGRESS, commands!("VACUUM", "CLUSTER", "CREATE INDEX", "ANALYZE", "COPY")).only(since(14)),
    ],
};

/// The name of the relation in progress; without a schema where that is `public`.
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
    majors: ALWAYS,
    of: RELATION,
    from: progress!("pg_stat_progress_vacuum"),
    columns: &[
        gauge("pg.progress.vacuum.heap_blks_total", "p.heap_blks_total"),
        gauge("pg.progress.vacuum.heap_blks_scanned", "p.heap_blks_scanned"),
        gauge("pg.progress.vacuum.heap_blks_vacuumed", "p.heap_blks_vacuumed"),
        gauge("pg.progress.vacuum.index_vacuums", "p.index_vacuum_count"),
        gauge("pg.progress.vacuum.dead_tuples", "p.num_dead_tuples").only(before(17)),
        gauge("pg.progress.vacuum.dead_tuples", "p.num_dead_item_ids").only(since(17)),
        gauge("pg.progress.vacuum.delay_us", where_on!("track_cost_delay_timing", "p.delay_time * 1000"))
            .only(since(18)),
    ],
};

const ANALYZE: View = View {
    majors: since(13),
    of: RELATION,
    from: progress!("pg_stat_progress_analyze"),
    columns: &[
        gauge("pg.progress.analyze.blks_total", "p.sample_blks_total"),
        gauge("pg.progress.analyze.blks_scanned", "p.sample_blks_scanned"),
    ],
};

const CREATE_INDEX: View = View {
    majors: since(12),
    of: RELATION,
    from: progress!("pg_stat_progress_create_index"),
    columns: &[
        gauge("pg.progress.create_index.blks_total", "p.blocks_total"),
        gauge("pg.progress.create_index.blks_done", "p.blocks_done"),
        gauge("pg.progress.create_index.tuples_total", "p.tuples_total"),
        gauge("pg.progress.create_index.tuples_done", "p.tuples_done"),
    ],
};

const CLUSTER: View = View {
    majors: since(12),
    of: RELATION,
    from: progress!("pg_stat_progress_cluster"),
    columns: &[
        gauge("pg.progress.cluster.heap_blks_total", "p.heap_blks_total"),
        gauge("pg.progress.cluster.heap_blks_scanned", "p.heap_blks_scanned"),
        gauge("pg.progress.cluster.heap_tuples_written", "p.heap_tuples_written"),
    ],
};

/// Several sessions may copy into one table.
const COPY: View = View {
    majors: since(14),
    of: RELATION,
    from: concat!(progress!("pg_stat_progress_copy"), " GROUP BY n.nspname, c.relname"),
    columns: &[
        gauge("pg.progress.copy.sessions", "count(*)"),
        gauge("pg.progress.copy.processed_bytes", "sum(p.bytes_processed)"),
        gauge("pg.progress.copy.tuples_processed", "sum(p.tuples_processed)"),
    ],
};
