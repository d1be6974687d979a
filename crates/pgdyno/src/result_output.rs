//! Results in the formats that the user chose: comparisons and histories.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use report::Terminal;

use crate::exit::Undecided;
use crate::output::{print, terminal};

/// `--format` and `--output` of results.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultOutput {
    /// How to print the result
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    format: ResultFormat,

    /// Also write the result to a file, such as junit=pgdyno.xml; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = output_to)]
    output: Vec<(ResultFormat, PathBuf)>,
}

/// A format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultFormat {
    /// Text with aligned tables
    Table,
    /// A versioned document with everything
    Json,
    /// A row for each cell and metric, of a history for each cell and step
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

impl ResultFormat {
    /// Whether what is printed has the outcomes of the gates.
    pub(crate) const fn has_gates(self) -> bool {
        match self {
            Self::Table | Self::Json | Self::Markdown | Self::Junit => true,
            Self::Csv | Self::GithubBenchmark | Self::Bencher => false,
        }
    }
}

impl ResultOutput {
    /// The format of what is printed.
    pub(crate) const fn format(&self) -> ResultFormat {
        self.format
    }

    /// Prints a result, and writes it to the files. `text` has it in a format, for a terminal if it is printed on one.
    ///
    /// # Errors
    /// A file cannot be written, or one of `text`.
    pub(crate) fn print(
        &self,
        text: impl Fn(ResultFormat, Option<Terminal>) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        // The files first, so that an error of printing costs none of them.
        for (format, path) in &self.output {
            let text = text(*format, None)?;
            fs::write(path, text).with_context(|| format!("could not write {}", path.display()))?;
        }
        print(&text(self.format, terminal())?)
    }
}

/// What a result that is not decided is in a test report.
pub(crate) const fn in_report(undecided: Option<Undecided>) -> report::Undecided {
    match undecided {
        None => report::Undecided::Skipped,
        Some(Undecided::Pass) => report::Undecided::Passed,
        Some(Undecided::Fail) => report::Undecided::Failed,
    }
}

/// Parses `FORMAT=FILE`. The file's directory must exist, so that no measurement ends with a file that can't be written.
fn output_to(text: &str) -> Result<(ResultFormat, PathBuf), String> {
    let (format, path) = text
        .split_once('=')
        .filter(|(_, path)| !path.is_empty())
        .ok_or("expected FORMAT=FILE, such as junit=pgdyno.xml")?;
    let format = ResultFormat::from_str(format, false).map_err(|_| {
        let names = ResultFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
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
