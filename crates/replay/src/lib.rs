//! Recorded statements: from the logs of a server, or from snapshots of `pg_stat_statements`, to a trace, what a trace has, a trace without its data, and a trace played.
//! The trace itself is the crate `trace`.
//!
//! ```text
//! logs ─ pglog ─ recorder ─┬─ sessions      the statements of each session, from its entries
//!                          ├─ dependencies  what writes depend on
//!                          ├─ shapes        statements that differ in their values only (libpg_query)
//! snapshots ─ synthesis ───┴─ trace         a file in the order of time ─┬─ inspect     figures
//!                                                                        ├─ anonymize   the same without data
//!                                                                        └─ play        against a server, by the driver
//! ```

mod anonymize;
mod error;
mod inspect;
mod left_out;
mod play;
mod recorder;
mod shapes;
mod sql;
mod synthesis;
mod tree;

pub use anonymize::{Key, anonymize};
pub use error::ReplayError;
pub use inspect::{Inspection, Log, Missing, Moment, NameCount, Names, Period, StatementFigures, inspect};
pub use left_out::{LeftOut, LeftOutTally};
pub use play::{
    DatabaseCopy, Difference, LatencyFigures, PlayReport, PlayRequest, Responses, Schedule, SessionCounts,
    SpeedSearch, SpeedStep, StatementCounts, StepKind, play, play_judged, step_verdict,
};
pub use recorder::{Progress, Recorded, record};
pub use synthesis::{SynthesisRequest, Synthesized, synthesize};
