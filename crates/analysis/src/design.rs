//! The design of the campaigns that measured two cells: which runs are pairs, and whether results decided their number.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::plan::Order;
use model::record::{Run, Trial};
use model::spec::{self, Repeats};
use model::units::Span;
use stats::{Comparison, Logs, MARGIN, SessionSpread};

/// Figures of one side's trials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures<'a> {
    /// The figures.
    pub(crate) values: &'a [f64],
    /// Their sessions with the number of their repeat, in the same order.
    pub(crate) blocks: &'a [(SessionKey, u32)],
}

/// What runs share: that of one campaign on one machine. Machines of a fleet are sessions of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    /// The run's id.
    pub run: String,
    /// Name of the agent; none without a fleet.
    pub agent: Option<String>,
}

impl SessionKey {
    /// That of a trial.
    pub(crate) fn new(trial: &Trial) -> Self {
        Self { run: trial.run.id.clone(), agent: trial.agent.clone() }
    }
}

/// What a comparison of two cells takes from the design of their campaigns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Design {
    /// Figures of runs in the same block of the same run, baseline and variant.
    pub(crate) pairs: Vec<(f64, f64)>,
    /// Whether the number of runs of a side depends on their results.
    pub(crate) is_sequential: bool,
    /// The sessions of both sides, if they have none in common.
    pub(crate) sessions: Option<Sessions>,
}

/// The sessions of two sides that have none in common. A session is a run of a campaign on one machine: its trials share the
/// machine and its state, which differ from those of another session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sessions {
    /// Number of sessions of the baseline.
    pub a: usize,
    /// Number of sessions of the variant.
    pub b: usize,
    /// Spread between sessions of these cells; `None` if no other sessions show it.
    pub spread: Option<SessionSpread>,
}

impl Sessions {
    /// The sessions of these runs, with the spread between those of each side, and between `others`: other sessions with
    /// such cells. `None` if the sides share a session, or if the figures have no logarithms.
    pub(crate) fn new(a: Figures<'_>, b: Figures<'_>, others: &[Vec<f64>]) -> Option<Self> {
        let (of_a, of_b) = (by_session(a), by_session(b));
        if of_a.is_empty() || of_b.is_empty() || of_a.keys().any(|session| of_b.contains_key(session)) {
            return None;
        }
        let mean = |values: &Vec<f64>| Some(Logs::new(values.iter().copied())?.mean());
        let spread = SessionSpread::new(&[
            of_a.values().filter_map(mean).collect::<Vec<f64>>(),
            of_b.values().filter_map(mean).collect(),
            others.iter().filter_map(mean).collect(),
        ]);
        Some(Self { a: of_a.len(), b: of_b.len(), spread })
    }
}

fn by_session(side: Figures<'_>) -> BTreeMap<&SessionKey, Vec<f64>> {
    let mut sessions: BTreeMap<&SessionKey, Vec<f64>> = BTreeMap::new();
    for ((session, _), value) in side.blocks.iter().zip(side.values) {
        sessions.entry(session).or_default().push(*value);
    }
    sessions
}

impl Design {
    /// The comparison by this design.
    pub(crate) fn apply(&self, comparison: Comparison) -> Comparison {
        let mut comparison = comparison.in_blocks(&self.pairs);
        if let Some(Sessions { a, b, spread: Some(spread) }) = self.sessions {
            comparison = comparison.widened(spread.of_difference(a, b), spread.degrees_of_freedom as f64);
        }
        if self.is_sequential { comparison.sequential() } else { comparison }
    }
}

/// What campaigns say about their runs, read once each.
#[derive(Debug, Default)]
pub(crate) struct Campaigns<'a>(HashMap<(&'a str, &'a str), Settings>);

/// Settings of a campaign's `[run]` that matter to comparisons; the defaults if its text can't be read.
#[derive(Clone, Debug)]
struct Settings {
    effect: f64,
    in_blocks: bool,
    /// None for the default.
    repeats: Option<Repeats>,
    max_time: Option<Span>,
    cpu_decides: bool,
}

impl<'a> Campaigns<'a> {
    /// The smallest effect that the campaigns of these runs are for.
    pub(crate) fn smallest_effect(&mut self, runs: impl Iterator<Item = &'a Run>) -> f64 {
        runs.map(|run| self.settings(run).effect).reduce(f64::min).unwrap_or(MARGIN - 1.0)
    }

