//! One call of pgbench, from its arguments to its exit code.

use std::ffi::OsString;

use crate::benchmark;
use crate::console::Console;
use crate::init;
use crate::interrupt::OnSignal;
use crate::message::Fatal;
use crate::options::{self, CommandLine};
use crate::task::Task;

/// Runs pgbench with these arguments, without the program's name, and returns its exit code.
pub fn run(args: &[OsString], console: &Console, on_signal: &OnSignal<'_>) -> u8 {
    perform(args, console, on_signal).unwrap_or_else(|fatal| {
        console.plain(fatal.text());
        fatal.exit_code()
    })
}

fn perform(args: &[OsString], console: &Console, on_signal: &OnSignal<'_>) -> Result<u8, Fatal> {
    let options = match options::parse(args, console)? {
        CommandLine::Run(options) => *options,
        CommandLine::Show(text) => return console.print(&text).map(|()| 0),
        CommandLine::ShowOnStderr(text) => {
            console.plain(&text);
            return Ok(0);
        }
    };
    match Task::new(options)? {
        Task::Initialize(task) => init::initialize(&task, console, on_signal).map(|()| 0),
        Task::Benchmark(task) => benchmark::benchmark(&task, console, on_signal),
    }
}
