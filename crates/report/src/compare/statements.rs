//! The statements of a trace on two sides, as text, table and data.

use std::collections::BTreeMap;

use analysis::compare::Compared;
use analysis::levels::in_words;
use analysis::statements::{
    ComparedStatements, FALSE_DISCOVERY_RATE, OverTime, PlanChange, StatementRow, WaitShare, plan_lines,
};
use plaintext::figures::change;
use plaintext::table::{Format, GAP, Table};
use plaintext::wrap;
use serde::Serialize;

use crate::chart::Terminal;
use crate::text_width::{one_line, text_width};

/// Statements that a text shows; the other formats have all.
const MAX_SHOWN: usize = 30;
/// Longest text of a statement in a table.
const MAX_CHARS: usize = 100;

/// The statements of a comparison as text: those that changed, fail newly, or have another plan; in CSV all, a row each.
pub fn statements_text(compared: &Compared, format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Csv => csv(compared).render(Format::Csv),
        Format::Markdown => {
            compared.statements.iter().map(|of| markdown(compared, of)).collect::<Vec<_>>().join("\n")
        }
        Format::Table | Format::Json => {
            compared.statements.iter().map(|of| page(compared, of, terminal)).collect::<Vec<_>>().join("\n")
        }
    }
}

fn title(compared: &Compared, of: &ComparedStatements) -> String {
    let pair = &compared.pairs[of.pair];
    let (a, b) = (compared.sides[0].name, compared.sides[pair.variant].name);
    let cell = match pair.cells.as_slice() {
        [_] => String::new(),
        cells => format!(" at {}", in_words(&cells[of.cell])),
    };
    format!("{b} against {a}{cell}: statements of the trace {}", of.trace.get(..12).unwrap_or_default())
}

fn page(compared: &Compared, of: &ComparedStatements, terminal: Option<Terminal>) -> String {
    let width = text_width(terminal);
    let mut out = format!("{}\n", title(compared, of));
    let shown = shown(of);
    if !shown.is_empty() {
        out += &table(compared, of, &shown).fitted(width);
    }
    out += &of.sentences().iter().map(|line| wrap(line, width)).collect::<String>();
    for row in shown.iter().filter(|row| !row.plan_changes.is_empty()) {
        let changes: Vec<String> = row.plan_changes.iter().map(plan_change).collect();
        out += &wrap(&format!("  {} plan: {}", row.fingerprint, changes.join("; ")), width);
    }
    out += &wrap(&format!("  {}", legend(of)), width);
    out
}

fn markdown(compared: &Compared, of: &ComparedStatements) -> String {
    let mut out = format!("### {}\n\n**{}**\n", title(compared, of), of.sentences().join(" "));
    let shown = shown(of);
    if !shown.is_empty() {
        let mut table = table(compared, of, &shown);
        table.columns.push(plaintext::table::Column { name: "plan".to_owned(), numeric: false });
        for (row, of) in table.rows.iter_mut().zip(&shown) {
            row.push(of.plan_changes.iter().map(plan_change).collect::<Vec<_>>().join("; "));
        }
        out += &format!("\n{}", table.render(Format::Markdown));
    }
    out + &format!("\n{}\n", legend(of))
}

fn legend(of: &ComparedStatements) -> String {
    format!(
        "means of execution times (sending to complete response, without waiting for earlier statements) over trials, with 99% \
         intervals; share: part of the whole change; changed: by more than {:.3}%, with at most {}% false discoveries",
        ((of.margin - 1.0) * 1e8).round() / 1e6,
        FALSE_DISCOVERY_RATE * 100.0
    )
    .replace(".000%", "%")
}

/// The rows that a reader has to know of: changed, failing newly, or with another plan.
fn shown(of: &ComparedStatements) -> Vec<&StatementRow> {
    let is_shown = |row: &&StatementRow| {
        row.is_changed() || !row.new_failures().is_empty() || !row.plan_changes.is_empty()
    };
    let mut rows: Vec<&StatementRow> = of.rows.iter().filter(is_shown).collect();
    // Those with a verdict first; within both, by their part of the change.
    rows.sort_by_key(|row| !row.is_changed() && row.new_failures().is_empty());
    rows.truncate(MAX_SHOWN);
    rows
}

