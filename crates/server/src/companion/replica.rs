//! Standbys and subscribers: servers on a copy of the data of another one, which sends them its changes.
//!
//! Source: PostgreSQL manual, "High Availability, Load Balancing, and Replication" and "Logical Replication".

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use host::IoContext;
use host::files::write_regular;
use host::process::{LOG_TAIL_LINES, POLL_INTERVAL, last_lines};
use model::limits::Limits;
use model::secret::mask;
use model::topology::{Companion as Kind, Topology};
use model::version::Major;
use model::workload::Transport;
use wire::blocking::FromRow;
use wire::quote_literal;

use super::MARKER;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::server::Server;

/// Name of the slot, the publication and the subscription.
const NAME: &str = "pgdyno";
/// Time limit of a replica to receive its first changes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// The first major in which a file of its own makes a server a standby, and its settings are the server's.
const STANDBY_SIGNAL: Major = Major::new(12);

/// Starts a standby on a copy of the server's data.
pub(super) fn standby(
    server: &Server,
    cluster: Cluster,
    settings: &BTreeMap<String, String>,
    limits: &Limits,
    topology: Topology,
) -> Result<Box<Server>, Error> {
    let mut session = server.session("postgres")?;
    // Nothing that its standby has not received may be removed.
    let slot = format!("SELECT pg_create_physical_replication_slot('{NAME}', true)");
    server.control.execute(&mut session, &slot)?;
    create_marker(server, "postgres", true)?;
    let mut settings = settings.clone();
    settings.insert("hot_standby".to_owned(), "on".to_owned());
    let connection = [
        ("primary_conninfo", server.conninfo(None, Kind::Standby.as_str())),
        ("primary_slot_name", NAME.to_owned()),
    ];
    let data = cluster.data_directory();
    if cluster.installation().version().major() >= STANDBY_SIGNAL {
        settings.extend(connection.map(|(name, value)| (name.to_owned(), value)));
        let signal = data.join("standby.signal");
        cluster.user().run_as(|| write_regular(&signal, b""))?.doing("write", &signal)?;
    } else {
        let of_recovery: Vec<String> =
            settings.keys().filter(|name| name.starts_with("recovery_")).cloned().collect();
        let moved = of_recovery.into_iter().filter_map(|name| settings.remove_entry(&name));
        let lines = moved.chain(connection.map(|(name, value)| (name.to_owned(), value)));
        let lines: String =
            lines.map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''"))).collect();
        let file = data.join("recovery.conf");
        let text = format!("standby_mode = 'on'\n{lines}");
        cluster.user().run_as(|| write_regular(&file, text.as_bytes()))?.doing("write", &file)?;
    }
    let standby = Server::start(cluster, &settings, limits, Transport::Unix)?;
    let state = match topology {
        Topology::StandbyAsync => "",
        // Commits wait for it.
        _ => " AND sync_state IN ('sync', 'quorum')",
    };
    wait_until_streaming(server, standby, Kind::Standby, state)
}

/// Starts a subscriber to all tables of the tested database, on a copy of the server's data.
pub(super) fn subscriber(
    server: &Server,
    cluster: Cluster,
    settings: &BTreeMap<String, String>,
    limits: &Limits,
) -> Result<Box<Server>, Error> {
    let subscriber = Server::start(cluster, settings, limits, Transport::Unix)?;
    create_marker(server, crate::DATABASE, false)?;
    create_marker(&subscriber, crate::DATABASE, false)?;
    let publication = format!("CREATE PUBLICATION {NAME} FOR ALL TABLES");
    server.control.execute(&mut server.session(crate::DATABASE)?, &publication)?;
    // Its tables have the rows already.
    let subscription = format!(
        "CREATE SUBSCRIPTION {NAME} CONNECTION {} PUBLICATION {NAME} WITH (copy_data = false)",
        quote_literal(&server.conninfo(Some(crate::DATABASE), Kind::Subscriber.as_str()))
    );
    let mut session = subscriber.session(crate::DATABASE)?;
    subscriber.control.execute(&mut session, &subscription)?;
    wait_until_streaming(server, subscriber, Kind::Subscriber, "")
}

