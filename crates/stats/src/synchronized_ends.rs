//! Tasks that end together although they began apart.

/// Successive ends at most this share of the tasks' mean length apart are together; so are beginnings within such a
/// span.
const MAX_GAP_SHARE: f64 = 0.01;
/// The largest probability that a group of that size is due to chance.
const MAX_P: f64 = 0.01;

/// Start and end of a task, in one unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Start.
    pub start: f64,
    /// End.
    pub end: f64,
}

/// Groups of tasks that end together, as indices into `tasks`: in order of their ends, each of at least two tasks.
///
/// Ends are together if each is at most 1% of the tasks' mean length after the previous one. Such a group of *m* of *n*
/// tasks is a clump if its tasks began apart, over more than that 1%, and chance is unlikely to produce it: tasks that
/// do not meet keep the distances at which they began, so their ends lie in a span at least as long as that of all
/// beginnings. Of *n* points scattered evenly over a span, *m* chosen ones lie within a fraction *p* of it with
/// probability m·pᵐ⁻¹ − (m−1)·pᵐ (the distribution of a sample's range: David and Nagaraja, "Order Statistics" (2003),
/// 2.3), and any *m* of them with at most C(n, m) times that (Bonferroni; the tail of the scan statistic, Naus (1965),
/// "The distribution of the size of the maximum cluster of points on a line"). If that is at most 1%, the group is a
/// clump. Of sets of ten evenly scattered ends, 2% have one of any size; beginnings at regular distances spread ends
/// more evenly than chance. Tasks that begin at once are no clump, whenever they end.
///
/// `None` if a time is NaN or infinite.
pub fn synchronized_ends(tasks: &[Task]) -> Option<Vec<Vec<usize>>> {
    if tasks.iter().any(|task| !task.start.is_finite() || !task.end.is_finite()) {
        return None;
    }
    let max_gap =
        MAX_GAP_SHARE * tasks.iter().map(|task| task.end - task.start).sum::<f64>() / tasks.len() as f64;
    let end = |at: &usize| tasks[*at].end;
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by(|a, b| end(a).total_cmp(&end(b)));
    let begun_within = |group: &[usize]| {
        let starts = || group.iter().map(|at| tasks[*at].start);
        starts().fold(f64::MIN, f64::max) - starts().fold(f64::MAX, f64::min)
    };
    let all = begun_within(&order);
    let groups = order.chunk_by(|a, b| end(b) - end(a) <= max_gap);
    let is_clump = |group: &&[usize]| match group {
        [first, .., last] if begun_within(group) > max_gap => {
            chance(tasks.len(), group.len(), (end(last) - end(first)) / all) <= MAX_P
        }
        _ => false,
    };
    Some(groups.filter(is_clump).map(<[usize]>::to_vec).collect())
}

/// An upper bound of the probability that any `m` of `n` points on a line of length 1 lie within `p`.
fn chance(n: usize, m: usize, p: f64) -> f64 {
    if p >= 1.0 {
        return 1.0;
    }
    let ways: f64 = (0..m).map(|at| (n - at) as f64 / (m - at) as f64).product();
    let m = m as f64;
    (ways * p.powf(m - 1.0) * (m - (m - 1.0) * p)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks that begin `stagger` apart, with these lengths.
    fn tasks(stagger: f64, lengths: &[f64]) -> Vec<Task> {
        let task = |(at, length): (usize, &f64)| {
            let start = at as f64 * stagger;
            Task { start, end: start + length }
        };
        lengths.iter().enumerate().map(task).collect()
    }

    /// PostgreSQL 8.2.5, ten scans 30 s apart, and 8.3beta1, the same, as published in 2007. (The sixth of 8.2 at 681.5
    /// s is an error of the source: by its clock it ended with the others.)
    const TEN_8_2: [f64; 10] =
        [508.99, 479.01, 781.84, 751.84, 721.83, 691.83, 661.83, 631.83, 601.83, 571.82];
    const TEN_8_3: [f64; 10] =
        [318.09, 317.49, 317.56, 316.91, 316.63, 316.31, 316.23, 314.90, 314.85, 314.14];

    #[test]
    fn the_scans_of_2007_ended_together_in_8_2_and_apart_in_8_3() {
        let mut found = synchronized_ends(&tasks(30.0, &TEN_8_2)).unwrap();
        found.iter_mut().for_each(|clump| clump.sort_unstable());
        assert_eq!(found, [vec![0, 1], vec![2, 3, 4, 5, 6, 7, 8, 9]]);
        assert_eq!(synchronized_ends(&tasks(30.0, &TEN_8_3)), Some(vec![]));
    }

    #[test]
    fn tasks_that_keep_their_distance_are_no_clump() {
        assert_eq!(synchronized_ends(&tasks(0.2, &[100.0; 20])), Some(vec![]), "each within 1% of the next");
        assert_eq!(synchronized_ends(&tasks(0.0, &[100.0; 20])), Some(vec![]), "all began at once");
        let mut latecomers = tasks(0.001, &[100.0; 4]);
        latecomers[0] = Task { start: -50.0, end: 70.0 };
        assert_eq!(synchronized_ends(&latecomers), Some(vec![]), "those that end together began together");
        assert_eq!(synchronized_ends(&tasks(2.0, &[100.0])), Some(vec![]));
        assert_eq!(synchronized_ends(&[]), Some(vec![]));
        assert_eq!(synchronized_ends(&[Task { start: 0.0, end: f64::NAN }]), None);
    }

    #[test]
    fn two_tasks_that_end_together_by_chance_are_no_clump() {
        // Of eight ends 2 s apart, two meet within 0.3 s.
        let mut some = tasks(2.0, &[80.0; 8]);
        some[3].end = some[4].end + 0.3;
        assert_eq!(synchronized_ends(&some), Some(vec![]));
        some[2].end = some[4].end - 0.1;
        some[5].end = some[4].end + 0.2;
        assert_eq!(synchronized_ends(&some), Some(vec![vec![2, 4, 5, 3]]));
    }

    /// Ends scattered evenly over the span of the beginnings.
    #[test]
    fn random_ends_rarely_form_a_clump() {
        let mut state = 42_u64;
        let mut even = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut found = 0;
        for _ in 0..20_000 {
            let scattered: Vec<Task> =
                (0..10).map(|at| Task { start: f64::from(at) * 30.0, end: 300.0 + 270.0 * even() }).collect();
            found += usize::from(!synchronized_ends(&scattered).unwrap().is_empty());
        }
        assert!((1..600).contains(&found), "{found} of 20000, seed 42");
    }
}
