//! The difference between two budgets.

use stats::mean_difference_half_width;

use super::budget::{Budget, Component, ComponentTime};

/// Differences of the mean budgets of two cells, part by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Mean latency of the first, in microseconds.
    pub before_us: f64,
    /// Mean latency of the second.
    pub after_us: f64,
    /// Half of the 95 % interval of the difference, by the spread between trials; `None` with one trial on a side.
    pub margin_us: Option<f64>,
    /// Largest change first, regardless of its sign.
    pub changes: Vec<Change>,
}

/// The same part of both budgets.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Component of the part.
    pub component: Component,
    /// As in [`ComponentTime::of`].
    pub of: Option<String>,
    /// Time in the first budget, in microseconds; 0 if it has no such part.
    pub before_us: f64,
    /// Time in the second budget.
    pub after_us: f64,
    /// As of [`Difference::margin_us`].
    pub margin_us: Option<f64>,
}

impl Change {
    /// Additional time in the second budget, in microseconds.
    pub fn increase_us(&self) -> f64 {
        self.after_us - self.before_us
    }

    /// Display name.
    pub fn name(&self) -> String {
        ComponentTime { component: self.component, of: self.of.clone(), us: 0.0 }.name()
    }
}

impl Difference {
    /// Compares the budgets of the trials of two cells; `None` without any.
    pub fn new(before: &[Budget], after: &[Budget]) -> Option<Self> {
        const LEVEL: f64 = 0.95;
        let means = [Budget::mean(before)?, Budget::mean(after)?];
        let margin = |us: &dyn Fn(&Budget) -> f64| {
            let [a, b] = [before, after].map(|side| side.iter().map(us).collect::<Vec<f64>>());
            mean_difference_half_width(&a, &b, LEVEL)
        };
        let mut changes: Vec<Change> = Vec::new();
        for part in means.iter().flat_map(|mean| &mean.parts) {
            let is_same = |component, of: &Option<String>| (component, of) == (part.component, &part.of);
            if changes.iter().any(|change| is_same(change.component, &change.of)) {
                continue;
            }
            let us = |budget: &Budget| {
                let same = budget.parts.iter().find(|other| is_same(other.component, &other.of));
                same.map_or(0.0, |part| part.us)
            };
            changes.push(Change {
                component: part.component,
                of: part.of.clone(),
                before_us: us(&means[0]),
                after_us: us(&means[1]),
                margin_us: margin(&us),
            });
        }
        changes.sort_by(|a, b| b.increase_us().abs().total_cmp(&a.increase_us().abs()));
        let [before_us, after_us] = means.map(|mean| mean.latency_us);
        Some(Self { before_us, after_us, margin_us: margin(&|budget| budget.latency_us), changes })
    }

    /// Additional latency of the second budget, in microseconds.
    pub fn increase_us(&self) -> f64 {
        self.after_us - self.before_us
    }

    /// One sentence about the largest changes, and whether they are more than the spread between trials.
    pub fn verdict(&self) -> String {
        let increase_us = self.increase_us();
        let longer = if increase_us >= 0.0 { "longer" } else { "less" };
        let whole = format!(
            "a transaction takes {:.3} ms {longer} ({:.3} → {:.3} ms, {:+.1}%)",
            increase_us.abs() / 1e3,
            self.before_us / 1e3,
            self.after_us / 1e3,
            100.0 * increase_us / self.before_us
        );
        let same_way = |change: &&Change| change.increase_us().signum() == increase_us.signum();
        let largest = self.changes.iter().find(same_way).filter(|_| increase_us != 0.0);
        let largest = largest.map(|change| {
            format!(
                "; {:.3} ms of it ({:.0}%) is {}",
                change.increase_us().abs() / 1e3,
                100.0 * change.increase_us() / increase_us,
                change.name()
            )
        });
        let largest = largest.unwrap_or_default();
        match self.margin_us {
            None => format!("{whole}{largest}; with one trial on a side, how much trials differ is unknown"),
            Some(margin_us) if increase_us.abs() <= margin_us => format!(
                "not decided: {whole}, but trials differ by as much (± {:.3} ms); `pgdyno compare` judges whether more \
                 trials are needed",
                margin_us / 1e3
            ),
            Some(margin_us) => format!("{whole}, ± {:.3} ms between trials{largest}", margin_us / 1e3),
        }
    }
}
