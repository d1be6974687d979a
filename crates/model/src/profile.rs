//! Profiles: which functions processors were in, sampled while a load ran.

use std::collections::BTreeMap;

use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::units::Span;

/// CPU profile of each load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Samples a second of each processor that is busy.
    pub hz: u32,
    /// How the callers of a function are to be found; none for by frame pointers where the server's program has them, else
    /// by DWARF.
    pub callgraph: Option<Unwinding>,
    /// How much of the measured window, from its beginning; none for as much as is sensible ([`Profile::window`]).
    pub window: Option<Span>,
    /// How much of the measured window's end is for stacks of what waits, in place of what runs; none for nothing.
    pub off_cpu: Option<Span>,
}

impl Profile {
    /// Samples a second by default: odd, so that nothing which happens at full tenths of a second is always met or
    /// always missed.
    pub const DEFAULT_HZ: u32 = 99;

    /// How much of a measured window is profiled. With copies of stacks, which are large, it is no more than gives
    /// [`MOST_COPIES`] when all processors are busy, unless the campaign says how much it is to be.
    pub fn window(&self, measured: Span, unwinding: Unwinding, cpus: usize) -> Span {
        let most = match (self.window, unwinding) {
            (Some(asked), _) => asked,
            (None, Unwinding::FramePointers) => measured,
            (None, Unwinding::Dwarf) => {
                Span::from_us(MOST_COPIES * 1_000_000 / (u64::from(self.hz) * cpus.max(1) as u64))
            }
        };
        let ended = self.off_cpu.map_or(0, |length| length.us() + AROUND_OFF_CPU_US);
        Span::from_us(measured.us().saturating_sub(ended).min(most.us()))
    }

    /// How often a second a processor's switches between threads are taken with a stack, at most, while it is recorded
    /// what waits: so that there are no more than [`MOST_SWITCHES`].
    pub fn switches_hz(&self, cpus: usize) -> u32 {
        let us = self.off_cpu.map_or(0, Span::us).max(1) * cpus.max(1) as u64;
        u32::try_from(MOST_SWITCHES * 1_000_000 / us).unwrap_or(u32::MAX).clamp(1, MOST_SWITCHES_HZ)
    }
}

/// Switches between threads that a trial takes with a stack.
pub const MOST_SWITCHES: u64 = 8192;
/// More samples a second than this of one processor the kernel may refuse to take.
const MOST_SWITCHES_HZ: u32 = 20_000;
/// How long getting ready for what waits takes, in which what runs is not sampled any more.
pub const AROUND_OFF_CPU_US: u64 = 1_000_000;

/// Samples with a copy of the stack that a trial takes where nothing is said: 256 MiB of raw data. A share of 1 % of so
/// many is known to a twentieth of a percent.
pub const MOST_COPIES: u64 = 32_768;

/// How much of a stack is copied with each sample for its unwinding afterwards, in bytes. A server's are rarely deeper.
pub const COPY_BYTES: u32 = 8192;

/// A way to find the callers of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Unwinding {
    /// The kernel follows frame pointers at each sample: cheap, and blind in programs that have none.
    #[serde(rename = "fp")]
    #[strum(serialize = "fp")]
    FramePointers,
    /// The kernel copies the top of the stack at each sample, which is unwound afterwards by the tables for exceptions
    /// (DWARF call frame information), which nearly all programs have.
    #[serde(rename = "dwarf")]
    Dwarf,
}

impl Unwinding {
    /// Its name in campaigns and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Scope {
    /// Whatever ran on the machine.
    Machine,
    /// The driver's and the server's processes: more is not permitted.
    Processes,
}

impl Scope {
    /// Its name in bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How a trial's profile was taken; its stacks are [`Stacks`].
#[derive(Clone, Debug, PartialEq)]
pub struct Profiled {
    /// The event that a sample was taken at, by perf's name, such as `cycles` or `cpu-clock`; a `u` after a colon is without
    /// the kernel's side. None where there was no sample.
    pub event: Option<String>,
    /// Samples a second of a busy processor, as asked for.
    pub hz: u32,
    /// How callers were found.
    pub callgraph: Unwinding,
    /// Why so.
    pub callgraph_reason: String,
    /// What was sampled.
    pub scope: Scope,
    /// When sampling began, in microseconds after the load's start.
    pub from_us: i64,
    /// When it ended.
    pub to_us: i64,
    /// Samples that are in the stacks.
    pub samples: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Samples of roles (not of `foreign`) whose innermost function has no name, by the file that it is in: its name,
    /// `[kernel]`, or `[unknown]`.
    pub nameless: BTreeMap<String, u64>,
    /// What perf calls its version.
    pub perf_version: String,
    /// Processor time that perf took while it sampled, in microseconds; without that of the samples themselves, which is
    /// part of the time of what they interrupt. None where it could not be read.
    pub perf_cpu_us: Option<u64>,
    /// How it was recorded what waits; none where it was not.
    pub off_cpu: Option<OffCpu>,
}

/// How it was recorded where threads were when they left their processor, and for how long; the stacks are a record's
/// `off_cpu`, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// When it began, in microseconds after the load's start.
    pub from_us: i64,
    /// When it ended.
    pub to_us: i64,
    /// How often a thread left its processor.
    pub switches: u64,
    /// How many of these have a stack.
    pub sampled: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Processor time that perf took meanwhile, in microseconds; none where it could not be read.
    pub perf_cpu_us: Option<u64>,
}

