//! A comparison in the formats that the user chose.

use std::fs;
use std::path::PathBuf;

use analysis::compare::Compared;
use anyhow::Context;
use clap::{Args, ValueEnum};
use plaintext::table::Format;
use report::compare::{Document, bencher, github_benchmark, junit, text};

use crate::exit::Undecided;
use crate::output::{json, print, terminal};
use crate::reading::Reading;

/// `--format` and `--output` of comparisons.
#[derive(Clone, Debug, Args)]
pub(crate) struct ComparisonOutput {
    /// How to print the result
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    format: ComparisonFormat,

    /// Also write the result to a file, such as junit=pgdyno.xml; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = output_to)]
    output: Vec<(ComparisonFormat, PathBuf)>,
}

/// A format of comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComparisonFormat {
    /// Text with aligned tables
    Table,
    /// A versioned document with everything
    Json,
    /// A row for each cell and metric
    Csv,
    /// For a pull request's comment or a step summary
    Markdown,
    /// A test report in JUnit's XML, in which a cell fails that hits a gate; without gates, one that regressed
    Junit,
    /// Figures for github-action-benchmark
    GithubBenchmark,
    /// Figures in Bencher's metric format
    Bencher,
}

impl ComparisonFormat {
    /// Whether what is printed has the outcomes of the gates.
    pub(crate) const fn has_gates(self) -> bool {
        match self {
            Self::Table | Self::Json | Self::Markdown | Self::Junit => true,
            Self::Csv | Self::GithubBenchmark | Self::Bencher => false,
        }
    }
}

impl ComparisonOutput {
    /// The format of what is printed.
    pub(crate) const fn format(&self) -> ComparisonFormat {
        self.format
    }

    /// Prints a comparison, and writes it to the files. A command that has a text of its own for `table` gives it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn print(
        &self,
        reading: &Reading,
        compared: &Compared,
        undecided: Option<Undecided>,
        table: Option<&str>,
    ) -> anyhow::Result<()> {
        let shown = |format, terminal| -> anyhow::Result<String> {
            match (format, table) {
                (ComparisonFormat::Table, Some(table)) => Ok(table.to_owned()),
                (ComparisonFormat::Table, None) => Ok(text(compared, Format::Table, terminal)),
                (ComparisonFormat::Csv, _) => Ok(text(compared, Format::Csv, None)),
                (ComparisonFormat::Markdown, _) => Ok(text(compared, Format::Markdown, None)),
                (ComparisonFormat::Json, _) => reading.json(&Document::new(compared)),
                (ComparisonFormat::Junit, _) => Ok(junit(compared, in_report(undecided))),
                (ComparisonFormat::GithubBenchmark, _) => json(&github_benchmark(compared)),
                (ComparisonFormat::Bencher, _) => json(&bencher(compared)),
            }
        };
        // The files first, so that an error of printing costs none of them.
        for (format, path) in &self.output {
            let text = shown(*format, None)?;
            fs::write(path, text).with_context(|| format!("could not write {}", path.display()))?;
        }
        print(&shown(self.format, terminal())?)
    }
}

/// What a comparison that is not decided is in a test report.
fn in_report(undecided: Option<Undecided>) -> report::compare::Undecided {
    match undecided {
        None => report::compare::Undecided::Skipped,
        Some(Undecided::Pass) => report::compare::Undecided::Passed,
        Some(Undecided::Fail) => report::compare::Undecided::Failed,
    }
}

/// Parses `FORMAT=FILE`. The file's directory must exist, so that no measurement ends with a file that can't be written.
fn output_to(text: &str) -> Result<(ComparisonFormat, PathBuf), String> {
    let (format, path) = text
        .split_once('=')
        .filter(|(_, path)| !path.is_empty())
        .ok_or("expected FORMAT=FILE, such as junit=pgdyno.xml")?;
    let format = ComparisonFormat::from_str(format, false).map_err(|_| {
        let names = ComparisonFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
        format!("there is no format \"{format}\"; there are {}", names.join(", "))
    })?;
    let path = PathBuf::from(path);
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    match directory.filter(|directory| !directory.is_dir()) {
        Some(directory) => Err(format!("there is no directory {}", directory.display())),
        None => Ok((format, path)),
    }
}
