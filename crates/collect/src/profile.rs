//! Which functions processors are in while a load runs: sampled by perf, folded by role when the load has ended.

mod fold;
mod frame_pointers;
mod perf;
mod script;

use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use model::profile::{Profile, Profiled, Stacks, Unwinding};
use model::units::Span;

pub use self::perf::Perf;
pub(crate) use self::perf::on_path;
use crate::clock::now;
use crate::os::{Roster, Watched};
use crate::sampler::{LoadClock, Tick, Window};
use fold::Folded;
use perf::{Recording, Script};

/// How often it is looked which processes there are: one that lives shorter is known by who started it.
const LOOK_EVERY_US: i64 = 250_000;

/// A profile that is being taken.
#[derive(Debug)]
pub struct Profiler {
    profile: Profile,
    perf: Perf,
    unwinding: Unwinding,
    /// Why so.
    reason: String,
    recorder: u32,
    clock: Arc<LoadClock>,
    thread: JoinHandle<Recorded>,
}

/// What a thread comes back with.
struct Recorded {
    recording: Recording,
    roster: Roster,
    /// None where no load began.
    sampled: Option<Result<Sampled, String>>,
}

struct Sampled {
    origin_us: i64,
    from_us: i64,
    to_us: i64,
    cpu_us: Option<u64>,
}

impl Profiler {
    /// Has perf get ready, before the load's clients are connected.
    ///
    /// # Errors
    /// perf does not do it.
    pub fn start(profile: Profile, perf: &Perf, of: Watched) -> Result<Self, String> {
        let (unwinding, reason) = unwinding(profile, of.postmaster);
        let mut roster = Roster::new(of);
        roster.look();
        let processes: Vec<u32> = roster.watched().collect();
        let recording = Recording::start(perf, profile.hz, unwinding, &processes)?;
        let clock = Arc::new(LoadClock::default());
        let recorder = recording.pid();
        let thread = {
            let clock = Arc::clone(&clock);
            let record = move || record(recording, roster, &clock, profile, unwinding);
            thread::Builder::new().name("collect profile".to_owned()).spawn(record)
        };
        let thread = thread.map_err(|error| format!("no thread could be started: {error}"))?;
        Ok(Self { profile, perf: perf.clone(), unwinding, reason, recorder, clock, thread })
    }

    /// The process that records.
    pub fn pid(&self) -> u32 {
        self.recorder
    }

    /// The load has begun.
    pub fn load_began(&self, window: Window) {
        self.clock.begin(window);
    }

    /// The load has ended. What was recorded is folded, which takes some seconds; `interrupt` ends that.
    ///
    /// # Errors
    /// There is no profile, and why; none where no load began.
    pub fn finish(self, interrupt: &AtomicBool) -> Result<Option<(Profiled, Vec<Stacks>)>, String> {
        self.clock.end();
        let Ok(Recorded { recording, mut roster, sampled }) = self.thread.join() else {
            return Err("its thread panicked".to_owned());
        };
        let Some(sampled) = sampled else { return Ok(None) };
        let Sampled { origin_us, from_us, to_us, cpu_us } = sampled?;
        if interrupt.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        let raw = recording.finish()?;
        let between_us = [origin_us + from_us, origin_us + to_us];
        let script = Script::start(&self.perf, &raw, between_us, interrupt)?;
        let mut script = BufReader::with_capacity(1 << 16, script);
        let folded =
            Folded::read(&mut script, &mut roster).map_err(|error| format!("perf script: {error}"))?;
        script.into_inner().finish()?;
        let profiled = Profiled {
            event: folded.event.clone(),
            hz: self.profile.hz,
            callgraph: self.unwinding,
            callgraph_reason: self.reason,
            scope: self.perf.scope,
            from_us,
            to_us,
            samples: folded.samples,
            lost: folded.lost,
            nameless: folded.nameless.clone(),
            perf_version: self.perf.version,
            perf_cpu_us: cpu_us,
        };
        Ok(Some((profiled, folded.into_stacks())))
    }
}

/// How callers are found, and why so.
fn unwinding(profile: Profile, postmaster: Option<u32>) -> (Unwinding, String) {
    if let Some(asked) = profile.callgraph {
        return (asked, "the campaign says so".to_owned());
    }
    let program = postmaster.map(|pid| PathBuf::from(format!("/proc/{pid}/exe")));
    // By its own name, for people.
    let program = program.map(|link| std::fs::read_link(&link).unwrap_or(link));
    match program.as_deref().and_then(frame_pointers::inspect) {
        Some((true, why)) => (Unwinding::FramePointers, why),
        Some((false, why)) => (Unwinding::Dwarf, why),
        None => (Unwinding::Dwarf, "the server's program could not be inspected".to_owned()),
    }
}

fn record(
    mut recording: Recording,
    mut roster: Roster,
    clock: &LoadClock,
    profile: Profile,
    unwinding: Unwinding,
) -> Recorded {
    let sampled = clock.beginning().map(|window| {
        let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let measured = Span::from_us(u64::try_from(window.to_us - window.from_us).unwrap_or_default());
        let length_us = profile.window(measured, unwinding, cpus).us();
        let to_us = window.from_us + i64::try_from(length_us).unwrap_or(i64::MAX / 4);
        sample(&mut recording, &mut roster, clock, window, to_us)
    });
    Recorded { recording, roster, sampled }
}

/// Samples from the window's beginning to `until_us`, or to the load's end.
fn sample(
    recording: &mut Recording,
    roster: &mut Roster,
    clock: &LoadClock,
    window: Window,
    until_us: i64,
) -> Result<Sampled, String> {
    let after_start_us = || now().monotonic_us - window.origin_us;
    roster.look();
    if matches!(clock.wait_until(window, window.from_us), Tick::Ended) {
        return Err("the load ended before its window began".to_owned());
    }
    let pid = recording.pid();
    let before_us = roster.cpu_us(pid);
    recording.enable()?;
    let from_us = after_start_us();
    let mut at_us = from_us;
    while at_us < until_us {
        roster.look();
        at_us = (at_us + LOOK_EVERY_US).min(until_us);
        if matches!(clock.wait_until(window, at_us), Tick::Ended) {
            break;
        }
    }
    recording.disable()?;
    let to_us = after_start_us();
    let cpu_us = before_us.zip(roster.cpu_us(pid)).map(|(before, after)| (after - before).max(0.0) as u64);
    roster.look();
    Ok(Sampled { origin_us: window.origin_us, from_us, to_us, cpu_us })
}