/// What stands at the end of the stack of a thread that had to leave its processor to another, and would have gone on.
pub const PREEMPTED: &str = "[preempted]";
/// What stands for the stack of a thread that waited when the recording began, or of which no switch was sampled.
pub const NO_STACK: &str = "[no stack]";

impl Profiled {
    /// Processor time that one sample stands for, in microseconds.
    pub fn us_per_sample(&self) -> f64 {
        1e6 / f64::from(self.hz.max(1))
    }

    /// Whether the kernel's side is in it.
    pub fn has_kernel(&self) -> bool {
        let modifiers = |event: &str| event.split_once(':').map(|(_, modifiers)| modifiers.to_owned());
        let event = self.event.as_deref();
        event.is_some_and(|event| modifiers(event).is_none_or(|m| !m.contains('u') || m.contains('k')))
    }
}

/// How a frame of the kernel ends in folded stacks, as flame graphs know it.
pub const KERNEL_SUFFIX: &str = "_[k]";

/// The samples of the processes that have one part in a trial, or how long these waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Their role, as in the metrics `role.*`; `foreign` are all that have none.
    pub role: String,
    /// Samples, or of what waits microseconds, by folded stack: the process's name, then functions from the outermost to the innermost, with semicolons
    /// between them.
    pub samples: BTreeMap<String, u64>,
}

/// A line that is not a folded stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a folded stack: {0}")]
pub struct NotAStack(String);

impl Stacks {
    /// Samples of all stacks.
    pub fn total(&self) -> u64 {
        self.samples.values().sum()
    }

    /// As text: a line for each stack, with its samples after a space.
    pub fn folded(&self) -> String {
        self.samples.iter().map(|(stack, samples)| format!("{stack} {samples}\n")).collect()
    }

    /// Reads such a text.
    ///
    /// # Errors
    /// A line is not a folded stack.
    pub fn from_folded(role: &str, text: &str) -> Result<Self, NotAStack> {
        let mut stacks = Self { role: role.to_owned(), samples: BTreeMap::new() };
        for line in text.lines() {
            let stack = line.rsplit_once(' ').and_then(|(stack, n)| Some((stack, n.parse::<u64>().ok()?)));
            let (stack, samples) = stack.ok_or_else(|| NotAStack(line.to_owned()))?;
            *stacks.samples.entry(stack.to_owned()).or_default() += samples;
        }
        Ok(stacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_stacks_are_taken_for_a_part_of_a_long_window_unless_the_campaign_asks_for_more() {
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
    fn the_end_of_the_window_is_for_what_waits() {
        let off_cpu = Some(Span::from_us(2_000_000));
        let profile = Profile { hz: 99, callgraph: None, window: None, off_cpu };
        let measured = Span::from_us(10_000_000);
        assert_eq!(profile.window(measured, Unwinding::FramePointers, 2).us(), 7_000_000);
        assert_eq!(profile.switches_hz(2), 2048);
        assert_eq!(profile.switches_hz(64), 64);
        let short = Profile { off_cpu: Some(Span::from_us(100_000)), ..profile };
        assert_eq!(short.switches_hz(1), MOST_SWITCHES_HZ);
    }

    #[test]
    fn folded_stacks_are_read_as_they_were_written() {
        let text = "postgres;main;f 2\npostgres;main;f;syscall x_[k] 1\n";
        let stacks = Stacks::from_folded("load", text).unwrap();
        assert_eq!((stacks.total(), stacks.folded().as_str()), (3, text));
        assert!(
            Stacks::from_folded("load", "postgres;main\n").unwrap_err().to_string().contains("postgres;main")
        );
    }
}
