//! What is looked at to judge whether a machine is fit to measure on. Missing is none, never zero.

use std::path::PathBuf;

use crate::environment::Environment;

/// Everything that is known of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What the machine is.
    pub environment: Environment,
    /// What it did while it was watched.
    pub activity: Option<Activity>,
    /// Its clock.
    pub clock: Option<Clock>,
    /// Where data will be.
    pub directory: PathBuf,
    /// Room in the filesystem of `directory`.
    pub space: Option<Space>,
    /// Small writes into `directory`.
    pub sync_writes: Option<SyncWrites>,
    /// The share of time in which something waited for processors, memory and disks.
    pub pressure: Pressure,
    /// Whether the program perf is there.
    pub perf_is_installed: Option<bool>,
    /// Whether perf may watch the kernel and other users' processes whatever the kernel parameters say.
    pub perf_privileged: Option<bool>,
    /// Whether a control group can be made below pgdyno's own.
    pub cgroup_can_be_made: Option<bool>,
    /// How many files pgdyno may open.
    pub open_files: Option<OpenFiles>,
    /// Whether the driver can use io_uring, else why not; none if not tried.
    pub io_uring: Option<Result<(), String>>,
}

/// What the machine did over a short time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// How long it was watched, in seconds.
    pub seconds: f64,
    /// Processors' worth of work of everything but pgdyno.
    pub foreign_cpus: f64,
    /// Share of the time that the hypervisor gave to others, 0 to 1; none where the kernel does not tell.
    pub steal_share: Option<f64>,
    /// Pages that went to swap or came from it.
    pub swapped_pages: Option<u64>,
    /// The busiest processes, busiest first.
    pub busiest: Vec<BusyProcess>,
}

/// A process that works.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BusyProcess {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Processors' worth of work.
    pub cpus: f64,
}

/// The clock that latencies are taken from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// Time to read it once, in nanoseconds: the median of many.
    pub read_ns: f64,
    /// Its resolution as the kernel says, in nanoseconds.
    pub resolution_ns: u64,
    /// How much later than asked a sleep may end (the timer slack), in nanoseconds.
    pub timer_slack_ns: Option<u64>,
}

/// Room in a filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that may be written.
    pub free_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// Latency of writing 8 kB and having it on the disk (`fdatasync`), as a commit does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SyncWrites {
    /// How many were timed.
    pub count: u32,
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// Largest in microseconds.
    pub max_us: f64,
}

/// Pressure stall information: the per cent of the last ten seconds in which something waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// For a processor.
    pub cpu: Option<f64>,
    /// For memory.
    pub memory: Option<f64>,
    /// For a disk.
    pub io: Option<f64>,
}

/// The limit of open files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFiles {
    /// What it can be raised to without privileges, which the driver does; none where there is no limit.
    pub hard: Option<u64>,
    /// What programs begin with; none where there is no limit.
    pub soft: Option<u64>,
}
