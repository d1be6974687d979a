//! `pgdyno pgbench`, and pgdyno called by the name pgbench: pgbench on pgdyno's driver.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pgbench::Console;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

use crate::exit::Exit;
use crate::interrupt;

/// Run as pgbench: its options, scripts, output and logs, with pgdyno's driver
///
/// `pgdyno pgbench --help` shows the options; docs/pgbench-differences.md lists the differences and their reasons. pgdyno
/// called by the name pgbench is the same.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct PgbenchArgs {
    /// Options of pgbench
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    args: Vec<OsString>,
}

impl PgbenchArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        // The raw arguments: clap removes a `--` from `args`, but pgbench needs it.
        Ok(Exit::Code(run(env::args_os().skip(1).skip_while(|arg| arg != "pgbench").skip(1).collect())))
    }
}

/// Exit code of pgbench if this program is called by that name, else `None`.
pub(crate) fn run_by_name() -> Option<ExitCode> {
    let mut args = env::args_os();
    let name = args.next()?;
    (Path::new(&name).file_name() == Some(OsStr::new("pgbench"))).then(|| ExitCode::from(run(args.collect())))
}

fn run(args: Vec<OsString>) -> u8 {
    let console = Console::new(io::stdout(), io::stderr(), io::stderr().is_terminal());
    pgbench::run(&args, &console, &|action| {
        // As pgbench, it ends at a hangup.
        interrupt::on_first_signal(&[SIGINT, SIGTERM], action, |signal| drop(emulate_default_handler(signal)))
    })
}
