//! What became of the executions of each statement.

use std::sync::Arc;

use hdrhistogram::Histogram;
use model::trace::PlayedStatement;
use trace::{Outcome, Shape, Statement};

use crate::error::LoadError;
use crate::histogram::{Encoder, MAX_LATENCY_NS, statement_latencies};
use crate::playback::{Played, PlayedEnd};
use crate::trace_playback::Recorded;

/// Longest text of a call that is kept for its plan.
const MAX_CALL_BYTES: usize = 1 << 20;

/// Executions by shape.
pub(super) struct Counter {
    statements: Vec<CountedStatement>,
}

/// The executions of a statement.
pub(super) struct CountedStatement {
    pub(super) figures: PlayedStatement,
    /// The first successful call of those recorded, or else the first, for its plan; none if it has no plan.
    pub(super) call: Option<Call>,
    has_plan: bool,
    latency_ns: Option<Histogram<u64>>,
}

/// A call of a statement.
pub(super) struct Call {
    pub(super) text: Arc<str>,
    pub(super) values: Vec<Option<Arc<str>>>,
    succeeded: bool,
}

impl Counter {
    /// Without executions.
    pub(super) fn new(shapes: &[Shape]) -> Self {
        let statement = |shape: &Shape| CountedStatement {
            figures: PlayedStatement {
                fingerprint: shape.fingerprint(),
                text: shape.text.clone(),
                ..PlayedStatement::default()
            },
            call: None,
            has_plan: shape.has_plan(),
            latency_ns: None,
        };
        Self { statements: shapes.iter().map(statement).collect() }
    }

    /// Takes note of a recorded call.
    pub(super) fn add_call(&mut self, recorded: &Statement) {
        let Some(statement) = self.statements.get_mut(recorded.shape as usize) else { return };
        let succeeded = recorded.outcome == Outcome::Success;
        let is_better = statement.call.as_ref().is_none_or(|call| succeeded && !call.succeeded);
        if !statement.has_plan || !is_better || recorded.text.len() > MAX_CALL_BYTES {
            return;
        }
        let values = match &recorded.call {
            trace::Call::Simple => Vec::new(),
            trace::Call::Extended { parameters, .. } => parameters.clone(),
        };
        statement.call = Some(Call { text: Arc::clone(&recorded.text), values, succeeded });
    }

    /// Adds an execution. Returns whether it failed otherwise than recorded, or did not take place.
    pub(super) fn add(&mut self, played: &Played, recorded: Option<Recorded>) -> Result<bool, LoadError> {
        let Some(recorded) = recorded else { return Ok(false) };
        let Some(CountedStatement { figures, latency_ns, .. }) =
            self.statements.get_mut(recorded.shape as usize)
        else {
            return Ok(false);
        };
        let is_as_recorded = recorded.is_met_by(&played.end);
        figures.different += u64::from(is_as_recorded == Some(false));
        match &played.end {
            PlayedEnd::NotExecuted => {
                figures.not_executed += 1;
                return Ok(true);
            }
            PlayedEnd::Failure(state) => {
                *figures.failures.entry(state.clone()).or_default() += 1;
            }
            PlayedEnd::Success => {
                let took_ns = played.ended_ns.saturating_sub(played.begun_ns);
                figures.total_ns += took_ns;
                if latency_ns.is_none() {
                    *latency_ns = Some(statement_latencies()?);
                }
                if let Some(latency_ns) = latency_ns {
                    // It grows with the value, up to an hour.
                    let took_ns = took_ns.clamp(1, MAX_LATENCY_NS);
                    latency_ns
                        .record(took_ns)
                        .map_err(|error| LoadError::Internal(format!("cannot record a latency: {error}")))?;
                }
            }
        }
        figures.calls += 1;
        figures.rows += played.rows;
        Ok(played.end != PlayedEnd::Success && is_as_recorded != Some(true))
    }

    /// The statements that were to be executed, those with the most time first.
    pub(super) fn finish(self) -> Result<Vec<CountedStatement>, LoadError> {
        let mut encoder = Encoder::default();
        let mut statements = self.statements;
        statements.retain(|one| one.figures.calls + one.figures.not_executed > 0);
        statements.sort_by(|a, b| {
            (b.figures.total_ns, &a.figures.fingerprint).cmp(&(a.figures.total_ns, &b.figures.fingerprint))
        });
        for statement in &mut statements {
            if let Some(latency_ns) = &statement.latency_ns {
                statement.figures.latency_ns = encoder.encode(latency_ns)?;
            }
        }
        Ok(statements)
    }
}
