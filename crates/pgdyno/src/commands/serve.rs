//! `pgdyno serve`: the report of the store in the browser, also while a campaign runs.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use report::serve::{AskFleet, Guard, Token, serve, site};
use store::Store;

use crate::exit::{Exit, Usage};
use crate::fleet_args::FleetArgs;
use crate::output::{note, print};
use crate::store_arg::StoreArg;

/// Default address.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7432);

/// Environment variable with the token.
const VARIABLE: &str = "PGDYNO_TOKEN";

/// Show the store in the browser, live while a campaign runs
///
/// The page of `pgdyno report -o`, over every run in the store: overviews, trials in detail, histories. While `pgdyno run`
/// or `resume` works on the same store, progress and the running trial's throughput, latency and waits are shown live, and
/// ended trials appear without reloading. The store is never changed. Ctrl-C stops the server.
///
/// By default, the server listens on this machine only. On any other address, visitors need a token; without --token-file
/// or PGDYNO_TOKEN, one is generated and printed with the URL. Traffic is not encrypted: docs/serve.md shows how to use ssh
/// or a proxy.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno serve                                   http://127.0.0.1:7432/\n  \
                        pgdyno serve --store /var/lib/pgdyno --listen 127.0.0.1:0\n  \
                        pgdyno serve --listen 0.0.0.0:7432             prints a URL with a token\n  \
                        pgdyno serve --fleet --nats nats://nats.example\n  \
                        ssh -L 7432:127.0.0.1:7432 bench.example pgdyno serve --store campaigns/.pgdyno")]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = DEFAULT)]
    listen: SocketAddr,

    /// File with the token that visitors need (or PGDYNO_TOKEN in the environment)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArg,

    /// Also show the agents of a fleet, and what runs where (docs/fleet.md)
    #[arg(long, help_heading = "Fleet")]
    fleet: bool,

    #[command(flatten)]
    connection: FleetArgs,
}

impl ServeArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let token = self.token()?;
        let fleet = self.ask_fleet()?;
        let listener = TcpListener::bind(self.listen).map_err(|error| self.listen_error(&error))?;
        let address = listener.local_addr().context("could not determine the address")?;
        let generated = match &token {
            None if !address.ip().is_loopback() => {
                Some(Token::random().context("could not generate a token")?)
            }
            _ => None,
        };
        let query = generated.as_ref().map(|token| format!("?token={}", token.text())).unwrap_or_default();
        print(&format!("http://{}/{query}\n", authority(address)))?;
        note(&format!("showing {}; Ctrl-C stops it\n", store.root().display()));
        if token.is_some() {
            note("visitors need the token: http://…/?token=TOKEN, or `Authorization: Bearer TOKEN`\n");
        }
        let site = site(store, fleet, Guard::new(address, token.or(generated)))?;
        serve(listener, site).context("could not serve")?;
        Ok(Exit::Ok)
    }

    /// What asks the fleet, if one is shown.
    fn ask_fleet(&self) -> anyhow::Result<Option<AskFleet>> {
        if !self.fleet {
            return Ok(None);
        }
        let connection = self.connection.connect("pgdyno serve")?;
        Ok(Some(Box::new(move || connection.status().map_err(|error| error.to_string()))))
    }

    /// Token from `--token-file` or the environment, if any.
    fn token(&self) -> anyhow::Result<Option<Token>> {
        let from_environment = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
        let (text, origin) = match (&self.token_file, from_environment) {
            (Some(path), _) => {
                let text = fs::read_to_string(path).map_err(|error| {
                    Usage(format!("error: the token file {} can't be read: {error}", path.display()))
                })?;
                (text, path.display().to_string())
            }
            (None, Some(text)) => (text, VARIABLE.to_owned()),
            (None, None) => return Ok(None),
        };
        let token = Token::new(text.trim());
        token
            .map(Some)
            .map_err(|error| Usage(format!("error: {origin} does not contain a token: {error}")).into())
    }

    fn listen_error(&self, error: &std::io::Error) -> anyhow::Error {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => {
                "another program uses that port, perhaps another `pgdyno serve`: stop it, or choose another port \
                 (--listen 127.0.0.1:0 for a free one)"
            }
            ErrorKind::PermissionDenied => "ports below 1024 are reserved for root: choose a higher one",
            ErrorKind::AddrNotAvailable => {
                "this machine does not have that address: `ip address` lists its addresses, 0.0.0.0 is all of them"
            }
            _ => "choose another address with --listen",
        };
        anyhow::anyhow!("could not listen on {}: {error}; {advice}", self.listen)
    }
}

/// Address for a URL; if the server listens on all addresses, the host name.
fn authority(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("{}:{}", rustix::system::uname().nodename().to_string_lossy(), address.port())
    } else {
        address.to_string()
    }
}
