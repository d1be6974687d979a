//! The schedule of an open loop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use driver::{Arrivals, Rate, Stage};

use crate::error::PlanError;
use crate::quantity::Spacing;
use crate::request::ScheduleOptions;

/// The arrivals of a load with this warm-up. A search has none of its own: each of its steps has another rate.
pub(crate) fn arrivals(options: &ScheduleOptions, warmup: Duration) -> Result<Arrivals, PlanError> {
    let has_rate = options.rate.is_some() || !options.stages.is_empty() || !options.objectives.is_empty();
    match &options.spacing {
        Some(Spacing::File(_)) if has_rate => return Err(PlanError::RateOfArrivalFile),
        Some(Spacing::File(_)) if !warmup.is_zero() => return Err(PlanError::WarmupOfArrivalFile),
        Some(Spacing::File(path)) => return read(path).map(Arrivals::Given),
        Some(_) if !has_rate => return Err(PlanError::SpacingWithoutRate),
        _ => {}
    }
    let spacing = random_spacing(options);
    if let Some(rate) = options.rate {
        return Ok(Arrivals::Rate(Rate::constant(rate, spacing)));
    }
    let Some(first) = options.stages.first() else { return Ok(Arrivals::Closed) };
    if options.stages.iter().all(|stage| stage.from == 0.0 && stage.to == 0.0) {
        return Err(PlanError::ZeroRate);
    }
    // The schedule is the window's; the warm-up has the rate at its start.
    let warm = Stage { length: warmup, from: first.from, to: first.from };
    let warm = (!warmup.is_zero()).then_some(warm);
    let stages = warm.into_iter().chain(options.stages.iter().copied()).collect();
    Ok(Arrivals::Rate(Rate { stages, spacing }))
}

/// The spacing of arrivals at a rate.
pub(crate) fn random_spacing(options: &ScheduleOptions) -> driver::Spacing {
    if options.spacing == Some(Spacing::Uniform) {
        driver::Spacing::Uniform
    } else {
        driver::Spacing::Poisson
    }
}

/// Reads a file with the times of all arrivals, in seconds after the start, one per line.
fn read(path: &Path) -> Result<Arc<[Duration]>, PlanError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| PlanError::UnreadableArrivals { path: path.to_owned(), source })?;
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let mut times = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let invalid =
            |why| PlanError::Arrival { path: path.to_owned(), line: number, text: line.to_owned(), why };
        let seconds: f64 = line.parse().map_err(|_| invalid(NOT_A_TIME))?;
        let time = Duration::try_from_secs_f64(seconds).map_err(|_| invalid(NOT_A_TIME))?;
        if times.last().is_some_and(|last| time < *last) {
            return Err(invalid("is before the previous arrival"));
        }
        times.push(time);
    }
    if times.is_empty() {
        return Err(PlanError::NoArrivals { path: path.to_owned() });
    }
    Ok(times.into())
}

const NOT_A_TIME: &str = "is not a time: expected seconds after the start";
