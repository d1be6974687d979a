//! `pgdyno kernel boot`: runs a command under a kernel, in a virtual machine.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use host::Cache;
use machine::vm::{CommandOutput, GuestFiles, VmCommand, VmError};
use model::machine::Acceleration;
use model::units::{Size, Span};

use crate::campaign_run::program;
use crate::exit::{Exit, Usage};
use crate::interrupt;
use crate::progress::PreparationProgress;

/// Run a command under a kernel, in a virtual machine of its own
///
/// Boots the kernel with a file system in memory that has pgdyno, COMMAND with its libraries, and busybox's commands if
/// busybox is installed. The output of COMMAND is printed immediately, and its exit code is the exit code. COMMAND has no
/// standard input, no network but the loopback, and no access to this machine's files. Without COMMAND, the kernel's log is
/// shown.
///
/// With --root host, COMMAND has all of this machine's files, the working directory and the environment. Its writes to
/// files stay in the virtual machine's memory and are lost with it.
///
/// KERNEL is a version, a Debian package, a path or a commit, as for `pgdyno kernel fetch`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel boot 6.12 -- uname -r\n  \
                        pgdyno kernel boot 6.1 --args mitigations=off -- cat /sys/devices/system/cpu/vulnerabilities/spectre_v2\n  \
                        pgdyno kernel boot ./linux/ -- sh -c 'dmesg | tail'\n  \
                        pgdyno kernel boot 6.12 --root host -- make check\n  \
                        pgdyno kernel boot ./arch/x86/boot/bzImage --cpus 4 --memory 2GB -- nproc\n\n\
                        Exit codes: COMMAND's own (127 if it does not exist, 126 if it can't run, 128 and more \
                        after a signal),\n1 if the kernel does not come up, 2 usage, 130 interrupted.")]
pub(super) struct BootArgs {
    /// Version (6.12), Debian package or glob of packages, path to a bzImage or a built kernel tree, or commit (./linux@v6.6)
    #[arg(value_name = "KERNEL")]
    kernel: String,

    /// How instructions are executed: kvm, tcg, icount [default: kvm if it works, else tcg]
    #[arg(long, value_name = "HOW", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(["kvm", "tcg", "icount"]).try_map(|name| name.parse::<Acceleration>()))]
    acceleration: Option<Acceleration>,

    /// Additional arguments of the kernel's command line
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    args: String,

    /// Files of the virtual machine
    #[arg(long, value_enum, default_value_t = RootName::Memory)]
    root: RootName,

    /// Processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=255))]
    cpus: u32,

    /// Memory
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    memory: Size,

    /// Longest silence until the virtual machine counts as hung
    #[arg(long, value_name = "TIME", default_value = "3min")]
    patience: Span,

    /// Command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RootName {
    /// COMMAND with its libraries, and busybox
    Memory,
    /// All files of this machine, read-only, with writes in memory
    Host,
}

impl From<RootName> for GuestFiles {
    fn from(name: RootName) -> Self {
        match name {
            RootName::Memory => Self::Command,
            RootName::Host => Self::Host,
        }
    }
}

impl BootArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        if self.acceleration == Some(Acceleration::Icount) && self.cpus != 1 {
            let message = "error: icount counts the instructions of one processor: use --cpus 1";
            return Err(Usage(message.to_owned()).into());
        }
        let bar = PreparationProgress::new();
        let kernel = machine::kernel(cache, &self.kernel, Path::new(""), &bar);
        bar.clear();
        let command = VmCommand {
            words: self.command,
            files: self.root.into(),
            kernel_args: self.args,
            acceleration: self.acceleration,
            cpus: self.cpus,
            memory_bytes: self.memory.bytes(),
            silence_timeout: self.patience.duration(),
        };
        let interrupt = interrupt::flag()?;
        let is_interrupted = || interrupt.load(Ordering::Relaxed);
        // A reader that closes the output wants no more of it.
        let mut print = |output: CommandOutput<'_>| match output {
            CommandOutput::Stdout(bytes) => drop(std::io::stdout().write_all(bytes)),
            CommandOutput::Stderr(bytes) => drop(std::io::stderr().write_all(bytes)),
        };
        match command.run(cache, &kernel?, &program()?, &bar, &is_interrupted, &mut print) {
            Ok(code) => Ok(Exit::Code(code)),
            Err(VmError::Interrupted) => Ok(Exit::Interrupted),
            Err(error) => Err(error.into()),
        }
    }
}
