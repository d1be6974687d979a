//! What the server counts of itself as a whole, and of the tested database: read from outside that database.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System", of each major; docs/metrics-postgres.md has the list.

use super::session::{MARK, Session, literal};
use super::view::{ALWAYS, Questions, View, before, counter, gauge, since, where_on};
use crate::{Reading, Source};

/// The views of the whole server, and `pg_stat_database` of one database. A [`Source`].
#[derive(Debug)]
pub struct Statistics {
    session: Session,
    questions: Questions,
    block_size: f64,
}

impl Statistics {
    /// By a session with another database than the tested one, so that it counts no transactions of this.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn new(mut session: Session, tested_database: &str) -> Result<Self, String> {
        let sql = format!("SELECT {MARK} current_setting('block_size')");
        let found = session.ask(&sql).map_err(|refusal| refusal.why)?.next();
        let block_size = found.and_then(|row| row.get(0)?.parse().ok());
        let block_size = block_size.ok_or("the server does not tell how large its blocks are")?;
        let given = [(":database", literal(tested_database))];
        let given = given.each_ref().map(|(name, sql)| (*name, sql.as_str()));
        let views: Vec<&View> = VIEWS.iter().collect();
        Ok(Self { questions: Questions::new(&views, session.major(), &given), session, block_size })
    }
}

