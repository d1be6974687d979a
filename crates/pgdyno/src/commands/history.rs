//! `pgdyno history`: when did it change?

use analysis::compare::Gate;
use analysis::history::{Decision, Over, Request, history};
use analysis::metric::Metric;
use analysis::select::Selector;
use clap::{Args, ValueEnum};
use plaintext::table::Format;
use report::history::{Document, gates_in_words, text};
use store::Store;

use crate::exit::{Exit, Usage};
use crate::git;
use crate::output::{FormatArg, in_colour, note, print, print_json};
use crate::store_arg::StoreArg;

/// Say when something changed, over versions, commits, kernels or dates
///
/// Each cell is a series: one point a step, the median of its runs. Where its level changes more than chance would have
/// it is a change point, with the two steps that it lies between, its effect and p; what changes together in several
/// cells is one shift. At least 10 steps are needed; docs/statistics.md has the rules, docs/history.md the rest.
///
/// A selector is a list of FACTOR=LEVEL, run:ID, campaign:NAME (here: all its runs), tag:NAME and latest, with commas
/// between them, or of trials' ids; without one, all trials of the store are meant. Invalid trials are not used, suspect
/// ones are; both are said.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno history tps --over version
  pgdyno history tps --over kernel workload=select-only,clients=16
  pgdyno history latency.p99 --over date campaign:nightly --control server=17.0
                                                       relative to 17.0 of the same night
  pgdyno history tps --over commit campaign:nightly --newest 5 --fail 'tps < -3%'
  pgdyno history tps --over version --accept 18.2 --note 'the price of the fix of CVE-2026-0001'
  pgdyno history tps --over date --format json | jq -r '.shifts[].said'

Exit codes: 0 no gate is hit, 1 error, 2 usage, 3 a gate is hit, 4 no gate is hit, but a cell has no trial that may be \
used.")]
pub(crate) struct HistoryArgs {
    /// Of this: tps, latency.mean, latency.p50, latency.p95, latency.p99, cpu_per_transaction,
    /// wal_bytes_per_transaction, blocks.logical_reads and the like (docs/compare.md), or a collected metric by its name in docs/metrics.md
    #[arg(value_name = "METRIC")]
    metric: Metric,

    /// Of these trials [default: all]
    #[arg(value_name = "SELECTOR")]
    selector: Option<Selector>,

    /// What the steps are
    #[arg(long, value_enum, value_name = "WHAT")]
    over: OverName,

    /// Take each figure relative to that of the same run's cell which has these levels and is like it in all others: what
    /// moves both, such as a machine that gets slower, is not in the ratio
    #[arg(long, value_name = "LEVELS")]
    control: Option<Selector>,

    /// Leave out a step, such as a build that was broken; may be given several times
    #[arg(long, value_name = "STEP")]
    without: Vec<String>,

    /// Exit with 3 where a cell shifted beyond this and nobody accepted it, such as 'tps < -5%'; may be given several
    /// times
    #[arg(long = "fail", value_name = "GATE", allow_hyphen_values = true)]
    gates: Vec<Gate>,

    /// Gates look at shifts in the newest N steps alone. A shift takes two steps after it to be found
    #[arg(long, value_name = "N", requires = "gates")]
    newest: Option<usize>,

    /// Accept what shifted with this step, in the cells that are selected: it is shown as accepted from then on, and
    /// hits no gate
    #[arg(long, value_name = "STEP", requires = "note", conflicts_with = "withdraw")]
    accept: Option<String>,

    /// Why it is accepted
    #[arg(long, value_name = "TEXT", requires = "accept")]
    note: Option<String>,

    /// Who accepts it
    #[arg(long, value_name = "NAME", env = "USER", hide_env_values = true)]
    by: Option<String>,

    /// Take back that this step was accepted
    #[arg(long, value_name = "STEP")]
    withdraw: Option<String>,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverName {
    /// The server's own version
    Version,
    /// The `ref` of servers that were built from git, in the order of its history where the repository is there
    Commit,
    /// The kernel, as the factor or the machine has it
    Kernel,
    /// A step is a run
    Date,
}

impl OverName {
    fn get(self) -> Over {
        match self {
            Self::Version => Over::Version,
            Self::Commit => Over::Commit,
            Self::Kernel => Over::Kernel,
            Self::Date => Over::Date,
        }
    }
}

impl HistoryArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let decision = self.decision()?;
        let store = Store::existing(&self.store.root())?;
        let git =
            |repository: &std::path::Path, refs: &[String]| git::in_order(store.root(), repository, refs);
        let request = Request {
            metric: self.metric,
            over: self.over.get(),
            selector: self.selector.unwrap_or_default(),
            control: self.control,
            without: self.without,
            gates: self.gates,
            newest: self.newest,
            git: &git,
        };
        let mut history = history(&store, &request)?;
        if let Some(decision) = decision {
            history.decide(&store, decision)?;
        }
        match self.format.get() {
            Format::Json => print_json(&Document::of(&history))?,
            format => print(&text(&history, format, format == Format::Table && in_colour()))?,
        }
        if self.format.get() == Format::Csv {
            // The others have it in their data.
            note(&gates_in_words(&history).iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        Ok(Exit::from_gates(history.hits_a_gate(), history.is_invalid()))
    }

    fn decision(&self) -> Result<Option<Decision>, Usage> {
        let by = self.by.clone().filter(|by| !by.trim().is_empty());
        match (&self.accept, &self.withdraw) {
            (Some(at), _) => {
                let note = self.note.as_deref().unwrap_or_default().trim();
                if note.is_empty() {
                    return Err(Usage("error: the note is empty: say why it is accepted".to_owned()));
                }
                Ok(Some(Decision::Accept { at: at.clone(), note: note.to_owned(), by }))
            }
            (None, Some(at)) => Ok(Some(Decision::Withdraw { at: at.clone() })),
            (None, None) => Ok(None),
        }
    }
}
