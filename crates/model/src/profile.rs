//! CPU profiles: samples of the functions that CPUs execute during a load.

use std::collections::BTreeMap;

use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::units::Span;

/// CPU profile of each load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Samples per second of each busy CPU.
    pub hz: u32,
    /// Method of finding callers; none for frame pointers if the server's program has them, else DWARF.
    pub callgraph: Option<Unwinding>,
    /// Length of the profile from the start of the measured window; none for the default of [`Profile::window`].
    pub window: Option<Span>,
    /// Length of the off-CPU profile that replaces it at the end of the measured window; none without one.
    pub off_cpu: Option<Span>,
}

impl Profile {
    /// Default samples per second: odd, so that periodic work at full tenths of a second is neither always sampled nor
    /// always missed.
    pub const DEFAULT_HZ: u32 = 99;

    /// Length of the profile where instructions are counted: there it precedes the measured window, which must not have
    /// its cost.
    pub fn counted_length(&self) -> Span {
        self.window.unwrap_or(DEFAULT_COUNTED_LENGTH)
    }

    /// Load that a profile adds where instructions are counted, between warm-up and measured window.
    pub fn counted_lead_us(&self) -> u64 {
        self.counted_length().us() + COUNTED_END_US
    }

    /// Length of the profile in a measured window. With copies of stacks, which are large, the default is limited to
    /// [`MAX_STACK_COPIES`] samples if all CPUs are busy.
    pub fn window(&self, measured: Span, unwinding: Unwinding, cpus: usize) -> Span {
        let max = match (self.window, unwinding) {
            (Some(asked), _) => asked,
            (None, Unwinding::FramePointers) => measured,
            (None, Unwinding::Dwarf) => {
                Span::from_us(MAX_STACK_COPIES * 1_000_000 / (u64::from(self.hz) * cpus.max(1) as u64))
            }
        };
        let reserved_us = self.off_cpu.map_or(0, |length| length.us() + OFF_CPU_SETUP_US);
        Span::from_us(measured.us().saturating_sub(reserved_us).min(max.us()))
    }

    /// Number of context switches for each one that is sampled with a stack in an off-CPU profile, so that about
    /// [`MAX_SWITCHES`] have one if they go on at this rate: 1, or a prime number, because threads that wake each other
    /// leave their CPUs in turns, of which a common divisor would always sample the same.
    pub fn switch_period(&self, switches_per_second: f64) -> u64 {
        let expected = switches_per_second * self.off_cpu.map_or(0, Span::us) as f64 / 1e6;
        let at_least = (expected / MAX_SWITCHES as f64).ceil() as u64;
        let is_prime =
            |number: &u64| (2..).take_while(|of| of * of <= *number).all(|of| !number.is_multiple_of(of));
        (at_least.max(1)..).find(is_prime).unwrap_or(at_least)
    }
}

/// Instructions between two samples of each timer where instructions are counted. A single timer keeps step with
/// transactions that all have nearly the same number of instructions, and so always samples the same functions. With
/// several of different periods, each longer than many transactions, it does not matter if one does.
pub const COUNTED_PERIODS: [u64; 16] = [
    1_226_461, 1_275_401, 1_323_247, 1_377_421, 1_416_433, 1_476_191, 1_481_717, 1_558_061, 1_640_729,
    1_681_703, 1_756_991, 1_770_071, 1_856_033, 1_907_203, 1_995_727, 2_068_939,
];
/// Mean number of instructions between two samples of all timers.
pub fn instructions_per_sample() -> u64 {
    let samples: f64 = COUNTED_PERIODS.iter().map(|period| 1.0 / *period as f64).sum();
    (1.0 / samples).round() as u64
}

/// Default length of a profile where instructions are counted, in virtual time: 20,000 samples of one busy CPU.
const DEFAULT_COUNTED_LENGTH: Span = Span::from_us(2_000_000);
/// Virtual time in which perf ends before the measured window.
const COUNTED_END_US: u64 = 1_000_000;

