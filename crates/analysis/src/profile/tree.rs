//! Stacks as a tree of functions, for the report's flame graphs.

use std::collections::BTreeMap;

use model::profile::Stacks;
use serde::Serialize;

/// Functions with a smaller share of their role are combined: they would be too narrow to see.
const MIN_SHARE: f64 = 0.001;
/// Name of combined functions.
const COMBINED: &str = "(smaller)";

/// The role of processes that have none.
const FOREIGN: &str = "foreign";

#[derive(Default)]
struct Node<'a> {
    own: u64,
    total: u64,
    children: BTreeMap<&'a str, Node<'a>>,
}

/// The samples of a role as a tree: the root is the role, below it are names of processes and then functions, those
/// with most samples first.
pub fn tree(stacks: &Stacks) -> Frame {
    let mut root = Node::default();
    for (stack, &samples) in &stacks.samples {
        root.total += samples;
        let mut node = &mut root;
        // The functions of other programs do not matter to a report.
        let depth = if stacks.role == FOREIGN { 1 } else { usize::MAX };
        for frame in stack.split(';').take(depth) {
            node = node.children.entry(frame).or_default();
            node.total += samples;
        }
        node.own += samples;
    }
    let least = (root.total as f64 * MIN_SHARE).ceil() as u64;
    root.frame(&stacks.role, least)
}

impl Node<'_> {
    fn frame(self, name: &str, least: u64) -> Frame {
        let mut children = Vec::new();
        let mut folded = 0;
        for (name, child) in self.children {
            match child.total < least {
                true => folded += child.total,
                false => children.push(child.frame(name, least)),
            }
        }
        children.sort_by(|a, b| (b.total, &a.name).cmp(&(a.total, &b.name)));
        if folded > 0 {
            children.push(Frame {
                name: COMBINED.to_owned(),
                own: folded,
                total: folded,
                children: Vec::new(),
            });
        }
        Frame { name: name.to_owned(), own: self.own, total: self.total, children }
    }
}

/// A function at one place of the call tree; above all functions, the name of a process, and above that a role.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Frame {
    /// Name; the kernel's functions end in `_[k]`.
    pub name: String,
    /// Samples in the function itself.
    #[serde(rename = "self")]
    pub own: u64,
    /// Samples in the function or the functions that it called.
    pub total: u64,
    /// Functions that it called, the most samples first. Those below 0.1 % of the role are combined in the last one.
    pub children: Vec<Frame>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_frames_are_combined() {
        let text = "p;main;a;b 1500\np;main;a;c 1\np;main;d;e 1\np;main 498\n";
        let foreign = tree(&Stacks::from_folded("foreign", text).unwrap());
        assert_eq!((foreign.children.len(), foreign.children[0].own), (1, 2000), "by process alone");
        let tree = tree(&Stacks::from_folded("load", text).unwrap());
        assert_eq!(
            serde_json::to_string(&tree).unwrap(),
            "{\"name\":\"load\",\"self\":0,\"total\":2000,\"children\":[\
             {\"name\":\"p\",\"self\":0,\"total\":2000,\"children\":[\
             {\"name\":\"main\",\"self\":498,\"total\":2000,\"children\":[\
             {\"name\":\"a\",\"self\":0,\"total\":1501,\"children\":[\
             {\"name\":\"b\",\"self\":1500,\"total\":1500,\"children\":[]},\
             {\"name\":\"(smaller)\",\"self\":1,\"total\":1,\"children\":[]}]},\
             {\"name\":\"(smaller)\",\"self\":1,\"total\":1,\"children\":[]}]}]}]}"
        );
    }
}