fn table(compared: &Compared, of: &ComparedStatements, rows: &[&StatementRow]) -> Table {
    let pair = &compared.pairs[of.pair];
    let (a, b) = (compared.sides[0].name, compared.sides[pair.variant].name);
    let mut table = Table::new([
        "fingerprint".to_owned(),
        "#calls".to_owned(),
        format!("#{a} ms"),
        format!("#{b} ms"),
        "#change".to_owned(),
        "#share".to_owned(),
        "verdict".to_owned(),
        "new failures".to_owned(),
        "statement".to_owned(),
    ]);
    for row in rows {
        let ms = |us: Option<f64>| us.map_or_else(|| GAP.to_owned(), |us| format!("{:.3}", us / 1e3));
        let failures: Vec<&str> = row.new_failures().into_iter().collect();
        table.push(vec![
            row.fingerprint.clone(),
            row.calls[1].to_string(),
            ms(row.mean_us[0]),
            ms(row.mean_us[1]),
            ratio(row),
            of.share(row).map_or_else(|| GAP.to_owned(), |share| format!("{:.1}%", share * 100.0)),
            row.verdict.to_string(),
            failures.join(", "),
            one_line(&row.text, MAX_CHARS),
        ]);
    }
    table
}

/// `+120.0% (+100.0% to +140.0%)`.
fn ratio(row: &StatementRow) -> String {
    let Some(estimate) = row.estimate else { return GAP.to_owned() };
    match estimate.confidence_interval(0.99) {
        None => change(estimate.ratio - 1.0),
        Some(interval) => format!(
            "{} ({} to {})",
            change(estimate.ratio - 1.0),
            change(interval.low - 1.0),
            change(interval.high - 1.0)
        ),
    }
}

/// `Index Scan using t_v on t → Seq Scan on t`.
fn plan_change(of: &PlanChange) -> String {
    match (&of.before, &of.after) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (None, Some(after)) => format!("added {after}"),
        (Some(before), None) => format!("without {before}"),
        (None, None) => String::new(),
    }
}

fn csv(compared: &Compared) -> Table {
    let mut table = Table::new([
        "baseline",
        "variant",
        "cell",
        "fingerprint",
        "calls_a",
        "calls_b",
        "failures_a",
        "failures_b",
        "new_failures",
        "different_a",
        "different_b",
        "rows_a",
        "rows_b",
        "n_a",
        "n_b",
        "mean_us_a",
        "mean_us_b",
        "ratio",
        "ci99_low",
        "ci99_high",
        "p",
        "p_benjamini_hochberg",
        "verdict",
        "change_us",
        "share",
        "plan_change",
        "statement",
    ]);
    for of in &compared.statements {
        let pair = &compared.pairs[of.pair];
        for row in &of.rows {
            let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
            let interval = row.estimate.and_then(|estimate| estimate.confidence_interval(0.99));
            let failures = |side: usize| row.failures[side].values().sum::<u64>().to_string();
            let changes: Vec<String> = row.plan_changes.iter().map(plan_change).collect();
            let new_failures: Vec<&str> = row.new_failures().into_iter().collect();
            table.push(vec![
                compared.sides[0].selector.clone(),
                compared.sides[pair.variant].selector.clone(),
                in_words(&pair.cells[of.cell]),
                row.fingerprint.clone(),
                row.calls[0].to_string(),
                row.calls[1].to_string(),
                failures(0),
                failures(1),
                new_failures.join(" "),
                row.different[0].to_string(),
                row.different[1].to_string(),
                row.rows[0].to_string(),
                row.rows[1].to_string(),
                row.n[0].to_string(),
                row.n[1].to_string(),
                number(row.mean_us[0]),
                number(row.mean_us[1]),
                number(row.estimate.map(|estimate| estimate.ratio)),
                number(interval.map(|interval| interval.low)),
                number(interval.map(|interval| interval.high)),
                number(row.p),
                number(row.p_benjamini_hochberg),
                row.verdict.to_string(),
                row.change_us().to_string(),
                number(of.share(row)),
                changes.join("; "),
                row.text.clone(),
            ]);
        }
    }
    table
}

