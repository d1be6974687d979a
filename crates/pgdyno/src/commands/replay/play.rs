//! `pgdyno replay play`: a trace against a server.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use host::usable_cpus;
use model::units::Multiplier;
use plaintext::table::Format;
use replay::{PlayRequest, play};
use report::replay::playback_text;
use trace::{Selection, SessionFilter, TraceReader};

use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{FormatArg, note, print, print_json, terminal};

/// Play a trace against a server, and compare the outcomes
///
/// Sessions connect and end as recorded; their statements begin at the recorded times, in the recorded order, by the recorded
/// protocol. All sessions connect to one database as one role: that of the connection. The first Ctrl-C ends the playback
/// and reports it. Statements that write, write: play against a copy.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  \
                        pgdyno replay play app.pgdt -d copy\n  \
                        pgdyno replay play app.pgdt --speed 2x --sessions user=web,database=app -d copy\n  \
                        pgdyno replay play app.pgdt --rate-scale 3x -d copy\n  \
                        pgdyno replay play app.pgdt --closed -h db.example -d copy\n\n\
                        Exit codes: 0 played, whatever the outcomes; 1 error, or no session connected; 2 usage;\n\
                        5 some sessions could not connect or lost their connection; 130 interrupted."
)]
pub(crate) struct PlayArgs {
    /// A trace of `pgdyno replay read`
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// How much faster than recorded: 2x, 0.5x
    #[arg(long, value_name = "FACTOR", default_value = "1x", conflicts_with = "closed")]
    speed: Multiplier,

    /// Sessions, as a multiple of the recorded ones: of 3x each is played three times, of 0.5x a random half, the same each time
    #[arg(long, value_name = "FACTOR", default_value = "1x")]
    rate_scale: Multiplier,

    /// Begin each statement as soon as the one before in its session has ended, with no more sessions at a time than recorded
    #[arg(long)]
    closed: bool,

    /// Play only these sessions: user=NAME, database=NAME, application=NAME, separated by commas
    #[arg(long, value_name = "FILTER")]
    sessions: Option<SessionFilter>,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl PlayArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let trace = TraceReader::open(&self.trace)?;
        let request = PlayRequest {
            connection: self.connection.resolve()?,
            speed: self.speed.factor(),
            closed: self.closed,
            sessions: Selection {
                filter: self.sessions.unwrap_or_default(),
                rate_scale: self.rate_scale.factor(),
            },
            cpus: usable_cpus().unwrap_or(1),
        };
        let stop = interrupt::flag()?;
        note(&format!("playing {}\n", self.trace.display()));
        let report = play(&trace, &request, &stop)?;
        match self.format.get() {
            Format::Json => print_json(&report)?,
            format => print(&playback_text(&report, format, terminal()))?,
        }
        Ok(match report.sessions.broken {
            _ if stop.load(Ordering::Relaxed) => Exit::Interrupted,
            0 => Exit::Ok,
            _ if report.sessions.connected == 0 => Exit::Error,
            _ => Exit::Partial,
        })
    }
}
