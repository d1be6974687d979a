//! Stacks as a tree of functions, for the report's flame graphs.

use std::collections::BTreeMap;

use model::profile::Stacks;
use serde::Serialize;
use stats::mean_half_width;

use super::Profile;

/// Functions with a smaller share of their role are combined: they would be too narrow to see.
const MIN_SHARE: f64 = 0.001;
/// Name of combined functions.
const COMBINED: &str = "(smaller)";

/// The role of processes that have none.
const FOREIGN: &str = "foreign";

/// Level of the intervals by the spread between trials.
const LEVEL: f64 = 0.95;

#[derive(Default)]
struct Node<'a> {
    own: Samples,
    total: Samples,
    children: BTreeMap<&'a str, Node<'a>>,
}

/// Samples of a profile, and of each of its trials.
#[derive(Default)]
struct Samples {
    all: u64,
    by_trial: Vec<u64>,
}

impl Samples {
    fn add(&mut self, samples: u64, trial: Option<usize>) {
        let Some(trial) = trial else {
            self.all += samples;
            return;
        };
        self.by_trial.resize(self.by_trial.len().max(trial + 1), 0);
        self.by_trial[trial] += samples;
    }

    /// Half of the 95 % interval by the spread between trials, in samples of the whole profile: a trial's samples count as
    /// often as its transactions are contained in those of the profile.
    fn margin(&self, weights: &[f64]) -> Option<u64> {
        let of_trial = |trial: usize| self.by_trial.get(trial).copied().unwrap_or_default() as f64;
        let scaled: Vec<f64> =
            weights.iter().enumerate().map(|(trial, weight)| of_trial(trial) * weight).collect();
        Some(mean_half_width(&scaled, LEVEL)?.round() as u64)
    }
}

/// The samples of each role as a tree, the role with most samples first: the root is the role, below it are names of
/// processes and then functions, those with most samples first.
pub fn trees(profile: &Profile) -> Vec<Frame> {
    let all = profile.transactions;
    let weight = |of_trial: &Option<f64>| Some(all? / of_trial.filter(|transactions| *transactions > 0.0)?);
    // Without transactions, nothing can be compared.
    let weights: Vec<f64> =
        profile.by_trial.iter().map(|(of, _)| weight(of)).collect::<Option<_>>().unwrap_or_default();
    profile.stacks.iter().map(|stacks| tree(stacks, &profile.by_trial, &weights)).collect()
}

fn tree(stacks: &Stacks, by_trial: &[(Option<f64>, Vec<Stacks>)], weights: &[f64]) -> Frame {
    let mut root = Node::default();
    root.add(stacks, None);
    for (trial, (_, roles)) in by_trial.iter().enumerate() {
        if let Some(stacks) = roles.iter().find(|of| of.role == stacks.role) {
            root.add(stacks, Some(trial));
        }
    }
    let least = (root.total.all as f64 * MIN_SHARE).ceil() as u64;
    root.frame(&stacks.role, least, weights)
}

impl<'a> Node<'a> {
    /// Adds the stacks of the whole profile, or those of a trial.
    fn add(&mut self, stacks: &'a Stacks, trial: Option<usize>) {
        // The functions of other programs do not matter to a report.
        let depth = if stacks.role == FOREIGN { 1 } else { usize::MAX };
        for (stack, &samples) in &stacks.samples {
            let mut node = &mut *self;
            node.total.add(samples, trial);
            for frame in stack.split(';').take(depth) {
                node = node.children.entry(frame).or_default();
                node.total.add(samples, trial);
            }
            node.own.add(samples, trial);
        }
    }

    fn frame(self, name: &str, least: u64, weights: &[f64]) -> Frame {
        let mut children = Vec::new();
        let mut folded = Samples::default();
        for (name, child) in self.children {
            if child.total.all >= least {
                children.push(child.frame(name, least, weights));
                continue;
            }
            folded.add(child.total.all, None);
            child.total.by_trial.iter().enumerate().for_each(|(trial, of)| folded.add(*of, Some(trial)));
        }
        children.sort_by(|a, b| (b.total, &a.name).cmp(&(a.total, &b.name)));
        if folded.all > 0 {
            let margin = folded.margin(weights);
            children.push(Frame {
                name: COMBINED.to_owned(),
                own: folded.all,
                total: folded.all,
                own_margin: margin,
                margin,
                children: Vec::new(),
            });
        }
        Frame {
            name: name.to_owned(),
            own: self.own.all,
            total: self.total.all,
            own_margin: self.own.margin(weights),
            margin: self.total.margin(weights),
            children,
        }
    }
}

