//! `pgdyno server`: installed PostgreSQL versions, and servers that stay up.

mod build;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use host::Cache;
use plaintext::table::Format;
use server::standing::{self, StandingServer};
use server::{Dataset, StopMode};

use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json};
use crate::progress::PreparationProgress;
use build::BuildArgs;
use report::servers::List;

/// Install PostgreSQL versions, and run servers that stay up
///
/// `pgdyno run` installs, fills, starts and stops the servers that it measures by itself. These commands are for doing
/// parts of that by hand: to prepare a machine that has no network later, to look around in a server with psql, to make
/// room, or to put back settings of a server that pgdyno does not own.
///
/// VERSION is a major, such as 18 or 9.6, a full version, such as 16.4, or the name that `pgdyno server build` gave to
/// what it built.
///
/// Everything lives in the cache: PGDYNO_CACHE, else $XDG_CACHE_HOME/pgdyno, else ~/.cache/pgdyno. PostgreSQL does not
/// run as root: for root, servers run as PGDYNO_SERVER_USER, else postgres, else nobody, and where that user can't
/// reach root's cache, the cache is /var/cache/pgdyno.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server install 13 18\n  \
                        pgdyno server build ~/postgresql --ref my-branch\n  \
                        pgdyno server start 18 --scale 10 --settings shared_buffers=1GB\n  \
                        pgdyno server list\n  \
                        pgdyno server stop 18\n\n\
                        Environment:\n  \
                        PGDYNO_CACHE        where everything lives\n  \
                        PGDYNO_MIRROR       base URL of a Maven repository to download from\n  \
                        PGDYNO_SERVER_USER  as whom servers run when pgdyno runs as root\n  \
                        HTTPS_PROXY         proxy for downloads")]
pub(crate) struct ServerArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Install(InstallArgs),
    Build(BuildArgs),
    List(ListArgs),
    Start(StartArgs),
    Stop(StopArgs),
    Remove(RemoveArgs),
    Restore(RestoreArgs),
}

/// Download and install PostgreSQL versions
///
/// Gets relocatable builds of PostgreSQL 9.6 to 18 (those of the zonky project, from a Maven repository), checks each
/// against its SHA-512, and puts it into the cache. Of a major, the newest minor release is taken; without a network,
/// the newest that is installed already. Interrupting it leaves nothing half-done, and several may run at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server install 18\n  \
                        pgdyno server install 9.6 16.4\n  \
                        PGDYNO_MIRROR=http://maven.example/maven2 pgdyno server install 18\n\n\
                        Exit codes: 0 all are installed, 1 a download failed, 2 there is no such version.")]
struct InstallArgs {
    /// Major (18, 9.6) or full version (16.4)
    #[arg(value_name = "VERSION", required = true)]
    versions: Vec<String>,
}

/// List installed and built versions, filled templates and servers
///
/// A template is a data directory with pgbench's tables, filled once, and copied for each trial.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server list\n  \
                        pgdyno server list --format json | jq -r '.servers[] | select(.pid) | .uri'")]
struct ListArgs {
    #[command(flatten)]
    format: FormatArg,
}

/// Start a server that stays up, and say how to connect
///
/// The server outlives this command and keeps its data; `pgdyno server stop` stops it, and starting it again goes on
/// with the same data. It is installed first where need be. It listens on 127.0.0.1 and on a Unix-domain socket, and
/// asks for no password: every user of this machine may connect by TCP.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server start 18\n  \
                        pgdyno server start 18 --scale 10 --port 5433\n  \
                        pgdyno server start 16.4 --settings shared_buffers=1GB max_connections=500\n\n\
                        Its standard output ends in lines for a shell:\n  \
                        eval \"$(pgdyno server start 18 | grep ^export)\" && psql")]
struct StartArgs {
    /// Major (18, 9.6), full version (16.4), or the name of a build
    #[arg(id = "server", value_name = "VERSION")]
    version: String,

    /// Server settings for this start, as in postgresql.conf
    #[arg(long, value_name = "NAME=VALUE", num_args = 1.., value_parser = setting)]
    settings: Vec<(String, String)>,

    /// TCP port [default: a free one]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Give a new server the database pgdyno, with pgbench's tables at this scale (1 is 100,000 accounts)
    #[arg(long, value_name = "SCALE", value_parser = clap::value_parser!(u32).range(1..))]
    scale: Option<u32>,
}

/// Stop a server that was started by `pgdyno server start`
///
/// Disconnects its clients and writes everything to the disk; its data stay for the next start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno server stop 18\n  pgdyno server stop 18 --immediate")]
struct StopArgs {
    /// The version as it was started
    #[arg(id = "server", value_name = "VERSION")]
    version: String,

    /// End it at once; its next start has to recover
    #[arg(long)]
    immediate: bool,
}

/// Remove a version with its templates, and its server's data
///
/// A major removes all its downloaded releases; what was built goes by its name, with the directory that it was built
/// in. What is in use is not removed. Trials that were measured are in the store and are not touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno server remove 16.4\n  pgdyno server remove 13\n  \
                        pgdyno server remove 19devel-src-0123456789ab")]
struct RemoveArgs {
    /// Major (18, 9.6), full version (16.4), or the name of a build
    #[arg(id = "server", value_name = "VERSION")]
    version: String,
}

/// Put back settings of servers that pgdyno does not own
///
/// Where a campaign may change the settings of a server that it does not own, it puts them back. If it is killed before
/// it can, a journal in the cache tells what to put back; the next run does, and so does this command. A setting that
/// somebody else has changed since is left as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server restore\n  \
                        PGPASSWORD=... pgdyno server restore\n\n\
                        Exit codes: 0 nothing is left to be put back, 1 a server could not be reached, or does not \
                        allow it; its journal is kept.")]
