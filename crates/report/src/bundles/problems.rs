//! Problems of a store as text.

use plaintext::table::Table;
use store::Problem;

/// One line per problem; empty if there is none.
pub fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// A line for each bundle that a result lacks, up to ten.
pub fn left_out_lines(problems: &[Problem]) -> String {
    const SHOWN: usize = 10;
    let mut text: String =
        problems.iter().take(SHOWN).map(|problem| format!("left out: {problem}\n")).collect();
    if problems.len() > SHOWN {
        text += &format!("left out: {} more; `pgdyno store check` lists them\n", problems.len() - SHOWN);
    }
    text
}

/// One row per problem.
pub fn table(problems: &[Problem]) -> Table {
    let mut table = Table::new(["bundle", "file", "problem", "what to do"]);
    for Problem { bundle, file, reason, advice } in problems.iter().cloned() {
        table.push(vec![bundle.unwrap_or_default(), file.unwrap_or_default(), reason, advice]);
    }
    table
}

/// `1 bundle`, `2 bundles`.
pub fn bundles(n: usize) -> String {
    format!("{n} bundle{}", if n == 1 { "" } else { "s" })
}
