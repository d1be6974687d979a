//! `pgdyno doctor`: whether this machine is fit to measure on.

mod noise;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use diagnose::State;
use host::Cache;
use model::fitness::Facts;
use plaintext::table::Format;
use report::doctor::{Style, document, page, table};
use rustix::termios::tcgetwinsize;

use crate::exit::Exit;
use crate::output::{FormatArg, in_colour, note, print, print_json};

/// How long the machine is watched, and how long its disk is tried at most.
const WATCHED: Duration = Duration::from_secs(2);

/// Say whether this machine is fit to measure on
///
/// Looks at processors, memory, disk and kernel, watches for two seconds what else runs, and times small writes in
/// the cache, where servers' data will be. Each check is ok, warn (figures will be noisier, or other than
/// elsewhere), bad (figures can't be trusted) or unknown, with what was seen and what to do about it. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno doctor\n  \
                        pgdyno doctor --noise --runs 20\n  \
                        pgdyno doctor --format json | jq -r '.checks[] | select(.state == \"bad\") | .evidence'\n\n\
                        Exit codes: 0 nothing is bad, 1 error, 4 something is bad.")]
pub(crate) struct DoctorArgs {
    /// Measure the same cells again and again, compare them with themselves, and say which change can be seen here
    #[arg(long)]
    noise: bool,

    #[command(flatten)]
    noise_args: noise::NoiseArgs,

    #[command(flatten)]
    format: FormatArg,
}

impl DoctorArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if self.noise {
            return noise::run(&self.noise_args, self.format.get());
        }
        let facts = look()?;
        let checks = diagnose::fitness(&facts);
        let worst = checks.iter().map(|check| check.state).max().unwrap_or(State::Unknown);
        match self.format.get() {
            Format::Table => print(&page(&facts, &checks, style_of_stdout()))?,
            Format::Json => print_json(&document(worst, &checks))?,
            format => print(&table(&checks).render(format))?,
        }
        Ok(if worst == State::Bad { Exit::InvalidMeasurement } else { Exit::Ok })
    }
}

fn look() -> anyhow::Result<Facts> {
    let cache = Cache::open()?;
    if std::io::stderr().is_terminal() {
        note(&format!("watching the machine for {} s …", WATCHED.as_secs()));
    }
    let mut facts = collect::fitness(cache.directory(), WATCHED);
    if std::io::stderr().is_terminal() {
        note("\r\x1b[K");
    }
    facts.io_uring = Some(driver::try_uring().map_err(|error| error.to_string()));
    Ok(facts)
}

/// Width where standard output is no terminal, and the most that is comfortable to read.
const WIDTH: usize = 100;
/// Width below which nothing is wrapped any more.
const LEAST_WIDTH: usize = 60;

/// The style that fits standard output: colours on a terminal, unless `NO_COLOR` is set (no-color.org) or it has none.
fn style_of_stdout() -> Style {
    let columns = tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    let width = if columns == 0 { WIDTH } else { columns.clamp(LEAST_WIDTH, WIDTH) };
    Style { width, colours: in_colour() }
}
