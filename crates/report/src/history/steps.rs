//! What a history goes over: the steps that trials belong to, and their order.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::factor::Factor;
use model::record::Trial;
use model::server::{Build, Source};

use crate::analyse::plan;

/// What a history goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The server's own version.
    Version,
    /// The git ref that the server was built from, as its campaign has it.
    Commit,
    /// The kernel: the factor's level, else the machine's.
    Kernel,
    /// Time: a step is a run, of imported trials a day.
    Date,
}

impl Over {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Commit => "commit",
            Self::Kernel => "kernel",
            Self::Date => "date",
        }
    }

    /// The factor that says it, which is no part of the cells then.
    pub(super) const fn factor(self) -> Option<Factor> {
        match self {
            Self::Version | Self::Commit => Some(Factor::Server),
            Self::Kernel => Some(Factor::Kernel),
            Self::Date => None,
        }
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One place of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What tells it from others: the version, ref or kernel, of a date the run's id or the day.
    pub key: String,
    /// How it is shown: of a run its date, with the time where that date has several; else the key.
    pub label: String,
    /// When its first trial began; none where that is not known of imported ones.
    pub began: Option<Timestamp>,
}

/// Why steps have the order that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their version numbers.
    Version,
    /// By the history of the git repository.
    Git,
    /// By date.
    Time,
    /// By when they were first measured, or were written down.
    FirstSeen,
}

impl Order {
    /// For people.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Version => "in the order of versions",
            Self::Git => "in the order of git's history",
            Self::Time => "in the order of time",
            Self::FirstSeen => "as they were first measured",
        }
    }

    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Git => "git",
            Self::Time => "time",
            Self::FirstSeen => "first-seen",
        }
    }
}

/// The refs of a git repository, in the order of its history; none where one of them, or the repository, is not there.
pub type GitOrder<'a> = &'a dyn Fn(&Path, &[String]) -> Option<Vec<String>>;

/// What tells the key of each trial's step.
pub(super) struct Keys {
    over: Over,
    /// Builds by run and server.
    builds: HashMap<(String, String), Build>,
    /// Versions by run and server, for trials whose server never answered.
    versions: HashMap<(String, String), String>,
}

