//! Output of commands: data on standard output, notes on standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use clap::{Args, ValueEnum};
use plaintext::table::{Format, Table};
use plaintext::{printable, wrap};
use report::Terminal;
use rustix::termios::tcgetwinsize;

/// `--format`, for commands that print data.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArg {
    /// How to print the data
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    format: FormatName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    Table,
    Json,
    Csv,
    Markdown,
}

impl FormatArg {
    pub(crate) fn get(self) -> Format {
        match self.format {
            FormatName::Table => Format::Table,
            FormatName::Json => Format::Json,
            FormatName::Csv => Format::Csv,
            FormatName::Markdown => Format::Markdown,
        }
    }
}

/// Prints text to standard output; to a terminal, without control characters in data. A closed pipe (`| head`) is not
/// an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() { printable(text) } else { text.into() };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("could not write to standard output"),
    }
}

/// A JSON document, as it is printed.
pub(crate) fn json(document: &impl serde::Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(document).context("could not write JSON")?;
    Ok(text + "\n")
}

/// Prints a versioned JSON document to standard output.
pub(crate) fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&json(document)?)
}

/// Prints a table for people so that it fits the terminal, or in another format.
pub(crate) fn print_table(table: &Table, format: Format) -> anyhow::Result<()> {
    match terminal() {
        Some(terminal) if format == Format::Table => print(&table.fitted(terminal.width)),
        _ => print(&table.render(format)),
    }
}

/// Prints a note to standard error, like [`print`]; errors of printing are ignored. Lines are wrapped to the terminal's width.
pub(crate) fn note(text: &str) {
    let mut err = io::stderr().lock();
    let text = match err.is_terminal().then(|| tcgetwinsize(&err).map_or(0, |size| usize::from(size.ws_col)))
    {
        None => text.to_owned(),
        Some(0) => printable(text).into_owned(),
        Some(width) => printable(text).split_inclusive('\n').map(|line| wrapped(line, width)).collect(),
    };
    let _ = err.write_all(text.as_bytes());
}

/// Lines of text that are printed: wrapped to the width of a terminal.
pub(crate) fn fitted(text: &str) -> String {
    let Some(terminal) = terminal() else { return text.to_owned() };
    text.split_inclusive('\n').map(|line| wrapped(line, terminal.width)).collect()
}

/// A line wrapped to a width, unless it ends in a command, which can be copied only as a whole.
fn wrapped(line: &str, width: usize) -> String {
    let fits = line.trim_end().chars().count() <= width;
    if fits || line.contains(": pgdyno ") || !line.ends_with('\n') {
        return line.to_owned();
    }
    wrap(line.trim_end(), width)
}

/// The terminal of standard output; `None` if it is a file, a pipe or a dumb terminal. Colours are on unless
/// `NO_COLOR` is set (no-color.org).
pub(crate) fn terminal() -> Option<Terminal> {
    const DEFAULT_WIDTH: usize = 80;
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let stdout = io::stdout();
    if !stdout.is_terminal() || set("TERM").is_none_or(|term| term == "dumb") {
        return None;
    }
    let columns = tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    let width = if columns == 0 { DEFAULT_WIDTH } else { columns };
    Some(Terminal { width, colours: set("NO_COLOR").is_none() })
}

/// Whether to use colours on standard output.
pub(crate) fn in_colour() -> bool {
    terminal().is_some_and(|terminal| terminal.colours)
}

/// The command line of this process as for a shell, without some options: with its paths it measures or shows the same again.
pub(crate) fn command_line(without: &[&str]) -> String {
    let quoted = |word: String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=@%+:,~".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words = words.filter(|word| !without.contains(&word.as_str())).map(quoted);
    std::iter::once("pgdyno".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
