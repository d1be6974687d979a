//! Difference of two profiles, as CPU time per transaction.

use std::collections::BTreeMap;

use diagnose::profile::{Groups, functions};
use model::profile::Stacks;
use stats::mean_difference_half_width;

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
    /// Half of the 95 % interval of the change: by the spread between trials if both profiles have several, and at least
    /// the sampling error, assuming independent samples.
    pub margin_us: f64,
}

impl Change {
    /// The increase.
    pub fn increase_us(&self) -> f64 {
        self.after_us - self.before_us
    }

    /// Whether it is only in one of the profiles, and not by chance: the margin is for one function, and profiles have a
    /// thousand, of which some with few samples are in one by chance.
    fn is_new_or_gone(&self) -> bool {
        (self.before_us == 0.0 || self.after_us == 0.0) && self.increase_us().abs() > 2.0 * self.margin_us
    }
}

/// Whether the margins of a difference have the spread between trials: both profiles have several.
pub fn has_spread(before: &Profile, after: &Profile) -> bool {
    before.by_trial.len() > 1 && after.by_trial.len() > 1
}

/// Changes of one role.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Change of the whole role.
    pub role: Change,
    /// Changes by group, in own samples; they add up to the role's. The largest change first.
    pub groups: Vec<Change>,
    /// Changes by function, in own samples; they add up to the role's. Functions that are new or gone first, then the
    /// largest change.
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
        let sides = [Side::new(before)?, Side::new(after)?];
        let mut roles: Vec<&str> =
            before.stacks.iter().chain(&after.stacks).map(|stacks| stacks.role.as_str()).collect();
        roles.sort_unstable();
        roles.dedup();
        let mut all: Vec<Self> = roles
            .into_iter()
            .filter_map(|role| {
                let by_function = |stacks: &Stacks| {
                    let own = functions(stacks).into_iter().map(|f| (Some(f.name), f.own));
                    own.filter(|(_, own)| *own > 0).collect()
                };
                let by_group =
                    |stacks: &Stacks| groups.shares(stacks).into_iter().map(|g| (g.group, g.own)).collect();
                let whole = |stacks: &Stacks| vec![(Some(role.to_owned()), stacks.total())];
                let role_change = changes(&sides, role, &whole).into_iter().next();
                let mut functions = changes(&sides, role, &by_function);
                functions.sort_by_key(|change| !change.is_new_or_gone());
                Some(Self { role: role_change?, groups: changes(&sides, role, &by_group), functions })
            })
            .collect();
        all.sort_by(|a, b| b.role.increase_us().abs().total_cmp(&a.role.increase_us().abs()));
        Ok(all)
    }
}

/// Samples by role, group or function.
type Counts = Vec<(Option<String>, u64)>;

/// One of the profiles.
struct Side<'a> {
    profile: &'a Profile,
    /// CPU time per transaction of a sample of all trials, and of each trial; none of a trial without transactions.
    us: f64,
    us_by_trial: Vec<Option<f64>>,
}

impl<'a> Side<'a> {
    fn new(profile: &'a Profile) -> Result<Self, ProfileError> {
        let id = || profile.trials.last().cloned().unwrap_or_default();
        let us = profile.us_per_transaction(1).ok_or_else(|| ProfileError::NoTransactions { id: id() })?;
        let of_trial = |transactions: Option<f64>| Some(profile.us_per_sample / transactions?);
        let us_by_trial = profile.by_trial.iter().map(|(transactions, _)| of_trial(*transactions)).collect();
        Ok(Self { profile, us, us_by_trial })
    }

    /// Samples of each trial.
    fn counts(&self, role: &str, of: &dyn Fn(&Stacks) -> Counts) -> Vec<Counts> {
        let none = Stacks::default();
        let trials = self.profile.by_trial.iter();
        trials
            .map(|(_, stacks)| of(stacks.iter().find(|stacks| stacks.role == role).unwrap_or(&none)))
            .collect()
    }

    /// CPU time per transaction in each trial.
    fn us_of(&self, samples: &[u64]) -> Vec<f64> {
        samples.iter().zip(&self.us_by_trial).filter_map(|(count, us)| Some(*count as f64 * (*us)?)).collect()
    }
}

/// Changes of one role, the largest first.
fn changes(sides: &[Side; 2], role: &str, of: &dyn Fn(&Stacks) -> Counts) -> Vec<Change> {
    let mut samples: BTreeMap<Option<String>, [Vec<u64>; 2]> = BTreeMap::new();
    for (nth, side) in sides.iter().enumerate() {
        for (trial, counts) in side.counts(role, of).into_iter().enumerate() {
            for (of, count) in counts {
                let empty = || sides.each_ref().map(|side| vec![0; side.us_by_trial.len()]);
                samples.entry(of).or_insert_with(empty)[nth][trial] += count;
            }
        }
    }
    let mut changes: Vec<Change> =
        samples.into_iter().map(|(of, samples)| change(of, &samples, sides)).collect();
    changes.sort_by(|a, b| b.increase_us().abs().total_cmp(&a.increase_us().abs()));
    changes
}

fn change(of: Option<String>, samples: &[Vec<u64>; 2], sides: &[Side; 2]) -> Change {
    const LEVEL: f64 = 0.95;
    let [before, after] = samples.each_ref().map(|samples| samples.iter().sum::<u64>() as f64);
    let [us_before, us_after] = sides.each_ref().map(|side| side.us);
    // The standard deviation of a sample count is its square root.
    let variance = before * us_before * us_before + after * us_after * us_after;
    let sampling_us = DEVIATIONS * variance.sqrt();
    let [a, b] = [0, 1].map(|nth: usize| sides[nth].us_of(&samples[nth]));
    let spread_us = mean_difference_half_width(&a, &b, LEVEL).unwrap_or_default();
    Change {
        of,
        before_us: before * us_before,
        after_us: after * us_after,
        margin_us: sampling_us.max(spread_us),
    }
}
