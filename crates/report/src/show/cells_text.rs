//! Several cells as text: one line each, with a bar of its mean on a terminal.

use super::cells::{CellLine, CellsReport};
use crate::answers::answers;
use crate::chart::{Terminal, bar, ranged_bar};
use crate::own_figures;
use crate::paired::paired_tables;
use crate::scripts;
use crate::tables::{run_line, title};
use plaintext::figures::{self, counted};
use plaintext::table::{BETWEEN, Column, Format, GAP, Table};
use plaintext::wrap;

/// Columns without a terminal.
const WIDTH: usize = 100;

pub(super) fn page(cells: &CellsReport, terminal: Option<Terminal>) -> String {
    let width = terminal.map_or(WIDTH, |terminal| terminal.width.min(WIDTH));
    let mut out: String = cells.view.runs.iter().map(|run| wrap(&run_line(run), width)).collect();
    out += &answers(&cells.view.answers, width, terminal);
    out += &cells.sentences.iter().map(|sentence| wrap(sentence, width)).collect::<String>();
    for table in paired_tables(&cells.view.paired) {
        out += &format!("\n{}{}", wrap(&table.title, width), table.render(Format::Table, terminal));
        out += &table.notes.iter().map(|note| wrap(&format!("  {note}"), width)).collect::<String>();
    }
    for lines in cells.lines.chunk_by(|a, b| a.panel == b.panel) {
        let mean = match lines.iter().all(|line| line.n == lines[0].n) {
            true => format!(", mean of {}", counted(lines[0].n, "run")),
            false => ", mean of n runs".to_owned(),
        };
        out += &format!("\n{}", wrap(&(title(&cells.view.panels[lines[0].panel]) + &mean), width));
        out += &panel(cells, lines, terminal);
        let (of_lines, columns) = (&cells.view.panels[lines[0].panel], &cells.view.columns);
        for table in [scripts::table(of_lines, columns), own_figures::table(of_lines, columns)] {
            out += &table.map(|table| format!("\n{}", table.render(Format::Table))).unwrap_or_default();
        }
    }
    match cells.lines.as_slice() {
        [only] => out += &format!("\n{}", trials(only, terminal)),
        _ if out.contains('█') => {
            out += "\n  █ up to the smallest run, ▓ to the mean, ░ to the largest\n";
        }
        _ => {}
    }
    out
}

fn panel(cells: &CellsReport, lines: &[CellLine], terminal: Option<Terminal>) -> String {
    let several = cells.view.columns.len() > 1;
    // A prefix that all labels share is left out.
    const POSTGRESQL: &str = "PostgreSQL";
    let short = |label: &str| label.strip_prefix(POSTGRESQL).map(|rest| rest.trim().to_owned());
    let all_short = lines.iter().all(|line| short(&line.server).is_some_and(|rest| !rest.is_empty()));
    let mut heads = vec!["#clients"];
    heads.extend(several.then_some("server"));
    let with_n = lines.iter().any(|line| line.n != lines[0].n);
    heads.extend(with_n.then_some("#n"));
    let secondary =
        cells.view.panels[lines[0].panel].figure.secondary.map(|secondary| format!("#{secondary}"));
    heads.extend(["#mean", "#min – max"]);
    heads.extend(secondary.as_deref());
    heads.push("class");
    heads.extend(several.then_some("#change"));
    let mut table = Table::new(heads);
    for line in lines {
        let mut row = vec![line.clients.map_or_else(|| GAP.to_owned(), |clients| clients.to_string())];
        row.extend(several.then(|| short(&line.server).filter(|_| all_short).unwrap_or(line.server.clone())));
        row.extend(with_n.then(|| line.n.to_string()));
        row.push(line.mean.map_or(GAP.to_owned(), figures::tps));
        let range = line.min.zip(line.max);
        row.push(
            range.map_or(GAP.to_owned(), |(min, max)| {
                format!("{} – {}", figures::tps(min), figures::tps(max))
            }),
        );
        row.extend(secondary.as_ref().map(|_| line.secondary.map_or(GAP.to_owned(), figures::tps)));
        let class = line.class.as_deref().map(|class| class.trim_start_matches("UNSTABLE-"));
        row.push(class.unwrap_or(GAP).to_owned());
        row.extend(several.then(|| line.change.map(figures::change).unwrap_or_default()));
        table.push(row);
    }
    let verdict = |line: &CellLine| line.verdict.unwrap_or_default();
    let widest = lines.iter().map(|line| verdict(line).len()).max().unwrap_or(0);
    let used = table.width() + BETWEEN + if several { BETWEEN + widest } else { 0 };
    let top = lines.iter().filter_map(|line| line.max).fold(0.0, f64::max);
    if let Some(width) = terminal.and_then(|terminal| terminal.width_left(used)).filter(|_| top > 0.0) {
        table.columns.push(Column { name: String::new(), numeric: false });
        for (row, line) in table.rows.iter_mut().zip(lines) {
            let ends = line.min.zip(line.mean).zip(line.max);
            let bar =
                ends.map(|((min, mean), max)| ranged_bar([min, mean, max].map(|figure| figure / top), width));
            row.push(bar.unwrap_or_default());
        }
    }
    if several {
        table.columns.push(Column { name: "verdict".to_owned(), numeric: false });
        table.rows.iter_mut().zip(lines).for_each(|(row, line)| row.push(verdict(line).to_owned()));
    }
    let text = table.render(Format::Table);
    let mut shown = text.lines();
    let mut out = shown.next().map(|head| format!("{head}\n")).unwrap_or_default();
    for (text, line) in shown.zip(lines) {
        let rest = text.strip_suffix(verdict(line)).filter(|rest| rest.len() < text.len());
        out += &match (terminal, rest) {
            (Some(terminal), Some(rest)) => {
                rest.to_owned() + &terminal.painted(verdict(line), colour(verdict(line)))
            }
            _ => text.to_owned(),
        };
        out.push('\n');
    }
    out
}

