//! `pgdyno server build`: PostgreSQL from its source.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use host::Cache;
use model::server::{Build, BuildSystem, Source};

use crate::exit::Exit;
use crate::output::print;
use crate::progress::PreparationProgress;

/// Build PostgreSQL from a source directory or a tarball
///
/// Builds a server outside the source tree and keeps it in the cache: the same source with the same options is built
/// once. A git work tree is built with its uncommitted changes; with --ref, that commit is built, and the work tree is not
/// touched. The build directory is kept, so that only changed files are compiled again. ccache is used if it is installed.
///
/// All majors are built in the same way: with CFLAGS -O2 -g -fno-omit-frame-pointer, without ICU, readline and zlib.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server build postgresql-17.4.tar.bz2\n  \
                        pgdyno server build ~/postgresql\n  \
                        pgdyno server build ~/postgresql --ref my-branch --option --enable-cassert\n  \
                        pgdyno server build ~/postgresql --ref master --patch v2-0001-fix.patch\n  \
                        pgdyno server build ~/postgresql --system meson --option -Dcassert=true\n  \
                        pgdyno server build ~/postgresql --option CC=clang-19 --cflags '-O3 -g'\n\n\
                        Exit codes: 0 it is built, 1 building failed or a tool is missing, 2 there is no such source.")]
pub(super) struct BuildArgs {
    /// Source directory or tarball (.tar, .tar.gz, .tar.bz2, .tar.xz)
    #[arg(value_name = "DIR|TARBALL")]
    location: PathBuf,

    /// Branch, tag or commit of a git repository
    #[arg(long = "ref", value_name = "REF")]
    git_ref: Option<String>,

    /// Patch to apply to the source before it is built; may be repeated
    #[arg(long = "patch", value_name = "FILE")]
    patches: Vec<PathBuf>,

    /// Option for configure or meson setup; may be repeated. Both accept CC=COMPILER
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,

    /// Build system; meson is for PostgreSQL 16 and later
    #[arg(long, value_parser = PossibleValuesParser::new(["configure", "meson"]).try_map(|name| name.parse::<BuildSystem>()),
          default_value = "configure", hide_possible_values = true, value_name = "configure|meson")]
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
            patches: self.patches,
            sorted_functions: false,
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
