//! Validity gates: whether a trial may be used, judged from its own records alone.
//!
//! Pure functions: [`judge`] takes what was observed and says what each gate found, with the evidence in figures.

mod gates;

pub use gates::{Observation, judge};
