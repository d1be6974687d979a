//! A comparison for people: tables for a terminal of 100 columns, Markdown for a pull request.

use stats::{Class, Sample};

use super::judge::Outcome;
use super::matching::{in_words, part, varied};
use super::sentence::{interval, sentence};
use super::{Compared, Levels, OfMetric, Pair, Row, Runs, Side, csv};
use crate::figures::{self, counted};
use crate::metric::Better;
use crate::table::{Format, Table};
use model::factor::Factor;

const SUSPECT: &str = "†";
const INVALID: &str = "‡";
const GAP: &str = "–";

/// What is shown of a comparison: `Table` as aligned text, in colours where these are wanted; `Markdown` with the cells that
/// did not change folded away; `Csv` is the long form, one row a metric and cell. JSON is [`super::Document`].
pub fn text(compared: &Compared, format: Format, colours: bool) -> String {
    match format {
        Format::Csv => csv::table(compared).render(Format::Csv),
        Format::Markdown => markdown(compared),
        Format::Table | Format::Json => page(compared, colours),
    }
}

fn page(compared: &Compared, colours: bool) -> String {
    let sides = compared.sides.iter().flat_map(|side| {
        let mut lines = side_lines(side);
        lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "   "));
        lines
    });
    let mut out: String = sides.map(|line| wrapped(&line)).collect();
    for of in &compared.metrics {
        for (at, pair) in compared.pairs.iter().enumerate() {
            let rows = Rows::of(of, at, pair);
            let (a, b) = (compared.sides[0].name, compared.sides[pair.variant].name);
            out += &format!("\n{b} against {a}: {}\n", of.metric.in_words(of.kind));
            out += &common(pair).map(|common| wrapped(&common)).unwrap_or_default();
            out += &rows.aligned(of.metric.better(), colours);
            out += &wrapped(&sentence(of, at, &compared.pairs));
        }
        out += &legend(of).iter().map(|line| wrapped(&format!("  {line}"))).collect::<String>();
    }
    for lines in beside(compared).into_iter().filter(|lines| !lines.is_empty()) {
        out.push('\n');
        out += &lines.iter().map(|line| wrapped(line)).collect::<String>();
    }
    out
}

/// A line broken before words that would go beyond 100 columns; what follows is indented.
fn wrapped(line: &str) -> String {
    const WIDTH: usize = 100;
    let indent = line.len() - line.trim_start().len();
    let mut out = " ".repeat(indent);
    let mut column = indent;
    for (at, word) in line.trim_start().split(' ').enumerate() {
        let width = word.chars().count();
        if at > 0 && column + 1 + width > WIDTH {
            out += &format!("\n{}", " ".repeat(indent + 2));
            column = indent + 2;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += width;
    }
    out + "\n"
}

fn markdown(compared: &Compared) -> String {
    let mut out = String::new();
    for of in &compared.metrics {
        for (at, pair) in compared.pairs.iter().enumerate() {
            let (a, b) = (&compared.sides[0].selector, &compared.sides[pair.variant].selector);
            out += &format!("### `{b}` against `{a}`: {}\n\n", of.metric.in_words(of.kind));
            out += &common(pair).map(|common| format!("{common}\n\n")).unwrap_or_default();
            out += &format!("**{}**\n", sentence(of, at, &compared.pairs));
            let rows = Rows::of(of, at, pair);
            let (changed, unchanged) = rows.split();
            if !changed.rows.is_empty() {
                out += &format!("\n{}", changed.table(of.metric.better(), true).render(Format::Markdown));
            }
            if !unchanged.rows.is_empty() {
                let n = counted(unchanged.rows.len(), "cell");
                let table = unchanged.table(of.metric.better(), true).render(Format::Markdown);
                out += &details(&format!("{n} without a change"), &table);
            }
            out.push('\n');
        }
        out += &format!("{}\n\n", legend(of).join("  \n"));
    }
    let [unshared, differences, gates] = beside(compared);
    if !gates.is_empty() {
        out += &format!("**{}**\n\n", gates.join("  \n"));
    }
    for lines in [unshared, differences] {
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

/// Who a side is; then what of it is not used, or used with care.
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

/// What all cells of a pair have in common; of a single cell, what it is.
fn common(pair: &Pair) -> Option<String> {
    let levels = match pair.cells.as_slice() {
        [only] => only.clone(),
        cells => part(cells.first()?, &varied(cells.iter()), false),
    };
    (!levels.is_empty()).then(|| in_words(&levels))
}

/// What the marks and words of a table stand for, of those that are in it.
fn legend(of: &OfMetric) -> Vec<String> {
    let any = |is: &dyn Fn(&Row) -> bool| of.rows.iter().any(is);
    let tested = of.rows.iter().filter(|row| row.judged.p_holm.is_some()).count();
    let has_class = |row: &Row, wanted: Class| {
        row.judged.comparison.as_ref().is_some_and(|comparison| {
            [&comparison.a, &comparison.b].into_iter().any(|cell| cell.class() == Some(wanted))
        })
    };
    let name_has = |end: &str| any(&|row| row.judged.outcome.name(of.metric.better()).ends_with(end));
    let lines = [
        (
            true,
            match tested {
                0 | 1 => "medians; change: ratio of geometric means".to_owned(),
                _ => {
                    format!("medians; change: ratio of geometric means; p: by Holm over {tested} comparisons")
                }
            },
        ),
        (
            any(&|row| has_class(row, Class::Wide) || has_class(row, Class::Modes)),
            "WIDE, MODES: unstable, no single figure stands for such runs: look at them".to_owned(),
        ),
        (name_has("*"), "*: clear in spite of an unstable side".to_owned()),
        (
            any(&|row| row.judged.outcome == Outcome::Insufficient),
            "INSUFFICIENT: it takes 3 runs on each side".to_owned(),
        ),
        (
            any(&|row| row.judged.outcome == Outcome::NoFigure),
            "NO FIGURE: no run of a side has one, or one of them is zero, which has no ratio".to_owned(),
        ),
        (
            any(&|row| row.judged.outcome == Outcome::Invalid),
            "INVALID: no trial of a side may be used (`pgdyno store show` says why)".to_owned(),
        ),
        (any(&|row| row.a.suspect + row.b.suspect > 0), format!("{SUSPECT} a suspect trial is used")),
        (any(&|row| row.a.invalid + row.b.invalid > 0), format!("{INVALID} an invalid trial is not used")),
        (
            any(&|row| row.a.without + row.b.without > 0),
            "trials without this figure are not counted in n".to_owned(),
        ),
    ];
    lines.into_iter().filter_map(|(is, line)| is.then_some(line)).collect()
}

/// The cells that are not shared, what else differs, and the gates: each a title with its lines, where there are any.
fn beside(compared: &Compared) -> [Vec<String>; 3] {
    [unshared(compared), differences(compared), compared.gates_in_words()]
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
                format!("  {name} has, {other} has not: {}", in_words(&part(levels, &factors, true)))
            };
            lines.extend(cells.iter().map(line));
        }
    }
    titled("cells that are not on both sides, and not compared", lines)
}

