//! `pgdyno history`: when a metric changed.

use std::path::PathBuf;
use std::str::FromStr;

use analysis::compare::Gate;
use analysis::history::{Decision, HistoryAxis, Request, default_metric, history};
use analysis::metric::Metric;
use analysis::select::Selector;
use clap::{Args, ValueEnum};
use plaintext::table::Format;
use report::Terminal;
use report::history::{Document, bencher, gates_in_words, github_benchmark, junit, text};

use crate::completion;
use crate::exit::{Exit, Undecided, Usage};
use crate::output::{json, note};
use crate::result_output::{ResultFormat, ResultOutput, in_report};
use crate::store_arg::StoreArg;

/// Find when a metric changed, over versions, commits, kernels or dates
///
/// Each cell is a series with one point a step: the median of its runs. A change point is where the level changes more than
/// by chance; it has the two steps around it, its effect and p. Change points of several cells at the same step are one
/// shift. At least 10 steps are needed; docs/statistics.md has the rules, docs/history.md the rest.
///
/// A selector is a list of FACTOR=LEVEL, run:ID, campaign:NAME (here: all its runs), tag:NAME and latest, separated by
/// commas, or of trial ids; without one, all trials in the store are selected. Invalid trials are not used, suspect ones
/// are; both are reported.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno history --over version
  pgdyno history --over kernel workload=select-only,clients=16
  pgdyno history latency.p99 --over date campaign:nightly --control server=17.0
                                                       relative to 17.0 of the same night
  pgdyno history tps --over date tag:before tag:after
  pgdyno history tps --over commit campaign:nightly --newest 5 --fail 'tps < -3%'
  pgdyno history tps --over version --accept 18.2 --note 'the price of the fix of CVE-2026-0001'
  pgdyno history tps --over date --format json | jq -r '.shifts[].said'
  pgdyno history tps --over commit --newest 5 --fail 'tps < -3%' --output junit=history.xml
                                                       the same, with a test report for the CI system

Exit codes: 0 no gate is hit, 1 error, 2 usage, 3 a gate is hit, 4 no gate is hit, but a cell has no usable trial, 6 no gate is hit, but one is not decided.")]
pub(crate) struct HistoryArgs {
    /// Metric: tps, latency.mean, latency.p50, latency.p95, latency.p99, cpu_per_transaction,
    /// wal_bytes_per_transaction, blocks.logical_reads and the like (docs/compare.md), or a collected metric by its
    /// name in docs/metrics.md [default: what the cells are judged by: tps; at a rate latency.p99; counted instructions; or
    /// what their workload names]
    #[arg(value_name = "METRIC")]
    first: Option<First>,

    /// Trials, the union of all selectors [default: all]
    #[arg(value_name = "SELECTOR", add = completion::selectors())]
    selectors: Vec<Selector>,

    /// Steps of the history
    #[arg(long, value_enum, value_name = "WHAT")]
    over: OverName,

    /// Order commits by this git repository; by default the order recorded with their trials is used
    #[arg(long, value_name = "DIRECTORY")]
    repository: Option<PathBuf>,

    /// Divide each figure by that of the same run's cell that has these levels and is the same in all others: changes of
    /// both, such as a slower machine, cancel
    #[arg(long, value_name = "LEVELS")]
    control: Option<Selector>,

    /// Leave out a step, such as a broken build; may be repeated
    #[arg(long, value_name = "STEP")]
    without: Vec<String>,

    /// Exit with 3 if a cell has an unaccepted shift of more than this, such as 'tps < -5%'; may be repeated
    #[arg(long = "fail", value_name = "GATE", allow_hyphen_values = true)]
    gates: Vec<Gate>,

    /// What a gate means that is not decided, since runs are too few, too noisy or missing [default: exit with 6]
    #[arg(long, value_enum, value_name = "MEANING", requires = "gates")]
    undecided: Option<Undecided>,

    /// Apply gates only to shifts in the newest N steps. A shift is found two steps later at the earliest
    #[arg(long, value_name = "N", requires = "gates")]
    newest: Option<usize>,

