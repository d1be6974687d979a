//! Metrics that collectors read during a load. The [catalogue](GROUPS) defines each; [`Series`] hold the values.

mod catalogue;
mod metric;
mod series;

pub use catalogue::{GROUPS, find};
pub use metric::{Better, Condition, Group, Kind, Majors, Metric, Unit};
pub use series::{Metrics, Point, Series};
