//! The program `perf`: whether it can be used here, a recording by it, and what it makes of one. Sources: perf-record(1),
//! perf-script(1), and the kernel's admin-guide/perf-security.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::profile::{COPY_BYTES, Profile, Scope, Unwinding};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use super::script;

/// The event that is asked for; where there is no such counter, as in most virtual machines, perf takes `cpu-clock`.
const EVENT: &str = "cycles";
/// The event of a thread that leaves its processor, which is the kernel's; so said, perf does not go on without its side.
const SWITCH: &str = "context-switches:k";
/// Room for samples of one processor, where stacks are copied: five seconds of it, for perf has to wait for a processor.
const COPIES_ROOM: &str = "4M";
/// The first release that can be told to begin and to end, and be asked whether it is ready.
const LEAST_VERSION: (u32, u32) = (5, 12);
/// How long perf has to be ready, or to do what it was told, on a machine that is fully loaded.
const OBEYS_WITHIN: Duration = Duration::from_secs(20);
/// How long it may say nothing while it reads a recording.
const SPEAKS_WITHIN: Duration = Duration::from_secs(120);
const LOOK_AROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Where processors are, so many times a second.
    Running {
        /// Of each one.
        hz: u32,
    },
    /// Every switch between threads, and where they left their processor so many times a second.
    Waiting {
        /// Of each one.
        hz: u32,
    },
}

/// The program, and what it may do here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    program: PathBuf,
    pub(super) version: String,
    pub(super) scope: Scope,
}

impl Perf {
    /// Finds perf and tries what it may sample: the whole machine, or else own processes.
    ///
    /// # Errors
    /// It is not there, is too old, or may not sample; with what to do about it.
    pub fn find(profile: &Profile) -> Result<Self, String> {
        let program = on_path().ok_or(
            "a profile needs the program perf, which is not on PATH: install it (Debian: apt-get install \
             linux-perf; Ubuntu: linux-tools-generic; Fedora, RHEL, Arch, openSUSE: perf), or leave [profile] out",
        )?;
        let mut perf = Self { version: version(&program)?, program, scope: Scope::Machine };
        if perf.is_too_old() {
            return Err(format!(
                "a profile needs perf {}.{} or later, and {} is {}: install that of a later kernel (any will do)",
                LEAST_VERSION.0,
                LEAST_VERSION.1,
                perf.program.display(),
                perf.version
            ));
        }
        let mut why = String::new();
        let unwinding = profile.callgraph.unwrap_or(Unwinding::Dwarf);
        for scope in [Scope::Machine, Scope::Processes] {
            perf.scope = scope;
            match perf.tries(What::Running { hz: profile.hz }, unwinding) {
                Ok(()) if profile.off_cpu.is_none() => return Ok(perf),
                Ok(()) => {
                    let tried = perf.tries(What::Waiting { hz: 1 }, unwinding);
                    return tried.map(|()| perf).map_err(|said| no_switches(&said));
                }
                Err(said) => why = said,
            }
        }
        Err(format!(
            "perf may not take {} samples a second here (kernel.perf_event_paranoid = {}): as root, `sysctl \
             kernel.perf_event_paranoid=1` lets it, `=-1` for the whole machine, or CAP_PERFMON for this user; in a \
             container, its seccomp profile has to allow perf_event_open. perf says: {why}",
            profile.hz,
            paranoid()
        ))
    }

    fn is_too_old(&self) -> bool {
        let mut numbers = self.version.split('.').map_while(|number| number.parse::<u32>().ok());
        // What is numbered in another way is given its chance.
        numbers.next().zip(numbers.next()).is_some_and(|version| version < LEAST_VERSION)
    }

    /// Records nothing in particular.
    fn tries(&self, what: What, unwinding: Unwinding) -> Result<(), String> {
        let mut command = self.record(what, unwinding);
        command.args(["-o", "/dev/null", "--", "true"]);
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(last_line(&String::from_utf8_lossy(&output.stderr)))
        }
    }

    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.program);
        // A user's own configuration is for that user's own profiles; debug information is not fetched from servers.
        command.arg(what).env("PERF_CONFIG", "/dev/null").env("LC_ALL", "C").env_remove("DEBUGINFOD_URLS");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// `perf record`, without where to and of what. It keeps nothing of programs in the user's home.
    fn record(&self, what: What, unwinding: Unwinding) -> Command {
        let mut command = self.command("record");
        command.args(["--quiet", "--no-buildid", "--no-buildid-cache"]);
        match what {
            What::Running { hz } => command.args(["--strict-freq", "-e", EVENT, "-F", &hz.to_string()]),
            What::Waiting { hz } => command.args(["--switch-events", "-e", SWITCH, "-F", &hz.to_string()]),
        };
        match unwinding {
            Unwinding::FramePointers => command.args(["--call-graph", "fp"]),
            Unwinding::Dwarf => command.arg("--call-graph").arg(format!("dwarf,{COPY_BYTES}")),
        };
        if self.scope == Scope::Machine {
            command.arg("--all-cpus");
            if unwinding == Unwinding::Dwarf || matches!(what, What::Waiting { .. }) {
                command.args(["--mmap-pages", COPIES_ROOM]);
            }
        }
        command
    }
}

