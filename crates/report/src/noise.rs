//! An A/A test as text and JSON.

use analysis::power::{ALPHA, AaCell, POWER, RUNS};
use plaintext::table::{Format, Table};
use serde::Serialize;

/// `doctor --noise --format json`, schema 1.
#[derive(Serialize)]
pub struct Document<'a> {
    schema: u32,
    alpha: f64,
    power: f64,
    cells: &'a [AaCell],
}

impl<'a> Document<'a> {
    /// The cells with the levels of their comparisons.
    pub fn new(cells: &'a [AaCell]) -> Self {
        Self { schema: 1, alpha: ALPHA, power: POWER, cells }
    }
}

/// The cells in the format; as a table, with a legend.
pub fn text(cells: &[AaCell], format: Format) -> String {
    let table = table(cells).render(format);
    if format == Format::Table { format!("{table}\n{LEGEND}") } else { table }
}

const LEGEND: &str = "noise: spread of equal trials. A/A: every other trial against the rest, which should be near 0.\n\
     seen with n: the smallest change that 95 of 100 comparisons of n runs a side detect here, with one false alarm in 100.\n";

fn table(cells: &[AaCell]) -> Table {
    let per_cent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut heads: Vec<String> =
        ["cell", "#runs", "#median tps", "#noise", "class", "#A/A", "#p"].map(str::to_owned).into();
    heads.extend(RUNS.map(|runs| format!("#seen with {runs}")));
    let mut table = Table::new(heads);
    for cell in cells {
        let mut row = vec![
            cell.cell.clone(),
            cell.runs.to_string(),
            format!("{:.0}", cell.median_tps),
            per_cent(cell.noise),
            cell.class.clone().unwrap_or_default(),
            cell.difference.map(|share| format!("{:+.1} %", share * 100.0)).unwrap_or_default(),
            cell.p.map(|p| format!("{p:.2}")).unwrap_or_default(),
        ];
        let detectable = cell.detectable.iter();
        row.extend(detectable.map(|found| found.change.map(per_cent).unwrap_or_else(|| "–".to_owned())));
        table.push(row);
    }
    table
}
