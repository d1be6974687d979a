//! CPU and off-CPU profiles of a load: recorded by perf, folded by role after the load.

mod fold;
mod frame_pointers;
mod perf;
mod script;
mod waiting;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use model::profile::{
    OFF_CPU_SETUP_US, OffCpu, Profile, ProfileSummary, Stacks, Unwinding, instructions_per_sample,
};
use model::units::Span;
use procfs::{CurrentSI, KernelStats};

pub use self::perf::Perf;
pub(crate) use self::perf::on_path;
use crate::clock::now;
use crate::error::{CollectError, ProfileError};
use crate::load_clock::{LoadClock, Tick, Window};
use crate::os::{Roster, Watched};
use fold::FoldedSamples;
use perf::{Recording, RecordingKind, Script};
use waiting::FoldedWaits;

/// Interval at which processes are listed: shorter-lived ones are identified by their parents.
const LIST_INTERVAL_US: i64 = 250_000;

/// A profile being taken.
#[derive(Debug)]
pub(crate) struct Profiler {
    profile: Profile,
    perf: Perf,
    unwinding: Unwinding,
    /// Reason for it.
    reason: String,
    thread: JoinHandle<RecordingResult>,
}

/// A recorded profile.
#[derive(Debug)]
pub(crate) struct RecordedProfile {
    /// Its parameters, except those of the off-CPU profile.
    pub profile: ProfileSummary,
    /// Samples by role.
    pub stacks: Vec<Stacks>,
    /// The off-CPU profile: its parameters, and waits by role, or why it failed; none if not requested.
    pub off_cpu: Option<Result<(OffCpu, Vec<Stacks>), ProfileError>>,
}

/// Result of the recording thread.
struct RecordingResult {
    roster: Roster,
    running: Recording,
    /// None if no load started.
    sampled: Option<Result<SampledSpan, ProfileError>>,
    waiting: Option<Result<(File, SampledSpan), ProfileError>>,
}

struct SampledSpan {
    origin_us: i64,
    from_us: i64,
    to_us: i64,
    cpu_us: Option<u64>,
}

impl SampledSpan {
    /// On `CLOCK_MONOTONIC`.
    fn between_us(&self) -> [i64; 2] {
        [self.origin_us + self.from_us, self.origin_us + self.to_us]
    }
}

impl Profiler {
    /// Starts perf, before the load's clients connect.
    ///
    /// # Errors
    /// perf fails.
    pub(crate) fn start(
        profile: Profile,
        perf: &Perf,
        watched: Watched,
        clock: Arc<LoadClock>,
    ) -> Result<Self, CollectError> {
        let (unwinding, reason) = unwinding(profile, watched.postmaster);
        let profilers = Arc::clone(&watched.profilers);
        let mut roster = Roster::new(watched);
        roster.update();
        let kind = perf.running(profile);
        let processes: Vec<u32> = roster.watched().collect();
        let running = Recording::start(perf, kind, unwinding, &processes, &profilers)?;
        let perf_program = perf.clone();
        let record = move || {
            let mut result = RecordingResult { roster, running, sampled: None, waiting: None };
            if let Some(window) = clock.wait_for_start() {
                let perf = perf_program;
                result.record(&WindowRecorder { profile, perf, unwinding, profilers, clock, window });
            }
            result
        };
        let thread = thread::Builder::new().name("collect profile".to_owned()).spawn(record);
        let thread = thread.map_err(CollectError::Thread)?;
        Ok(Self { profile, perf: perf.clone(), unwinding, reason, thread })
    }

