//! Pure statistics over samples: no I/O, no unseeded randomness, a source for every method.
//!
//! A sample is usually the throughput of the runs of one cell: the run is the replicate.
//!
//! - one cell: [`Cell`], from its [`Sample`], [`Logs`] and [`Split`];
//! - number of runs: [`runs_for_cell`], [`runs_needed`], [`ci_half_width`];
//! - detectable effects: [`smallest_effect`], [`runs_for_effect`], [`SequentialPower`];
//! - one run: [`WindowMean`], [`Trend`], [`warmup_cut`], [`stalls`], [`percentiles`], [`synchronized_ends()`];
//! - scaling with clients: [`Sweep`];
//! - history: [`change_points`] of one series, [`change_points_of_all`] series of a history, [`events`] of several;
//! - search for the place of a change: [`StepSearch`], and by tests [`OutcomeSearch`];
//! - comparison: [`Comparison`] and [`verdicts`], from [`Estimate`], [`Blocks`], [`SessionSpread`], [`permutation_p`] and [`holm`]; further tests of
//!   two cells: [`mann_whitney_p`], [`share_smaller`], [`benjamini_hochberg`], and of one: [`first_run_apart`].

mod adjust;
mod blocks;
mod cell;
mod change_points;
mod compare;
mod e_divisive;
mod estimate;
mod events;
mod first_run;
mod logs;
mod mean_difference;
mod modes;
mod moments;
mod pairs;
mod percentiles;
mod permutation;
mod power;
mod repeats;
mod sample;
mod sequential;
mod sessions;
mod shuffle;
mod stalls;
mod step_search;
mod student;
mod sweep;
mod synchronized_ends;
mod transient;
mod trend;
mod warmup;
mod window;

pub use adjust::{benjamini_hochberg, holm};
pub use blocks::Blocks;
pub use cell::{Cell, Class, MIN_RUNS, MODE_RATIO, NOISY, Spread, WIDE};
pub use change_points::{ChangePoint, change_points, change_points_of_all, medians, relative_to};
pub use compare::{COUNTED_MARGIN, Comparison, MARGIN, Verdict, margin, verdicts};
pub use e_divisive::MIN_VALUES;
pub use estimate::Estimate;
pub use events::{Event, events};
pub use first_run::first_run_apart;
pub use logs::{Interval, Logs};
pub use mean_difference::{mean_difference_half_width, mean_half_width};
pub use modes::{Split, critical_split};
pub use pairs::{DecidingFigure, PairedSequence, deciding, session_log_ratio, sessions_for_equivalence};
pub use percentiles::{Percentile, percentiles};
pub use permutation::{mann_whitney_p, permutation_p, share_smaller};
pub use power::{Layout, SequentialPower, runs_for_effect, smallest_effect};
pub use repeats::{Reason, UNSTABLE_RUNS, ci_half_width, known_within, runs_for_cell, runs_needed};
pub use sample::Sample;
pub use sessions::SessionSpread;
pub use stalls::{Stall, stalls};
pub use step_search::{
    Culprits, OutcomePosterior, OutcomeSearch, ProbeCost, StepPosterior, StepSearch, StepSize,
};
pub use sweep::{Step, Sweep, Usl};
pub use synchronized_ends::{Task, synchronized_ends};
pub use trend::Trend;
pub use warmup::warmup_cut;
pub use window::{WindowMean, effective_sample_size};
