//! The view as text: one table per panel for people, one row per trial for a spreadsheet, or the whole view as JSON.

use model::factor::Factor;
use model::machine::HOST;

use crate::answers;
use crate::background;
use crate::chart::Terminal;
use crate::json::json_pretty;
use crate::own_figures;
use crate::paired::{MAX_FEW, paired_tables};
use crate::phases;
use crate::scalability;
use crate::scripts;
use crate::spans;
use crate::text_width::{fitted, text_width, wrapped};
use analysis::overview::by_cause;
use analysis::overview::view::{
    Column, Confound, Finding, FindingGroup, Panel, Point, Row, Run, Trial, View,
};
use plaintext::figures::{self, counted};
use plaintext::table::{Format, GAP, Table};

/// Marks a cell that has a suspect trial among those used.
const SUSPECT: &str = "†";
/// Marks a cell that has a trial which is not used.
const INVALID: &str = "‡";
/// The view as text: for people as a table or Markdown; `Csv` is the long form, one row per trial with full precision;
/// `Json` is the view itself. Text for people fits a terminal.
pub fn tables(view: &View, format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Json => json_pretty(view) + "\n",
        Format::Csv => long(view).render(Format::Csv),
        Format::Table | Format::Markdown => page(view, format, terminal),
    }
}

fn page(view: &View, format: Format, terminal: Option<Terminal>) -> String {
    let heading = |text: &str| match format {
        Format::Markdown => format!("### {text}\n\n"),
        _ => format!("{text}\n"),
    };
    let mut out = String::new();
    for line in view.runs.iter().map(run_line).chain(view.environment.machine.clone()) {
        out += &match format {
            Format::Markdown => format!("{line}  \n"),
            _ => fitted(&format!("{line}\n"), terminal),
        };
    }
    if !view.answers.is_empty() {
        out.push('\n');
        out.push_str(&answers::in_format(&view.answers, format, text_width(terminal)));
    }
    for table in paired_tables(&view.paired) {
        out.push('\n');
        out.push_str(&heading(&table.title));
        out.push_str(&table.render(format, terminal));
        if !table.notes.is_empty() {
            out.push_str(&below(&table.notes, format, terminal));
        }
    }
    // Of many cells that were measured in pairs, the table of the pairs says it all.
    let is_in_pairs = view.paired.len() > MAX_FEW;
    if is_in_pairs {
        let line = "The figures of each cell are in `--format csv`, and on the page (`pgdyno report`).";
        out.push_str(&below(&[line.to_owned()], format, terminal));
    }
    for panel in view.panels.iter().filter(|_| !is_in_pairs) {
        out.push('\n');
        out.push_str(&fitted(&heading(&title(panel)), terminal));
        out += &of_panel(view, panel, format, terminal);
        if let Some(sweeps) = scalability::table(panel, &view.columns) {
            out.push('\n');
            out.push_str(&in_format(&sweeps, format, terminal));
            out.push_str(&below(&[scalability::LEGEND.to_owned()], format, terminal));
        }
        if let Some(table) = scripts::table(panel, &view.columns) {
            out.push('\n');
            out.push_str(&in_format(&table, format, terminal));
        }
        if let Some(table) = own_figures::table(panel, &view.columns) {
            out.push('\n');
            out.push_str(&in_format(&table, format, terminal));
        }
        if let Some(table) = background::table(panel, &view.columns) {
            out.push('\n');
            out.push_str(&in_format(&table, format, terminal));
        }
        if let Some(table) = phases::table(panel, &view.columns) {
            out.push('\n');
            out.push_str(&in_format(&table, format, terminal));
        }
        if let Some(one_by_one) = spans::table(panel, &view.columns) {
            out.push('\n');
            out.push_str(&in_format(&one_by_one, format, terminal));
            out.push_str(&below(&spans::LEGEND.map(str::to_owned), format, terminal));
            out.push_str(&spans::charts(panel, &view.columns, format));
        }
    }
    if !view.notes.is_empty() {
        out.push('\n');
        out.push_str(&view.notes.iter().map(|note| wrapped(note, terminal)).collect::<String>());
    }
    out.push_str(&kernels(view, format, terminal));
    out.push_str(&confounds(view, format, terminal));
    out
}

