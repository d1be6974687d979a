//! Roles of processes in a trial.

use strum::{IntoStaticStr, VariantArray};

/// Roles of processes. Their metrics are labelled with these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Role {
    /// The load generator, with all its threads and child processes.
    Driver,
    /// This process, including collectors.
    Pgdyno,
    /// Client backends of the server, except the two kinds below.
    Load,
    /// Backends of background workloads.
    #[strum(serialize = "beside")]
    Background,
    /// Backends of pgdyno's collectors.
    Collector,
    Checkpointer,
    #[strum(serialize = "background writer")]
    BackgroundWriter,
    WalWriter,
    #[strum(serialize = "autovacuum launcher")]
    AutovacuumLauncher,
    #[strum(serialize = "autovacuum worker")]
    AutovacuumWorker,
    /// Since PostgreSQL 18.
    #[strum(serialize = "io worker")]
    IoWorker,
    #[strum(serialize = "parallel worker")]
    ParallelWorker,
    WalSender,
    Startup,
    Archiver,
    /// Until PostgreSQL 14.
    #[strum(serialize = "stats collector")]
    StatsCollector,
    Logger,
    Postmaster,
    /// Any other process of the server, and child processes of its processes.
    #[strum(serialize = "server other")]
    ServerOther,
    /// The process of a standby or a subscriber that replays or applies changes.
    #[strum(serialize = "replica replay")]
    ReplicaReplay,
    /// Its other processes.
    #[strum(serialize = "replica other")]
    ReplicaOther,
    /// The pooler.
    Pgbouncer,
    /// Kernel threads.
    Kernel,
}

impl Role {
    /// Its name in metrics; that of the server's is `backend_type` of `pg_stat_activity`, if it has one there.
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it is a process of the server.
    pub(super) const fn is_of_server(self) -> bool {
        !matches!(self, Self::Driver | Self::Pgdyno | Self::Kernel) && !self.is_of_companion()
    }

    /// Whether it is a process of what is next to the server.
    pub(super) const fn is_of_companion(self) -> bool {
        matches!(self, Self::ReplicaReplay | Self::ReplicaOther | Self::Pgbouncer)
    }

    /// Whether the title of a replica's process is that of the one that replays or applies changes.
    pub(super) fn is_replay(title: &str) -> bool {
        let after_colons = title.match_indices(": ").map(|(at, colon)| &title[at + colon.len()..]);
        let is_replay = |text: &str| REPLAY.iter().any(|name| starts_with_words(text, name));
        after_colons.into_iter().any(is_replay)
    }

    /// The role of a server process by its title, as `ps` shows it; none while it has no title.
    ///
    /// Source: PostgreSQL manual, "Standard Unix Tools", and `init_ps_display` in the sources of 9.6 to 18.
    pub(super) fn by_title(title: &str) -> Option<Self> {
        let title = title.strip_prefix("postgres: ")?;
        // `cluster_name`, if set, comes first, and may contain colons.
        let named = |names: &[(&str, Self)]| {
            let after_colons = title.match_indices(": ").map(|(at, colon)| &title[at + colon.len()..]);
            let role_of = |text: &str| {
                let found = names.iter().find(|(name, _)| starts_with_words(text, name))?;
                Some(found.1)
            };
            std::iter::once(title).chain(after_colons).find_map(role_of)
        };
        // Before clients, as these titles may contain an address too, or user-defined names.
        if let Some(role) = named(&BEFORE_CLIENTS) {
            return Some(role);
        }
        // A user may be called `checkpointer`: titles with an address are clients'.
        if title.split(' ').any(is_address) {
            return Some(Self::Load);
        }
        Some(named(&OTHERS).unwrap_or(Self::ServerOther))
    }

    /// The role of a server process by the functions on its stack; none if they do not determine it.
    pub(super) fn by_functions<'a>(functions: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut found = None;
        for function in functions {
            match MAIN_FUNCTIONS.iter().find(|(name, _)| *name == function) {
                // Any other one, called by a session's main function, is more specific.
                Some((_, Self::Load)) => found = found.or(Some(Self::Load)),
                Some((_, role)) => return Some(*role),
                None => {}
            }
        }
        found
    }
}

/// Main functions of processes, in PostgreSQL 9.6 to 18. Those of walsenders are called from a session's.
const MAIN_FUNCTIONS: [(&str, Role); 14] = [
    ("PostgresMain", Role::Load),
    ("exec_replication_command", Role::WalSender),
    ("CheckpointerMain", Role::Checkpointer),
    ("BackgroundWriterMain", Role::BackgroundWriter),
    ("WalWriterMain", Role::WalWriter),
    ("AutoVacLauncherMain", Role::AutovacuumLauncher),
    ("AutoVacWorkerMain", Role::AutovacuumWorker),
    ("IoWorkerMain", Role::IoWorker),
    ("ParallelWorkerMain", Role::ParallelWorker),
    ("StartupProcessMain", Role::Startup),
    ("PgArchiverMain", Role::Archiver),
    ("PgstatCollectorMain", Role::StatsCollector),
    ("SysLoggerMain", Role::Logger),
    ("BackgroundWorkerMain", Role::ServerOther),
];

