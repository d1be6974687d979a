//! Metrics of the collectors themselves.

use crate::metrics::metric::{Group, counter};

pub(super) const COLLECTORS: Group = Group {
    name: "collectors",
    label: Some("source"),
    metrics: &[
        counter("collector.reads", "pgdyno", "readings"),
        counter("collector.late", "pgdyno", "readings that were late or skipped").lower_is_better(),
        counter("collector.failed", "pgdyno", "readings that failed").lower_is_better(),
        counter("collector.spent_us", "pgdyno", "time spent on readings").lower_is_better(),
    ],
};
