//! Metrics of the tested database's tables and indexes.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System" and "Progress Reporting", of each major.

use crate::metrics::metric::Condition::If;
use crate::metrics::metric::{Condition, Group, Majors, counter, gauge};

const STAT: &str = "`pg_stat_user_tables`";
const STATIO: &str = "`pg_statio_user_tables`";
const INDEX_STAT: &str = "`pg_stat_user_indexes`";
const INDEX_STATIO: &str = "`pg_statio_user_indexes`";
const VACUUM: &str = "`pg_stat_progress_vacuum`";
const ANALYZE: &str = "`pg_stat_progress_analyze`";
const CREATE_INDEX: &str = "`pg_stat_progress_create_index`";
const CLUSTER: &str = "`pg_stat_progress_cluster`";
const COPY: &str = "`pg_stat_progress_copy`";

const RUNNING: Condition = If("the command runs");

pub(super) const TABLES: Group = Group {
    name: "tables",
    label: Some("table"),
    metrics: &[
        counter("pg.table.seq_scans", STAT, "sequential scans"),
        counter("pg.table.seq_tuples_read", STAT, "rows read by sequential scans"),
        counter("pg.table.index_scans", STAT, "index scans; not of tables without an index"),
        counter(
            "pg.table.index_tuples_fetched",
            STAT,
            "rows fetched by index scans; not of tables without an index",
        ),
        counter("pg.table.tuples_inserted", STAT, "rows inserted"),
        counter("pg.table.tuples_updated", STAT, "rows updated"),
        counter("pg.table.tuples_deleted", STAT, "rows deleted"),
        counter("pg.table.tuples_hot_updated", STAT, "rows updated without new index entries (HOT)"),
        counter(
            "pg.table.tuples_newpage_updated",
            STAT,
            "rows updated whose new version went to another page",
        )
        .only(Majors::since(16)),
        gauge("pg.table.live_tuples", STAT, "live rows, as estimated"),
        gauge("pg.table.dead_tuples", STAT, "dead rows, as estimated"),
        gauge("pg.table.modified_since_analyze", STAT, "rows modified since the last analyze, as estimated"),
        gauge("pg.table.inserted_since_vacuum", STAT, "rows inserted since the last vacuum, as estimated")
            .only(Majors::since(13)),
        counter("pg.table.vacuums", STAT, "manual vacuums"),
        counter("pg.table.autovacuums", STAT, "autovacuums"),
        counter("pg.table.analyzes", STAT, "manual analyzes"),
        counter("pg.table.autoanalyzes", STAT, "automatic analyzes"),
        counter("pg.table.vacuum_us", STAT, "time spent in manual vacuums").only(Majors::since(18)),
        counter("pg.table.autovacuum_us", STAT, "time spent in autovacuums").only(Majors::since(18)),
        counter("pg.table.analyze_us", STAT, "time spent in manual analyzes").only(Majors::since(18)),
        counter("pg.table.autoanalyze_us", STAT, "time spent in automatic analyzes").only(Majors::since(18)),
        counter(
            "pg.table.heap_blks_read",
            STATIO,
            "blocks of the table read from outside the shared buffers",
        ),
        counter("pg.table.heap_blks_hit", STATIO, "blocks of the table found in the shared buffers"),
        counter(
            "pg.table.index_blks_read",
            STATIO,
            "blocks of its indexes read from outside the shared buffers",
        ),
        counter("pg.table.index_blks_hit", STATIO, "blocks of its indexes found in the shared buffers"),
        counter(
            "pg.table.toast_blks_read",
            STATIO,
            "blocks of its TOAST table read from outside the shared buffers",
        ),
        counter("pg.table.toast_blks_hit", STATIO, "blocks of its TOAST table found in the shared buffers"),
    ],
};

