//! The load generator: clients that run a script against a server, event loops, recording.
//!
//! It runs as a process of its own. The runner's side is [`Process`]; the child's side is [`serve`], which `pgdyno
//! driver` calls. In between go the lines of `model::message`.
//!
//! Inside a process, [`run`] does it: `pgdyno driver` by [`serve`], and the commands that are a load themselves. In the
//! way of the data: `engine` starts the threads and merges what they tell → each `worker` has its clients connected and
//! runs their scripts (`program`) in an `event_loop` over one of two kinds of `io`, and its `recorder` hands over one
//! [`Record`] an interval → `intervals` puts those of all threads together for the [`Observer`].

mod arrivals;
mod client;
mod clock;
mod connect;
mod engine;
mod error;
mod event;
mod event_loop;
mod intervals;
mod io;
mod limits;
mod load;
mod observer;
mod process;
mod program;
mod record;
mod recorder;
mod replies;
mod schedule;
mod serve;
mod shell;
mod slice;
mod stop;
mod summary;
mod timers;
mod transaction_log;
mod worker;

pub use arrivals::{Arrivals, Rate, Spacing, Stage};
pub use connect::connect_params;
pub use engine::{Control, Stopper, run};
pub use error::{DriverError, LoadError};
pub use io::try_uring;
pub use load::{Engine, ErrorPolicy, Group, Load, LogOptions, OnError, Think, Verbosity, WeightedScript};
pub use observer::{DriverMessage, EngineUsed, Level, Observer, Outcome};
pub use process::{Next, Process};
pub use record::{CommandRecord, ErrorRecord, Failures, Lag, Moments, Record, ScriptRecord, TransactionSpan};
pub use serve::{APPLICATION_NAME, BACKGROUND_APPLICATION_NAME, Ended, serve};
