//! What became of a trace that was played, as text.

use ::replay::{LatencyFigures, PlayReport, SpeedSearch, SpeedStep};
use plaintext::figures::{duration, grouped};
use plaintext::table::{Format, Table};

use crate::chart::Terminal;
use crate::text_width::{fitted, wrapped};

/// Kinds of differences in a table for people.
const DIFFERENCES: usize = 20;
/// Characters of a statement in a table for people.
const STATEMENT_CHARS: usize = 80;
/// A lag of the driver from which on the schedule was not kept as recorded, in microseconds.
const LAG_US: f64 = 1_000.0;

/// A playback as text: for people as lines and tables or Markdown; `Csv` has all differences. JSON is the report itself.
pub fn text(report: &PlayReport, format: Format, terminal: Option<Terminal>) -> String {
    match format {
        Format::Csv => differences(report, usize::MAX, None).render(Format::Csv),
        format => page(report, format, terminal),
    }
}

fn page(report: &PlayReport, format: Format, terminal: Option<Terminal>) -> String {
    let is_markdown = format == Format::Markdown;
    let shown = |table: &Table| match terminal {
        Some(terminal) if !is_markdown => table.fitted(terminal.width),
        _ => table.render(format),
    };
    let mut out = String::new();
    if let Some(search) = &report.find_max {
        out += &shown(&steps(search));
        out += "\n";
        for line in found(search) {
            out += &if is_markdown { format!("{line}  \n") } else { wrapped(&line, terminal) };
        }
        out += if search.speed.is_some() { "\nThe last playback:\n" } else { "\n" };
    }
    for line in facts(report) {
        out += &if is_markdown { format!("{line}  \n") } else { wrapped(&line, terminal) };
    }
    out += "\n";
    out += &shown(&times(report));
    for warning in warnings(report) {
        out += &if is_markdown {
            format!("\n**{warning}**\n")
        } else {
            fitted(&format!("\n{warning}\n"), terminal)
        };
    }
    if !report.differences.is_empty() {
        let title = "Statements that did not end as recorded";
        out += &if is_markdown { format!("\n### {title}\n\n") } else { format!("\n{title}\n") };
        out += &shown(&differences(report, DIFFERENCES, Some(STATEMENT_CHARS)));
    }
    out
}

fn facts(report: &PlayReport) -> Vec<String> {
    let count = |number: u64| grouped(&number.to_string());
    let statements = &report.statements;
    let sessions = &report.sessions;
    let mut pace = match report.speed {
        Some(speed) => format!("{} times the recorded speed", (speed * 1e3).round() / 1e3),
        None => "closed loop".to_owned(),
    };
    if report.rate_scale != 1.0 {
        pace += &format!(", {} times the sessions", report.rate_scale);
    }
    let comparable = statements.as_recorded + statements.different;
    let share = match comparable {
        0 => String::new(),
        all => format!(" ({:.2} %)", statements.as_recorded as f64 / all as f64 * 100.0),
    };
    let mut facts = vec![
        format!(
            "played        {} at {pace}; recorded in {}",
            duration(report.played_s),
            duration(report.recorded_s)
        ),
        format!(
            "sessions      {} of {} connected, at most {} at a time ({} by the recorded times)",
            count(sessions.connected),
            count(sessions.chosen),
            sessions.peak,
            sessions.recorded_peak
        ),
        format!(
            "statements    {} executed, {} failed, {} rows",
            count(statements.executed),
            count(statements.failed),
            count(statements.rows)
        ),
        format!(
            "outcomes      {} of {} as recorded{share}",
            count(statements.as_recorded),
            count(comparable)
        ),
        format!("driver        {}, {:.1} s of CPU time", report.engine, report.driver_cpu_s),
    ];
    if statements.not_comparable > 0 {
        facts.push(format!(
            "              {} whose recorded outcome is not known",
            count(statements.not_comparable)
        ));
    }
    if let Some(schedule) = &report.schedule {
        facts.push(format!(
            "schedule      {} of {} statements waited for their session",
            count(schedule.waited),
            count(statements.executed)
        ));
    }
    if statements.held > 0 {
        facts.push(format!(
            "order         {} statements waited for the commit of another session",
            count(statements.held)
        ));
    }
    facts
}

/// The playbacks of a search.
fn steps(search: &SpeedSearch) -> Table {
    let figures = search.objectives.iter().map(|objective| {
        let name = objective.split(['<', ' ']).next().unwrap_or_default();
        if is_share(objective) { format!("#{name}") } else { format!("#{name} ms") }
    });
    let heads = ["step", "#speed", "#statements/s"].map(str::to_owned).into_iter();
    let mut table = Table::new(heads.chain(figures).chain([String::new()]));
    for step in &search.steps {
        let values = search.objectives.iter().zip(&step.values).map(|(objective, value)| match value {
            None => "–".to_owned(),
            Some(share) if is_share(objective) => format!("{:.2} %", share * 100.0),
            Some(us) => format!("{:.3}", us / 1e3),
        });
        let first = [
            step.kind.as_str().to_owned(),
            step.speed.map_or("–".to_owned(), multiple),
            grouped(&format!("{:.0}", step.statements_per_s)),
        ];
        table.push(first.into_iter().chain(values).chain([SpeedStep::verdict(step)]).collect());
    }
    table
}

