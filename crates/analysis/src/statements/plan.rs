//! Differences of plans: which nodes changed.

use model::trace::PlanNode;

/// Longest text of a part of a plan.
const MAX_CHARS: usize = 300;

/// A part of a plan that another takes the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanChange {
    /// The nodes of the first plan; `None` if the second only has more.
    pub before: Option<String>,
    /// The nodes of the second plan; `None` if it only lacks some.
    pub after: Option<String>,
}

/// The parts in which two plans differ, from the top.
pub(super) fn changes(a: &PlanNode, b: &PlanNode) -> Vec<PlanChange> {
    let mut found = Vec::new();
    compare(a, b, &mut found);
    found
}

fn compare(a: &PlanNode, b: &PlanNode, found: &mut Vec<PlanChange>) {
    if is_same_node(a, b) && a.plans.len() == b.plans.len() {
        for (a, b) in a.plans.iter().zip(&b.plans) {
            compare(a, b, found);
        }
    } else if let Some((above, below)) = below_the_added(b, a) {
        found.push(PlanChange { before: None, after: Some(above) });
        compare(a, below, found);
    } else if let Some((above, below)) = below_the_added(a, b) {
        found.push(PlanChange { before: Some(above), after: None });
        compare(below, b, found);
    } else {
        found.push(PlanChange { before: Some(part_text(a)), after: Some(part_text(b)) });
    }
}

/// The nodes of `of` above one that is like `wanted`, and that node, if each of them has one input.
fn below_the_added<'a>(of: &'a PlanNode, wanted: &PlanNode) -> Option<(String, &'a PlanNode)> {
    let mut above = vec![label(of)];
    let mut node = of;
    while let [only] = node.plans.as_slice() {
        if is_same_node(only, wanted) && only.plans.len() == wanted.plans.len() {
            return Some((above.join(" > "), only));
        }
        above.push(label(only));
        node = only;
    }
    None
}

fn is_same_node(a: &PlanNode, b: &PlanNode) -> bool {
    (&a.node, &a.relation, &a.index, &a.join, &a.keys) == (&b.node, &b.relation, &b.index, &b.join, &b.keys)
}

/// A node on one line: `Index Scan using t_pkey on t`.
fn label(node: &PlanNode) -> String {
    let mut text = node.node.clone();
    if let Some(join) = node.join.as_ref().filter(|join| *join != "Inner") {
        text.push_str(&format!(" ({join})"));
    }
    if let Some(index) = &node.index {
        text.push_str(&format!(" using {index}"));
    }
    if let Some(relation) = &node.relation {
        text.push_str(&format!(" on {relation}"));
    }
    if !node.keys.is_empty() {
        text.push_str(&format!(" by {}", node.keys.join(", ")));
    }
    text
}

/// A plan, or a part of one, on one line: inputs after `>`, several in parentheses.
fn part_text(node: &PlanNode) -> String {
    let text = whole_text(node);
    match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn whole_text(node: &PlanNode) -> String {
    match node.plans.as_slice() {
        [] => label(node),
        [only] => format!("{} > {}", label(node), whole_text(only)),
        several => {
            let inputs: Vec<String> = several.iter().map(whole_text).collect();
            format!("{} ({})", label(node), inputs.join("; "))
        }
    }
}

/// A plan as lines, inputs indented below their node; empty without one.
pub fn plan_lines(plan: Option<&PlanNode>) -> Vec<String> {
    fn add(node: &PlanNode, depth: usize, out: &mut Vec<String>) {
        out.push(format!("{}{}", "  ".repeat(depth), label(node)));
        for input in &node.plans {
            add(input, depth + 1, out);
        }
    }
    let mut out = Vec::new();
    if let Some(plan) = plan {
        add(plan, 0, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, plans: Vec<PlanNode>) -> PlanNode {
        PlanNode { node: name.to_owned(), plans, ..PlanNode::default() }
    }

    fn scan(index: Option<&str>) -> PlanNode {
        let name = if index.is_some() { "Index Scan" } else { "Seq Scan" };
        let index = index.map(str::to_owned);
        PlanNode { relation: Some("t".to_owned()), index, ..node(name, Vec::new()) }
    }

    fn words(a: &PlanNode, b: &PlanNode) -> Vec<String> {
        let word = |part: &Option<String>| part.clone().unwrap_or_else(|| "–".to_owned());
        changes(a, b)
            .iter()
            .map(|change| format!("{} → {}", word(&change.before), word(&change.after)))
            .collect()
    }

    #[test]
    fn the_changed_node_is_named() {
        let limit = |of: PlanNode| node("Limit", vec![of]);
        let sort = |of: PlanNode| PlanNode { keys: vec!["v".to_owned()], ..node("Sort", vec![of]) };
        let by_index = scan(Some("t_v"));
        assert!(changes(&limit(scan(None)), &limit(scan(None))).is_empty());
        assert_eq!(
            words(&limit(by_index.clone()), &limit(scan(None))),
            ["Index Scan using t_v on t → Seq Scan on t"]
        );
        assert_eq!(
            words(&limit(by_index.clone()), &limit(sort(scan(None)))),
            ["Index Scan using t_v on t → Sort by v > Seq Scan on t"]
        );
        assert_eq!(words(&by_index, &sort(by_index.clone())), ["– → Sort by v"]);
        assert_eq!(words(&limit(by_index.clone()), &by_index), ["Limit → –"]);
        let join = |name: &str, inner: PlanNode| node(name, vec![scan(None), inner]);
        assert_eq!(
            words(&join("Hash Join", scan(None)), &join("Hash Join", by_index.clone())),
            ["Seq Scan on t → Index Scan using t_v on t"]
        );
        assert_eq!(
            words(&join("Hash Join", scan(None)), &join("Nested Loop", by_index)),
            [
                "Hash Join (Seq Scan on t; Seq Scan on t) → Nested Loop (Seq Scan on t; Index Scan using t_v on t)"
            ]
        );
        assert_eq!(plan_lines(Some(&limit(scan(None)))), ["Limit", "  Seq Scan on t"]);
    }
}
