//! From snapshots of `pg_stat_statements` to a trace: the same statements as often, with values of the data that they will be
//! played on.
//!
//! ```text
//! snapshots ─ snapshot ─ how often ────────────────────────┬─ schedule ─┐
//!             each text ─ uses ─ which column is meant     │  when      ├─ trace
//!             a database ─ catalog ─ types, keys ─ values ─┘            ┘
//!                          pool ─ rows
//! ```

mod catalog;
mod pool;
mod rewriting;
mod schedule;
mod snapshot;
mod uses;
mod values;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use trace::{Action, Call, Event, Identity, Missing, Outcome, Source, Statement, Summary, TraceWriter};
use wire::ConnectParams;
use wire::blocking::{Session, SessionError};

use crate::error::ReplayError;
use crate::left_out::{LeftOut, LeftOutTally};
use crate::recorder::missing;
use crate::shapes::Shapes;
use crate::tree;
use catalog::Catalog;
use schedule::Sessions;
use snapshot::{Counted, Mix, MixRequest, Snapshot};
use uses::Uses;
use values::{Needs, Template, Values};

/// Name of the format of a snapshot among the sources of a trace.
pub(crate) const FORMAT: &str = "pg_stat_statements";
/// Executions that a trace may have: their times are sorted in memory.
const MAX_EXECUTIONS: f64 = 20e6;
/// Sessions that a trace may have: as many as are played at a time.
const MAX_SESSIONS: u32 = 10_000;
/// Sessions for each that is busy at a time: on a slower server, more are.
const SESSIONS_PER_BUSY: u32 = 2;
/// Executions between two reports of progress.
const PROGRESS_EXECUTIONS: usize = 10_000;
/// In place of the elements of a list after the first, since PostgreSQL 18.
const SHORTENED: &str = "/*, ... */";

/// How to make a trace from snapshots.
#[derive(Clone, Debug)]
pub struct SynthesisRequest {
    /// A snapshot, or two.
    pub snapshots: Vec<PathBuf>,
    /// The database whose statements are taken; none: the only one.
    pub from_database: Option<String>,
    /// Length of the recorded period, if the snapshots do not have it.
    pub period: Option<Duration>,
    /// Length of the trace.
    pub duration: Duration,
    /// Number of sessions; none: twice as many as are busy at a time.
    pub clients: Option<u32>,
    /// Seed of values and times.
    pub seed: u64,
    /// Where the values are: the data that the trace will be played on.
    pub connection: ConnectParams,
    /// The trace to write.
    pub trace: PathBuf,
}

/// A trace that was made.
#[derive(Clone, Debug)]
pub struct Synthesized {
    /// Bytes of the trace.
    pub trace_bytes: u64,
    /// The database of the statements.
    pub database: String,
    /// Length of the recorded period in seconds.
    pub period_s: f64,
    /// Executions in that period.
    pub calls: u64,
    /// Share of these whose statements are in the trace.
    pub calls_share: f64,
    /// The same share of their time.
    pub time_share: f64,
    /// What the database of the values refused: a statement or a relation, and why.
    pub refused: Vec<(String, String)>,
}

/// A statement that is in the trace.
struct Planned {
    counted: Counted,
    text: Arc<str>,
    template: Template,
    is_shortened: bool,
}

/// Makes a trace. Calls `progress` with what is done, how far, and of how much.
///
/// # Errors
/// The snapshots can't be used, the server can't be queried, or the trace can't be written. Then there is no trace.
pub fn synthesize(
    request: &SynthesisRequest,
    progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<Synthesized, ReplayError> {
    let snapshots: Vec<Snapshot> =
        request.snapshots.iter().map(|path| Snapshot::read(path)).collect::<Result<_, _>>()?;
    let (before, after) = match snapshots.as_slice() {
        [only] => (None, only),
        [before, after] => (Some(before), after),
        _ => return Err(ReplayError::Mix("it takes one snapshot, or two".to_owned())),
    };
    let mix_request = MixRequest {
        database: request.from_database.as_deref(),
        period_s: request.period.map(|period| period.as_secs_f64()),
    };
    let mix = snapshot::mix(before, after, &mix_request)?;
    let mut session =
        Session::connect(&request.connection).map_err(|error| ReplayError::Connect(Box::new(error)))?;
    let sampling = |error: SessionError| ReplayError::Sampling(Box::new(error));
    // Statements are read as they were parsed here, and change nothing.
    session
        .execute("SET default_transaction_read_only = on; SET standard_conforming_strings = on")
        .map_err(sampling)?;
    let mut synthesis = Synthesis {
        catalog: Catalog::new(&mut session),
        needs: Needs::default(),
        left_out: mix.left_out.clone(),
        refused: Vec::new(),
    };
    let planned = synthesis.plan(&mix, progress).map_err(sampling)?;
    let Some(planned) = planned else { return Err(nothing_left(&synthesis)) };
    synthesis.write(request, &mix, planned, &snapshots, progress)
}

struct Synthesis<'a> {
    catalog: Catalog<'a>,
    needs: Needs,
    left_out: LeftOutTally,
    refused: Vec<(String, String)>,
}

