//! The phases of a trial whose workload has several, as a table.

use analysis::overview::view::Phase;
use plaintext::figures;
use plaintext::table::{Format, Table};

use crate::phases::{clients, figures_of, known, rate, state};

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
        let first = vec![phase.phase.clone(), clients(phase)];
        table.push([first, figures_of(phase), vec![state(phase)]].concat());
        for background in &phase.background {
            let mut row = vec![String::new(); table.columns.len()];
            row[0] = format!("  {}", background.workload);
            row[3] = figures::tps(background.tps);
            row[6] = known(background.latency.as_ref().and_then(|latency| latency.p99_us), 1e3);
            row[9] = rate(background);
            table.push(row);
        }
    }
    table.render(Format::Table)
}
