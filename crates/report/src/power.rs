//! Answers on power as text.

use analysis::power::{Answer, EffectAnswer, RUNS, SEQUENTIAL_RUNS};
use plaintext::figures::counted;
use plaintext::table::{Format, GAP, Table};

use crate::chart::Terminal;
use crate::text_width::{fitted, wrapped};

/// The answer as text: for people as tables or Markdown; `Csv` is the long form, one row per noise and effect. JSON is
/// the answer itself. Tables fit a terminal.
pub fn text(answer: &Answer, format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Csv => long(answer).render(Format::Csv),
        format => page(answer, format, terminal),
    }
}

fn page(answer: &Answer, format: Format, terminal: Option<Terminal>) -> String {
    let markdown = format == Format::Markdown;
    let mut out = String::new();
    if let Some(left_out) = left_out(answer) {
        out += &wrapped(&left_out, terminal);
    }
    let mut part = |title: &str, table: Table, below: &[String]| {
        let heading = if markdown { format!("### {title}\n\n") } else { format!("{title}\n") };
        let below: String = match (markdown, below.is_empty()) {
            (_, true) => String::new(),
            (true, _) => format!("\n{}\n", below.join("  \n")),
            (false, _) => below.iter().map(|line| fitted(&format!("  {line}\n"), terminal)).collect(),
        };
        let gap = if out.is_empty() { "" } else { "\n" };
        let table = match terminal {
            Some(terminal) if !markdown => table.fitted(terminal.width),
            _ => table.render(format),
        };
        out += &format!("{gap}{heading}{table}{below}");
    };
    if !answer.cells.is_empty() {
        part(&format!("Noise: {}", answer.source), cells_table(answer), &unstable(answer));
    }
    if answer.has_figures() {
        let found = format!(
            "{} of changes are found, with {} false alarms",
            percent(answer.power),
            percent(answer.alpha)
        );
        let of_cells = match answer.left_out().len() {
            0 => String::new(),
            n => format!(", in the {} that are not left out", counted(answer.cells.len() - n, "cell")),
        };
        part(&format!("Runs a side that find a change{of_cells}"), runs_table(answer), &[found]);
        let sequential = format!(
            "{} to {} runs a side, until they show the change: runs on average, where these are enough",
            SEQUENTIAL_RUNS.start(),
            SEQUENTIAL_RUNS.end()
        );
        part("Runs a side, as many as needed", sequential_table(answer), &[sequential]);
        part("The smallest change that is found", smallest_table(answer), &[]);
    }
    out
}

/// What the figures below leave out.
fn left_out(answer: &Answer) -> Option<String> {
    let left_out = answer.left_out();
    let first = left_out.first()?;
    Some(format!(
        "{} of {} left out of the runs and changes below, as no number of runs helps: {}, {}{}",
        left_out.len(),
        counted(answer.cells.len(), "cell"),
        first.cell,
        first.unstable.as_deref().unwrap_or_default(),
        if left_out.len() > 1 { ", is the worst" } else { "" }
    ))
}

fn unstable(answer: &Answer) -> Vec<String> {
    let lines = answer.cells.iter().filter_map(|cell| {
        Some(format!("no number of runs helps: {}: {}", cell.cell, cell.unstable.as_ref()?))
    });
    lines.collect()
}

fn cells_table(answer: &Answer) -> Table {
    let mut table = Table::new(["cell", "metric", "#runs", "#noise", "class"]);
    for cell in &answer.cells {
        table.push(vec![
            cell.cell.clone(),
            cell.metric.clone(),
            cell.runs.to_string(),
            percent(cell.noise),
            cell.class.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// A row for each noise, with the text of `of` for each effect.
fn by_effect(answer: &Answer, of: impl Fn(&EffectAnswer) -> String) -> Table {
    let effects = answer.noises.iter().take(1).flat_map(|noise| &noise.effects);
    let heads = effects.map(|effect| format!("#{}", percent(effect.effect)));
    let mut table = Table::new(["".to_owned(), "#noise".to_owned()].into_iter().chain(heads));
    for noise in &answer.noises {
        let mut row = vec![noise.of.clone(), percent(noise.noise)];
        row.extend(noise.effects.iter().map(&of));
        table.push(row);
    }
    table
}

fn runs_table(answer: &Answer) -> Table {
    by_effect(answer, |effect| effect.runs.map_or_else(|| GAP.to_owned(), |runs| runs.to_string()))
}

fn sequential_table(answer: &Answer) -> Table {
    by_effect(answer, |effect| {
        effect.sequential_runs.map_or_else(|| GAP.to_owned(), |runs| format!("{runs:.1}"))
    })
}

fn smallest_table(answer: &Answer) -> Table {
    let heads = RUNS.map(|runs| format!("#{runs} runs"));
    let ends = ["".to_owned(), "#noise".to_owned()];
    let mut table =
        Table::new(ends.into_iter().chain(heads).chain([format!("#up to {}", SEQUENTIAL_RUNS.end())]));
    for noise in &answer.noises {
        let found = noise.detectable.iter().map(|found| found.effect).chain([noise.sequential_find]);
        let found = found.map(|effect| effect.map_or_else(|| GAP.to_owned(), percent));
        table.push([noise.of.clone(), percent(noise.noise)].into_iter().chain(found).collect());
    }
    table
}

fn long(answer: &Answer) -> Table {
    let mut table =
        Table::new(["of", "noise", "class", "alpha", "power", "effect", "runs", "sequential_runs"]);
    let noises = answer.noises.iter().map(|noise| (&noise.of, noise.noise, None, Some(&noise.effects)));
    let cells =
        answer.cells.iter().map(|cell| (&cell.cell, cell.noise, cell.class.as_ref(), cell.effects.as_ref()));
    for (of, noise, class, effects) in noises.chain(cells) {
        let mut row = |effect: Option<&EffectAnswer>| {
            table.push(vec![
                of.clone(),
                noise.to_string(),
                class.cloned().unwrap_or_default(),
                answer.alpha.to_string(),
                answer.power.to_string(),
                or_empty(effect.map(|effect| effect.effect)),
                or_empty(effect.and_then(|effect| effect.runs)),
                or_empty(effect.and_then(|effect| effect.sequential_runs)),
            ]);
        };
        match effects {
            Some(effects) => effects.iter().for_each(|effect| row(Some(effect))),
            None => row(None),
        }
    }
    table
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// `5%`, `0.5%`, `12.3%`.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1000.0).round() / 10.0)
}
