//! QEMU: a kernel, an initramfs, serial ports, and nothing else. Source: the manual page qemu-system-x86_64(1), and
//! QEMU's "TCG Instruction Counting".

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use model::machine::{Acceleration, Storage};
use model::secret::is_secret_name;
use model::units::Size;
use rustix::process::Signal;

use crate::vm::descriptor::by_descriptor;
use crate::vm::error::VmError;
use crate::vm::initramfs::Initramfs;
use crate::vm::link::Frame;
use crate::vm::virtiofs::{HostFiles, TAG};
use host::process::{inherit_fd, spawn, withhold_variables};

/// Longest silence until a guest counts as hung; a working one reports all the time.
pub(crate) const DEFAULT_SILENCE_TIMEOUT: Duration = Duration::from_secs(180);
/// Interval between checks for an interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Messages of a guest that are read before the earlier ones are handled.
const MAX_WAITING_FRAMES: usize = 64;
/// Lines of the console that an error quotes.
const CONSOLE_LINES: usize = 25;

/// Stage of a guest that has not reported.
const BEFORE_START: &str = "before its first process ran";

/// Least memory that a guest needs in addition to its file system.
const MIN_MEMORY_BYTES: u64 = 192 << 20;

/// Hardware of a guest.
pub struct Hardware {
    /// Execution of its instructions.
    pub acceleration: Acceleration,
    /// Processors; one if instructions are counted.
    pub cpus: u32,
    /// Main memory.
    pub memory_bytes: u64,
    /// Disk image, with its storage options.
    pub disk: Option<(File, Storage)>,
    /// Whether it can read this machine's files.
    pub host_files: bool,
    /// Longest silence until it is killed; none for the default, three minutes.
    pub silence_timeout: Option<Duration>,
}

/// A running guest. It is killed when this is dropped, and by the kernel when this process dies.
pub struct Vm {
    child: Child,
    frames: Receiver<io::Result<Frame>>,
    /// Output of its console.
    console: File,
    /// Files that QEMU opens through this process's descriptors.
    _files: (File, Option<(File, Storage)>),
    host_files: Option<HostFiles>,
    silence_timeout: Duration,
    /// The command line of the emulator, for the record.
    command_line: Vec<String>,
}

