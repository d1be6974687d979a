//! The result of `pgdyno bisect`: as plain text for a mailing list or a pull request, and as data.

mod document;
mod link_order;
pub mod tested;

use analysis::judgement::Refusal;
use diagnose::{Bisection, BisectionFinding, LinkOrderCheck};
use model::metrics::Better;
use model::paired::PairedFigure;
use plaintext::figures::{change, counted, duration};
use plaintext::table::{Format, GAP, Table};
use plaintext::wrap;
use stats::{Culprits, Interval, StepSize};

use crate::ab::{WIDTH, fact};
use crate::answers::command;
pub use document::Document;

/// Columns of the chart of probabilities.
const CHART: usize = 60;
/// The most rows of the table of candidates.
const MAX_ROWS: usize = 12;
/// Candidates less probable than this are not listed, unless they were measured.
const LEAST_PROBABILITY: f64 = 0.001;

/// What a bisection is about, in addition to its figures.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Lines about what was searched, each with its label.
    pub facts: Vec<(String, String)>,
    /// The levels in their order, the baseline first.
    pub levels: Vec<Level>,
    /// Time of the sessions, in seconds.
    pub seconds: f64,
    /// The comparison of what was found in builds with another order of functions; none if there is none.
    pub link_order: Option<LinkOrderCheck>,
    /// The command to continue or to repeat it.
    pub command: String,
}

/// A level.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// The level as selectors name it.
    pub name: String,
    /// A shorter name, such as that of a commit without its repository.
    pub short: String,
    /// What it is, such as a commit's subject.
    pub title: Option<String>,
    /// More about it, in lines, shown if the change is there: author, date and files of a commit.
    pub details: Vec<String>,
}

/// A figure's name in sentences.
pub fn figure_name(figure: PairedFigure) -> &'static str {
    match figure {
        PairedFigure::Throughput => "throughput",
        PairedFigure::Latency => "mean latency",
        PairedFigure::ServerCpu => "server CPU time per transaction",
        PairedFigure::ServerInstructions => "server instructions per transaction",
        PairedFigure::Instructions => "instructions per transaction",
    }
}

/// The result as text.
pub fn text(bisection: &Bisection, subject: &Subject) -> String {
    let mut out: String = subject.facts.iter().map(|(label, text)| fact(label, text)).collect();
    out.push('\n');
    out += &wrap(&sentence(bisection, subject), WIDTH);
    if let BisectionFinding::Found(found) = bisection.finding() {
        for culprits in &found {
            for level in culprits.positions.clone().filter_map(|position| subject.levels.get(position)) {
                out.extend(level.details.iter().map(|line| format!("  {line}\n")));
            }
        }
    }
    if let Some(posterior) = bisection.posterior() {
        out += &format!("\n{}\n", chart(&posterior.steps));
        out += &ends_of_chart(subject);
        out += &candidates(bisection, subject).render(Format::Table);
    }
    out += &format!("\n{}", wrap(&measured(bisection, subject), WIDTH));
    out += &unavailable(bisection, subject);
    out += &format!("\nTo repeat it:\n{}", command(&subject.command, WIDTH));
    out
}

/// What was found, in a sentence or two.
pub fn sentence(bisection: &Bisection, subject: &Subject) -> String {
    let figure = figure_name(bisection.figure);
    let [first, last] = [subject.levels.first(), subject.levels.last()]
        .map(|level| level.map_or("", |level| level.short.as_str()));
    let ends = bisection.ends.ratio().map(|ratio| change(ratio - 1.0)).unwrap_or_default();
    let between = bisection.ends.interval().map(|interval| format!(" ({})", in_words(interval, "99%")));
    let ends = format!("{ends}{}", between.unwrap_or_default());
    match bisection.finding() {
        _ if bisection.has_failed() => {
            format!("Not decided: {last} against {first}, as one of them can't be measured any more.")
        }
        BisectionFinding::EndsOpen => format!(
            "Not decided: {last} against {first}, {figure} {ends} after {}. More time decides it.",
            counted(bisection.ends.sessions(), "session")
        ),
        BisectionFinding::NothingToFind => format!(
            "Nothing to find: {last} is equivalent to {first}, {figure} {ends} after {}.",
            counted(bisection.ends.sessions(), "session")
        ),
        BisectionFinding::Searching => format!(
            "Not known yet: {figure} changed by {ends} from {first} to {last}. More time decides where.",
        ),
        BisectionFinding::NoVerdict(gate) => {
            format!("{last} against {first}: {}.", refusal(gate).in_words())
        }
        BisectionFinding::Found(mut found) => {
            let is_better = match bisection.figure.better() {
                Better::Higher => bisection.ends.ratio() > Some(1.0),
                _ => bisection.ends.ratio() < Some(1.0),
            };
            let opposite = if is_better { format!(" {last} is better than {first}.") } else { String::new() };
            let sizes = bisection.posterior().map(|posterior| posterior.sizes.as_slice()).unwrap_or_default();
            // In the order of the levels, as the sizes are.
            found.sort_by_key(|culprits| *culprits.positions.start());
            let steps: Vec<String> = found
                .iter()
                .enumerate()
                .map(|(at, culprits)| step(culprits, sizes.get(at), figure, subject))
                .collect();
            let layout = subject.link_order.as_ref().map(link_order::sentence);
            let layout = layout.map(|layout| format!(" {layout}")).unwrap_or_default();
            steps.join(" ") + &layout + &opposite
        }
    }
}