pub(super) const INDEXES: Group = Group {
    name: "indexes",
    label: Some("index"),
    metrics: &[
        counter("pg.index.scans", INDEX_STAT, "scans of the index"),
        counter("pg.index.tuples_read", INDEX_STAT, "index entries returned by scans"),
        counter("pg.index.tuples_fetched", INDEX_STAT, "live rows fetched by simple scans of the index"),
        counter("pg.index.blks_read", INDEX_STATIO, "blocks read from outside the shared buffers"),
        counter("pg.index.blks_hit", INDEX_STATIO, "blocks found in the shared buffers"),
    ],
};

pub(super) const COMMANDS: Group = Group {
    name: "commands",
    label: None,
    metrics: &[gauge(
        "pg.progress.commands",
        "`pg_stat_get_progress_info`",
        "commands in progress in the whole server, of the kinds below",
    )],
};

pub(super) const PROGRESS: Group = Group {
    name: "progress",
    label: Some("relation"),
    metrics: &[
        gauge("pg.progress.vacuum.heap_blks_total", VACUUM, "blocks of the table").when(RUNNING),
        gauge("pg.progress.vacuum.heap_blks_scanned", VACUUM, "blocks scanned").when(RUNNING),
        gauge("pg.progress.vacuum.heap_blks_vacuumed", VACUUM, "blocks vacuumed").when(RUNNING),
        gauge("pg.progress.vacuum.index_vacuums", VACUUM, "index vacuum cycles completed").when(RUNNING),
        gauge(
            "pg.progress.vacuum.dead_tuples",
            VACUUM,
            "dead rows collected since the last index vacuum cycle",
        )
        .when(RUNNING),
        gauge("pg.progress.vacuum.delay_us", VACUUM, "time spent in cost-based delay")
            .only(Majors::since(18))
            .when(If("the command runs and `track_cost_delay_timing` is on")),
        gauge("pg.progress.analyze.blks_total", ANALYZE, "blocks to sample")
            .only(Majors::since(13))
            .when(RUNNING),
        gauge("pg.progress.analyze.blks_scanned", ANALYZE, "blocks sampled")
            .only(Majors::since(13))
            .when(RUNNING),
        gauge("pg.progress.create_index.blks_total", CREATE_INDEX, "blocks to process in the current phase")
            .only(Majors::since(12))
            .when(RUNNING),
        gauge("pg.progress.create_index.blks_done", CREATE_INDEX, "blocks processed")
            .only(Majors::since(12))
            .when(RUNNING),
        gauge("pg.progress.create_index.tuples_total", CREATE_INDEX, "rows to process in the current phase")
            .only(Majors::since(12))
            .when(RUNNING),
        gauge("pg.progress.create_index.tuples_done", CREATE_INDEX, "rows processed")
            .only(Majors::since(12))
            .when(RUNNING),
        gauge("pg.progress.cluster.heap_blks_total", CLUSTER, "blocks of the table")
            .only(Majors::since(12))
            .when(RUNNING),
        gauge("pg.progress.cluster.heap_blks_scanned", CLUSTER, "blocks scanned")
            .only(Majors::since(12))
            .when(RUNNING),
        gauge("pg.progress.cluster.heap_tuples_written", CLUSTER, "rows written")
            .only(Majors::since(12))
            .when(RUNNING),
        gauge("pg.progress.copy.sessions", COPY, "sessions that copy from or to the table")
            .only(Majors::since(14))
            .when(RUNNING),
        gauge("pg.progress.copy.processed_bytes", COPY, "bytes copied").only(Majors::since(14)).when(RUNNING),
        gauge("pg.progress.copy.tuples_processed", COPY, "rows copied").only(Majors::since(14)).when(RUNNING),
    ],
};

pub(super) const BUFFERS: Group = Group {
    name: "buffers",
    label: Some("relation"),
    metrics: &[gauge(
        "pg.buffercache.buffers",
        "`pg_buffercache`",
        "shared buffers that hold blocks of the relation, before and after the load",
    )
    .when(If("`[collect] buffers` and the extension `pg_buffercache`"))],
};
