//! Steps of a history: the axis, the steps of trials, and their order.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;

use jiff::Timestamp;
use model::factor::Factor;
use model::record::Trial;
use model::server::{Build, Source};

use super::git::order_refs;
use crate::layout::plan;
use crate::version::Version;

/// Axis of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryAxis {
    /// The server's version, as reported by the server.
    Version,
    /// The git ref that the server was built from, as written in its campaign.
    Commit,
    /// The machine's kernel, else the factor's level.
    Kernel,
    /// Time: a step is a run, or a day for imported trials.
    Date,
}

impl HistoryAxis {
    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Commit => "commit",
            Self::Kernel => "kernel",
            Self::Date => "date",
        }
    }

    /// The factor that corresponds to the axis, and is then not part of the cells.
    pub(super) const fn factor(self) -> Option<Factor> {
        match self {
            Self::Version | Self::Commit => Some(Factor::Server),
            Self::Kernel => Some(Factor::Kernel),
            Self::Date => None,
        }
    }
}

impl fmt::Display for HistoryAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A step of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Identifies the step: the version, ref or kernel; for dates the run's id, or the day.
    pub key: String,
    /// Display form: for a run its date, with the time if the date has several; for a kernel the version by which
    /// campaigns request it, if that is only this kernel; else the key.
    pub label: String,
    /// When its first trial began; `None` if unknown for imported ones.
    pub began: Option<Timestamp>,
}

/// The criterion by which steps are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By version number.
    Version,
    /// By the history of the git repository.
    Git,
    /// By date.
    Time,
    /// By first measurement, or by position in an import.
    FirstSeen,
}

impl Order {
    /// Display text.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Version => "in the order of versions",
            Self::Git => "in the order of git's history",
            Self::Time => "in the order of time",
            Self::FirstSeen => "as they were first measured",
        }
    }

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Git => "git",
            Self::Time => "time",
            Self::FirstSeen => "first-seen",
        }
    }
}

/// Determines the key of each trial's step.
pub(super) struct Keys {
    over: HistoryAxis,
    /// Builds by run and server.
    builds: HashMap<(String, String), Build>,
    /// Versions by run and server, for trials whose server never answered.
    versions: HashMap<(String, String), String>,
}

impl Keys {
    pub(super) fn new(over: HistoryAxis, trials: &[&Trial]) -> Self {
        let mut builds = HashMap::new();
        if over == HistoryAxis::Commit {
            for trials in trials.chunk_by(|a, b| a.run.id == b.run.id) {
                let servers = plan(trials).map(|plan| plan.servers).unwrap_or_default();
                builds.extend(servers.into_iter().filter_map(|server| match server.source {
                    // A patched build is no commit.
                    Source::Build(build) if build.patches.is_empty() => {
                        Some(((trials[0].run.id.clone(), server.name), build))
                    }
                    _ => None,
                }));
            }
        }
        let versions =
            trials.iter().filter_map(|trial| Some((Self::server(trial), trial.server_version.clone()?)));
        Self { over, builds, versions: versions.collect() }
    }

    fn server(trial: &Trial) -> (String, String) {
        (trial.run.id.clone(), Factor::Server.level(&trial.cell))
    }

    fn build(&self, trial: &Trial) -> Option<&Build> {
        self.builds.get(&Self::server(trial))
    }

    /// The step of a trial; `None` if unknown. `machine` is the kernel that the trial ran under.
    pub(super) fn key(&self, trial: &Trial, machine: Option<&str>) -> Option<String> {
        match self.over {
            HistoryAxis::Version => {
                let known = trial.server_version.as_ref().or_else(|| self.versions.get(&Self::server(trial)));
                known.cloned().or_else(|| Factor::Server.known_level(&trial.cell))
            }
            HistoryAxis::Commit => self.build(trial)?.git_ref.clone(),
            HistoryAxis::Kernel => {
                machine.map(str::to_owned).or_else(|| trial.cell.kernel.known().cloned().flatten())
            }
            HistoryAxis::Date if trial.imported.is_some() => day(trial),
            HistoryAxis::Date => Some(trial.run.id.clone()),
        }
    }

