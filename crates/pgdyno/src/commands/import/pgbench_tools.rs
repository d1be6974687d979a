//! `pgdyno import pgbench-tools`: exports of pgbench-tools' results database.

use std::path::PathBuf;

use clap::Args;
use import::pgbench_tools;

use super::{TargetArgs, source};
use crate::exit::Exit;

/// Import an export of pgbench-tools' results database: each test is a trial
///
/// Needs the table `tests` as CSV with a header line, of any version of pgbench-tools. Script, scale, clients, workers
/// and rate limit become the cell, the set becomes the factor settings, and the server, if there is one, the factor host.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
                        psql results -c '\\copy (select * from tests order by test) to tests.csv csv header'\n  \
                        psql results -c '\\copy testset to testset.csv csv header'\n  \
                        pgdyno import pgbench-tools tests.csv --testset testset.csv")]
pub(super) struct PgbenchToolsArgs {
    /// The table `tests` (- is standard input)
    #[arg(value_name = "FILE")]
    tests: PathBuf,

    /// The table `testset`, for the names of the sets
    #[arg(long, value_name = "FILE")]
    testset: Option<PathBuf>,

    /// Skip invalid tests, such as unfinished ones
    #[arg(long)]
    skip_bad: bool,

    #[command(flatten)]
    target: TargetArgs,
}

impl PgbenchToolsArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let levels = self.target.levels()?;
        let testset = self.testset.as_deref().map(source).transpose()?;
        let tests = source(&self.tests)?;
        self.target.persist(&pgbench_tools::read(&tests, testset.as_ref(), &levels, self.skip_bad)?)
    }
}