/// Context switches sampled with a stack in a trial, if there are more.
pub const MAX_SWITCHES: u64 = 8192;
/// Time to prepare an off-CPU profile, during which the CPU profile has already ended.
pub const OFF_CPU_SETUP_US: u64 = 1_000_000;

/// Default maximum of samples with a copy of the stack in a trial: 256 MiB of raw data. A share of 1 % of so many is
/// known to a twentieth of a percent.
pub const MAX_STACK_COPIES: u64 = 32_768;

/// Bytes of the stack copied with each sample for unwinding afterwards. Stacks of a server are rarely deeper.
pub const STACK_COPY_BYTES: u32 = 8192;

/// Method of finding the callers of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Unwinding {
    /// The kernel follows frame pointers at each sample: cheap, but it fails in programs without them.
    #[serde(rename = "fp")]
    #[strum(serialize = "fp")]
    FramePointers,
    /// The kernel copies the top of the stack at each sample, which is unwound afterwards by call frame information
    /// (DWARF), which nearly all programs have.
    #[serde(rename = "dwarf")]
    Dwarf,
}

impl Unwinding {
    /// Its name in campaigns and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Processes that were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Scope {
    /// All processes of the machine.
    Machine,
    /// The driver's and the server's processes, if sampling others is not permitted.
    Processes,
}

impl Scope {
    /// Its name in bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Parameters and counts of a trial's profile; its stacks are [`Stacks`].
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSummary {
    /// The sampled event by perf's name, such as `cycles` or `cpu-clock`; a `u` after a colon excludes the kernel. None
    /// without samples.
    pub event: Option<String>,
    /// Requested samples per second of a busy CPU.
    pub hz: u32,
    /// Instructions between two samples; none where they are not counted.
    pub instructions_per_sample: Option<u64>,
    /// Method by which callers were found.
    pub callgraph: Unwinding,
    /// Reason for it.
    pub callgraph_reason: String,
    /// Processes that were sampled.
    pub scope: Scope,
    /// Start of sampling, in microseconds after the load's start.
    pub from_us: i64,
    /// End of sampling.
    pub to_us: i64,
    /// Samples in the stacks.
    pub samples: u64,
    /// Samples that the kernel lost with its buffer full.
    pub lost: u64,
    /// Samples of roles (except `foreign`) whose innermost function has no name, by the file that contains it: its
    /// name, `[kernel]`, or `[unknown]`.
    pub nameless: BTreeMap<String, u64>,
    /// Version of perf.
    pub perf_version: String,
    /// CPU time of perf while sampling, in microseconds; excludes the taking of samples, which counts as time of the
    /// interrupted code. None if it could not be read.
    pub perf_cpu_us: Option<u64>,
    /// Parameters and counts of the off-CPU profile; none without one.
    pub off_cpu: Option<OffCpu>,
}

/// Parameters and counts of an off-CPU profile: where threads were when they left their CPU, and for how long. The
/// stacks are a record's `off_cpu`, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// Start, in microseconds after the load's start.
    pub from_us: i64,
    /// End, likewise.
    pub to_us: i64,
    /// Number of times that a thread left its CPU.
    pub switches: u64,
    /// Number of these with a stack.
    pub sampled: u64,
    /// Records that the kernel lost with its buffer full.
    pub lost: u64,
    /// CPU time of perf meanwhile, in microseconds; none if it could not be read.
    pub perf_cpu_us: Option<u64>,
}

/// Last frame of the stack of a thread that was preempted.
pub const PREEMPTED: &str = "[preempted]";
/// Stack of a thread that was waiting when the recording started, or of which no switch was sampled.
pub const NO_STACK: &str = "[no stack]";

impl ProfileSummary {
    /// CPU time that one sample stands for, in microseconds. Where instructions are counted, each takes a nanosecond.
    pub fn us_per_sample(&self) -> f64 {
        match self.instructions_per_sample {
            Some(instructions) => instructions as f64 / 1e3,
            None => 1e6 / f64::from(self.hz.max(1)),
        }
    }

