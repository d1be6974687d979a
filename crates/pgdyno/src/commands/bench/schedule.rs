//! Options of the open loop.

use bench::{Objective, ScheduleOptions, Spacing};
use clap::Args;
use driver::Stage;

#[derive(Debug, Args)]
#[command(next_help_heading = "Open loop: transactions start when due, whether or not the server keeps up")]
pub(super) struct ScheduleArgs {
    /// Transactions per second of all clients together, such as 400/s
    #[arg(long, value_name = "RATE", conflicts_with_all = ["stage", "find_max"], value_parser = bench::positive_rate)]
    rate: Option<f64>,

    /// A part of the schedule: 10s:200 at a rate, 10s:100..500 a ramp, 5s:0 a pause; one after the other
    #[arg(long, value_name = "TIME:RATE[..RATE]", conflicts_with = "find_max", value_parser = bench::stage)]
    stage: Vec<Stage>,

    /// How they are spaced: poisson (at random, as of many independent users), uniform, or file:PATH with the times of
    /// all arrivals, in seconds after the start, one a line [default: poisson]
    #[arg(long, value_name = "SPACING")]
    arrivals: Option<Spacing>,

    /// Search for the highest rate that meets an objective: "p99 < 10ms", also p50 to p99.99, mean, max, "errors < 1%";
    /// may be repeated
    #[arg(long, value_name = "OBJECTIVE")]
    find_max: Vec<Objective>,
}

impl From<ScheduleArgs> for ScheduleOptions {
    fn from(args: ScheduleArgs) -> Self {
        Self { rate: args.rate, stages: args.stage, spacing: args.arrivals, objectives: args.find_max }
    }
}
