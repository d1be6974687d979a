//! `pgdyno compare`: whether two selections of trials differ.

use analysis::compare::{Gate, Request, compare};
use analysis::margin::Margin;
use analysis::metric::Metric;
use analysis::select::Selector;
use anyhow::bail;
use clap::Args;
use plaintext::table::Format;
use report::compare::statements_text;

use crate::comparison::comparison;
use crate::completion;
use crate::exit::{Exit, Undecided};
use crate::output::note;
use crate::result_output::{ResultFormat, ResultOutput};
use crate::store_arg::{RunArg, StoreArg};

/// Compare selections of trials, cell by cell
///
/// The first selector is the baseline, each other one a variant that is compared with it. A selector is a list of
/// FACTOR=LEVEL, run:ID, campaign:NAME (its latest run), tag:NAME and latest (the latest run), separated by commas, or of
/// trial ids. Cells are compared if they are the same in all factors that the selectors do not name; cells of only one
/// side are listed. Cells are never averaged.
///
/// Each cell gets the ratio of geometric means with its 95% interval, p adjusted over all cells of the metric, the
/// class of both sides, and a verdict; docs/statistics.md has the rules. Invalid trials are not used, suspect ones
/// are; both are reported. If the cells play a trace, each of its statements has a verdict, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno compare server=17 server=18                   of the latest run, all cells that both have
  pgdyno compare server=18,settings=default server=18,settings=big server=18,settings=huge
                                                       a baseline and two variants
  pgdyno compare run:01KAK3 run:01KB7W --metric tps --metric latency.p99
  pgdyno compare tag:before tag:after --fail 'tps < -5%' --fail 'latency.p99 > 10%'
  pgdyno compare campaign:main campaign:patch --format markdown > comment.md
  pgdyno compare tag:main tag:patch --fail 'tps < -5%' --output junit=pgdyno.xml
  pgdyno compare server=17 server=18 --metric cpu_per_transaction --metric pg.wal.bytes
  pgdyno compare server=17 server=18 --statements --format csv   of a trace, a row for each statement
  pgdyno compare server=17 server=18 --format json | jq '.metrics[].cells[] | {cell, ratio, verdict}'

Exit codes: 0 no gate is hit, 1 error, 2 usage, 3 a gate is hit, 4 no gate is hit, but a cell has no usable trial, 6 no gate is hit, but one is not decided.")]
pub(crate) struct CompareArgs {
    /// Baseline of the comparison
    #[arg(value_name = "BASELINE", add = completion::selectors())]
    baseline: Selector,

    /// Variants to compare with the baseline
    #[arg(value_name = "VARIANT", required = true, add = completion::selectors())]
    variants: Vec<Selector>,

    /// Metric to compare: tps, latency.mean, latency.p50, latency.p95, latency.p99 (from the intended start),
    /// cpu_per_transaction (the server's), server_instructions (in pairs), wal_bytes_per_transaction, blocks.logical_reads, blocks.physical_reads,
    /// blocks.hit_ratio, blocks.writes, blocks.visited, script.latency.mean{SCRIPT} and the like, or a collected metric
    /// by its name in docs/metrics.md, as in pg.wal.bytes or role.run_us{checkpointer}; may be repeated [default: what
    /// each cell is judged by: tps; at a rate latency.p99 with latency.mean; counted instructions; or what its workload
    /// names]
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<Metric>,

    /// Exit with 3 if a cell changed by more than this, such as 'tps < -5%' or 'latency.p99 > 10%'; may be repeated
    #[arg(long = "fail", value_name = "GATE", allow_hyphen_values = true)]
    gates: Vec<Gate>,

    /// The smallest change that matters, of all metrics or of one, such as 3% or latency.p99=10%; may be repeated
    /// [default: `effect` of the campaigns, else 5%]. A gate makes its metric's margin as small as its bound
    #[arg(long = "margin", value_name = "MARGIN")]
    margins: Vec<Margin>,

    /// What a gate means that is not decided, since runs are too few, too noisy or missing [default: exit with 6]
    #[arg(long, value_enum, value_name = "MEANING", requires = "gates")]
    undecided: Option<Undecided>,

    /// Print only the statements of a trace; in CSV, a row for each
    #[arg(long)]
    statements: bool,

    #[command(flatten)]
    run: RunArg,

    #[command(flatten)]
    output: ResultOutput,

    #[command(flatten)]
    store: StoreArg,
}

impl CompareArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let run = self.run.get();
        let selectors = std::iter::once(self.baseline).chain(self.variants).collect();
        let request =
            Request { selectors, run, metrics: self.metrics, gates: self.gates, margins: self.margins };
        let reading = self.store.read()?;
        let compared = compare(&reading, &request)?;
        if self.statements && compared.statements.is_empty() {
            bail!(
                "the compared trials play no trace, or different ones: only a trace has statements to compare"
            );
        }
        self.output.print(|format, terminal| {
            let format_of_statements = match format {
                ResultFormat::Table => Some(Format::Table),
                ResultFormat::Csv => Some(Format::Csv),
                ResultFormat::Markdown => Some(Format::Markdown),
                _ => None,
            };
            match format_of_statements.filter(|_| self.statements) {
                Some(format) => Ok(statements_text(&compared, format, terminal)),
                None => comparison(&reading, &compared, self.undecided, format, terminal),
            }
        })?;
        if !self.output.format().has_gates() {
            note(&compared.gates_in_words().iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        Ok(Exit::from_gates(compared.gates_state(), self.undecided, compared.is_invalid()))
    }
}
