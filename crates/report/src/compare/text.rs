//! A comparison as text: tables for a terminal of 100 columns, Markdown for a pull request.

use diagnose::{Undeclared, option_matters};
use model::cell::UNKNOWN;
use stats::{Class, first_run_apart};

use super::rows::{INVALID, Rows, SUSPECT};
use analysis::compare::{Compared, Differences, MetricRows, Pair, Side};
use analysis::compare::{cell_of, sentence};
use analysis::judgement::Row;
use analysis::judgement::{Outcome, Refusal};
use analysis::levels::Levels;
use analysis::levels::{in_words, part, varied};

use super::{csv, design, statements_text};
use crate::chart::Terminal;
use analysis::notes;
use plaintext::figures::{self, counted};
use plaintext::table::Format;
use plaintext::wrap;

use crate::text_width::text_width;

/// A comparison as text: `Table` is aligned text, with charts on a terminal; `Markdown` folds away the cells without a
/// verdict and those that did not change; `Csv` is the long form, one row per metric and cell. JSON is [`super::Document`].
pub fn text(compared: &Compared, format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Csv => csv::table(compared).render(Format::Csv),
        Format::Markdown => markdown(compared),
        Format::Table | Format::Json => page(compared, terminal),
    }
}

fn page(compared: &Compared, terminal: Option<Terminal>) -> String {
    let width = text_width(terminal);
    let wrapped = |line: &str| wrap(line, width);
    let sides = compared.sides.iter().flat_map(|side| {
        let mut lines = side_lines(side);
        lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "   "));
        lines
    });
    let mut out: String = sides.map(|line| wrapped(&line)).collect();
    let mut said = Vec::new();
    for of in &compared.metrics {
        for (at, pair) in compared.pairs.iter().enumerate() {
            let rows = Rows::new(compared, of, at);
            let (a, b) = (compared.sides[0].name, compared.sides[pair.variant].name);
            out += &format!("\n{b} against {a}: {}\n", of.metric.in_words(of.kind));
            out += &common(pair).map(|common| wrapped(&common)).unwrap_or_default();
            out += &rows.aligned(of.metric.better(), terminal);
            out += &wrapped(&sentence(of, at, &compared.pairs));
            let cautions = cautions(compared, of, at, &mut said);
            out += &cautions.iter().map(|line| wrapped(&format!("  {line}"))).collect::<String>();
        }
        let notes = legend(of).into_iter().chain(design::notes(of)).chain(first_runs(compared, of));
        out += &notes.map(|line| wrapped(&format!("  {line}"))).collect::<String>();
    }
    if !compared.statements.is_empty() {
        out += &format!("\n{}", statements_text(compared, Format::Table, terminal));
    }
    for lines in sections_below(compared).into_iter().filter(|lines| !lines.is_empty()) {
        out.push('\n');
        out += &lines.iter().map(|line| wrapped(line)).collect::<String>();
    }
    out
}