/// The reason for which comparisons have no verdict because of a gate.
fn refusal(gate: &str) -> Refusal {
    match gate {
        "foreign-cpu" => Refusal::Foreign,
        _ => Refusal::Driver,
    }
}

fn step(culprits: &Culprits, size: Option<&StepSize>, figure: &str, subject: &Subject) -> String {
    let levels: Vec<&Level> =
        culprits.positions.clone().filter_map(|position| subject.levels.get(position)).collect();
    let size = size
        .map(|size| format!("{figure} {} ({})", change(size.ratio - 1.0), in_words(size.interval, "95%")));
    let size = size.unwrap_or_default();
    let probability = probability(culprits.probability);
    match levels.as_slice() {
        [level] => {
            let title = level.title.as_ref().map(|title| format!(", \"{title}\"")).unwrap_or_default();
            format!("The change is at {}{title} (probability {probability}): {size}.", level.short)
        }
        several => {
            let names: Vec<&str> = several.iter().map(|level| level.short.as_str()).collect();
            format!(
                "The change is at one of {}, which can't be told apart, as no level between them can be measured (probability \
                 {probability}): {size}.",
                names.join(", ")
            )
        }
    }
}

fn in_words(interval: Interval, confidence: &str) -> String {
    format!("{confidence} interval {} to {}", change(interval.low - 1.0), change(interval.high - 1.0))
}

/// A probability in per cent; one of more than 99.9% is not certain.
fn probability(share: f64) -> String {
    match share {
        share if share > 0.999 => ">99.9%".to_owned(),
        share => format!("{:.1}%", 100.0 * share),
    }
}

/// The probabilities of all positions as bars, each of as many positions as fit a column.
pub fn chart(probabilities: &[f64]) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = probabilities.len().clamp(1, CHART);
    let mut sums = vec![0.0; columns];
    for (at, share) in probabilities.iter().enumerate() {
        sums[at * columns / probabilities.len()] += share;
    }
    let bar = |share: &f64| match share {
        share if *share < 0.005 => BARS[0],
        share => BARS[((share.sqrt() * 8.0).ceil() as usize).clamp(1, 8)],
    };
    format!("[{}]", sums.iter().map(bar).collect::<String>())
}

fn ends_of_chart(subject: &Subject) -> String {
    let columns = subject.levels.len().saturating_sub(1).clamp(1, CHART) + 2;
    let name = |level: Option<&Level>| level.map(|level| level.short.clone()).unwrap_or_default();
    let (first, last) = (name(subject.levels.get(1)), name(subject.levels.last()));
    match columns.checked_sub(first.chars().count() + last.chars().count()) {
        Some(gap) if gap > 0 => format!("{first}{}{last}\n\n", " ".repeat(gap)),
        _ => format!("{first} … {last}\n\n"),
    }
}

/// The most probable levels and those measured around them.
fn candidates(bisection: &Bisection, subject: &Subject) -> Table {
    let mut table = Table::new(["#probability", "level", "#sessions", "#change", "title"]);
    let culprits = bisection.culprits();
    let mut shown: Vec<usize> = culprits
        .iter()
        .filter(|culprits| culprits.probability >= LEAST_PROBABILITY)
        .take(MAX_ROWS / 2)
        .flat_map(|culprits| {
            [culprits.positions.start() - 1, *culprits.positions.start(), *culprits.positions.end()]
        })
        .take(MAX_ROWS)
        .filter(|position| *position > 0)
        .collect();
    shown.sort_unstable();
    shown.dedup();
    for position in shown {
        let Some((level, state)) = subject.levels.get(position).zip(bisection.positions.get(position)) else {
            continue;
        };
        let sessions = state.log_ratios.len();
        let mean = state.log_ratios.iter().sum::<f64>() / sessions.max(1) as f64;
        let of_level = bisection.posterior().and_then(|posterior| posterior.steps.get(position - 1));
        table.push(vec![
            of_level.map(|share| probability(*share)).unwrap_or_default(),
            level.short.clone(),
            if state.unavailable.is_some() { GAP.to_owned() } else { sessions.to_string() },
            if sessions > 0 { change(mean.exp() - 1.0) } else { GAP.to_owned() },
            level.title.clone().unwrap_or_default().chars().take(36).collect(),
        ]);
    }
    table
}

fn measured(bisection: &Bisection, subject: &Subject) -> String {
    let baseline = subject.levels.first().map_or("", |level| &level.short);
    let sessions = counted(bisection.sessions(), "session");
    let sessions = match bisection.is_in_slices {
        true => format!("{sessions} of pairs with {baseline}"),
        false => format!("{sessions}, each of a trial of {baseline} and one of the level"),
    };
    format!(
        "Measured: {} of {} levels in {sessions}, {}.",
        bisection.measured(),
        subject.levels.len(),
        duration(subject.seconds)
    )
}

/// The levels that can't be measured, with the first line of the reason.
fn unavailable(bisection: &Bisection, subject: &Subject) -> String {
    let states = bisection.positions.iter().zip(&subject.levels);
    let lines = states.filter_map(|(state, level)| {
        let reason = state.unavailable.as_ref()?.lines().next()?;
        // The log of a build is that of a later one by now; the bundle has its end.
        let reason = reason.split_once(". The log is ").map_or(reason, |(reason, _)| reason);
        Some(wrap(&format!("Not measured: {}: {reason}", level.short), WIDTH))
    });
    lines.collect()
}
