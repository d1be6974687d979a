//! The client sweep of 2008, five kernels by thirteen numbers of clients: `data/client-sweep-2008.csv` holds the runs,
//! the files next to it the results by the rules, to six digits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

use stats::{
    Cell, Comparison, Logs, Sample, Verdict, benjamini_hochberg, first_run_apart, holm, mann_whitney_p,
    permutation_p, runs_needed, share_smaller, verdicts,
};

/// The rows of a file, each a map from column names to fields.
fn rows(csv: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| names.iter().copied().zip(line.split(',')).collect()).collect()
}

fn number(row: &BTreeMap<&str, &str>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// The throughputs by kernel and clients.
fn runs() -> BTreeMap<(&'static str, &'static str), Vec<f64>> {
    let mut runs: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for row in rows(include_str!("data/client-sweep-2008.csv")) {
        runs.entry((row["kernel"], row["clients"])).or_default().push(number(&row, "tps"));
    }
    runs
}

/// Equal to six digits, the precision of the files.
#[track_caller]
fn equal(row: &BTreeMap<&str, &str>, column: &str, ours: f64) {
    let theirs = number(row, column);
    assert!((ours - theirs).abs() <= 6e-6 * theirs.abs(), "{column}: {ours} here, {theirs} in {row:?}");
}

#[test]
fn every_cell_is_classed_as_expected() {
    let runs = runs();
    let expected = rows(include_str!("data/client-sweep-2008.expected-cells.csv"));
    assert_eq!(expected.len(), runs.len());
    for row in &expected {
        let throughputs = &runs[&(row["kernel"], row["clients"])];
        let cell = Cell::new(throughputs).unwrap();
        assert_eq!(cell.class().unwrap().to_string(), row["cls"], "{row:?}");
        let split = cell.split.unwrap();
        assert_eq!(
            (cell.n, split.lower),
            (number(row, "n") as usize, number(row, "split_lo") as usize),
            "{row:?}"
        );
        equal(row, "min", cell.minimum);
        equal(row, "median", cell.median);
        equal(row, "max", cell.maximum);
        equal(row, "gmean", cell.geometric_mean);
        equal(row, "logsd_pct", 100.0 * cell.log_sd.unwrap());
        let mad = Sample::new(throughputs.iter().copied()).unwrap().mad();
        equal(row, "mad_pct", 100.0 * mad / cell.median);
        assert_eq!(first_run_apart(throughputs).is_some(), row["first_run"] == "True", "{row:?}");
        equal(row, "split_T", split.t);
        equal(row, "mode_ratio", cell.mode_ratio().unwrap());
        let logs = Logs::new(throughputs.iter().copied()).unwrap();
        let interval = logs.confidence_interval(0.95).unwrap();
        equal(row, "ci95_lo", interval.low);
        equal(row, "ci95_hi", interval.high);
        assert_eq!(runs_needed(&logs, 0.02).unwrap(), number(row, "runs_for_2pct") as usize, "{row:?}");
    }
}

#[test]
fn every_pair_of_kernels_gets_the_expected_verdicts() {
    let runs = runs();
    let expected = rows(include_str!("data/client-sweep-2008.expected-compare.csv"));
    // Each pair of kernels is a separate matrix.
    let matrices: Vec<_> =
        expected.chunk_by(|one, next| (one["a"], one["b"]) == (next["a"], next["b"])).collect();
    assert_eq!(matrices.len(), 4);
    for matrix in matrices {
        let comparisons: Vec<Comparison> = matrix
            .iter()
            .map(|row| {
                Comparison::new(&runs[&(row["a"], row["clients"])], &runs[&(row["b"], row["clients"])])
                    .unwrap()
            })
            .collect();
        let p: Vec<f64> = comparisons.iter().map(|comparison| comparison.estimate.unwrap().p).collect();
        let logs = |row: &BTreeMap<&str, &str>, side| {
            Logs::new(runs[&(row[side], row["clients"])].iter().copied()).unwrap()
        };
        let permuted: Vec<f64> =
            matrix.iter().map(|row| permutation_p(&logs(row, "a"), &logs(row, "b")).unwrap()).collect();
        for (column, ours) in [
            ("p_holm", holm(&p)),
            ("p_bh", benjamini_hochberg(&p)),
            ("p_perm", permuted.clone()),
            ("p_perm_holm", holm(&permuted)),
            ("p_perm_bh", benjamini_hochberg(&permuted)),
        ] {
            matrix.iter().zip(ours).for_each(|(row, ours)| equal(row, column, ours));
        }
        for (row, (comparison, verdict)) in matrix.iter().zip(comparisons.iter().zip(verdicts(&comparisons)))
        {
            // In the file, an inconclusive comparison of an unstable cell is "UNSTABLE", a change of one is marked.
            let expected = match (verdict, comparison.is_unstable()) {
                (Verdict::Inconclusive, true) => "UNSTABLE".to_owned(),
                (verdict, unstable) => format!("{verdict}{}", if unstable { "*" } else { "" }),
            };
            assert_eq!(expected, row["verdict"], "{row:?}");
            assert_eq!(comparison.ranges_are_disjoint(), row["ranges"] != "overlap", "{row:?}");
            equal(row, "ratio_med", comparison.median_ratio());
            let welch = comparison.estimate.unwrap();
            equal(row, "ratio_gm", welch.ratio);
            equal(row, "df", welch.degrees_of_freedom);
            equal(row, "p_welch", welch.p);
            for (level, low, high) in [(0.95, "ci95_lo", "ci95_hi"), (0.99, "ci99_lo", "ci99_hi")] {
                let interval = welch.confidence_interval(level).unwrap();
                equal(row, low, interval.low);
                equal(row, high, interval.high);
            }
            let (a, b) = (logs(row, "a"), logs(row, "b"));
            equal(row, "p_mwu", mann_whitney_p(&a, &b).unwrap());
            equal(row, "p_b_slower", share_smaller(&a, &b));
        }
    }
}
