//! Counters of the server as a whole, and of the tested database: read from outside that database.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System", of each major; docs/metrics-postgres.md has the list.

use model::metric;
use model::metrics::{Majors, Metric};

use wire::quote_literal;

use super::session::{MARK, Session};
use super::view::{View, ViewQueries, column, when_on};
use crate::error::CollectError;
use crate::{Reading, Source, Value};

/// The views of the whole server, and `pg_stat_database` of one database. A [`Source`].
#[derive(Debug)]
pub struct Statistics {
    session: Session,
    queries: ViewQueries,
    block_size: f64,
}

impl Statistics {
    /// The session is with another database than the tested one, whose transactions it must not add to.
    ///
    /// # Errors
    /// The server does not respond.
    pub fn new(mut session: Session, tested_database: &str) -> Result<Self, CollectError> {
        let sql = format!("SELECT {MARK} current_setting('block_size')");
        let found = session.query(&sql)?.next();
        let block_size = found.and_then(|row| row.get(0)?.parse().ok());
        let block_size = block_size.ok_or(CollectError::Unreported("block size"))?;
        let given = [(":database", quote_literal(tested_database))];
        let given = given.each_ref().map(|(name, sql)| (*name, sql.as_str()));
        let views: Vec<&View> = VIEWS.iter().collect();
        Ok(Self { queries: ViewQueries::new(&views, session.major(), &given), session, block_size })
    }
}

impl Source for Statistics {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn read(&mut self, into: &mut Reading) -> Result<(), CollectError> {
        self.queries.read(&mut self.session, into)?;
        let major = self.session.major();
        if major >= 17 {
            backends_writes(major, self.block_size, into);
        }
        if major >= 18 {
            wal_io(into);
        }
        Ok(())
    }
}

