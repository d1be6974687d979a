//! The result of `pgdyno ab` as plain text for a mailing list or a pull request: lines of at most 78 columns.

use analysis::overview::view::{PairedComparison, PairedFigure, View};
use model::units::Span;
use plaintext::figures::{change, counted, duration};
use plaintext::table::{Format, GAP, Table};
use plaintext::wrap;

use crate::answers::{command, headline};
use crate::paired::interval;

/// Columns of a line, as mailing lists want it.
pub(crate) const WIDTH: usize = 78;
/// Columns of the labels.
const LABELS: usize = 12;

/// What was compared, in addition to the figures.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Lines about what was compared, each with its label: servers, settings.
    pub facts: Vec<(String, String)>,
    /// The command to repeat it.
    pub command: String,
    /// Outcomes of the gates, in sentences.
    pub gates: Vec<String>,
    /// The time that was given for the sessions; none if instructions were counted.
    pub max_time: Option<Span>,
}

/// The result of a run, with that of counted instructions if they were counted as a second opinion.
pub fn text(view: &View, counted: Option<&View>, subject: &Subject) -> String {
    let mut out = String::new();
    for (label, text) in &subject.facts {
        out += &fact(label, text);
    }
    let panel = view.panels.first();
    let cell = view.paired.first().map(|comparison| comparison.cell.join(", "));
    let protocol =
        panel.and_then(|panel| panel.protocol.as_ref()).map(|protocol| format!("protocol {protocol}"));
    let load: Vec<String> = cell.or_else(|| counted_cell(view)).into_iter().chain(protocol).collect();
    out += &fact("workload", &load.join(", "));
    if let Some(machine) = &view.environment.machine {
        out += &fact("machine", &machine.replace(" · ", ", "));
    }
    if let Some(run) = view.runs.first() {
        let day = run.started.map(|at| format!(", {}", at.strftime("%Y-%m-%d"))).unwrap_or_default();
        out += &fact("measured by", &format!("pgdyno {}{day}", run.pgdyno_version));
    }
    for comparison in &view.paired {
        out += &paired(comparison, subject.max_time, counted.is_some());
    }
    let counted = match subject.max_time {
        None => Some(view),
        Some(_) => counted,
    };
    if subject.max_time.is_some() && view.paired.is_empty() {
        out += "\nNo session is usable.\n";
    }
    out += &counted.map(by_counting).unwrap_or_default();
    if !subject.gates.is_empty() {
        out.push('\n');
        out.extend(subject.gates.iter().map(|gate| wrap(gate, WIDTH)));
    }
    out += &format!("\nTo repeat it:\n{}", command(&subject.command, WIDTH));
    out
}

/// A line with its label.
pub(crate) fn fact(label: &str, text: &str) -> String {
    // A label that is too long has a line of its own.
    let (own_line, label) = match label.len() < LABELS {
        true => (String::new(), label),
        false => (format!("{label}\n"), ""),
    };
    let lines = wrap(text, WIDTH - LABELS);
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    own_line
        + &labels
            .zip(lines.lines())
            .map(|(label, line)| format!("{label:LABELS$}{line}\n"))
            .collect::<String>()
}

/// A comparison by sessions.
fn paired(comparison: &PairedComparison, max_time: Option<Span>, is_counted: bool) -> String {
    let PairedComparison { baseline, variant, figures, .. } = comparison;
    let mut out =
        format!("\n{}\n", wrap(&format!("{variant} against {baseline}: {}", comparison.sentence), WIDTH));
    let mut table = Table::new(["by", "#change", "#99% interval", "verdict"]);
    for figure in figures {
        table.push(vec![
            figure.label.clone(),
            figure.change.map_or_else(|| GAP.to_owned(), change),
            interval(figure).unwrap_or_else(|| GAP.to_owned()),
            figure.verdict.to_owned(),
        ]);
    }
    out += &table.render(Format::Table);
    out.push('\n');
    let deciding = figures.first();
    if let Some(margin) = deciding.and_then(|figure| figure.margin) {
        let together = match comparison.comparisons {
            0 | 1 => String::new(),
            several => format!(" and for {several} comparisons together"),
        };
        // A ratio of 1.05 is not exactly a share of 0.05 in binary.
        let percent = ((margin - 1.0) * 1e6).round() / 1e4;
        let text = format!(
            "Changes within ±{percent}% count as equivalent. The intervals hold with 99% confidence at any number of \
             sessions{together}."
        );
        out += &wrap(&text, WIDTH);
    }
    if let Some(disagreement) = &comparison.disagreement {
        out += &wrap(&format!("The figures disagree: {disagreement}."), WIDTH);
    }
    if comparison.invalid > 0 {
        let invalid = counted(comparison.invalid, "session");
        out += &wrap(&format!("{invalid} not used: a side is invalid."), WIDTH);
    }
    // Without a change there is no verdict for another reason, which the sentence has.
    if let (Some(deciding), Some(max_time)) = (deciding, max_time)
        && deciding.change.is_some()
        && deciding.sessions_left != Some(0)
    {
        out += &wrap(&not_decided(deciding, max_time, is_counted), WIDTH);
    }
    out
}

/// What an open comparison takes.
fn not_decided(deciding: &PairedFigure, max_time: Span, is_counted: bool) -> String {
    let more = deciding.seconds_left.map(|seconds| format!(" (about {} more)", duration(seconds)));
    let count = match is_counted {
        true => "",
        false => "; `--count` counts instructions, whose number does not depend on the machine's other load",
    };
    format!(
        "Not decidable here in {max_time} by {}. More time decides it{}: `--max-time`{count}.",
        deciding.label,
        more.unwrap_or_default()
    )
}

/// The cell of counted trials.
fn counted_cell(view: &View) -> Option<String> {
    let panel = view.panels.first()?;
    let parts = [
        panel.workload.clone(),
        panel.data(),
        panel.rows.first().and_then(|row| row.clients).map(|clients| format!("clients {clients}")),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Comparisons by counted instructions.
fn by_counting(view: &View) -> String {
    let mut out = String::new();
    for answer in view.answers.iter().filter(|answer| answer.column.is_some()) {
        let advice = answer.next.iter().map(|advice| format!(". {advice}"));
        out += &format!("\n{}", wrap(&(headline(answer) + &advice.collect::<String>()), WIDTH));
    }
    out + &wrap(
        "Instructions of client, server and kernel together were counted: path length, without caches and waiting. It is not \
         throughput.",
        WIDTH,
    )
}