fn differences(compared: &Compared) -> Vec<String> {
    const LONGEST: usize = 30;
    let shown = |value: &str| match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None if value.is_empty() => "(nothing)".to_owned(),
        None => value.to_owned(),
    };
    let mut lines = Vec::new();
    for pair in &compared.pairs {
        let (a, b) = (compared.sides[0].name, compared.sides[pair.variant].name);
        lines.extend(pair.differences.iter().map(|difference| {
            let (before, after) = (shown(&difference.before), shown(&difference.after));
            format!("  {a} → {b}: {}: {before} → {after}", difference.what)
        }));
    }
    titled("what differs beside what the selectors name", lines)
}

/// At most so many lines, and how many more there are.
fn titled(title: &str, mut lines: Vec<String>) -> Vec<String> {
    const SHOWN: usize = 16;
    if lines.is_empty() {
        return lines;
    }
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    lines.extend((more > 0).then(|| format!("  and {more} more: --format json has all")));
    lines.insert(0, title.to_owned());
    lines
}

/// The rows of one pair in one metric.
struct Rows<'a> {
    rows: Vec<&'a Row>,
    pair: &'a Pair,
    /// The factors that tell the cells apart.
    varied: Vec<Factor>,
}

impl<'a> Rows<'a> {
    fn of(of: &'a OfMetric, at: usize, pair: &'a Pair) -> Self {
        let rows = of.rows.iter().filter(|row| row.pair == at).collect();
        Self { rows, pair, varied: varied(pair.cells.iter()) }
    }

    /// Those that changed, and the others.
    fn split(self) -> (Self, Self) {
        let Self { rows, pair, varied } = self;
        let (changed, others) = rows.into_iter().partition(|row| row.judged.outcome.direction().is_some());
        (Self { rows: changed, pair, varied: varied.clone() }, Self { rows: others, pair, varied })
    }

    /// The factor that goes down the table: clients, where their number varies.
    fn down(&self) -> Option<Factor> {
        let clients = self.varied.iter().find(|factor| **factor == Factor::Clients);
        clients.or(self.varied.last()).copied()
    }

