//! `pgdyno bench`: one load, or a search for the highest rate, against a running server.
//!
//! Data flow: a [`Request`] from the command line → [`Plan`], checked and complete → [`run`]: setup, the load
//! (`measure`) or a search (`find_max`, whose steps `highest` chooses), teardown → [`Report`], which serializes to JSON and which [`text`] prints for
//! people. While a load runs, a [`LiveView`] shows its state.

mod arrivals;
mod description;
mod error;
mod error_rules;
mod figures;
mod find_max;
mod find_max_speed;
mod highest;
mod interrupt;
mod interval_log;
mod live;
mod measure;
mod objective;
mod omission;
mod plan;
mod preparation;
mod quantity;
mod report;
mod request;
mod results;
mod run;
mod search;
mod source;
mod text;
mod threads_probe;
mod warnings;

pub use error::{PlanError, RunError};
pub use find_max_speed::{SpeedRequest, find_max_speed};
pub use interrupt::Interrupt;
pub use live::LiveView;
pub use objective::{Objective, ObjectiveError};
pub use plan::Plan;
pub use quantity::{
    Define, ErrorRule, QuantityError, Spacing, WeightedName, duration, interval, positive_duration,
    positive_rate, stage, think_time,
};
pub use report::{Conclusion, Report};
pub use request::{ErrorOptions, Request, ScheduleOptions, ScriptOptions};
pub use run::{Outcome, run};
pub use text::{probes_table, probes_text, text};
pub use threads_probe::{Alternative, ThreadsProbe};