impl Source for Statistics {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn read(&mut self, into: &mut Reading) -> Result<(), String> {
        self.questions.read(&mut self.session, into)?;
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

/// Up to 16 `buffers_backend` counts every block that was written or added to a relation by others than the checkpointer
/// and the background writer. From 17 on that is a sum over `pg_stat_io`, which has been read already: reading it is what
/// costs most of all.
fn backends_writes(major: u32, block_size: f64, into: &mut Reading) {
    let is_backends = |of: &str| {
        let mut parts = of.split('/');
        !matches!(parts.next(), Some("checkpointer" | "background writer"))
            && parts.next() == Some("relation")
    };
    let of = |metrics: &[&str]| sum_of_io(into, metrics, is_backends);
    let blocks = match major {
        17 => of(&["pg.io.writes", "pg.io.extends"]),
        // An extension may be of many blocks.
        _ => of(&["pg.io.write_bytes", "pg.io.extend_bytes"]).map(|bytes| bytes / block_size),
    };
    let fsyncs = of(&["pg.io.fsyncs"]);
    for (metric, value) in [("pg.backend.buffers_written", blocks), ("pg.backend.fsyncs", fsyncs)] {
        if let Some(value) = value {
            into.counter(metric, None, value);
        }
    }
}

/// What `pg_stat_wal` had before 18. Of the context `normal` alone: `init` is a new segment being filled with zeros, which
/// was not counted there.
fn wal_io(into: &mut Reading) {
    for (metric, io) in [
        ("pg.wal.writes", "pg.io.writes"),
        ("pg.wal.syncs", "pg.io.fsyncs"),
        ("pg.wal.write_us", "pg.io.write_us"),
        ("pg.wal.sync_us", "pg.io.fsync_us"),
    ] {
        if let Some(value) = sum_of_io(into, &[io], |of| of.ends_with("/wal/normal")) {
            into.counter(metric, None, value);
        }
    }
}

/// The sum of some rows of `pg_stat_io`; none where none of them has a value.
fn sum_of_io(reading: &Reading, metrics: &[&str], is_one: impl Fn(&str) -> bool) -> Option<f64> {
    reading
        .values()
        .filter(|(metric, of, _, _)| metrics.contains(metric) && of.is_some_and(&is_one))
        .map(|(_, _, _, value)| value)
        .reduce(|sum, value| sum + value)
}

static VIEWS: [View; 14] = [
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
    majors: ALWAYS,
    of: "NULL",
    from: "pg_stat_database WHERE datname = :database",
    columns: &[
        counter("pg.database.commits", "xact_commit"),
        counter("pg.database.rollbacks", "xact_rollback"),
        counter("pg.database.blks_read", "blks_read"),
        counter("pg.database.blks_hit", "blks_hit"),
        counter("pg.database.tup_returned", "tup_returned"),
        counter("pg.database.tup_fetched", "tup_fetched"),
        counter("pg.database.tup_inserted", "tup_inserted"),
        counter("pg.database.tup_updated", "tup_updated"),
        counter("pg.database.tup_deleted", "tup_deleted"),
        counter("pg.database.conflicts", "conflicts"),
        counter("pg.database.temp_files", "temp_files"),
        counter("pg.database.temp_bytes", "temp_bytes"),
        counter("pg.database.deadlocks", "deadlocks"),
        counter("pg.database.blk_read_us", where_on!("track_io_timing", "blk_read_time * 1000")),
        counter("pg.database.blk_write_us", where_on!("track_io_timing", "blk_write_time * 1000")),
        counter("pg.database.checksum_failures", "checksum_failures").only(since(12)),
        counter("pg.database.session_us", "session_time * 1000").only(since(14)),
        counter("pg.database.active_us", "active_time * 1000").only(since(14)),
        counter("pg.database.idle_in_transaction_us", "idle_in_transaction_time * 1000").only(since(14)),
        counter("pg.database.sessions", "sessions").only(since(14)),
        counter("pg.database.sessions_abandoned", "sessions_abandoned").only(since(14)),
        counter("pg.database.sessions_fatal", "sessions_fatal").only(since(14)),
        counter("pg.database.sessions_killed", "sessions_killed").only(since(14)),
        counter("pg.database.parallel_workers_to_launch", "parallel_workers_to_launch").only(since(18)),
        counter("pg.database.parallel_workers_launched", "parallel_workers_launched").only(since(18)),
        gauge("pg.database.backends", "numbackends"),
    ],
};

/// Before 15 the statistics are a file that a collector process writes, at most every half second.
const STATISTICS_AGE: View = View {
    majors: before(15),
    of: "NULL",
    from: "(SELECT pg_stat_get_snapshot_timestamp() AS at) written",
    columns: &[gauge("pg.statistics.age_us", "extract(epoch FROM clock_timestamp() - at) * 1000000")],
};

const BACKGROUND_WRITER_BEFORE_17: View = View {
    majors: before(17),
    of: "NULL",
    from: "pg_stat_bgwriter",
    columns: &[
        counter("pg.checkpoints_timed", "checkpoints_timed"),
        counter("pg.checkpoints_requested", "checkpoints_req"),
        counter("pg.checkpoint.buffers_written", "buffers_checkpoint"),
        counter("pg.checkpoint.write_us", "checkpoint_write_time * 1000"),
        counter("pg.checkpoint.sync_us", "checkpoint_sync_time * 1000"),
        counter("pg.bgwriter.buffers_written", "buffers_clean"),
        counter("pg.bgwriter.maxwritten_clean", "maxwritten_clean"),
        counter("pg.backend.buffers_written", "buffers_backend"),
        counter("pg.backend.fsyncs", "buffers_backend_fsync"),
        counter("pg.buffers_allocated", "buffers_alloc"),
    ],
};

const BACKGROUND_WRITER: View = View {
    majors: since(17),
    of: "NULL",
    from: "pg_stat_bgwriter",
    columns: &[
        counter("pg.bgwriter.buffers_written", "buffers_clean"),
        counter("pg.bgwriter.maxwritten_clean", "maxwritten_clean"),
        counter("pg.buffers_allocated", "buffers_alloc"),
    ],
};

const CHECKPOINTER: View = View {
    majors: since(17),
    of: "NULL",
    from: "pg_stat_checkpointer",
    columns: &[
        counter("pg.checkpoints_timed", "num_timed"),
        counter("pg.checkpoints_requested", "num_requested"),
        counter("pg.checkpoints_done", "num_done").only(since(18)),
        counter("pg.checkpoint.buffers_written", "buffers_written"),
        counter("pg.checkpoint.slru_buffers_written", "slru_written").only(since(18)),
        counter("pg.checkpoint.write_us", "write_time * 1000"),
        counter("pg.checkpoint.sync_us", "sync_time * 1000"),
    ],
};

const WAL_POSITION_9_6: View = View {
    majors: before(10),
    of: "NULL",
    from: "(SELECT 1) one WHERE NOT pg_is_in_recovery()",
    columns: &[counter("pg.wal.bytes", "pg_xlog_location_diff(pg_current_xlog_insert_location(), '0/0')")],
};

const WAL_POSITION: View = View {
    majors: since(10),
    of: "NULL",
    from: "(SELECT 1) one WHERE NOT pg_is_in_recovery()",
    columns: &[counter("pg.wal.bytes", "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")],
};

const WAL: View = View {
    majors: since(14),
    of: "NULL",
    from: "pg_stat_wal",
    columns: &[
        counter("pg.wal.records", "wal_records"),
        counter("pg.wal.full_page_images", "wal_fpi"),
        counter("pg.wal.buffers_full", "wal_buffers_full"),
        counter("pg.wal.writes", "wal_write").only(before(18)),
        counter("pg.wal.syncs", "wal_sync").only(before(18)),
        counter("pg.wal.write_us", where_on!("track_wal_io_timing", "wal_write_time * 1000"))
            .only(before(18)),
        counter("pg.wal.sync_us", where_on!("track_wal_io_timing", "wal_sync_time * 1000")).only(before(18)),
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
    majors: since(16),
    of: "backend_type || '/' || object || '/' || context",
    // `OFFSET 0` has the settings looked up once, and not in each row.
    from: "pg_stat_io CROSS JOIN (SELECT current_setting('track_wal_io_timing')::bool AS wal, \
           current_setting('track_io_timing')::bool AS others OFFSET 0) timed",
    columns: &[
        counter("pg.io.reads", "reads"),
        counter("pg.io.read_bytes", "reads * op_bytes").only(before(18)),
        counter("pg.io.read_bytes", "read_bytes").only(since(18)),
        counter("pg.io.read_us", io_time!("read_time")),
        counter("pg.io.writes", "writes"),
        counter("pg.io.write_bytes", "writes * op_bytes").only(before(18)),
        counter("pg.io.write_bytes", "write_bytes").only(since(18)),
        counter("pg.io.write_us", io_time!("write_time")),
        counter("pg.io.writebacks", "writebacks"),
        counter("pg.io.writeback_us", io_time!("writeback_time")),
        counter("pg.io.extends", "extends"),
        counter("pg.io.extend_bytes", "extends * op_bytes").only(before(18)),
        counter("pg.io.extend_bytes", "extend_bytes").only(since(18)),
        counter("pg.io.extend_us", io_time!("extend_time")),
        counter("pg.io.hits", "hits"),
        counter("pg.io.evictions", "evictions"),
        counter("pg.io.reuses", "reuses"),
        counter("pg.io.fsyncs", "fsyncs"),
        counter("pg.io.fsync_us", io_time!("fsync_time")),
    ],
};

const SLRU: View = View {
    majors: since(13),
    of: "name",
    from: "pg_stat_slru",
    columns: &[
        counter("pg.slru.blks_zeroed", "blks_zeroed"),
        counter("pg.slru.blks_hit", "blks_hit"),
        counter("pg.slru.blks_read", "blks_read"),
        counter("pg.slru.blks_written", "blks_written"),
        counter("pg.slru.blks_exists", "blks_exists"),
        counter("pg.slru.flushes", "flushes"),
        counter("pg.slru.truncates", "truncates"),
    ],
};

/// Of standbys of one name, the one that is furthest behind.
const REPLICATION: View = View {
    majors: since(10),
    of: "application_name",
    from: "pg_stat_replication WHERE NOT pg_is_in_recovery() GROUP BY application_name",
    columns: &[
        gauge("pg.replication.sent_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), sent_lsn))"),
        gauge("pg.replication.write_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), write_lsn))"),
        gauge("pg.replication.flush_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn))"),
        gauge("pg.replication.replay_lag_bytes", "max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))"),
        gauge("pg.replication.write_lag_us", "extract(epoch FROM max(write_lag)) * 1000000"),
        gauge("pg.replication.flush_lag_us", "extract(epoch FROM max(flush_lag)) * 1000000"),
        gauge("pg.replication.replay_lag_us", "extract(epoch FROM max(replay_lag)) * 1000000"),
    ],
};

/// Every mode each time: a gauge that is there only when it is not zero has no mean.
const LOCKS: View = View {
    majors: ALWAYS,
    of: "m.mode || '/' || w.word",
    from: "unnest(ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock', 'ShareUpdateExclusiveLock', \
           'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock', 'SIReadLock']) m(mode) \
           CROSS JOIN (VALUES (true, 'granted'), (false, 'waiting')) w(granted, word) \
           LEFT JOIN pg_locks l ON l.mode = m.mode AND l.granted = w.granted \
           AND l.pid IS DISTINCT FROM pg_backend_pid() GROUP BY m.mode, w.word",
    columns: &[gauge("pg.locks", "count(l.mode)")],
};

/// Clients have a port (-1 on a Unix socket), the server's own processes have none.
const SESSIONS: View = View {
    majors: ALWAYS,
    of: "s.state",
    from: "unnest(ARRAY['active', 'idle', 'idle in transaction', 'idle in transaction (aborted)', \
           'fastpath function call', 'disabled']) s(state) \
           LEFT JOIN pg_stat_get_activity(NULL) a ON a.state = s.state AND a.client_port IS NOT NULL \
           AND a.application_name NOT LIKE 'pgdyno %' GROUP BY s.state",
    columns: &[gauge("pg.sessions", "count(a.pid)")],
};

const BASE_BACKUP: View = View {
    majors: since(13),
    of: "pid",
    from: "pg_stat_progress_basebackup",
    columns: &[
        gauge("pg.progress.base_backup.total_bytes", "backup_total"),
        gauge("pg.progress.base_backup.streamed_bytes", "backup_streamed"),
    ],
};