/// Name and version of the emulator of this machine's processors, such as `QEMU 7.2.22`.
///
/// # Errors
/// [`VmError::NoEmulator`], or it does not report its version.
pub fn emulator() -> Result<String, VmError> {
    let output = Command::new(PROGRAM).arg("--version").output().map_err(not_started)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split("version ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let version =
        version.ok_or_else(|| VmError::Start { why: format!("{PROGRAM} --version printed {text:?}") })?;
    Ok(format!("QEMU {version}"))
}

#[cfg(target_arch = "x86_64")]
const PROGRAM: &str = "qemu-system-x86_64";
#[cfg(target_arch = "x86_64")]
const PACKAGE: &str = "qemu-system-x86";
#[cfg(not(target_arch = "x86_64"))]
const PROGRAM: &str = "qemu-system-aarch64";
#[cfg(not(target_arch = "x86_64"))]
const PACKAGE: &str = "qemu-system-arm";

fn not_started(error: io::Error) -> VmError {
    match error.kind() {
        io::ErrorKind::NotFound => VmError::NoEmulator { program: PROGRAM, package: PACKAGE },
        _ => VmError::Start { why: error.to_string() },
    }
}

impl Vm {
    /// Boots a kernel on a file system that has `guest::PROGRAM`. `kernel_args` are added to its command line.
    ///
    /// # Errors
    /// [`VmError`]: its files can't be packed, there is no emulator, or it does not start.
    pub fn boot(
        kernel: &Path,
        root: Initramfs,
        hardware: Hardware,
        kernel_args: &str,
    ) -> Result<Self, VmError> {
        // While it is unpacked, it is in memory twice.
        let needed = (2 * root.bytes() + MIN_MEMORY_BYTES).next_multiple_of(1 << 20);
        if hardware.memory_bytes < needed {
            let (memory, needed) = (Size::from_bytes(hardware.memory_bytes), Size::from_bytes(needed));
            return Err(VmError::Memory { memory, needed });
        }
        let packed = root.finish()?;
        let console = tempfile::tempfile().map_err(not_started)?;
        let mut arguments = arguments(kernel, &packed, &console, &hardware, kernel_args);
        let mut command = Command::new(PROGRAM);
        let mut host_files = None;
        if hardware.host_files {
            let (served, socket) = HostFiles::serve()?;
            arguments.extend(sharing(&socket, hardware.memory_bytes));
            inherit_fd(&mut command, socket);
            host_files = Some(served);
        }
        withhold_variables(&mut command, is_secret_name);
        command.args(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(command, Signal::KILL).map_err(not_started)?;
        let (sender, frames) = mpsc::sync_channel(MAX_WAITING_FRAMES);
        if let Some(mut output) = child.stdout.take() {
            thread::spawn(move || {
                loop {
                    let frame = Frame::read(&mut output);
                    let is_frame = matches!(frame, Ok(Some(_)));
                    let sent = match frame {
                        Ok(Some(frame)) => sender.send(Ok(frame)),
                        Ok(None) => break,
                        Err(error) => sender.send(Err(error)),
                    };
                    if !is_frame || sent.is_err() {
                        break;
                    }
                }
            });
        }
        let silence_timeout = hardware.silence_timeout.unwrap_or(DEFAULT_SILENCE_TIMEOUT);
        let command_line = std::iter::once(PROGRAM.to_owned()).chain(arguments).collect();
        let _files = (packed, hardware.disk);
        Ok(Self { child, frames, console, _files, host_files, silence_timeout, command_line })
    }

    /// The emulator's command line. Unnamed files are shown by their descriptors.
    pub fn command_line(&self) -> &[String] {
        &self.command_line
    }

    /// Passes on the guest's messages up to its exit; returns the exit code. `interrupted` is polled.
    ///
    /// # Errors
    /// [`VmError`]: it ended before, hangs, was interrupted, or `on_frame` fails.
    pub fn run(
        &mut self,
        interrupted: &dyn Fn() -> bool,
        mut on_frame: impl FnMut(Frame) -> Result<(), VmError>,
    ) -> Result<u8, VmError> {
        let mut when = BEFORE_START;
        let mut last_output = Instant::now();
        loop {
            if interrupted() {
                return Err(VmError::Interrupted);
            }
            if self.host_files.as_mut().is_some_and(|files| files.failure().is_some()) {
                // A process that waits for a file would wait forever. QEMU may have ended by itself.
                let _ = self.child.kill();
                return Err(self.ended(when, ""));
            }
            match self.frames.recv_timeout(POLL_INTERVAL) {
                Ok(Ok(Frame::Exit(code))) => return Ok(code),
                Ok(Ok(frame)) => {
                    last_output = Instant::now();
                    when = "while it was running";
                    on_frame(frame)?;
                }
                Ok(Err(error)) => {
                    // The link is broken. QEMU may have ended by itself.
                    let _ = self.child.kill();
                    return Err(self.ended(when, &error.to_string()));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(when, "")),
                Err(RecvTimeoutError::Timeout) if last_output.elapsed() > self.silence_timeout => {
                    let seconds = self.silence_timeout.as_secs();
                    return Err(VmError::Hung { when, seconds, console: self.console_tail() });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Error of a guest that ended, or sent an invalid message.
    fn ended(&mut self, when: &'static str, link_error: &str) -> VmError {
        let status = match self.child.wait() {
            Ok(status) if status.success() => String::new(),
            Ok(status) => format!("{PROGRAM}: {status}"),
            Err(error) => error.to_string(),
        };
        let mut output = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            // If it can't be read, the error has the rest.
            let _ = stderr.read_to_string(&mut output);
        }
        let mut errors = vec![output];
        // Its messages about the end of the emulator are not the cause.
        if let Some(files) = &mut self.host_files
            && let Some(status) = files.failure()
        {
            errors.extend([format!("virtiofsd: {status}"), files.stderr()]);
        }
        let errors = joined(&errors);
        let console = self.console_tail();
        if when == BEFORE_START && console.is_empty() && !errors.is_empty() {
            return VmError::Start { why: errors };
        }
        let panicked = console.lines().find(|line| line.contains("Kernel panic"));
        let causes = joined(&[panicked.unwrap_or_default(), link_error, &errors, &status]);
        let what = if causes.is_empty() { "it powered off".to_owned() } else { causes };
        VmError::Ended { when, what, console }
    }

    /// Output of its console.
    pub fn console(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self.console.seek(SeekFrom::Start(0)).and_then(|_| self.console.read_to_end(&mut bytes));
        if let Err(error) = read {
            return format!("(it can't be read: {error})");
        }
        let text = String::from_utf8_lossy(&bytes);
        let clean = |line: &str| line.chars().filter(|c| !c.is_control() || *c == '\t').collect::<String>();
        let lines: Vec<String> = text.lines().map(clean).filter(|line| !line.trim().is_empty()).collect();
        lines.join("\n")
    }

    fn console_tail(&mut self) -> String {
        let text = self.console();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU model of a guest, in QEMU's terms.
pub fn cpu_model(acceleration: Acceleration) -> &'static str {
    match acceleration {
        Acceleration::Kvm => "host",
        Acceleration::Tcg | Acceleration::Icount | Acceleration::None => "max",
    }
}

fn joined(texts: &[impl AsRef<str>]) -> String {
    let texts: Vec<&str> =
        texts.iter().map(|text| text.as_ref().trim()).filter(|text| !text.is_empty()).collect();
    texts.join("; ")
}

fn arguments(
    kernel: &Path,
    packed: &File,
    console: &File,
    hardware: &Hardware,
    kernel_args: &str,
) -> Vec<String> {
    let is_counted = hardware.acceleration == Acceleration::Icount;
    let acceleration = match hardware.acceleration {
        Acceleration::Kvm => "kvm",
        // With a single thread, interrupts occur between the same instructions each time.
        Acceleration::Icount => "tcg,thread=single",
        Acceleration::Tcg | Acceleration::None => "tcg,thread=multi",
    };
    let command_line = format!(
        "console={CONSOLE} loglevel=4 panic=-1 random.trust_cpu=on rdinit={} {kernel_args} -- guest",
        crate::vm::guest::PROGRAM
    );
    let mut all: Vec<String> = [
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-accel",
        acceleration,
        "-cpu",
        cpu_model(hardware.acceleration),
        "-smp",
        &hardware.cpus.to_string(),
        "-m",
        &format!("{}K", hardware.memory_bytes / 1024),
        "-kernel",
        &kernel.to_string_lossy(),
        "-initrd",
        &by_descriptor(packed).to_string_lossy(),
        "-chardev",
        &format!("file,id=console,path={}", by_descriptor(console).display()),
        "-serial",
        "chardev:console",
        "-chardev",
        "stdio,id=link,signal=off",
        "-serial",
        "chardev:link",
        "-append",
        &command_line,
    ]
    .map(str::to_owned)
    .to_vec();
    if is_counted {
        // One instruction takes one nanosecond; if all processes wait, time advances at once.
        all.extend(["-icount", "shift=0,sleep=off", "-rtc", "clock=vm"].map(str::to_owned));
    }
    if let Some((image, Storage::Virtio { cache, aio })) = &hardware.disk {
        let image = by_descriptor(image);
        all.push("-drive".to_owned());
        all.push(format!(
            "file={},format=raw,if=virtio,cache={},aio={}",
            image.display(),
            cache.as_str(),
            aio.as_str()
        ));
    }
    all
}

/// Options for this machine's files: their server is reached by a socket, and writes into the guest's memory.
fn sharing(socket: &OwnedFd, memory_bytes: u64) -> [String; 8] {
    [
        "-object",
        &format!("memory-backend-memfd,id=memory,size={}K,share=on", memory_bytes / 1024),
        "-machine",
        "memory-backend=memory",
        "-chardev",
        &format!("socket,id=files,fd={}", socket.as_raw_fd()),
        "-device",
        &format!("vhost-user-fs-pci,chardev=files,tag={TAG}"),
    ]
    .map(str::to_owned)
}

#[cfg(target_arch = "x86_64")]
const CONSOLE: &str = "ttyS0";
#[cfg(not(target_arch = "x86_64"))]
const CONSOLE: &str = "ttyAMA0";
