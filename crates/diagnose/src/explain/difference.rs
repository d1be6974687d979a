//! The difference between two budgets.

use super::budget::{Budget, Component, ComponentTime};

/// Differences of two budgets, part by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Mean latency of the first, in microseconds.
    pub before_us: f64,
    /// Mean latency of the second.
    pub after_us: f64,
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
    /// Compares two budgets.
    pub fn new(before: &Budget, after: &Budget) -> Self {
        let us = |budget: &Budget, part: &ComponentTime| {
            let same = |other: &&ComponentTime| (other.component, &other.of) == (part.component, &part.of);
            budget.parts.iter().find(same).map_or(0.0, |part| part.us)
        };
        let mut changes: Vec<Change> = Vec::new();
        for part in before.parts.iter().chain(&after.parts) {
            if changes.iter().any(|change| (change.component, &change.of) == (part.component, &part.of)) {
                continue;
            }
            let (before_us, after_us) = (us(before, part), us(after, part));
            changes.push(Change { component: part.component, of: part.of.clone(), before_us, after_us });
        }
        changes.sort_by(|a, b| b.increase_us().abs().total_cmp(&a.increase_us().abs()));
        Self { before_us: before.latency_us, after_us: after.latency_us, changes }
    }

    /// Additional latency of the second budget, in microseconds.
    pub fn increase_us(&self) -> f64 {
        self.after_us - self.before_us
    }

    /// One sentence about the largest changes.
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
        match self.changes.iter().find(same_way) {
            Some(change) if increase_us != 0.0 => format!(
                "{whole}; {:.3} ms of it ({:.0}%) is {}",
                change.increase_us().abs() / 1e3,
                100.0 * change.increase_us() / increase_us,
                change.name()
            ),
            _ => whole,
        }
    }
}
