//! Facts that decide whether a machine is fit to measure on. Missing is none, never zero.

use std::path::PathBuf;

use crate::environment::Environment;

/// Facts about the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Its hardware and system.
    pub environment: Environment,
    /// Its activity while observed.
    pub activity: Option<Activity>,
    /// Its clock.
    pub clock: Option<Clock>,
    /// Directory of the data.
    pub directory: PathBuf,
    /// Space in the filesystem of `directory`.
    pub space: Option<Space>,
    /// Small synchronous writes to `directory`.
    pub sync_writes: Option<SyncWrites>,
    /// Share of time in which tasks waited for CPUs, memory and disks.
    pub pressure: Pressure,
    /// Whether perf is installed.
    pub perf_is_installed: Option<bool>,
    /// Whether perf may observe the kernel and other users' processes regardless of the kernel parameters.
    pub perf_privileged: Option<bool>,
    /// Whether pgdyno can create a control group below its own.
    pub can_create_cgroup: Option<bool>,
    /// Limit of files that pgdyno may open.
    pub open_files: Option<OpenFiles>,
    /// Whether the driver can use io_uring, or the reason why not; none if not tried.
    pub io_uring: Option<Result<(), String>>,
}

/// Largest share of the CPUs that other processes may use without disturbing a measurement too much.
pub const MAX_FOREIGN_SHARE: f64 = 0.1;

/// Activity of the machine over a short time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// Length of the observation, in seconds.
    pub seconds: f64,
    /// CPUs used by everything except pgdyno.
    pub foreign_cpus: f64,
    /// CPU steal as a share of the time, 0 to 1; none if the kernel does not report it.
    pub steal_share: Option<f64>,
    /// Pages swapped in or out.
    pub swapped_pages: Option<u64>,
    /// The busiest processes, busiest first.
    pub busiest: Vec<BusyProcess>,
}

impl Activity {
    /// CPUs used by everything except pgdyno, as a share of those of the machine.
    pub fn foreign_share(&self, cpus: u32) -> f64 {
        self.foreign_cpus / f64::from(cpus)
    }

    /// The same in words, with the busiest processes.
    pub fn foreign_in_words(&self, cpus: u32) -> String {
        let percent = self.foreign_share(cpus) * 100.0;
        let busiest: Vec<String> = self
            .busiest
            .iter()
            .map(|process| format!("{} ({}) {:.2}", process.name, process.pid, process.cpus))
            .collect();
        let who = if busiest.is_empty() { String::new() } else { format!(": {}", busiest.join(", ")) };
        format!("{:.2} of {cpus} CPUs ({percent:.1}%) in {:.0} s{who}", self.foreign_cpus, self.seconds)
    }
}

/// A busy process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BusyProcess {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// CPUs that it used.
    pub cpus: f64,
}

/// The clock that latencies are measured with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// Median time of a reading, in nanoseconds.
    pub read_ns: f64,
    /// Resolution reported by the kernel, in nanoseconds.
    pub resolution_ns: u64,
    /// Maximum delay of the end of a sleep (timer slack), in nanoseconds.
    pub timer_slack_ns: Option<u64>,
}

/// Space in a filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes available for writing.
    pub free_bytes: u64,
    /// Total bytes.
    pub total_bytes: u64,
}

/// Latency of writing 8 kB and flushing it to disk (`fdatasync`), as a commit does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SyncWrites {
    /// Number of writes timed.
    pub count: u32,
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// Largest in microseconds.
    pub max_us: f64,
}

/// Pressure stall information: percentage of the last ten seconds in which a task waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// For a CPU.
    pub cpu: Option<f64>,
    /// For memory.
    pub memory: Option<f64>,
    /// For a disk.
    pub io: Option<f64>,
}

/// The limit of open files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFiles {
    /// Hard limit, to which the driver raises the soft one without privileges; none if unlimited.
    pub hard: Option<u64>,
    /// Soft limit, with which programs start; none if unlimited.
    pub soft: Option<u64>,
}
