//! A comparison in the format that the user chose.

use analysis::compare::Compared;
use plaintext::table::Format;
use report::Terminal;
use report::compare::{Document, bencher, github_benchmark, junit, text};

use crate::exit::Undecided;
use crate::output::json;
use crate::reading::Reading;
use crate::result_output::{ResultFormat, in_report};

/// The text of a comparison, for a terminal or a file.
///
/// # Errors
/// It is not valid JSON.
pub(crate) fn comparison(
    reading: &Reading,
    compared: &Compared,
    undecided: Option<Undecided>,
    format: ResultFormat,
    terminal: Option<Terminal>,
) -> anyhow::Result<String> {
    match format {
        ResultFormat::Table => Ok(text(compared, Format::Table, terminal)),
        ResultFormat::Csv => Ok(text(compared, Format::Csv, None)),
        ResultFormat::Markdown => Ok(text(compared, Format::Markdown, None)),
        ResultFormat::Json => reading.json(&Document::new(compared)),
        ResultFormat::Junit => Ok(junit(compared, in_report(undecided))),
        ResultFormat::GithubBenchmark => json(&github_benchmark(compared)),
        ResultFormat::Bencher => json(&bencher(compared)),
    }
}