impl Keys {
    pub(super) fn of(over: Over, trials: &[&Trial]) -> Self {
        let mut builds = HashMap::new();
        if over == Over::Commit {
            for trials in trials.chunk_by(|a, b| a.run.id == b.run.id) {
                let servers = plan(trials).map(|plan| plan.servers).unwrap_or_default();
                builds.extend(servers.into_iter().filter_map(|server| match server.source {
                    Source::Build(build) => Some(((trials[0].run.id.clone(), server.name), build)),
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

    /// The step that a trial belongs to; none where that is not known. `machine` is the kernel that the trial ran under.
    pub(super) fn key(&self, trial: &Trial, machine: Option<&str>) -> Option<String> {
        match self.over {
            Over::Version => {
                let known = trial.server_version.as_ref().or_else(|| self.versions.get(&Self::server(trial)));
                known.cloned().or_else(|| Factor::Server.known_level(&trial.cell))
            }
            Over::Commit => self.build(trial)?.git_ref.clone(),
            Over::Kernel => trial.cell.kernel.clone().or_else(|| machine.map(str::to_owned)),
            Over::Date if trial.imported.is_some() => day(trial),
            Over::Date => Some(trial.run.id.clone()),
        }
    }

    /// The repository that all these trials' servers were built from; none where there are several.
    fn repository(&self, trials: &[(&Trial, String)]) -> Option<PathBuf> {
        let mut all = trials.iter().filter_map(|(trial, _)| Some(&self.build(trial)?.location));
        let first = all.next()?;
        all.all(|other| other == first).then(|| first.clone())
    }

    /// The steps of these trials with their keys, in order. The trials are oldest first.
    pub(super) fn steps(&self, trials: &[(&Trial, String)], git: GitOrder<'_>) -> (Vec<Step>, Order) {
        let mut steps: Vec<Step> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (trial, key) in trials {
            let place = *places.entry(key).or_insert_with(|| {
                steps.push(Step { key: key.clone(), label: key.clone(), began: trial.started });
                steps.len() - 1
            });
            steps[place].began = [steps[place].began, trial.started].into_iter().flatten().min();
        }
        match self.over {
            Over::Version | Over::Kernel => {
                let versions: Option<Vec<Version>> =
                    steps.iter().map(|step| Version::of(&step.key)).collect();
                if versions.is_none() {
                    return (steps, Order::FirstSeen);
                }
                steps.sort_by_cached_key(|step| Version::of(&step.key));
                (steps, Order::Version)
            }
            Over::Commit => {
                let refs: Vec<String> = steps.iter().map(|step| step.key.clone()).collect();
                let ordered = self.repository(trials).and_then(|repository| git(&repository, &refs));
                match ordered.filter(|ordered| refs.iter().all(|one| ordered.contains(one))) {
                    Some(ordered) => {
                        steps.sort_by_cached_key(|step| ordered.iter().position(|one| *one == step.key));
                        (steps, Order::Git)
                    }
                    None => {
                        steps.sort_by_key(|step| step.began);
                        (steps, Order::FirstSeen)
                    }
                }
            }
            Over::Date => {
                steps.sort_by(|a, b| (a.began, &a.key).cmp(&(b.began, &b.key)));
                let all: Vec<Timestamp> = steps.iter().filter_map(|step| step.began).collect();
                for step in &mut steps {
                    step.label = step.began.map_or(step.key.clone(), |began| date(began, &all));
                }
                (steps, Order::Time)
            }
        }
    }
}

/// The day on which a trial began, UTC; none where that is not known.
fn day(trial: &Trial) -> Option<String> {
    Some(trial.started?.strftime("%Y-%m-%d").to_string())
}

/// What trials were measured in together: their run; an import may be of many years, and then it is the day.
pub(super) fn session(trial: &Trial) -> (String, Option<String>) {
    (trial.run.id.clone(), trial.imported.as_ref().and_then(|_| day(trial)))
}

/// The shortest form that no other moment has: a day, a minute, or all of it; UTC.
fn date(at: Timestamp, all: &[Timestamp]) -> String {
    let forms = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
    let alone = |form: &&str| {
        let said = at.strftime(form).to_string();
        all.iter().filter(|other| other.strftime(form).to_string() == said).count() == 1
    };
    let form = forms.iter().copied().find(|form| alone(form)).unwrap_or("%Y-%m-%dT%H:%M:%S%.f");
    at.strftime(form).to_string()
}

/// A version of PostgreSQL or of a kernel, in the order in which they are released: `9.6.24` before `18beta1` before
/// `18rc1` before `18.0`, `4.6-rc3` before `4.6.0` before `4.6.0-37-amd64`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    numbers: Vec<u64>,
    stage: Stage,
    /// What follows, such as a distribution's own number.
    rest: Vec<Part>,
}

/// How far a release has come.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Devel,
    Alpha(u64),
    Beta(u64),
    ReleaseCandidate(u64),
    Released,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Version {
    fn of(text: &str) -> Option<Self> {
        let text = text.strip_prefix("Linux ").unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let mut numbers: Vec<u64> = numbers
            .trim_end_matches('.')
            .split('.')
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let word = rest.trim_start_matches('-');
        let numbered = |name: &str| {
            let (number, rest) = split_number(word.strip_prefix(name)?);
            Some((number?, rest))
        };
        let (stage, rest) = None
            .or_else(|| Some((Stage::Devel, word.strip_prefix("devel")?)))
            .or_else(|| numbered("alpha").map(|(number, rest)| (Stage::Alpha(number), rest)))
            .or_else(|| numbered("beta").map(|(number, rest)| (Stage::Beta(number), rest)))
            .or_else(|| numbered("rc").map(|(number, rest)| (Stage::ReleaseCandidate(number), rest)))
            .unwrap_or((Stage::Released, rest));
        Some(Self { numbers, stage, rest: parts(rest) })
    }
}

fn split_number(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().ok(), &text[end..])
}

fn parts(mut text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit();
        let end = match text.starts_with(is_digit) {
            true => text.find(|c| !is_digit(c)),
            false => text.find(is_digit),
        };
        let (part, rest) = text.split_at(end.unwrap_or(text.len()));
        parts.push(part.parse().map_or_else(|_| Part::Text(part.to_owned()), Part::Number));
        text = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_their_release() {
        for ordered in [
            &[
                "9.6.24", "10.2", "10.10", "18devel", "18alpha1", "18beta2", "18beta10", "18rc1", "18.0",
                "18.1",
            ][..],
            &[
                "2.6.39",
                "3.0.101",
                "3.2.79",
                "3.10.101",
                "3.10.101-stats",
                "4.4.7",
                "4.5.4",
                "4.6-rc3",
                "4.6.0",
            ],
            &[
                "Linux 6.1.0-9-amd64",
                "Linux 6.1.0-37-amd64",
                "6.12.1-200.fc41.x86_64",
                "6.12.1-1000.fc41.x86_64",
            ],
        ] {
            let versions: Vec<Option<Version>> = ordered.iter().map(|text| Version::of(text)).collect();
            assert!(versions.iter().all(Option::is_some), "{ordered:?}");
            assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
        }
        for text in ["", "patched", "v18", "99999999999999999999"] {
            assert_eq!(Version::of(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_is_as_long_as_it_must_be() {
        let all: Vec<Timestamp> = ["2026-11-20T08:00:00Z", "2026-11-21T09:30:12Z", "2026-11-21T09:31:00Z"]
            .map(|text| text.parse().unwrap())
            .into();
        let said: Vec<String> = all.iter().map(|at| date(*at, &all)).collect();
        assert_eq!(said, ["2026-11-20", "2026-11-21T09:30", "2026-11-21T09:31"]);
    }
}
