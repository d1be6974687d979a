//! `pgdyno replay play --find-max`: the highest speed of a trace that meets the objectives.

use std::sync::atomic::{AtomicBool, Ordering};

use replay::{
    DatabaseCopy, PlayReport, PlayRequest, ReplayError, Responses, SpeedSearch, SpeedStep, StepKind,
};
use trace::TraceReader;

use crate::figures::{counted, grouped, time};
use crate::highest::{Point, StepEnd, contradictions, find_highest};
use crate::objective::{Objective, Window};

/// Highest speed that is tried, as a multiple of that in a closed loop: beyond it a trace becomes no faster, and what waits, waits
/// as long.
const MAX_SPEED: f64 = 4.0;

/// Shortest length of a playback that speeds are computed from, in seconds.
const MIN_LENGTH_S: f64 = 0.001;

/// A search for the highest speed.
pub struct SpeedRequest {
    /// How the trace is played; its speed and closed loop have no meaning.
    pub play: PlayRequest,
    /// The database that each playback has a copy of; none: all play against that of the connection.
    pub template: Option<String>,
    /// What a speed has to meet.
    pub objectives: Vec<Objective>,
}

/// Searches for the highest speed, until it is found or `stop` is set. Reports each step in a line. The report is that of the
/// last playback, with the search.
///
/// # Errors
/// The trace can't be played.
pub fn find_max_speed(
    trace: &TraceReader,
    request: SpeedRequest,
    stop: &AtomicBool,
    on_line: &mut dyn FnMut(&str),
) -> Result<PlayReport, ReplayError> {
    let objectives = Objective::with_errors(request.objectives);
    let mut steps = Vec::new();
    let (highest, report) = find_highest(MAX_SPEED, &mut |kind, speed| {
        let copy = request.template.as_ref();
        let copy =
            copy.map(|template| DatabaseCopy::create(&request.play.connection, template)).transpose()?;
        let connection = copy.as_ref().map_or(&request.play.connection, DatabaseCopy::connection).clone();
        let play = PlayRequest {
            connection,
            speed: speed.unwrap_or(1.0),
            closed: kind == StepKind::Closed,
            ..request.play.clone()
        };
        let is_try = kind == StepKind::Try;
        let mut ended_early = false;
        let mut goes_on = |responses: &Responses, statements: u64| {
            let window = Window::from_responses(responses);
            let expected = statements as f64;
            ended_early |=
                is_try && objectives.iter().any(|objective| objective.is_violated(&window, expected));
            !ended_early
        };
        let (report, responses) = replay::play_judged(trace, &play, stop, &mut goes_on)?;
        let step = step(kind, speed, &report, &responses, &objectives, ended_early);
        on_line(&line(&step));
        let end = match stop.load(Ordering::Relaxed) {
            true => StepEnd::Interrupted,
            false => StepEnd::Ended {
                capacity: report.recorded_s / report.played_s.max(MIN_LENGTH_S),
                holds: step.holds == Some(true),
            },
        };
        steps.push(step);
        Ok::<_, ReplayError>((end, report))
    })?;
    let points: Vec<_> = steps
        .iter()
        .map(|step: &SpeedStep| Point { at: step.speed, values: &step.values, holds: step.holds })
        .collect();
    let contradictions = contradictions(&points, &objectives, &multiple);
    let find_max = SpeedSearch {
        objectives: objectives.iter().map(ToString::to_string).collect(),
        speed: highest.value,
        low: highest.low,
        high: highest.high,
        confirmed: highest.confirmed,
        contradictions,
        steps,
    };
    Ok(PlayReport { find_max: Some(find_max), ..report })
}

fn step(
    kind: StepKind,
    speed: Option<f64>,
    report: &PlayReport,
    responses: &Responses,
    objectives: &[Objective],
    ended_early: bool,
) -> SpeedStep {
    let mut responses = responses.clone();
    if ended_early {
        // What was not executed any more is no error.
        responses.wrong = responses.wrong.saturating_sub(report.statements.not_executed);
    }
    let window = Window::from_responses(&responses);
    let evaluations: Vec<_> = objectives.iter().map(|objective| objective.evaluate(&window)).collect();
    let broken = report.sessions.broken;
    let reason = if broken > 0 {
        Some(format!("{} could not connect or lost the connection", counted(broken, "session")))
    } else {
        let mut all = objectives.iter().zip(&evaluations);
        let violated = all.find(|(_, evaluation)| !evaluation.holds);
        violated.map(|(objective, evaluation)| objective.violation(evaluation.value))
    };
    SpeedStep {
        kind,
        speed,
        played_s: report.played_s,
        statements_per_s: report.statements.executed as f64 / report.played_s,
        values: evaluations.iter().map(|evaluation| evaluation.value).collect(),
        holds: speed.map(|_| reason.is_none()),
        reason: reason.filter(|_| speed.is_some()),
        ended_early,
    }
}

/// A step as a line of progress.
fn line(step: &SpeedStep) -> String {
    let speed = step.speed.map(multiple).unwrap_or_default();
    let line = format!(
        "{:<11} {speed:>8}  {:>9} statements/s in {:<8} {}",
        step.kind.as_str(),
        grouped(step.statements_per_s),
        time(step.played_s * 1e9),
        step.verdict()
    );
    line.trim_end().to_owned()
}

/// `2.5x`.
fn multiple(speed: f64) -> String {
    format!("{}x", grouped(speed))
}