    /// Folds the recording after the load, which takes some seconds; `interrupt` ends that. None if no load started.
    ///
    /// # Errors
    /// The reason why there is no profile.
    pub(crate) fn finish(self, interrupt: &AtomicBool) -> Result<Option<RecordedProfile>, CollectError> {
        let Ok(RecordingResult { mut roster, running, sampled, waiting }) = self.thread.join() else {
            return Err(CollectError::Panicked);
        };
        let Some(sampled) = sampled else { return Ok(None) };
        let sampled = sampled?;
        if interrupt.load(Ordering::Relaxed) {
            return Err(ProfileError::Interrupted.into());
        }
        let (perf, kind) = (&self.perf, self.perf.running(self.profile));
        // Counted instructions are the load's, without perf's own.
        let without = perf.counts().then(|| running.pid());
        let folded = read(perf, kind, &running.finish()?, sampled.between_us(), interrupt, |script| {
            FoldedSamples::read(script, &mut roster, without)
        })?;
        let instructions = perf.counts().then(instructions_per_sample);
        let profile = ProfileSummary {
            event: folded.event.clone(),
            hz: instructions.map_or(self.profile.hz, |count| (1_000_000_000 / count) as u32),
            instructions_per_sample: instructions,
            callgraph: self.unwinding,
            callgraph_reason: self.reason,
            scope: perf.scope,
            from_us: sampled.from_us,
            to_us: sampled.to_us,
            samples: folded.samples,
            lost: folded.lost,
            nameless: folded.nameless.clone(),
            perf_version: perf.version.clone(),
            perf_cpu_us: sampled.cpu_us,
            off_cpu: None,
        };
        let off_cpu = waiting.map(|recorded| {
            let (raw, during) = recorded?;
            let between_us = during.between_us();
            let waiting =
                read(perf, RecordingKind::Waiting { period: 1 }, &raw, between_us, interrupt, |script| {
                    FoldedWaits::read(script, &mut roster, between_us)
                })?;
            if waiting.is_incomplete() {
                return Err(ProfileError::Lost { lost: waiting.lost, switches: waiting.switches });
            }
            let off_cpu = OffCpu {
                from_us: during.from_us,
                to_us: during.to_us,
                switches: waiting.switches,
                sampled: waiting.sampled,
                lost: waiting.lost,
                perf_cpu_us: during.cpu_us,
            };
            Ok((off_cpu, waiting.into_stacks()))
        });
        Ok(Some(RecordedProfile { profile, stacks: folded.into_stacks(), off_cpu }))
    }
}

