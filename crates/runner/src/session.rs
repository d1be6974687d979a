//! One session: two trials at the same time, each with servers, driver and collectors of its own, in a thread of its own.

use std::thread;

use model::paired::{PAIRS, Side};

use crate::alternation::Alternation;
use crate::error::RunError;
use crate::rig::LiveRig;
use crate::schedule::NextTrial;
use crate::servers::Servers;
use crate::trial::{self, FinishedTrial, RunContext};

/// Runs both trials of a session, with the load of one or the other in turns, in so many pairs of slices. If one fails, so does
/// the other.
///
/// # Errors
/// As [`trial::run`].
pub(crate) fn run(
    context: &RunContext,
    servers: [&mut Servers<'_>; 2],
    next: [&NextTrial; 2],
    pairs: u32,
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
            rig: &LiveRig,
            interrupt,
            on_ready: &|| (),
        };
        trial::run(&context, servers, next[side.index()], |_, _| ())
    };
    let [a, b] = servers;
    thread::scope(|scope| {
        let other = scope.spawn(|| run_side(Side::B, b));
        let one = run_side(Side::A, a);
        let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([one?, other?])
    })
}
