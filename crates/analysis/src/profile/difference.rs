//! Difference of two profiles, as CPU time per transaction.

use std::collections::BTreeMap;

use diagnose::profile::{Groups, functions};
use model::profile::Stacks;

use super::{Profile, ProfileError};

/// CPU time per transaction, before and after, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The role, group of functions (`None` for samples in no group) or function.
    pub of: Option<String>,
    /// In the first profile.
    pub before_us: f64,
    /// In the second.
    pub after_us: f64,
    /// The part of the change that may be due to sampling: half of its 95 % interval, assuming independent samples. It
    /// does not include the differences between trials.
    pub margin_us: f64,
}

impl Change {
    /// The increase.
    pub fn increase_us(&self) -> f64 {
        self.after_us - self.before_us
    }
}

/// Changes of one role.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Change of the whole role.
    pub role: Change,
    /// Changes by group, in own samples; they add up to the role's. The largest change first.
    pub groups: Vec<Change>,
    /// Changes by function, in own samples; they add up to the role's. The largest change first.
    pub functions: Vec<Change>,
}

/// Two standard deviations, for 95 %.
const DEVIATIONS: f64 = 1.96;

impl Difference {
    /// The differences of all roles of two profiles, the largest change first.
    ///
    /// # Errors
    /// One of them has no transactions to normalise by.
    pub fn between(before: &Profile, after: &Profile, groups: &Groups) -> Result<Vec<Self>, ProfileError> {
        let us = [us_per_sample(before)?, us_per_sample(after)?];
        let none = Stacks::default();
        let mut roles: Vec<&str> =
            before.stacks.iter().chain(&after.stacks).map(|stacks| stacks.role.as_str()).collect();
        roles.sort_unstable();
        roles.dedup();
        let mut all: Vec<Self> = roles
            .into_iter()
            .map(|role| {
                let stacks_of = |profile: &Profile| {
                    profile.stacks.iter().find(|stacks| stacks.role == role).cloned().unwrap_or(none.clone())
                };
                let sides = [stacks_of(before), stacks_of(after)];
                let by_function = |stacks: &Stacks| {
                    let own = functions(stacks).into_iter().map(|f| (Some(f.name), f.own));
                    own.filter(|(_, own)| *own > 0).collect()
                };
                let by_group =
                    |stacks: &Stacks| groups.shares(stacks).into_iter().map(|g| (g.group, g.own)).collect();
                Self {
                    role: change(Some(role.to_owned()), sides.each_ref().map(Stacks::total), us),
                    groups: changes(sides.each_ref().map(by_group), us),
                    functions: changes(sides.each_ref().map(by_function), us),
                }
            })
            .collect();
        all.sort_by(|a, b| b.role.increase_us().abs().total_cmp(&a.role.increase_us().abs()));
        Ok(all)
    }
}

fn us_per_sample(profile: &Profile) -> Result<f64, ProfileError> {
    let id = || profile.trials.last().cloned().unwrap_or_default();
    profile.us_per_transaction(1).ok_or_else(|| ProfileError::NoTransactions { id: id() })
}

fn changes(sides: [Vec<(Option<String>, u64)>; 2], us: [f64; 2]) -> Vec<Change> {
    let mut samples: BTreeMap<Option<String>, [u64; 2]> = BTreeMap::new();
    for (side, counts) in sides.into_iter().enumerate() {
        for (of, count) in counts {
            samples.entry(of).or_default()[side] += count;
        }
    }
    let mut changes: Vec<Change> = samples.into_iter().map(|(of, samples)| change(of, samples, us)).collect();
    changes.sort_by(|a, b| b.increase_us().abs().total_cmp(&a.increase_us().abs()));
    changes
}

/// The standard deviation of a sample count is its square root.
fn change(of: Option<String>, [before, after]: [u64; 2], us: [f64; 2]) -> Change {
    let variance = before as f64 * us[0] * us[0] + after as f64 * us[1] * us[1];
    Change {
        of,
        before_us: before as f64 * us[0],
        after_us: after as f64 * us[1],
        margin_us: DEVIATIONS * variance.sqrt(),
    }
}
