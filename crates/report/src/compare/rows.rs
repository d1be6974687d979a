//! The cells of a pair as a table: each with the figures of both sides and its verdict.

use model::factor::Factor;
use model::metrics::Better;
use stats::{Class, MARGIN, Sample};

use super::design;
use crate::chart::{Change, Ratios, Terminal};
use analysis::compare::interval;
use analysis::compare::{Compared, MetricRows, Pair};
use analysis::judgement::Outcome;
use analysis::judgement::{Row, Runs};
use analysis::levels::Levels;
use analysis::levels::{in_words, part, varied};
use plaintext::figures;
use plaintext::table::{self, Column, Format, GAP, Table};

/// Marks a cell that has a suspect trial among those used.
pub(super) const SUSPECT: &str = "†";
/// Marks a cell that has an unused trial.
pub(super) const INVALID: &str = "‡";
/// Fewest columns of a useful chart of changes.
const MIN_CHART_WIDTH: usize = 21;

/// The rows of one pair in one metric.
pub(super) struct Rows<'a> {
    pub(super) rows: Vec<&'a Row>,
    /// Whether the figures are times.
    are_times: bool,
    pair: &'a Pair,
    /// Baseline and variant.
    names: [char; 2],
    /// Factors that distinguish the cells.
    varied: Vec<Factor>,
}

impl<'a> Rows<'a> {
    /// Rows of the pair at index `at`.
    pub(super) fn new(compared: &'a Compared, of: &'a MetricRows, at: usize) -> Self {
        let pair = &compared.pairs[at];
        Self {
            rows: of.rows.iter().filter(|row| row.pair == at).collect(),
            are_times: of.metric.is_time(),
            pair,
            names: [compared.sides[0].name, compared.sides[pair.variant].name],
            varied: varied(pair.cells.iter()),
        }
    }

    /// The rows that changed, those without a verdict, and the equivalent ones.
    pub(super) fn split(self) -> [Self; 3] {
        let Self { rows, are_times, pair, names, varied } = self;
        let group = |row: &&Row| match row.judged.outcome {
            Outcome::Change { .. } => 0,
            Outcome::Equivalent => 2,
            _ => 1,
        };
        [0, 1, 2].map(|wanted| Self {
            rows: rows.iter().copied().filter(|row| group(row) == wanted).collect(),
            are_times,
            pair,
            names,
            varied: varied.clone(),
        })
    }

    /// The factor that varies down the table: clients, if their number varies.
    fn down(&self) -> Option<Factor> {
        let clients = self.varied.iter().find(|factor| **factor == Factor::Clients);
        clients.or(self.varied.last()).copied()
    }

    /// A row for each cell, with all factors that vary or only with the one that varies down the table.
    pub(super) fn table(&self, better: Better, all_factors: bool) -> Table {
        let factors: Vec<Factor> =
            if all_factors { self.varied.clone() } else { self.down().into_iter().collect() };
        let mut heads: Vec<String> = factors
            .iter()
            .map(|factor| format!("{}{}", if factor.is_number() { "#" } else { "" }, factor.name()))
            .collect();
        let by_sessions = self.rows.iter().filter(|row| row.judged.paired.is_some()).count();
        let is_paired = by_sessions == self.rows.len();
        heads.push(if is_paired { "#sessions" } else { "#n" }.to_owned());
        heads.extend(self.names.map(|name| format!("#{name}")));
        let interval_head = match by_sessions {
            0 => "#95% CI",
            _ if is_paired => "#99% CI",
            _ => "#CI",
        };
        heads.extend(["#change", interval_head].map(str::to_owned));
        // Sessions have no p, and the spread of their trials does not matter.
        heads.extend((!is_paired).then_some(["#p", "class"]).into_iter().flatten().map(str::to_owned));
        heads.push("verdict".to_owned());
        let mut table = Table::new(heads);
        let marked = self.rows.iter().flat_map(|row| [&row.a, &row.b]).any(|runs| !marks(runs).is_empty());
        for row in &self.rows {
            let mut fields: Vec<String> = factors.iter().map(|factor| self.level(row, *factor)).collect();
            let Row { a, b, judged, .. } = row;
            let mut n = design::numbers(row);
            if marked {
                let marks: String = [SUSPECT, INVALID]
                    .into_iter()
                    .filter(|mark| marks(a).contains(mark) || marks(b).contains(mark))
                    .collect();
                // Padded for both marks, so that digits are aligned.
                n += &format!("{marks:<2}");
            }
            let or_gap = |text: Option<String>| text.unwrap_or_else(|| GAP.to_owned());
            let [mean_a, mean_b] = figures_of([mean(a), mean(b)], self.are_times);
            fields.extend([
                n,
                mean_a,
                mean_b,
                or_gap(row.ratio().map(|ratio| figures::change(ratio - 1.0))),
                or_gap(interval(row)),
            ]);
            if !is_paired {
                fields.extend([or_gap(judged.p_holm.map(p)), classes(row)]);
            }
            fields.push(judged.outcome.name(better).to_owned());
            table.push(fields);
        }
        table
    }

