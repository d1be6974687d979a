//! pgbench on pgdyno's driver: the engine of `pgdyno pgbench`, and of pgdyno invoked as pgbench.
//!
//! Control flow of [`run`]: `options` parses the command line (by `getopt`) into a `task`, which is either `init` (the
//! tables of the standard scenario) or `benchmark` (a load, with lines of `progress` and the report of `results`).
//! `compat` describes the differences between pgbench of PostgreSQL 15, 17 and 18. All output goes to a [`Console`].

mod benchmark;
mod compat;
mod console;
mod counts;
mod getopt;
mod help;
mod init;
mod interrupt;
mod message;
mod number;
mod open_files;
mod options;
mod partition;
mod password;
mod progress;
mod results;
mod run;
mod scripts;
mod seed;
mod server;
mod table_info;
mod task;

pub use console::Console;
pub use interrupt::{OnSignal, SignalAction};
pub use run::run;
