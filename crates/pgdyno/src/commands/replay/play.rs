//! `pgdyno replay play`: a trace against a server.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::bail;
use bench::{Objective, SpeedRequest, find_max_speed};
use clap::Args;
use host::usable_cpus;
use model::units::Multiplier;
use plaintext::table::Format;
use replay::{DatabaseCopy, PlayRequest, SpeedSearch, play};
use report::replay::playback_text;
use trace::{Selection, SessionFilter, Shape, TraceReader};

use crate::connection::ConnectionArgs;
use crate::exit::{Exit, Usage};
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
                        pgdyno replay play app.pgdt --closed -h db.example -d copy\n  \
                        pgdyno replay play app.pgdt --template copy -d postgres\n  \
                        pgdyno replay play app.pgdt --find-max 'p99 < 20ms' --template copy -d postgres\n\n\
                        Exit codes: 0 played, whatever the outcomes; 1 error, no session connected, or no speed found;\n\
                        2 usage; 5 some sessions could not connect or lost their connection, or the speed that was\n\
                        found was not confirmed; 130 interrupted."
)]
pub(crate) struct PlayArgs {
    /// A trace of `pgdyno replay read` or `synthesize`
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// How much faster than recorded: 2x, 0.5x
    #[arg(long, value_name = "FACTOR", default_value = "1x", conflicts_with = "closed")]
    speed: Multiplier,

    /// Sessions, as a multiple of the recorded ones: of 3x each is played three times, of 0.5x a random half, the same each time
    #[arg(long, value_name = "FACTOR", default_value = "1x")]
    rate_scale: Multiplier,

    /// Search for the highest speed that meets an objective: "p99 < 20ms" from the intended start, also p50 to p99.99, mean, max,
    /// "errors < 1%" (outcomes other than recorded); may be repeated
    #[arg(long, value_name = "OBJECTIVE", conflicts_with_all = ["speed", "closed"])]
    find_max: Vec<Objective>,

    /// Play against a copy of this database, made for each playback on the same server and dropped after it, so that all begin with
    /// the same data. The database must have no sessions; -d names another, to connect to meanwhile
    #[arg(long, value_name = "DATABASE")]
    template: Option<String>,

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
        let writes = trace.summary().shapes.iter().any(Shape::writes);
        if !self.find_max.is_empty() && writes && self.template.is_none() {
            bail!(Usage(format!(
                "error: the trace {} writes, so that each playback of a search would begin with other data: name the database to copy for \
                 each by --template",
                self.trace.display()
            )));
        }
        let stop = interrupt::flag()?;
        note(&format!("playing {}\n", self.trace.display()));
        let report = if self.find_max.is_empty() {
            let copy = self.template.as_ref();
            let copy =
                copy.map(|template| DatabaseCopy::create(&request.connection, template)).transpose()?;
            let connection = copy.as_ref().map_or(&request.connection, DatabaseCopy::connection).clone();
            play(&trace, &PlayRequest { connection, ..request }, &stop)?
        } else {
            let search = SpeedRequest { play: request, template: self.template, objectives: self.find_max };
            find_max_speed(&trace, search, &stop, &mut |line| note(&format!("{line}\n")))?
        };
        match self.format.get() {
            Format::Json => print_json(&report)?,
            format => print(&playback_text(&report, format, terminal()))?,
        }
        let is_interrupted = stop.load(Ordering::Relaxed);
        Ok(match (&report.find_max, report.sessions.broken) {
            _ if is_interrupted => Exit::Interrupted,
            (Some(SpeedSearch { speed: None, .. }), _) => Exit::Error,
            (Some(SpeedSearch { confirmed, .. }), _) => {
                if *confirmed {
                    Exit::Ok
                } else {
                    Exit::Partial
                }
            }
            (None, 0) => Exit::Ok,
            (None, _) if report.sessions.connected == 0 => Exit::Error,
            (None, _) => Exit::Partial,
        })
    }
}
