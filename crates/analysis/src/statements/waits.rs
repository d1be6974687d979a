//! What the sessions waited for that executed a statement.

use std::collections::BTreeMap;

use model::trace::PlayedStatement;
use model::waits::CPU;
use serde::Serialize;

/// Samples of the sessions that executed a statement which found them waiting for the same, or not waiting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitShare {
    /// A wait event with its type, as `IO:DataFileRead`, by its name in PostgreSQL 18; `CPU` if they did not wait.
    pub wait: String,
    /// Number of samples.
    pub samples: u64,
    /// The same as a share of all samples of the statement.
    pub share: f64,
}

/// The waits of a statement in all these trials together, the most frequent first; `None` if they are known of none.
pub fn wait_shares<'a>(trials: impl IntoIterator<Item = &'a PlayedStatement>) -> Option<Vec<WaitShare>> {
    let known: Vec<_> = trials.into_iter().filter_map(|statement| statement.waits.as_ref()).collect();
    if known.is_empty() {
        return None;
    }
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (wait, samples) in known.into_iter().flatten() {
        let sum = sums.entry(wait).or_default();
        *sum = sum.saturating_add(*samples);
    }
    let all: f64 = sums.values().map(|samples| *samples as f64).sum();
    let mut shares: Vec<WaitShare> = sums
        .into_iter()
        .filter(|(_, samples)| *samples > 0)
        .map(|(wait, samples)| WaitShare { wait: wait.to_owned(), samples, share: samples as f64 / all })
        .collect();
    // Of the same number, work comes first.
    shares.sort_by_key(|share| (std::cmp::Reverse(share.samples), share.wait != CPU));
    Some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_trials_are_summed_and_unknown_ones_are_not_none() {
        let played = |waits: Option<&[(&str, u64)]>| PlayedStatement {
            waits: waits.map(|waits| waits.iter().map(|(wait, n)| ((*wait).to_owned(), *n)).collect()),
            ..PlayedStatement::default()
        };
        assert_eq!(wait_shares([&played(None)]), None);
        assert_eq!(wait_shares([&played(None), &played(Some(&[]))]), Some(Vec::new()));
        let trials =
            [played(Some(&[("Lock:tuple", 3), ("CPU", 1)])), played(Some(&[("CPU", 2), ("IO:WalSync", 2)]))];
        let share = |wait: &str, samples, share| WaitShare { wait: wait.to_owned(), samples, share };
        assert_eq!(
            wait_shares(&trials),
            Some(vec![share("CPU", 3, 0.375), share("Lock:tuple", 3, 0.375), share("IO:WalSync", 2, 0.25)])
        );
    }
}
