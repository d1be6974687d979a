//! The planted causes, and what `explain` must say about them.

/// A cause planted in a trial, and the expected explanation.
pub(super) struct Case {
    pub(super) what: &'static str,
    /// The server: `18`, `small` with WAL segments of 1 MB, or `slow`, whose syncs of WAL take 5 ms longer.
    pub(super) server: &'static str,
    /// Part of the campaign that is specific to the case.
    pub(super) campaign: &'static str,
    /// Files of the workload, in the campaign's directory; `400× …` is a line that occurs so many times.
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) planted: Planted,
    /// The cause that must be reported, with its least and its largest share.
    pub(super) expected: Option<(&'static str, f64, f64)>,
    /// The parts of the latency that must have the amount that was planted.
    pub(super) amount: Option<Amount>,
    /// Causes that apply to this trial as well, and may be reported.
    pub(super) may_be_named: &'static [&'static str],
}

pub(super) enum Planted {
    /// Nothing beyond the campaign.
    Nothing,
    /// Processes that only burn CPU time, on these processors.
    Busy { cpus: &'static str, processes: usize },
    /// SQL in the tested database before the load.
    Sql(&'static str),
    /// A session that holds the row of branch 1 most of the time, idle in its transaction.
    HoldsBranch,
    /// SQL in the tested database of the subscriber before the load.
    ReplicaSql(&'static str),
    /// A session on the standby that replay has to wait for, half of the time.
    Conflicts,
    /// A synchronous standby that does not exist: commits in the tested database wait for it until they are released.
    MissingStandby,
}

/// A planted amount of time.
pub(super) struct Amount {
    /// Parts of the budget, by the beginnings of their names.
    pub(super) parts: &'static [&'static str],
    /// SQL: microseconds per transaction, as measured in the trial itself. It includes what a busy machine adds.
    pub(super) measured: &'static str,
    /// The least that the planted code can take, in microseconds.
    pub(super) at_least_us: f64,
}

/// The cause that other users of the machine can add to any case: with it, CPU causes are not judged.
pub(super) const FOREIGN: &str = "foreign-cpu";
pub(super) const OF_CPU: [&str; 6] = ["beside", "driver", "server-cpu", "cpu-steal", "round-trips", FOREIGN];

/// What a disk that stands still for a moment adds to an open loop.
const STALLS: &str = "stalls";

const NOTHING: Case = Case {
    what: "",
    server: "18",
    campaign: "",
    files: &[],
    planted: Planted::Nothing,
    expected: None,
    amount: None,
    may_be_named: &[],
};

/// Mean of the times that planted functions have measured themselves, in the table `planted`.
const MEAN: &str = "select avg(us)::float8 from planted";

/// A trigger of the subscriber, with which it takes 20 ms to apply a row.
const SLOW_APPLY: Planted = Planted::ReplicaSql(
    "create function nap() returns trigger language plpgsql as
     $$ begin perform pg_sleep(0.02); return new; end $$;
     create trigger nap before insert on pgbench_history for each row execute procedure nap();
     alter table pgbench_history enable always trigger nap",
);

pub(super) const CASES: [Case; 30] = [
    Case {
        what: "nothing: one client, lookups by key",
        campaign: "workload = ['select-only']\nclients = [1]",
        may_be_named: &["round-trips", "server-cpu"],
        ..NOTHING
    },
    Case {
        what: "a busy driver: 400 random numbers for each statement, one thread for four clients",
        campaign: "workload = ['busy']\nclients = [4]\nthreads = [1]\n[workloads.busy]\nscripts = ['busy.sql']",
        files: &[("busy.sql", "400× \\set a random_gaussian(1, 1000000, 3.0)\nselect 1;\n")],
        expected: Some(("driver", 0.5, 1.0)),
        may_be_named: &["server-cpu"],
        ..NOTHING
    },
    Case {
        what: "the driver starved: kept to one processor, with four busy processes on it",
        campaign: "workload = ['select-only']\nclients = [8]\npin = ['apart']\n[pins.apart]\ndriver = '0'\nserver = '1'",
        planted: Planted::Busy { cpus: "0", processes: 4 },
        expected: Some((FOREIGN, 0.3, 1.0)),
        ..NOTHING
    },
    Case {
        what: "CPU taken by others: sixteen busy processes",
        campaign: "workload = ['select-only']\nclients = [4]",
        planted: Planted::Busy { cpus: "0,1", processes: 16 },
        // The kernel prefers processes that sleep: those that do not had a third of the CPU time on some days.
        expected: Some((FOREIGN, 0.2, 1.0)),
        may_be_named: &["server-cpu"],
        ..NOTHING
    },
    Case {
        what: "server CPU: lookups by 16 clients on one processor",
        campaign: "workload = ['select-only']\nclients = [16]\npin = ['apart']\n[pins.apart]\ndriver = '0'\nserver = '1'",
        expected: Some(("server-cpu", 0.33, 1.0)),
        ..NOTHING
    },
    Case {
        what: "a function that computes for as long as it measures itself",
        campaign: "workload = ['burn']\nclients = [4]\n[workloads.burn]\nscripts = ['burn.sql']",
        files: &[("burn.sql", "select burn(500000);\n")],
        planted: Planted::Sql(
            "create unlogged table planted (us float8);
             create function burn(n int) returns void language plpgsql as $$
             declare t timestamptz := clock_timestamp(); x float8 := 0;
             begin for i in 1..n loop x := x + sqrt(i); end loop;
             insert into planted values (extract(epoch from clock_timestamp() - t) * 1000000); end $$",
        ),
        expected: Some(("server-cpu", 0.5, 1.0)),
        amount: Some(Amount {
            parts: &["server on CPU", "server waits for a CPU"],
            measured: MEAN,
            at_least_us: 1000.0,
        }),
        ..NOTHING
    },
    Case {
        what: "a background workload that computes",
        campaign: "workload = ['disturbed']\nclients = [1]\n[workloads.disturbed]\nbuiltin = 'select-only'\n\
                   background = [{ workload = 'burn.sql', clients = 1 }]",
        files: &[("burn.sql", "select sum(sqrt(i)) from generate_series(1, 100000) i;\n")],
        expected: Some(("beside", 0.2, 1.0)),
        may_be_named: &["round-trips", "server-cpu", "driver"],
        ..NOTHING
    },
    Case {
        what: "row locks: 16 clients update one row",
        campaign: "workload = ['tpcb-like']\nclients = [16]\nsettings = ['async']\n[settings.async]\n\
                   synchronous_commit = false\nautovacuum = false",
        expected: Some(("row-locks", 0.3, 1.0)),
        may_be_named: &["server-cpu", "internal-locks"],
        ..NOTHING
    },
    Case {
        what: "an advisory lock held for 3 ms of 10 by each of 8 clients",
        campaign: "workload = ['hold']\nclients = [8]\n[workloads.hold]\nscripts = ['hold.sql']",
        files: &[("hold.sql", "select hold();\nselect pg_sleep(0.007);\n")],
        planted: Planted::Sql(
            "create unlogged table planted (us float8);
             create function hold() returns void language plpgsql as $$
             declare t timestamptz := clock_timestamp();
             begin perform pg_advisory_xact_lock(1);
             insert into planted values (extract(epoch from clock_timestamp() - t) * 1000000);
             perform pg_sleep(0.003); end $$",
        ),
        expected: Some(("advisory-locks", 0.3, 0.75)),
        // A client waits for 7 others, less what it spends outside itself.
        amount: Some(Amount { parts: &["lock advisory"], measured: MEAN, at_least_us: 10_000.0 }),
        may_be_named: &["sleep"],
        ..NOTHING
    },
    Case {
        what: "a lock on a table, held for 3 ms by each of 8 clients",
        campaign: "workload = ['table']\nclients = [8]\n[workloads.table]\nscripts = ['table.sql']",
        files: &[(
            "table.sql",
            "begin;\nlock table pgbench_branches in exclusive mode;\nselect pg_sleep(0.003);\nend;\n",
        )],
        expected: Some(("table-locks", 0.5, 1.0)),
        may_be_named: &["sleep"],
        ..NOTHING
    },
    Case {
        what: "a lock that an idle transaction holds three quarters of the time",
        campaign: "workload = ['tpcb-like']\nclients = [4]\nsettings = ['plain']\n[settings.plain]\nautovacuum = false",
        planted: Planted::HoldsBranch,
        expected: Some(("idle-transaction", 0.2, 1.0)),
        may_be_named: &["row-locks", "wal-flush", "server-cpu"],
        ..NOTHING
    },
    Case {
        what: "WAL flush: commit_delay of 20 ms",
        campaign: "workload = ['simple-update']\nclients = [4]\nsettings = ['delayed']\n[settings.delayed]\n\
                   commit_delay = 20000\ncommit_siblings = 0\nautovacuum = false",
        expected: Some(("wal-flush", 0.5, 1.0)),
        ..NOTHING
    },
    Case {
        what: "WAL flush: syncs of WAL that take 5 ms longer",
        server: "slow",
        campaign: "workload = ['simple-update']\nclients = [1]\nsettings = ['plain']\n[settings.plain]\n\
                   autovacuum = false\ntrack_wal_io_timing = true\nwal_sync_method = 'fdatasync'",
        expected: Some(("wal-flush", 0.5, 1.0)),
        amount: Some(Amount {
            parts: &["WAL flush (WalSync)"],
            // One client: each of its transactions syncs once.
            measured: "select sum(fsync_time) * 1000 / sum(fsyncs) from pg_stat_io \
                       where object = 'wal' and context = 'normal' and backend_type = 'client backend'",
            at_least_us: 5000.0,
        }),
        ..NOTHING
    },
    Case {
        what: "a synchronous standby that never answers, with commits released every 20 ms",
        campaign: "workload = ['simple-update']\nclients = [4]\nsettings = ['standby']\n[settings.standby]\nautovacuum = false\n\
                   synchronous_standby_names = 'planted'\nsynchronous_commit = 'local'",
        planted: Planted::MissingStandby,
        expected: Some(("sync-replication", 0.5, 1.0)),
        may_be_named: &["wal-flush"],
        ..NOTHING
    },
    Case {
        what: "reads from disk: 235 MB of data in 64 MB of memory, on a disk of 1000 reads a second",
        campaign: "workload = ['select-only']\nclients = [2]\nscale = [15]\ncache = ['cold']\nsettings = ['small']\n\
                   memory = ['64MB']\ndisk = ['slow']\n\
                   [settings.small]\nio_method = 'sync'\nshared_buffers = '8MB'\n[disks.slow]\nread_iops = 1000",
        expected: Some(("disk-reads", 0.5, 1.0)),
        may_be_named: &["memory-pressure"],
        ..NOTHING
    },
    Case {
        what: "reads from the page cache: scans of 40 MB with 1 MB of buffers",
        campaign: "workload = ['scan']\nclients = [1]\nsettings = ['small']\n[settings.small]\nio_method = 'sync'\n\
                   shared_buffers = '1MB'\nautovacuum = false\nmax_parallel_workers_per_gather = 0\n\
                   [workloads.scan]\nscripts = ['scan.sql']",
        files: &[("scan.sql", "select count(*) from wide;\n")],
        planted: Planted::Sql(
            "create table wide (f text);
             alter table wide alter f set storage plain;
             insert into wide select repeat('x', 5000) from generate_series(1, 5000)",
        ),
        expected: Some(("cached-reads", 0.15, 1.0)),
        may_be_named: &["server-cpu"],
        ..NOTHING
    },
    Case {
        what: "temporary files: a sort of 14 MB with 64 kB of memory",
        campaign: "workload = ['sort']\nclients = [1]\nsettings = ['small']\n[settings.small]\nwork_mem = '64kB'\n\
                   [workloads.sort]\nscripts = ['sort.sql']",
        files: &[(
            "sort.sql",
            "select count(*) from (select i, repeat('x', 7000) f from generate_series(1, 2000) i order by i desc, f offset 0) s;\n",
        )],
        expected: Some(("temporary-files", 0.15, 1.0)),
        may_be_named: &["server-cpu"],
        ..NOTHING
    },
    Case {
        what: "parallel workers: scans by two of them, without the leader",
        campaign: "workload = ['scan']\nclients = [1]\nscale = [5]\nsettings = ['parallel']\n[settings.parallel]\n\
                   min_parallel_table_scan_size = 0\nparallel_setup_cost = 0\nparallel_tuple_cost = 0\n\
                   parallel_leader_participation = false\nautovacuum = false\n[workloads.scan]\nscripts = ['scan.sql']",
        files: &[("scan.sql", "select sum(abalance) from pgbench_accounts;\n")],
        expected: Some(("parallel-workers", 0.5, 1.0)),
        may_be_named: &["server-cpu"],
        ..NOTHING
    },
    Case {
        what: "pg_sleep of 5 ms in a trigger",
        campaign: "workload = ['simple-update']\nclients = [4]\nsettings = ['plain']\n[settings.plain]\n\
                   autovacuum = false\nfsync = false",
        planted: Planted::Sql(
            "create unlogged table planted (us float8);
             create function nap() returns trigger language plpgsql as $$
             declare t timestamptz := clock_timestamp();
             begin perform pg_sleep(0.005);
             insert into planted values (extract(epoch from clock_timestamp() - t) * 1000000);
             return new; end $$;
             create trigger nap before insert on pgbench_history for each row execute procedure nap()",
        ),
        expected: Some(("sleep", 0.5, 1.0)),
        amount: Some(Amount { parts: &["wait Timeout:PgSleep"], measured: MEAN, at_least_us: 5000.0 }),
        ..NOTHING
    },
    Case {
        what: "twice the rate that two clients reach",
        campaign: "workload = ['nap']\nclients = [2]\nrate = [400]\n[workloads.nap]\nscripts = ['nap.sql']",
        files: &[("nap.sql", "select pg_sleep(0.01);\n")],
        expected: Some(("free-clients", 0.5, 1.0)),
        ..NOTHING
    },
    Case {
        what: "100 lookups a second, all stopped by a lock for 0.4 of each 2 s",
        campaign: "workload = ['stopped']\nclients = [4]\nrate = [100]\n[workloads.stopped]\nscripts = ['lookup.sql']\n\
                   background = [{ workload = 'stop.sql', clients = 1 }]",
        files: &[
            ("lookup.sql", "select pg_advisory_xact_lock_shared(1);\n"),
            (
                "stop.sql",
                "begin;\nselect pg_advisory_xact_lock(1);\nselect pg_sleep(0.4);\nend;\nselect pg_sleep(1.6);\n",
            ),
        ],
        expected: Some(("stalls", 0.6, 1.0)),
        // Four of the 40 transactions that are due wait for the lock themselves.
        may_be_named: &["advisory-locks", "idle-transaction"],
        ..NOTHING
    },
    Case {
        what: "an open loop of 20 transactions a second that sleep for 10 ms",
        campaign: "workload = ['nap']\nclients = [4]\nrate = [20]\n[workloads.nap]\nscripts = ['nap.sql']",
        files: &[("nap.sql", "select nap();\n")],
        planted: Planted::Sql(
            "create unlogged table planted (us float8);
             create function nap() returns void language plpgsql as $$
             declare t timestamptz := clock_timestamp();
             begin perform pg_sleep(0.01);
             insert into planted values (extract(epoch from clock_timestamp() - t) * 1000000); end $$",
        ),
        expected: Some(("sleep", 0.3, 1.0)),
        // One of five samples shows a transaction.
        may_be_named: &[STALLS, "round-trips"],
        ..NOTHING
    },
    Case {
        what: "a checkpoint storm: max_wal_size of 2 MB",
        server: "small",
        campaign: "workload = ['simple-update']\nclients = [8]\nscale = [10]\nsettings = ['tiny']\n[settings.tiny]\n\
                   max_wal_size = '2MB'\nmin_wal_size = '2MB'\nsynchronous_commit = false\nautovacuum = false",
        expected: Some(("checkpoints", 0.2, 1.0)),
        may_be_named: &["server-cpu", "wal-flush", "internal-locks", "cached-reads", "driver", "other-waits"],
        ..NOTHING
    },
    Case {
        what: "autovacuum on the tested tables, slowed down by its cost delay",
        campaign: "workload = ['simple-update']\nclients = [4]\nscale = [5]\nsettings = ['eager']\n[settings.eager]\n\
                   autovacuum_naptime = '1s'\nautovacuum_vacuum_threshold = 50\nautovacuum_vacuum_scale_factor = 0\n\
                   autovacuum_vacuum_cost_delay = '20ms'\nautovacuum_vacuum_cost_limit = 100\nfsync = false",
        expected: Some(("autovacuum", 0.2, 1.0)),
        may_be_named: &["server-cpu", "round-trips", "driver"],
        ..NOTHING
    },
    Case {
        what: "a standby that replays commits when they are 60 ms old, and that commits wait for (`standby-remote-apply`)",
        campaign: "workload = ['simple-update']\nclients = [2]\ntopology = ['standby-remote-apply']\nsettings = ['late']\n\
                   [settings.late]\nautovacuum = false\n'standby.recovery_min_apply_delay' = '60ms'",
        expected: Some(("sync-replication", 0.85, 1.0)),
        amount: Some(Amount {
            parts: &["wait IPC:SyncRep"],
            measured: "select 60000::float8",
            at_least_us: 60_000.0,
        }),
        ..NOTHING
    },
    Case {
        what: "queries on a standby that replay waits for, half of the time (`standby-async`)",
        campaign: "workload = ['simple-update']\nclients = [4]\nrate = [50]\ntopology = ['standby-async']\n\
                   settings = ['patient']\n[settings.patient]\nautovacuum = false\n\
                   'standby.max_standby_streaming_delay' = '1s'",
        planted: Planted::Conflicts,
        expected: Some(("replay-conflicts", 0.4, 0.5)),
        may_be_named: &[STALLS, "round-trips", "wal-flush", "server-cpu"],
        ..NOTHING
    },
    Case {
        what: "100 transactions a second, of which a subscriber needs 20 ms to apply each (`logical`)",
        campaign: "workload = ['simple-update']\nclients = [4]\nrate = [100]\ntopology = ['logical']\nsettings = ['plain']\n\
                   [settings.plain]\nautovacuum = false",
        planted: SLOW_APPLY,
        expected: Some(("replay-saturated", 0.9, 1.0)),
        may_be_named: &[STALLS, "round-trips", "wal-flush", "server-cpu"],
        ..NOTHING
    },
    Case {
        what: "the same with 20 transactions a second",
        campaign: "workload = ['simple-update']\nclients = [4]\nrate = [20]\ntopology = ['logical']\nsettings = ['plain']\n\
                   [settings.plain]\nautovacuum = false",
        planted: SLOW_APPLY,
        may_be_named: &[STALLS, "round-trips", "wal-flush", "server-cpu"],
        ..NOTHING
    },
    Case {
        what: "a pool of one server connection for four clients that sleep for 10 ms (`pgbouncer-transaction`)",
        campaign: "workload = ['nap']\nclients = [4]\nprotocol = ['extended']\ntopology = ['pgbouncer-transaction']\n\
                   settings = ['small']\n[settings.small]\n'pgbouncer.default_pool_size' = 1\n\
                   [workloads.nap]\nscripts = ['nap.sql']",
        files: &[("nap.sql", "select pg_sleep(0.01);\n")],
        expected: Some(("pooler-queue", 0.65, 0.75)),
        // Each client waits for three others.
        amount: Some(Amount {
            parts: &["waiting for a server connection"],
            measured: "select 30000::float8",
            at_least_us: 30_000.0,
        }),
        may_be_named: &["sleep"],
        ..NOTHING
    },
    Case {
        what: "the same with a pool of four",
        campaign: "workload = ['nap']\nclients = [4]\nprotocol = ['extended']\ntopology = ['pgbouncer-transaction']\n\
                   settings = ['enough']\n[settings.enough]\n'pgbouncer.default_pool_size' = 4\n\
                   [workloads.nap]\nscripts = ['nap.sql']",
        files: &[("nap.sql", "select pg_sleep(0.01);\n")],
        expected: Some(("sleep", 0.8, 1.0)),
        ..NOTHING
    },
];

/// Replaces the case with limits if control groups are unavailable.
pub(super) const WITHOUT_LIMITS: Case = Case {
    what: "reads from disk: direct I/O with next to no buffers",
    campaign: "workload = ['select-only']\nclients = [2]\nscale = [10]\ncache = ['cold']\nsettings = ['direct']\n\
               [settings.direct]\ndebug_io_direct = 'data'\nio_method = 'sync'\nshared_buffers = '256kB'",
    expected: Some(("disk-reads", 0.15, 1.0)),
    may_be_named: &["server-cpu", "internal-locks"],
    ..NOTHING
};
