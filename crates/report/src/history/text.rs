//! A history as text: a row of bars for each cell, then the shifts; 100 columns, or Markdown.

use std::collections::BTreeMap;

use model::acceptance::Acceptance;
use model::machine::Acceleration;
use model::metrics::Better;
use stats::{ChangePoint, MIN_VALUES};

use analysis::history::{History, HistoryAxis, Order, Series, Shift, Tested};

use super::csv;
use crate::chart::Columns;
use crate::chart::Terminal;
use crate::compare::rows::{colour, figures_of, p};
use crate::text_width::{TEXT_WIDTH, text_width, wrapped};
use analysis::levels::{in_words, part, varied};
use analysis::notes;
use plaintext::figures::{change, counted};
use plaintext::table::{Format, GAP, Table};

/// A history as text: `Table` is aligned text, which fits a terminal; `Csv` is one row per cell and step.
/// JSON is [`super::Document`].
pub fn text(history: &History, format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Csv => csv::table(history).render(Format::Csv),
        Format::Markdown => markdown(history),
        Format::Table | Format::Json => page(history, terminal),
    }
}

fn page(history: &History, terminal: Option<Terminal>) -> String {
    let wrapped = |line: &str| wrapped(line, terminal);
    let colours = terminal.is_some_and(|terminal| terminal.colours);
    let mut out: String = head(history).iter().map(|line| wrapped(line)).collect();
    out += &format!("\n{}", cells(history, text_width(terminal)).render(Format::Table));
    let tests = untested(history);
    out += &tests.iter().map(|line| wrapped(line)).collect::<String>();
    out += &format!("\n{}", wrapped(&sentence(history)));
    for (letter, shift) in letters(history).zip(&history.shifts) {
        let line = wrapped(&format!("{letter}  {}", title(history, shift)));
        let name = shift.outcome.name(history.metric.better());
        out += &match colours {
            true => line.replacen(
                name,
                &format!("\x1b[{}m{name}\x1b[0m", colour(shift.outcome, history.metric.better())),
                1,
            ),
            false => line,
        };
        let table = of_shift(history, shift, "p ").render(Format::Table);
        out += &table.lines().skip(1).map(|line| format!("     {line}\n")).collect::<String>();
        out += &acceptances(history, shift)
            .iter()
            .map(|line| wrapped(&format!("   {line}")))
            .collect::<String>();
    }
    for lines in [unmatched(history), gates_in_words(history)].iter().filter(|lines| !lines.is_empty()) {
        out.push('\n');
        out += &lines.iter().map(|line| wrapped(line)).collect::<String>();
    }
    out
}

fn markdown(history: &History) -> String {
    let head = head(history);
    let mut out = format!("### {}\n\n{}\n\n**{}**\n", head[0], head[1..].join("  \n"), sentence(history));
    for shift in &history.shifts {
        out += &format!("\n- **{}**\n", title(history, shift));
        out += &acceptances(history, shift).iter().map(|line| format!("  {line}\n")).collect::<String>();
        let table = of_shift(history, shift, "").render(Format::Markdown);
        out += &format!("\n{}", table.lines().map(|line| format!("  {line}\n")).collect::<String>());
    }
    for lines in [untested(history), unmatched(history), gates_in_words(history)] {
        if !lines.is_empty() {
            out += &format!("\n{}\n", lines.join("  \n"));
        }
    }
    let table = cells(history, TEXT_WIDTH).render(Format::Markdown);
    out + &format!(
        "\n<details>\n<summary>{}</summary>\n\n{table}\n</details>\n",
        counted(history.series.len(), "cell")
    )
}

