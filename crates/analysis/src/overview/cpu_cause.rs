//! Why the server's CPU time per transaction changed where nothing else did: by functions, or by instructions.

use std::collections::HashSet;

use diagnose::profile::Groups;
use plaintext::figures;
use store::{Part, StoreReader};

use super::view::Point;
use crate::profile::{DEFAULT_ROLE, Difference, Kind, Profile, TrialProfile};

/// The most functions in a sentence.
const MAX_FUNCTIONS: usize = 3;
/// What would show the functions.
const PROFILE: &str = "pgdyno ab --profile, or [profile] in a campaign, shows the functions";

/// One sentence on a change of CPU time by this ratio. `ids` are the trials of each side that have been chosen for a closer look.
pub(super) fn cpu_cause(reader: &StoreReader, ratio: f64, points: [&Point; 2], ids: [&[&str]; 2]) -> String {
    if let Some(functions) = by_function(reader, ratio, ids) {
        return functions;
    }
    let [before, after] = points.map(|point| instructions(reader, point));
    let Some(instructions) = after.zip(before).map(|(after, before)| after / before) else {
        return format!("what the CPU time went to is not known: {PROFILE}");
    };
    // At least half of the change.
    let share = instructions.ln() / ratio.ln();
    let change = figures::change(instructions - 1.0);
    let what = if share >= 0.5 {
        format!("the server executes other work: instructions per transaction {change}")
    } else {
        format!(
            "instructions per transaction {change} do not account for it: they take another time each, as by caches"
        )
    };
    format!("{what}; {PROFILE}")
}

/// The functions whose CPU time changed most in the direction of the ratio, beyond chance; `None` without profiles.
fn by_function(reader: &StoreReader, ratio: f64, ids: [&[&str]; 2]) -> Option<String> {
    let profiles = ids.map(|ids| {
        let records = ids.iter().filter_map(|id| reader.load_parts(id, &[Part::Stacks, Part::Series]));
        let of_trials: Vec<TrialProfile> =
            records.filter_map(|record| TrialProfile::from_record(&record, Kind::OnCpu)).collect();
        Profile::merge(&of_trials)
    });
    let [Some(before), Some(after)] = profiles else { return None };
    let differences = Difference::between(&before, &after, &Groups::default()).ok()?;
    let of_load = differences.into_iter().find(|of| of.role.of.as_deref() == Some(DEFAULT_ROLE))?;
    let mut changed: Vec<_> = of_load
        .functions
        .into_iter()
        .filter(|change| change.increase_us() * ratio.ln() > 0.0)
        .filter(|change| change.increase_us().abs() > change.margin_us)
        .collect();
    changed.sort_by(|a, b| b.increase_us().abs().total_cmp(&a.increase_us().abs()));
    let named: Vec<String> = changed
        .iter()
        .filter_map(|change| {
            Some(format!("{} {:.2} → {:.2} µs", change.of.as_ref()?, change.before_us, change.after_us))
        })
        .take(MAX_FUNCTIONS)
        .collect();
    (!named.is_empty()).then(|| format!("CPU time per transaction by function: {}", named.join(", ")))
}

/// Mean instructions per transaction of a point's usable trials; `None` if they are not counted.
fn instructions(reader: &StoreReader, point: &Point) -> Option<f64> {
    let ids: HashSet<&str> = point
        .runs
        .iter()
        .filter(|trial| trial.validity != "invalid")
        .map(|trial| trial.id.as_str())
        .collect();
    let trials = reader.trials().iter().filter(|trial| ids.contains(trial.id.as_str()));
    let counted: Vec<f64> = trials
        .filter_map(|trial| trial.paired.as_ref()?.server_instructions_per_transaction())
        .filter(|instructions| *instructions > 0.0)
        .collect();
    (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64)
}