fn markdown(compared: &Compared) -> String {
    let mut out = String::new();
    let mut said = Vec::new();
    for of in &compared.metrics {
        for (at, pair) in compared.pairs.iter().enumerate() {
            let (a, b) = (&compared.sides[0].selector, &compared.sides[pair.variant].selector);
            out += &format!("### `{b}` against `{a}`: {}\n\n", of.metric.in_words(of.kind));
            out += &common(pair).map(|common| format!("{common}\n\n")).unwrap_or_default();
            out += &format!("**{}**\n", sentence(of, at, &compared.pairs));
            let cautions = cautions(compared, of, at, &mut said);
            if !cautions.is_empty() {
                out += &format!("\n{}\n", cautions.join("  \n"));
            }
            let rows = Rows::new(compared, of, at);
            let [changed, undecided, equivalent] = rows.split();
            if !changed.rows.is_empty() {
                out += &format!("\n{}", changed.table(of.metric.better(), true).render(Format::Markdown));
            }
            for (rows, what) in [(undecided, "without a verdict"), (equivalent, "without a change")] {
                if !rows.rows.is_empty() {
                    let n = counted(rows.rows.len(), "cell");
                    let table = rows.table(of.metric.better(), true).render(Format::Markdown);
                    out += &details(&format!("{n} {what}"), &table);
                }
            }
            out.push('\n');
        }
        let notes: Vec<String> =
            legend(of).into_iter().chain(design::notes(of)).chain(first_runs(compared, of)).collect();
        out += &format!("{}\n\n", notes.join("  \n"));
    }
    if !compared.statements.is_empty() {
        out += &format!("{}\n", statements_text(compared, Format::Markdown, None));
    }
    let [unshared, differences, of_kernel, gates] = sections_below(compared);
    if !gates.is_empty() {
        out += &format!("**{}**\n\n", gates.join("  \n"));
    }
    for lines in [unshared, differences, of_kernel] {
        if let [title, rest @ ..] = lines.as_slice() {
            let list: String = rest.iter().map(|line| format!("- {}\n", line.trim_start())).collect();
            out += details(title, &list).trim_start();
            out.push('\n');
        }
    }
    let sides: Vec<String> = compared.sides.iter().map(|side| side_lines(side).join("; ")).collect();
    out + &format!("{}\n", sides.join("  \n"))
}

fn details(summary: &str, content: &str) -> String {
    format!("\n<details>\n<summary>{summary}</summary>\n\n{content}\n</details>\n")
}

/// A side's name, selector and runs; then its invalid and suspect trials.
fn side_lines(side: &Side) -> Vec<String> {
    let from = match side.runs.as_slice() {
        [(run, campaign)] => format!("{campaign} (run {run})"),
        runs => {
            let mut campaigns: Vec<&str> = runs.iter().map(|(_, campaign)| campaign.as_str()).collect();
            campaigns.dedup();
            format!("{} of {}", counted(runs.len(), "run"), campaigns.join(", "))
        }
    };
    let mut lines =
        vec![format!("{}  {} · {} of {from}", side.name, side.selector, counted(side.trials, "trial"))];
    for (reasons, what) in [(&side.invalid, "invalid, not used"), (&side.suspect, "suspect, used")] {
        let count: usize = reasons.iter().map(|(_, count)| count).sum();
        if count > 0 {
            let reasons: Vec<String> =
                reasons.iter().map(|(gate, count)| format!("{gate} {count}")).collect();
            lines.push(format!("{count} {what}: {}", reasons.join(", ")));
        }
    }
    lines
}

/// Levels that all cells of a pair share; of a single cell, all of its levels.
fn common(pair: &Pair) -> Option<String> {
    let mut levels = match pair.cells.as_slice() {
        [only] => only.clone(),
        cells => part(cells.first()?, &varied(cells.iter()), false),
    };
    levels.retain(|(_, level)| level != UNKNOWN);
    (!levels.is_empty()).then(|| in_words(&levels))
}

/// What equivalence means for these rows.
fn within(of: &MetricRows) -> String {
    let equivalent = of.rows.iter().filter(|row| row.judged.outcome == Outcome::Equivalent);
    let margins = equivalent.filter_map(Row::margin);
    let widest = margins.fold(1.0, f64::max);
    // A ratio of 1.05 is not exactly a share of 0.05 in binary.
    format!("EQUIVALENT: the change is within ±{}%", ((widest - 1.0) * 1e6).round() / 1e4)
}

