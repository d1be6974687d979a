//! Profiles of stored trials: the functions that used CPU, or in which threads waited, and differences of two profiles.

mod description;
mod difference;
mod groups_file;
mod tree;

use std::collections::BTreeMap;

use diagnose::profile::normalize_names;
use model::message::{Interval, Phase};
use model::profile::{ProfileSummary, Stacks};
use model::record::TrialRecord;
use store::{Part, StoreError, StoreReader};

use crate::select::{OneCellError, RunSelection, Selector, trials_of_one_cell};

pub use description::{description, off_cpu_description};
pub use difference::{Change, Difference, has_spread};
pub use groups_file::parse_groups;
pub use tree::{Frame, trees};

/// Error of showing a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Nothing is selected.
    #[error(transparent)]
    Select(#[from] OneCellError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trials have no profile.
    #[error(
        "{trials} no profile: the campaign has no [profile], or recording failed (`pgdyno store show {id}` shows the \
         notes)"
    )]
    None {
        /// The trials, as text.
        trials: String,
        /// Id of the last of them.
        id: String,
    },
    /// The trials have no off-CPU stacks.
    #[error(
        "{trials} no off-CPU stacks: [profile] has no off_cpu, or recording failed (`pgdyno store show {id}` shows the \
         notes)"
    )]
    NoOffCpu {
        /// The trials, as text.
        trials: String,
        /// Id of the last of them.
        id: String,
    },
    /// The trials have different sampling rates.
    #[error("the trials of {selector} were sampled at different rates: select one of them by its id")]
    Rates {
        /// The selector as written.
        selector: String,
    },
    /// There is no such role.
    #[error("the profile has no samples of \"{wanted}\"; it has those of {known}")]
    Role {
        /// The requested role.
        wanted: String,
        /// The existing roles.
        known: String,
    },
    /// There is no such function.
    #[error("{function} is in none of the samples of {role}{known}")]
    Function {
        /// The requested function.
        function: String,
        /// The role searched.
        role: String,
        /// Functions with similar names.
        known: String,
    },
    /// A profile can't be normalised for a difference.
    #[error("trial {id} has no transactions during its profile, which a comparison needs")]
    NoTransactions {
        /// Id of the trial.
        id: String,
    },
    /// A file of groups is invalid.
    #[error("{0}")]
    Groups(String),
}

/// The default role: the backends that serve the load.
pub const DEFAULT_ROLE: &str = "load";

/// The shortest rest of a window that gives a throughput.
const MIN_REST_S: f64 = 1.0;

/// Kind of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Running threads: CPU samples.
    #[default]
    OnCpu,
    /// Waiting threads: time off CPU, in microseconds instead of samples.
    OffCpu,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::OnCpu, Self::OffCpu];

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnCpu => "on-cpu",
            Self::OffCpu => "off-cpu",
        }
    }
}

/// The profile of a trial, or the sum of several of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Kind of the profile.
    pub kind: Kind,
    /// The cell as text.
    pub cell: String,
    /// Ids of the trials.
    pub trials: Vec<String>,
    /// How each was taken.
    pub taken: Vec<ProfileSummary>,
    /// Transactions that ended during the profile; `None` if unknown. Where instructions are counted, those that have as
    /// many instructions as all samples stand for, by the counted path length, so that the functions add up to it.
    pub transactions: Option<f64>,
    /// Throughput in the rest of the measured window, without such a recording, in transactions per second; `None` if
    /// there is almost no rest.
    pub tps_outside: Option<f64>,
    /// Time that a sample stands for, in microseconds; 1 for off-CPU profiles.
    pub us_per_sample: f64,
    /// Stacks by role, the most samples first; functions as named by `normalize_names`.
    pub stacks: Vec<Stacks>,
    /// Transactions and stacks of each trial, likewise.
    pub by_trial: Vec<(Option<f64>, Vec<Stacks>)>,
}

