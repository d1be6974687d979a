//! Validity gates: whether a trial may be used, judged from its own records alone; the confound guard: whether cells
//! may be compared; fitness of a machine; precision of the figures of one run; and where the time of a transaction
//! goes.
//!
//! Pure functions: [`judge`] takes an observation and returns the findings of the gates, with the evidence in figures;
//! [`fitness()`] judges the facts of a machine, [`explain()`] a trial's record, [`run_statistics()`] the seconds of a
//! load. [`profile`] breaks a profile down by functions and groups of functions.

mod bisection;
mod busiest;
mod confound;
mod cpu;
mod explain;
mod fitness;
mod gates;
mod kernel_options;
pub mod profile;
mod run_statistics;
mod settings;
mod spread;

pub use bisection::link_order::{LinkOrderCheck, LinkOrderFinding};
pub use bisection::{Bisection, Finding as BisectionFinding, Level as BisectionLevel, Position};
pub use confound::{
    Confound, Facts, Undeclared, confounds, in_words, is_kernel_fact, kernel_differences, undeclared,
};
pub use cpu::{CpuTime, instructions_per_transaction};
pub use explain::{
    Budget, Cause, Change, Component, ComponentTime, Confidence, Difference, Explanation, Measure,
    NotExplained, explain,
};
pub use fitness::{Check, Fix, State, fitness, fixes};
pub use gates::{
    BACKGROUND_RATE, INTERRUPTED, NO_KERNEL, NO_SERVER, Observation, judge, lost_agent, no_kernel, no_server,
    other_pgdynos,
};
pub use kernel_options::{KernelOptions, option_matters};
pub use model::validity::Thresholds;
pub use run_statistics::run_statistics;
pub use settings::{canonical_value, facts_of_settings};
pub use spread::spread;
