//! `profile` in `trial.json`: how a trial's profile was taken. The stacks are separate files.

use std::collections::BTreeMap;

use model::profile;
use serde::{Deserialize, Serialize};

use super::{TRIAL, known};
use crate::error::Defect;

/// How a profile was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The sampled event, by perf's name; null if there was no sample.
    pub event: Option<String>,
    /// Requested samples per second of a busy CPU.
    pub hz: u32,
    /// Instructions between two samples; null where they are not counted, and in older bundles.
    pub instructions_per_sample: Option<u64>,
    /// How callers were found: `fp` or `dwarf`.
    pub callgraph: String,
    /// Reason for this choice.
    pub callgraph_reason: String,
    /// Scope of the samples: `machine` or `processes`.
    pub scope: String,
    /// Start of sampling, in microseconds after the load's start.
    pub from_us: i64,
    /// End of sampling.
    pub to_us: i64,
    /// Samples in the stacks.
    pub samples: u64,
    /// Samples that the kernel dropped for lack of buffer space.
    pub lost: u64,
    /// Samples whose innermost function has no name, by its file.
    pub nameless: BTreeMap<String, u64>,
    /// perf's version.
    pub perf_version: String,
    /// CPU time of perf while it sampled, in microseconds; null if unknown.
    pub perf_cpu_us: Option<u64>,
    /// How waiting threads were recorded; null if they were not, and in older bundles.
    pub off_cpu: Option<OffCpu>,
}

/// How waiting threads were recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OffCpu {
    /// Start of the recording, in microseconds after the load's start.
    pub from_us: i64,
    /// End of the recording.
    pub to_us: i64,
    /// How often a thread left its CPU.
    pub switches: u64,
    /// How many of these switches have a stack.
    pub sampled: u64,
    /// Records that the kernel dropped for lack of buffer space.
    pub lost: u64,
    /// CPU time of perf in that time, in microseconds; null if unknown.
    pub perf_cpu_us: Option<u64>,
}

mirrors!(OffCpu, profile::OffCpu { from_us, to_us, switches, sampled, lost, perf_cpu_us });

impl From<&profile::ProfileSummary> for Profile {
    fn from(profiled: &profile::ProfileSummary) -> Self {
        Self {
            event: profiled.event.clone(),
            hz: profiled.hz,
            instructions_per_sample: profiled.instructions_per_sample,
            callgraph: profiled.callgraph.as_str().to_owned(),
            callgraph_reason: profiled.callgraph_reason.clone(),
            scope: profiled.scope.as_str().to_owned(),
            from_us: profiled.from_us,
            to_us: profiled.to_us,
            samples: profiled.samples,
            lost: profiled.lost,
            nameless: profiled.nameless.clone(),
            perf_version: profiled.perf_version.clone(),
            perf_cpu_us: profiled.perf_cpu_us,
            off_cpu: profiled.off_cpu.clone().map(OffCpu::from),
        }
    }
}

impl Profile {
    pub(super) fn into_model(self) -> Result<profile::ProfileSummary, Defect> {
        Ok(profile::ProfileSummary {
            event: self.event,
            hz: self.hz,
            instructions_per_sample: self.instructions_per_sample,
            callgraph: known(TRIAL, "call graph", &self.callgraph)?,
            callgraph_reason: self.callgraph_reason,
            scope: known(TRIAL, "scope of a profile", &self.scope)?,
            from_us: self.from_us,
            to_us: self.to_us,
            samples: self.samples,
            lost: self.lost,
            nameless: self.nameless,
            perf_version: self.perf_version,
            perf_cpu_us: self.perf_cpu_us,
            off_cpu: self.off_cpu.map(profile::OffCpu::from),
        })
    }
}
