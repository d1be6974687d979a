//! An import as a table and JSON.

use std::collections::BTreeSet;

use import::Import;
use model::record::Run;
use plaintext::table::Table;
use serde::Serialize;

/// `import --format json`, schema 1.
#[derive(Serialize)]
pub struct Document<'a> {
    schema: u32,
    run: &'a str,
    campaign: &'a str,
    tags: &'a [String],
    trials: usize,
    cells: usize,
    skipped: Vec<SkippedDocument<'a>>,
    unused_columns: &'a [String],
}

#[derive(Serialize)]
struct SkippedDocument<'a> {
    line: u64,
    column: Option<&'a str>,
    reason: &'a str,
}

impl<'a> Document<'a> {
    /// The import as a run.
    pub fn new(import: &'a Import, run: &'a Run) -> Self {
        let skipped = import.skipped.iter().map(|row| SkippedDocument {
            line: row.line,
            column: row.column.as_deref(),
            reason: &row.message,
        });
        Self {
            schema: 1,
            run: &run.id,
            campaign: &run.campaign,
            tags: &run.tags,
            trials: import.drafts.len(),
            cells: cells(import),
            skipped: skipped.collect(),
            unused_columns: &import.unused,
        }
    }
}

/// One row: the run with the number of its trials and cells, and of skipped rows.
pub fn table(import: &Import, run: &Run) -> Table {
    let mut table = Table::new(["run", "campaign", "#trials", "#cells", "#left out"]);
    table.push(vec![
        run.id.clone(),
        run.campaign.clone(),
        import.drafts.len().to_string(),
        cells(import).to_string(),
        import.skipped.len().to_string(),
    ]);
    table
}

fn cells(import: &Import) -> usize {
    import.drafts.iter().map(|draft| &draft.cell).collect::<BTreeSet<_>>().len()
}
