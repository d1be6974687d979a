//! The statements of a trial that plays a trace: which take the time, which fail, and their plans.

use std::collections::BTreeMap;

use analysis::statements::{OverTime, WaitShare, over_time, plan_lines, wait_shares};
use model::trace::PlayedStatement;
use plaintext::figures::counted;
use plaintext::table::{Column, GAP, Table};
use plaintext::wrap;
use serde::Serialize;
use store::hlog;

use crate::chart::{Terminal, sparkline};
use crate::text_width::one_line;

/// Statements that a text shows; the other formats have all.
const MAX_SHOWN: usize = 20;
/// Longest text of a statement in a table.
const MAX_CHARS: usize = 100;
/// Waits of a statement in a table.
const MAX_WAITS: usize = 3;
/// Least share of a wait there.
const MIN_SHARE: f64 = 0.05;
/// Columns of a statement's times, on terminals with room for them.
const SPARKLINE_WIDTH: usize = 20;
/// Least width of such a terminal.
const WIDE: usize = 120;

/// The executions of a statement in a trial that plays a trace. Times are from sending it to its complete response.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatementLine {
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its normal form, without values.
    pub text: String,
    /// Executions, failed ones included.
    pub calls: u64,
    /// Failed ones by SQLSTATE.
    pub failures: BTreeMap<String, u64>,
    /// Executions that ended otherwise than recorded.
    pub different: u64,
    /// Executions that did not take place.
    pub not_executed: u64,
    /// Rows received.
    pub rows: u64,
    /// Time of all successful executions, in microseconds.
    pub total_us: f64,
    /// The same as a share of that of all statements; null if that is 0.
    pub share: Option<f64>,
    /// Mean time of a successful execution, in microseconds; null without any.
    pub mean_us: Option<f64>,
    /// The 99th percentile, in microseconds; null without any.
    pub p99_us: Option<f64>,
    /// Executions over the recorded time of the trace; null if unknown, as in bundles of before.
    pub over_time: Option<OverTime>,
    /// What its sessions waited for when they were sampled, the most frequent first; null if unknown.
    pub waits: Option<Vec<WaitShare>>,
    /// Why waits are unknown.
    pub without_waits: Option<String>,
    /// The plan after the load, a line for each node; empty if the server showed none.
    pub plan: Vec<String>,
    /// Why there is no plan.
    pub without_plan: Option<String>,
}

impl StatementLine {
    /// All statements of a trial, those that take the most time first.
    pub(super) fn of(played: &[PlayedStatement]) -> Vec<Self> {
        let whole_ns: u64 = played.iter().map(|statement| statement.total_ns).sum();
        let line = |statement: &PlayedStatement| Self {
            fingerprint: statement.fingerprint.clone(),
            text: statement.text.clone(),
            calls: statement.calls,
            failures: statement.failures.clone(),
            different: statement.different,
            not_executed: statement.not_executed,
            rows: statement.rows,
            total_us: statement.total_ns as f64 / 1e3,
            share: (whole_ns > 0).then(|| statement.total_ns as f64 / whole_ns as f64),
            mean_us: statement.mean_us(),
            p99_us: hlog::values_of(&statement.latency_ns)
                .and_then(|latencies| hlog::quantile_us(&latencies, 0.99)),
            over_time: over_time([statement]),
            waits: wait_shares([statement]),
            without_waits: statement.without_waits.clone(),
            plan: plan_lines(statement.plan.as_ref()),
            without_plan: statement.without_plan.clone(),
        };
        let mut lines: Vec<Self> = played.iter().map(line).collect();
        lines.sort_by(|a, b| b.total_us.total_cmp(&a.total_us));
        lines
    }

    /// `CPU 62%, IO:DataFileRead 30%`: the most frequent waits; empty without samples.
    fn waits(&self) -> String {
        let Some(waits) = &self.waits else { return GAP.to_owned() };
        let frequent = waits.iter().take(MAX_WAITS).filter(|wait| wait.share >= MIN_SHARE);
        let in_words = |wait: &WaitShare| format!("{} {:.0}%", wait.wait, wait.share * 100.0);
        frequent.map(in_words).collect::<Vec<_>>().join(", ")
    }

    /// `57014 3, 40P01`: SQLSTATEs, with their counts if they are several.
    pub(super) fn failures(&self) -> String {
        let in_words = |(state, count): (&String, &u64)| match count {
            1 => state.clone(),
            count => format!("{state} {count}"),
        };
        self.failures.iter().map(in_words).collect::<Vec<_>>().join(", ")
    }
}

