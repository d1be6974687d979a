//! PgBouncer's own figures of the pool of the tested database, from its console.
//!
//! Source: pgbouncer(1), "Admin console", `SHOW STATS` and `SHOW POOLS`. Columns are found by name: versions have different ones.

use std::collections::BTreeMap;
use std::time::Duration;

use model::metric;
use model::metrics::Metric;
use wire::blocking::Session;
use wire::{ConnectParams, ResultSet};

use crate::error::CollectError;
use crate::{Reading, Source};

/// Time limit of an answer; a reading that takes longer fails.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Columns of `SHOW STATS`.
const STATS: [(&str, &Metric); 4] = [
    ("total_xact_count", metric!("pgbouncer.transactions")),
    ("total_query_count", metric!("pgbouncer.queries")),
    ("total_wait_time", metric!("pgbouncer.wait_us")),
    ("total_xact_time", metric!("pgbouncer.transaction_us")),
];

/// Columns of `SHOW POOLS`.
const POOLS: [(&str, &Metric); 4] = [
    ("cl_active", metric!("pgbouncer.clients_active")),
    ("cl_waiting", metric!("pgbouncer.clients_waiting")),
    ("sv_active", metric!("pgbouncer.servers_active")),
    ("sv_idle", metric!("pgbouncer.servers_idle")),
];

/// The console. A [`Source`].
pub(crate) struct Pgbouncer {
    session: Session,
    database: String,
}

impl Pgbouncer {
    /// Connects to the console, for the figures of this database.
    pub(crate) fn new(params: &ConnectParams, database: &str) -> Result<Self, CollectError> {
        let mut params = params.clone();
        params.application_name = Some("pgdyno pgbouncer".to_owned());
        let mut session = Session::connect(&params).map_err(CollectError::Session)?;
        session.set_timeout(TIMEOUT).map_err(CollectError::Session)?;
        Ok(Self { session, database: database.to_owned() })
    }

    /// The row of the database, by column.
    fn row(&mut self, command: &str) -> Result<BTreeMap<String, f64>, CollectError> {
        let database = &self.database;
        let results = self.session.query_results(command)?;
        let of_result = |result: &ResultSet| -> Option<BTreeMap<String, f64>> {
            let names: Vec<String> =
                result.columns().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            result.kept_rows().find_map(|row| {
                let values: Vec<String> = row
                    .map(|value| String::from_utf8_lossy(value.unwrap_or_default()).into_owned())
                    .collect();
                if values.first() != Some(database) {
                    return None;
                }
                let figures = names.iter().cloned().zip(values);
                Some(figures.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect())
            })
        };
        Ok(results.iter().find_map(of_result).unwrap_or_default())
    }
}

impl Source for Pgbouncer {
    fn name(&self) -> &'static str {
        "pgbouncer"
    }

    fn read(&mut self, into: &mut Reading) -> Result<(), CollectError> {
        let stats = self.row("SHOW STATS")?;
        for (column, metric) in STATS {
            // Without a client so far, there is no row.
            into.add(metric, None, stats.get(column).copied().unwrap_or_default());
        }
        let pools = self.row("SHOW POOLS")?;
        for (column, metric) in POOLS {
            into.add(metric, None, pools.get(column).copied().unwrap_or_default());
        }
        let part = |column: &str| pools.get(column).copied().unwrap_or_default();
        into.add(metric!("pgbouncer.max_wait_us"), None, part("maxwait") * 1e6 + part("maxwait_us"));
        Ok(())
    }
}
