//! `pgdyno import pgbench`: output and logs of pgbench.

use std::path::PathBuf;

use clap::Args;
use import::pgbench::{self, Run};

use super::{TargetArgs, source};
use crate::exit::{Exit, Usage};

/// Import output and logs of pgbench (9.0 to 18): each output is a trial
///
/// Progress reports (-P) become a series of seconds, whether they are in the output or in a file of their own. A log of
/// transactions (-l) adds histograms and percentiles, one of intervals (--aggregate-interval) a series without
/// percentiles; give the files of all threads. With a log and no output, throughput is that of the log.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno import pgbench run1.out run2.out run3.out --set server=14 --tag before\n  \
                        pgdyno import pgbench run.out --progress run.err --log pgbench_log.4711*\n  \
                        pgbench -c 8 -T 60 -P 1 2>&1 | pgdyno import pgbench - --name smoke")]
pub(super) struct PgbenchArgs {
    /// Outputs of pgbench (- is standard input)
    #[arg(value_name = "OUTPUT", required_unless_present = "log")]
    outputs: Vec<PathBuf>,

    /// Progress reports of a single output, which pgbench prints to standard error
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,

    /// Logs of a single output, of all its threads
    #[arg(long, value_name = "FILE", num_args = 1..)]
    log: Vec<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,
}

impl PgbenchArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let levels = self.target.levels()?;
        let import = pgbench::read(&self.runs()?, &levels)?;
        self.target.persist(&import)
    }

    fn runs(&self) -> anyhow::Result<Vec<Run>> {
        let has_details = self.progress.is_some() || !self.log.is_empty();
        if self.outputs.len() > 1 && has_details {
            let message = "error: --progress and --log need a single output; import the outputs one by one";
            return Err(Usage(message.to_owned()).into());
        }
        let files =
            |paths: &[PathBuf]| paths.iter().map(|path| source(path)).collect::<anyhow::Result<Vec<_>>>();
        let outputs = files(&self.outputs)?;
        if outputs.len() <= 1 {
            let progress = self.progress.as_deref().map(source).transpose()?;
            return Ok(vec![Run { output: outputs.into_iter().next(), progress, logs: files(&self.log)? }]);
        }
        Ok(outputs.into_iter().map(|output| Run { output: Some(output), ..Run::default() }).collect())
    }
}
