//! Options of the workload.

use crate::completion;
use std::path::PathBuf;

use bench::{Define, ScriptOptions, WeightedName};
use clap::Args;
use runner::campaign_file::draw_seed;

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(super) struct WorkloadArgs {
    /// Scripts in pgbench's language: files, or built-in scripts by name; each is chosen in proportion to its weight
    /// [default: the built-in tpcb-like]
    #[arg(value_name = "SCRIPT[@WEIGHT]")]
    scripts: Vec<WeightedName>,

    /// Built-in script: tpcb-like, simple-update, select-only, or a unique beginning of the name
    #[arg(short, long, value_name = "NAME[@WEIGHT]", add = completion::workloads())]
    builtin: Vec<WeightedName>,

    /// Script file; - is standard input
    #[arg(short, long, value_name = "FILE[@WEIGHT]")]
    file: Vec<WeightedName>,

    /// Value of the scripts' variable :NAME
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    define: Vec<Define>,

    /// Value of :scale [default: for built-in scripts the number of rows in pgbench_branches, else 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    scale: Option<u32>,

    /// Seed of all random numbers; the same seed sends the same statements as pgbench's --random-seed [default: drawn,
    /// and reported]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Script to run once before the load, in a session of its own
    #[arg(long, value_name = "FILE")]
    setup: Option<PathBuf>,

    /// Script to run once after the load, also after errors and Ctrl-C
    #[arg(long, value_name = "FILE")]
    teardown: Option<PathBuf>,
}

impl From<WorkloadArgs> for ScriptOptions {
    fn from(args: WorkloadArgs) -> Self {
        Self {
            named: args.scripts,
            builtin: args.builtin,
            files: args.file,
            define: args.define,
            scale: args.scale,
            seed: args.seed.unwrap_or_else(draw_seed),
            setup: args.setup,
            teardown: args.teardown,
        }
    }
}
