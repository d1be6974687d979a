//! The program `perf`: whether it can be used here, its recordings, and their text. Sources: perf-record(1),
//! perf-script(1), and the kernel's admin-guide/perf-security.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::process::{inherit_fd, spawn, withhold_variables};
use model::profile::{COUNTED_PERIODS, Profile, STACK_COPY_BYTES, Scope, Unwinding};
use model::secret::is_secret_name;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};

use super::script;
use crate::error::{ProfileError, RecordingProblem};

/// The event requested; without such a counter, as in most virtual machines, perf uses `cpu-clock`.
const EVENT: &str = "cycles";
/// The event where instructions are counted: a timer in virtual time.
const COUNTED_EVENT: &str = "cpu-clock";
/// The event of a thread leaving its CPU, in the kernel; the modifier keeps perf from falling back to user space only.
const SWITCH: &str = "context-switches:k";
/// Buffer for samples with copies of stacks of one CPU: five seconds of them, as perf has to wait for a CPU.
const STACK_COPY_BUFFER: &str = "4M";
/// The same where instructions are counted, at a hundred times the rate: those of 0.4 s.
const COUNTED_BUFFER: &str = "32M";
/// First release with the commands to enable and disable sampling, and to check that it is ready.
const MIN_VERSION: (u32, u32) = (5, 12);
/// Time limit for perf to be ready, or to execute a command, on a fully loaded machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for output of perf while it reads a recording.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Kind of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordingKind {
    /// Stacks of CPUs at a rate.
    Running {
        /// Per second and CPU.
        hz: u32,
    },
    /// Stacks of the CPU of a guest in which an instruction takes a nanosecond, at fixed numbers of them.
    Counted,
    /// Every context switch, and stacks of threads leaving their CPU.
    Waiting {
        /// Switches of a CPU for each one with a stack. Perf's own choice by a rate skips many after a few in quick
        /// succession, even if there are few a second.
        period: u64,
    },
}

/// The program, and its permissions here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    program: PathBuf,
    pub(super) version: String,
    pub(super) scope: Scope,
    /// Whether it samples in a guest that counts instructions.
    counts: bool,
}

impl Perf {
    /// Finds perf and tests what it may sample: the whole machine, or else own processes.
    ///
    /// # Errors
    /// It is not installed, is too old, or may not sample; with what to do about it.
    pub fn find(profile: &Profile) -> Result<Self, ProfileError> {
        let mut perf = Self::installed()?;
        let mut last_output = String::new();
        let unwinding = profile.callgraph.unwrap_or(Unwinding::Dwarf);
        for scope in [Scope::Machine, Scope::Processes] {
            perf.scope = scope;
            match perf.try_record(RecordingKind::Running { hz: profile.hz }, unwinding) {
                Ok(()) if profile.off_cpu.is_none() => return Ok(perf),
                Ok(()) => {
                    let tried = perf.try_record(RecordingKind::Waiting { period: 1 }, unwinding);
                    return tried
                        .map(|()| perf)
                        .map_err(|output| ProfileError::NoSwitches { paranoid: paranoid(), output });
                }
                Err(output) => last_output = output,
            }
        }
        Err(ProfileError::NoSamples { hz: profile.hz, paranoid: paranoid(), output: last_output })
    }

    /// The program to pack for guests, in which it may sample everything.
    ///
    /// # Errors
    /// It is not installed, is too old, or is a script that starts the perf of the running kernel.
    pub fn for_guests() -> Result<PathBuf, ProfileError> {
        let Self { program, .. } = Self::installed()?;
        let mut magic = [0; 4];
        let read = File::open(&program).and_then(|mut file| file.read_exact(&mut magic));
        read.map_err(|source| ProfileError::NotRun { program: program.clone(), source })?;
        if magic != *b"\x7fELF" {
            return Err(ProfileError::NotAProgram { program });
        }
        Ok(program)
    }

    /// The program packed for this guest, which counts instructions; none if there is none.
    pub fn counting() -> Option<Self> {
        let program = on_path()?;
        // If it can't run, the recording reports it.
        let version = version(&program).unwrap_or_default();
        Some(Self { program, version, scope: Scope::Machine, counts: true })
    }

