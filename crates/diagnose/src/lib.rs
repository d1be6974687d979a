//! Validity gates: whether a trial may be used, judged from its own records alone; the confound guard: whether cells may be
//! compared; and whether a machine is fit to measure on.
//!
//! Pure functions: [`judge`] takes what was observed and says what each gate found, with the evidence in figures;
//! [`fitness()`] does so with what is known of a machine.

mod confound;
mod fitness;
mod gates;

pub use confound::{Confound, Facts, confounds, facts_of_settings, in_words};
pub use fitness::{Check, State, fitness};
pub use gates::{INTERRUPTED, Observation, judge};
pub use model::validity::Thresholds;
