//! What became of the executions of each statement.

use std::sync::Arc;

use hdrhistogram::Histogram;
use model::trace::{OverTime, PlayedStatement, SLICES, Slice};
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
    /// Length of a slice of recorded time.
    slice_us: u64,
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
        Self { statements: shapes.iter().map(statement).collect(), slice_us: 1 }
    }

    /// Sets the recorded time from the first event to the last one.
    pub(super) fn set_period(&mut self, period_us: u64) {
        // The last event is in the last slice.
        self.slice_us = period_us / u64::from(SLICES) + 1;
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
        if played.end == PlayedEnd::NotExecuted {
            figures.not_executed += 1;
            return Ok(true);
        }
        let over_time = figures
            .over_time
            .get_or_insert_with(|| OverTime { slice_us: self.slice_us, ..OverTime::default() });
        let slice = slice(over_time, recorded.at_us);
        slice.calls += 1;
        match &played.end {
            PlayedEnd::NotExecuted => {}
            PlayedEnd::Failure(state) => {
                *figures.failures.entry(state.clone()).or_default() += 1;
                slice.failures += 1;
            }
            PlayedEnd::Success => {
                let took_ns = played.ended_ns.saturating_sub(played.begun_ns);
                figures.total_ns += took_ns;
                slice.total_ns += took_ns;
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

    /// Adds a sample of a session that executed a statement of this shape.
    pub(super) fn add_wait(&mut self, shape: u32, wait: String) {
        if let Some(statement) = self.statements.get_mut(shape as usize) {
            *statement.figures.waits.get_or_insert_default().entry(wait).or_default() += 1;
        }
    }

    /// Says that statements without samples have none, or why waits are not known.
    pub(super) fn set_waits(&mut self, missing: Option<&str>) {
        for CountedStatement { figures, .. } in &mut self.statements {
            match missing {
                None => drop(figures.waits.get_or_insert_default()),
                Some(why) => figures.without_waits = Some(why.to_owned()),
            }
        }
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

/// The slice of a recorded time, which is mostly the last one so far.
fn slice(of: &mut OverTime, at_us: u64) -> &mut Slice {
    let number = u32::try_from(at_us / of.slice_us.max(1)).unwrap_or(u32::MAX).min(SLICES - 1);
    let later = of.slices.iter().rev().take_while(|slice| slice.number > number).count();
    let mut at = of.slices.len() - later;
    if of.slices[..at].last().is_none_or(|slice| slice.number < number) {
        of.slices.insert(at, Slice { number, ..Slice::default() });
        at += 1;
    }
    &mut of.slices[at - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_in_the_slice_of_their_recorded_time() {
        let mut over_time = OverTime { slice_us: 11, slices: Vec::new() };
        for at_us in [0, 10, 11, 500, 1000, 33, 12, 1_099, 5_000] {
            slice(&mut over_time, at_us).calls += 1;
        }
        let found: Vec<(u32, u64)> =
            over_time.slices.iter().map(|slice| (slice.number, slice.calls)).collect();
        assert_eq!(found, [(0, 2), (1, 2), (3, 1), (45, 1), (90, 1), (99, 2)]);
    }
}
