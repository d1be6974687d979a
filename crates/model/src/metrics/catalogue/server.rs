//! Metrics of the whole server, and of the tested database.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System", of each major.

use crate::metrics::metric::Condition::{If, Setting};
use crate::metrics::metric::{Condition, Group, Majors, counter, gauge};

const DB: &str = "`pg_stat_database`";
const BGWRITER: &str = "`pg_stat_bgwriter`";
const CHECKPOINTER: &str = "`pg_stat_checkpointer`";
/// `pg_stat_checkpointer` from 17 on.
const CHECKPOINTS_FROM: &str = "`pg_stat_bgwriter`, `pg_stat_checkpointer`";
/// `pg_stat_io` from 17 on.
const BACKENDS_FROM: &str = "`pg_stat_bgwriter`, `pg_stat_io`";
const WAL_STAT: &str = "`pg_stat_wal`";
/// `pg_stat_io` from 18 on.
const WAL_IO: &str = "`pg_stat_wal`, `pg_stat_io`";
const STAT_IO: &str = "`pg_stat_io`";
const STAT_SLRU: &str = "`pg_stat_slru`";
const STAT_REPLICATION: &str = "`pg_stat_replication`";

const IO_TIMING: Condition = Setting("track_io_timing");
const WAL_TIMING: Condition = Setting("track_wal_io_timing");
const STANDBYS: Condition = If("there are standbys");
const REPLICAS: Condition = If("the topology has a standby or a subscriber");
const POOLED: Condition = If("the topology has a pooler");
const SHOW_STATS: &str = "`SHOW STATS`";
const SHOW_POOLS: &str = "`SHOW POOLS`";

pub(super) const DATABASE: Group = Group {
    name: "database",
    label: None,
    metrics: &[
        counter("pg.database.commits", DB, "transactions committed").higher_is_better(),
        counter("pg.database.rollbacks", DB, "transactions rolled back"),
        counter("pg.database.blks_read", DB, "blocks read from outside the shared buffers"),
        counter("pg.database.blks_hit", DB, "blocks found in the shared buffers"),
        counter("pg.database.tup_returned", DB, "rows and index entries that scans returned"),
        counter("pg.database.tup_fetched", DB, "rows fetched by index scans"),
        counter("pg.database.tup_inserted", DB, "rows inserted"),
        counter("pg.database.tup_updated", DB, "rows updated"),
        counter("pg.database.tup_deleted", DB, "rows deleted"),
        counter("pg.database.conflicts", DB, "queries cancelled by conflicts with recovery, on standbys")
            .lower_is_better(),
        counter("pg.database.temp_files", DB, "temporary files created by queries").lower_is_better(),
        counter("pg.database.temp_bytes", DB, "bytes written to temporary files").lower_is_better(),
        counter("pg.database.deadlocks", DB, "deadlocks").lower_is_better(),
        counter("pg.database.blk_read_us", DB, "time backends spent reading blocks").when(IO_TIMING),
        counter("pg.database.blk_write_us", DB, "time backends spent writing blocks").when(IO_TIMING),
        counter("pg.database.checksum_failures", DB, "blocks with a wrong checksum")
            .lower_is_better()
            .only(Majors::since(12))
            .when(Setting("data_checksums")),
        counter("pg.database.session_us", DB, "time that sessions lasted").only(Majors::since(14)),
        counter("pg.database.active_us", DB, "time that sessions spent executing statements")
            .only(Majors::since(14)),
        counter("pg.database.idle_in_transaction_us", DB, "time that sessions were idle in a transaction")
            .only(Majors::since(14)),
        counter("pg.database.sessions", DB, "sessions begun").only(Majors::since(14)),
        counter("pg.database.sessions_abandoned", DB, "sessions ended because the client was lost")
            .lower_is_better()
            .only(Majors::since(14)),
        counter("pg.database.sessions_fatal", DB, "sessions ended by a fatal error")
            .lower_is_better()
            .only(Majors::since(14)),
        counter("pg.database.sessions_killed", DB, "sessions ended by an operator")
            .lower_is_better()
            .only(Majors::since(14)),
        counter(
            "pg.database.parallel_workers_to_launch",
            DB,
            "parallel workers that queries planned to launch",
        )
        .only(Majors::since(18)),
        counter("pg.database.parallel_workers_launched", DB, "parallel workers launched")
            .only(Majors::since(18)),
        gauge("pg.database.backends", DB, "backends connected to the database"),
    ],
};

