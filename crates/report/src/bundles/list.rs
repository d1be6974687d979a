//! `pgdyno store list`: one line per trial.

use model::record::Trial;
use plaintext::table::Table;

/// One row per trial.
pub fn table(trials: &[Trial]) -> Table {
    let mut table = Table::new(["id", "started", "campaign", "cell", "#tps", "validity"]);
    for trial in trials {
        table.push(vec![
            trial.id.clone(),
            trial.started.map_or_else(|| "–".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            trial.run.campaign.clone(),
            trial.cell.to_string(),
            trial.summary.as_ref().map_or_else(|| "–".to_owned(), |summary| format!("{:.1}", summary.tps)),
            trial.validity.status.as_str().to_owned(),
        ]);
    }
    table
}