    fn level(&self, row: &Row, factor: Factor) -> String {
        let levels = &self.pair.cells[row.cell];
        levels.iter().find(|(of, _)| *of == factor).map(|(_, level)| level.clone()).unwrap_or_default()
    }

    /// The table as text, with a line above each group of cells that differ in one factor only. On a terminal a chart
    /// of the changes is next to it if there is room, else below it with the verdicts.
    pub(super) fn aligned(&self, better: Better, terminal: Option<Terminal>) -> String {
        let mut table = self.table(better, false);
        let Some(terminal) = terminal else { return self.grouped(&table, |line, _| line.to_owned()) };
        let painted = |line: &str, row: &Row| {
            let name = row.judged.outcome.name(better);
            let painted = terminal.painted(name, colour(row.judged.outcome, better));
            line.replacen(name, &painted, 1)
        };
        let is_enough = |width: &usize| *width >= MIN_CHART_WIDTH;
        if let Some(width) = terminal.width_left(table.width() + table::BETWEEN).filter(is_enough) {
            self.add_chart(&mut table, width);
            return self.grouped(&table, painted);
        }
        // The verdicts go below with the chart: the table is wide enough without them.
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
        let has_class = table.columns.last().is_some_and(|column| column.name == "class");
        let mut classes: Vec<Option<String>> = vec![None; self.rows.len()];
        if has_class && table.width() > terminal.width {
            table.columns.pop();
            classes = table.rows.iter_mut().map(Vec::pop).collect();
        }
        let out = self.grouped(&table, |line, _| line.to_owned());
        let down = self.down();
        let mut below =
            Table { columns: table.columns[..usize::from(down.is_some())].to_vec(), rows: Vec::new() };
        below.columns.push(Column { name: "verdict".to_owned(), numeric: false });
        if classes.iter().any(Option::is_some) {
            below.columns.push(Column { name: "class".to_owned(), numeric: false });
        }
        for (row, class) in self.rows.iter().zip(classes) {
            let label = down.map(|factor| self.level(row, factor)).into_iter();
            let verdict = row.judged.outcome.name(better).to_owned();
            below.push(label.chain([verdict]).chain(class).collect());
        }
        if let Some(width) = terminal.width_left(below.width() + table::BETWEEN).filter(is_enough) {
            self.add_chart(&mut below, width);
        }
        out + &self.grouped(&below, painted)
    }

    /// Adds a chart of the changes and their intervals around the margin of equivalence.
    fn add_chart(&self, table: &mut Table, width: usize) {
        let changes: Vec<Option<Change>> = self.rows.iter().map(|row| change_of(row)).collect();
        let known: Vec<Change> = changes.iter().flatten().copied().collect();
        let margins = self.rows.iter().filter_map(|row| row.margin());
        let scale = Ratios::new(&known, margins.reduce(f64::max).unwrap_or(MARGIN), width);
        table.columns.push(Column { name: scale.head(), numeric: false });
        for (row, change) in table.rows.iter_mut().zip(changes) {
            row.push(change.map(|change| scale.row(change)).unwrap_or_default());
        }
    }

    fn grouped(&self, table: &Table, shown: impl Fn(&str, &Row) -> String) -> String {
        let text = table.render(Format::Table);
        let mut lines = text.lines();
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
            out += &format!("{}\n", shown(line, row));
        }
        out
    }
}

/// The change with its interval.
fn change_of(row: &Row) -> Option<Change> {
    let interval = row.interval().map(|interval| (interval.low, interval.high));
    Some(Change { ratio: row.ratio()?, interval })
}

fn marks(runs: &Runs) -> Vec<&'static str> {
    let marks = [(runs.suspect > 0, SUSPECT), (runs.invalid > 0, INVALID)];
    marks.into_iter().filter_map(|(has, mark)| has.then_some(mark)).collect()
}

/// The geometric mean, whose change is shown; 0 if a figure is 0.
fn mean(runs: &Runs) -> Option<f64> {
    let sample = Sample::new(runs.values.iter().copied())?;
    Some(sample.geometric_mean().unwrap_or(0.0))
}

/// Two figures of one row; times have the same unit.
pub(crate) fn figures_of(values: [Option<f64>; 2], are_times: bool) -> [String; 2] {
    let shown = if are_times { figures::times(values) } else { values.map(|value| value.map(figure)) };
    shown.map(|text| text.unwrap_or_else(|| GAP.to_owned()))
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

pub(crate) fn p(p: f64) -> String {
    if p >= 0.001 || p == 0.0 { format!("{p:.3}") } else { format!("{p:.0e}") }
}

/// Classes of both sides, as one if they are equal.
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

pub(crate) fn colour(outcome: Outcome, better: Better) -> &'static str {
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