struct RestoreArgs {}

impl ServerArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        self.go().map_err(|error| match error.downcast_ref::<server::Error>() {
            Some(target) if is_usage(target) => Usage(format!("error: {target}")).into(),
            _ => error,
        })
    }

    fn go(self) -> anyhow::Result<Exit> {
        let cache = Cache::open()?;
        if let Some(notice) = server::sweep(&cache)?.notice() {
            note(&format!("{notice}\n"));
        }
        match self.command {
            Command::Install(args) => args.run(&cache),
            Command::Build(args) => args.run(&cache),
            Command::List(args) => args.run(&cache),
            Command::Start(args) => args.run(&cache),
            Command::Stop(args) => args.run(&cache),
            Command::Remove(args) => args.run(&cache),
            Command::Restore(args) => args.run(&cache),
        }
    }
}

/// Errors of what was asked for, by which nothing was begun.
fn is_usage(error: &server::Error) -> bool {
    matches!(
        error,
        server::Error::NotAVersion(_)
            | server::Error::NoSuchVersion { .. }
            | server::Error::NotInstalled { .. }
            | server::Error::Source { .. }
            | server::Error::Setting { .. }
            | server::Error::Scale { .. }
    )
}

impl InstallArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        // A version that does not exist is found before anything is downloaded.
        for version in &self.versions {
            server::resolve(cache, version)?;
        }
        let bar = PreparationProgress::new();
        for version in &self.versions {
            let installation = server::install_newest(cache, version, &bar)?;
            bar.clear();
            print(&format!(
                "PostgreSQL {} is installed in {}\n",
                installation.version(),
                installation.directory().display()
            ))?;
        }
        Ok(Exit::Ok)
    }
}

impl ListArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let document = List::read(cache)?;
        match self.format.get() {
            Format::Json => print_json(&document)?,
            format => print(&document.table().render(format))?,
        }
        Ok(Exit::Ok)
    }
}

impl StartArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let bar = PreparationProgress::new();
        let installation = match server::find(cache, &self.version)? {
            Some(installation) => installation,
            None => server::install(cache, &self.version, &bar)?,
        };
        let template = match self.scale {
            Some(scale) => {
                // One that exists keeps its data.
                let exists = standing::list(cache)?.iter().any(|server| server.name() == self.version);
                let copies = if exists { 0 } else { 1 };
                let content = scale.into();
                let dataset = Dataset { installation: &installation, initdb: &[], content: &content, copies };
                server::disk_need(cache, &[dataset])?.check(cache)?;
                Some(server::template(cache, &installation, &[], &content, &bar)?)
            }
            None => None,
        };
        let settings: BTreeMap<String, String> = self.settings.into_iter().collect();
        let server = standing::start(
            cache,
            &standing::Start {
                name: &self.version,
                installation: &installation,
                template: template.as_ref(),
                settings: &settings,
                port: self.port,
            },
            &bar,
        )?;
        bar.clear();
        print(&how_to_connect(&server))?;
        Ok(Exit::Ok)
    }
}

impl StopArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let mode = if self.immediate { StopMode::Immediate } else { StopMode::Fast };
        let server = standing::stop(cache, &self.version, mode)?;
        print(&format!(
            "PostgreSQL {} has stopped; its data stay in {}\n",
            server.version(),
            server.data_directory().display()
        ))?;
        Ok(Exit::Ok)
    }
}

impl RemoveArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let has_server = standing::list(cache)?.iter().any(|server| server.name() == self.version);
        let identities = match server::remove(cache, &self.version) {
            Err(server::Error::NotInstalled { .. }) if has_server => Vec::new(),
            outcome => outcome?,
        };
        for identity in identities {
            print(&format!("removed PostgreSQL {identity} with its templates\n"))?;
        }
        if standing::remove(cache, &self.version)? {
            print(&format!("removed the server {} with its data\n", self.version))?;
        }
        Ok(Exit::Ok)
    }
}

impl RestoreArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let bar = PreparationProgress::new();
        let restored = server::restore_settings(cache, &bar)?;
        bar.clear();
        if restored.is_empty() {
            print("no settings are to be put back\n")?;
        }
        let mut exit = Exit::Ok;
        for server in &restored {
            match server.outcome {
                Ok(_) => print(&format!("{}\n", server.notice()))?,
                Err(_) => {
                    note(&format!("error: {}\n", server.notice()));
                    exit = Exit::Error;
                }
            }
        }
        Ok(exit)
    }
}

/// `NAME=VALUE` on the command line.
fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, such as shared_buffers=1GB".to_owned()),
    }
}

/// What to type to get into a running server.
fn how_to_connect(server: &StandingServer) -> String {
    let database = report::servers::database(server);
    let mut text = format!(
        "PostgreSQL {} runs as process {}. To connect by TCP:\n  psql {}\n",
        server.version(),
        server.pid().map_or_else(|| "?".to_owned(), |pid| pid.to_string()),
        report::servers::uri(server)
    );
    if let Some(sockets) = server.socket_directory() {
        text += &format!(
            "By its Unix-domain socket:\n  psql -h {} -p {} -U postgres {database}\n",
            sockets.display(),
            server.port()
        );
    }
    text += &format!(
        "Log: {}\nTo stop: pgdyno server stop {}\n\nexport PGHOST=127.0.0.1 PGPORT={} PGUSER=postgres PGDATABASE={database}\n",
        server.log().display(),
        server.name(),
        server.port()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_name_and_a_value() {
        assert_eq!(setting("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(setting("search_path = x"), Ok(("search_path".to_owned(), "x".to_owned())));
        for text in ["shared_buffers", "=1GB", ""] {
            assert!(setting(text).unwrap_err().contains("NAME=VALUE"));
        }
    }
}