/// A function at one place of the call tree; above all functions, the name of a process, and above that a role.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Name; the kernel's functions end in `_[k]`.
    pub name: String,
    /// Samples in the function itself.
    #[serde(rename = "self")]
    pub own: u64,
    /// Samples in the function or the functions that it called.
    pub total: u64,
    /// Half of the 95 % interval of `self` by the spread between trials, in samples; null with one trial, or if
    /// transactions are unknown.
    #[serde(rename = "self_margin")]
    pub own_margin: Option<u64>,
    /// Half of the 95 % interval of `total`, likewise.
    pub margin: Option<u64>,
    /// Functions that it called, the most samples first. Those below 0.1 % of the role are combined in the last one.
    pub children: Vec<Frame>,
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    /// A profile of trials with these transactions and folded stacks.
    fn profile(role: &str, trials: &[(f64, &str)]) -> Profile {
        let stacks = |folded: &str| vec![Stacks::from_folded(role, folded).unwrap()];
        let folded: String = trials.iter().map(|(_, folded)| *folded).collect();
        let by_trial = trials.iter().map(|(transactions, folded)| (Some(*transactions), stacks(folded)));
        Profile {
            kind: Kind::OnCpu,
            cell: String::new(),
            trials: Vec::new(),
            taken: Vec::new(),
            transactions: Some(trials.iter().map(|(transactions, _)| transactions).sum()),
            tps_outside: None,
            us_per_sample: 1000.0,
            stacks: stacks(&folded),
            by_trial: by_trial.collect(),
        }
    }

    #[test]
    fn narrow_frames_are_combined() {
        let text = "p;main;a;b 1500\np;main;a;c 1\np;main;d;e 1\np;main 498\n";
        let foreign = &trees(&profile("foreign", &[(1.0, text)]))[0];
        assert_eq!((foreign.children.len(), foreign.children[0].own), (1, 2000), "by process alone");
        let tree = &trees(&profile("load", &[(1.0, text)]))[0];
        let json = serde_json::to_string(tree).unwrap();
        assert_eq!(
            json.replace("\"self_margin\":null,\"margin\":null,", ""),
            "{\"name\":\"load\",\"self\":0,\"total\":2000,\"children\":[\
             {\"name\":\"p\",\"self\":0,\"total\":2000,\"children\":[\
             {\"name\":\"main\",\"self\":498,\"total\":2000,\"children\":[\
             {\"name\":\"a\",\"self\":0,\"total\":1501,\"children\":[\
             {\"name\":\"b\",\"self\":1500,\"total\":1500,\"children\":[]},\
             {\"name\":\"(smaller)\",\"self\":1,\"total\":1,\"children\":[]}]},\
             {\"name\":\"(smaller)\",\"self\":1,\"total\":1,\"children\":[]}]}]}]}"
        );
    }

    #[test]
    fn margins_are_those_of_the_samples_per_transaction_of_the_trials() {
        // The second trial has twice the transactions and samples: the functions cost the same in both.
        let equal = &trees(&profile("load", &[(10.0, "p;a 100\np;b 50\n"), (20.0, "p;a 200\np;b 100\n")]))[0];
        assert_eq!((equal.total, equal.margin), (450, Some(0)));
        // Of 4 transactions, function a takes 120, 160 and 200 samples: t(2) = 4.303, s = 40, n = 3.
        let trials = [(1.0, "p;a 30\n"), (1.0, "p;a 40\np;b 3\n"), (2.0, "p;a 100\n")];
        let spread = &trees(&profile("load", &trials))[0].children[0];
        let [a, b] = &spread.children[..] else { panic!("{spread:?}") };
        assert_eq!((a.total, a.margin, a.own_margin), (170, Some(99), Some(99)));
        // 0, 12 and 0 samples.
        assert_eq!((b.total, b.margin), (3, Some(17)));
        assert_eq!(spread.own_margin, Some(0));
        let mut unknown = profile("load", &trials);
        unknown.by_trial[1].0 = None;
        assert_eq!(trees(&unknown)[0].margin, None);
    }
}
