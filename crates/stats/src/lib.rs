//! Pure statistics over samples: no I/O, no unseeded randomness, a source for every method.
//!
//! A sample is usually the throughput of the runs of one cell: the run is the replicate.
//!
//! - one cell: [`Cell`], from its [`Sample`], [`Logs`] and [`Split`];
//! - number of runs: [`runs_for_cell`], [`runs_for_comparison`], [`runs_needed`], [`ci_half_width`];
//! - detectable effects: [`smallest_effect`], [`runs_for_effect`], [`TwoStages`];
//! - one run: [`WindowMean`], [`Trend`], [`warmup_cut`], [`stalls`], [`percentiles`], [`synchronized_ends()`];
//! - scaling with clients: [`Sweep`];
//! - history: [`change_points`] of one series, [`events`] of several;
//! - comparison: [`Comparison`] and [`verdicts`], from [`Welch`], [`permutation_p`] and [`holm`]; further tests of
//!   two cells: [`mann_whitney_p`], [`share_smaller`], [`benjamini_hochberg`], and of one: [`first_run_apart`].

mod adjust;
mod cell;
mod change_points;
mod compare;
mod e_divisive;
mod events;
mod first_run;
mod logs;
mod modes;
mod moments;
mod percentiles;
mod permutation;
mod power;
mod repeats;
mod sample;
mod shuffle;
mod stalls;
mod student;
mod sweep;
mod synchronized_ends;
mod transient;
mod trend;
mod warmup;
mod welch;
mod window;

pub use adjust::{benjamini_hochberg, holm};
pub use cell::{Cell, Class, MIN_RUNS, MODE_RATIO, NOISY, Spread, WIDE};
pub use change_points::{ChangePoint, change_points, medians, relative_to};
pub use compare::{COUNTED_MARGIN, Comparison, MARGIN, Verdict, verdicts};
pub use e_divisive::MIN_VALUES;
pub use events::{Event, events};
pub use first_run::first_run_apart;
pub use logs::{Interval, Logs};
pub use modes::{Split, critical_split};
pub use percentiles::{Percentile, percentiles};
pub use permutation::{mann_whitney_p, permutation_p, share_smaller};
pub use power::{TwoStages, runs_for_effect, smallest_effect};
pub use repeats::{
    Reason, SECOND_STAGE_P, STAGE, UNSTABLE_RUNS, ci_half_width, runs_for_cell, runs_for_comparison,
    runs_needed,
};
pub use sample::Sample;
pub use stalls::{Stall, stalls};
pub use sweep::{Step, Sweep, Usl};
pub use synchronized_ends::{Task, synchronized_ends};
pub use trend::Trend;
pub use warmup::warmup_cut;
pub use welch::{Welch, mean_difference_half_width};
pub use window::{WindowMean, effective_sample_size};