/// What perf may not do, and what would let it.
fn no_switches(said: &str) -> String {
    format!(
        "perf may not record switches between threads here, which profile.off_cpu needs (kernel.perf_event_paranoid = {}): as \
         root, `sysctl kernel.perf_event_paranoid=1` lets it, or CAP_PERFMON for this user; or leave off_cpu out. perf says: \
         {said}",
        paranoid()
    )
}

fn paranoid() -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    paranoid.trim().to_owned()
}

/// The program, where it is installed.
pub(crate) fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join("perf")).find(|program| program.is_file())
}

fn version(program: &Path) -> Result<String, String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{} could not be run: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.trim().strip_prefix("perf version ") {
        Some(version) if output.status.success() => Ok(version.to_owned()),
        // Such as Ubuntu's, which stands in for that of the running kernel.
        _ => Err(format!(
            "{} does not work here: install the one for this kernel. It says: {}",
            program.display(),
            last_line(&format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
        )),
    }
}

/// A recording: perf, which samples between [`Recording::enable`] and [`Recording::disable`]. Dropped, it is killed.
///
/// Of single processes it samples from the start on, for else it would not hear what these start and load: what is before
/// the window has to be left out when it is read.
///
/// What it writes has no name on the disk, so that nothing can be left of it.
#[derive(Debug)]
pub(super) struct Recording {
    child: Child,
    raw: File,
    said: File,
    control: OwnedFd,
    answers: OwnedFd,
}

