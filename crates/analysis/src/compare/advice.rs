//! What would decide the cells that a comparison leaves undecided: a number of runs, with its command and its time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use model::record::Trial;
use plaintext::figures::{counted, duration};
use serde::Serialize;
use stats::{Blocks, Layout, MIN_RUNS, PairedSequence};

use crate::design::Campaigns;
use crate::judgement::{Outcome, PairedComparison, Row, Sessions, is_usable};
use crate::power::{MAX_NEEDED, SEQUENTIAL_RUNS, sequential_runs_needed};

/// The most runs that are named.
const MAX_NAMED: usize = 2;

/// What would decide undecided cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// What it takes, with its time if that is known.
    pub text: String,
    /// The commands that do it, one for each run; empty if none does.
    pub commands: Vec<String>,
}

impl Display for Advice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for (at, command) in self.named().iter().enumerate() {
            write!(f, "{}{command}", if at == 0 { ": " } else { "; " })?;
        }
        if self.named().len() < self.commands.len() { f.write_str("; …") } else { Ok(()) }
    }
}

impl Advice {
    /// The commands to show: the first ones, as those of the other runs differ only in the run.
    pub fn named(&self) -> &[String] {
        &self.commands[..self.commands.len().min(MAX_NAMED)]
    }
}

/// Advice on the undecided cells among some rows, which are judged by these; empty if all are decided, or no number of runs is
/// missing. `trials` are all that are known: those of the rows' runs tell how long a trial takes, and how many there are.
pub(crate) fn advice<'r>(rows: impl Iterator<Item = &'r Row>, trials: &[&Trial]) -> Vec<Advice> {
    let (paired, undecided): (Vec<&Row>, Vec<&Row>) =
        rows.filter(|row| lacks_runs(row)).partition(|row| row.judged.paired.is_some());
    of_sessions(&paired, trials).into_iter().chain(of_runs(&undecided, trials)).collect()
}

/// As [`advice`], on the rows of one metric, which may not be the one that its cells are judged by: where CPU time decides, too,
/// another figure may have decided the comparison.
pub(crate) fn advice_on_metric<'r>(rows: impl Iterator<Item = &'r Row>, trials: &[&Trial]) -> Vec<Advice> {
    let rows: Vec<&Row> = rows.collect();
    let paired: Vec<&Row> =
        rows.iter().copied().filter(|row| lacks_runs(row) && row.judged.paired.is_some()).collect();
    let of_rows = trials_of(&paired, trials);
    let with_cpu = Campaigns::default().cpu_decides(of_rows.iter().map(|trial| &trial.run));
    advice(rows.into_iter().filter(|row| !with_cpu || row.judged.paired.is_none()), trials)
}

/// Whether a row is undecided, and more runs or sessions would decide it.
fn lacks_runs(row: &Row) -> bool {
    matches!(row.judged.outcome, Outcome::Unstable | Outcome::Inconclusive | Outcome::Insufficient)
        && !is_of_sessions(row)
}

/// The trials of some rows that pgdyno measured.
fn trials_of<'t>(rows: &[&Row], trials: &[&'t Trial]) -> Vec<&'t Trial> {
    let ids: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.a.trials.iter().chain(&row.b.trials)).map(String::as_str).collect();
    let of_rows = trials.iter().filter(|trial| ids.contains(trial.id.as_str()) && trial.imported.is_none());
    of_rows.copied().collect()
}

/// The sessions that undecided rows lack.
fn of_sessions(undecided: &[&Row], trials: &[&Trial]) -> Option<Advice> {
    let comparisons = || undecided.iter().filter_map(|row| row.judged.paired.as_ref());
    let sequences = || comparisons().map(|paired| &paired.sequence);
    if undecided.is_empty() {
        return None;
    }
    let of_rows = trials_of(undecided, trials);
    let mut campaigns = Campaigns::default();
    let left = sequences().map(PairedSequence::sessions_left).sum::<Option<usize>>();
    let seconds = comparisons().map(PairedComparison::seconds_left).sum::<Option<f64>>();
    let text = match left {
        None => "The sessions are too few to tell how many more a decision takes".to_owned(),
        Some(left) => {
            let time = seconds.map(|seconds| format!(" ({})", duration(seconds))).unwrap_or_default();
            format!("About {}{time} would decide", counted(left, "more session"))
        }
    };
    // A run ends when what it is judged by is decided.
    if !comparisons().all(|paired| paired.decides) {
        return Some(Advice { text, commands: Vec::new() });
    }
    let wanted = |sequence: &PairedSequence| sequence.sessions() + sequence.sessions_left().unwrap_or(1);
    let wanted = sequences().map(wanted).max().unwrap_or_default();
    let mut runs: BTreeMap<&str, String> = BTreeMap::new();
    for trial in of_rows {
        let mut command = format!("pgdyno resume --run {}", trial.run.id);
        if campaigns.max_repeats(&trial.run).is_some_and(|max| max < wanted as i64) {
            command += &format!(" --set repeats={wanted}");
        }
        if let Some((max_time, seconds)) = campaigns.max_time(&trial.run).zip(seconds) {
            let longer = max_time.us() / 1_000_000 + seconds.ceil() as u64 + 1;
            command += &format!(" --set max_time={longer}s");
        }
        runs.insert(&trial.run.id, command);
    }
    Some(Advice { text, commands: runs.into_values().collect() })
}