    /// Whether it samples in a guest that counts instructions.
    pub fn counts(&self) -> bool {
        self.counts
    }

    /// Kind of a CPU profile.
    pub(super) fn running(&self, profile: Profile) -> RecordingKind {
        match self.counts {
            true => RecordingKind::Counted,
            false => RecordingKind::Running { hz: profile.hz },
        }
    }

    /// The program on `PATH`, if it is new enough.
    fn installed() -> Result<Self, ProfileError> {
        let program = on_path().ok_or(ProfileError::NotInstalled)?;
        let perf = Self { version: version(&program)?, program, scope: Scope::Machine, counts: false };
        match perf.is_too_old() {
            false => Ok(perf),
            true => {
                let Self { program, version, .. } = perf;
                Err(ProfileError::TooOld { min: MIN_VERSION, program, version })
            }
        }
    }

    fn is_too_old(&self) -> bool {
        let mut numbers = self.version.split('.').map_while(|number| number.parse::<u32>().ok());
        // Versions in another format are accepted.
        numbers.next().zip(numbers.next()).is_some_and(|version| version < MIN_VERSION)
    }

    /// Records a program that ends at once. The error is perf's last line.
    fn try_record(&self, kind: RecordingKind, unwinding: Unwinding) -> Result<(), String> {
        let mut command = self.record(kind, unwinding);
        command.args(["-o", "/dev/null", "--", "true"]);
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(last_line(&String::from_utf8_lossy(&output.stderr)))
        }
    }

    fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        // Ignores the user's own configuration; debug information is not fetched from servers.
        command
            .arg(subcommand)
            .env("PERF_CONFIG", "/dev/null")
            .env("LC_ALL", "C")
            .env_remove("DEBUGINFOD_URLS");
        withhold_variables(&mut command, is_secret_name);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// `perf record`, without its output and processes. It stores no copies of programs in the user's home.
    fn record(&self, kind: RecordingKind, unwinding: Unwinding) -> Command {
        let mut command = self.command("record");
        command.args(["--quiet", "--no-buildid", "--no-buildid-cache"]);
        match kind {
            RecordingKind::Running { hz } => {
                command.args(["--strict-freq", "-e", EVENT, "-F", &hz.to_string()])
            }
            RecordingKind::Counted => command.args(COUNTED_PERIODS.iter().flat_map(|period| {
                ["-e".to_owned(), format!("{COUNTED_EVENT}/period={period},name={COUNTED_EVENT}/")]
            })),
            RecordingKind::Waiting { period } => {
                command.args(["--switch-events", "-e", SWITCH, "--period", "-c", &period.to_string()])
            }
        };
        match unwinding {
            Unwinding::FramePointers => command.args(["--call-graph", "fp"]),
            Unwinding::Dwarf => command.arg("--call-graph").arg(format!("dwarf,{STACK_COPY_BYTES}")),
        };
        if self.scope == Scope::Machine {
            command.arg("--all-cpus");
            let buffer = if self.counts { COUNTED_BUFFER } else { STACK_COPY_BUFFER };
            if unwinding == Unwinding::Dwarf || matches!(kind, RecordingKind::Waiting { .. }) {
                command.args(["--mmap-pages", buffer]);
            }
        }
        command
    }
}

fn paranoid() -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    paranoid.trim().to_owned()
}

/// The program, if installed.
pub(crate) fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join("perf")).find(|program| program.is_file())
}

fn version(program: &Path) -> Result<String, ProfileError> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|source| ProfileError::NotRun { program: program.to_owned(), source })?;
    let version = String::from_utf8_lossy(&output.stdout);
    match version.trim().strip_prefix("perf version ") {
        Some(version) if output.status.success() => Ok(version.to_owned()),
        _ => Err(ProfileError::Broken {
            program: program.to_owned(),
            output: last_line(&format!("{version}{}", String::from_utf8_lossy(&output.stderr))),
        }),
    }
}