/// Legend of the marks and words that the table contains.
fn legend(of: &MetricRows) -> Vec<String> {
    let any = |is_shown: &dyn Fn(&Row) -> bool| of.rows.iter().any(is_shown);
    let tested = of.rows.iter().filter(|row| row.judged.p_holm.is_some()).count();
    let all_paired = of.rows.iter().all(|row| row.judged.paired.is_some());
    let has_class = |row: &Row, wanted: Class| {
        row.judged.comparison.as_ref().is_some_and(|comparison| {
            [&comparison.a, &comparison.b].into_iter().any(|cell| cell.class() == Some(wanted))
        })
    };
    // If all are refused, the sentence has the reason.
    let is_refused = |refusal: Refusal| {
        any(&|row| row.judged.outcome == Outcome::Refused(refusal))
            && any(&|row| row.judged.outcome != Outcome::Refused(refusal))
    };
    let is_insufficient = |paired: bool| {
        any(&|row| row.judged.outcome == Outcome::Insufficient && row.judged.paired.is_some() == paired)
    };
    let name_has = |end: &str| any(&|row| row.judged.outcome.name(of.metric.better()).ends_with(end));
    let lines = [
        (
            true,
            match tested {
                _ if all_paired => {
                    "geometric means; change: the geometric mean of the sessions' ratios".to_owned()
                }
                0 | 1 => "geometric means and their change".to_owned(),
                _ => {
                    format!("geometric means and their change; p: by Holm over {tested} comparisons")
                }
            },
        ),
        (
            any(&|row| has_class(row, Class::Wide) || has_class(row, Class::Modes)),
            "WIDE, MODES: unstable; no single figure represents such runs: inspect them".to_owned(),
        ),
        (is_refused(Refusal::Driver), format!("NO VERDICT: {}", Refusal::Driver.in_words())),
        (is_refused(Refusal::Foreign), format!("NO VERDICT: {}", Refusal::Foreign.in_words())),
        (is_refused(Refusal::Scheduled), format!("NO VERDICT: {}", Refusal::Scheduled.in_words())),
        (name_has("*"), "*: clear, although a side is unstable".to_owned()),
        (name_has("EQUIVALENT"), within(of)),
        (is_insufficient(false), "INSUFFICIENT: needs 3 runs on each side".to_owned()),
        (is_insufficient(true), "INSUFFICIENT: needs 3 sessions".to_owned()),
        (
            any(&|row| row.judged.outcome == Outcome::NoFigure),
            "NO FIGURE: no run of a side has one, or one of them is zero, which has no ratio".to_owned(),
        ),
        (
            any(&|row| row.judged.outcome == Outcome::Invalid),
            "INVALID: no trial of a side may be used (see `pgdyno store show`)".to_owned(),
        ),
        (any(&|row| row.a.suspect + row.b.suspect > 0), format!("{SUSPECT} a suspect trial is used")),
        (any(&|row| row.a.invalid + row.b.invalid > 0), format!("{INVALID} an invalid trial is not used")),
        (
            any(&|row| row.a.without + row.b.without > 0),
            "trials without this figure are not counted in n".to_owned(),
        ),
    ];
    let lines = lines.into_iter().filter_map(|(is_shown, line)| is_shown.then_some(line));
    lines.chain(notes(of.rows.iter().map(|row| row.a.acceleration)).into_iter().map(str::to_owned)).collect()
}

/// What has to be known of the trials of a pair's cells, next to their verdicts, unless it was said of another metric.
fn cautions(compared: &Compared, of: &MetricRows, at: usize, said: &mut Vec<String>) -> Vec<String> {
    let pair = &compared.pairs[at];
    let mut lines = Vec::new();
    for row in of.rows.iter().filter(|row| row.pair == at) {
        for caution in row.cautions() {
            let side = compared.sides[[0, pair.variant][caution.side]].name;
            let cell =
                if pair.cells.len() > 1 { format!(" at {}", cell_of(row, pair)) } else { String::new() };
            let line = format!("{side}{cell}: {}", caution.text);
            if !said.contains(&line) {
                said.push(line.clone());
                lines.push(line);
            }
        }
    }
    lines
}

