//! Phases of workloads that have several, as a table, trial by trial.

use analysis::overview::view::{Background, Column, Panel, Phase};
use plaintext::figures;
use plaintext::table::{GAP, Table};

/// One row for each phase of each trial of a panel, and below it for each of its background workloads; none if there are none.
pub(crate) fn table(panel: &Panel, columns: &[Column]) -> Option<Table> {
    let mut table = Table::new([
        "phase", "", "#clients", "#repeat", "#s", "#tps", "#worst s", "#rows/s", "#p99 ms", "#max ms",
        "#stall s", "",
    ]);
    for (_, at, trial) in panel.trials() {
        for phase in &trial.phases {
            let first = [columns[at].label.clone(), clients(phase), trial.repeat.to_string()];
            table.push(
                [vec![phase.phase.clone()], first.to_vec(), figures_of(phase), vec![state(phase)]].concat(),
            );
            for of in &phase.background {
                let mut row = vec![String::new(); table.columns.len()];
                row[0] = format!("  {}", of.workload);
                row[5] = figures::tps(of.tps);
                row[8] = known(of.latency.as_ref().and_then(|latency| latency.p99_us), 1e3);
                row[11] = rate(of);
                table.push(row);
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Its clients, if their number is known.
pub(crate) fn clients(phase: &Phase) -> String {
    phase.clients.map_or(GAP.to_owned(), |clients| clients.to_string())
}

/// Length in seconds, transactions per second, those of the worst second, rows per second, p99 and longest latency in ms, longest
/// stall in seconds.
pub(crate) fn figures_of(phase: &Phase) -> Vec<String> {
    let us = |figure: Option<u64>| known(figure.map(|us| us as f64), 1e6);
    vec![
        us(phase.window_us),
        known(phase.tps, 1.0),
        known(phase.worst_second_tps, 1.0),
        known(phase.rows_per_second, 1.0),
        known(phase.latency.as_ref().and_then(|latency| latency.p99_us), 1e3),
        known(phase.max_us, 1e3),
        us(phase.longest_stall_us),
    ]
}

/// A figure in a unit, if known.
pub(crate) fn known(figure: Option<f64>, unit: f64) -> String {
    figure.map_or(GAP.to_owned(), |figure| figures::tps(figure / unit))
}

/// What is to be known of a phase before its figures are used.
pub(crate) fn state(phase: &Phase) -> String {
    let judged = phase.judged.then_some("judged");
    let missed = phase.missed_rate().then_some("SLA missed");
    let validity = phase.validity.map_or(Some("not run"), |status| (status != "valid").then_some(status));
    [judged, missed, validity].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The rate of a background workload, and what of it was not held.
pub(crate) fn rate(background: &Background) -> String {
    let Some(rate) = background.rate else { return String::new() };
    let missed = background.missed.filter(|missed| *missed > 0);
    let missed = missed.map(|missed| format!(", {missed} never begun")).unwrap_or_default();
    format!("of {}{missed}", figures::tps(rate))
}
