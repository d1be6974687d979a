//! Recorded statements: from the logs of a server to a trace, what a trace has, and a trace without its data.
//!
//! ```text
//! logs ─ pglog ─ recorder ─┬─ sessions   the statements of each session, from its entries
//!                          ├─ shapes     statements that differ in their values only (libpg_query)
//!                          └─ trace      a file in the order of time ─┬─ inspect     figures
//!                                                                     └─ anonymize   the same without data
//! ```

mod anonymize;
mod error;
mod inspect;
mod left_out;
mod recorder;
mod shapes;
mod sql;
mod statement;
pub mod trace;

pub use anonymize::{Key, anonymize};
pub use error::ReplayError;
pub use inspect::{Inspection, Log, Missing, Moment, NameCount, Names, Period, StatementFigures, inspect};
pub use left_out::{LeftOut, LeftOutTally};
pub use recorder::{Progress, Recorded, record};
pub use statement::{Action, Call, Event, Identity, Outcome, SqlState, Statement};
