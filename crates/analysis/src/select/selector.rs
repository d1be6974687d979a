//! Selectors of trials: one grammar for every command that takes trials or cells.
//!
//! A selector is a list of terms separated by commas, each of which narrows it: `FACTOR=LEVEL` to the trials of that
//! level, and of several hosts to those of any of them; `run:ID`, `campaign:NAME` (its latest run), `tag:NAME` and `latest` (the latest run) to an origin. Any other
//! term is a trial's id, or a prefix of it; several ids select all of these trials.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::str::FromStr;

use model::factor::Factor;
use model::record::Trial;
use store::{StoreError, StoreReader};

use super::runs::{ReadError, RunSelection, select_run};

/// Trials of a store, as named on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    text: String,
    from: Option<Origin>,
    levels: BTreeMap<Factor, BTreeSet<String>>,
    ids: BTreeSet<String>,
}

/// Origin of trials.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// One run.
    Run(RunSelection),
    /// All trials with this tag.
    Tag(String),
}

/// The text is not a selector. Holds the message of the usage error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// Error of selecting trials.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// There is no such run.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store can't be read, or has no such trial.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No trial has the tag.
    #[error("no trial is tagged \"{wanted}\"; {known}")]
    NoTag {
        /// The requested tag.
        wanted: String,
        /// The existing tags.
        known: String,
    },
    /// No trial has the levels.
    #[error("no trial of {place} has {levels}; {known}")]
    NoTrial {
        /// The origin that was searched.
        place: String,
        /// The requested levels.
        levels: String,
        /// The existing levels.
        known: String,
    },
}

impl Selector {
    /// All trials of a campaign's latest run, or of all its runs.
    pub(crate) fn from_campaign(name: &str) -> Self {
        let from = Some(Origin::Run(RunSelection::Campaign(name.to_owned())));
        Self { text: format!("campaign:{name}"), from, ..Self::default() }
    }

    /// All trials of a run.
    pub(crate) fn from_run(id: &str) -> Self {
        let from = Some(Origin::Run(RunSelection::Run(id.to_owned())));
        Self { text: format!("run:{id}"), from, ..Self::default() }
    }

    /// The named levels.
    pub fn levels(&self) -> &BTreeMap<Factor, BTreeSet<String>> {
        &self.levels
    }

