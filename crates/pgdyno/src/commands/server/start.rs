//! `pgdyno server start`: a server that stays up.

use std::collections::BTreeMap;

use clap::Args;
use host::{Cache, Progress};
use server::instance;
use server::{Dataset, Installation, Template};

use crate::completion;
use crate::exit::Exit;
use crate::output::print;
use crate::progress::PreparationProgress;

/// Start a server that stays up, and print how to connect
///
/// The server outlives this command and keeps its data; `pgdyno server stop` stops it, and the next start continues with
/// the same data. The version is installed first if needed. The server listens on a Unix-domain socket, through which only
/// the user who started it can connect, and with --tcp on 127.0.0.1, with a password that only this user can read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server start 18\n  \
                        pgdyno server start 18 --scale 10 --port 5433 --tcp\n  \
                        pgdyno server start 16.4 --settings shared_buffers=1GB max_connections=500\n\n\
                        Its standard output ends in lines for a shell:\n  \
                        eval \"$(pgdyno server start 18 | grep ^export)\" && psql")]
pub(super) struct StartArgs {
    /// Major (18, 9.6), full version (16.4), or the name of a build
    #[arg(id = "server", value_name = "VERSION", add = completion::servers())]
    version: String,

    /// Server settings for this start, as in postgresql.conf
    #[arg(long, value_name = "NAME=VALUE", num_args = 1.., value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Port, also in the socket's name [default: a free one]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Also listen on 127.0.0.1, with a new random password at each start
    #[arg(long)]
    tcp: bool,

    /// Create the database pgdyno with pgbench's tables of this scale in a new server (1 is 100,000 accounts)
    #[arg(long, value_name = "SCALE", value_parser = clap::value_parser!(u32).range(1..))]
    scale: Option<u32>,
}

impl StartArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let bar = PreparationProgress::new();
        let installation = match server::find(cache, &self.version)? {
            Some(installation) => installation,
            None => server::install(cache, &self.version, &bar)?,
        };
        let template = self.template(cache, &installation, &bar)?;
        let settings: BTreeMap<String, String> = self.settings.into_iter().collect();
        let server = instance::start(
            cache,
            &instance::Start {
                name: &self.version,
                installation: &installation,
                template: template.as_ref(),
                settings: &settings,
                port: self.port,
                tcp: self.tcp,
            },
            &bar,
        )?;
        bar.clear();
        print(&report::servers::how_to_connect(&server))?;
        Ok(Exit::Ok)
    }

    /// Template for the data of a new server, if a scale is given.
    fn template(
        &self,
        cache: &Cache,
        installation: &Installation,
        progress: &dyn Progress,
    ) -> Result<Option<Template>, server::Error> {
        let Some(scale) = self.scale else { return Ok(None) };
        // A server that exists keeps its data.
        let exists = instance::list(cache)?.iter().any(|server| server.name() == self.version);
        let content = scale.into();
        let copies = if exists { 0 } else { 1 };
        let dataset = Dataset { installation, initdb: &[], content: &content, copies };
        server::disk_need(cache, &[dataset])?.check(cache)?;
        server::template(cache, installation, &[], &content, None, progress).map(Some)
    }
}

/// Not `NAME=VALUE`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected NAME=VALUE, such as shared_buffers=1GB")]
struct NotASetting;

fn setting(text: &str) -> Result<(String, String), NotASetting> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(NotASetting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_name_and_a_value() {
        assert_eq!(setting("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(setting("search_path = x"), Ok(("search_path".to_owned(), "x".to_owned())));
        for text in ["shared_buffers", "=1GB", ""] {
            assert!(setting(text).unwrap_err().to_string().contains("NAME=VALUE"));
        }
    }
}