impl Recording {
    /// Starts perf, and waits until it is ready. `processes` are what is sampled where not the whole machine is; what it is
    /// itself is put down in `profilers` before anybody can meet it.
    pub(super) fn start(
        perf: &Perf,
        what: What,
        unwinding: Unwinding,
        processes: &[u32],
        profilers: &Mutex<Vec<u32>>,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("perf could not be started: {error}");
        let raw = tempfile::tempfile().map_err(failed)?;
        let said = tempfile::tempfile().map_err(failed)?;
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()));
        let ((commands, control), (answers, acknowledge)) = (pipe()?, pipe()?);
        let mut command = perf.record(what, unwinding);
        command
            .args(["--clockid", "CLOCK_MONOTONIC", "--control"])
            .arg(format!("fd:{},{}", commands.as_raw_fd(), acknowledge.as_raw_fd()))
            .args(["-o", &path_of(&raw)])
            .stderr(said.try_clone().map_err(failed)?);
        match perf.scope {
            Scope::Machine => command.args(["--delay", "-1"]),
            Scope::Processes => {
                let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
                command.args(["--pid", &processes.join(",")])
            }
        };
        let child = {
            let mut profilers = profilers.lock().unwrap_or_else(PoisonError::into_inner);
            let files = [raw.as_fd(), commands.as_fd(), acknowledge.as_fd()];
            let child = spawn(command, &files).map_err(failed)?;
            profilers.push(child.id());
            child
        };
        let mut recording = Self { child, raw, said, control, answers };
        recording.tell("ping\n")?;
        Ok(recording)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Begins to sample; samples are taken when this returns.
    pub(super) fn enable(&mut self) -> Result<(), String> {
        self.tell("enable\n")
    }

    /// Ends sampling; none is taken any more when this returns.
    pub(super) fn disable(&mut self) -> Result<(), String> {
        self.tell("disable\n")
    }

    fn tell(&mut self, what: &str) -> Result<(), String> {
        rustix::io::write(&self.control, what.as_bytes()).map_err(|error| self.why(&error.to_string()))?;
        let deadline = Instant::now() + OBEYS_WITHIN;
        loop {
            let mut answers = [PollFd::new(&self.answers, PollFlags::IN)];
            if matches!(poll(&mut answers, Some(&LOOK_AROUND)), Ok(1..)) {
                let mut answer = [0; 64];
                return match rustix::io::read(&self.answers, &mut answer) {
                    Ok(1..) => Ok(()),
                    Ok(0) => Err(self.why("it closed its side")),
                    Err(error) => Err(self.why(&error.to_string())),
                };
            }
            // Its end of the pipe is ours too until it has ended.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.why(&format!("it ended ({status})")));
            }
            if Instant::now() > deadline {
                return Err(self.why(&format!("it did not answer within {} s", OBEYS_WITHIN.as_secs())));
            }
        }
    }

    fn why(&mut self, what: &str) -> String {
        match said(&mut self.said).as_str() {
            "" => format!("perf failed: {what}"),
            said => format!("perf failed: {what}: {said}"),
        }
    }

    /// Has perf write all that it has, and gives the recording.
    pub(super) fn finish(mut self) -> Result<File, String> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // One that is gone already is found below.
        let _ = id.map(|id| kill_process(id, Signal::INT));
        let deadline = Instant::now() + OBEYS_WITHIN;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                return Err(self.why(&format!("it did not end within {} s", OBEYS_WITHIN.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        match self.raw.metadata() {
            Ok(raw) if raw.len() > 0 => self.raw.try_clone().map_err(|error| error.to_string()),
            _ => Err(self.why("it recorded nothing")),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Neither fails but for a child that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What perf makes of a recording, as text that is read while perf writes it. Dropped, perf is killed.
#[derive(Debug)]
pub(super) struct Script<'a> {
    child: Child,
    output: std::process::ChildStdout,
    said: File,
    /// Ends the reading.
    interrupt: &'a AtomicBool,
}

impl<'a> Script<'a> {
    /// Of what was sampled between two moments of `CLOCK_MONOTONIC`.
    pub(super) fn start(
        perf: &Perf,
        what: What,
        raw: &File,
        between_us: [i64; 2],
        interrupt: &'a AtomicBool,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("perf could not be started: {error}");
        let said = tempfile::tempfile().map_err(failed)?;
        let mut command = perf.command("script");
        command
            // Inlined functions would be looked up by another program, a minute for a second of samples.
            .args(["--no-inline", "--show-task-events", "--show-lost-events"])
            .args(["-i", &path_of(raw), "--time", &between_us.map(seconds).join(",")])
            .stdout(Stdio::piped())
            .stderr(said.try_clone().map_err(failed)?);
        match what {
            What::Running { .. } => command.args(["-F", script::FIELDS]),
            What::Waiting { .. } => {
                command.args(["--show-switch-events", "-F", &format!("{},period", script::FIELDS)])
            }
        };
        let mut child = spawn(command, &[raw.as_fd()]).map_err(failed)?;
        let output = child.stdout.take().ok_or_else(|| failed(io::Error::other("it has no output")))?;
        Ok(Self { child, output, said, interrupt })
    }

    /// Whether perf has come to a good end, once all has been read.
    pub(super) fn finish(mut self) -> Result<(), String> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(format!("perf could not read its recording ({status}): {}", said(&mut self.said)))
            }
            Err(error) => Err(format!("perf could not be waited for: {error}")),
        }
    }
}

impl Read for Script<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let deadline = Instant::now() + SPEAKS_WITHIN;
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            let mut output = [PollFd::new(&self.output, PollFlags::IN)];
            match poll(&mut output, Some(&LOOK_AROUND)) {
                Ok(1..) => return self.output.read(into),
                _ if Instant::now() > deadline => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "perf says nothing"));
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

/// Starts perf with these files open under the numbers that they have here. It is in a process group of its own, for a
/// terminal's Ctrl-C is pgdyno's, and ends with pgdyno.
fn spawn(mut command: Command, files: &[std::os::fd::BorrowedFd<'_>]) -> io::Result<Child> {
    let parent = getpid();
    let files: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
    command.process_group(0);
    let before = move || {
        for &file in &files {
            // SAFETY: the number is that of a file that is open until the child has been started.
            let file = unsafe { std::os::fd::BorrowedFd::borrow_raw(file) };
            fcntl_setfd(file, FdFlags::empty())?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Had the parent ended before that, there would be no signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec only system calls are made, no memory is allocated and no lock taken.
    unsafe { command.pre_exec(before) };
    command.spawn()
}

fn seconds(us: i64) -> String {
    format!("{}.{:06}", us.div_euclid(1_000_000), us.rem_euclid(1_000_000))
}

/// A file by the number under which perf has it open, too.
fn path_of(file: &File) -> String {
    format!("/dev/fd/{}", file.as_raw_fd())
}

/// The end of what perf had to say.
fn said(said: &mut File) -> String {
    let mut text = Vec::new();
    let read = said.seek(SeekFrom::Start(0)).and_then(|_| said.read_to_end(&mut text));
    read.map(|_| last_line(&String::from_utf8_lossy(&text))).unwrap_or_default()
}

/// The last line of what somebody said that says something.
fn last_line(text: &str) -> String {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
