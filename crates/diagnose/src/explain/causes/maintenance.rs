//! The server's own work during the window: checkpoints and autovacuum.

use model::waits::SessionKind;

use super::super::budget::Budget;
use super::super::case::Case;
use super::cause::{Cause, MIN_ACTIVITY, Measure, percent};

/// Checkpoints triggered by the amount of WAL, if there are at least two in the window.
pub(super) fn checkpoints(case: &Case, _: &Budget) -> Option<Cause> {
    let inside = |at_us: &i64| (case.from_us..case.to_us).contains(at_us);
    let by_wal = |message: &str| message.contains("wal") || message.contains("xlog");
    let begun: Vec<i64> = case
        .events("checkpoint-started")
        .filter(|(_, event)| by_wal(&event.message))
        .map(|(at_us, _)| at_us)
        .filter(inside)
        .collect();
    if begun.len() < 2 {
        return None;
    }
    let during_us = case.record.checkpoint_us(case.from_us, case.to_us);
    let share = (during_us / case.window_us()).min(1.0);
    let mut evidence = vec![format!(
        "{} checkpoints were triggered by the amount of WAL, one every {:.2} s",
        begun.len(),
        case.window_us() / 1e6 / begun.len() as f64
    )];
    if let (Some(images), Some(records)) =
        (case.growth("pg.wal.full_page_images", None), case.growth("pg.wal.records", None))
        && records > 0.0
    {
        evidence.push(format!("{} of WAL records contain a full page", percent(images / records)));
    }
    if let Some(size) = case.record.settings.iter().find(|setting| setting.name == "max_wal_size") {
        evidence.push(format!("max_wal_size is {} {}", size.value, size.unit.as_deref().unwrap_or_default()));
    }
    let sentence = format!(
        "max_wal_size triggers frequent checkpoints: one was running for {} of the window",
        percent(share)
    );
    let next = "raise max_wal_size until checkpoints are triggered by time";
    Some(Cause::activity(("checkpoints", share, Measure::Window), sentence, evidence, next))
}

/// Tables that autovacuum processed in the window.
#[derive(Default)]
struct Tables {
    tested: Vec<String>,
    other: Vec<String>,
}

impl Tables {
    /// From the server's log, which has what ended, and from the progress views, which show what runs in the tested
    /// database.
    fn new(case: &Case) -> Self {
        const TESTED_DATABASE: &str = "pgdyno.";
        let mut tables = Self::default();
        let ended = ["autovacuum", "autoanalyze"].into_iter().flat_map(|kind| case.events(kind));
        let ended = ended.filter(|(at_us, event)| {
            let start_us = at_us - event.length_us("elapsed_us").unwrap_or_default();
            *at_us >= case.from_us && start_us < case.to_us
        });
        for table in ended.filter_map(|(_, event)| event.object.as_deref()) {
            match table.strip_prefix(TESTED_DATABASE) {
                Some(table) => tables.add(table),
                None => tables.other.push(table.to_owned()),
            }
        }
        for metric in ["pg.progress.vacuum.heap_blks_total", "pg.progress.analyze.blks_total"] {
            for series in case.record.metrics.all(metric) {
                if let Some(table) = series.label.as_deref()
                    && series.mean(case.from_us, case.to_us).is_some()
                {
                    tables.add(table);
                }
            }
        }
        for names in [&mut tables.tested, &mut tables.other] {
            names.sort();
            names.dedup();
        }
        tables
    }

    /// Adds a table of the tested database.
    fn add(&mut self, table: &str) {
        let is_catalog =
            ["pg_catalog.", "information_schema."].iter().any(|schema| table.starts_with(schema));
        let name = table.strip_prefix("public.").unwrap_or(table).to_owned();
        if is_catalog { self.other.push(name) } else { self.tested.push(name) }
    }
}

/// Autovacuum workers, without the launcher.
pub(super) fn autovacuum(case: &Case, _: &Budget) -> Option<Cause> {
    let workers = case.sessions(|waits| waits.session == SessionKind::Server("autovacuum worker".to_owned()));
    let share = workers.min(1.0);
    if share < MIN_ACTIVITY {
        return None;
    }
    let Tables { tested, other } = Tables::new(case);
    let mut evidence = vec![format!("{workers:.2} autovacuum workers were running on average")];
    if let Some(cpu_us) = case.growth("role.run_us", Some("autovacuum worker")) {
        evidence.push(format!("they used {:.2} s of CPU time", cpu_us / 1e6));
    }
    if !tested.is_empty() && !other.is_empty() {
        evidence.push(format!("it also processed {}", other.join(", ")));
    }
    let of_window = format!("for {} of the window", percent(share));
    let sentence = match (tested.as_slice(), other.as_slice()) {
        ([], []) => format!("autovacuum was running {of_window}, on tables that are not known"),
        ([], other) => {
            format!(
                "autovacuum was running {of_window}, on tables other than the tested ones: {}",
                other.join(", ")
            )
        }
        (tested, _) => format!("autovacuum was running {of_window}, on tested tables: {}", tested.join(", ")),
    };
    let next = "use a longer window, so that every trial has its share of autovacuum, or autovacuum = off for a short one";
    Some(Cause::activity(("autovacuum", share, Measure::Window), sentence, evidence, next))
}