/// The metric and steps of the history, and its trials.
fn head(history: &History) -> Vec<String> {
    let History { metric, over, steps, trials, .. } = history;
    let mut title = metric.in_words(history.kind);
    if let Some(control) = &history.control {
        title += &format!(", relative to {control}");
    }
    let ends = match steps.as_slice() {
        [first, .., last] => format!(", {} to {}", first.label, last.label),
        [only] => format!(", {}", only.label),
        [] => String::new(),
    };
    let hint = match (*over, history.order) {
        (HistoryAxis::Commit, Order::FirstSeen) => "; --repository orders commits by git",
        _ => "",
    };
    let order = history.order.in_words();
    let mut lines =
        vec![title, format!("over {over}: {}{ends}, {order}{hint}", counted(steps.len(), "step"))];
    let selector =
        if history.selector.is_empty() { String::new() } else { format!("{} · ", history.selector) };
    lines.push(format!(
        "{selector}{} in {} of {}",
        counted(trials.trials, "trial"),
        counted(trials.runs, "run"),
        trials.campaigns.join(", ")
    ));
    for (reasons, what) in [(&trials.invalid, "invalid, not used"), (&trials.suspect, "suspect, used")] {
        let count: usize = reasons.iter().map(|(_, count)| count).sum();
        let reasons: Vec<String> = reasons.iter().map(|(gate, count)| format!("{gate} {count}")).collect();
        lines.extend((count > 0).then(|| format!("{count} {what}: {}", reasons.join(", "))));
    }
    let left_out = [
        (trials.without_step, format!("without a {over}, left out")),
        (trials.scheduled, format!("at a rate, which decides {}: not used", history.metric)),
        (trials.without_control, "without a control in their run, not used".to_owned()),
    ];
    lines.extend(left_out.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
    let without = trials.without.join(", ");
    lines.extend((!without.is_empty()).then(|| format!("without {without}")));
    lines.extend(common(history));
    lines
}

/// Levels that all cells share; of a single cell, all of its levels.
fn common(history: &History) -> Option<String> {
    let levels = match history.series.as_slice() {
        [only] => only.cell.clone(),
        series => part(&series.first()?.cell, &varied(series.iter().map(|series| &series.cell)), false),
    };
    (!levels.is_empty()).then(|| in_words(&levels))
}

/// A cell by the levels that distinguish it from the others.
pub(super) fn cell(history: &History, series: &Series) -> String {
    match history.series.len() {
        1 => in_words(&series.cell),
        _ => in_words(&part(&series.cell, &varied(history.series.iter().map(|series| &series.cell)), true)),
    }
}

/// A letter for each shift: `A` to `Z`, `a` to `z`, and `*` for all others.
pub(super) fn letters(history: &History) -> impl Iterator<Item = char> {
    ('A'..='Z').chain('a'..='z').chain(std::iter::repeat('*')).take(history.shifts.len())
}

fn cells(history: &History, width: usize) -> Table {
    // Relative to a control, a time has no unit.
    let are_times = history.metric.is_time() && history.control.is_none();
    let names: Vec<String> = match history.series.len() {
        1 => vec!["all".to_owned()],
        _ => history.series.iter().map(|series| cell(history, series)).collect(),
    };
    let ends: Vec<[String; 2]> = history
        .series
        .iter()
        .map(|series| {
            let mut known = series.medians.iter().flatten();
            let first = known.next();
            let last = known.next_back().or(first);
            figures_of([first, last].map(Option::<&f64>::copied), are_times)
        })
        .collect();
    let widest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max();
    let used = widest(&mut names.iter()).unwrap_or(0).max(4)
        + ends.iter().flatten().map(|text| text.chars().count()).max().unwrap_or(0).max(5) * 2
        + 3 * 2
        + "steps".len()
        + 2;
    let mut gaps: Vec<usize> = history.shifts.iter().map(|shift| shift.event.after).collect();
    gaps.dedup();
    let columns = Columns::new(history.steps.len(), &gaps, width.saturating_sub(used).max(10));
    let mut marks: BTreeMap<usize, Vec<(usize, char)>> = BTreeMap::new();
    for (letter, shift) in letters(history).zip(&history.shifts) {
        for (series, _) in &shift.event.changes {
            marks.entry(*series).or_default().push((shift.event.after, letter));
        }
    }
    let label =
        |step: Option<&analysis::history::Step>| step.map_or("", |step| step.label.as_str()).to_owned();
    let mut table =
        Table::new(["cell".to_owned(), "#steps".to_owned(), "#first".to_owned(), "#last".to_owned(), {
            format!("{} … {}", label(history.steps.first()), label(history.steps.last()))
        }]);
    for (at, (series, (name, [first, last]))) in
        history.series.iter().zip(names.into_iter().zip(ends)).enumerate()
    {
        let known = series.medians.iter().flatten().count();
        let row = columns.row(&series.medians, marks.get(&at).map_or(&[], Vec::as_slice));
        table.push(vec![name, known.to_string(), first, last, row]);
    }
    table
}

/// What a cell has that was not searched for changes; `None` if it was.
pub(super) fn reason(tested: Tested) -> Option<String> {
    Some(match tested {
        Tested::Yes => return None,
        Tested::FewPoints => format!("fewer than {MIN_VALUES} steps: too few to find a change"),
        Tested::NoRatio => "a figure of zero or less: no ratio".to_owned(),
        Tested::Emulated => "been emulated in real time: no verdict".to_owned(),
        Tested::NoFigure => "no run with this figure".to_owned(),
        Tested::Invalid => "no trial that may be used (see `pgdyno store show`)".to_owned(),
    })
}

/// Reasons why some cells were not searched for changes.
fn untested(history: &History) -> Vec<String> {
    let all = [Tested::FewPoints, Tested::NoRatio, Tested::Emulated, Tested::NoFigure, Tested::Invalid];
    let sentences = all.into_iter().filter_map(|why| {
        let cells: Vec<String> = history
            .series
            .iter()
            .filter(|series| series.tested == why)
            .map(|series| cell(history, series))
            .collect();
        let who = match cells.len() {
            0 => return None,
            n if n == history.series.len() && n > 1 => "all cells have".to_owned(),
            n if n > 4 => format!("{n} cells have"),
            1 => format!("{} has", cells[0]),
            _ => format!("{} have", cells.join("; ")),
        };
        Some(format!("{who} {}", reason(why)?))
    });
    let points = || history.series.iter().flat_map(|series| &series.points);
    let accelerations = points().map(|runs| runs.acceleration).filter(|one| *one == Acceleration::Icount);
    sentences.chain(notes(accelerations).into_iter().map(str::to_owned)).collect()
}

/// `5 shifts in 9 cells: 1 regression, 4 improvements; 1 accepted`.
pub(super) fn sentence(history: &History) -> String {
    let better = history.metric.better();
    let tested = history.series.iter().filter(|series| series.tested == Tested::Yes).count();
    let count = |worse: Option<bool>, lower: Option<bool>| {
        let is = |shift: &&Shift| match better {
            Better::Neither => Some(shift.event.ratio < 1.0) == lower,
            _ => shift.outcome.is_worse(better) == worse,
        };
        history.shifts.iter().filter(is).count()
    };
    let words = match better {
        Better::Neither => ["lower", "higher"],
        _ => ["regression", "improvement"],
    };
    let kinds = [(count(Some(true), Some(true)), words[0]), (count(Some(false), Some(false)), words[1])];
    let kinds: Vec<String> = kinds
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| match better {
            Better::Neither => format!("{n} {word}"),
            _ => counted(n, word),
        })
        .collect();
    if kinds.is_empty() {
        return format!("no shift in {}", counted(tested, "cell"));
    }
    let accepted = history.shifts.iter().filter(|shift| is_accepted(history, shift)).count();
    let accepted = if accepted > 0 { format!("; {accepted} accepted") } else { String::new() };
    let shifts = counted(history.shifts.len(), "shift");
    format!("{shifts} in {}: {}{accepted}", counted(tested, "cell"), kinds.join(", "))
}

