//! `pgdyno pgbench`, and pgdyno called under the name of pgbench: what pgbench does, on pgdyno's driver.

mod benchmark;
mod compat;
mod counts;
mod files;
mod getopt;
mod help;
mod init;
mod interrupt;
mod message;
mod number;
mod options;
mod password;
mod progress;
mod results;
mod scripts;
mod seed;
mod server;
mod table_info;
mod task;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use crate::exit::Exit;
use message::Fatal;
use options::Read;
use task::Task;

/// Be pgbench: its options, scripts, output and logs, on pgdyno's driver
///
/// `pgdyno pgbench --help` shows the options; docs/pgbench-differences.md says what is different and why. Called under
/// the name of pgbench, pgdyno is pgbench too.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct PgbenchArgs {
    /// As pgbench takes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    args: Vec<OsString>,
}

impl PgbenchArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        // As they were written: a `--` among them is pgbench's, which `args` has lost.
        let args: Vec<OsString> = env::args_os().skip(2).collect();
        Ok(Exit::Code(run(&args)))
    }
}

/// What to do where this program is called by the name pgbench; none where it is not.
pub(crate) fn run_if_called_so() -> Option<ExitCode> {
    let mut args = env::args_os();
    let name = args.next()?;
    let args: Vec<OsString> = args.collect();
    (Path::new(&name).file_name() == Some(OsStr::new("pgbench"))).then(|| ExitCode::from(run(&args)))
}

/// Does what a command line without the program's name says, and gives the exit code.
fn run(args: &[OsString]) -> u8 {
    perform(args).unwrap_or_else(|fatal| fatal.report())
}

fn perform(args: &[OsString]) -> Result<u8, Fatal> {
    let given = match options::read(args)? {
        Read::Given(given) => *given,
        Read::Show(text) => return message::out(&text).map(|()| 0),
        Read::ShowOnStderr(text) => {
            message::plain(&text);
            return Ok(0);
        }
    };
    match Task::of(given)? {
        Task::Initialize(task) => init::initialize(&task).map(|()| 0),
        Task::Benchmark(task) => benchmark::benchmark(&task),
    }
}
