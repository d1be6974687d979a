//! Errors of profiles, and what to do about them.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Error of a CPU or off-CPU profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// perf is not installed.
    #[error(
        "a profile needs the program perf, which is not on PATH: install it (Debian: apt-get install linux-perf; Ubuntu: \
         linux-tools-generic; Fedora, RHEL, Arch, openSUSE: perf), or leave [profile] out"
    )]
    NotInstalled,
    /// perf is too old.
    #[error(
        "a profile needs perf {}.{} or later, but {program} is version {version}: install perf of a later kernel \
         (any will do)",
        min.0, min.1
    )]
    TooOld {
        /// Minimum version.
        min: (u32, u32),
        /// The program.
        program: PathBuf,
        /// Its version.
        version: String,
    },
    /// perf can't be run.
    #[error("{program} could not be run: {source}")]
    NotRun {
        /// The program.
        program: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// perf does not report its version, such as Ubuntu's wrapper without the running kernel's program.
    #[error("{program} does not work here: install perf for this kernel. Its output: {output}")]
    Broken {
        /// The program.
        program: PathBuf,
        /// Its last line.
        output: String,
    },
    /// perf can't be packed for a guest.
    #[error(
        "{program} is a script, not perf itself: put the directory of the program that it starts first on PATH (Ubuntu: \
         /usr/lib/linux-tools/VERSION)"
    )]
    NotAProgram {
        /// The script.
        program: PathBuf,
    },
    /// perf may not sample.
    #[error(
        "perf may not take {hz} samples per second here (kernel.perf_event_paranoid = {paranoid}): permit it as root \
         by `sysctl kernel.perf_event_paranoid=1` (`=-1` for the whole machine), or give this user CAP_PERFMON; in a \
         container, its seccomp profile has to allow perf_event_open. Output of perf: {output}"
    )]
    NoSamples {
        /// Samples per second.
        hz: u32,
        /// The kernel's setting.
        paranoid: String,
        /// perf's last line.
        output: String,
    },
    /// perf may not record context switches.
    #[error(
        "perf may not record context switches here, which profile.off_cpu needs (kernel.perf_event_paranoid = \
         {paranoid}): permit it as root by `sysctl kernel.perf_event_paranoid=1`, or give this user CAP_PERFMON; or \
         leave off_cpu out. Output of perf: {output}"
    )]
    NoSwitches {
        /// The kernel's setting.
        paranoid: String,
        /// perf's last line.
        output: String,
    },
    /// perf could not be started.
    #[error("perf could not be started: {0}")]
    Start(#[source] io::Error),
    /// A recording failed.
    #[error("perf failed: {problem}{}", if output.is_empty() { String::new() } else { format!(": {output}") })]
    Recording {
        /// Problem of the recording.
        problem: RecordingProblem,
        /// perf's last line; empty if it wrote none.
        output: String,
    },
    /// A recording could not be read by perf.
    #[error("perf could not read its recording ({status}): {output}")]
    Unreadable {
        /// Exit status of perf.
        status: ExitStatus,
        /// Its last line.
        output: String,
    },
    /// perf's text of a recording could not be read.
    #[error("perf script: {0}")]
    Script(#[source] io::Error),
    /// perf could not be waited for.
    #[error("perf could not be waited for: {0}")]
    Wait(#[source] io::Error),
    /// The load ended before its window started.
    #[error("the load ended before its window started")]
    NoWindow,
    /// perf was still running in the measured window.
    #[error(
        "perf ended {ms} ms after the measured window began: the instructions of the window include it; use a \
         smaller profile.window"
    )]
    Late {
        /// Time in the window, in milliseconds.
        ms: i64,
    },
    /// The load ended before waits could be recorded.
    #[error("the load ended before the off-CPU profile started")]
    NoWaits,
    /// Too many records of switches were lost.
    #[error(
        "the kernel dropped {lost} records of the off-CPU profile for lack of buffer space, and {switches} switches were \
         left: the times that threads waited are not known. The machine switches between threads more often than perf can \
         record: use fewer clients, stop what else runs, or leave off_cpu out"
    )]
    Lost {
        /// Records lost.
        lost: u64,
        /// Number of times that a thread left its CPU, of those recorded.
        switches: u64,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

/// Problem of a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingProblem {
    /// A command could not be sent, its acknowledgement not received, or the recording not opened.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// perf closed its side of the pipe.
    #[error("it closed the pipe")]
    Closed,
    /// perf exited.
    #[error("it exited ({0})")]
    Exited(ExitStatus),
    /// No acknowledgement in time.
    #[error("it did not respond within {0} s")]
    NoResponse(u64),
    /// perf did not exit in time.
    #[error("it did not exit within {0} s")]
    NoExit(u64),
    /// Nothing was recorded.
    #[error("it recorded nothing")]
    Empty,
}