/// The statements that take the most time, within `width` columns; empty if no trace was played.
pub(super) fn statements(all: &[StatementLine], terminal: Option<Terminal>, width: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        "#calls",
        "#time %",
        "#mean ms",
        "#99% ms",
        "#failed",
        "#different",
        "fingerprint",
        "statement",
    ]);
    let ms = |us: Option<f64>| us.map_or_else(|| GAP.to_owned(), |us| format!("{:.3}", us / 1e3));
    for line in all.iter().take(MAX_SHOWN) {
        table.push(vec![
            line.calls.to_string(),
            line.share.map_or_else(|| GAP.to_owned(), |share| format!("{:.1}", share * 100.0)),
            ms(line.mean_us),
            ms(line.p99_us),
            line.failures.values().sum::<u64>().to_string(),
            line.different.to_string(),
            line.fingerprint.clone(),
            one_line(&line.text, MAX_CHARS),
        ]);
    }
    if all.iter().any(|line| line.waits.is_some()) {
        let at = table.columns.len() - 2;
        table.columns.insert(at, Column { name: "waits".to_owned(), numeric: false });
        for (row, line) in table.rows.iter_mut().zip(all) {
            row.insert(at, line.waits());
        }
    }
    if terminal.is_some_and(|terminal| terminal.width >= WIDE) {
        let at = table.columns.len() - 2;
        table.columns.insert(at, Column { name: "mean over the trace".to_owned(), numeric: false });
        for (row, line) in table.rows.iter_mut().zip(all) {
            let means = line.over_time.as_ref().map(|of| of.mean_us.as_slice()).unwrap_or_default();
            row.insert(at, sparkline(means, SPARKLINE_WIDTH));
        }
    }
    let more = all.len().saturating_sub(MAX_SHOWN);
    let rest = match more {
        0 => String::new(),
        more => wrap(&format!("{}: --format json and csv have all.", counted(more, "more statement")), width),
    };
    table.fitted(width) + &rest
}

/// A row of the table of all figures: its section, name, value and unit.
pub(super) type Figure = (String, &'static str, Option<String>, &'static str);

/// All figures of all statements.
pub(super) fn long(all: &[StatementLine]) -> Vec<Figure> {
    let figures = |line: &StatementLine| {
        let section = format!("statement {}", line.fingerprint);
        let real = |figure: Option<f64>| figure.map(|figure| figure.to_string());
        let failures = (!line.failures.is_empty()).then(|| line.failures());
        [
            (section.clone(), "text", Some(line.text.clone()), ""),
            (section.clone(), "calls", Some(line.calls.to_string()), ""),
            (section.clone(), "failures", failures, ""),
            (section.clone(), "different", Some(line.different.to_string()), ""),
            (section.clone(), "not executed", Some(line.not_executed.to_string()), ""),
            (section.clone(), "rows", Some(line.rows.to_string()), ""),
            (section.clone(), "time", Some(line.total_us.to_string()), "us"),
            (section.clone(), "mean", real(line.mean_us), "us"),
            (section, "99%", real(line.p99_us), "us"),
        ]
    };
    all.iter().flat_map(figures).collect()
}

#[cfg(test)]
mod tests {
    use model::trace::{OverTime as RecordedTimes, Slice};

    use super::*;

    fn statement(fingerprint: &str, text: &str, total_ns: u64) -> PlayedStatement {
        PlayedStatement {
            fingerprint: fingerprint.to_owned(),
            text: text.to_owned(),
            calls: 12,
            failures: BTreeMap::from([("40P01".to_owned(), 1), ("57014".to_owned(), 3)]),
            different: 2,
            total_ns,
            ..PlayedStatement::default()
        }
    }

    #[test]
    fn statements_are_ordered_by_their_time() {
        let played = [statement("a1", "SELECT $1", 16_000_000), statement("b2", "UPDATE\n  t", 48_000_000)];
        let lines = StatementLine::of(&played);
        assert_eq!(lines[0].fingerprint, "b2");
        // Of the 8 that succeeded.
        assert_eq!((lines[0].share, lines[0].mean_us, lines[0].p99_us), (Some(0.75), Some(6000.0), None));
        let text = statements(&lines, None, 100);
        assert_eq!(
            text,
            "calls  time %  mean ms  99% ms  failed  different  fingerprint  statement\n\
             \x20  12    75.0    6.000       –       4          2  b2           UPDATE t\n\
             \x20  12    25.0    2.000       –       4          2  a1           SELECT $1\n"
        );
        let failures = long(&lines).into_iter().find(|(_, name, ..)| *name == "failures").unwrap();
        assert_eq!(failures.2.unwrap(), "40P01, 57014 3");
        assert!(statements(&[], None, 100).is_empty());
        let many: Vec<PlayedStatement> =
            (0..25).map(|at| statement(&at.to_string(), "SELECT 1", 1_000)).collect();
        let text = statements(&StatementLine::of(&many), None, 100);
        assert!(text.ends_with("SELECT 1\n5 more statements: --format json and csv have all.\n"), "{text}");
    }

    #[test]
    fn waits_and_times_over_the_trace_are_shown_where_they_are_known() {
        let slices = [(0, 1_000_000), (50, 8_000_000)].map(|(number, total_ns)| Slice {
            number,
            calls: 1,
            failures: 0,
            total_ns,
        });
        let waiting = PlayedStatement {
            waits: Some(
                [("CPU", 5), ("IO:DataFileRead", 14), ("LWLock:WALWrite", 1), ("Lock:tuple", 0)]
                    .map(|(wait, n)| (wait.to_owned(), n))
                    .into(),
            ),
            over_time: Some(RecordedTimes { slice_us: 1, slices: slices.into() }),
            ..statement("a1", "SELECT $1", 16_000_000)
        };
        let lines = StatementLine::of(&[waiting, statement("b2", "COMMIT", 1_000)]);
        let plain = statements(&lines, None, 200);
        assert!(plain.contains("IO:DataFileRead 70%, CPU 25%, LWLock:WALWrite 5%"), "{plain}");
        assert!(!plain.contains('█'), "{plain}");
        let terminal = Terminal { width: 200, colours: false };
        let drawn = statements(&lines, Some(terminal), 200);
        assert!(drawn.contains("▁·········█·········"), "{drawn}");
    }
}