impl Synthesis<'_> {
    /// The statements that can be executed. None if there are none.
    fn plan(
        &mut self,
        mix: &Mix,
        progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Option<Vec<Planned>>, SessionError> {
        let mut planned = Vec::new();
        let total = mix.statements.len() as u64;
        for (number, counted) in (0..).zip(&mix.statements) {
            progress("preparing statements", number, total);
            match self.plan_one(counted)? {
                Ok(one) => planned.push(one),
                Err(reason) => {
                    self.left_out.add_many(reason, counted.counts.calls, || counted.place.clone());
                }
            }
        }
        Ok((!planned.is_empty()).then_some(planned))
    }

    fn plan_one(&mut self, counted: &Counted) -> Result<Result<Planned, LeftOut>, SessionError> {
        let Some((text, tree)) = parse(&counted.text) else { return Ok(Err(LeftOut::NotSql)) };
        if !is_query(&tree) {
            return Ok(Err(LeftOut::Utility));
        }
        let types = match self.catalog.parameter_types(&text) {
            Ok(types) => types,
            Err(error) => {
                let Some(refusal) = error.server_error().map(ToString::to_string) else { return Err(error) };
                self.refused.push((counted.text.clone(), refusal));
                return Ok(Err(LeftOut::Refused));
            }
        };
        let rows_per_call = counted.counts.rows as f64 / counted.counts.calls.max(1) as f64;
        let uses = Uses::new(&tree);
        let template = Template::new(&uses, &types, rows_per_call, &mut self.catalog, &mut self.needs)?;
        let is_shortened = text.contains(SHORTENED);
        Ok(Ok(Planned { counted: counted.clone(), text: text.into(), template, is_shortened }))
    }

    fn write(
        mut self,
        request: &SynthesisRequest,
        mix: &Mix,
        planned: Vec<Planned>,
        snapshots: &[Snapshot],
        progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Synthesized, ReplayError> {
        let duration_us = request.duration.as_micros() as u64;
        let factor = request.duration.as_secs_f64() / mix.period_s;
        let expected: Vec<f64> =
            planned.iter().map(|planned| planned.counted.counts.calls as f64 * factor).collect();
        if expected.iter().sum::<f64>() > MAX_EXECUTIONS {
            return Err(ReplayError::Mix(format!(
                "a trace of this length would have {:.0} million statements, more than {:.0} million: choose a shorter \
                 --duration",
                expected.iter().sum::<f64>() / 1e6,
                MAX_EXECUTIONS / 1e6
            )));
        }
        let counts = schedule::counts(&expected);
        let mut shares = snapshot::Counts::default();
        for (planned, count) in planned.iter().zip(&counts) {
            if *count == 0 {
                let calls = planned.counted.counts.calls;
                self.left_out.add_many(LeftOut::TooRare, calls, || planned.counted.place.clone());
            } else {
                shares.add(planned.counted.counts);
            }
        }
        let executions_count: u64 = counts.iter().sum();
        if executions_count == 0 {
            return Err(ReplayError::Mix(
                "a trace of this length would have no statement: choose a longer --duration".to_owned(),
            ));
        }
        progress("reading rows", 0, 0);
        let now_us = mix.start_us.saturating_add((mix.period_s * 1e6) as i64);
        let refused = &mut self.refused;
        let mut on_refused = |relation: &str, error: &SessionError| {
            refused.push((format!("rows of {relation}"), error.to_string()));
        };
        let mut values = Values::read(
            &mut self.catalog,
            &self.needs,
            (request.seed, executions_count, now_us),
            &mut on_refused,
        )
        .map_err(|error| ReplayError::Sampling(Box::new(error)))?;

        let mut random = fastrand::Rng::with_seed(request.seed);
        let executions = schedule::executions(&counts, duration_us, &mut random);
        let durations_us: Vec<u64> = planned.iter().map(Planned::mean_us).collect();
        let busy = schedule::peak(&executions, &durations_us);
        let sessions =
            request.clients.unwrap_or(busy.saturating_mul(SESSIONS_PER_BUSY)).clamp(1, MAX_SESSIONS);
        let mut shapes = Shapes::default();
        let numbers: Vec<u32> = planned.iter().map(|planned| shapes.of(&planned.text).number).collect();
        let mut writer = TraceWriter::create(&request.trace)?;
        let at_us = |after_us: u64| mix.start_us.saturating_add(after_us as i64);
        let identity = Identity { database: Some(mix.database.as_str().into()), ..Identity::default() };
        for session in 0..sessions {
            let action = Action::Begin(identity.clone());
            writer.push(Event { at_us: at_us(0), session, action })?;
        }
        let mut free = Sessions::new(sessions);
        for (done, execution) in executions.iter().enumerate() {
            if done.is_multiple_of(PROGRESS_EXECUTIONS) {
                progress("writing statements", done as u64, executions_count);
            }
            let statement = execution.statement as usize;
            let (planned, duration_us) = (&planned[statement], durations_us[statement]);
            let drawn = values.draw(&planned.template);
            let place = || planned.counted.place.clone();
            if drawn.has_typed {
                self.left_out.add_many(LeftOut::TypedValue, 1, place);
            }
            if planned.is_shortened {
                self.left_out.add_many(LeftOut::ShortenedList, 1, place);
            }
            let action = Action::Execute(Statement {
                shape: numbers[statement],
                text: Arc::clone(&planned.text),
                call: Call::Extended { name: "".into(), parameters: drawn.values },
                duration_us: Some(duration_us),
                outcome: Outcome::Success,
                after: Vec::new(),
            });
            let session = free.next(execution.at_us, duration_us);
            writer.push(Event { at_us: at_us(execution.at_us), session, action })?;
        }
        for session in 0..sessions {
            writer.push(Event { at_us: at_us(duration_us), session, action: Action::End })?;
        }
        let source = |snapshot: &Snapshot| Source {
            file: snapshot.file().to_owned(),
            format: FORMAT.to_owned(),
            prefix: None,
            bytes: snapshot.bytes,
            entries: snapshot.entries(),
        };
        let left_out: Vec<Missing> =
            self.left_out.iter().map(|(reason, tally)| missing(reason.as_str(), tally)).collect();
        let summary = Summary {
            sources: snapshots.iter().map(source).collect(),
            is_anonymized: false,
            shapes: shapes.into_vec(),
            sessions,
            statements: executions_count,
            dependent: 0,
            left_out,
            problems: Vec::new(),
        };
        let trace_bytes = writer.finish(&summary)?;
        Ok(Synthesized {
            trace_bytes,
            database: mix.database.clone(),
            period_s: mix.period_s,
            calls: mix.all.calls,
            calls_share: shares.calls as f64 / mix.all.calls.max(1) as f64,
            time_share: shares.total_ms / mix.all.total_ms.max(f64::MIN_POSITIVE),
            refused: self.refused,
        })
    }
}

impl Planned {
    /// Mean duration in microseconds.
    fn mean_us(&self) -> u64 {
        (self.counted.counts.total_ms * 1e3 / self.counted.counts.calls.max(1) as f64) as u64
    }
}

/// The text and the parse tree of a statement, as it can be executed.
fn parse(text: &str) -> Option<(String, Value)> {
    // libpg_query accepts more than a server, so that texts are rewritten before.
    [text.to_owned(), rewriting::numbered(text)].iter().find_map(|text| {
        let text = rewriting::executable(text);
        tree::parse(&text).map(|tree| (text, tree))
    })
}

/// Whether it is one statement that PREPARE takes.
fn is_query(tree: &Value) -> bool {
    let [statement] = tree::list(&tree["stmts"]) else { return false };
    ["SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"].iter().any(|kind| {
        tree::inner(&statement["stmt"], kind).is_some_and(|select| select["into_clause"].is_null())
    })
}

/// The error if no statement can be executed.
fn nothing_left(synthesis: &Synthesis<'_>) -> ReplayError {
    let reasons: Vec<String> = synthesis
        .left_out
        .iter()
        .map(|(reason, tally)| {
            format!("\n  {} {} (first: {})", tally.count, reason.description(), tally.first)
        })
        .collect();
    let refused = synthesis.refused.first();
    let example = refused.map(|(what, why)| format!("\nFirst refused: {what}: {why}")).unwrap_or_default();
    ReplayError::Mix(format!("none of the statements can be executed:{}{example}", reasons.concat()))
}

/// Whether a trace was made from snapshots.
pub(crate) fn is_synthetic(sources: &[Source]) -> bool {
    sources.iter().any(|source| source.format == FORMAT)
}
