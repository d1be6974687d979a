//! `pgdyno doctor`: whether this machine is fit for measurements.

mod fix;
mod noise;
mod threads;

use std::io::IsTerminal;
use std::time::Duration;

use clap::{ArgGroup, Args};
use diagnose::State;
use host::Cache;
use model::fitness::Facts;
use plaintext::table::Format;
use report::doctor::{Style, document, page, table};
use rustix::termios::tcgetwinsize;

use crate::exit::Exit;
use crate::output::{FormatArg, in_colour, note, print, print_json};

/// Time of observation, and longest time of the disk test.
const OBSERVATION: Duration = Duration::from_secs(2);

/// Check whether this machine is fit for measurements
///
/// Inspects processors, memory, disk and kernel, observes other processes for two seconds, and times small writes in the
/// cache, where servers have their data. Each check is ok, warn (results will be noisier, or not comparable with other
/// machines), bad (results can't be trusted) or unknown, with evidence and advice. Nothing is changed, except by --fix.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("measurement"))]
#[command(after_help = "Examples:\n  \
                        pgdyno doctor\n  \
                        pgdyno doctor --noise --runs 20\n  \
                        pgdyno doctor --threads\n  \
                        pgdyno doctor --fix\n  \
                        sudo pgdyno doctor --fix -- pgdyno run upgrade.toml\n  \
                        pgdyno doctor --format json | jq -r '.checks[] | select(.state == \"bad\") | .evidence'\n\n\
                        Exit codes: 0 no check is bad, 1 error, 4 a check is bad; with --fix and a command, that of the command.")]
pub(crate) struct DoctorArgs {
    /// Measure the same cells repeatedly, compare them with themselves, and show which changes can be detected here
    #[arg(long, group = "measurement")]
    noise: bool,

    #[command(flatten)]
    noise_args: noise::NoiseArgs,

    /// Measure whether another number of driver threads gives more than the default one here, for few, some and many
    /// clients: point lookups on a temporary server
    #[arg(long, group = "measurement")]
    threads: bool,

    #[command(flatten)]
    fix: fix::FixArgs,

    /// With --noise and --threads: the server, a major or full version
    #[arg(long, default_value = "18", value_name = "VERSION", requires = "measurement")]
    server: String,

    /// With --noise and --threads: do not wait for other pgdynos that measure on this host
    #[arg(long, requires = "measurement")]
    allow_concurrent: bool,

    #[command(flatten)]
    format: FormatArg,
}

impl DoctorArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let format = self.format.get();
        if self.noise {
            return self.noise_args.run(&self.server, self.allow_concurrent, format);
        }
        if self.threads {
            return threads::run(&self.server, self.allow_concurrent, format);
        }
        if self.fix.restore {
            return fix::FixArgs::restore();
        }
        let facts = observe()?;
        let checks = diagnose::fitness(&facts);
        if self.fix.fix {
            return self.fix.run(&checks);
        }
        let worst = checks.iter().map(|check| check.state).max().unwrap_or(State::Unknown);
        match format {
            Format::Table => print(&page(&facts, &checks, style_of_stdout()))?,
            Format::Json => print_json(&document(worst, &checks))?,
            format => print(&table(&checks).render(format))?,
        }
        Ok(if worst == State::Bad { Exit::InvalidMeasurement } else { Exit::Ok })
    }
}

fn observe() -> anyhow::Result<Facts> {
    let cache = Cache::open()?;
    if std::io::stderr().is_terminal() {
        note(&format!("observing the machine for {} s …", OBSERVATION.as_secs()));
    }
    let mut facts = collect::fitness(cache.directory(), OBSERVATION);
    if std::io::stderr().is_terminal() {
        note("\r\x1b[K");
    }
    facts.io_uring = Some(driver::try_uring().map_err(|error| error.to_string()));
    Ok(facts)
}

/// Width without a terminal, and maximum width, in columns.
const WIDTH: usize = 100;
/// Minimum width for wrapping text, in columns.
const MIN_WIDTH: usize = 60;

/// The style of standard output: colours on a terminal unless `NO_COLOR` is set (no-color.org).
fn style_of_stdout() -> Style {
    let columns = tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    let width = if columns == 0 { WIDTH } else { columns.clamp(MIN_WIDTH, WIDTH) };
    Style { width, colours: in_colour() }
}