    /// The steps of these trials with their keys, in order. The trials must be oldest first.
    ///
    /// # Errors
    /// The refs, if the given repository does not have all of them.
    pub(super) fn steps(
        &self,
        trials: &[(&Trial, String)],
        repository: Option<&Path>,
    ) -> Result<(Vec<Step>, Order), Vec<String>> {
        let mut steps: Vec<Step> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (trial, key) in trials {
            let place = *places.entry(key).or_insert_with(|| {
                steps.push(Step { key: key.clone(), label: key.clone(), began: trial.started });
                steps.len() - 1
            });
            steps[place].began = [steps[place].began, trial.started].into_iter().flatten().min();
        }
        let order = match self.over {
            HistoryAxis::Version | HistoryAxis::Kernel => {
                let versions: Option<Vec<Version>> =
                    steps.iter().map(|step| Version::parse(&step.key)).collect();
                if versions.is_none() {
                    return Ok((steps, Order::FirstSeen));
                }
                steps.sort_by_cached_key(|step| Version::parse(&step.key));
                if self.over == HistoryAxis::Kernel {
                    label_kernels(&mut steps, trials);
                }
                Order::Version
            }
            HistoryAxis::Commit => {
                steps.sort_by_key(|step| step.began);
                let refs: Vec<String> = steps.iter().map(|step| step.key.clone()).collect();
                let positions: Option<HashMap<String, u64>> = match repository {
                    Some(repository) => {
                        let ordered = order_refs(repository, &refs).ok_or(refs)?;
                        Some(ordered.into_iter().zip(0..).collect())
                    }
                    None => self
                        .recorded_positions(trials)
                        .filter(|known| refs.iter().all(|name| known.contains_key(name))),
                };
                match positions {
                    Some(positions) => {
                        steps.sort_by_key(|step| positions.get(&step.key).copied());
                        Order::Git
                    }
                    None => Order::FirstSeen,
                }
            }
            HistoryAxis::Date => {
                steps.sort_by(|a, b| (a.began, &a.key).cmp(&(b.began, &b.key)));
                let dates = dates(steps.iter().map(|step| step.began));
                for (step, date) in steps.iter_mut().zip(dates) {
                    step.label = date.unwrap_or_else(|| step.key.clone());
                }
                Order::Time
            }
        };
        Ok((steps, order))
    }

    /// Positions of commits in their repository's history, as recorded by their trials; for a ref that moved, the last
    /// one. `None` if the servers are from several repositories.
    fn recorded_positions(&self, trials: &[(&Trial, String)]) -> Option<HashMap<String, u64>> {
        let mut locations = trials.iter().filter_map(|(trial, _)| Some(&self.build(trial)?.location));
        let first = locations.next()?;
        let recorded =
            |(trial, key): &(&Trial, String)| Some((key.clone(), trial.server_commit.as_ref()?.position));
        locations.all(|location| location == first).then(|| trials.iter().filter_map(recorded).collect())
    }
}

/// Labels kernels with the versions by which campaigns request them, such as `6.12` for `Linux 6.12.48+deb13-amd64`, if
/// the version is only this kernel and the kernel only this version.
fn label_kernels(steps: &mut [Step], trials: &[(&Trial, String)]) {
    let mut requested: BTreeSet<(&str, Option<&str>)> = BTreeSet::new();
    requested.extend(
        trials
            .iter()
            .map(|(trial, key)| (key.as_str(), trial.cell.kernel.known().and_then(Option::as_deref))),
    );
    let is_version = |label: &str| label.starts_with(|c: char| c.is_ascii_digit()) && !label.contains('*');
    for step in steps {
        let mut of_step = requested.iter().filter(|(key, _)| *key == step.key);
        let (Some((_, Some(label))), None) = (of_step.next(), of_step.next()) else { continue };
        let kernels = requested.iter().filter(|(_, other)| *other == Some(label)).count();
        if kernels == 1 && is_version(label) {
            step.label = (*label).to_owned();
        }
    }
}

/// The day on which a trial began, UTC; `None` if unknown.
fn day(trial: &Trial) -> Option<String> {
    Some(trial.started?.strftime("%Y-%m-%d").to_string())
}

/// The session in which trials were measured: their run; for an import, which may span years, the day.
pub(super) fn session(trial: &Trial) -> (String, Option<String>) {
    (trial.run.id.clone(), trial.imported.as_ref().and_then(|_| day(trial)))
}

/// The shortest unique form of each time: day, minute, or all of it; UTC. `None` for an unknown time.
fn dates(times: impl Iterator<Item = Option<Timestamp>> + Clone) -> Vec<Option<String>> {
    let forms = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
    let counts = forms.map(|form| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for at in times.clone().flatten() {
            *counts.entry(at.strftime(form).to_string()).or_default() += 1;
        }
        counts
    });
    let date = |at: Timestamp| {
        let mut labels =
            forms.iter().zip(&counts).map(|(form, counts)| (at.strftime(form).to_string(), counts));
        let unique = labels.find(|(label, counts)| counts.get(label) == Some(&1));
        unique.map(|(label, _)| label).unwrap_or_else(|| at.strftime("%Y-%m-%dT%H:%M:%S%.f").to_string())
    };
    times.map(|at| at.map(date)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_as_long_as_it_must_be() {
        let times = ["2026-11-20T08:00:00Z", "2026-11-21T09:30:12Z", "2026-11-21T09:31:00Z"];
        let times = times.map(|text| Some(text.parse().unwrap()));
        let labels = ["2026-11-20", "2026-11-21T09:30", "2026-11-21T09:31"].map(|date| Some(date.to_owned()));
        assert_eq!(dates(times.into_iter().chain([None])), [&labels[..], &[None]].concat());
    }
}
