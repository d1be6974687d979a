//! One session: two trials at the same time, each with servers, driver and collectors of its own, in a thread of its own.

use std::thread;

use model::message::Interval;
use model::paired::{PAIRS, Side};
use model::waits::Waits;

use crate::alternation::Alternation;
use crate::error::RunError;
use crate::rig::LiveRig;
use crate::schedule::NextTrial;
use crate::servers::Servers;
use crate::trial::{self, FinishedTrial, RunContext};

/// Receives an interval of a side's load, with the waits of the server's sessions in its second.
type OnInterval<'a> = dyn Fn(Side, &Interval, Option<&[Waits]>) + Sync + 'a;

/// Runs both trials of a session, with the load of one or the other in turns, in so many pairs of slices. If one fails, so does
/// the other. `on_interval` receives the intervals of each side's load.
///
/// # Errors
/// As [`trial::run`].
pub(crate) fn run(
    context: &RunContext,
    servers: [&mut Servers<'_>; 2],
    next: [&NextTrial; 2],
    pairs: u32,
    on_interval: &OnInterval<'_>,
) -> Result<[FinishedTrial; 2], RunError> {
    let RunContext { run, plan, host, perf, program, interrupt, .. } = *context;
    let cell = plan.cell(&next[0].trial);
    let seed = plan.run.seed.wrapping_add(u64::from(next[0].trial.repeat));
    let slice = cell.duration.duration() / PAIRS;
    let alternation = Alternation::new(cell.warmup.duration(), slice, pairs, seed);
    let run_side = |side: Side, servers: &mut Servers<'_>| {
        let alternating = alternation.side(side);
        let context = RunContext {
            run,
            plan,
            host,
            side: Some(&alternating),
            perf,
            program,
            rig: &LiveRig::LOCAL,
            interrupt,
            on_ready: &|| (),
        };
        trial::run(&context, servers, next[side.index()], |interval, waits| {
            on_interval(side, interval, waits)
        })
    };
    let [a, b] = servers;
    thread::scope(|scope| {
        let other = scope.spawn(|| run_side(Side::B, b));
        let one = run_side(Side::A, a);
        let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([one?, other?])
    })
}
