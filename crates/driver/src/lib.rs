//! The load generator: clients that run a script against a server, event loops, recording.
//!
//! It runs in a separate process. The runner's side is [`Process`]; the child's side is [`serve`], which `pgdyno
//! driver` calls. They exchange the messages of `model::message`, one per line.
//!
//! [`run`] runs a load within a process: for [`serve`], and for the commands that generate load themselves. Data flow:
//! `engine` starts the threads and merges their events → each `worker` connects its clients and runs their scripts
//! (`program`) in an `event_loop` over one of two kinds of `io`, and its `recorder` hands over one [`Record`] per
//! interval → `intervals` merges those of all threads for the [`Observer`].
//!
//! [`play`] plays recorded sessions instead (`playback`), [`play_trace`] those of a trace.

mod arrivals;
mod client;
mod clock;
mod connect;
mod control;
mod engine;
mod error;
mod event;
mod event_loop;
mod histogram;
mod intervals;
mod io;
mod limits;
mod load;
mod merged_load;
mod observer;
mod playback;
mod process;
mod program;
mod record;
mod recorder;
mod replies;
mod requests;
mod schedule;
mod serve;
mod shell;
mod slice;
mod stall;
mod stop;
mod summary;
mod timers;
mod trace_load;
mod trace_playback;
mod transaction_log;
mod turns;
mod worker;

pub use arrivals::{Arrivals, Rate, Spacing, Stage};
pub use connect::connect_params;
pub use control::{Control, Stopper};
pub use engine::run;
pub use error::{DriverError, LoadError};
pub use io::try_uring;
pub use limits::check_file_limit;
pub use load::{Engine, ErrorPolicy, Group, Load, LogOptions, OnError, Think, Verbosity, WeightedScript};
pub use merged_load::MergedLoad;
pub use observer::{DriverMessage, EngineUsed, Level, Observer, Outcome};
pub use playback::{
    Awaited, Cue, CueAction, Execution, Hold, Playback, PlaybackError, PlaybackEvent, PlaybackOutcome,
    Played, PlayedEnd, Prepared, play,
};
pub use process::{Process, ProcessEvent, tail};
pub use record::{
    CommandRecord, ErrorRecord, Failures, Intended, Lag, Moments, PhaseLatencies, Record, ScriptRecord,
    TransactionSpan,
};
pub use serve::{APPLICATION_NAME, BACKGROUND_APPLICATION_NAME, ServeOutcome, serve};
pub use trace_playback::{Recorded, TracePlayback, play_trace};
