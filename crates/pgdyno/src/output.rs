//! What commands print: data to standard output. A reader that goes away (`| head`) is not an error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use clap::{Args, ValueEnum};
use plaintext::table::Format;
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

/// Prints text to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("could not write to standard output"),
    }
}

/// Prints a versioned JSON document to standard output.
pub(crate) fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(document).context("could not write JSON")?;
    print(&(text + "\n"))
}

/// Says something to the user on standard error. That it can't be said is no reason to stop.
pub(crate) fn note(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The terminal that standard output is; none where it is a file or a pipe, or a terminal that shows text alone. Colours
/// are wanted unless `NO_COLOR` is set (no-color.org).
pub(crate) fn terminal() -> Option<Terminal> {
    const USUAL_WIDTH: usize = 80;
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let stdout = io::stdout();
    if !stdout.is_terminal() || set("TERM").is_none_or(|term| term == "dumb") {
        return None;
    }
    let columns = tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    let width = if columns == 0 { USUAL_WIDTH } else { columns };
    Some(Terminal { width, colours: set("NO_COLOR").is_none() })
}

/// Whether standard output takes colours.
pub(crate) fn in_colour() -> bool {
    terminal().is_some_and(|terminal| terminal.colours)
}

/// A length of time for people: `45 s`, `4 min`, `3 h 20 min`, `2 d 4 h`.
pub(crate) fn about(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        0..=1 => format!("{seconds:.0} s"),
        2..60 => format!("{minutes} min"),
        60..1440 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1440, minutes % 1440 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::about;

    #[test]
    fn times_are_said_as_people_say_them() {
        let said = [45.0, 89.0, 240.0, 12_000.0, 187_200.0].map(about);
        assert_eq!(said, ["45 s", "89 s", "4 min", "3 h 20 min", "2 d 4 h"]);
    }
}
