//! Comparisons of cells that were measured in pairs: a table for each two sides.

use analysis::overview::view::{PairedComparison, PairedFigure};
use plaintext::figures::{change, counted, duration};
use plaintext::table::{BETWEEN, Column, Format, GAP, Table};
use stats::MARGIN;

use crate::chart::{Change, Ratios, Terminal};

/// Most comparisons whose order is that of their sessions, and whose cells have tables of their own. Of more, readers look for
/// those that changed.
pub(crate) const MAX_FEW: usize = 10;

/// Fewest columns of a useful chart of changes.
const MIN_CHART_WIDTH: usize = 21;

/// A title with the table below it.
pub(crate) struct PairedTable {
    /// Both sides, and the levels that all cells of the table have.
    pub(crate) title: String,
    table: Table,
    changes: Vec<Option<Change>>,
    margin: f64,
    /// Notes on the sessions.
    pub(crate) notes: Vec<String>,
}

/// The tables of some comparisons, one for each two sides.
pub(crate) fn paired_tables(comparisons: &[PairedComparison]) -> Vec<PairedTable> {
    let mut sides: Vec<[&str; 2]> = Vec::new();
    for comparison in comparisons {
        let of = sides_of(comparison);
        if !sides.contains(&of) {
            sides.push(of);
        }
    }
    let of_sides = |sides| comparisons.iter().filter(|comparison| sides_of(comparison) == sides).collect();
    sides.into_iter().map(|sides| PairedTable::new(sides, by_importance(of_sides(sides)))).collect()
}

/// Many comparisons in the order in which a reader looks for them: those that changed, the largest change first, then those that
/// are open, then the others.
fn by_importance(mut comparisons: Vec<&PairedComparison>) -> Vec<&PairedComparison> {
    if comparisons.len() > MAX_FEW {
        let rank = |comparison: &PairedComparison| {
            let figure = comparison.figures.first();
            let is_equivalent = figure.is_some_and(|figure| figure.verdict == "EQUIVALENT");
            match figure.and_then(change_found) {
                Some(change) => (0, -change),
                None => (1 + u8::from(is_equivalent), 0.0),
            }
        };
        comparisons.sort_by(|a, b| {
            let ((a, a_change), (b, b_change)) = (rank(a), rank(b));
            a.cmp(&b).then(a_change.total_cmp(&b_change))
        });
    }
    comparisons
}

/// The size of a change, if the verdict on a figure is one.
fn change_found(figure: &PairedFigure) -> Option<f64> {
    let is_change = ["REGRESSION", "IMPROVEMENT"].iter().any(|verdict| figure.verdict.starts_with(verdict));
    figure.change.filter(|_| is_change).map(|change| change.ln_1p().abs())
}

fn sides_of(comparison: &PairedComparison) -> [&str; 2] {
    [&comparison.baseline, &comparison.variant]
}

impl PairedTable {
    fn new([baseline, variant]: [&str; 2], comparisons: Vec<&PairedComparison>) -> Self {
        let is_common = |level: &&String| {
            comparisons.len() == 1 || comparisons.iter().all(|comparison| comparison.cell.contains(level))
        };
        let common: Vec<&str> = comparisons
            .iter()
            .take(1)
            .flat_map(|first| &first.cell)
            .filter(is_common)
            .map(String::as_str)
            .collect();
        let figures = || comparisons.iter().flat_map(|comparison| &comparison.figures);
        let is_open = figures().any(|figure| figure.sessions_left != Some(0));
        let with_cell = comparisons.len() > 1;
        let mut heads: Vec<&str> = with_cell.then_some("cell").into_iter().collect();
        heads.extend(["by", "#sessions", "#change", "#99% CI"]);
        heads.extend(is_open.then_some("#left"));
        heads.push("verdict");
        let mut table = Table::new(heads);
        for comparison in &comparisons {
            let own: Vec<&str> =
                comparison.cell.iter().filter(|level| !is_common(level)).map(String::as_str).collect();
            for (at, figure) in comparison.figures.iter().enumerate() {
                let cell = if at == 0 { own.join(" · ") } else { String::new() };
                let mut row: Vec<String> = with_cell.then_some(cell).into_iter().collect();
                row.extend([
                    figure.metric.clone(),
                    figure.sessions.len().to_string(),
                    figure.change.map_or(GAP.to_owned(), change),
                    interval(figure).unwrap_or_else(|| GAP.to_owned()),
                ]);
                row.extend(is_open.then(|| left(figure)));
                row.push(figure.verdict.to_owned());
                table.push(row);
            }
        }
        let mut title = vec![format!("{variant} against {baseline}, in pairs")];
        title.extend(common.into_iter().map(str::to_owned));
        let invalid: usize = comparisons.iter().map(|comparison| comparison.invalid).sum();
        let disagreement = |of: &&&PairedComparison| of.disagreement.is_some();
        let disagreements = comparisons.iter().filter(disagreement).map(|of| {
            let at = if with_cell { format!("{}: ", of.cell.join(" · ")) } else { String::new() };
            format!("{at}{}", of.disagreement.clone().unwrap_or_default())
        });
        Self {
            title: title.join(" · "),
            notes: disagreements.chain(together(&comparisons)).chain(notes(&comparisons, invalid)).collect(),
            changes: figures().map(change_of).collect(),
            margin: figures().filter_map(|figure| figure.margin).reduce(f64::max).unwrap_or(MARGIN),
            table,
        }
    }

