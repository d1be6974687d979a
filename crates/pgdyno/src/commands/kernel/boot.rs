//! `pgdyno kernel boot`: runs a command under a kernel, in a virtual machine.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use clap::{Args, ValueEnum};
use host::Cache;
use machine::vm::guest::{Job, Orders};
use machine::vm::{Frame, Hardware, Kvm, Root, Vm};
use model::machine::Acceleration;
use model::units::{Size, Span};

use crate::exit::{Exit, Usage};
use crate::interrupt;
use crate::output::note;
use crate::progress::PreparationProgress;

/// Run a command under a kernel, in a virtual machine that has nothing else
///
/// Boots the kernel with a file system in memory: pgdyno, COMMAND as it is on this machine with its libraries, and what
/// busybox can do, where that is installed. What COMMAND writes comes out as it is written, and its exit code is the
/// exit code. It has no standard input, no network but the loopback, and no file of this machine, which it can't change.
/// Without COMMAND, it shows the kernel's log.
///
/// With --root host it has all of this machine's files, the working directory and the environment. What it writes to files
/// stays in the virtual machine's memory and is gone with it.
///
/// KERNEL is a version, a Debian package or a path, as `pgdyno kernel fetch` has it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel boot 6.12 -- uname -r\n  \
                        pgdyno kernel boot 6.1 --args mitigations=off -- cat /sys/devices/system/cpu/vulnerabilities/spectre_v2\n  \
                        pgdyno kernel boot ./linux/ -- sh -c 'dmesg | tail'\n  \
                        pgdyno kernel boot 6.12 --root host -- make check\n  \
                        pgdyno kernel boot ./arch/x86/boot/bzImage --cpus 4 --memory 2GB -- nproc\n\n\
                        Exit codes: COMMAND's own (127 where it is not there, 126 where it can't be run, 128 and more \
                        after a signal),\n1 where the kernel does not come up, 2 usage, 130 interrupted.")]
pub(super) struct BootArgs {
    /// Version (6.12), Debian package or pattern of packages, or path to a bzImage or a built kernel tree
    #[arg(value_name = "KERNEL")]
    kernel: String,

    /// What executes its instructions: kvm, tcg, icount [default: kvm where it works, else tcg]
    #[arg(long, value_name = "HOW")]
    acceleration: Option<String>,

    /// More for the kernel's command line
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    args: String,

    /// What its files are
    #[arg(long, value_enum, default_value_t = RootOf::Memory)]
    root: RootOf,

    /// Its processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=255))]
    cpus: u32,

    /// Its memory
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    memory: Size,

    /// How long it may say nothing until it counts as hung
    #[arg(long, value_name = "TIME", default_value = "3min")]
    patience: Span,

    /// What to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RootOf {
    /// COMMAND with its libraries, and busybox
    Memory,
    /// All that this machine has, read-only, and what is written in memory above it
    Host,
}

/// The drivers for this machine's files: the bus on which they are, and file systems.
const HOST_MODULES: [&str; 3] = ["virtio_pci", "virtiofs", "overlay"];
/// What is run where nothing is said.
const USUAL_COMMAND: &str = "dmesg";

impl BootArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let bar = PreparationProgress::new();
        let kernel = machine::kernel(cache, &self.kernel, Path::new(""), &bar);
        bar.clear();
        let kernel = kernel?;
        let program = env::current_exe()?;
        let acceleration = match self.acceleration.as_deref().map(named).transpose()? {
            Some(acceleration) => acceleration,
            None => match machine::vm::works_here(cache, &kernel.image, &program)? {
                Kvm::Works => Acceleration::Kvm,
                Kvm::Fails(_) => Acceleration::Tcg,
            },
        };
        if acceleration == Acceleration::Icount && self.cpus != 1 {
            return Err(
                Usage("error: icount counts the instructions of one processor: --cpus 1".to_owned()).into()
            );
        }
        let command = match self.command.is_empty() {
            true => vec![USUAL_COMMAND.to_owned()],
            false => self.command.clone(),
        };
        let mut root = Root::new(cache.directory())?;
        let mut modules = Vec::new();
        let mut orders = Orders::of(Job::Command(command.clone()));
        match self.root {
            RootOf::Memory => {
                let applets = pack_busybox(&mut root)?;
                if let Some(wanted) = command.first()
                    && let (false, Some(found)) = (applets.contains(wanted), find(wanted))
                {
                    root.program(&found, None)?;
                }
                orders.variables.push(("PATH".to_owned(), GUEST_PATH.to_owned()));
            }
            RootOf::Host => {
                orders.host_root = true;
                orders.directory = env::current_dir()?;
                orders.variables = environment();
                modules = machine::modules(&kernel, &HOST_MODULES)?;
            }
        }
        orders.pack(&mut root, &program, &modules)?;
        let hardware = Hardware {
            acceleration,
            cpus: self.cpus,
            memory_bytes: self.memory.bytes(),
            disk: None,
            host_files: self.root == RootOf::Host,
            patience: Some(self.patience.duration()),
        };
        let interrupt = interrupt::flag()?;
        let mut vm = Vm::boot(&kernel.image, root, hardware, &self.args)?;
        let mut failed = None;
        let ended = vm.run(&|| interrupt.load(Ordering::Relaxed), |frame| match frame {
            // Whoever closes our output wants no more of it.
            Frame::Stdout(bytes) => drop(std::io::stdout().write_all(&bytes)),
            Frame::Stderr(bytes) => drop(std::io::stderr().write_all(&bytes)),
            Frame::Failed(why) => failed = Some(why),
            _ => {}
        });
        match (ended, failed) {
            (Err(machine::vm::VmError::Interrupted), _) => Ok(Exit::Interrupted),
            (Err(error), _) => Err(error.into()),
            (Ok(_), Some(why)) => anyhow::bail!("in the virtual machine: {why}"),
            (Ok(code), None) => Ok(Exit::Code(code)),
        }
    }
}

/// Where programs are in the guest, busybox's first.
const GUEST_PATH: &str = "/bin:/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin";

fn named(name: &str) -> Result<Acceleration, Usage> {
    let known = name.parse().ok().filter(|acceleration: &Acceleration| acceleration.is_virtual());
    known.ok_or_else(|| Usage(format!("error: `{name}` is no acceleration: expected kvm, tcg or icount")))
}

/// What of the environment is text.
fn environment() -> Vec<(String, String)> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    env::vars_os().filter_map(text).collect()
}

/// Gives a guest busybox under all its names, where it is installed.
fn pack_busybox(root: &mut Root) -> anyhow::Result<BTreeSet<String>> {
    let Some(busybox) = find("busybox") else {
        note(
            "without busybox (package busybox-static), the virtual machine has the command and nothing else\n",
        );
        return Ok(BTreeSet::new());
    };
    let listed = Command::new(&busybox).arg("--list").output()?;
    let at = Path::new("/bin/busybox");
    root.program(&busybox, Some(at))?;
    let applets: BTreeSet<String> =
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
    for applet in applets.iter().filter(|applet| *applet != "busybox") {
        root.link(&Path::new("/bin").join(applet), at)?;
    }
    Ok(applets)
}

/// Where a command is on this machine.
fn find(command: &str) -> Option<PathBuf> {
    let given = Path::new(command);
    if given.is_absolute() {
        return given.is_file().then(|| given.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(given)).find(|file| file.is_file())
}
