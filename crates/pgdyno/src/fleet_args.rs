//! Arguments for the connection with a fleet.

use std::path::PathBuf;

use clap::Args;
use fleet::signature::SecretKey;
use fleet::{Connection, ConnectionOptions, FleetError, Login};

/// The NATS server of a fleet, and how to log in. The environment variables are those of the command `nats`.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetArgs {
    /// URL of the fleet's NATS server
    #[arg(
        long,
        env = "NATS_URL",
        value_name = "URL",
        default_value = "nats://127.0.0.1:4222",
        hide_env_values = true
    )]
    nats: String,

    /// Log in with this file of credentials
    #[arg(long, help_heading = "Fleet", env = "NATS_CREDS", value_name = "FILE", hide_env_values = true)]
    nats_creds: Option<PathBuf>,

    /// Log in with the seed of a key in this file
    #[arg(
        long,
        env = "NATS_NKEY",
        value_name = "FILE",
        conflicts_with = "nats_creds",
        hide_env_values = true
    )]
    nats_nkey: Option<PathBuf>,

    /// Log in with the line `user:password` of this file
    #[arg(long, help_heading = "Fleet", value_name = "FILE", conflicts_with_all = ["nats_creds", "nats_nkey"])]
    nats_user: Option<PathBuf>,

    /// Trust the certificates of this file, too
    #[arg(long, help_heading = "Fleet", env = "NATS_CA", value_name = "FILE", hide_env_values = true)]
    nats_ca: Option<PathBuf>,

    /// Certificate of this client, with --nats-key
    #[arg(
        long,
        help_heading = "Fleet",
        env = "NATS_CERT",
        value_name = "FILE",
        requires = "nats_key",
        hide_env_values = true
    )]
    nats_cert: Option<PathBuf>,

    /// Key of that certificate
    #[arg(long, help_heading = "Fleet", env = "NATS_KEY", value_name = "FILE", hide_env_values = true)]
    nats_key: Option<PathBuf>,

    /// Name of the fleet, if several share a NATS server
    #[arg(long, help_heading = "Fleet", value_name = "NAME", default_value = "pgdyno")]
    fleet_name: String,
}

impl FleetArgs {
    /// Connects as `name`.
    ///
    /// # Errors
    /// There is no connection.
    pub(crate) fn connect(&self, name: &str) -> Result<Connection, FleetError> {
        let login = match (&self.nats_creds, &self.nats_nkey, &self.nats_user) {
            (Some(path), ..) => Login::Credentials(path.clone()),
            (_, Some(path), _) => Login::Nkey(path.clone()),
            (.., Some(path)) => Login::User(path.clone()),
            (None, None, None) => Login::Url,
        };
        Connection::open(&ConnectionOptions {
            url: self.nats.clone(),
            login,
            ca: self.nats_ca.clone(),
            certificate: self.nats_cert.clone().zip(self.nats_key.clone()),
            fleet: self.fleet_name.clone(),
            name: name.to_owned(),
        })
    }
}

/// `--fleet`, for commands that run campaigns.
#[derive(Clone, Debug, Args)]
pub(crate) struct OnFleetArgs {
    /// Run the trials on the machines of a fleet (`pgdyno agent`), instead of this one
    #[arg(long, help_heading = "Fleet", conflicts_with_all = ["strict", "allow_concurrent", "kernels_by_reboot"])]
    fleet: bool,

    /// Sign the trials with this key, for agents with --trust (`pgdyno fleet key` creates one)
    #[arg(long, value_name = "FILE", help_heading = "Fleet", requires = "fleet")]
    sign_with: Option<PathBuf>,

    #[command(flatten)]
    connection: FleetArgs,
}

/// A fleet, for a run.
pub(crate) struct OnFleet {
    /// The connection.
    pub(crate) connection: Connection,
    /// Signs the blocks.
    pub(crate) key: Option<SecretKey>,
}

impl OnFleetArgs {
    /// The fleet, if trials run on one.
    ///
    /// # Errors
    /// There is no connection, or no key.
    pub(crate) fn connect(&self) -> Result<Option<OnFleet>, FleetError> {
        if !self.fleet {
            return Ok(None);
        }
        let key = self.sign_with.as_deref().map(SecretKey::read).transpose()?;
        Ok(Some(OnFleet { connection: self.connection.connect("pgdyno run")?, key }))
    }
}