/// Titles of PostgreSQL 11 and later, and of earlier ones.
const BEFORE_CLIENTS: [(&str, Role); 4] = [
    ("walsender", Role::WalSender),
    ("wal sender process", Role::WalSender),
    ("autovacuum worker", Role::AutovacuumWorker),
    ("parallel worker", Role::ParallelWorker),
];
const OTHERS: [(&str, Role); 12] = [
    ("checkpointer", Role::Checkpointer),
    ("background writer", Role::BackgroundWriter),
    ("writer process", Role::BackgroundWriter),
    ("walwriter", Role::WalWriter),
    ("wal writer process", Role::WalWriter),
    ("autovacuum launcher", Role::AutovacuumLauncher),
    ("io worker", Role::IoWorker),
    ("startup", Role::Startup),
    ("archiver", Role::Archiver),
    ("stats collector", Role::StatsCollector),
    ("logger", Role::Logger),
    ("bgworker", Role::ServerOther),
];

/// Titles of processes that replay or apply changes, in 10 to 18.
const REPLAY: [&str; 4] = [
    "startup",
    "bgworker: logical replication worker for subscription",
    "logical replication worker for subscription",
    "logical replication apply worker for subscription",
];

fn starts_with_words(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether it is a client's address: `[local]`, or a host with its port such as `10.0.0.7(51234)`.
fn is_address(word: &str) -> bool {
    let port = word.strip_suffix(')').and_then(|word| Some(word.rsplit_once('(')?.1));
    word == "[local]" || port.is_some_and(|port| !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_every_major_determine_roles() {
        for (title, role) in [
            // 9.6 and 10
            ("postgres: checkpointer process", "checkpointer"),
            ("postgres: writer process", "background writer"),
            ("postgres: wal writer process", "walwriter"),
            ("postgres: autovacuum launcher process", "autovacuum launcher"),
            ("postgres: autovacuum worker process   pgdyno", "autovacuum worker"),
            ("postgres: stats collector process", "stats collector"),
            ("postgres: archiver process   last was 00000001000000000000000A", "archiver"),
            ("postgres: startup process   recovering 000000010000000000000001", "startup"),
            ("postgres: wal sender process postgres 10.0.0.7(51234) streaming 0/3000148", "walsender"),
            ("postgres: bgworker: parallel worker for PID 4711", "parallel worker"),
            ("postgres: bgworker: logical replication launcher", "server other"),
            // 11 to 18
            ("postgres: background writer", "background writer"),
            ("postgres: walwriter", "walwriter"),
            ("postgres: logger", "logger"),
            ("postgres: autovacuum worker pgdyno", "autovacuum worker"),
            ("postgres: walsender postgres [local] streaming 0/3000148", "walsender"),
            ("postgres: parallel worker for PID 4711", "parallel worker"),
            ("postgres: io worker 2", "io worker"),
            ("postgres: walsummarizer", "server other"),
            // clients
            ("postgres: postgres pgdyno [local] idle in transaction", "load"),
            ("postgres: postgres pgdyno 127.0.0.1(40000) SELECT", "load"),
            ("postgres: my user my database ::1(40000) idle", "load"),
            ("postgres: checkpointer pgdyno [local] idle", "load"),
            // cluster_name
            ("postgres: 13/main: checkpointer", "checkpointer"),
            ("postgres: a: b: io worker 0", "io worker"),
            ("postgres: checkpointers: walwriter", "walwriter"),
            ("postgres: main: postgres pgdyno [local] UPDATE waiting", "load"),
        ] {
            assert_eq!(Role::by_title(title).map(Role::as_str), Some(role), "{title}");
        }
        assert_eq!(Role::by_title("/usr/lib/postgresql/18/bin/postgres -D data"), None);
    }

    #[test]
    fn titles_of_every_major_tell_which_process_replays() {
        for (title, is_replay) in [
            ("postgres: startup process   recovering 000000010000000000000001", true),
            ("postgres: startup recovering 000000010000000000000001 waiting", true),
            ("postgres: bgworker: logical replication worker for subscription 16400  ", true),
            ("postgres: logical replication worker for subscription 16400 ", true),
            ("postgres: logical replication apply worker for subscription 16400 ", true),
            ("postgres: bgworker: logical replication launcher", false),
            ("postgres: walreceiver streaming 0/3000148", false),
            ("/usr/lib/postgresql/18/bin/postgres -D startup", false),
        ] {
            assert_eq!(Role::is_replay(title), is_replay, "{title}");
        }
    }
}
