//! Metrics for monitoring systems: of running campaigns, which `pgdyno serve` shows at `/metrics`, and of stored trials,
//! which `pgdyno export` writes. Both have the same families.
//!
//! `live` or `trial` (values) → `text` or `otlp` (formats).

mod family;
mod live;
mod load;
mod otlp;
mod point;
mod text;
mod trial;

pub use family::{Family, Kind, Unit, all_live};
pub use live::LiveRun;
pub(crate) use otlp::write_otlp;
pub(crate) use text::{END as OPENMETRICS_END, openmetrics_parts};
pub use text::{Syntax, running};
