//! `pgdyno replay synthesize`: a trace from snapshots of `pg_stat_statements`.

use std::path::PathBuf;

use clap::Args;
use host::Progress as _;
use model::units::Span;
use plaintext::figures::{bytes, duration, grouped};
use plaintext::table::Format;
use replay::{SynthesisRequest, inspect, synthesize};
use report::one_line;
use report::replay::inspection_text;
use trace::TraceReader;

use super::check_output;
use crate::connection::ConnectionArgs;
use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json, terminal};
use crate::progress::PreparationProgress;

/// Refused statements that are shown.
const MAX_REFUSED: usize = 5;
/// Characters of their texts.
const REFUSED_CHARS: usize = 100;

/// Make a trace from snapshots of pg_stat_statements: the same statements as often, with values drawn from a database
///
/// For applications whose statements are not logged. Two snapshots have what was executed between them; one has it since the statistics were
/// reset. The values of parameters, which the view does not have, are drawn from the rows of the database of the connection: the copy that
/// the trace will be played on, which is only read. Executions are at random times; each is a transaction of its own.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    override_usage = "pgdyno replay synthesize [OPTIONS] --output <FILE> <CSV>... [-- <DBNAME>]",
    after_help = "Take a snapshot, such as at the beginning and the end of a busy hour, as a member of pg_read_all_stats:\n  \
                        psql --csv > before.csv -c 'SELECT now() AS snapshot_at, datname, s.*\n  \
                        FROM pg_stat_statements s JOIN pg_database d ON d.oid = dbid'\n\n\
                        Examples:\n  \
                        pgdyno replay synthesize before.csv after.csv -d copy -o app.pgdt\n  \
                        pgdyno replay synthesize before.csv after.csv --from-database shop --duration 1min -d copy -o app.pgdt\n  \
                        pgdyno replay synthesize since-reset.csv --period 24h -h db.example -d copy -o app.pgdt"
)]
pub(crate) struct SynthesizeArgs {
    /// One or two snapshots, as CSV
    #[arg(value_name = "CSV", required = true, num_args = 1..=2)]
    snapshots: Vec<PathBuf>,

    /// The trace to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Length of the trace
    #[arg(long, value_name = "TIME", default_value = "5min")]
    duration: Span,

    /// Take the statements of this database [default: the only one of the snapshots]
    #[arg(long, value_name = "NAME")]
    from_database: Option<String>,

    /// Length of the recorded period [default: the time between the snapshots; of one, since the statistics were reset, if it has
    /// stats_since (17 and newer)]
    #[arg(long, value_name = "TIME")]
    period: Option<Span>,

    /// Sessions of the trace [default: twice as many as are busy at a time]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: Option<u32>,

    /// Seed of the values and times: the same one makes the same trace of the same data
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl SynthesizeArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        check_output(&self.snapshots, &self.output)?;
        for (option, value) in [("--duration", Some(self.duration)), ("--period", self.period)] {
            if value.is_some_and(Span::is_zero) {
                return Err(Usage(format!("error: {option} must be longer than 0")).into());
            }
        }
        let request = SynthesisRequest {
            snapshots: self.snapshots,
            from_database: self.from_database,
            period: self.period.map(Span::duration),
            duration: self.duration.duration(),
            clients: self.clients,
            seed: self.seed,
            connection: self.connection.resolve()?,
            trace: self.output,
        };
        let progress = PreparationProgress::new();
        let made = synthesize(&request, &mut |what, done, total| {
            progress.step(what, done, (total > 0).then_some(total));
        })?;
        progress.step("summing up", 0, None);
        let inspection = inspect(&TraceReader::open(&request.trace)?)?;
        progress.clear();
        let refused = made.refused.len();
        for (what, why) in made.refused.iter().take(MAX_REFUSED) {
            note(&format!("refused: {}: {why}\n", one_line(what, REFUSED_CHARS)));
        }
        if refused > MAX_REFUSED {
            note(&format!("refused: {} more\n", refused - MAX_REFUSED));
        }
        note(&format!(
            "wrote {}, {}, with the statements of {:.1}% of the {} calls and {:.1}% of the time of \"{}\" in {}\n",
            request.trace.display(),
            bytes(made.trace_bytes),
            made.calls_share * 100.0,
            grouped(&made.calls.to_string()),
            made.time_share * 100.0,
            made.database,
            duration(made.period_s)
        ));
        match self.format.get() {
            Format::Json => print_json(&inspection)?,
            format => print(&inspection_text(&inspection, format, terminal()))?,
        }
        Ok(Exit::Ok)
    }
}
