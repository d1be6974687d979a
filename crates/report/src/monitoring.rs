//! Metrics for monitoring systems: of running campaigns, which `pgdyno serve` shows at `/metrics`, and of stored trials,
//! which `pgdyno export` writes. Both have the same families.
//!
//! `live` or `trial` (values) → `text` or `otlp` (formats).

mod family;
mod live;
mod load;
mod point;
mod text;

pub use family::{Family, Kind, LIVE, Unit, all_live};
pub use live::LiveRun;
pub use text::{Syntax, running};
