//! `profile` in `trial.json`: how a trial's profile was taken. The stacks are files of their own.

use std::collections::BTreeMap;

use model::profile;
use serde::{Deserialize, Serialize};

use super::{TRIAL, known};
use crate::error::Defect;

/// How a profile was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The event that samples were taken at, by perf's name; null where there was no sample.
    pub event: Option<String>,
    /// Samples a second of a busy processor, as asked for.
    pub hz: u32,
    /// How callers were found: `fp` or `dwarf`.
    pub callgraph: String,
    /// Why so.
    pub callgraph_reason: String,
    /// What was sampled: `machine` or `processes`.
    pub scope: String,
    /// When sampling began, in microseconds after the load's start.
    pub from_us: i64,
    /// When it ended.
    pub to_us: i64,
    /// Samples that are in the stacks.
    pub samples: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Samples whose innermost function has no name, by the file that it is in.
    pub nameless: BTreeMap<String, u64>,
    /// perf's version.
    pub perf_version: String,
    /// Processor time of perf while it sampled, in microseconds; null where it is not known.
    pub perf_cpu_us: Option<u64>,
    /// How it was recorded what waits; null where it was not, and in older bundles.
    pub off_cpu: Option<OffCpu>,
}

/// How it was recorded what waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Processor time of perf meanwhile, in microseconds; null where it is not known.
    pub perf_cpu_us: Option<u64>,
}

mirrors!(OffCpu, profile::OffCpu { from_us, to_us, switches, sampled, lost, perf_cpu_us });

impl From<&profile::Profiled> for Profile {
    fn from(profiled: &profile::Profiled) -> Self {
        Self {
            event: profiled.event.clone(),
            hz: profiled.hz,
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
    pub(super) fn into_model(self) -> Result<profile::Profiled, Defect> {
        Ok(profile::Profiled {
            event: self.event,
            hz: self.hz,
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