    /// Whether the kernel is sampled too.
    pub fn has_kernel(&self) -> bool {
        let modifiers = |event: &str| event.split_once(':').map(|(_, modifiers)| modifiers.to_owned());
        let event = self.event.as_deref();
        event.is_some_and(|event| modifiers(event).is_none_or(|m| !m.contains('u') || m.contains('k')))
    }
}

/// Suffix of the kernel's frames in folded stacks, as flame graphs expect it.
pub const KERNEL_SUFFIX: &str = "_[k]";

/// Samples of the processes with one role in a trial, or times that these waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Their role, as in the metrics `role.*`; `foreign` for processes without one.
    pub role: String,
    /// Samples, or off-CPU microseconds, by folded stack: the process's name, then functions from the outermost to the
    /// innermost, separated by semicolons.
    pub samples: BTreeMap<String, u64>,
}

/// A line that is not a folded stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a folded stack: {0}")]
pub struct ParseStackError(String);

impl Stacks {
    /// Samples of all stacks.
    pub fn total(&self) -> u64 {
        self.samples.values().sum()
    }

    /// As text: a line per stack, with its samples after a space.
    pub fn folded(&self) -> String {
        self.samples.iter().map(|(stack, samples)| format!("{stack} {samples}\n")).collect()
    }

    /// Parses folded stacks.
    ///
    /// # Errors
    /// A line is not a folded stack.
    pub fn from_folded(role: &str, text: &str) -> Result<Self, ParseStackError> {
        let mut stacks = Self { role: role.to_owned(), samples: BTreeMap::new() };
        for line in text.lines() {
            let stack = line.rsplit_once(' ').and_then(|(stack, n)| Some((stack, n.parse::<u64>().ok()?)));
            let (stack, samples) = stack.ok_or_else(|| ParseStackError(line.to_owned()))?;
            *stacks.samples.entry(stack.to_owned()).or_default() += samples;
        }
        Ok(stacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dwarf_profiles_are_limited_by_default() {
        let profile = Profile { hz: 99, callgraph: None, window: None, off_cpu: None };
        let hour = Span::from_us(3_600_000_000);
        assert_eq!(profile.window(hour, Unwinding::FramePointers, 64), hour);
        assert_eq!(profile.window(hour, Unwinding::Dwarf, 2).us(), 165_494_949);
        let short = Span::from_us(5_000_000);
        assert_eq!(profile.window(short, Unwinding::Dwarf, 2), short);
        let asked = Profile { window: Some(Span::from_us(60_000_000)), ..profile };
        assert_eq!(asked.window(hour, Unwinding::Dwarf, 64).us(), 60_000_000);
        assert_eq!(asked.window(short, Unwinding::Dwarf, 64), short);
    }

    #[test]
    fn the_off_cpu_profile_is_at_the_end_of_the_window() {
        let off_cpu = Some(Span::from_us(2_000_000));
        let profile = Profile { hz: 99, callgraph: None, window: None, off_cpu };
        let measured = Span::from_us(10_000_000);
        assert_eq!(profile.window(measured, Unwinding::FramePointers, 2).us(), 7_000_000);
        let period = |per_second| profile.switch_period(per_second);
        assert_eq!([0.0, 4000.0, 4097.0, 16_000.0, 50_000.0].map(period), [1, 1, 2, 5, 13]);
    }

    #[test]
    fn folded_stacks_round_trip() {
        let text = "postgres;main;f 2\npostgres;main;f;syscall x_[k] 1\n";
        let stacks = Stacks::from_folded("load", text).unwrap();
        assert_eq!((stacks.total(), stacks.folded().as_str()), (3, text));
        assert!(
            Stacks::from_folded("load", "postgres;main\n").unwrap_err().to_string().contains("postgres;main")
        );
    }
}