fn colour(verdict: &str) -> &'static str {
    match verdict {
        _ if verdict.starts_with("REGRESSION") => "1;31",
        _ if verdict.starts_with("IMPROVEMENT") => "32",
        "UNSTABLE" | "INVALID" => "33",
        _ => "0",
    }
}

/// The trials of the only cell.
fn trials(line: &CellLine, terminal: Option<Terminal>) -> String {
    let unit = format!("#{}", line.unit);
    let mut table = Table::new(["trial", "#repeat", &unit, "validity"]);
    for trial in &line.trials {
        let reasons =
            if trial.reasons.is_empty() { String::new() } else { format!(": {}", trial.reasons.join(", ")) };
        table.push(vec![
            trial.id.clone(),
            trial.repeat.to_string(),
            trial.figure.map_or(GAP.to_owned(), figures::tps),
            format!("{}{reasons}", trial.validity),
        ]);
    }
    let top = line.trials.iter().filter_map(|trial| trial.figure).fold(0.0, f64::max);
    if let Some(width) =
        terminal.and_then(|terminal| terminal.width_left(table.width() + BETWEEN)).filter(|_| top > 0.0)
    {
        table.columns.push(Column { name: String::new(), numeric: false });
        for (row, trial) in table.rows.iter_mut().zip(&line.trials) {
            row.push(bar(trial.figure.unwrap_or(0.0) / top, width));
        }
    }
    table.render(Format::Table)
}

/// All cells as one table, in full precision, each followed by its scripts if there are several, and its workload's own figures.
pub(super) fn long(cells: &CellsReport) -> Table {
    let mut table = Table::new([
        "server",
        "workload",
        "#scale",
        "protocol",
        "transport",
        "conditions",
        "#clients",
        "#n",
        "metric",
        "unit",
        "#mean",
        "#min",
        "#max",
        "class",
        "#change",
        "#ci95_low",
        "#ci95_high",
        "#ci99_low",
        "#ci99_high",
        "#sessions",
        "verdict",
    ]);
    /// Columns before the figures: the cell's levels.
    const COMMON: usize = 7;
    fn text<T: ToString>(value: &Option<T>) -> String {
        value.as_ref().map(ToString::to_string).unwrap_or_default()
    }
    for line in &cells.lines {
        let mut row = vec![
            line.server.clone(),
            text(&line.workload),
            text(&line.scale),
            text(&line.protocol),
            text(&line.transport),
            line.conditions.join(", "),
            text(&line.clients),
            line.n.to_string(),
            line.metric.clone(),
            line.unit.to_owned(),
            text(&line.mean),
            text(&line.min),
            text(&line.max),
            text(&line.class),
            text(&line.change),
            text(&line.ci95_low),
            text(&line.ci95_high),
            text(&line.ci99_low),
            text(&line.ci99_high),
            text(&line.sessions),
            text(&line.verdict),
        ];
        table.push(row.clone());
        let scripts = line.scripts.iter().map(|of| {
            let figures = [of.mean, of.min, of.max];
            (of.n, &of.metric, "µs", figures, &of.class, of.verdict.as_ref())
        });
        let own = line.figures.iter().map(|of| {
            let figures = [of.mean, of.min, of.max];
            (of.n, &of.metric, "", figures, &of.class, of.verdict.as_ref())
        });
        for (n, metric, unit, figures, class, verdict) in scripts.chain(own) {
            row.truncate(COMMON);
            row.extend([n.to_string(), metric.clone(), unit.to_owned()]);
            row.extend(figures.iter().map(text));
            row.extend([
                text(class),
                text(&verdict.and_then(|verdict| verdict.change)),
                text(&verdict.and_then(|verdict| verdict.ci95_low)),
                text(&verdict.and_then(|verdict| verdict.ci95_high)),
                text(&verdict.and_then(|verdict| verdict.ci99_low)),
                text(&verdict.and_then(|verdict| verdict.ci99_high)),
                text(&verdict.and_then(|verdict| verdict.sessions)),
                text(&verdict.map(|verdict| verdict.verdict)),
            ]);
            table.push(row.clone());
        }
    }
    table
}