pub(super) const STATISTICS: Group = Group {
    name: "statistics",
    label: None,
    metrics: &[gauge(
        "pg.statistics.age_us",
        "`pg_stat_get_snapshot_timestamp()`",
        "age of the statistics file at the reading",
    )
    .only(Majors::before(15))],
};

pub(super) const CHECKPOINTS: Group = Group {
    name: "checkpoints",
    label: None,
    metrics: &[
        counter(
            "pg.checkpoints_timed",
            CHECKPOINTS_FROM,
            "checkpoints begun because of `checkpoint_timeout`",
        ),
        counter(
            "pg.checkpoints_requested",
            CHECKPOINTS_FROM,
            "checkpoints requested, by a statement or by the amount of WAL",
        ),
        counter("pg.checkpoints_done", CHECKPOINTER, "checkpoints completed").only(Majors::since(18)),
        counter("pg.checkpoint.buffers_written", CHECKPOINTS_FROM, "buffers written by checkpoints"),
        counter("pg.checkpoint.slru_buffers_written", CHECKPOINTER, "SLRU buffers written by checkpoints")
            .only(Majors::since(18)),
        counter("pg.checkpoint.write_us", CHECKPOINTS_FROM, "time checkpoints spent writing files"),
        counter("pg.checkpoint.sync_us", CHECKPOINTS_FROM, "time checkpoints spent syncing files"),
        counter("pg.bgwriter.buffers_written", BGWRITER, "buffers written by the background writer"),
        counter(
            "pg.bgwriter.maxwritten_clean",
            BGWRITER,
            "rounds that the background writer stopped at `bgwriter_lru_maxpages`",
        )
        .lower_is_better(),
        counter("pg.buffers_allocated", BGWRITER, "buffers allocated"),
    ],
};

pub(super) const BACKENDS: Group = Group {
    name: "backends",
    label: None,
    metrics: &[
        counter(
            "pg.backend.buffers_written",
            BACKENDS_FROM,
            "blocks written or added to relations by processes other than the checkpointer and the background writer",
        ),
        counter(
            "pg.backend.fsyncs",
            BACKENDS_FROM,
            "fsync calls that backends made themselves, because the checkpointer's queue was full",
        )
        .lower_is_better(),
    ],
};

pub(super) const WAL: Group = Group {
    name: "wal",
    label: None,
    metrics: &[
        counter("pg.wal.bytes", "`pg_current_wal_insert_lsn()`", "WAL inserted; not on standbys"),
        counter("pg.wal.records", WAL_STAT, "WAL records").only(Majors::since(14)),
        counter("pg.wal.full_page_images", WAL_STAT, "full-page images").only(Majors::since(14)),
        counter("pg.wal.buffers_full", WAL_STAT, "WAL written because the WAL buffers were full")
            .lower_is_better()
            .only(Majors::since(14)),
        counter("pg.wal.writes", WAL_IO, "writes of WAL, without those that prepare new segments")
            .only(Majors::since(14)),
        counter("pg.wal.syncs", WAL_IO, "syncs of WAL, without those that prepare new segments")
            .only(Majors::since(14)),
        counter("pg.wal.write_us", WAL_IO, "time spent writing WAL").only(Majors::since(14)).when(WAL_TIMING),
        counter("pg.wal.sync_us", WAL_IO, "time spent syncing WAL").only(Majors::since(14)).when(WAL_TIMING),
    ],
};