/// Whether all changes of a shift are accepted.
pub(super) fn is_accepted(history: &History, shift: &Shift) -> bool {
    shift.accepted(history).iter().all(Option::is_some)
}

/// `between 3.7.10 and 3.8.13: REGRESSION -10.7% in 6 of 9 cells (-12.3% to -9.1%)`.
pub(super) fn title(history: &History, shift: &Shift) -> String {
    let event = &shift.event;
    let label = |at: usize| &history.steps[at].label;
    let n = event.changes.len();
    let cells = match history.series.len() {
        1 => String::new(),
        all => format!(" in {n} of {all} cells"),
    };
    let range = match n {
        1 => String::new(),
        _ => format!(" ({} to {})", change(event.smallest - 1.0), change(event.largest - 1.0)),
    };
    let accepted = if is_accepted(history, shift) { " · accepted" } else { "" };
    format!(
        "between {} and {}: {} {}{cells}{range}{accepted}",
        label(event.before),
        label(event.after),
        shift.outcome.name(history.metric.better()),
        change(event.ratio - 1.0),
    )
}

/// The cells of a shift, each with its effect, and its place if that is uncertain or differs; `of_p` precedes p if no
/// head names it.
fn of_shift(history: &History, shift: &Shift, of_p: &str) -> Table {
    let elsewhere = |change: &ChangePoint| change.within != (shift.event.before, shift.event.after);
    let any = shift.event.changes.iter().any(|(_, change)| elsewhere(change));
    let several = history.series.len() > 1;
    let heads = several.then_some("cell").into_iter();
    let heads = heads.chain(["#change", "#95% CI", "#p"]).chain(any.then_some("place"));
    let mut table = Table::new(heads);
    for (at, change_point) in &shift.event.changes {
        let mut row: Vec<String> = several.then(|| cell(history, &history.series[*at])).into_iter().collect();
        row.extend([
            change(change_point.effect.ratio - 1.0),
            interval(change_point).unwrap_or_else(|| GAP.to_owned()),
            format!("{of_p}{}", p(change_point.p)),
        ]);
        if any {
            let (from, to) = change_point.within;
            let label = |at: usize| &history.steps[at].label;
            row.push(match elsewhere(change_point) {
                true => format!("between {} and {}", label(from), label(to)),
                false => String::new(),
            });
        }
        table.push(row);
    }
    table
}