/// The statements of a cell as data.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct StatementsDocument {
    variant: char,
    /// The levels of the factors that the selectors do not fix.
    cell: BTreeMap<&'static str, String>,
    /// SHA-256 of the trace.
    trace: String,
    /// Usable trials of the baseline and of the variant.
    trials: [usize; 2],
    /// Time of all executions, in microseconds a trial, of the baseline and of the variant.
    total_us: [f64; 2],
    /// The largest ratio that is not a relevant change; its inverse is the smallest.
    margin: f64,
    sentences: Vec<String>,
    /// Those with the largest part of the change first.
    statements: Vec<StatementDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StatementDocument {
    fingerprint: String,
    /// The normal form, without values.
    text: String,
    a: SideDocument,
    b: SideDocument,
    /// Ratio of the geometric means of the trials' mean execution times, variant over baseline.
    ratio: Option<f64>,
    ci99_low: Option<f64>,
    ci99_high: Option<f64>,
    /// P of the hypothesis that the ratio is within the margin.
    p: Option<f64>,
    p_benjamini_hochberg: Option<f64>,
    verdict: String,
    /// Change of the time of all executions, in microseconds a trial.
    change_us: f64,
    /// The same as a share of the change of all statements.
    share: Option<f64>,
    /// SQLSTATEs with which the variant failed and the baseline did not.
    new_failures: Vec<String>,
    plan_changes: Vec<PlanChangeDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SideDocument {
    /// Trials with a successful execution.
    n: usize,
    calls: u64,
    failures: BTreeMap<String, u64>,
    /// Executions that ended otherwise than recorded.
    different: u64,
    rows: u64,
    /// Geometric mean of the trials' mean execution times, in microseconds.
    mean_us: Option<f64>,
    /// Executions over the recorded time of the trace; null if unknown, as in bundles of before.
    over_time: Option<OverTime>,
    /// What its sessions waited for when they were sampled, the most frequent first; null if unknown.
    waits: Option<Vec<WaitShare>>,
    /// Why waits are unknown.
    without_waits: Option<String>,
    /// The plan after the load, a line for each node.
    plan: Vec<String>,
    /// Why there is no plan.
    without_plan: Option<String>,
}

/// A part of a plan that another takes the place of; null for what was added or is missing.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlanChangeDocument {
    before: Option<String>,
    after: Option<String>,
}

impl StatementsDocument {
    pub(super) fn new(compared: &Compared, of: &ComparedStatements) -> Self {
        let pair = &compared.pairs[of.pair];
        let levels = &pair.cells[of.cell];
        Self {
            variant: compared.sides[pair.variant].name,
            cell: levels.iter().map(|(factor, level)| (factor.name(), level.clone())).collect(),
            trace: of.trace.clone(),
            trials: of.trials,
            total_us: of.total_us,
            margin: of.margin,
            sentences: of.sentences(),
            statements: of.rows.iter().map(|row| statement(of, row)).collect(),
        }
    }
}

fn statement(of: &ComparedStatements, row: &StatementRow) -> StatementDocument {
    let interval = row.estimate.and_then(|estimate| estimate.confidence_interval(0.99));
    let side = |side: usize| SideDocument {
        n: row.n[side],
        calls: row.calls[side],
        failures: row.failures[side].clone(),
        different: row.different[side],
        rows: row.rows[side],
        mean_us: row.mean_us[side],
        over_time: row.over_time[side].clone(),
        waits: row.waits[side].clone(),
        without_waits: row.without_waits[side].clone(),
        plan: plan_lines(row.plans[side].as_ref()),
        without_plan: row.without_plan[side].clone(),
    };
    StatementDocument {
        fingerprint: row.fingerprint.clone(),
        text: row.text.clone(),
        a: side(0),
        b: side(1),
        ratio: row.estimate.map(|estimate| estimate.ratio),
        ci99_low: interval.map(|interval| interval.low),
        ci99_high: interval.map(|interval| interval.high),
        p: row.p,
        p_benjamini_hochberg: row.p_benjamini_hochberg,
        verdict: row.verdict.to_string(),
        change_us: row.change_us(),
        share: of.share(row),
        new_failures: row.new_failures().into_iter().map(str::to_owned).collect(),
        plan_changes: row
            .plan_changes
            .iter()
            .map(|change| PlanChangeDocument { before: change.before.clone(), after: change.after.clone() })
            .collect(),
    }
}
