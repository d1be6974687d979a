//! CPU and off-CPU profiles of the load.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::collector::{Collected, Collector, Context, Started};
use crate::error::CollectError;
use crate::profile::{Profiler, RecordedProfile};

pub(super) fn start(context: &Context<'_>) -> Started {
    let Some((profile, perf)) = context.subject.profile else { return Ok(None) };
    let profiler = Profiler::start(profile, perf, context.watched.clone(), Arc::clone(&context.clock))?;
    Ok(Some(Box::new(profiler)))
}

impl Collector for Profiler {
    fn finish(self: Box<Self>, _: &Context<'_>, interrupt: &AtomicBool) -> Result<Collected, CollectError> {
        let mut collected = Collected::default();
        let Some(RecordedProfile { mut profile, stacks, off_cpu }) = Profiler::finish(*self, interrupt)?
        else {
            return Ok(collected);
        };
        match off_cpu {
            Some(Ok((parameters, stacks))) => {
                profile.off_cpu = Some(parameters);
                collected.off_cpu = stacks;
            }
            Some(Err(error)) => collected.notes.push(super::note("profile off CPU", &error)),
            None => {}
        }
        collected.stacks = stacks;
        collected.profile = Some(profile);
        Ok(collected)
    }
}
