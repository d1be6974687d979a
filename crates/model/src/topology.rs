//! Topologies: what clients connect to, and what receives the changes of the server under test.

use std::collections::BTreeMap;

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::version::Major;

/// Settings of a standby by which pgdyno connects it to its primary.
const STANDBY_SETTINGS: [&str; 7] = [
    "hot_standby",
    "primary_conninfo",
    "primary_slot_name",
    "promote_trigger_file",
    "recovery_target_timeline",
    "restore_command",
    "trigger_file",
];

/// Settings of PgBouncer by which pgdyno reaches it, and it the server.
const PGBOUNCER_SETTINGS: [&str; 18] = [
    "admin_users",
    "auth_dbname",
    "auth_file",
    "auth_hba_file",
    "auth_ident_file",
    "auth_query",
    "auth_type",
    "auth_user",
    "conffile",
    "listen_addr",
    "listen_port",
    "logfile",
    "pidfile",
    "pool_mode",
    "stats_users",
    "unix_socket_dir",
    "unix_socket_mode",
    "user",
];

/// Names and values of settings.
type Settings = BTreeMap<String, String>;

/// What runs next to the server under test.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Topology {
    /// Nothing.
    #[default]
    Single,
    /// A standby that no commit waits for.
    StandbyAsync,
    /// A standby that commits wait for until it has flushed their WAL.
    StandbySync,
    /// A standby that commits wait for until it has replayed them.
    StandbyRemoteApply,
    /// A subscriber to all tables of the tested database.
    Logical,
    /// PgBouncer, whose clients have a server connection for a transaction.
    PgbouncerTransaction,
    /// PgBouncer, whose clients have a server connection for their session.
    PgbouncerSession,
}

/// What a topology has next to the server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Companion {
    /// A hot standby, by streaming replication.
    Standby,
    /// A server that subscribes to the changes of the tested database.
    Subscriber,
    /// A connection pooler.
    Pgbouncer,
}

impl Companion {
    /// Its name in campaigns, metrics and messages: `standby`, `subscriber`, `pgbouncer`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it is a server with a copy of the data.
    pub const fn is_replica(self) -> bool {
        matches!(self, Self::Standby | Self::Subscriber)
    }

    /// The companion that a setting is of, by its prefix, as in `standby.work_mem`, with the setting's own name; none for
    /// settings of the server under test.
    pub fn of_setting(name: &str) -> Option<(Self, &str)> {
        let (prefix, own) = name.split_once('.')?;
        let companion = Self::VARIANTS.iter().find(|companion| companion.as_str() == prefix)?;
        Some((*companion, own))
    }

    /// Whether pgdyno sets a setting of it itself.
    pub fn sets(self, name: &str) -> bool {
        match self {
            Self::Standby => STANDBY_SETTINGS.contains(&name),
            Self::Subscriber => false,
            Self::Pgbouncer => PGBOUNCER_SETTINGS.contains(&name),
        }
    }

    /// Its own settings among those of a campaign; a replica has those of the server, too.
    pub fn settings(self, given: &Settings) -> Settings {
        let mut settings = if self.is_replica() { Topology::Single.settings(given) } else { Settings::new() };
        for (name, value) in given {
            if let Some((_, own)) = Self::of_setting(name).filter(|(of, _)| *of == self) {
                settings.insert(own.to_owned(), value.clone());
            }
        }
        settings
    }
}

impl Topology {
    /// Its name in campaigns and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What it has next to the server; none for a single server.
    pub const fn companion(self) -> Option<Companion> {
        match self {
            Self::Single => None,
            Self::StandbyAsync | Self::StandbySync | Self::StandbyRemoteApply => Some(Companion::Standby),
            Self::Logical => Some(Companion::Subscriber),
            Self::PgbouncerTransaction | Self::PgbouncerSession => Some(Companion::Pgbouncer),
        }
    }

    /// Whether it has another server with a copy of the data.
    pub fn has_replica(self) -> bool {
        self.companion().is_some_and(Companion::is_replica)
    }

    /// The first major that pgdyno runs it on.
    pub fn minimum_version(self) -> Option<Major> {
        self.has_replica().then(|| Major::new(10))
    }

    /// The settings of the server under test: those of a campaign that are its own, and those that the topology needs.
    pub fn settings(self, given: &Settings) -> Settings {
        let given = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let given = given.filter(|(name, _)| Companion::of_setting(name).is_none());
        let needed = self.server_settings().iter().copied();
        given.chain(needed).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Settings of the server under test that it needs.
    pub const fn server_settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::StandbySync => &[("synchronous_standby_names", "*"), ("synchronous_commit", "on")],
            Self::StandbyRemoteApply => {
                &[("synchronous_standby_names", "*"), ("synchronous_commit", "remote_apply")]
            }
            Self::Logical => &[("wal_level", "logical")],
            Self::Single | Self::StandbyAsync | Self::PgbouncerTransaction | Self::PgbouncerSession => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_of_the_server_or_of_a_companion() {
        let given = [
            ("work_mem", "8MB"),
            ("standby.work_mem", "1MB"),
            ("pgbouncer.default_pool_size", "1"),
            ("pg_stat_statements.track", "all"),
        ];
        let given: Settings = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let shown = |settings: Settings| {
            let shown: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            shown.join(" ")
        };
        let server = "pg_stat_statements.track=all work_mem=8MB";
        assert_eq!(shown(Topology::Single.settings(&given)), server);
        assert_eq!(
            shown(Topology::StandbySync.settings(&given)),
            "pg_stat_statements.track=all synchronous_commit=on synchronous_standby_names=* work_mem=8MB"
        );
        assert_eq!(shown(Companion::Standby.settings(&given)), "pg_stat_statements.track=all work_mem=1MB");
        assert_eq!(shown(Companion::Subscriber.settings(&given)), server);
        assert_eq!(shown(Companion::Pgbouncer.settings(&given)), "default_pool_size=1");
    }
}