/// Kernels that the campaign's levels stand for, unless the levels name them in full.
fn kernels(view: &View, format: Format, terminal: Option<Terminal>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for column in &view.columns {
        let Some(level) = column.levels.get(Factor::Kernel.name()).filter(|level| *level != HOST) else {
            continue;
        };
        let is_level = |kernel: &String| kernel.strip_prefix("Linux ") == Some(level.as_str());
        if !column.kernels.is_empty() && !column.kernels.iter().all(is_level) {
            let line = format!("kernel {level}: {}", column.kernels.join(", "));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    if lines.is_empty() { String::new() } else { below(&lines, format, terminal) }
}

/// Differences that confound the comparison. Long values (build options) are cut.
fn confounds(view: &View, format: Format, terminal: Option<Terminal>) -> String {
    const MAX_CHARS: usize = 40;
    let confounds = &view.environment.confounds;
    if confounds.is_empty() {
        return String::new();
    }
    let title = "Differences that are not a declared factor";
    let heading = match format {
        Format::Markdown => format!("### {title}\n\n"),
        _ => format!("{title}\n"),
    };
    let mut table = Table::new(["between", "and", "what", "is", "became"]);
    for Confound { baseline, level, what, before, after, .. } in confounds {
        let shown = |value: &String| match value.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…", &value[..end]),
            None => value.clone(),
        };
        table.push(vec![baseline.clone(), level.clone(), what.clone(), shown(before), shown(after)]);
    }
    format!("\n{heading}{}", in_format(&table, format, terminal))
}

pub(crate) fn run_line(run: &Run) -> String {
    let trials = match &run.plan {
        Some(plan) if plan.trials > run.trials => format!("{} of {} trials", run.trials, plan.trials),
        _ => counted(run.trials, "trial"),
    };
    let parts = [
        Some(run.campaign.clone()),
        run.imported.as_ref().map(|files| format!("imported from {}", files.join(", "))),
        run.started.map(|started| started.strftime("%Y-%m-%d %H:%M UTC").to_string()),
        Some(trials),
        Some(format!("run {}", run.id)),
        run.seed.as_ref().map(|seed| format!("seed {seed}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

pub(crate) fn title(panel: &Panel) -> String {
    let database =
        panel.database_bytes.map(|bytes| format!(" ({})", figures::bytes(bytes))).unwrap_or_default();
    let data = panel.data().map(|data| data + &database);
    let known = [panel.workload.clone(), data, panel.protocol.clone(), panel.transport.clone()];
    let mut parts: Vec<String> = known.into_iter().flatten().collect();
    parts.extend(panel.conditions.iter().cloned());
    parts.push(panel.figure.label.to_owned());
    parts.join(" · ")
}

fn has_trials(panel: &Panel, column: usize) -> bool {
    panel.rows.iter().any(|row| row.points[column].is_some())
}

/// The number of runs if it is the same everywhere; otherwise it matters and is a column.
fn common_n(panel: &Panel) -> Option<usize> {
    let mut n = panel.rows.iter().flat_map(|row| row.points.iter().flatten()).map(|point| point.n);
    let first = n.next()?;
    n.all(|n| n == first).then_some(first)
}

/// What a panel's table has.
struct Layout {
    /// Indices of the columns with trials.
    shown: Vec<usize>,
    has_ranges: bool,
}

/// A panel's figures. On a terminal that is too narrow for them, the ranges are left out, then each column has a table.
fn of_panel(view: &View, panel: &Panel, format: Format, terminal: Option<Terminal>) -> String {
    let shown: Vec<usize> = (0..view.columns.len()).filter(|column| has_trials(panel, *column)).collect();
    let mut layout = Layout { shown, has_ranges: true };
    let width = terminal.filter(|_| format == Format::Table).map_or(usize::MAX, |terminal| terminal.width);
    let mut all = table(view, panel, &layout);
    if all.width() > width {
        layout.has_ranges = false;
        all = table(view, panel, &layout);
    }
    let tables = if all.width() <= width { vec![all] } else { by_column(view, panel, &layout) };
    let tables: Vec<String> = tables.iter().map(|table| in_format(table, format, terminal)).collect();
    tables.join("\n") + &legend(view, panel, &layout, format, terminal)
}

/// A table for each column but the first, next to that one.
fn by_column(view: &View, panel: &Panel, layout: &Layout) -> Vec<Table> {
    let [first, others @ ..] = layout.shown.as_slice() else { return Vec::new() };
    let pair = |other: &usize| {
        let layout = Layout { shown: vec![*first, *other], has_ranges: layout.has_ranges };
        table(view, panel, &layout)
    };
    others.iter().map(pair).collect()
}

/// A table in a format; one that is too wide for a terminal has columns below its rows.
fn in_format(table: &Table, format: Format, terminal: Option<Terminal>) -> String {
    match terminal {
        Some(terminal) if format == Format::Table => table.fitted(terminal.width),
        _ => table.render(format),
    }
}

fn table(view: &View, panel: &Panel, layout: &Layout) -> Table {
    let with_n = common_n(panel).is_none();
    let has_ranges = layout.has_ranges;
    let mut heads = vec!["#clients".to_owned()];
    for &column in &layout.shown {
        heads.push(format!("#{}", view.columns[column].label));
        heads.extend(has_ranges.then(|| "#min – max".to_owned()));
        heads.extend(panel.figure.secondary.map(|secondary| format!("#{secondary}")));
        heads.extend(with_n.then(|| "#n".to_owned()));
        if column > 0 {
            heads.extend(["#Δ".to_owned(), "verdict".to_owned()]);
        }
    }
    let mut table = Table::new(heads);
    for row in &panel.rows {
        let mut fields = vec![row.clients.map_or_else(|| GAP.to_owned(), |clients| clients.to_string())];
        for &column in &layout.shown {
            let point = row.points[column].as_ref();
            fields.push(mean(point, room_for_marks(panel, column)));
            fields.extend(has_ranges.then(|| range(point)));
            let secondary = || point.and_then(|point| point.secondary).map_or(GAP.to_owned(), figures::tps);
            fields.extend(panel.figure.secondary.map(|_| secondary()));
            fields.extend(with_n.then(|| point.map_or(GAP.to_owned(), |point| point.n.to_string())));
            if column > 0 {
                let verdict = point.and_then(|point| point.verdict.as_ref());
                let change = verdict.and_then(|verdict| verdict.change);
                fields.push(change.map_or(GAP.to_owned(), figures::change));
                fields.push(verdict.map_or(GAP, |verdict| verdict.verdict).to_owned());
            }
        }
        table.push(fields);
    }
    table
}

/// A mean, padded for the marks of its column, so that digits are aligned.
fn mean(point: Option<&Point>, room: usize) -> String {
    let figure = point.and_then(|point| point.mean).map_or(GAP.to_owned(), figures::tps);
    let marks = point.map(marks).unwrap_or_default().concat();
    format!("{figure}{marks:<room$}")
}

fn room_for_marks(panel: &Panel, column: usize) -> usize {
    let points = panel.rows.iter().filter_map(|row| row.points[column].as_ref());
    points.map(|point| marks(point).len()).max().unwrap_or(0)
}

fn range(point: Option<&Point>) -> String {
    match point.and_then(|point| point.min.zip(point.max)) {
        Some((min, max)) => format!("{} – {}", figures::tps(min), figures::tps(max)),
        None => GAP.to_owned(),
    }
}

fn marks(point: &Point) -> Vec<&'static str> {
    let has = |validity: &str| point.runs.iter().any(|trial| trial.validity == validity);
    let marks = [(has("suspect"), SUSPECT), (has("invalid"), INVALID)];
    marks.into_iter().filter_map(|(has, mark)| has.then_some(mark)).collect()
}

/// Legend of the columns and marks: what made trials suspect or invalid, by cause.
fn legend(view: &View, panel: &Panel, layout: &Layout, format: Format, terminal: Option<Terminal>) -> String {
    let n = common_n(panel).map(|n| format!(" of {}", counted(n, "run"))).unwrap_or(" of n runs".to_owned());
    let range = if layout.has_ranges { " and range" } else { "" };
    let mut lines = vec![format!("geometric mean{range}{n}; {} is better", panel.figure.better)];
    if let [0, _, ..] = layout.shown[..] {
        lines[0] += &format!("; Δ: its change against {}", view.columns[0].label);
    }
    for (validity, mark, what) in
        [("suspect", SUSPECT, "suspect, used"), ("invalid", INVALID, "invalid, not used")]
    {
        let trials = || panel.trials().filter(|(.., trial)| trial.validity == validity);
        let counts = |finding: &Finding| finding.validity != "valid";
        let findings = trials().flat_map(|(.., trial)| trial.findings());
        for FindingGroup { gate, evidence, trials: ids, .. } in
            by_cause(findings.filter(|(_, finding)| counts(finding)))
        {
            let only = trials().find(|(.., trial)| *ids == [trial.id.as_str()]);
            let place = match only {
                Some((row, column, trial)) => place(row, &view.columns[column], trial),
                None => counted(ids.len(), "trial"),
            };
            lines.push(format!("{mark} {what}: {place}: {gate}: {evidence}"));
        }
        let has_none = |trial: &Trial| !trial.findings.iter().any(counts);
        for (row, column, trial) in trials().filter(|(.., trial)| has_none(trial)) {
            let place = place(row, &view.columns[column], trial);
            lines.push(format!("{mark} {what}: {place}: no reason recorded"));
        }
    }
    for row in &panel.rows {
        for (column, point) in view.columns.iter().zip(&row.points) {
            let verdict = point.as_ref().and_then(|point| point.verdict.as_ref());
            for caution in verdict.iter().flat_map(|verdict| &verdict.cautions) {
                lines.push(format!("{}: {caution}", location(row, column)));
            }
            if let Some(apart) = point.as_ref().and_then(|point| point.first_run_apart) {
                lines.push(format!(
                    "the first run differs from the others, as after a cold start: {} ({})",
                    location(row, column),
                    figures::change(apart)
                ));
            }
        }
    }
    below(&lines, format, terminal)
}

/// `8 clients, PostgreSQL 18.1`.
fn location(row: &Row, column: &Column) -> String {
    let clients = row.clients.map(|clients| counted(clients as usize, "client") + ", ");
    format!("{}{}", clients.unwrap_or_default(), column.label)
}

/// `8 clients, PostgreSQL 18.1, repeat 2`.
fn place(row: &Row, column: &Column, trial: &Trial) -> String {
    format!("{}, repeat {}", location(row, column), trial.repeat)
}

/// Lines that explain the table above them.
fn below(lines: &[String], format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Markdown => format!("\n{}\n", lines.join("  \n")),
        _ => lines.iter().map(|line| fitted(&format!("  {line}\n"), terminal)).collect(),
    }
}

/// Findings other than valid ones, as the reasons of a trial's validity.
fn reasons(trial: &Trial) -> String {
    let findings: Vec<String> = trial
        .findings
        .iter()
        .filter(|finding| finding.validity != "valid")
        .map(|finding| format!("{}: {}", finding.gate, finding.evidence))
        .collect();
    if findings.is_empty() { "no reason recorded".to_owned() } else { findings.join("; ") }
}

fn long(view: &View) -> Table {
    let mut table = Table::new([
        "campaign",
        "run",
        "trial",
        "position",
        "started",
        "server",
        "version",
        "settings",
        "workload",
        "scale",
        "protocol",
        "transport",
        "clients",
        "repeat",
        "attempt",
        "validity",
        "reasons",
        "tps",
        "instructions_per_transaction",
        "transactions",
        "failed",
        "latency_mean_us",
        "latency_p50_us",
        "latency_p95_us",
        "latency_p99_us",
        "commit_surplus",
    ]);
    let campaign = |run: &str| view.runs.iter().find(|known| known.id == run).map(|run| run.campaign.clone());
    for panel in &view.panels {
        for (row, at, trial) in panel.trials() {
            let column = &view.columns[at];
            let latency = trial.latency.as_ref();
            table.push(vec![
                campaign(&trial.run).unwrap_or_default(),
                trial.run.clone(),
                trial.id.clone(),
                trial.position.to_string(),
                or_empty(trial.started),
                or_empty(column.server.clone()),
                column.versions.join(" "),
                or_empty(column.settings.clone()),
                or_empty(panel.workload.clone()),
                or_empty(panel.scale),
                or_empty(panel.protocol.clone()),
                or_empty(panel.transport.clone()),
                or_empty(row.clients),
                trial.repeat.to_string(),
                trial.attempt.to_string(),
                trial.validity.to_owned(),
                if trial.validity == "valid" { String::new() } else { reasons(trial) },
                or_empty(trial.tps),
                or_empty(trial.instructions_per_transaction),
                or_empty(trial.transactions),
                or_empty(trial.failed),
                or_empty(latency.and_then(|latency| latency.mean_us)),
                or_empty(latency.and_then(|latency| latency.p50_us)),
                or_empty(latency.and_then(|latency| latency.p95_us)),
                or_empty(latency.and_then(|latency| latency.p99_us)),
                or_empty(trial.commit_surplus),
            ]);
        }
    }
    table
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
