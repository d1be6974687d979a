//! Causes that limit a trial, each a function from the trial and its budget to at most one finding.
//!
//! Each threshold is where a cause becomes worth reporting; docs/validation.md shows the results for planted causes,
//! and docs/explain.md the inputs of each.

mod cause;
mod driver;
mod maintenance;
mod memory;
mod processors;
mod reads;
mod topology;
mod waits;

pub use cause::{Cause, Measure};

use super::budget::Budget;
use super::case::Case;

/// A function that finds one cause.
type Detector = fn(&Case, &Budget) -> Option<Cause>;

/// The causes that are not waits for one kind of event.
const DETECTORS: [Detector; 20] = [
    driver::driver,
    driver::round_trips,
    driver::free_clients,
    driver::stalls,
    processors::foreign_cpu,
    processors::background,
    processors::server_cpu,
    processors::steal,
    processors::throttling,
    memory::pressure,
    memory::swap,
    reads::disk,
    reads::page_cache,
    waits::idle_transaction,
    waits::parallel_workers,
    maintenance::checkpoints,
    maintenance::autovacuum,
    topology::pooler_queue,
    topology::replay_saturated,
    topology::replay_conflicts,
];

/// All causes of a trial.
pub(crate) fn causes(case: &Case, budget: &Budget) -> Vec<Cause> {
    let detected = DETECTORS.iter().filter_map(|detector| detector(case, budget));
    detected.chain(waits::causes(case, budget)).collect()
}