fn is_share(objective: &str) -> bool {
    objective.starts_with("errors")
}

/// What a search found, and what speaks against it.
fn found(search: &SpeedSearch) -> Vec<String> {
    let objectives = search.objectives.join(" and ");
    let mut lines = vec![match search.speed {
        None => format!("no speed found that meets {objectives}"),
        Some(speed) => {
            let between = match (search.low, search.high) {
                (Some(low), Some(high)) => format!(" (between {} and {})", multiple(low), multiple(high)),
                (None, Some(high)) => format!(" (below {})", multiple(high)),
                (Some(low), None) => format!(" (at least {})", multiple(low)),
                (None, None) => String::new(),
            };
            let confirmed = if search.confirmed { "confirmed" } else { "not confirmed" };
            format!(
                "highest speed with {objectives}: {}{between}, {confirmed} by a further playback",
                multiple(speed)
            )
        }
    }];
    let contradiction = |text: &String| format!("steps contradict each other: {text}");
    lines.extend(search.contradictions.iter().map(contradiction));
    lines
}

fn multiple(speed: f64) -> String {
    format!("{speed:.2}x")
}

/// Distributions, in milliseconds.
fn times(report: &PlayReport) -> Table {
    let mut table = Table::new(["ms", "#mean", "#p50", "#p99", "#max"]);
    let schedule = report.schedule.as_ref();
    let rows: [(&str, Option<LatencyFigures>); 6] = [
        ("latency of statements", report.latency),
        ("  from their intended start", report.intended_latency),
        ("duration when recorded", report.recorded_duration),
        ("start after its time", schedule.and_then(|schedule| schedule.lag)),
        ("  of it by the driver", schedule.and_then(|schedule| schedule.driver_lag)),
        ("time to connect", report.sessions.connect),
    ];
    for (name, figures) in rows {
        let Some(LatencyFigures { mean_us, p50_us, p99_us, max_us }) = figures else { continue };
        let ms = |us: f64| format!("{:.3}", us / 1e3);
        table.push(vec![name.to_owned(), ms(mean_us), ms(p50_us), ms(p99_us), ms(max_us)]);
    }
    table
}

fn warnings(report: &PlayReport) -> Vec<String> {
    let mut warnings = Vec::new();
    if report.is_stopped {
        warnings.push("stopped before its end".to_owned());
    }
    if report.sessions.broken > 0 {
        let reasons: Vec<String> = report
            .sessions
            .reasons
            .iter()
            .map(|(reason, count)| format!("{count} × {}", reason.replace('\n', " ")))
            .collect();
        warnings.push(format!(
            "{} sessions could not connect or lost their connection: {}",
            report.sessions.broken,
            reasons.join("; ")
        ));
    }
    if report.statements.not_executed > 0 {
        warnings.push(format!(
            "{} statements were not executed",
            grouped(&report.statements.not_executed.to_string())
        ));
    }
    if report.statements.overtaking > 0 {
        warnings.push(format!(
            "{} statements began before the commits of other sessions that they depend on, which took longer than 10 s",
            grouped(&report.statements.overtaking.to_string())
        ));
    }
    let p99_us = |figures: Option<LatencyFigures>| figures.map_or(0.0, |figures| figures.p99_us);
    if let Some(schedule) = &report.schedule {
        if p99_us(schedule.driver_lag) >= LAG_US {
            warnings.push(format!(
                "the driver began statements up to {:.1} ms late (p99): it, not the server, may limit this result",
                p99_us(schedule.driver_lag) / 1e3
            ));
        } else if p99_us(schedule.lag) >= LAG_US {
            warnings.push(format!(
                "the server did not keep up: statements began up to {:.1} ms late (p99), because their sessions were not ready",
                p99_us(schedule.lag) / 1e3
            ));
        }
    }
    warnings
}

fn differences(report: &PlayReport, rows: usize, chars: Option<usize>) -> Table {
    let mut table = Table::new(["#count", "recorded", "played", "fingerprint", "statement"]);
    for difference in report.differences.iter().take(rows) {
        table.push(vec![
            difference.count.to_string(),
            difference.recorded.clone(),
            difference.played.clone(),
            difference.fingerprint.clone(),
            super::inspection::statement_text(&difference.text, chars),
        ]);
    }
    table
}
