//! Validity gates: whether a trial may be used, judged from its own records alone; the confound guard: whether cells may be
//! compared; whether a machine is fit to measure on; how sure the figures of one run are; and where the time of a
//! transaction goes.
//!
//! Pure functions: [`judge`] takes what was observed and says what each gate found, with the evidence in figures;
//! [`fitness()`] does so with what is known of a machine, [`explain()`] with everything that a trial has left;
//! [`within_run`] with the seconds of a load. [`profile`] says which functions and groups of functions a profile is of.

mod confound;
mod cpu;
mod explain;
mod fitness;
mod gates;
mod kernel_options;
pub mod profile;
mod within;

pub use confound::{
    Confound, Facts, Undeclared, comes_of_kernel, confounds, facts_of_settings, in_words, of_kernel,
    undeclared,
};
pub use cpu::{CpuTime, instructions_per_transaction};
pub use explain::{
    Budget, Cause, Change, Component, ComponentTime, Confidence, Difference, Explanation, Measure,
    NotExplained, explain,
};
pub use fitness::{Check, State, fitness};
pub use gates::{INTERRUPTED, Observation, judge};
pub use kernel_options::{KernelOptions, option_matters};
pub use model::validity::Thresholds;
pub use within::within_run;
