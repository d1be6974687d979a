//! Limitations of a profile, and how to remove them.

use model::profile::{ProfileSummary, Scope, Unwinding};

/// The smallest share of samples without names that is reported.
const MIN_UNNAMED_SHARE: f64 = 0.02;
/// The smallest share of lost samples that is reported.
const MIN_LOST_SHARE: f64 = 0.01;

/// Limitations of a profile, in complete sentences with the remedies.
pub fn limitations(profile: &ProfileSummary) -> Vec<String> {
    let mut found = Vec::new();
    if profile.samples == 0 {
        found.push("There are no samples: nothing ran during the profile.".to_owned());
        return found;
    }
    let samples = profile.samples as f64;
    if !profile.has_kernel() {
        found.push(
            "Kernel functions are missing, because this user may not profile the kernel: as root, sysctl \
             kernel.perf_event_paranoid=1."
                .to_owned(),
        );
    }
    if profile.scope == Scope::Processes {
        found.push(
            "Only the driver's and the server's processes were sampled: for the whole machine, as root, sysctl \
             kernel.perf_event_paranoid=-1."
                .to_owned(),
        );
    }
    for (file, &nameless) in &profile.nameless {
        let share = nameless as f64 / samples;
        if share < MIN_UNNAMED_SHARE {
            continue;
        }
        let name = file.trim_matches(['[', ']']);
        let advice = match name {
            "kernel" => "as root, sysctl kernel.kptr_restrict=0".to_owned(),
            "postgres" => {
                "it is stripped: build the server by `source`, or install its debug symbols (Debian: \
                           postgresql-MAJOR-dbgsym)"
                    .to_owned()
            }
            "pgdyno" if profile.instructions_per_sample.is_some() => {
                "virtual machines have pgdyno without its symbols".to_owned()
            }
            "unknown" => match profile.callgraph {
                Unwinding::FramePointers => "try callgraph = \"dwarf\"".to_owned(),
                Unwinding::Dwarf => {
                    "its code is not from a file: a JIT compiler may have generated it".to_owned()
                }
            },
            library => format!(
                "install the debug symbols of {library} (Debian: a package whose name ends in -dbgsym or -dbg)"
            ),
        };
        found.push(format!(
            "{:.1}% of the samples are in functions of {name} that have no name: {advice}.",
            share * 100.0
        ));
    }
    let lost = profile.lost as f64 / (samples + profile.lost as f64);
    if lost > MIN_LOST_SHARE {
        let remedy = match profile.instructions_per_sample {
            Some(_) => "callgraph = \"fp\" has smaller samples",
            None => "use a lower hz",
        };
        found.push(format!(
            "{:.1}% of the samples were lost, because perf did not get a CPU in time: {remedy}.",
            lost * 100.0
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limitations_are_reported_with_their_remedies() {
        let profile = ProfileSummary {
            event: Some("cpu-clock".to_owned()),
            hz: 99,
            instructions_per_sample: None,
            callgraph: Unwinding::Dwarf,
            callgraph_reason: String::new(),
            scope: Scope::Machine,
            from_us: 0,
            to_us: 1,
            samples: 1000,
            lost: 0,
            nameless: [("[kernel]".to_owned(), 19)].into(),
            perf_version: String::new(),
            perf_cpu_us: None,
            off_cpu: None,
        };
        assert_eq!(limitations(&profile), Vec::<String>::new());
        let nameless = [("[kernel]", 300), ("[libc.so.6]", 100), ("[postgres]", 50)];
        let poor = ProfileSummary {
            event: Some("cpu-clock:uH".to_owned()),
            scope: Scope::Processes,
            lost: 100,
            nameless: nameless.map(|(file, n)| (file.to_owned(), n)).into(),
            ..profile.clone()
        };
        let shown = limitations(&poor).join("\n");
        for part in [
            "perf_event_paranoid=1.",
            "perf_event_paranoid=-1.",
            "30.0% of the samples are in functions of kernel that have no name: as root, sysctl kernel.kptr_restrict=0",
            "debug symbols of libc.so.6",
            "5.0% of the samples are in functions of postgres that have no name: it is stripped",
            "9.1% of the samples were lost",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let empty = ProfileSummary { samples: 0, event: None, ..profile };
        assert!(limitations(&empty)[0].contains("no sample"));
    }
}
