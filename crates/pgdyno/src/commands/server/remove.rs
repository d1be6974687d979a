//! `pgdyno server remove`: removes versions with their templates and servers.

use clap::Args;
use host::Cache;
use server::instance;

use crate::completion;
use crate::exit::Exit;
use crate::output::print;

/// Remove a version with its templates, and its server's data
///
/// A major removes all its downloaded releases; the name of a build removes it with its build directory. Versions in use
/// are not removed. Trials are in the store and are not touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno server remove 16.4\n  pgdyno server remove 13\n  \
                        pgdyno server remove 19devel-src-0123456789ab")]
pub(super) struct RemoveArgs {
    /// Major (18, 9.6), full version (16.4), or the name of a build
    #[arg(id = "server", value_name = "VERSION", add = completion::servers())]
    version: String,
}

impl RemoveArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let has_server = instance::list(cache)?.iter().any(|server| server.name() == self.version);
        let identities = match server::remove(cache, &self.version) {
            Err(server::Error::NotInstalled { .. }) if has_server => Vec::new(),
            outcome => outcome?,
        };
        for identity in identities {
            print(&format!("removed PostgreSQL {identity} with its templates\n"))?;
        }
        if instance::remove(cache, &self.version)? {
            print(&format!("removed the server {} with its data\n", self.version))?;
        }
        Ok(Exit::Ok)
    }
}
