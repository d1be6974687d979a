//! Tests of the program and of its sources that need no server: `make check` runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that panics has failed")]

mod ab;
#[path = "../../../analysis/tests/fixture/bundles.rs"]
mod bundles;
mod cli;
mod compare;
mod completions;
mod cycles;
mod damage;
mod docs;
mod export;
mod export_metrics;
mod floors;
mod generated;
mod golden;
mod history;
mod init;
mod markdown;
#[path = "../../../analysis/tests/fixture/phases.rs"]
mod phases;
mod power;
mod process_limits;
mod schema;
mod share;
mod show;
mod terminal;