    /// Whether it names trials by id.
    pub fn is_by_id(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Whether it selects the same trials, regardless of the order of terms.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.from, &self.levels, &self.ids) == (&other.from, &other.levels, &other.ids)
    }

    /// Selects trials of the store, oldest first; of the run `default` if it does not name an origin. Returns at least
    /// one; invalid trials are included.
    ///
    /// # Errors
    /// There are none.
    pub fn trials<'a>(
        &self,
        reader: &'a StoreReader,
        default: &RunSelection,
    ) -> Result<Vec<&'a Trial>, SelectError> {
        if self.is_by_id() {
            return self.by_id(reader);
        }
        let all = reader.trials();
        let (known, place) = match &self.from {
            Some(Origin::Tag(tag)) => (tagged(all, tag)?, format!("those tagged \"{tag}\"")),
            Some(Origin::Run(run)) => of_run(all, run)?,
            None => of_run(all, default)?,
        };
        self.narrowed(known, place)
    }

    /// As [`Selector::trials`], for histories: from the whole store if it does not name an origin, and from all runs of
    /// a campaign.
    ///
    /// # Errors
    /// There are none.
    pub fn trials_of_all_runs<'a>(&self, reader: &'a StoreReader) -> Result<Vec<&'a Trial>, SelectError> {
        let all = reader.trials();
        let (known, place): (Vec<&Trial>, String) = match &self.from {
            None if self.is_by_id() => return self.by_id(reader),
            None if all.is_empty() => return Err(ReadError::Empty.into()),
            None => (all.iter().collect(), "the store".to_owned()),
            Some(Origin::Run(run @ RunSelection::Campaign(name))) => {
                select_run(all.iter().map(|trial| &trial.run), run)?;
                let of_campaign = all.iter().filter(|trial| trial.run.campaign == *name);
                (of_campaign.collect(), format!("campaign \"{name}\""))
            }
            Some(_) => return self.trials(reader, &RunSelection::Latest),
        };
        self.narrowed(known, place)
    }

    fn narrowed<'a>(&self, known: Vec<&'a Trial>, place: String) -> Result<Vec<&'a Trial>, SelectError> {
        let trials: Vec<&Trial> = known.iter().copied().filter(|trial| self.has_levels_of(trial)).collect();
        match trials.is_empty() {
            false => Ok(trials),
            true => {
                Err(SelectError::NoTrial { place, levels: self.named_levels(), known: self.known(&known) })
            }
        }
    }

    /// Whether a trial has all named levels.
    pub(crate) fn has_levels_of(&self, trial: &Trial) -> bool {
        self.levels.iter().all(|(factor, levels)| levels.contains(&factor.level(&trial.cell)))
    }

    /// Whether it names only levels.
    pub(crate) fn has_only_levels(&self) -> bool {
        self.from.is_none() && !self.is_by_id() && !self.levels.is_empty()
    }

    fn by_id<'a>(&self, reader: &'a StoreReader) -> Result<Vec<&'a Trial>, SelectError> {
        let mut found: Vec<&Trial> = Vec::new();
        let mut unreadable = None;
        for prefix in &self.ids {
            match reader.find(prefix) {
                Ok(trial) => found.push(trial),
                Err(error @ StoreError::Unreadable(_)) => unreadable = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(error) = unreadable.filter(|_| found.is_empty()) {
            return Err(error.into());
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup_by(|a, b| a.id == b.id);
        Ok(found)
    }

    /// The named levels as text.
    fn named_levels(&self) -> String {
        let of_factor = |(factor, levels): (&Factor, &BTreeSet<String>)| {
            levels.iter().map(|level| format!("{}={level}", factor.name())).collect::<Vec<_>>()
        };
        self.levels.iter().flat_map(of_factor).collect::<Vec<_>>().join(",")
    }

    /// The existing levels of the named factors; if each named level exists but not in combination, those of the
    /// factors that vary.
    fn known(&self, trials: &[&Trial]) -> String {
        let cells: Vec<_> = trials.iter().map(|trial| &trial.cell).collect();
        let missing: Vec<Factor> = self
            .levels
            .iter()
            .filter(|(factor, levels)| {
                factor.levels(cells.iter().copied()).iter().all(|level| !levels.contains(level))
            })
            .map(|(factor, _)| *factor)
            .collect();
        match missing.is_empty() {
            true => format!("these levels exist, but not in combination. There are{}", varied(trials)),
            false => format!("there are{}", levels_of(trials, &missing)),
        }
    }
}

/// The factors in which trials differ, with their levels, one per line.
pub(crate) fn varied(trials: &[&Trial]) -> String {
    levels_of(trials, &Factor::varied(trials.iter().map(|trial| &trial.cell)))
}

fn levels_of(trials: &[&Trial], factors: &[Factor]) -> String {
    factors.iter().fold(String::new(), |mut out, factor| {
        // Trials are in the order of their run, which is random.
        let mut levels = factor.levels(trials.iter().map(|trial| &trial.cell));
        levels.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        let _ = write!(out, "\n  {}: {}", factor.name(), levels.join(", "));
        out
    })
}

fn of_run<'a>(all: &'a [Trial], run: &RunSelection) -> Result<(Vec<&'a Trial>, String), ReadError> {
    let id = select_run(all.iter().map(|trial| &trial.run), run)?;
    let trials: Vec<&Trial> = all.iter().filter(|trial| trial.run.id == id).collect();
    let campaign = trials.first().map(|trial| trial.run.campaign.as_str()).unwrap_or_default();
    let place = format!("run {id} of campaign \"{campaign}\"");
    Ok((trials, place))
}

