//! `--host`, `--port` and the like: connection parameters in libpq's conventions.

use clap::Args;
use wire::ConnectParams;

use crate::exit::Usage;
use crate::output::note;

/// Server and role. Options that are not given come from a service, the environment (`PGHOST`, …) and defaults, as for
/// psql.
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

    /// The same as -d, after the scripts
    #[arg(last = true, value_name = "DBNAME|CONNINFO|URI", conflicts_with = "dbname")]
    database: Option<String>,
}

impl ConnectionArgs {
    /// Parameters from these options and the environment.
    ///
    /// # Errors
    /// A parameter is invalid.
    pub(crate) fn resolve(self) -> Result<ConnectParams, Usage> {
        // In psql's order, which decides the precedence over the same parameter in a connection string.
        let keywords = [
            ("host", self.host),
            ("port", self.port),
            ("user", self.username),
            ("dbname", self.dbname.or(self.database)),
            ("fallback_application_name", Some("pgdyno".to_owned())),
        ];
        resolve(keywords.into_iter().filter_map(|(keyword, value)| Some((keyword, value?))))
    }
}

/// Parameters from keywords and the environment; warnings go to standard error.
///
/// # Errors
/// A parameter is invalid.
pub(crate) fn resolve(
    keywords: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<ConnectParams, Usage> {
    let keywords = keywords.into_iter().collect();
    let resolved = ConnectParams::resolve(&keywords, &|name: &str| std::env::var(name).ok())
        .map_err(Usage::from_error)?;
    for warning in &resolved.warnings {
        note(&format!("{warning}\n"));
    }
    Ok(resolved.params)
}
