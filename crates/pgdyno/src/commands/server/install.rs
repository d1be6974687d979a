//! `pgdyno server install`: downloads PostgreSQL versions.

use clap::Args;
use host::Cache;

use crate::completion;
use crate::exit::Exit;
use crate::output::print;
use crate::progress::PreparationProgress;

/// Download and install PostgreSQL versions
///
/// Downloads relocatable builds of PostgreSQL 9.6 to 18 (of the zonky project, from a Maven repository), checks their
/// SHA-512, and unpacks them into the cache. A major stands for its newest minor release; without a network, for the
/// newest that is installed. An interrupted installation leaves nothing behind, and several may run at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server install 18\n  \
                        pgdyno server install 9.6 16.4\n  \
                        PGDYNO_MIRROR=https://maven.example/maven2 pgdyno server install 18\n\n\
                        Exit codes: 0 all are installed, 1 a download failed, 2 there is no such version.")]
pub(super) struct InstallArgs {
    /// Major (18, 9.6) or full version (16.4)
    #[arg(value_name = "VERSION", required = true, add = completion::servers())]
    versions: Vec<String>,
}

impl InstallArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        // Unknown versions are reported before anything is downloaded.
        for version in &self.versions {
            server::resolve(cache, version)?;
        }
        let bar = PreparationProgress::new();
        for version in &self.versions {
            let installation = server::install_newest(cache, version, &bar)?;
            bar.clear();
            let directory = installation.directory().display();
            print(&format!("PostgreSQL {} is installed in {directory}\n", installation.version()))?;
        }
        Ok(Exit::Ok)
    }
}
