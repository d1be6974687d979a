//! Explanations as text and JSON.

use analysis::explain::{CellExplanation, ExplanationView};
use diagnose::{Component, Difference};
use model::record::Status;
use plaintext::table::{self, Column, Format, GAP, Table};
use serde::Serialize;

use crate::chart::{self, Terminal};
use crate::text_width::fitted;

/// One explanation as text; its bars fit the width of a terminal.
pub fn text(explained: &CellExplanation, format: Format, terminal: Option<Terminal>) -> String {
    let parts = parts(explained, terminal);
    if format != Format::Table {
        return parts.render(format);
    }
    let mut out = fitted(&format!("{}\n{}\n\n", heading(explained), verdict(explained)), terminal);
    out += &parts.render(Format::Table);
    for cause in &explained.causes {
        let text = format!(
            "\n{}: {} ({} confidence)\n  {}\n  next: {}\n",
            cause.name,
            cause.sentence,
            cause.confidence.name(),
            cause.evidence.join("\n  "),
            cause.next
        );
        out += &fitted(&text, terminal);
    }
    out
}

/// The verdict with its confidence, as on the page.
fn verdict(explained: &CellExplanation) -> String {
    format!("{} (confidence: {})", explained.verdict, explained.confidence.name())
}

fn heading(explained: &CellExplanation) -> String {
    let trials = match explained.trials.as_slice() {
        [one] => format!("trial {one}"),
        several => format!("{} trials", several.len()),
    };
    let status = match explained.status {
        Status::Valid => String::new(),
        status => format!(", {}: see `pgdyno store show`", status.as_str()),
    };
    format!(
        "{} ({trials}{status})\n{:.1} transactions/s, {:.3} ms each; the server's sessions were sampled {} times",
        explained.cell,
        explained.tps,
        explained.budget.latency_us / 1e3,
        explained.budget.samples
    )
}

/// Parts with a smaller share are shown as one.
pub(crate) const MIN_SHARE: f64 = 0.005;

fn parts(explained: &CellExplanation, terminal: Option<Terminal>) -> Table {
    let mut table = Table::new(["where the time goes", "#ms", "#%", ""]);
    let mut shares = Vec::new();
    let budget = &explained.budget;
    let mut row = |name: String, us: f64| {
        let share = us / budget.latency_us;
        table.push(vec![name, format!("{:.4}", us / 1e3), format!("{:.1}", 100.0 * share), String::new()]);
        shares.push(share);
    };
    let is_below_min = |us: f64| us / budget.latency_us < MIN_SHARE;
    let (mut small_us, mut small) = (0.0, 0);
    for part in budget.parts.iter().filter(|part| part.component != Component::Unexplained) {
        match is_below_min(part.us) {
            true => {
                small_us += part.us;
                small += 1;
            }
            false => row(part.name(), part.us),
        }
    }
    if small > 0 {
        row(format!("{small} smaller parts"), small_us);
    }
    row(Component::Unexplained.name().to_owned(), budget.us(Component::Unexplained));
    row("mean latency".to_owned(), budget.latency_us);
    let room = terminal.and_then(|terminal| terminal.width_left(table.width()));
    for (row, share) in table.rows.iter_mut().zip(shares) {
        row[3] = match room {
            Some(width) => chart::bar(share, width),
            // In a file, whole characters.
            None => "█".repeat((25.0 * share.clamp(0.0, 1.0)).round() as usize),
        };
    }
    table
}

/// The difference between two explanations as text.
pub fn difference_text(
    before: &CellExplanation,
    after: &CellExplanation,
    format: Format,
    terminal: Option<Terminal>,
) -> String {
    let Some(difference) = Difference::new(&before.budgets, &after.budgets) else { return String::new() };
    let mut table = Table::new(["where the time goes", "#A ms", "#B ms", "#B − A ms", "#±", "#% of A"]);
    let mut row = |name: String, a: f64, b: f64, margin: Option<f64>| {
        table.push(vec![
            name,
            format!("{:.4}", a / 1e3),
            format!("{:.4}", b / 1e3),
            format!("{:+.4}", (b - a) / 1e3),
            margin.map_or_else(|| GAP.to_owned(), |margin| format!("{:.4}", margin / 1e3)),
            format!("{:+.1}", 100.0 * (b - a) / difference.before_us),
        ]);
    };
    for change in &difference.changes {
        row(change.name(), change.before_us, change.after_us, change.margin_us);
    }
    row("mean latency".to_owned(), difference.before_us, difference.after_us, difference.margin_us);
    if format != Format::Table {
        return table.render(format);
    }
    if let Some(width) = terminal.and_then(|terminal| terminal.width_left(table.width() + table::BETWEEN)) {
        let more: Vec<f64> =
            difference.changes.iter().map(|change| change.after_us - change.before_us).collect();
        let largest = more.iter().copied().map(f64::abs).fold(0.0, f64::max);
        table.columns.push(Column { name: String::new(), numeric: false });
        let all = more.into_iter().chain([difference.increase_us()]);
        for (row, more) in table.rows.iter_mut().zip(all) {
            row.push(chart::signed_bar(if largest > 0.0 { more / largest } else { 0.0 }, width));
        }
    }
    let text = format!(
        "A: {}\n   {}\n\nB: {}\n   {}\n\n{}\n\n",
        heading(before).replace('\n', "\n   "),
        verdict(before),
        heading(after).replace('\n', "\n   "),
        verdict(after),
        difference.verdict(),
    );
    fitted(&text, terminal) + &table.render(Format::Table)
}

/// `explain --format json`, schema 1.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    schema: u32,
    explained: Vec<ExplanationView>,
    /// Difference of the second from the first; null for a single one.
    difference: Option<DifferenceDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DifferenceDocument {
    verdict: String,
    more_us: f64,
    /// Half of its 95 % interval, by the spread between trials; null with one trial on a side.
    margin_us: Option<f64>,
    parts: Vec<ChangeDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChangeDocument {
    place: &'static str,
    of: Option<String>,
    before_us: f64,
    after_us: f64,
    margin_us: Option<f64>,
}

impl Document {
    /// Document of one explanation, or of two with their difference.
    pub fn new(first: &CellExplanation, second: Option<&CellExplanation>) -> Self {
        let difference = second.and_then(|second| {
            let difference = Difference::new(&first.budgets, &second.budgets)?;
            Some(DifferenceDocument {
                verdict: difference.verdict(),
                more_us: difference.increase_us(),
                margin_us: difference.margin_us,
                parts: difference
                    .changes
                    .iter()
                    .map(|change| ChangeDocument {
                        place: change.component.name(),
                        of: change.of.clone(),
                        before_us: change.before_us,
                        after_us: change.after_us,
                        margin_us: change.margin_us,
                    })
                    .collect(),
            })
        });
        let explained = std::iter::once(first).chain(second).map(ExplanationView::new).collect();
        Self { schema: 1, explained, difference }
    }
}