/// Cells whose first run is unlike the others.
fn first_runs(compared: &Compared, of: &MetricRows) -> Option<String> {
    const MAX_SHOWN: usize = 6;
    let mut cells: Vec<String> = Vec::new();
    for row in of.rows.iter().filter(|row| row.judged.paired.is_none()) {
        let pair = &compared.pairs[row.pair];
        for (side, runs) in [(0, &row.a), (pair.variant, &row.b)] {
            let Some(ratio) = first_run_apart(&runs.values) else { continue };
            let change = figures::change(ratio - 1.0);
            let cell = format!("{} at {} ({change})", compared.sides[side].name, cell_of(row, pair));
            // The baseline is in the pair of each variant.
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    let more = cells.len().saturating_sub(MAX_SHOWN);
    cells.truncate(MAX_SHOWN);
    cells.extend((more > 0).then(|| format!("and {more} more")));
    (!cells.is_empty()).then(|| {
        format!(
            "the first run differs from the others, as after a cold start: {}: check their warm-up",
            cells.join("; ")
        )
    })
}

/// Sections below the tables, each a title with its lines, or empty: unshared cells, differences, kernels and gates.
fn sections_below(compared: &Compared) -> [Vec<String>; 4] {
    [unshared(compared), differences(compared), of_kernel(compared), compared.gates_in_words()]
}

fn unshared(compared: &Compared) -> Vec<String> {
    let mut lines = Vec::new();
    for pair in &compared.pairs {
        let all = pair.cells.iter().chain(&pair.only_baseline).chain(&pair.only_variant);
        let factors = varied(all);
        let sides = [(0, &pair.only_baseline, pair.variant), (pair.variant, &pair.only_variant, 0)];
        for (side, cells, other) in sides {
            let (name, other) = (compared.sides[side].name, compared.sides[other].name);
            let line = |levels: &Levels| {
                format!("  in {name}, not in {other}: {}", in_words(&part(levels, &factors, true)))
            };
            lines.extend(cells.iter().map(line));
        }
    }
    titled("cells that are not on both sides, and not compared", lines)
}

fn differences(compared: &Compared) -> Vec<String> {
    let lines = differing(compared, |differences| &differences.undeclared);
    titled("other differences between the sides", lines)
}

/// Differences caused by other kernels, and a line on their configurations.
fn of_kernel(compared: &Compared) -> Vec<String> {
    let mut lines = differing(compared, |differences| &differences.of_kernel);
    for pair in &compared.pairs {
        let options = &pair.differences.kernel_options;
        if let [first, ..] = options.as_slice() {
            const MAX_SHOWN: usize = 6;
            let relevant = options.iter().take_while(|option| option_matters(&option.what)).take(MAX_SHOWN);
            let mut changes: Vec<String> = relevant.map(change).collect();
            if changes.is_empty() {
                changes.push(change(first));
            }
            let rest = if changes.len() < options.len() { ", …: --format json has all" } else { "" };
            let (a, b) = (compared.sides[0].name, compared.sides[pair.variant].name);
            let n = counted(options.len(), "option");
            lines.push(format!("  {a} → {b}: configuration: {n} differ, {}{rest}", changes.join(", ")));
        }
    }
    titled("what differs between the kernels", lines)
}

fn change(option: &Undeclared) -> String {
    format!("{}: {} → {}", option.what, option.before, option.after)
}

fn differing(compared: &Compared, of: impl Fn(&Differences) -> &Vec<Undeclared>) -> Vec<String> {
    const MAX_CHARS: usize = 30;
    let shown = |value: &str| match value.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None if value.is_empty() => "(nothing)".to_owned(),
        None => value.to_owned(),
    };
    let mut lines = Vec::new();
    for pair in &compared.pairs {
        let (a, b) = (compared.sides[0].name, compared.sides[pair.variant].name);
        lines.extend(of(&pair.differences).iter().map(|difference| {
            let (before, after) = (shown(&difference.before), shown(&difference.after));
            format!("  {a} → {b}: {}: {before} → {after}", difference.what)
        }));
    }
    lines
}

/// A title with the first lines, and the number of the others.
fn titled(title: &str, mut lines: Vec<String>) -> Vec<String> {
    const MAX_SHOWN: usize = 16;
    if lines.is_empty() {
        return lines;
    }
    let more = lines.len().saturating_sub(MAX_SHOWN);
    lines.truncate(MAX_SHOWN);
    lines.extend((more > 0).then(|| format!("  and {more} more: --format json has all")));
    lines.insert(0, title.to_owned());
    lines
}
