//! The plans of statements: EXPLAIN of a recorded call, reduced to what a plan is apart from costs and literals.
//!
//! EXPLAIN without ANALYZE executes nothing, but what is with it in one message would be: statements are therefore sent by the
//! extended protocol, which takes one at a time, in a transaction that is read-only and rolled back.

use std::time::Duration;

use model::trace::{PlanNode, PlayedStatement};
use serde_json::Value;
use wire::ConnectParams;
use wire::blocking::{Session, SessionError};

use super::Call;
use super::counter::CountedStatement;

/// Statements whose plans are asked for: those with the most time.
const MAX_PLANS: usize = 2_000;
/// Time without a response after which the connection is given up.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Begins the transaction of a plan.
const BEGIN: &str = "begin read only; set local statement_timeout = '5s'; set local lock_timeout = '1s'";

/// The figures of statements, with their plans.
pub(super) fn with_plans(
    statements: Vec<CountedStatement>,
    connection: &ConnectParams,
) -> impl Iterator<Item = PlayedStatement> {
    let mut session = Session::connect(connection).and_then(|mut session| {
        session.set_timeout(TIMEOUT)?;
        Ok(session)
    });
    statements.into_iter().enumerate().map(move |(at, CountedStatement { mut figures, call, .. })| {
        let plan = match (&call, &mut session) {
            (None, _) => Err("not a statement with a plan".to_owned()),
            _ if at >= MAX_PLANS => Err(format!("not among the {MAX_PLANS} statements with the most time")),
            (_, Err(_)) => Err("the server could not be connected to, or was lost".to_owned()),
            (Some(call), Ok(open)) => plan(open, call).map_err(|error| {
                let why = reason(&error);
                if error.server_error().is_none() {
                    session = Err(error);
                }
                why
            }),
        };
        match plan {
            Ok(plan) if plan.node.is_empty() => figures.without_plan = Some("no plan was shown".to_owned()),
            Ok(plan) => figures.plan = Some(plan),
            Err(why) => figures.without_plan = Some(why),
        }
        figures
    })
}

/// Why there is no plan, without values: messages of the server may have them.
fn reason(error: &SessionError) -> String {
    match error.server_error().and_then(|error| error.code()) {
        Some(state) => format!("SQLSTATE {state}"),
        None => "the connection was lost".to_owned(),
    }
}

fn plan(session: &mut Session, call: &Call) -> Result<PlanNode, SessionError> {
    session.execute(BEGIN)?;
    let shown = explain(session, call);
    // After an error of the server the session goes on.
    session.execute("rollback")?;
    let shown = shown?;
    Ok(serde_json::from_str(&shown)
        .ok()
        .and_then(|document: Value| node(&document[0]["Plan"]))
        .unwrap_or_default())
}

fn explain(session: &mut Session, call: &Call) -> Result<String, SessionError> {
    let sql = format!("explain (format json, costs off) {}", call.text);
    let results = session.query_with_values(&sql, &call.values)?;
    let value = results.last().and_then(|result| result.last_row()).and_then(|mut row| row.next());
    Ok(value.flatten().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default())
}

/// A node of EXPLAIN's JSON.
fn node(of: &Value) -> Option<PlanNode> {
    let text = |key: &str| of[key].as_str();
    let kind = text("Node Type")?;
    let mut name = match (kind, text("Strategy"), text("Operation"), text("Command")) {
        // As in EXPLAIN's text.
        ("Aggregate", Some("Hashed"), ..) => "HashAggregate".to_owned(),
        ("Aggregate", Some("Sorted"), ..) => "GroupAggregate".to_owned(),
        ("Aggregate", Some("Mixed"), ..) => "MixedAggregate".to_owned(),
        ("ModifyTable", _, Some(operation), _) => operation.to_owned(),
        ("SetOp", Some("Hashed"), _, Some(command)) => format!("HashSetOp {command}"),
        ("SetOp", _, _, Some(command)) => format!("SetOp {command}"),
        _ => kind.to_owned(),
    };
    if let Some(mode @ ("Partial" | "Finalize")) = text("Partial Mode") {
        name = format!("{mode} {name}");
    }
    if of["Parallel Aware"] == Value::Bool(true) {
        name = format!("Parallel {name}");
    }
    if text("Scan Direction") == Some("Backward") {
        name.push_str(" Backward");
    }
    let relation =
        ["Relation Name", "CTE Name", "Function Name", "Tuplestore Name"].into_iter().find_map(text);
    let keys = ["Sort Key", "Group Key"].into_iter().find_map(|key| of[key].as_array());
    let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(without_literals).collect();
    let plans = of["Plans"].as_array().into_iter().flatten().filter_map(node).collect();
    Some(PlanNode {
        node: name,
        relation: relation.map(str::to_owned),
        index: text("Index Name").map(str::to_owned),
        join: text("Join Type").map(str::to_owned),
        keys,
        plans,
    })
}

/// An expression with `?` in place of its strings and numbers.
fn without_literals(expression: &str) -> String {
    let mut out = String::new();
    let mut rest = expression.chars().peekable();
    let mut is_in_word = false;
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                out.push(c);
                for inner in rest.by_ref() {
                    out.push(inner);
                    if inner == '"' {
                        break;
                    }
                }
            }
            '\'' => {
                // A doubled quote within is the end of one part and the beginning of the next.
                rest.by_ref().find(|inner| *inner == '\'');
                if !out.ends_with('?') {
                    out.push('?');
                }
            }
            '0'..='9' if !is_in_word => {
                while rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '.').is_some() {}
                out.push('?');
            }
            _ => out.push(c),
        }
        is_in_word = c.is_alphanumeric() || matches!(c, '_' | '$' | '"');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_has_neither_costs_nor_literals() {
        let shown = json!({
            "Node Type": "Aggregate", "Strategy": "Sorted", "Partial Mode": "Finalize", "Parallel Aware": false,
            "Group Key": ["t1.v2", "(\"a'b1\" || 'it''s 5'::text)", "(v0 + 12.5)"], "Total Cost": 8.1,
            "Plans": [{
                "Node Type": "Index Scan", "Scan Direction": "Backward", "Index Name": "t1_v2", "Relation Name": "t1",
                "Index Cond": "(v2 = 77)", "Parallel Aware": true
            }]
        });
        let plan = node(&shown).unwrap();
        assert_eq!(plan.node, "Finalize GroupAggregate");
        assert_eq!(plan.keys, ["t1.v2", "(\"a'b1\" || ?::text)", "(v0 + ?)"]);
        let scan = &plan.plans[0];
        assert_eq!(
            (scan.node.as_str(), scan.relation.as_deref(), scan.index.as_deref()),
            ("Parallel Index Scan Backward", Some("t1"), Some("t1_v2"))
        );
        assert!(!serde_json::to_string(&plan).unwrap().contains("77"));
        assert_eq!(node(&json!({})), None);
    }
}