    /// Accept the shifts at this step in the selected cells: they are shown as accepted and hit no gate
    #[arg(long, value_name = "STEP", requires = "note", conflicts_with = "withdraw")]
    accept: Option<String>,

    /// Reason for accepting
    #[arg(long, value_name = "TEXT", requires = "accept")]
    note: Option<String>,

    /// Name of the person who accepts
    #[arg(long, value_name = "NAME", env = "USER", hide_env_values = true)]
    by: Option<String>,

    /// Withdraw the acceptance of this step
    #[arg(long, value_name = "STEP")]
    withdraw: Option<String>,

    #[command(flatten)]
    output: ResultOutput,

    #[command(flatten)]
    store: StoreArg,
}

/// The first argument: a selector, if no metric is named.
#[derive(Clone, Debug)]
enum First {
    Metric(Metric),
    Selector(Selector),
}

impl FromStr for First {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        // Ids of trials begin with a digit, and metrics do not.
        let is_selector = text.contains(['=', ':', ','])
            || text.trim() == "latest"
            || text.starts_with(|c: char| c.is_ascii_digit());
        match text.parse() {
            Ok(metric) => Ok(Self::Metric(metric)),
            Err(_) if is_selector => Ok(Self::Selector(text.parse()?)),
            Err(error) => Err(error.into()),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverName {
    /// The server's version
    Version,
    /// The `ref` of servers built from git, in the order of the repository's history
    Commit,
    /// The kernel of the factor, else of the machine
    Kernel,
    /// The run
    Date,
}

impl OverName {
    fn get(self) -> HistoryAxis {
        match self {
            Self::Version => HistoryAxis::Version,
            Self::Commit => HistoryAxis::Commit,
            Self::Kernel => HistoryAxis::Kernel,
            Self::Date => HistoryAxis::Date,
        }
    }
}

impl HistoryArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let decision = self.decision()?;
        let reading = self.store.read()?;
        let (metric, first) = match self.first {
            Some(First::Metric(metric)) => (Some(metric), None),
            Some(First::Selector(selector)) => (None, Some(selector)),
            None => (None, None),
        };
        let selectors: Vec<Selector> = first.into_iter().chain(self.selectors).collect();
        let metric = match metric {
            Some(metric) => metric,
            None => default_metric(&reading, &selectors)?,
        };
        let request = Request {
            metric,
            over: self.over.get(),
            selectors,
            control: self.control,
            without: self.without,
            gates: self.gates,
            newest: self.newest,
            only_own: false,
            repository: self.repository.as_deref(),
        };
        let mut history = history(&reading, &request)?;
        if let Some(decision) = decision {
            history.decide(reading.store(), decision)?;
        }
        let shown = |format, terminal: Option<Terminal>| match format {
            ResultFormat::Table => Ok(text(&history, Format::Table, terminal)),
            ResultFormat::Csv => Ok(text(&history, Format::Csv, None)),
            ResultFormat::Markdown => Ok(text(&history, Format::Markdown, None)),
            ResultFormat::Json => reading.json(&Document::new(&history)),
            ResultFormat::Junit => Ok(junit(&history, in_report(self.undecided))),
            ResultFormat::GithubBenchmark => json(&github_benchmark(&history)),
            ResultFormat::Bencher => json(&bencher(&history)),
        };
        self.output.print(shown)?;
        if !self.output.format().has_gates() {
            // The other formats have the gates in their data.
            note(&gates_in_words(&history).iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        Ok(Exit::from_gates(history.gates_state(), self.undecided, history.is_invalid()))
    }

    fn decision(&self) -> Result<Option<Decision>, Usage> {
        let by = self.by.clone().filter(|by| !by.trim().is_empty());
        match (&self.accept, &self.withdraw) {
            (Some(at), _) => {
                let note = self.note.as_deref().unwrap_or_default().trim();
                if note.is_empty() {
                    return Err(Usage("error: the note is empty: give the reason for accepting".to_owned()));
                }
                Ok(Some(Decision::Accept { at: at.clone(), note: note.to_owned(), by }))
            }
            (None, Some(at)) => Ok(Some(Decision::Withdraw { at: at.clone() })),
            (None, None) => Ok(None),
        }
    }
}
