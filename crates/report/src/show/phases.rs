//! The phases of a trial whose workload has several, as a table.

use analysis::overview::view::{Background, Phase};
use plaintext::figures;
use plaintext::table::{Format, GAP, Table};

/// A row for each phase, and for each of its background workloads; empty without phases.
pub(super) fn phases(phases: &[Phase]) -> String {
    if phases.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        "phase",
        "#clients",
        "#s",
        "#per second",
        "#worst s",
        "#rows/s",
        "#99% ms",
        "#max ms",
        "#stall s",
        "",
    ]);
    for phase in phases {
        let known = |figure: Option<f64>, unit: f64| {
            figure.map_or(GAP.to_owned(), |figure| figures::tps(figure / unit))
        };
        let us = |figure: Option<u64>| known(figure.map(|us| us as f64), 1e6);
        table.push(vec![
            phase.phase.clone(),
            phase.clients.map_or(GAP.to_owned(), |clients| clients.to_string()),
            us(phase.window_us),
            known(phase.tps, 1.0),
            known(phase.worst_second_tps, 1.0),
            known(phase.rows_per_second, 1.0),
            known(phase.latency.as_ref().and_then(|latency| latency.p99_us), 1e3),
            known(phase.max_us, 1e3),
            us(phase.longest_stall_us),
            state(phase),
        ]);
        for background in &phase.background {
            let mut row = vec![String::new(); 10];
            row[0] = format!("  {}", background.workload);
            row[3] = figures::tps(background.tps);
            row[6] = known(background.latency.as_ref().and_then(|latency| latency.p99_us), 1e3);
            row[9] = rate(background);
            table.push(row);
        }
    }
    table.render(Format::Table)
}

/// What is to be known of a phase before its figures are used.
fn state(phase: &Phase) -> String {
    let judged = phase.judged.then_some("judged");
    let missed = phase.missed_rate().then_some("SLA missed");
    let validity = phase.validity.map_or(Some("not run"), |status| (status != "valid").then_some(status));
    [judged, missed, validity].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The rate of a background workload, and what of it was not held.
fn rate(background: &Background) -> String {
    let Some(rate) = background.rate else { return String::new() };
    let missed = background.missed.filter(|missed| *missed > 0);
    let missed = missed.map(|missed| format!(", {missed} not begun")).unwrap_or_default();
    format!("of {}{missed}", figures::tps(rate))
}
