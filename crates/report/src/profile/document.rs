//! `profile --format json`.

use std::collections::BTreeMap;

use diagnose::profile::{Groups, functions};
use model::profile::{OffCpu, ProfileSummary};
use serde::Serialize;

use analysis::profile::{Change, Difference, Profile};

/// `profile --format json`, schema 1.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    profiles: Vec<ProfileDocument>,
    /// Differences of the second from the first, by role; null for a single profile.
    difference: Option<Vec<DifferenceDocument>>,
}

#[derive(Debug, Serialize)]
struct ProfileDocument {
    /// `on-cpu`, or `off-cpu`, in which samples are microseconds.
    kind: &'static str,
    cell: String,
    trials: Vec<String>,
    /// How each was taken.
    taken: Vec<ProfiledDocument>,
    /// Transactions while it was taken; null if unknown.
    transactions: Option<f64>,
    /// Throughput in the rest of the measured window; null if there is hardly any rest.
    #[serde(rename = "tps_beside")]
    tps_outside: Option<f64>,
    us_per_sample: f64,
    roles: Vec<RoleDocument>,
    reservations: Vec<String>,
}

/// How a trial's profile was taken.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfiledDocument {
    event: Option<String>,
    hz: u32,
    /// Instructions between two samples; null where they are not counted.
    instructions_per_sample: Option<u64>,
    callgraph: &'static str,
    callgraph_reason: String,
    scope: &'static str,
    from_us: i64,
    to_us: i64,
    samples: u64,
    lost: u64,
    nameless: BTreeMap<String, u64>,
    perf_version: String,
    perf_cpu_us: Option<u64>,
    off_cpu: Option<OffCpuDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OffCpuDocument {
    from_us: i64,
    to_us: i64,
    switches: u64,
    sampled: u64,
    lost: u64,
    perf_cpu_us: Option<u64>,
}

#[derive(Debug, Serialize)]
struct RoleDocument {
    role: String,
    samples: u64,
    us_per_transaction: Option<f64>,
    groups: Vec<GroupDocument>,
    functions: Vec<FunctionDocument>,
}

#[derive(Debug, Serialize)]
struct GroupDocument {
    /// Null for functions in no group.
    group: Option<String>,
    share: f64,
    inclusive_share: f64,
    us_per_transaction: Option<f64>,
}

#[derive(Debug, Serialize)]
struct FunctionDocument {
    function: String,
    self_samples: u64,
    inclusive_samples: u64,
    self_share: f64,
    inclusive_share: f64,
}

#[derive(Debug, Serialize)]
struct DifferenceDocument {
    role: ChangeDocument,
    groups: Vec<ChangeDocument>,
    functions: Vec<ChangeDocument>,
}

#[derive(Debug, Serialize)]
struct ChangeDocument {
    of: Option<String>,
    before_us: f64,
    after_us: f64,
    margin_us: f64,
}

impl Document {
    /// Document of one profile, or of two with their differences.
    pub fn new(profiles: &[&Profile], groups: &Groups, difference: Option<&[Difference]>) -> Self {
        Self {
            schema: 1,
            profiles: profiles.iter().map(|profile| ProfileDocument::new(profile, groups)).collect(),
            difference: difference.map(|roles| roles.iter().map(DifferenceDocument::new).collect()),
        }
    }
}

impl ProfileDocument {
    fn new(profile: &Profile, groups: &Groups) -> Self {
        let role = |stacks: &model::profile::Stacks| {
            let total = stacks.total();
            let share = |samples: u64| samples as f64 / total.max(1) as f64;
            let group = |found: diagnose::profile::GroupShare| GroupDocument {
                group: found.group,
                share: share(found.own),
                inclusive_share: share(found.inclusive),
                us_per_transaction: profile.us_per_transaction(found.own),
            };
            let function = |found: diagnose::profile::Function| FunctionDocument {
                self_samples: found.own,
                inclusive_samples: found.inclusive,
                self_share: share(found.own),
                inclusive_share: share(found.inclusive),
                function: found.name,
            };
            RoleDocument {
                role: stacks.role.clone(),
                samples: total,
                us_per_transaction: profile.us_per_transaction(total),
                groups: groups.shares(stacks).into_iter().map(group).collect(),
                functions: functions(stacks).into_iter().map(function).collect(),
            }
        };
        Self {
            kind: profile.kind.name(),
            cell: profile.cell.clone(),
            trials: profile.trials.clone(),
            taken: profile.taken.iter().map(ProfiledDocument::new).collect(),
            transactions: profile.transactions,
            tps_outside: profile.tps_outside,
            us_per_sample: profile.us_per_sample,
            roles: profile.stacks.iter().map(role).collect(),
            reservations: profile.limitations(),
        }
    }
}

impl ProfiledDocument {
    /// Document of one trial's profile.
    pub fn new(taken: &ProfileSummary) -> Self {
        Self {
            event: taken.event.clone(),
            hz: taken.hz,
            instructions_per_sample: taken.instructions_per_sample,
            callgraph: taken.callgraph.as_str(),
            callgraph_reason: taken.callgraph_reason.clone(),
            scope: taken.scope.as_str(),
            from_us: taken.from_us,
            to_us: taken.to_us,
            samples: taken.samples,
            lost: taken.lost,
            nameless: taken.nameless.clone(),
            perf_version: taken.perf_version.clone(),
            perf_cpu_us: taken.perf_cpu_us,
            off_cpu: taken.off_cpu.clone().map(
                |OffCpu { from_us, to_us, switches, sampled, lost, perf_cpu_us }| OffCpuDocument {
                    from_us,
                    to_us,
                    switches,
                    sampled,
                    lost,
                    perf_cpu_us,
                },
            ),
        }
    }
}

impl DifferenceDocument {
    fn new(difference: &Difference) -> Self {
        Self {
            role: ChangeDocument::new(&difference.role),
            groups: difference.groups.iter().map(ChangeDocument::new).collect(),
            functions: difference.functions.iter().map(ChangeDocument::new).collect(),
        }
    }
}

impl ChangeDocument {
    fn new(change: &Change) -> Self {
        Self {
            of: change.of.clone(),
            before_us: change.before_us,
            after_us: change.after_us,
            margin_us: change.margin_us,
        }
    }
}
