//! `pgdyno server build`: PostgreSQL from its source.

use std::path::PathBuf;

use clap::Args;
use host::Cache;
use model::server::{Build, BuildSystem, Source};

use crate::exit::Exit;
use crate::output::print;
use crate::progress::PreparationProgress;

/// Build PostgreSQL from a source directory or a tarball
///
/// Builds what a server needs, out of the source's tree, and keeps it in the cache: the same source with the same
/// options is built once. Of a git work tree, what is built is the tree as it stands, changes that are not committed
/// included; with --ref, that commit, and the work tree is not touched. The build directory is kept, so that after a
/// change to a few files only these are compiled. ccache is used where it is installed.
///
/// All majors are built alike: with CFLAGS -O2 -g -fno-omit-frame-pointer, without ICU, readline and zlib.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server build postgresql-17.4.tar.bz2\n  \
                        pgdyno server build ~/postgresql\n  \
                        pgdyno server build ~/postgresql --ref my-branch --option --enable-cassert\n  \
                        pgdyno server build ~/postgresql --system meson --option -Dcassert=true\n  \
                        pgdyno server build ~/postgresql --option CC=clang-19 --cflags '-O3 -g'\n\n\
                        Exit codes: 0 it is built, 1 building failed or a tool is missing, 2 there is no such source.")]
pub(super) struct BuildArgs {
    /// A source directory, or a tarball (.tar, .tar.gz, .tar.bz2, .tar.xz)
    #[arg(value_name = "DIR|TARBALL")]
    location: PathBuf,

    /// What of a git repository to build: a branch, a tag or a commit
    #[arg(long = "ref", value_name = "REF")]
    git_ref: Option<String>,

    /// An option for configure or for meson setup; may be repeated. CC=COMPILER is taken with both
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,

    /// What configures it; meson is for PostgreSQL 16 and later
    #[arg(long, value_parser = system, default_value = "configure", value_name = "configure|meson")]
    system: BuildSystem,

    /// Flags for the C compiler [default: -O2 -g -fno-omit-frame-pointer]
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    cflags: Option<String>,
}

impl BuildArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let bar = PreparationProgress::new();
        let source = Source::Build(Build {
            location: self.location,
            git_ref: self.git_ref,
            system: Some(self.system),
            options: self.options,
            cflags: self.cflags,
        });
        let installation = server::installation(cache, &source, &bar);
        bar.clear();
        let installation = installation?;
        let name = installation.identity();
        print(&format!(
            "PostgreSQL {} is installed in {}\nTo start it: pgdyno server start {name}\n",
            installation.version(),
            installation.directory().display()
        ))?;
        Ok(Exit::Ok)
    }
}

fn system(text: &str) -> Result<BuildSystem, String> {
    text.parse().map_err(|_| "expected configure or meson".to_owned())
}