    /// A row for each cell, with all factors that vary or with the one that goes down alone.
    fn table(&self, better: Better, all_factors: bool) -> Table {
        let factors: Vec<Factor> =
            if all_factors { self.varied.clone() } else { self.down().into_iter().collect() };
        let mut heads: Vec<String> = factors
            .iter()
            .map(|factor| format!("{}{}", if factor.is_number() { "#" } else { "" }, factor.name()))
            .collect();
        heads.extend(["#n", "#A", "#B", "#change", "#95% CI", "#p", "class", "verdict"].map(str::to_owned));
        let mut table = Table::new(heads);
        let marked = self.rows.iter().flat_map(|row| [&row.a, &row.b]).any(|runs| !marks(runs).is_empty());
        for row in &self.rows {
            let mut fields: Vec<String> = factors.iter().map(|factor| self.level(row, *factor)).collect();
            let Row { a, b, judged, .. } = row;
            let mut n = format!("{}/{}", a.values.len(), b.values.len());
            if marked {
                let marks: String = [SUSPECT, INVALID]
                    .into_iter()
                    .filter(|mark| marks(a).contains(mark) || marks(b).contains(mark))
                    .collect();
                // With room for both, so that digits stay below digits.
                n += &format!("{marks:<2}");
            }
            let or_gap = |text: Option<String>| text.unwrap_or_else(|| GAP.to_owned());
            fields.extend([
                n,
                or_gap(median(a)),
                or_gap(median(b)),
                or_gap(row.ratio().map(|ratio| figures::change(ratio - 1.0))),
                or_gap(interval(row)),
                or_gap(judged.p_holm.map(p)),
                classes(row),
                judged.outcome.name(better).to_owned(),
            ]);
            table.push(fields);
        }
        table
    }

    fn level(&self, row: &Row, factor: Factor) -> String {
        let levels = &self.pair.cells[row.cell];
        levels.iter().find(|(of, _)| *of == factor).map(|(_, level)| level.clone()).unwrap_or_default()
    }

    /// The table as text, with a line above each group of cells that differ in one factor only.
    fn aligned(&self, better: Better, colours: bool) -> String {
        let table = self.table(better, false).render(Format::Table);
        let mut lines = table.lines();
        let mut out = format!("{}\n", lines.next().unwrap_or_default());
        let others: Vec<Factor> =
            self.varied.iter().copied().filter(|factor| Some(*factor) != self.down()).collect();
        let mut group = Levels::new();
        for (line, row) in lines.zip(&self.rows) {
            let of_row = part(&self.pair.cells[row.cell], &others, true);
            if of_row != group {
                out += &format!("{}\n", in_words(&of_row));
                group = of_row;
            }
            let name = row.judged.outcome.name(better);
            match (colours, line.strip_suffix(name)) {
                (true, Some(rest)) => {
                    out += &format!("{rest}\x1b[{}m{name}\x1b[0m\n", colour(row.judged.outcome, better));
                }
                _ => out += &format!("{line}\n"),
            }
        }
        out
    }
}

fn marks(runs: &Runs) -> Vec<&'static str> {
    let marks = [(runs.suspect > 0, SUSPECT), (runs.invalid > 0, INVALID)];
    marks.into_iter().filter_map(|(has, mark)| has.then_some(mark)).collect()
}

fn median(runs: &Runs) -> Option<String> {
    Some(figure(Sample::of(runs.values.iter().copied())?.median()))
}

/// A figure of any size with at least three digits.
fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.1 => format!("{value:.2e}"),
        size if size < 1e7 => figures::tps(value),
        size if size < 1e10 => format!("{}M", figures::tps(value / 1e6)),
        _ => format!("{}G", figures::tps(value / 1e9)),
    }
}

fn p(p: f64) -> String {
    if p >= 0.001 || p == 0.0 { format!("{p:.3}") } else { format!("{p:.0e}") }
}

/// The classes of both sides, as one where they are the same.
fn classes(row: &Row) -> String {
    let Some(comparison) = &row.judged.comparison else { return GAP.to_owned() };
    let short = |class: Option<Class>| match class {
        None => GAP,
        Some(Class::Stable) => "STABLE",
        Some(Class::Noisy) => "NOISY",
        Some(Class::Wide) => "WIDE",
        Some(Class::Modes) => "MODES",
    };
    match (short(comparison.a.class()), short(comparison.b.class())) {
        (a, b) if a == b => a.to_owned(),
        (a, b) => format!("{a}/{b}"),
    }
}

fn colour(outcome: Outcome, better: Better) -> &'static str {
    const RED: &str = "1;31";
    const GREEN: &str = "32";
    const YELLOW: &str = "33";
    const PLAIN: &str = "0";
    match (outcome, outcome.is_worse(better)) {
        (_, Some(true)) | (Outcome::Invalid, _) => RED,
        (_, Some(false)) => GREEN,
        (Outcome::Change { .. } | Outcome::Unstable | Outcome::NoFigure, _) => YELLOW,
        _ => PLAIN,
    }
}