/// The runs that undecided rows lack.
fn of_runs(undecided: &[&Row], trials: &[&Trial]) -> Option<Advice> {
    let of_rows = trials_of(undecided, trials);
    let runs: BTreeSet<&str> = of_rows.iter().map(|trial| trial.run.id.as_str()).collect();
    let in_blocks = Campaigns::default().are_in_blocks(of_rows.iter().map(|trial| &trial.run));
    if undecided.is_empty() || runs.is_empty() {
        return None;
    }
    let margin =
        undecided.iter().filter_map(|row| Some(row.judged.comparison.as_ref()?.margin)).reduce(f64::min);
    let effect = format!("{}%", ((margin? - 1.0) * 1e4).round() / 1e2);
    let wanted = undecided.iter().filter_map(|row| wanted(row, in_blocks)).max()?;
    if wanted > MAX_NEEDED {
        let text = format!(
            "At this noise, more than {MAX_NEEDED} runs a side would decide whether it changed by {effect}: see what disturbs the \
             machine (pgdyno doctor), or set a wider --margin"
        );
        return Some(Advice { text, commands: Vec::new() });
    }
    let seconds = seconds_to_reach(wanted, &runs, trials);
    let time = seconds.map(|seconds| format!(", about {} more", duration(seconds))).unwrap_or_default();
    Some(Advice {
        text: format!("{wanted} runs a side would decide whether it changed by {effect}{time}"),
        commands: runs
            .iter()
            .map(|run| format!("pgdyno resume --run {run} --set repeats={wanted}"))
            .collect(),
    })
}

/// Whether it is undecided by how much sessions differ: more runs of the same ones do not tell that.
pub(crate) fn is_of_sessions(row: &Row) -> bool {
    let estimate = row.judged.comparison.as_ref().and_then(|comparison| comparison.estimate);
    estimate.zip(row.sessions).is_some_and(|(estimate, Sessions { a, b, spread })| {
        spread.is_some_and(|spread| spread.of_difference(a, b) >= estimate.standard_error.powi(2))
    })
}

/// Runs a side that find a change of a row's margin at its noise, more than it has; `None` if its figures can't be compared.
/// As results ask for them, their number depends on these.
fn wanted(row: &Row, in_blocks: bool) -> Option<usize> {
    let n = row.a.values.len().min(row.b.values.len());
    let comparison = row.judged.comparison.as_ref()?;
    let variance = |cell: &stats::Cell| cell.log_sd.map(|sd| sd * sd);
    let Some(of_sides) = variance(&comparison.a).zip(variance(&comparison.b)).filter(|_| n >= MIN_RUNS)
    else {
        // Too few runs to know the noise.
        return Some((n + 1).max(*SEQUENTIAL_RUNS.start()));
    };
    let of_sides = ((of_sides.0 + of_sides.1) / 2.0).sqrt();
    let noise = comparison.blocks.as_ref().map_or(of_sides, Blocks::noise);
    let layout = match in_blocks && row.sessions.is_none() {
        true => Layout::Blocks,
        false => Layout::Independent,
    };
    let needed = sequential_runs_needed(noise, comparison.margin - 1.0, layout);
    Some(needed.unwrap_or(usize::MAX).max(n + 1))
}

/// Time that the trials take which the cells of these runs lack for a number of repeats, as long as their trials took.
fn seconds_to_reach(wanted: usize, runs: &BTreeSet<&str>, trials: &[&Trial]) -> Option<f64> {
    let of_runs = || trials.iter().filter(|trial| runs.contains(trial.run.id.as_str()));
    let seconds: Vec<f64> = of_runs()
        .filter_map(|trial| Some(trial.ended?.duration_since(trial.started?).as_secs_f64()))
        .filter(|seconds| *seconds > 0.0)
        .collect();
    let mean = (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)?;
    let mut cells: BTreeMap<_, usize> = BTreeMap::new();
    for trial in of_runs() {
        *cells.entry((trial.run.id.as_str(), &trial.cell)).or_default() += usize::from(is_usable(trial));
    }
    let missing: usize = cells.values().map(|n| wanted.saturating_sub(*n)).sum();
    Some(missing as f64 * mean)
}
