//! Pure statistics over samples: no I/O, no randomness that is not seeded, every method with its source.
//!
//! A sample is usually the throughput of the runs of one cell: the run is the replicate.
//!
//! - what one cell says: [`Cell`], from its [`Sample`], [`Logs`] and [`Split`];
//! - how many runs: [`runs_for_cell`], [`runs_for_comparison`], [`runs_needed`], [`ci_half_width`];
//! - what can be detected: [`smallest_effect`], [`runs_for_effect`];
//! - what moved within a run: [`Trend`];
//! - when it changed: [`change_points`] of a history, [`events`] of several;
//! - what changed: [`Comparison`] and [`verdicts`], from [`Welch`], [`permutation_p`] and [`holm`].

mod cell;
mod change_points;
mod compare;
mod energy;
mod events;
mod holm;
mod logs;
mod modes;
mod moments;
mod permutation;
mod power;
mod repeats;
mod sample;
mod shuffle;
mod student;
mod trend;
mod welch;

pub use cell::{Cell, Class, LEAST_RUNS, MODE_RATIO, NOISY, WIDE};
pub use change_points::{ChangePoint, change_points, medians, relative_to};
pub use compare::{Comparison, MARGIN, Verdict, verdicts};
pub use events::{Event, events};
pub use holm::holm;
pub use logs::{Interval, Logs};
pub use modes::{Split, critical_split};
pub use permutation::permutation_p;
pub use power::{runs_for_effect, smallest_effect};
pub use repeats::{
    Reason, SECOND_STAGE_P, STAGE, UNSTABLE_RUNS, ci_half_width, runs_for_cell, runs_for_comparison,
    runs_needed,
};
pub use sample::Sample;
pub use trend::Trend;
pub use welch::Welch;