/// Up to 16 `buffers_backend` counts every block that was written or added to a relation by others than the
/// checkpointer and the background writer. From 17 on that is a sum over `pg_stat_io`, which has been read already:
/// reading it costs most of all.
fn backends_writes(major: u32, block_size: f64, into: &mut Reading) {
    let is_backends = |of: &str| {
        let mut parts = of.split('/');
        !matches!(parts.next(), Some("checkpointer" | "background writer"))
            && parts.next() == Some("relation")
    };
    let sum = |metrics: &[&'static Metric]| sum_of_io(into, metrics, is_backends);
    let blocks = match major {
        17 => sum(&[metric!("pg.io.writes"), metric!("pg.io.extends")]),
        // An extension may comprise many blocks.
        _ => sum(&[metric!("pg.io.write_bytes"), metric!("pg.io.extend_bytes")])
            .map(|bytes| bytes / block_size),
    };
    let fsyncs = sum(&[metric!("pg.io.fsyncs")]);
    for (metric, value) in
        [(metric!("pg.backend.buffers_written"), blocks), (metric!("pg.backend.fsyncs"), fsyncs)]
    {
        if let Some(value) = value {
            into.add(metric, None, value);
        }
    }
}

/// Counters of `pg_stat_wal` before 18. Only those of the context `normal`: `init` is the filling of a new segment with
/// zeros, which was not counted there.
fn wal_io(into: &mut Reading) {
    for (metric, io) in [
        (metric!("pg.wal.writes"), metric!("pg.io.writes")),
        (metric!("pg.wal.syncs"), metric!("pg.io.fsyncs")),
        (metric!("pg.wal.write_us"), metric!("pg.io.write_us")),
        (metric!("pg.wal.sync_us"), metric!("pg.io.fsync_us")),
    ] {
        if let Some(value) = sum_of_io(into, &[io], |of| of.ends_with("/wal/normal")) {
            into.add(metric, None, value);
        }
    }
}

/// The sum of some rows of `pg_stat_io`; none if none of them has a value.
fn sum_of_io(reading: &Reading, metrics: &[&Metric], is_one: impl Fn(&str) -> bool) -> Option<f64> {
    let is_wanted = |value: &&Value| {
        metrics.iter().any(|metric| metric.name == value.metric.name)
            && value.label.as_deref().is_some_and(&is_one)
    };
    reading.values().iter().filter(is_wanted).map(|value| value.value).reduce(|sum, value| sum + value)
}

pub(super) static VIEWS: [View; 14] = [
    DATABASE,
    STATISTICS_AGE,
    BACKGROUND_WRITER_BEFORE_17,
    BACKGROUND_WRITER,
    CHECKPOINTER,
    WAL_POSITION_9_6,
    WAL_POSITION,
    WAL,
    IO,
    SLRU,
    REPLICATION,
    LOCKS,
    SESSIONS,
    BASE_BACKUP,
];

const DATABASE: View = View {
    majors: Majors::ALL,
    label: "NULL",
    from: "pg_stat_database WHERE datname = :database",
    columns: &[
        column("pg.database.commits", "xact_commit"),
        column("pg.database.rollbacks", "xact_rollback"),
        column("pg.database.blks_read", "blks_read"),
        column("pg.database.blks_hit", "blks_hit"),
        column("pg.database.tup_returned", "tup_returned"),
        column("pg.database.tup_fetched", "tup_fetched"),
        column("pg.database.tup_inserted", "tup_inserted"),
        column("pg.database.tup_updated", "tup_updated"),
        column("pg.database.tup_deleted", "tup_deleted"),
        column("pg.database.conflicts", "conflicts"),
        column("pg.database.temp_files", "temp_files"),
        column("pg.database.temp_bytes", "temp_bytes"),
        column("pg.database.deadlocks", "deadlocks"),
        column("pg.database.blk_read_us", when_on!("track_io_timing", "blk_read_time * 1000")),
        column("pg.database.blk_write_us", when_on!("track_io_timing", "blk_write_time * 1000")),
        column("pg.database.checksum_failures", "checksum_failures"),
        column("pg.database.session_us", "session_time * 1000"),
        column("pg.database.active_us", "active_time * 1000"),
        column("pg.database.idle_in_transaction_us", "idle_in_transaction_time * 1000"),
        column("pg.database.sessions", "sessions"),
        column("pg.database.sessions_abandoned", "sessions_abandoned"),
        column("pg.database.sessions_fatal", "sessions_fatal"),
        column("pg.database.sessions_killed", "sessions_killed"),
        column("pg.database.parallel_workers_to_launch", "parallel_workers_to_launch"),
        column("pg.database.parallel_workers_launched", "parallel_workers_launched"),
        column("pg.database.backends", "numbackends"),
    ],
};

/// Before 15, a collector process writes the statistics to a file, at most every half second.
const STATISTICS_AGE: View = View {
    majors: Majors::before(15),
    label: "NULL",
    from: "(SELECT pg_stat_get_snapshot_timestamp() AS at) written",
    columns: &[column("pg.statistics.age_us", "extract(epoch FROM clock_timestamp() - at) * 1000000")],
};

const BACKGROUND_WRITER_BEFORE_17: View = View {
    majors: Majors::before(17),
    label: "NULL",
    from: "pg_stat_bgwriter",
    columns: &[
        column("pg.checkpoints_timed", "checkpoints_timed"),
        column("pg.checkpoints_requested", "checkpoints_req"),
        column("pg.checkpoint.buffers_written", "buffers_checkpoint"),
        column("pg.checkpoint.write_us", "checkpoint_write_time * 1000"),
        column("pg.checkpoint.sync_us", "checkpoint_sync_time * 1000"),
        column("pg.bgwriter.buffers_written", "buffers_clean"),
        column("pg.bgwriter.maxwritten_clean", "maxwritten_clean"),
        column("pg.backend.buffers_written", "buffers_backend"),
        column("pg.backend.fsyncs", "buffers_backend_fsync"),
        column("pg.buffers_allocated", "buffers_alloc"),
    ],
};

const BACKGROUND_WRITER: View = View {
    majors: Majors::since(17),
    label: "NULL",
    from: "pg_stat_bgwriter",
    columns: &[
        column("pg.bgwriter.buffers_written", "buffers_clean"),
        column("pg.bgwriter.maxwritten_clean", "maxwritten_clean"),
        column("pg.buffers_allocated", "buffers_alloc"),
    ],
};

const CHECKPOINTER: View = View {
    majors: Majors::since(17),
    label: "NULL",
    from: "pg_stat_checkpointer",
    columns: &[
        column("pg.checkpoints_timed", "num_timed"),
        column("pg.checkpoints_requested", "num_requested"),
        column("pg.checkpoints_done", "num_done"),
        column("pg.checkpoint.buffers_written", "buffers_written"),
        column("pg.checkpoint.slru_buffers_written", "slru_written"),
        column("pg.checkpoint.write_us", "write_time * 1000"),
        column("pg.checkpoint.sync_us", "sync_time * 1000"),
    ],
};

const WAL_POSITION_9_6: View = View {
    majors: Majors::before(10),
    label: "NULL",
    from: "(SELECT 1) one WHERE NOT pg_is_in_recovery()",
    columns: &[column("pg.wal.bytes", "pg_xlog_location_diff(pg_current_xlog_insert_location(), '0/0')")],
};

const WAL_POSITION: View = View {
    majors: Majors::since(10),
    label: "NULL",
    from: "(SELECT 1) one WHERE NOT pg_is_in_recovery()",
    columns: &[column("pg.wal.bytes", "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")],
};

const WAL: View = View {
    majors: Majors::since(14),
    label: "NULL",
    from: "pg_stat_wal",
    columns: &[
        column("pg.wal.records", "wal_records"),
        column("pg.wal.full_page_images", "wal_fpi"),
        column("pg.wal.buffers_full", "wal_buffers_full"),
        column("pg.wal.writes", "wal_write").only(Majors::before(18)),
        column("pg.wal.syncs", "wal_sync").only(Majors::before(18)),
        column("pg.wal.write_us", when_on!("track_wal_io_timing", "wal_write_time * 1000"))
            .only(Majors::before(18)),
        column("pg.wal.sync_us", when_on!("track_wal_io_timing", "wal_sync_time * 1000"))
            .only(Majors::before(18)),
    ],
};

macro_rules! io_time {
    ($column:literal) => {
        concat!(
            "CASE WHEN CASE WHEN object = 'wal' THEN timed.wal ELSE timed.others END THEN ",
            $column,
            " * 1000 END"
        )
    };
}

const IO: View = View {
    majors: Majors::since(16),
    label: "backend_type || '/' || object || '/' || context",
    // `OFFSET 0` makes the settings be looked up once, not per row.
    from: "pg_stat_io CROSS JOIN (SELECT current_setting('track_wal_io_timing')::bool AS wal, \
           current_setting('track_io_timing')::bool AS others OFFSET 0) timed",
    columns: &[
        column("pg.io.reads", "reads"),
        column("pg.io.read_bytes", "reads * op_bytes").only(Majors::before(18)),
        column("pg.io.read_bytes", "read_bytes").only(Majors::since(18)),
        column("pg.io.read_us", io_time!("read_time")),
        column("pg.io.writes", "writes"),
        column("pg.io.write_bytes", "writes * op_bytes").only(Majors::before(18)),
        column("pg.io.write_bytes", "write_bytes").only(Majors::since(18)),
        column("pg.io.write_us", io_time!("write_time")),
        column("pg.io.writebacks", "writebacks"),
        column("pg.io.writeback_us", io_time!("writeback_time")),
        column("pg.io.extends", "extends"),
        column("pg.io.extend_bytes", "extends * op_bytes").only(Majors::before(18)),
        column("pg.io.extend_bytes", "extend_bytes").only(Majors::since(18)),
        column("pg.io.extend_us", io_time!("extend_time")),
        column("pg.io.hits", "hits"),
        column("pg.io.evictions", "evictions"),
        column("pg.io.reuses", "reuses"),
        column("pg.io.fsyncs", "fsyncs"),
        column("pg.io.fsync_us", io_time!("fsync_time")),
    ],
};

const SLRU: View = View {
    majors: Majors::since(13),
    label: "name",
    from: "pg_stat_slru",
    columns: &[
        column("pg.slru.blks_zeroed", "blks_zeroed"),
        column("pg.slru.blks_hit", "blks_hit"),
        column("pg.slru.blks_read", "blks_read"),
        column("pg.slru.blks_written", "blks_written"),
        column("pg.slru.blks_exists", "blks_exists"),
        column("pg.slru.flushes", "flushes"),
        column("pg.slru.truncates", "truncates"),
    ],
};

/// Of several standbys with a name, the one that is furthest behind.
const REPLICATION: View = View {
    majors: Majors::since(10),
    label: "application_name",
    from: "pg_stat_replication WHERE NOT pg_is_in_recovery() GROUP BY application_name",
    columns: &[
        column("pg.replication.sent_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), sent_lsn))"),
        column("pg.replication.write_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), write_lsn))"),
        column("pg.replication.flush_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn))"),
        column("pg.replication.replay_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))"),
        column("pg.replication.write_lag_us", "extract(epoch FROM max(write_lag)) * 1000000"),
        column("pg.replication.flush_lag_us", "extract(epoch FROM max(flush_lag)) * 1000000"),
        column("pg.replication.replay_lag_us", "extract(epoch FROM max(replay_lag)) * 1000000"),
    ],
};

/// All modes each time: a gauge that exists only when it is not zero has no mean.
const LOCKS: View = View {
    majors: Majors::ALL,
    label: "m.mode || '/' || w.word",
    from: "unnest(ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock', 'ShareUpdateExclusiveLock', \
           'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock', 'SIReadLock']) m(mode) \
           CROSS JOIN (VALUES (true, 'granted'), (false, 'waiting')) w(granted, word) \
           LEFT JOIN pg_locks l ON l.mode = m.mode AND l.granted = w.granted \
           AND l.pid IS DISTINCT FROM pg_backend_pid() GROUP BY m.mode, w.word",
    columns: &[column("pg.locks", "count(l.mode)")],
};

/// Clients have a port (-1 on a Unix socket), the server's own processes have none.
const SESSIONS: View = View {
    majors: Majors::ALL,
    label: "s.state",
    from: "unnest(ARRAY['active', 'idle', 'idle in transaction', 'idle in transaction (aborted)', \
           'fastpath function call', 'disabled']) s(state) \
           LEFT JOIN pg_stat_get_activity(NULL) a ON a.state = s.state AND a.client_port IS NOT NULL \
           AND a.application_name NOT LIKE 'pgdyno %' GROUP BY s.state",
    columns: &[column("pg.sessions", "count(a.pid)")],
};

const BASE_BACKUP: View = View {
    majors: Majors::since(13),
    label: "pid",
    from: "pg_stat_progress_basebackup",
    columns: &[
        column("pg.progress.base_backup.total_bytes", "backup_total"),
        column("pg.progress.base_backup.streamed_bytes", "backup_streamed"),
    ],
};
