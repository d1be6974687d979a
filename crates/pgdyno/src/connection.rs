//! `--host`, `--port` and the like: libpq's conventions for connections.

use clap::Args;
use wire::{ConnectParams, Given};

use crate::exit::Usage;
use crate::output::note;

/// Where and as whom to connect. What is not given comes from a service, the environment (`PGHOST`, …), and defaults,
/// as for psql.
#[derive(Clone, Debug, Args)]
#[command(
    next_help_heading = "Connection, as for psql: PGHOST and the like, service and password files count"
)]
pub(crate) struct ConnectionArgs {
    /// Database, or a connection string or URI
    #[arg(short, long, value_name = "DBNAME")]
    dbname: Option<String>,

    /// Host, or directory of the server's socket
    #[arg(short, long, value_name = "HOST")]
    host: Option<String>,

    /// Port
    #[arg(short, long, value_name = "PORT")]
    port: Option<String>,

    /// Role
    #[arg(short = 'U', long, value_name = "NAME")]
    username: Option<String>,

    /// The same as -d, behind the scripts
    #[arg(last = true, value_name = "DBNAME|CONNINFO|URI", conflicts_with = "dbname")]
    database: Option<String>,
}

impl ConnectionArgs {
    /// The parameters that these and the surroundings come to; warnings go to standard error.
    ///
    /// # Errors
    /// [`Usage`]: a parameter is not as it should be.
    pub(crate) fn resolve(&self) -> Result<ConnectParams, Usage> {
        let dbname = self.dbname.as_ref().or(self.database.as_ref());
        // In psql's order, which decides which wins where a connection string has the same.
        let given: Given = [
            ("host", self.host.as_ref()),
            ("port", self.port.as_ref()),
            ("user", self.username.as_ref()),
            ("dbname", dbname),
            ("fallback_application_name", Some(&"pgdyno".to_owned())),
        ]
        .into_iter()
        .filter_map(|(keyword, value)| Some((keyword, value?.clone())))
        .collect();
        let resolved = ConnectParams::resolve(&given, &|name: &str| std::env::var(name).ok())
            .map_err(|error| Usage(format!("error: {error}")))?;
        for warning in &resolved.warnings {
            note(&format!("{warning}\n"));
        }
        Ok(resolved.params)
    }
}
