//! Comparisons of two cells in two stages, alone and in families.

use std::hint::black_box;
use std::time::Instant;

use stats::{Comparison, Verdict, runs_for_comparison, verdicts};

use crate::random::Random;
use crate::table::{Bound, Row};

/// The noise of a cell: the standard deviation of logarithms.
const NOISE: f64 = 0.02;
/// The noise of a wide cell.
const WIDE_NOISE: f64 = 0.1;
/// Comparisons in a family, as many as the client sweep of 2008 has.
const FAMILY: usize = 52;
/// Runs of each side in the comparisons whose speed is measured.
const RUNS: usize = 10;

pub(crate) fn rows(random: &mut Random, times: usize) -> Vec<Row> {
    let mut runs = 0;
    let mut compared = 0;
    let mut null = |random: &mut Random| {
        let comparison = two_stages(random, 1.0);
        runs += comparison.a.n;
        compared += 1;
        is_change(verdicts(&[comparison])[0])
    };
    let false_alarms =
        Row::share("false alarm of a comparison, noise 2%", times, Bound::AtMost(0.01), || null(random));
    let each = Row::new(
        "runs a side where nothing changed",
        runs as f64 / f64::from(compared),
        Bound::Unbounded,
        |runs| format!("{runs:.2}"),
    );
    let power = Row::share("loss of 5% found, noise 2%", times, Bound::AtLeast(0.95), || {
        verdicts(&[two_stages(random, 0.95)])[0] == Verdict::Regression
    });
    let family =
        Row::share("any false alarm among 52 comparisons, noise 2%", times / 10, Bound::AtMost(0.05), || {
            let family: Vec<Comparison> = (0..FAMILY).map(|_| two_stages(random, 1.0)).collect();
            verdicts(&family).into_iter().any(is_change)
        });
    let mut rows = vec![false_alarms, each, power, family];
    rows.extend(unstable(random, times));
    rows
}

/// Comparisons of unstable cells, wide and with modes.
fn unstable(random: &mut Random, times: usize) -> Vec<Row> {
    let judge =
        |a: Vec<f64>, b: Vec<f64>| Comparison::new(&a, &b).map(|comparison| verdicts(&[comparison])[0]);
    let mut rows = Vec::new();
    for runs in [3, 5, 10] {
        let what = format!("halved throughput found, {runs} runs a side, noise 10%");
        rows.push(Row::share(what, times, Bound::AtLeast(0.99), || {
            let (a, b) = (random.runs(runs, 1.0, WIDE_NOISE), random.runs(runs, 0.5, WIDE_NOISE));
            judge(a, b) == Some(Verdict::Regression)
        }));
    }
    // Three runs can't show that a cell has modes.
    for (runs, bound) in
        [(3, Bound::Unbounded), (4, Bound::AtMost(0.01)), (5, Bound::AtMost(0.01)), (10, Bound::AtMost(0.01))]
    {
        let what = format!("false alarm, {runs} runs a side, noise 10%");
        rows.push(Row::share(what, times, bound, || {
            let (a, b) = (random.runs(runs, 1.0, WIDE_NOISE), random.runs(runs, 1.0, WIDE_NOISE));
            judge(a, b).is_some_and(is_change)
        }));
        let what = format!("false alarm, {runs} runs a side, modes 30% apart, noise 1%");
        rows.push(Row::share(what, times, bound, || {
            let (a, b) = (random.bimodal_runs(runs, 1.3, 0.01), random.bimodal_runs(runs, 1.3, 0.01));
            judge(a, b).is_some_and(is_change)
        }));
    }
    rows
}

/// Comparisons with their verdicts per second, on one CPU.
pub(crate) fn speed(random: &mut Random, times: usize) -> Row {
    let cells: Vec<Vec<f64>> = (0..=times).map(|_| random.runs(RUNS, 1.0, NOISE)).collect();
    let begin = Instant::now();
    let matrix: Vec<Comparison> =
        cells.windows(2).filter_map(|pair| Comparison::new(&pair[0], &pair[1])).collect();
    black_box(verdicts(&matrix));
    let rate = matrix.len() as f64 / begin.elapsed().as_secs_f64();
    Row::new("comparisons of 10 runs a side in a second", rate, Bound::AtLeast(10_000.0), |rate| {
        format!("{rate:.0}")
    })
}

/// A comparison of cells whose throughputs have this ratio, with as many runs as two stages need.
fn two_stages(random: &mut Random, ratio: f64) -> Comparison {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    while let Some(wanted) = runs_for_comparison(&a, &b).filter(|wanted| *wanted > a.len()) {
        let missing = wanted - a.len();
        a.extend(random.runs(missing, 1.0, NOISE));
        b.extend(random.runs(missing, ratio, NOISE));
    }
    match Comparison::new(&a, &b) {
        Some(comparison) => comparison,
        None => unreachable!("simulated throughputs are positive"),
    }
}

fn is_change(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Improvement | Verdict::Regression)
}
