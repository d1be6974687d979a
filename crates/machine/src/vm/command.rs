//! A command under a kernel, in a virtual machine.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use host::{Cache, IoContext, Progress};
use model::machine::Acceleration;

use super::guest::{GuestConfig, Job};
use super::{Frame, Hardware, Initramfs, Kvm, Vm, VmError, probe_kvm};
use crate::kernel::Kernel;

/// Modules for this machine's files: their bus, and file systems.
const HOST_MODULES: [&str; 3] = ["virtio_pci", "virtiofs", "overlay"];
/// Default command: prints the kernel's log.
const DEFAULT_COMMAND: &str = "dmesg";
/// Directories of programs in the guest, busybox's first.
const GUEST_PATH: &str = "/bin:/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// A command in a virtual machine.
#[derive(Clone, Debug)]
pub struct VmCommand {
    /// The command with its arguments; without one, the kernel's log is printed.
    pub words: Vec<String>,
    /// Files available to it.
    pub files: GuestFiles,
    /// Arguments in addition to those that every guest has.
    pub kernel_args: String,
    /// Acceleration; KVM if it works, else TCG, without one.
    pub acceleration: Option<Acceleration>,
    /// Processors.
    pub cpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Longest silence until the guest counts as hung.
    pub silence_timeout: std::time::Duration,
}

/// Files in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestFiles {
    /// The command with its libraries, and busybox.
    Command,
    /// All files of this machine, read-only; writes go to memory.
    Host,
}

/// Output of a command in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutput<'a> {
    /// Bytes of its standard output.
    Stdout(&'a [u8]),
    /// Bytes of its standard error.
    Stderr(&'a [u8]),
}

impl VmCommand {
    /// Boots the kernel and runs the command; returns its exit code. `program` is pgdyno itself.
    ///
    /// # Errors
    /// The guest can't be prepared, does not come up or hangs, or the user interrupts it.
    pub fn run(
        self,
        cache: &Cache,
        kernel: &Kernel,
        program: &Path,
        progress: &dyn Progress,
        is_interrupted: &dyn Fn() -> bool,
        on_output: &mut dyn FnMut(CommandOutput<'_>),
    ) -> Result<u8, VmError> {
        let acceleration = match self.acceleration {
            Some(acceleration) => acceleration,
            None => match probe_kvm(cache, &kernel.image, program)? {
                Kvm::Works => Acceleration::Kvm,
                Kvm::Fails(_) => Acceleration::Tcg,
            },
        };
        let words = if self.words.is_empty() { vec![DEFAULT_COMMAND.to_owned()] } else { self.words };
        let mut root = Initramfs::new(cache.directory())?;
        let mut modules = Vec::new();
        let mut config = GuestConfig::new(Job::Command(words.clone()));
        match self.files {
            GuestFiles::Command => {
                let applets = pack_busybox(&mut root, progress)?;
                if let Some(name) = words.first()
                    && let (false, Some(found)) = (applets.contains(name), find(name))
                {
                    root.program(&found, None)?;
                }
                config.variables.push(("PATH".to_owned(), GUEST_PATH.to_owned()));
            }
            GuestFiles::Host => {
                config.host_root = true;
                config.directory = env::current_dir().doing("find the directory", Path::new("."))?;
                config.variables = environment();
                modules = crate::modules(kernel, &HOST_MODULES)?;
            }
        }
        config.pack(&mut root, program, &modules)?;
        let hardware = Hardware {
            acceleration,
            cpus: self.cpus,
            memory_bytes: self.memory_bytes,
            disk: None,
            host_files: self.files == GuestFiles::Host,
            silence_timeout: Some(self.silence_timeout),
        };
        let mut vm = Vm::boot(&kernel.image, root, hardware, &self.kernel_args)?;
        let mut failed = None;
        let code = vm.run(is_interrupted, |frame| {
            match frame {
                Frame::Stdout(bytes) => on_output(CommandOutput::Stdout(&bytes)),
                Frame::Stderr(bytes) => on_output(CommandOutput::Stderr(&bytes)),
                Frame::Failed(reason) => failed = Some(reason),
                _ => {}
            }
            Ok(())
        })?;
        match failed {
            Some(reason) => Err(VmError::Guest(reason)),
            None => Ok(code),
        }
    }
}

/// Environment variables that are text.
fn environment() -> Vec<(String, String)> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    env::vars_os().filter_map(text).collect()
}

/// Packs busybox under all its names, if it is installed.
fn pack_busybox(root: &mut Initramfs, progress: &dyn Progress) -> Result<BTreeSet<String>, VmError> {
    let Some(busybox) = find("busybox") else {
        progress.notice(
            "busybox (package busybox-static) is not installed: the virtual machine has only the command",
        );
        return Ok(BTreeSet::new());
    };
    let listed = Command::new(&busybox).arg("--list").output().doing("run", &busybox)?;
    let at = Path::new("/bin/busybox");
    root.program(&busybox, Some(at))?;
    let applets: BTreeSet<String> =
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
    for applet in applets.iter().filter(|applet| *applet != "busybox") {
        root.link(&Path::new("/bin").join(applet), at)?;
    }
    Ok(applets)
}

/// The program file of a command on this machine.
fn find(command: &str) -> Option<PathBuf> {
    let given = Path::new(command);
    if given.is_absolute() {
        return given.is_file().then(|| given.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(given)).find(|file| file.is_file())
}