/// A recording: perf, which samples between [`Recording::enable`] and [`Recording::disable`]. Dropped, it is killed.
///
/// Single processes are sampled from the start, as perf would otherwise miss the processes that they start and the
/// files that they load: samples before the window must be skipped when the recording is read.
///
/// The recording is an unnamed file, so that nothing can be left behind.
#[derive(Debug)]
pub(super) struct Recording {
    child: Child,
    raw: File,
    stderr: File,
    control: OwnedFd,
    acknowledgements: OwnedFd,
}

impl Recording {
    /// Starts perf, and waits until it is ready. `processes` are sampled if the whole machine is not; perf's own
    /// process is added to `profilers` before anything can list it.
    pub(super) fn start(
        perf: &Perf,
        kind: RecordingKind,
        unwinding: Unwinding,
        processes: &[u32],
        profilers: &Mutex<Vec<u32>>,
    ) -> Result<Self, ProfileError> {
        let raw = tempfile::tempfile().map_err(ProfileError::Start)?;
        let stderr = tempfile::tempfile().map_err(ProfileError::Start)?;
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| ProfileError::Start(error.into()));
        let ((commands, control), (acknowledgements, acknowledge)) = (pipe()?, pipe()?);
        let mut command = perf.record(kind, unwinding);
        let output = inherit(&mut command, &raw).map_err(ProfileError::Start)?;
        let commands = inherit(&mut command, commands).map_err(ProfileError::Start)?;
        let acknowledge = inherit(&mut command, acknowledge).map_err(ProfileError::Start)?;
        command
            .args(["--clockid", "CLOCK_MONOTONIC", "--control"])
            .arg(format!("fd:{commands},{acknowledge}"))
            .args(["-o", &format!("/proc/self/fd/{output}")])
            .stderr(stderr.try_clone().map_err(ProfileError::Start)?);
        match perf.scope {
            Scope::Machine => command.args(["--delay", "-1"]),
            Scope::Processes => {
                let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
                command.args(["--pid", &processes.join(",")])
            }
        };
        let child = {
            let mut profilers = profilers.lock().unwrap_or_else(PoisonError::into_inner);
            let child = spawn(command, Signal::KILL).map_err(ProfileError::Start)?;
            profilers.push(child.id());
            child
        };
        let mut recording = Self { child, raw, stderr, control, acknowledgements };
        recording.command("ping\n")?;
        Ok(recording)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Enables sampling; it is active when this returns.
    pub(super) fn enable(&mut self) -> Result<(), ProfileError> {
        self.command("enable\n")
    }

    /// Disables sampling; it is inactive when this returns.
    pub(super) fn disable(&mut self) -> Result<(), ProfileError> {
        self.command("disable\n")
    }

