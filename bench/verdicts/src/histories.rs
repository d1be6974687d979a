//! Histories with and without changes.

use std::thread;
use std::time::Instant;

use stats::{change_points, change_points_of_all};

use crate::random::Random;
use crate::table::{Bound, Row, percent};

/// The noise of a point: the standard deviation of logarithms.
const NOISE: f64 = 0.02;
/// Points of a history.
const POINTS: usize = 100;
/// Points of a long history.
const MANY_POINTS: usize = 10_000;
/// Cells of a long history.
const CELLS: usize = 100;
/// Changes of each of these cells, of 5% up and down.
const CHANGES: usize = 5;

pub(crate) fn rows(random: &mut Random, times: usize) -> Vec<Row> {
    let mut false_change_point = |what: &str, value: fn(&mut Random) -> f64| {
        let what = format!("history of {POINTS} points without change has a change point, {what}");
        Row::share(what, times, Bound::AtMost(0.02), || {
            let series: Vec<Option<f64>> = (0..POINTS).map(|_| Some(value(random))).collect();
            !change_indices(&series).is_empty()
        })
    };
    let mut rows = vec![
        false_change_point("normal", |random| random.run(1.0, NOISE)),
        false_change_point("skewed", |random| random.skewed_run(NOISE)),
        false_change_point("ten different values", |random| (random.run(1.0, NOISE) / 12.0).round()),
    ];
    for (points, last, sigmas) in
        [(30, 15, 1.5), (30, 15, 2.5), (100, 50, 1.0), (100, 10, 1.5), (100, 10, 2.5), (100, 10, 5.0)]
    {
        let (mut found, mut holding, mut overstated) = (0, 0, 0.0);
        let loss = sigmas * NOISE;
        for _ in 0..times {
            let level = |i: usize| if i < points - last { 1.0 } else { (-loss).exp() };
            let series: Vec<Option<f64>> = (0..points).map(|i| Some(random.run(level(i), NOISE))).collect();
            for change in change_points(&series).unwrap_or_default() {
                let interval = change.effect.confidence_interval(0.95);
                found += 1;
                holding +=
                    usize::from(interval.is_some_and(|interval| {
                        interval.low <= (-loss).exp() && (-loss).exp() <= interval.high
                    }));
                overstated += change.effect.ratio.ln() / -loss;
            }
        }
        let what = |figure: &str| {
            format!("{figure}, {sigmas} times the noise in the last {last} of {points} points")
        };
        let of_found = |sum: f64| sum / f64::from(found.max(1));
        rows.push(Row::new(
            what("95% interval of a reported change holds it"),
            of_found(holding as f64),
            Bound::AtLeast(0.94),
            percent,
        ));
        rows.push(Row::new(
            what("change reported"),
            f64::from(found) / times as f64,
            Bound::Unbounded,
            percent,
        ));
        rows.push(Row::new(
            what("reported change over true one"),
            of_found(overstated),
            Bound::Unbounded,
            percent,
        ));
    }
    for cells in [1, 9, 100] {
        let what = format!("any change point in {cells} cells of 30 points without change");
        rows.push(Row::share(what, times.div_ceil(cells).max(2000), Bound::AtMost(0.05), || {
            let series: Vec<Vec<Option<f64>>> =
                (0..cells).map(|_| (0..30).map(|_| Some(random.run(1.0, NOISE))).collect()).collect();
            change_points_of_all(&series).into_iter().flatten().any(|found| !found.is_empty())
        }));
    }
    for last in [50, 10, 5, 3] {
        let what =
            format!("loss of 5% in the last {last} of {POINTS} points found within 2 points, noise 2%");
        rows.push(Row::share(what, times, Bound::Unbounded, || {
            let ratio = |i: usize| if i < POINTS - last { 1.0 } else { 0.95 };
            let series: Vec<Option<f64>> = (0..POINTS).map(|i| Some(random.run(ratio(i), NOISE))).collect();
            change_indices(&series).iter().any(|index| index.abs_diff(POINTS - last) <= 2)
        }));
    }
    for (length, loss) in [(30, 5), (20, 5), (10, 5), (5, 5), (5, 10)] {
        let what = format!(
            "loss of {loss}% in {length} of {POINTS} points and its end found, each within 2 points, noise 2%"
        );
        rows.push(Row::share(what, times, Bound::Unbounded, || {
            let (from, to) = (40, 40 + length);
            let level = 1.0 - f64::from(loss) / 100.0;
            let ratio = |i: usize| if (from..to).contains(&i) { level } else { 1.0 };
            let series: Vec<Option<f64>> = (0..POINTS).map(|i| Some(random.run(ratio(i), NOISE))).collect();
            let change_indices = change_indices(&series);
            [from, to].iter().all(|at| change_indices.iter().any(|index| index.abs_diff(*at) <= 2))
        }));
    }
    rows
}

/// Seconds to analyse a long history of many cells.
pub(crate) fn speed(random: &mut Random, threads: usize) -> Row {
    let ratio = |i: usize| if (i * (CHANGES + 1) / MANY_POINTS).is_multiple_of(2) { 1.0 } else { 0.95 };
    let cells: Vec<Vec<Option<f64>>> =
        (0..CELLS).map(|_| (0..MANY_POINTS).map(|i| Some(random.run(ratio(i), NOISE))).collect()).collect();
    let begin = Instant::now();
    thread::scope(|scope| {
        for part in cells.chunks(CELLS.div_ceil(threads)) {
            scope.spawn(move || part.iter().map(|series| change_indices(series).len()).sum::<usize>());
        }
    });
    let what = format!(
        "seconds for {CELLS} cells of {MANY_POINTS} points with {CHANGES} changes, {threads} threads"
    );
    Row::new(what, begin.elapsed().as_secs_f64(), Bound::AtMost(10.0), |seconds| format!("{seconds:.1}"))
}

/// The first points after changes.
fn change_indices(series: &[Option<f64>]) -> Vec<usize> {
    change_points(series).unwrap_or_default().iter().map(|change| change.after).collect()
}
