//! Steady cells and cells with two modes: which are called unstable?

use stats::Cell;

use crate::random::Random;
use crate::table::{Bound, Row};

pub(crate) fn rows(random: &mut Random, times: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (runs, noise) in [(5, 0.01), (10, 0.01), (20, 0.01), (5, 0.02), (10, 0.02), (20, 0.02)] {
        let what = format!("steady cell called unstable, {runs} runs, noise {}%", 100.0 * noise);
        rows.push(Row::share(what, times, Bound::AtMost(0.01), || {
            is_unstable(&random.runs(runs, 1.0, noise))
        }));
    }
    for (runs, ratio) in [(5, 1.10), (10, 1.10), (15, 1.10), (5, 1.30), (10, 1.30), (15, 1.30)] {
        let what =
            format!("cell with modes {:.0}% apart found, {runs} runs, noise 1%", 100.0 * (ratio - 1.0));
        rows.push(Row::share(what, times, Bound::Unbounded, || {
            is_unstable(&random.bimodal_runs(runs, ratio, 0.01))
        }));
    }
    rows
}

fn is_unstable(throughputs: &[f64]) -> bool {
    Cell::new(throughputs).is_some_and(|cell| cell.is_unstable())
}
