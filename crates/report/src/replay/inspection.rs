//! What is in a trace, as text.

use ::replay::{Inspection, Missing, NameCount};
use plaintext::figures::{bytes, counted, duration, grouped, times, tps};
use plaintext::table::{Format, GAP, Table};

use crate::chart::Terminal;
use crate::text_width::{fitted, one_line, wrapped};

/// Statements in a table for people.
const STATEMENTS: usize = 20;
/// Names in a line.
const NAMES: usize = 5;
/// Characters of a statement in a table for people.
const STATEMENT_CHARS: usize = 100;
/// From this shortest duration on, of at least so many statements, the server has probably logged slow ones only.
const SLOW_US: u64 = 1_000;
const SLOW_STATEMENTS: u64 = 100;

/// An inspection as text: for people as lines and a table or Markdown; `Csv` has all statements. JSON is the inspection
/// itself.
pub fn text(inspection: &Inspection, format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Csv => statements(inspection, usize::MAX, None).render(Format::Csv),
        format => page(inspection, format, terminal),
    }
}

fn page(inspection: &Inspection, format: Format, terminal: Option<Terminal>) -> String {
    let is_markdown = format == Format::Markdown;
    let mut out = String::new();
    for line in facts(inspection) {
        out += &if is_markdown { format!("{line}  \n") } else { wrapped(&line, terminal) };
    }
    let table = statements(inspection, STATEMENTS, Some(STATEMENT_CHARS));
    let shown = table.rows.len();
    let title = match inspection.statements.len() {
        all if all > shown => {
            format!("The {shown} statements with the most time, of {all} (--format csv has all)")
        }
        _ => "Statements, those with the most time first".to_owned(),
    };
    out += &heading(&title, is_markdown);
    out += &match terminal {
        Some(terminal) if !is_markdown => table.fitted(terminal.width),
        _ => table.render(format),
    };
    let left_out = if inspection.is_synthetic { "Not as it was executed" } else { "Will not replay" };
    for (title, missing) in [(left_out, &inspection.left_out), ("Could not be read", &inspection.problems)] {
        if !missing.is_empty() {
            out += &heading(title, is_markdown);
            out += &missing.iter().map(|missing| line(missing, is_markdown, terminal)).collect::<String>();
        }
    }
    out
}

fn heading(title: &str, is_markdown: bool) -> String {
    if is_markdown { format!("\n### {title}\n\n") } else { format!("\n{title}\n") }
}

fn line(missing: &Missing, is_markdown: bool, terminal: Option<Terminal>) -> String {
    let Missing { count, description, first, .. } = missing;
    let count = grouped(&count.to_string());
    if is_markdown {
        return format!("- {count} {description} (first: {first})\n");
    }
    fitted(&format!("  {count} {description} (first: {first})\n"), terminal)
}

/// Lines on the whole trace.
fn facts(inspection: &Inspection) -> Vec<String> {
    let count = |number: u64| grouped(&number.to_string());
    let period = inspection.period;
    let mut facts = vec![
        format!("period        {}, from {:.3} to {:.3}", duration(period.length_s), period.from, period.to),
        format!(
            "sessions      {}, at most {} at a time",
            count(inspection.sessions),
            count(inspection.peak_sessions)
        ),
        format!(
            "statements    {}, {} a second on average, {} at most",
            count(inspection.executions),
            tps(inspection.mean_rate),
            count(inspection.peak_rate)
        ),
        format!(
            "              {} by the extended protocol; {} begin a transaction block; {} depend on commits of other sessions",
            count(inspection.extended),
            count(inspection.blocks),
            count(inspection.dependent)
        ),
    ];
    let failed: u64 = inspection.failures.values().sum();
    if failed > 0 {
        let mut states: Vec<(&String, &u64)> = inspection.failures.iter().collect();
        states.sort_by_key(|(state, count)| (std::cmp::Reverse(**count), (*state).clone()));
        let states = states.iter().map(|(state, number)| {
            let state = if state.is_empty() { "unknown SQLSTATE" } else { state };
            format!("{state} {}", count(**number))
        });
        facts.push(format!("failures      {}: {}", count(failed), listed(states.collect())));
    }
    for (title, names) in [
        ("roles       ", &inspection.names.users),
        ("databases   ", &inspection.names.databases),
        ("applications", &inspection.names.applications),
    ] {
        if names.iter().any(|name| !name.name.is_empty()) {
            let name = |NameCount { name, sessions }: &NameCount| {
                let name = if name.is_empty() { "unknown" } else { name };
                format!("{name} {}", count(*sessions))
            };
            facts.push(format!("{title}  {}", listed(names.iter().map(name).collect())));
        }
    }
    for log in &inspection.logs {
        let prefix = log.prefix.as_ref().map(|prefix| format!(" with '{prefix}'")).unwrap_or_default();
        let entries = grouped(&log.entries.to_string());
        let title = if inspection.is_synthetic { "snapshot" } else { "log     " };
        facts.push(format!(
            "{title}      {}, {}{prefix}, {}, {entries} entries",
            log.file,
            log.format,
            bytes(log.bytes)
        ));
    }
    if inspection.is_synthetic {
        facts.push("values        drawn; times and sessions, too: the snapshots have only how often statements were executed".to_owned());
    }
    if inspection.is_anonymized {
        facts.push("values        replaced".to_owned());
    }
    if inspection.with_duration == 0 {
        facts.push("durations     none; the server logs them with log_min_duration_statement = 0 or log_duration = on".to_owned());
    } else if inspection.with_duration >= SLOW_STATEMENTS
        && let Some(shortest_us) = inspection.shortest_us.filter(|shortest_us| *shortest_us >= SLOW_US)
    {
        facts.push(format!(
            "durations     none below {}: the server has probably logged slow statements only, so that most are missing \
             (log_min_duration_statement = 0 logs all)",
            times([Some(shortest_us as f64)]).into_iter().flatten().collect::<String>()
        ));
    }
    facts
}

/// The first of some texts, and how many there are more.
fn listed(texts: Vec<String>) -> String {
    let more = texts.len().saturating_sub(NAMES);
    let mut list = texts.into_iter().take(NAMES).collect::<Vec<_>>().join(", ");
    if more > 0 {
        list += &format!(", and {}", counted(more, "other"));
    }
    list
}

/// The first statements; their texts in one line and shortened, if there is a limit.
fn statements(inspection: &Inspection, rows: usize, chars: Option<usize>) -> Table {
    let mut table =
        Table::new(["#calls", "#time %", "#mean ms", "#max ms", "#failed", "fingerprint", "statement"]);
    for statement in inspection.statements.iter().take(rows) {
        let text = statement_text(&statement.text, chars);
        let ms = |us: Option<f64>| us.map_or_else(|| GAP.to_owned(), |us| format!("{:.3}", us / 1e3));
        table.push(vec![
            statement.calls.to_string(),
            format!("{:.1}", statement.share * 100.0),
            ms(statement.mean_us),
            ms(statement.max_us.map(|us| us as f64)),
            statement.failures.to_string(),
            statement.fingerprint.clone(),
            text,
        ]);
    }
    table
}

/// A statement for a table: in one line and shortened, if there is a limit.
pub(super) fn statement_text(text: &str, chars: Option<usize>) -> String {
    chars.map_or_else(|| text.to_owned(), |limit| one_line(text, limit))
}