    /// Sends a command and waits for its acknowledgement.
    fn command(&mut self, command: &str) -> Result<(), ProfileError> {
        rustix::io::write(&self.control, command.as_bytes())
            .map_err(|error| self.failed(io::Error::from(error)))?;
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        loop {
            let mut acknowledgements = [PollFd::new(&self.acknowledgements, PollFlags::IN)];
            if matches!(poll(&mut acknowledgements, Some(&POLL_INTERVAL)), Ok(1..)) {
                let mut buffer = [0; 64];
                return match rustix::io::read(&self.acknowledgements, &mut buffer) {
                    Ok(1..) => Ok(()),
                    Ok(0) => Err(self.failed(RecordingProblem::Closed)),
                    Err(error) => Err(self.failed(io::Error::from(error))),
                };
            }
            // We hold its end of the pipe, too, until it has ended.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(RecordingProblem::Exited(status)));
            }
            if Instant::now() > deadline {
                return Err(self.failed(RecordingProblem::NoResponse(COMMAND_TIMEOUT.as_secs())));
            }
        }
    }

    fn failed(&mut self, problem: impl Into<RecordingProblem>) -> ProfileError {
        ProfileError::Recording { problem: problem.into(), output: last_line_of(&mut self.stderr) }
    }

    /// Makes perf write all its data and end.
    pub(super) fn end(&mut self) -> Result<(), ProfileError> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Ok(None) = self.child.try_wait() {
            // If it ends meanwhile, that is detected below.
            let _ = id.map(|id| kill_process(id, Signal::INT));
        }
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                return Err(self.failed(RecordingProblem::NoExit(COMMAND_TIMEOUT.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Ends perf unless it has ended, and returns the recording.
    pub(super) fn finish(mut self) -> Result<File, ProfileError> {
        self.end()?;
        match self.raw.metadata() {
            Ok(raw) if raw.len() > 0 => self.raw.try_clone().map_err(|error| self.failed(error)),
            _ => Err(self.failed(RecordingProblem::Empty)),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Neither fails unless the child has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Text of a recording, read while perf writes it. Dropped, perf is killed.
#[derive(Debug)]
pub(super) struct Script<'a> {
    child: Child,
    output: std::process::ChildStdout,
    stderr: File,
    /// Ends reading.
    interrupt: &'a AtomicBool,
}

impl<'a> Script<'a> {
    /// Prints the samples between two times of `CLOCK_MONOTONIC`.
    pub(super) fn start(
        perf: &Perf,
        kind: RecordingKind,
        raw: &File,
        between_us: [i64; 2],
        interrupt: &'a AtomicBool,
    ) -> Result<Self, ProfileError> {
        let stderr = tempfile::tempfile().map_err(ProfileError::Start)?;
        let mut command = perf.command("script");
        let input = inherit(&mut command, raw).map_err(ProfileError::Start)?;
        command
            // Inlined functions would be looked up by another program, which takes a minute per second of samples.
            .args(["--no-inline", "--show-task-events", "--show-lost-events"])
            .args(["-i", &format!("/proc/self/fd/{input}"), "--time", &between_us.map(seconds).join(",")])
            .stdout(Stdio::piped())
            .stderr(stderr.try_clone().map_err(ProfileError::Start)?);
        match kind {
            RecordingKind::Running { .. } | RecordingKind::Counted => command.args(["-F", script::FIELDS]),
            RecordingKind::Waiting { .. } => {
                command.args(["--show-switch-events", "-F", &format!("{},period", script::FIELDS)])
            }
        };
        let mut child = spawn(command, Signal::KILL).map_err(ProfileError::Start)?;
        let output =
            child.stdout.take().ok_or_else(|| ProfileError::Start(io::Error::other("it has no output")))?;
        Ok(Self { child, output, stderr, interrupt })
    }

    /// Checks that perf succeeded, when all has been read.
    pub(super) fn finish(mut self) -> Result<(), ProfileError> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(ProfileError::Unreadable { status, output: last_line_of(&mut self.stderr) }),
            Err(error) => Err(ProfileError::Wait(error)),
        }
    }
}

impl Read for Script<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let deadline = Instant::now() + OUTPUT_TIMEOUT;
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            let mut output = [PollFd::new(&self.output, PollFlags::IN)];
            match poll(&mut output, Some(&POLL_INTERVAL)) {
                Ok(1..) => return self.output.read(into),
                _ if Instant::now() > deadline => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "no output within the time limit"));
                }
                _ => {}
            }
        }
    }
}

impl Drop for Script<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes perf inherit a file, with the returned number.
fn inherit(command: &mut Command, file: impl AsFd) -> io::Result<i32> {
    let file = file.as_fd().try_clone_to_owned()?;
    let number = file.as_raw_fd();
    inherit_fd(command, file);
    Ok(number)
}

fn seconds(us: i64) -> String {
    format!("{}.{:06}", us.div_euclid(1_000_000), us.rem_euclid(1_000_000))
}

/// The last line in a file written by perf.
fn last_line_of(stderr: &mut File) -> String {
    let mut text = Vec::new();
    let read = stderr.seek(SeekFrom::Start(0)).and_then(|_| stderr.read_to_end(&mut text));
    read.map(|_| last_line(&String::from_utf8_lossy(&text))).unwrap_or_default()
}

/// The last line that is not empty.
fn last_line(text: &str) -> String {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