/// The 95% interval of a change.
pub(super) fn interval(of: &ChangePoint) -> Option<String> {
    let interval = of.effect.confidence_interval(0.95)?;
    // A higher bound means only that the effect is unknown.
    let high = if interval.high > 100.0 { ">+9900%".to_owned() } else { change(interval.high - 1.0) };
    Some(format!("{} to {high}", change(interval.low - 1.0)))
}

/// Acceptances of a shift, each with the number of its cells unless it is all of them.
fn acceptances(history: &History, shift: &Shift) -> Vec<String> {
    let accepted = shift.accepted(history);
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for place in accepted.iter().flatten() {
        *counts.entry(*place).or_default() += 1;
    }
    let sentences = counts.into_iter().map(|(place, n)| {
        let part =
            if n == accepted.len() { String::new() } else { format!(" for {n} of {} cells", accepted.len()) };
        format!("accepted{part} {}", by_whom(&history.accepted[place]))
    });
    sentences.collect()
}

fn by_whom(acceptance: &Acceptance) -> String {
    let by = acceptance.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    format!("on {}{by}: {}", acceptance.at.strftime("%Y-%m-%d"), acceptance.note)
}

/// Acceptances without a shift: of other trials, or of a shift that no longer exists.
fn unmatched(history: &History) -> Vec<String> {
    let used: Vec<usize> =
        history.series.iter().flat_map(|series| &series.accepted).flatten().copied().collect();
    let others = history.accepted.iter().enumerate().filter(|(at, _)| !used.contains(at));
    others
        .map(|(_, acceptance)| {
            format!(
                "no shift here matches the one accepted between {} and {} {}",
                acceptance.before,
                acceptance.after,
                by_whom(acceptance)
            )
        })
        .collect()
}

/// Outcomes of the gates, in sentences.
pub fn gates_in_words(history: &History) -> Vec<String> {
    const MAX_SHOWN: usize = 8;
    let mut lines = Vec::new();
    for outcome in &history.gates {
        let gate = &outcome.gate;
        let newest =
            history.newest.map(|n| format!(" in the newest {}", counted(n, "step"))).unwrap_or_default();
        let some = |mut all: Vec<String>| {
            let more = all.len().saturating_sub(MAX_SHOWN);
            all.truncate(MAX_SHOWN);
            all.extend((more > 0).then(|| format!("and {more} more")));
            all.join("; ")
        };
        let hit = |(series, at): &(usize, usize)| {
            let series = &history.series[*series];
            let found = &series.changes[*at];
            let since = &history.steps[found.after].label;
            format!("{} since {since} ({})", cell(history, series), change(found.effect.ratio - 1.0))
        };
        lines.push(match outcome.hit.is_empty() {
            true => format!("gate {gate}{newest}: not hit"),
            false => format!("gate {gate}{newest}: HIT by {}", some(outcome.hit.iter().map(hit).collect())),
        });
        if !outcome.undecided.is_empty() {
            let cells = outcome.undecided.iter().map(|at| cell(history, &history.series[*at])).collect();
            lines.push(format!("gate {gate}: not decided for {}", some(cells)));
        }
    }
    lines
}