/// The profile of trials of a store; of the run `default` if the selector does not name an origin.
///
/// # Errors
/// There are no such trials, or they have no profile.
pub fn profile(
    reader: &StoreReader,
    default: &RunSelection,
    what: &Selector,
    kind: Kind,
) -> Result<Profile, ProfileError> {
    let ids = trials_of_one_cell(reader, default, what)?;
    let records: Vec<TrialRecord> =
        ids.iter().filter_map(|id| reader.load_parts(id, &[Part::Stacks, Part::Series])).collect();
    if let (true, Some(id)) = (records.is_empty(), ids.first()) {
        return Err(reader.error(id).into());
    }
    let parts: Vec<TrialProfile> =
        records.iter().filter_map(|record| TrialProfile::from_record(record, kind)).collect();
    let Some(profile) = Profile::merge(&parts) else {
        let id = ids.last().cloned().unwrap_or_default();
        let trials = match ids.len() {
            1 => format!("trial {id} has"),
            _ => format!("the trials of {what} have"),
        };
        return Err(match kind {
            Kind::OnCpu => ProfileError::None { trials, id },
            Kind::OffCpu => ProfileError::NoOffCpu { trials, id },
        });
    };
    let hz = |taken: &ProfileSummary| (taken.hz, taken.instructions_per_sample);
    let is_one_rate = profile.taken.iter().map(hz).min() == profile.taken.iter().map(hz).max();
    if kind == Kind::OnCpu && !is_one_rate {
        return Err(ProfileError::Rates { selector: what.to_string() });
    }
    Ok(profile)
}

/// The profile of one trial, as in its bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialProfile {
    /// Kind of the profile.
    pub kind: Kind,
    /// Id of the trial.
    pub id: String,
    /// Its cell as text.
    pub cell: String,
    /// How it was taken.
    pub taken: ProfileSummary,
    /// Transactions of the profile, as in [`Profile::transactions`].
    pub transactions: Option<f64>,
    /// Transactions in the rest of the measured window, and its length in seconds.
    pub outside: (f64, f64),
    /// Stacks by role.
    pub stacks: Vec<Stacks>,
}

impl TrialProfile {
    /// The profile of a trial's record; `None` if it has none.
    pub fn from_record(record: &TrialRecord, kind: Kind) -> Option<Self> {
        let taken = record.trial.profile.as_ref()?;
        let running = (taken.from_us, taken.to_us);
        let waiting = taken.off_cpu.as_ref().map(|off_cpu| (off_cpu.from_us, off_cpu.to_us));
        let ((from_us, to_us), stacks) = match kind {
            Kind::OnCpu => (running, &record.stacks),
            Kind::OffCpu => (waiting?, &record.off_cpu),
        };
        let counted = taken.instructions_per_sample.map(|instructions| {
            let path_length = record.trial.summary.as_ref()?.instructions_per_transaction?;
            (taken.samples > 0).then(|| (taken.samples * instructions) as f64 / path_length)
        });
        let recorded = match kind {
            Kind::OnCpu => [Some(running), waiting],
            Kind::OffCpu => [None, waiting],
        };
        Some(Self {
            kind,
            cell: record.trial.cell.to_string(),
            id: record.trial.id.clone(),
            transactions: counted.unwrap_or_else(|| ended_between(&record.intervals, from_us, to_us)),
            outside: match counted {
                // It precedes the window, so that its cost is in none of the trial's figures.
                Some(_) => (0.0, 0.0),
                None => outside(&record.intervals, recorded.into_iter().flatten()),
            },
            taken: taken.clone(),
            stacks: stacks.clone(),
        })
    }
}

/// Transactions and seconds of the measured window, without these spans.
fn outside(intervals: &[Interval], recorded: impl Iterator<Item = (i64, i64)>) -> (f64, f64) {
    let measured = || intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let ends_us = measured().map(|interval| interval.start_us + interval.width_us);
    let (Some(from), Some(to_us)) = (measured().next(), ends_us.max()) else { return (0.0, 0.0) };
    let (from_us, to_us) = (from.start_us as i64, to_us as i64);
    let mut rest =
        (ended_between(intervals, from_us, to_us).unwrap_or_default(), (to_us - from_us) as f64 / 1e6);
    for (start_us, end_us) in recorded {
        let (start_us, end_us) = (start_us.max(from_us), end_us.min(to_us));
        rest.0 -= ended_between(intervals, start_us, end_us).unwrap_or_default();
        rest.1 -= (end_us - start_us).max(0) as f64 / 1e6;
    }
    rest
}

/// Transactions that ended in a span of the load; intervals that are partly in it count in proportion.
fn ended_between(intervals: &[Interval], from_us: i64, to_us: i64) -> Option<f64> {
    let within = |interval: &Interval| {
        let (start_us, width_us) = (interval.start_us as i64, interval.width_us as i64);
        let common_us = (start_us + width_us).min(to_us) - start_us.max(from_us);
        let transactions: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        (common_us > 0).then(|| transactions as f64 * common_us as f64 / width_us as f64)
    };
    let sum: f64 = intervals.iter().filter_map(within).sum();
    (sum > 0.0).then_some(sum)
}

