//! How a profile was taken, in a sentence.

use model::profile::{ProfileSummary, Scope, Unwinding};

/// How waiting threads were recorded; `None` if they were not.
pub fn off_cpu_description(taken: &ProfileSummary) -> Option<String> {
    let off_cpu = taken.off_cpu.as_ref()?;
    let seconds = (off_cpu.to_us - off_cpu.from_us) as f64 / 1e6;
    let cpu = off_cpu
        .perf_cpu_us
        .map(|us| format!("; perf itself used {:.2}% of a CPU", us as f64 / seconds.max(1e-6) / 1e4));
    Some(format!(
        "{} switches in {seconds:.1} s, {} with a stack, {}{}",
        off_cpu.switches,
        off_cpu.sampled,
        if off_cpu.lost == 0 { "none lost".to_owned() } else { format!("{} records lost", off_cpu.lost) },
        cpu.unwrap_or_default()
    ))
}

/// How a profile with this many lost samples was taken.
pub fn description(taken: &ProfileSummary, lost: u64) -> String {
    let scope = match taken.scope {
        Scope::Machine => "the whole machine",
        Scope::Processes => "the driver and the server",
    };
    let callers = match taken.callgraph {
        Unwinding::FramePointers => "frame pointers",
        Unwinding::Dwarf => "DWARF",
    };
    let rate = match taken.instructions_per_sample {
        Some(instructions) => format!("one in {instructions} counted instructions"),
        None => format!("{} at {} Hz", taken.event.as_deref().unwrap_or("no event"), taken.hz),
    };
    format!(
        "of {scope}, {rate}, {}; callers by {callers} ({})",
        if lost == 0 { "none lost".to_owned() } else { format!("{lost} lost") },
        taken.callgraph_reason
    )
}
