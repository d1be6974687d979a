//! Callers and callees of one function.

use std::collections::BTreeMap;

use model::profile::Stacks;

use super::functions::{frames, is_named};

/// A function in some stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callers {
    /// Samples in which it is the innermost function.
    pub own: u64,
    /// Samples that contain it.
    pub inclusive: u64,
    /// Samples by caller, the most first. For a recursive function, the caller of the outermost call; none if it is the
    /// outermost function.
    pub callers: Vec<(String, u64)>,
    /// Samples by callee, the most first. For a recursive function, the callee of the innermost call. Together with its
    /// own samples they add up to its inclusive ones.
    pub callees: Vec<(String, u64)>,
}

/// Finds a function in some stacks; `None` if no stack contains it.
pub fn callers(stacks: &Stacks, name: &str) -> Option<Callers> {
    let mut found = Callers::default();
    let (mut callers, mut callees) = (BTreeMap::new(), BTreeMap::new());
    for (stack, &samples) in &stacks.samples {
        let frames: Vec<&str> = frames(stack).collect();
        let is_it = |frame: &&str| is_named(frame, name);
        let (Some(first), Some(last)) = (frames.iter().position(is_it), frames.iter().rposition(is_it))
        else {
            continue;
        };
        found.inclusive += samples;
        if let Some(caller) = first.checked_sub(1) {
            *callers.entry(frames[caller]).or_default() += samples;
        }
        match frames.get(last + 1).copied() {
            Some(callee) => *callees.entry(callee).or_default() += samples,
            None => found.own += samples,
        }
    }
    found.callers = most_first(callers);
    found.callees = most_first(callees);
    (found.inclusive > 0).then_some(found)
}

fn most_first<S: AsRef<str>>(counts: BTreeMap<S, u64>) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> =
        counts.into_iter().map(|(name, samples)| (name.as_ref().to_owned(), samples)).collect();
    counts.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_and_callees_add_up() {
        let text = "p;main;a;walk;walk;eval 3\np;main;walk 2\np;walk;read_[k] 1\np;main;other 9\n";
        let stacks = Stacks::from_folded("load", text).unwrap();
        let owned =
            |names: &[(&str, u64)]| names.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect::<Vec<_>>();
        let found = callers(&stacks, "walk").unwrap();
        assert_eq!((found.own, found.inclusive), (2, 6));
        assert_eq!(found.callers, owned(&[("a", 3), ("main", 2)]));
        assert_eq!(found.callees, owned(&[("eval", 3), ("read_[k]", 1)]));
        assert_eq!(callers(&stacks, "read").unwrap().inclusive, 1);
        assert_eq!(callers(&stacks, "p"), None, "a process is no function");
    }
}