pub(super) const IO: Group = Group {
    name: "io",
    label: Some("backend type/object/context"),
    metrics: &[
        counter(
            "pg.io.reads",
            STAT_IO,
            "reads: blocks before 18, operations of one or more blocks from 18 on",
        )
        .only(Majors::since(16)),
        counter("pg.io.read_bytes", STAT_IO, "bytes read").only(Majors::since(16)),
        counter("pg.io.read_us", STAT_IO, "time spent reading").only(Majors::since(16)).when(IO_TIMING),
        counter(
            "pg.io.writes",
            STAT_IO,
            "writes: blocks before 18, operations of one or more blocks from 18 on",
        )
        .only(Majors::since(16)),
        counter("pg.io.write_bytes", STAT_IO, "bytes written").only(Majors::since(16)),
        counter("pg.io.write_us", STAT_IO, "time spent writing").only(Majors::since(16)).when(IO_TIMING),
        counter("pg.io.writebacks", STAT_IO, "blocks for which writeback by the kernel was requested")
            .only(Majors::since(16)),
        counter("pg.io.writeback_us", STAT_IO, "time spent asking the kernel to begin writing")
            .only(Majors::since(16))
            .when(IO_TIMING),
        counter(
            "pg.io.extends",
            STAT_IO,
            "extensions of relations: blocks before 18, operations of one or more blocks from 18 on",
        )
        .only(Majors::since(16)),
        counter("pg.io.extend_bytes", STAT_IO, "bytes added to relations").only(Majors::since(16)),
        counter("pg.io.extend_us", STAT_IO, "time spent extending").only(Majors::since(16)).when(IO_TIMING),
        counter("pg.io.hits", STAT_IO, "blocks found in shared or local buffers").only(Majors::since(16)),
        counter("pg.io.evictions", STAT_IO, "buffers evicted to make room").only(Majors::since(16)),
        counter("pg.io.reuses", STAT_IO, "buffers of a ring reused").only(Majors::since(16)),
        counter("pg.io.fsyncs", STAT_IO, "fsync calls").only(Majors::since(16)),
        counter("pg.io.fsync_us", STAT_IO, "time spent in fsync").only(Majors::since(16)).when(IO_TIMING),
    ],
};

pub(super) const SLRU: Group = Group {
    name: "slru",
    label: Some("SLRU"),
    metrics: &[
        counter("pg.slru.blks_zeroed", STAT_SLRU, "blocks zeroed").only(Majors::since(13)),
        counter("pg.slru.blks_hit", STAT_SLRU, "blocks found in the cache").only(Majors::since(13)),
        counter("pg.slru.blks_read", STAT_SLRU, "blocks read").only(Majors::since(13)),
        counter("pg.slru.blks_written", STAT_SLRU, "blocks written").only(Majors::since(13)),
        counter("pg.slru.blks_exists", STAT_SLRU, "blocks checked for existence").only(Majors::since(13)),
        counter("pg.slru.flushes", STAT_SLRU, "flushes of dirty blocks").only(Majors::since(13)),
        counter("pg.slru.truncates", STAT_SLRU, "truncations").only(Majors::since(13)),
    ],
};

pub(super) const REPLICATION: Group = Group {
    name: "replication",
    label: Some("standby"),
    metrics: &[
        gauge("pg.replication.sent_lag_bytes", STAT_REPLICATION, "WAL not sent yet")
            .lower_is_better()
            .only(Majors::since(10))
            .when(STANDBYS),
        gauge("pg.replication.write_lag_bytes", STAT_REPLICATION, "WAL not written yet")
            .lower_is_better()
            .only(Majors::since(10))
            .when(STANDBYS),
        gauge("pg.replication.flush_lag_bytes", STAT_REPLICATION, "WAL not flushed yet")
            .lower_is_better()
            .only(Majors::since(10))
            .when(STANDBYS),
        gauge("pg.replication.replay_lag_bytes", STAT_REPLICATION, "WAL not replayed yet")
            .lower_is_better()
            .only(Majors::since(10))
            .when(STANDBYS),
        gauge("pg.replication.write_lag_us", STAT_REPLICATION, "time until WAL was written")
            .lower_is_better()
            .only(Majors::since(10))
            .when(STANDBYS),
        gauge("pg.replication.flush_lag_us", STAT_REPLICATION, "time until WAL was flushed")
            .lower_is_better()
            .only(Majors::since(10))
            .when(STANDBYS),
        gauge("pg.replication.replay_lag_us", STAT_REPLICATION, "time until WAL was replayed")
            .lower_is_better()
            .only(Majors::since(10))
            .when(STANDBYS),
    ],
};

