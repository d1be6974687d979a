//! Conditions that a statistician would ask about: drift, correlation, ties, unequal sides, many cells, sessions.

use stats::{Comparison, Logs, SessionSpread, Verdict, verdicts};

use crate::comparisons::{holds, in_blocks, is_change, judge};
use crate::random::Random;
use crate::table::{Bound, Row, percent};

/// The noise of a cell: the standard deviation of logarithms.
const NOISE: f64 = 0.02;

/// Runs of two cells in blocks.
type Pairs = Vec<(f64, f64)>;

/// An order of measurement of these runs.
type Arrange = fn(Pairs) -> Pairs;

pub(crate) fn rows(random: &mut Random, times: usize) -> Vec<Row> {
    let mut rows = drift(random, times);
    rows.extend(unusual(random, times));
    rows.extend(many_cells(random, times / 10));
    rows.extend(sessions(random, times));
    rows
}

/// A machine that changes while 10 runs of each of two cells are measured.
fn drift(random: &mut Random, times: usize) -> Vec<Row> {
    const RUNS: usize = 10;
    let in_order = |at: Pairs| at;
    // One cell after the other: the same figures in another order of measurement.
    let one_after_the_other = |at: Pairs| -> Pairs {
        let all: Vec<f64> = at.into_iter().flat_map(|(a, b)| [a, b]).collect();
        all[..RUNS].iter().copied().zip(all[RUNS..].iter().copied()).collect()
    };
    let orders: [(&str, Arrange); 2] =
        [("in blocks", in_order), ("one cell after the other", one_after_the_other)];
    let mut rows = Vec::new();
    for (what, correlation, slope) in [
        ("drift of 10% over a campaign", 0.0, 0.1),
        ("neighbouring runs correlated by 0.7", 0.7, 0.0),
        ("neighbouring runs correlated by -0.5", -0.5, 0.0),
    ] {
        for (order, arrange) in orders {
            let bound = if order == "in blocks" { Bound::AtMost(0.01) } else { Bound::Unbounded };
            rows.push(Row::share(format!("false alarm, {what}, {order}, noise 2%"), times, bound, || {
                let pairs = arrange(random.machine(RUNS, correlation, slope, NOISE));
                match order {
                    "in blocks" => is_change(verdicts(&[in_blocks(&pairs)])[0]),
                    _ => {
                        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
                        judge(&a, &b).is_some_and(is_change)
                    }
                }
            }));
        }
    }
    rows
}

/// Ties, unequal numbers of runs, unequal spreads, and a side without any spread.
fn unusual(random: &mut Random, times: usize) -> Vec<Row> {
    let bound = Bound::AtMost(0.01);
    let mut row = |what: &str, sides: fn(&mut Random) -> (Vec<f64>, Vec<f64>)| {
        Row::share(format!("false alarm, {what}"), times, bound, || {
            let (a, b) = sides(random);
            judge(&a, &b).is_some_and(is_change)
        })
    };
    vec![
        row("5 runs a side in steps of 2%, noise 2%", |random| {
            let tied = |runs: Vec<f64>| runs.into_iter().map(|run| (run / 20.0).round() * 20.0).collect();
            (tied(random.runs(5, 1.0, NOISE)), tied(random.runs(5, 1.0, NOISE)))
        }),
        row("3 runs against 20, noise 2%", |random| {
            (random.runs(3, 1.0, NOISE), random.runs(20, 1.0, NOISE))
        }),
        row("3 runs with noise 4% against 20 with 1%", |random| {
            (random.runs(3, 1.0, 0.04), random.runs(20, 1.0, 0.01))
        }),
        row("5 runs without spread against 5 with noise 2%", |random| {
            (random.runs(5, 1.0, 0.0), random.runs(5, 1.0, NOISE))
        }),
    ]
}

/// Matrices of 100 comparisons without a change, and with some.
fn many_cells(random: &mut Random, times: usize) -> Vec<Row> {
    const CELLS: usize = 100;
    let matrix = |random: &mut Random, changed: usize| -> Vec<Verdict> {
        let compared: Vec<Comparison> = (0..CELLS)
            .map(|cell| in_blocks(&random.blocks(10, if cell < changed { 0.92 } else { 1.0 }, NOISE, 0.0)))
            .collect();
        verdicts(&compared)
    };
    let any = Row::share(
        "any false alarm among 100 cells, 10 blocks, noise 2%",
        times,
        Bound::AtMost(0.05),
        || matrix(random, 0).into_iter().any(is_change),
    );
    let mut found = 0;
    let among = Row::share(
        "any false alarm among 100 cells of which 10 lost 8%, 10 blocks, noise 2%",
        times,
        Bound::AtMost(0.05),
        || {
            let verdicts = matrix(random, 10);
            found += verdicts[..10].iter().filter(|verdict| **verdict == Verdict::Regression).count();
            verdicts[10..].iter().copied().any(is_change)
        },
    );
    let found = found as f64 / (10 * times) as f64;
    vec![any, among, Row::new("loss of 8% found among these", found, Bound::Unbounded, percent)]
}

/// Sides that are a session each, with 5 runs; sessions differ by 2%, runs within them by 1%.
fn sessions(random: &mut Random, times: usize) -> Vec<Row> {
    const RUNS: usize = 5;
    const BETWEEN: f64 = 0.02;
    let session = |random: &mut Random| {
        let level = random.run(1.0, BETWEEN) / random.run(1.0, 0.0);
        random.runs(RUNS, level, 0.01)
    };
    let mut rows = Vec::new();
    for (others, alarms, coverage) in [
        (0, Bound::Unbounded, Bound::Unbounded),
        (3, Bound::AtMost(0.01), Bound::AtLeast(0.94)),
        (10, Bound::AtMost(0.01), Bound::AtLeast(0.94)),
    ] {
        let what = |figure: &str| {
            format!("{figure}, each side one session, sessions differ by 2%, {others} others known")
        };
        let mut held = 0;
        rows.push(Row::share(what("false alarm"), times, alarms, || {
            let (a, b) = (session(random), session(random));
            let means: Vec<f64> =
                (0..others).filter_map(|_| Some(Logs::new(session(random))?.mean())).collect();
            let Some(mut comparison) = Comparison::new(&a, &b) else { return false };
            if let Some(spread) = SessionSpread::new(&[means]) {
                let variance = spread.of_difference(1, 1);
                comparison = comparison.widened(variance, spread.degrees_of_freedom as f64);
            }
            held += usize::from(holds(&comparison, 1.0));
            is_change(verdicts(&[comparison])[0])
        }));
        rows.push(Row::new(what("95% interval holds"), held as f64 / times as f64, coverage, percent));
    }
    rows
}