    /// The table; on a terminal with a chart of the changes if there is room.
    pub(crate) fn render(&self, format: Format, terminal: Option<Terminal>) -> String {
        let mut table = self.table.clone();
        let left = terminal.and_then(|terminal| terminal.width_left(table.width() + BETWEEN));
        if let Some(width) = left.filter(|width| *width >= MIN_CHART_WIDTH) {
            let known: Vec<Change> = self.changes.iter().flatten().copied().collect();
            let scale = Ratios::new(&known, self.margin, width);
            table.columns.push(Column { name: scale.head(), numeric: false });
            for (row, change) in table.rows.iter_mut().zip(&self.changes) {
                row.push(change.map(|change| scale.row(change)).unwrap_or_default());
            }
        }
        table.render(format)
    }
}

/// What many comparisons have in common: their error rate.
fn together(comparisons: &[&PairedComparison]) -> Option<String> {
    let together = comparisons.iter().map(|comparison| comparison.comparisons).max()?;
    (comparisons.len() > MAX_FEW).then(|| {
        format!("that any of the {together} figures that decide is called changed by mistake has a probability of at most 1%")
    })
}

fn notes(comparisons: &[&PairedComparison], invalid: usize) -> impl Iterator<Item = String> {
    let paused = paused_in_words(comparisons.iter().flat_map(|of| of.paused_cpu));
    let invalid =
        (invalid > 0).then(|| format!("{} not used: a side is invalid", counted(invalid, "session")));
    invalid.into_iter().chain(paused)
}

/// What paused servers used of the CPU, which disturbs the side that has the load.
pub(crate) fn paused_in_words(shares: impl Iterator<Item = Option<f64>>) -> Option<String> {
    let most = shares.flatten().reduce(f64::max)?;
    Some(format!("paused servers used up to {:.1}% of the CPU time of their own load", most * 100.0))
}

/// The 99% interval of a figure's change; none while it is unbounded.
pub(crate) fn interval(figure: &PairedFigure) -> Option<String> {
    Some(format!("{} to {}", change(figure.ci99_low?), change(figure.ci99_high?)))
}

/// The sessions that a decision takes, with their time.
fn left(figure: &PairedFigure) -> String {
    match (figure.sessions_left, figure.seconds_left) {
        (Some(0), _) => String::new(),
        (Some(left), Some(seconds)) => format!("{left} ({})", duration(seconds)),
        (Some(left), None) => left.to_string(),
        (None, _) => GAP.to_owned(),
    }
}

fn change_of(figure: &PairedFigure) -> Option<Change> {
    let interval = figure.ci99_low.zip(figure.ci99_high).map(|(low, high)| (1.0 + low, 1.0 + high));
    Some(Change { ratio: 1.0 + figure.change?, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(cell: &str, verdict: &'static str, change: f64) -> PairedComparison {
        let figure = PairedFigure {
            metric: "tps".to_owned(),
            label: "transactions per second".to_owned(),
            decides: true,
            better: "higher",
            verdict,
            change: Some(change),
            ci99_low: Some(change - 0.01),
            ci99_high: Some(change + 0.01),
            margin: Some(1.02),
            sessions: Vec::new(),
            sessions_left: Some(0),
            seconds_left: None,
        };
        PairedComparison {
            baseline: "17".to_owned(),
            variant: "18".to_owned(),
            cell: vec![cell.to_owned(), "clients 2".to_owned()],
            sentence: String::new(),
            disagreement: None,
            figures: vec![figure],
            invalid: 0,
            session_seconds: None,
            paused_cpu: [None; 2],
            comparisons: 24,
        }
    }

    #[test]
    fn of_many_comparisons_those_that_changed_are_first_and_their_error_rate_is_named() {
        let mut all: Vec<PairedComparison> =
            (0..8).map(|nth| comparison(&format!("same-{nth}"), "EQUIVALENT", 0.001)).collect();
        all.push(comparison("open", "INCONCLUSIVE", -0.01));
        all.push(comparison("slower", "REGRESSION", -0.03));
        let few = paired_tables(&all).remove(0);
        let cells =
            |table: &PairedTable| table.table.rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
        assert_eq!(cells(&few)[8..], ["open", "slower"], "in the order of their sessions");
        assert_eq!(few.notes, [""; 0]);
        all.push(comparison("faster", "IMPROVEMENT", 0.2));
        all.push(comparison("worst", "REGRESSION*", -0.5));
        let many = paired_tables(&all).remove(0);
        assert_eq!(cells(&many)[..5], ["worst", "faster", "slower", "open", "same-0"]);
        assert!(
            many.notes[0].starts_with("that any of the 24 figures that decide is called changed"),
            "{:?}",
            many.notes
        );
    }
}
