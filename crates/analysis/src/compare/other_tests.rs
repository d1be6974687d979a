//! Other tests of the runs of two cells, for readers who prefer them: verdicts do not use them.

use stats::{Logs, benjamini_hochberg, holm, mann_whitney_p, share_smaller};

use crate::judgement::Row;

/// Largest number of runs of both sides together for which exact tests are always made.
const MAX_RUNS: usize = 20;

/// Results of other tests of a row; `None` for too few or too many runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct OtherTests {
    /// p, adjusted by Benjamini and Hochberg.
    pub p_benjamini_hochberg: Option<f64>,
    /// p of the exact permutation test.
    pub p_permutation: Option<f64>,
    /// The p above, adjusted by Holm.
    pub p_permutation_holm: Option<f64>,
    /// The p above, adjusted by Benjamini and Hochberg.
    pub p_permutation_benjamini_hochberg: Option<f64>,
    /// p of the Mann-Whitney test.
    pub p_mann_whitney: Option<f64>,
    /// Share of pairs of runs in which the variant's figure is smaller.
    pub share_smaller: Option<f64>,
}

/// Other tests of each row. The tested rows together are the matrix for the adjustment of p.
pub fn other_tests(rows: &[Row]) -> Vec<OtherTests> {
    let mut all: Vec<OtherTests> = rows.iter().map(of_row).collect();
    let is_tested = |row: &Row| row.judged.p_holm.is_some();
    let tested: Vec<Option<f64>> = rows
        .iter()
        .map(|row| {
            row.judged.comparison.as_ref()?.estimate.filter(|_| is_tested(row)).map(|estimate| estimate.p)
        })
        .collect();
    let permutation: Vec<Option<f64>> =
        rows.iter().zip(&all).map(|(row, of)| of.p_permutation.filter(|_| is_tested(row))).collect();
    let adjusted = adjusted(&tested, benjamini_hochberg)
        .zip(adjusted(&permutation, holm))
        .zip(adjusted(&permutation, benjamini_hochberg));
    for (of, ((tested, holm), discovery)) in all.iter_mut().zip(adjusted) {
        of.p_benjamini_hochberg = tested;
        of.p_permutation_holm = holm;
        of.p_permutation_benjamini_hochberg = discovery;
    }
    all
}

fn of_row(row: &Row) -> OtherTests {
    let logs = |values: &[f64]| Logs::new(values.iter().copied());
    let (Some(comparison), Some(a), Some(b)) =
        (&row.judged.comparison, logs(&row.a.values), logs(&row.b.values))
    else {
        return OtherTests::default();
    };
    let few = a.n() + b.n() <= MAX_RUNS;
    OtherTests {
        p_permutation: (few || comparison.is_unstable()).then(|| comparison.permutation_p()).flatten(),
        p_mann_whitney: few.then(|| mann_whitney_p(&a, &b)).flatten(),
        share_smaller: Some(share_smaller(&a, &b)),
        ..OtherTests::default()
    }
}

/// Adjusts the p that exist, keeping their positions.
fn adjusted(p: &[Option<f64>], adjust: impl Fn(&[f64]) -> Vec<f64>) -> impl Iterator<Item = Option<f64>> {
    let mut adjusted = adjust(&p.iter().flatten().copied().collect::<Vec<f64>>()).into_iter();
    p.iter().map(move |p| p.and_then(|_| adjusted.next()))
}