fn tagged<'a>(all: &'a [Trial], tag: &str) -> Result<Vec<&'a Trial>, SelectError> {
    let found: Vec<&Trial> = all.iter().filter(|trial| tags(trial).any(|one| one == tag)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known: BTreeSet<&str> = all.iter().flat_map(tags).collect();
    let known = match known.is_empty() {
        true => "no trial has a tag: a campaign sets them by `tags = [\"…\"]`".to_owned(),
        false => format!("there are {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Err(SelectError::NoTag { wanted: tag.to_owned(), known })
}

/// Tags of a trial: those of its run.
fn tags(trial: &Trial) -> impl Iterator<Item = &str> {
    trial.run.tags.iter().map(String::as_str)
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut selector = Self { text: text.trim().to_owned(), ..Self::default() };
        for term in text.split(',').map(str::trim) {
            selector.add(term)?;
        }
        if selector.is_by_id() && (selector.from.is_some() || !selector.levels.is_empty()) {
            return Err(SelectorError(format!(
                "\"{text}\" combines trial ids with other terms: specify ids only"
            )));
        }
        Ok(selector)
    }
}

impl Selector {
    fn add(&mut self, term: &str) -> Result<(), SelectorError> {
        if let Some((name, level)) = term.split_once('=') {
            return self.add_level(name.trim(), level.trim());
        }
        let from = match term.split_once(':') {
            None if term == "latest" => Origin::Run(RunSelection::Latest),
            None if !term.is_empty() && term.chars().all(|c| c.is_ascii_alphanumeric()) => {
                self.ids.insert(term.to_ascii_uppercase());
                return Ok(());
            }
            Some(("run", id)) if !id.is_empty() => Origin::Run(RunSelection::Run(id.to_owned())),
            Some(("campaign", name)) if !name.is_empty() => {
                Origin::Run(RunSelection::Campaign(name.to_owned()))
            }
            Some(("tag", name)) if !name.is_empty() => Origin::Tag(name.to_owned()),
            _ => {
                return Err(SelectorError(format!(
                    "\"{term}\" is none of FACTOR=LEVEL (such as clients=8), run:ID, campaign:NAME, tag:NAME, \
                     latest, or a trial's id"
                )));
            }
        };
        match self.from.replace(from) {
            None => Ok(()),
            Some(_) => Err(SelectorError(format!(
                "\"{}\" has two origins of trials: specify one run, campaign or tag",
                self.text
            ))),
        }
    }

    fn add_level(&mut self, name: &str, level: &str) -> Result<(), SelectorError> {
        let factor = name.parse::<Factor>().map_err(|error| {
            let known: Vec<&str> = Factor::ALL.iter().map(|factor| factor.name()).collect();
            SelectorError(format!("{error}; there are {}", known.join(", ")))
        })?;
        let levels = self.levels.entry(factor).or_default();
        match levels.first().filter(|_| factor != Factor::Host) {
            None => {
                levels.insert(level.to_owned());
                Ok(())
            }
            Some(other) => Err(SelectorError(format!(
                "{name} can't be {other} and {level}: a selector names one level of a factor, or several hosts"
            ))),
        }
    }
}

/// The selector as written.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Selector, String> {
        text.parse().map_err(|error: SelectorError| error.to_string())
    }

    #[test]
    fn the_order_of_terms_does_not_matter() {
        let one = parsed("server=17, clients=8,run:01K").unwrap();
        assert!(one.is_same(&parsed("run:01K,clients=8,server=17").unwrap()));
        assert!(!one.is_same(&parsed("run:01K,clients=8").unwrap()));
        assert!(parsed("01ka,01KB").unwrap().is_same(&parsed("01kb,01ka,01ka").unwrap()));
        assert_eq!(one.to_string(), "server=17, clients=8,run:01K");
    }

    #[test]
    fn ambiguous_requests_are_reported() {
        let error = |text: &str| parsed(text).unwrap_err();
        assert!(error("client=8").starts_with("there is no factor \"client\"; there are server, settings"));
        assert!(error("clients=8,clients=9").contains("can't be 8 and 9"));
        assert!(error("run:1,tag:x").contains("two origins"));
        assert!(error("01KA,clients=8").contains("ids only"));
        for text in ["", "run:", "what:x", "clients=8,", "a b"] {
            assert!(error(text).contains("is none of FACTOR=LEVEL"), "{text}");
        }
    }
}