impl Profile {
    /// Adds up profiles of trials of one cell, of one kind and one sampling rate; `None` without trials.
    pub fn merge(parts: &[TrialProfile]) -> Option<Self> {
        let first = parts.first()?;
        let by_trial: Vec<(Option<f64>, Vec<Stacks>)> = parts
            .iter()
            .map(|part| (part.transactions, part.stacks.iter().map(normalize_names).collect()))
            .collect();
        let mut by_role: BTreeMap<&str, Stacks> = BTreeMap::new();
        for stacks in by_trial.iter().flat_map(|(_, stacks)| stacks) {
            let sum = by_role
                .entry(stacks.role.as_str())
                .or_insert_with(|| Stacks { role: stacks.role.clone(), ..Stacks::default() });
            for (stack, samples) in &stacks.samples {
                *sum.samples.entry(stack.clone()).or_default() += samples;
            }
        }
        let mut stacks: Vec<Stacks> = by_role.into_values().collect();
        stacks.sort_by(|a, b| (b.total(), &a.role).cmp(&(a.total(), &b.role)));
        Some(Self {
            kind: first.kind,
            cell: first.cell.clone(),
            trials: parts.iter().map(|part| part.id.clone()).collect(),
            taken: parts.iter().map(|part| part.taken.clone()).collect(),
            transactions: parts.iter().map(|part| part.transactions).sum(),
            tps_outside: {
                let (transactions, seconds) = parts
                    .iter()
                    .fold((0.0, 0.0), |sum, part| (sum.0 + part.outside.0, sum.1 + part.outside.1));
                (seconds >= MIN_REST_S * parts.len() as f64).then(|| transactions / seconds)
            },
            us_per_sample: match first.kind {
                Kind::OnCpu => first.taken.us_per_sample(),
                Kind::OffCpu => 1.0,
            },
            stacks,
            by_trial,
        })
    }

    /// Whether CPU time is counted instructions, a thousand in a microsecond.
    pub fn is_counted(&self) -> bool {
        self.kind == Kind::OnCpu && self.taken.iter().any(|taken| taken.instructions_per_sample.is_some())
    }

    /// Samples of all roles.
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(Stacks::total).sum()
    }

    /// CPU time per transaction of this many samples, in microseconds; `None` without transactions.
    pub fn us_per_transaction(&self, samples: u64) -> Option<f64> {
        Some(samples as f64 * self.us_per_sample / self.transactions?)
    }

    /// Returns the samples of a role.
    ///
    /// # Errors
    /// There are none.
    pub fn role(&self, role: &str) -> Result<&Stacks, ProfileError> {
        let known = || self.stacks.iter().map(|stacks| stacks.role.as_str()).collect::<Vec<_>>().join(", ");
        self.stacks
            .iter()
            .find(|stacks| stacks.role == role)
            .ok_or_else(|| ProfileError::Role { wanted: role.to_owned(), known: known() })
    }

    /// Keeps only the samples of a role.
    ///
    /// # Errors
    /// There are none.
    pub fn only(mut self, role: &str) -> Result<Self, ProfileError> {
        self.role(role)?;
        self.stacks.retain(|stacks| stacks.role == role);
        Ok(self)
    }

    /// The default role: that of the load's backends, else the one with most samples.
    pub fn default_role(&self) -> Option<&Stacks> {
        self.stacks.iter().find(|stacks| stacks.role == DEFAULT_ROLE).or(self.stacks.first())
    }

    /// All stacks as text; if there are several roles, the role is the outermost function of each.
    pub fn folded(&self) -> String {
        self.each(self.stacks.len() > 1).map(|(stack, samples)| format!("{stack} {samples}\n")).collect()
    }

    /// Each stack with its samples; with roles, the role is the outermost function.
    pub fn each(&self, with_roles: bool) -> impl Iterator<Item = (String, u64)> {
        self.stacks.iter().flat_map(move |stacks| {
            stacks.samples.iter().map(move |(stack, &samples)| match with_roles {
                true => (format!("{};{stack}", stacks.role), samples),
                false => (stack.clone(), samples),
            })
        })
    }

    /// Limitations of the profile, each once.
    pub fn limitations(&self) -> Vec<String> {
        let mut limitations: Vec<String> = Vec::new();
        // They are about on-CPU samples.
        if self.kind == Kind::OffCpu {
            return limitations;
        }
        for limitation in self.taken.iter().flat_map(diagnose::profile::limitations) {
            if !limitations.contains(&limitation) {
                limitations.push(limitation);
            }
        }
        limitations
    }
}