    /// The design of a comparison of trials of these runs.
    pub(crate) fn design(
        &mut self,
        runs: impl Iterator<Item = &'a Run>,
        a: Figures<'_>,
        b: Figures<'_>,
    ) -> Design {
        let (mut blocks, mut is_sequential) = (BTreeSet::new(), false);
        let mut repeats: BTreeMap<&str, Option<Repeats>> = BTreeMap::new();
        for run in runs {
            let settings = self.settings(run);
            let first = repeats.entry(&run.id).or_insert_with(|| settings.repeats.clone());
            // A fixed number that is changed while there are results depends on them, too.
            is_sequential |=
                settings.repeats.as_ref().is_some_and(Repeats::is_adaptive) || *first != settings.repeats;
            if settings.in_blocks {
                blocks.insert(run.id.as_str());
            }
        }
        let pairs =
            a.blocks.iter().zip(a.values).filter(|((session, _), _)| blocks.contains(session.run.as_str()));
        // A block has one run of each side; where it has more, what is next to what is unknown.
        let is_single = |side: Figures<'_>, block| side.blocks.iter().filter(|of| *of == block).count() == 1;
        let pairs = pairs.filter(|(block, _)| is_single(a, *block) && is_single(b, *block));
        let pairs = pairs.filter_map(|(block, value)| {
            let at = b.blocks.iter().position(|other| other == block)?;
            Some((*value, *b.values.get(at)?))
        });
        Design { pairs: pairs.collect(), is_sequential, sessions: None }
    }

    /// Whether repeats of all these runs are blocks.
    pub(crate) fn are_in_blocks(&mut self, mut runs: impl Iterator<Item = &'a Run>) -> bool {
        runs.all(|run| self.settings(run).in_blocks)
    }

    /// The most repeats that the campaign of a run names; `None` if it names none.
    pub(crate) fn max_repeats(&mut self, run: &'a Run) -> Option<i64> {
        self.settings(run).repeats.as_ref().map(Repeats::max)
    }

    /// The time for the sessions of a run in pairs; `None` without a limit.
    pub(crate) fn max_time(&mut self, run: &'a Run) -> Option<Span> {
        self.settings(run).max_time
    }

    /// Whether the server's CPU time decides one of these runs in pairs, next to the figure of merit.
    pub(crate) fn cpu_decides(&mut self, mut runs: impl Iterator<Item = &'a Run>) -> bool {
        runs.any(|run| self.settings(run).cpu_decides)
    }

    /// By run and text: a run that is resumed may change its campaign.
    fn settings(&mut self, run: &'a Run) -> &Settings {
        self.0.entry((&run.id, &run.campaign_toml)).or_insert_with(|| Settings::new(run))
    }
}

impl Settings {
    fn new(run: &Run) -> Self {
        let campaign = spec::Campaign::parse(&run.campaign_toml).ok().map(|campaign| campaign.run);
        let run = campaign.as_ref();
        let effect = run.and_then(|run| Some(run.effect.as_ref()?.get_ref().0));
        let order = |run: &spec::Run| match &run.order {
            None => Some(Order::RandomizedBlocks),
            Some(order) => order.get_ref().parse().ok(),
        };
        let repeats = run.and_then(|run| Some(run.repeats.as_ref()?.get_ref()));
        Self {
            effect: effect.unwrap_or(MARGIN - 1.0),
            in_blocks: run.and_then(order) == Some(Order::RandomizedBlocks),
            repeats: repeats.cloned(),
            max_time: run.and_then(|run| Some(*run.max_time.as_ref()?.get_ref())),
            cpu_decides: run.and_then(|run| run.cpu_decides.as_ref()).is_some_and(|given| *given.get_ref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(agents: &[&str], values: &[f64]) -> (Vec<(SessionKey, u32)>, Vec<f64>) {
        let key = |agent: &&str| SessionKey { run: "R".to_owned(), agent: Some((*agent).to_owned()) };
        let keys = agents.iter().flat_map(|agent| (1..=3).map(move |repeat| (key(agent), repeat)));
        (keys.collect(), values.to_vec())
    }

    #[test]
    fn machines_of_a_fleet_are_sessions() {
        let (blocks, values) = runs(&["big-1", "big-2"], &[100.0, 100.0, 100.0, 110.0, 110.0, 110.0]);
        let a = Figures { values: &values, blocks: &blocks };
        let (blocks, values) = runs(&["small-1"], &[50.0, 50.0, 50.0]);
        let b = Figures { values: &values, blocks: &blocks };
        let sessions = Sessions::new(a, b, &[]).unwrap();
        assert_eq!((sessions.a, sessions.b), (2, 1));
        let spread = sessions.spread.unwrap();
        assert_eq!(spread.degrees_of_freedom, 1);
        assert!((spread.variance - 1.1_f64.ln().powi(2) / 2.0).abs() < 1e-12);
        // Blocks that were spread over machines cancel what these differ in.
        assert_eq!(Sessions::new(a, a, &[]), None);
        // How much machines differ is not known from one on each side.
        let (blocks, values) = runs(&["big-1"], &[100.0, 101.0, 99.0]);
        let one = Figures { values: &values, blocks: &blocks };
        assert_eq!(Sessions::new(one, b, &[]).unwrap().spread, None);
    }
}