/// Reads a recording between two times.
fn read<T>(
    perf: &Perf,
    kind: RecordingKind,
    raw: &File,
    between_us: [i64; 2],
    interrupt: &AtomicBool,
    fold: impl FnOnce(&mut BufReader<Script<'_>>) -> std::io::Result<T>,
) -> Result<T, ProfileError> {
    let script = Script::start(perf, kind, raw, between_us, interrupt)?;
    let mut script = BufReader::with_capacity(1 << 16, script);
    let folded = fold(&mut script).map_err(ProfileError::Script)?;
    script.into_inner().finish()?;
    Ok(folded)
}

/// Method of finding callers, and the reason.
fn unwinding(profile: Profile, postmaster: Option<u32>) -> (Unwinding, String) {
    if let Some(asked) = profile.callgraph {
        return (asked, "requested by the campaign".to_owned());
    }
    let program = postmaster.map(|pid| PathBuf::from(format!("/proc/{pid}/exe")));
    // The program's own name, for people.
    let program = program.map(|link| std::fs::read_link(&link).unwrap_or(link));
    match program.as_deref().and_then(frame_pointers::inspect) {
        Some((true, why)) => (Unwinding::FramePointers, why),
        Some((false, why)) => (Unwinding::Dwarf, why),
        None => (Unwinding::Dwarf, "the server's program could not be inspected".to_owned()),
    }
}

/// Requirements of a recording during a load.
struct WindowRecorder {
    profile: Profile,
    perf: Perf,
    unwinding: Unwinding,
    profilers: Arc<Mutex<Vec<u32>>>,
    clock: Arc<LoadClock>,
    window: Window,
}

/// Context switches of the machine until now.
struct Switches {
    /// None if the kernel does not say.
    count: Option<u64>,
    at_us: i64,
}

impl Switches {
    fn now() -> Self {
        Self { count: KernelStats::current().ok().map(|stats| stats.ctxt), at_us: now().monotonic_us }
    }

    /// 0 if it is not known.
    fn per_second_since(&self, before: &Self) -> f64 {
        let count = self.count.zip(before.count).map_or(0, |(now, before)| now.saturating_sub(before));
        count as f64 * 1e6 / (self.at_us - before.at_us).max(1) as f64
    }
}

impl RecordingResult {
    /// CPU profile from the window's start, then off-CPU profile to its end.
    fn record(&mut self, recorder: &WindowRecorder) {
        let WindowRecorder { profile, unwinding, window, .. } = recorder;
        let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let span_us = |span: Span| i64::try_from(span.us()).unwrap_or(i64::MAX / 4);
        let measured = Span::from_us(u64::try_from(window.to_us - window.from_us).unwrap_or_default());
        let until_us = window.from_us + span_us(profile.window(measured, *unwinding, cpus));
        self.roster.update();
        if recorder.perf.counts() {
            self.sampled = Some(recorder.sample_before_window(&mut self.running, &mut self.roster));
            return;
        }
        let switches_before = Switches::now();
        let sampled = recorder.sample(&mut self.running, &mut self.roster, window.from_us, until_us);
        let is_sampled = sampled.is_ok();
        self.sampled = Some(sampled);
        let Some(length) = profile.off_cpu.filter(|_| is_sampled) else { return };
        let from_us = window.to_us - span_us(length);
        self.waiting = Some(recorder.wait(&mut self.roster, switches_before, from_us));
    }
}

impl WindowRecorder {
    /// Records an off-CPU profile to the window's end, with as many stacks as the switches since `switches_before` let
    /// expect. perf records switches from its start on, so that it is started
    /// shortly before.
    fn wait(
        &self,
        roster: &mut Roster,
        switches_before: Switches,
        from_us: i64,
    ) -> Result<(File, SampledSpan), ProfileError> {
        let ready_us = from_us - OFF_CPU_SETUP_US as i64;
        if matches!(self.clock.wait_until(self.window, ready_us), Tick::Ended) {
            return Err(ProfileError::NoWaits);
        }
        let period = self.profile.switch_period(Switches::now().per_second_since(&switches_before));
        let kind = RecordingKind::Waiting { period };
        roster.update();
        let processes: Vec<u32> = roster.watched().collect();
        let mut recording = Recording::start(&self.perf, kind, self.unwinding, &processes, &self.profilers)?;
        let sampled = self.sample(&mut recording, roster, from_us, self.window.to_us)?;
        // perf would end with this thread.
        Ok((recording.finish()?, sampled))
    }

    /// Samples before the measured window, and ends perf, so that its instructions are not in the window.
    fn sample_before_window(
        &self,
        recording: &mut Recording,
        roster: &mut Roster,
    ) -> Result<SampledSpan, ProfileError> {
        let Self { profile, window, .. } = self;
        let us = |us: u64| i64::try_from(us).unwrap_or(i64::MAX / 4);
        let from_us = window.from_us - us(profile.counted_lead_us());
        let sampled = self.sample(recording, roster, from_us, from_us + us(profile.counted_length().us()))?;
        recording.end()?;
        let late_us = now().monotonic_us - window.origin_us - window.from_us;
        match late_us {
            1.. => Err(ProfileError::Late { ms: late_us / 1000 }),
            _ => Ok(sampled),
        }
    }

    /// Samples between two times, or to the load's end.
    fn sample(
        &self,
        recording: &mut Recording,
        roster: &mut Roster,
        from_us: i64,
        until_us: i64,
    ) -> Result<SampledSpan, ProfileError> {
        let Self { window, clock, .. } = self;
        let after_start_us = || now().monotonic_us - window.origin_us;
        if matches!(clock.wait_until(*window, from_us), Tick::Ended) {
            return Err(ProfileError::NoWindow);
        }
        let pid = recording.pid();
        // Listing would be many of the counted instructions.
        let list_interval_us = if self.perf.counts() { until_us - from_us } else { LIST_INTERVAL_US };
        let before_us = roster.cpu_us(pid);
        recording.enable()?;
        let from_us = after_start_us();
        let mut at_us = from_us;
        while at_us < until_us {
            roster.update();
            at_us = (at_us + list_interval_us).min(until_us);
            if matches!(clock.wait_until(*window, at_us), Tick::Ended) {
                break;
            }
        }
        recording.disable()?;
        let to_us = after_start_us();
        let cpu_us =
            before_us.zip(roster.cpu_us(pid)).map(|(before, after)| (after - before).max(0.0) as u64);
        roster.update();
        Ok(SampledSpan { origin_us: window.origin_us, from_us, to_us, cpu_us })
    }
}