/// Returns a replica once it receives the server's changes, in a state that fulfils this condition of `pg_stat_replication`, too.
fn wait_until_streaming(
    server: &Server,
    mut replica: Server,
    kind: Kind,
    condition: &str,
) -> Result<Box<Server>, Error> {
    let state = format!("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'{condition}");
    let mut session = server.session("postgres")?;
    let end = Instant::now() + CONNECT_TIMEOUT;
    loop {
        let streaming: i64 = session
            .query_one(&state)
            .map_err(|error| server.control.error("query the state of replication", &error))?;
        if streaming == 1 {
            return Ok(Box::new(replica));
        }
        let why = match replica.exited() {
            Some(status) => format!("has ended ({status})"),
            None if Instant::now() > end => {
                format!("did not receive changes within {} s", CONNECT_TIMEOUT.as_secs())
            }
            None => {
                std::thread::sleep(POLL_INTERVAL);
                continue;
            }
        };
        return Err(Error::Companion {
            companion: kind.as_str().to_owned(),
            why: format!("{why}; its log:\n{}", end_of_log(&replica)),
        });
    }
}

/// Creates the table with the marker row; `local`: without waiting for a standby, which is not there yet.
fn create_marker(server: &Server, database: &str, local: bool) -> Result<(), Error> {
    let local = if local { "SET synchronous_commit = local; " } else { "" };
    let (schema, _) = MARKER.split_once('.').unwrap_or_default();
    let statements = format!(
        "{local}CREATE SCHEMA {schema}; CREATE TABLE {MARKER} (id int PRIMARY KEY, number bigint NOT NULL); \
         INSERT INTO {MARKER} VALUES (1, 0)"
    );
    server.control.execute(&mut server.session(database)?, &statements)
}

/// Waits until a standby has replayed what its primary has flushed by now.
pub(super) fn catch_up_standby(server: &Server, standby: &Server, within: Duration) -> Result<bool, Error> {
    let position: String = query(server, "SELECT pg_current_wal_flush_lsn()::text")?;
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn");
    let mut session = standby.session("postgres")?;
    poll(within, || {
        session.query_one(&replayed).map_err(|error| standby.control.error("query the replayed WAL", &error))
    })
}

/// Waits until a subscriber has applied what its publisher has flushed by now.
pub(super) fn catch_up_subscriber(server: &Server, within: Duration) -> Result<bool, Error> {
    let position: String = query(server, "SELECT pg_current_wal_flush_lsn()::text")?;
    let replayed = format!(
        "SELECT coalesce(bool_and(replay_lsn >= '{position}'::pg_lsn), false) FROM pg_stat_replication"
    );
    let mut session = server.session("postgres")?;
    poll(within, || {
        session.query_one(&replayed).map_err(|error| server.control.error("query the applied WAL", &error))
    })
}

/// Why a replica no longer receives changes, if so.
pub(super) fn failure(server: &Server, name: &str) -> Option<String> {
    let state = "SELECT coalesce(max(state), 'none') FROM pg_stat_replication";
    match query::<String>(server, state) {
        Ok(state) if state == "streaming" || state == "catchup" => None,
        Ok(_) => Some(format!("the {name} no longer receives changes: its log says why")),
        // A server that does not answer is reported as such.
        Err(_) => None,
    }
}

fn query<T: FromRow>(server: &Server, sql: &str) -> Result<T, Error> {
    let mut session = server.session("postgres")?;
    session.query_one(sql).map_err(|error| server.control.error("query the state of replication", &error))
}

fn poll(within: Duration, mut holds: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
    let end = Instant::now() + within;
    loop {
        if holds()? {
            return Ok(true);
        }
        if Instant::now() > end {
            return Ok(false);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn end_of_log(server: &Server) -> String {
    let log = server.log().unwrap_or_default();
    mask(&last_lines(&log, LOG_TAIL_LINES))
}