pub(super) const REPLICA: Group = Group {
    name: "standby or subscriber",
    label: None,
    metrics: &[
        gauge(
            "replica.lag_us",
            "a marker row",
            "time from the commit of a row on the server until a session of the standby or subscriber sees it; one row in each \
             interval of readings, at the time of its commit",
        )
        .lower_is_better()
        .when(REPLICAS),
        gauge(
            "replica.lag_bytes",
            "`pg_current_wal_flush_lsn()` − `pg_last_wal_replay_lsn()`; of a subscriber `latest_end_lsn`",
            "WAL of the server that is not replayed, as both report at that moment",
        )
        .lower_is_better()
        .when(REPLICAS),
        counter(
            "replica.conflicts",
            "`pg_stat_database_conflicts` there",
            "queries that a standby cancelled, because they conflicted with replay",
        )
        .lower_is_better()
        .when(If("the topology has a standby")),
    ],
};

pub(super) const REPLAY: Group = Group {
    name: "replay",
    label: Some("what the process that replays or applies changes does: `busy`, `idle`, `conflict` or `delay`"),
    metrics: &[counter(
        "replica.replay_us",
        "`pg_stat_activity` of the standby or subscriber, sampled",
        "time for which it does so; it waits for a `conflict` with a session there to end, and a `delay` is that of \
         `recovery_min_apply_delay`",
    )
    .when(REPLICAS)],
};

pub(super) const PGBOUNCER: Group = Group {
    name: "pooler",
    label: None,
    metrics: &[
        counter("pgbouncer.transactions", SHOW_STATS, "transactions of clients").when(POOLED),
        counter("pgbouncer.queries", SHOW_STATS, "statements of clients").when(POOLED),
        counter("pgbouncer.wait_us", SHOW_STATS, "time for which clients waited for a server connection")
            .lower_is_better()
            .when(POOLED),
        counter(
            "pgbouncer.transaction_us",
            SHOW_STATS,
            "time for which clients had a server connection in a transaction",
        )
        .when(POOLED),
        gauge("pgbouncer.clients_active", SHOW_POOLS, "clients with a server connection, or idle")
            .when(POOLED),
        gauge("pgbouncer.clients_waiting", SHOW_POOLS, "clients that wait for a server connection")
            .lower_is_better()
            .when(POOLED),
        gauge("pgbouncer.servers_active", SHOW_POOLS, "server connections that a client has").when(POOLED),
        gauge("pgbouncer.servers_idle", SHOW_POOLS, "server connections that no client has").when(POOLED),
        gauge("pgbouncer.max_wait_us", SHOW_POOLS, "time for which the first client in the queue has waited")
            .lower_is_better()
            .when(POOLED),
    ],
};

pub(super) const LOCKS: Group = Group {
    name: "locks",
    label: Some("mode/`granted` or mode/`waiting`"),
    metrics: &[gauge("pg.locks", "`pg_locks`", "locks held or waited for, without pgdyno's")],
};

pub(super) const SESSIONS: Group = Group {
    name: "sessions",
    label: Some("state"),
    metrics: &[gauge("pg.sessions", "`pg_stat_activity`", "sessions of clients, without pgdyno's")],
};

pub(super) const BASE_BACKUP: Group = Group {
    name: "base backup",
    label: Some("process"),
    metrics: &[
        gauge(
            "pg.progress.base_backup.total_bytes",
            "`pg_stat_progress_basebackup`",
            "estimated size of the backup",
        )
        .only(Majors::since(13))
        .when(If("a backup runs")),
        gauge(
            "pg.progress.base_backup.streamed_bytes",
            "`pg_stat_progress_basebackup`",
            "bytes of the backup sent",
        )
        .only(Majors::since(13))
        .when(If("a backup runs")),
    ],
};
