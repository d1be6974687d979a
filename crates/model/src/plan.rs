//! The plan: what a campaign comes to. Cells are the product of the factors' levels; trials are their repeats, in the
//! order in which they will run.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::check;
use crate::spec::{Campaign, SpecError};
use crate::units::Span;
use crate::workload::{Protocol, Transport, Workload};

/// A checked campaign: every value is in its range, every name is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The campaign's name.
    pub campaign: String,
    /// How each trial runs.
    pub run: RunSettings,
    /// Every combination of factor levels, in the order of the file.
    pub cells: Vec<Cell>,
    /// Every trial, in the order in which they will run.
    pub trials: Vec<PlannedTrial>,
}

/// How each trial of a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunSettings {
    /// Length of the measured window.
    pub duration: Span,
    /// Load before the window.
    pub warmup: Span,
    /// Trials of each cell.
    pub repeats: u32,
    /// Order of the trials.
    pub order: Order,
    /// Seed of the order and of the scripts' random numbers.
    pub seed: u64,
    /// Threads of the driver.
    pub threads: u32,
}

/// Order of the trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One block a repeat, each with every cell once, in random order: slow drift of the machine then falls on all
    /// cells alike.
    RandomisedBlocks,
    /// The cells in the order of the file, all repeats of a cell one after the other.
    AsWritten,
}

impl Order {
    /// Every order with its name in campaigns.
    pub(crate) const ALL: [(&'static str, Self); 2] =
        [("randomised-blocks", Self::RandomisedBlocks), ("as-written", Self::AsWritten)];
}

/// One combination of factor levels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Cell {
    /// PostgreSQL version as the campaign writes it.
    pub server: String,
    /// Server settings.
    pub settings: SettingsVariant,
    /// What clients do.
    pub workload: Workload,
    /// pgbench scale factor, at least 1.
    pub scale: u32,
    /// Number of clients, at least 1.
    pub clients: u32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// What carries them.
    pub transport: Transport,
}

/// A named set of server settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SettingsVariant {
    /// Its name in the campaign; `default` is the server as it comes.
    pub name: String,
    /// Name and value of each setting, as for `postgresql.conf`.
    pub values: BTreeMap<String, String>,
}

impl fmt::Display for Cell {
    /// `18 default tpcb-like scale 1 clients 8 prepared unix`: unique within a campaign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} scale {} clients {} {} {}",
            self.server,
            self.settings.name,
            self.workload.name(),
            self.scale,
            self.clients,
            self.protocol.name(),
            self.transport.name()
        )
    }
}

/// One trial to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedTrial {
    /// Its place in the order, from 1.
    pub position: u32,
    /// Index of its cell in [`Plan::cells`].
    pub cell: usize,
    /// Which repeat of the cell, from 1; the block where the order is in blocks.
    pub repeat: u32,
}

impl Plan {
    /// Checks a campaign and lays out its cells and trials.
    ///
    /// `drawn_seed` is used where the campaign names none; the plan records which.
    ///
    /// # Errors
    /// A value out of its range or a name that is not known, with its place in the campaign's text.
    pub fn of(campaign: &Campaign, drawn_seed: u64) -> Result<Self, SpecError> {
        check::name(&campaign.name)?;
        let run = check::run_settings(campaign, drawn_seed)?;
        let cells = check::cells(campaign)?;
        let trials = trials(cells.len(), &run);
        Ok(Self { campaign: campaign.name.get_ref().clone(), run, cells, trials })
    }

    /// The cell of a trial.
    pub fn cell(&self, trial: &PlannedTrial) -> &Cell {
        &self.cells[trial.cell]
    }

    /// Each server version that is needed, once, in the order of the file.
    pub fn servers(&self) -> Vec<&str> {
        let mut servers: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !servers.contains(&cell.server.as_str()) {
                servers.push(&cell.server);
            }
        }
        servers
    }

    /// About how long all trials will take: load plus what surrounds it. Downloading and filling come on top.
    pub fn estimate(&self) -> Span {
        self.estimate_of(&self.trials)
    }

    /// About how long some of the plan's trials will take.
    pub fn estimate_of(&self, trials: &[PlannedTrial]) -> Span {
        let trial = self.run.warmup.us() + self.run.duration.us() + AROUND_TRIAL_US;
        Span::from_us(trial * trials.len() as u64)
    }
}

/// What putting back, starting, connecting and counting cost around a trial's load, as seen on small machines at scale 1.
const AROUND_TRIAL_US: u64 = 400_000;

fn trials(cells: usize, run: &RunSettings) -> Vec<PlannedTrial> {
    let mut pairs: Vec<(usize, u32)> = Vec::with_capacity(cells * run.repeats as usize);
    match run.order {
        Order::AsWritten => {
            for cell in 0..cells {
                pairs.extend((1..=run.repeats).map(|repeat| (cell, repeat)));
            }
        }
        Order::RandomisedBlocks => {
            let mut random = SplitMix64(run.seed);
            for repeat in 1..=run.repeats {
                let mut block: Vec<usize> = (0..cells).collect();
                random.shuffle(&mut block);
                pairs.extend(block.into_iter().map(|cell| (cell, repeat)));
            }
        }
    }
    (1..).zip(pairs).map(|(position, (cell, repeat))| PlannedTrial { position, cell, repeat }).collect()
}

/// SplitMix64 (Steele, Lea, Flood 2014): fixed here for good, because a recorded seed must give the same order in
/// every release.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fisher-Yates; the bias of the multiply-shift reduction is below 2⁻⁴⁰ for any block a campaign can have.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let pick = ((u128::from(self.next()) * (last as u128 + 1)) >> 64) as usize;
            items.swap(last, pick);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = 'n'\n[factors]\nserver = ['13', '18']\nworkload = ['select-only', 'tpcb-like']\n\
                        clients = [1, 2, 4]\n[run]\nseed = 7\nrepeats = 3\n";

    fn plan(text: &str) -> Result<Plan, SpecError> {
        Plan::of(&Campaign::parse(text).unwrap(), 1)
    }

    /// The message, the text it points at and the help for a campaign that parses and can't be planned.
    fn refused(from: &str, to: &str) -> (String, String, String) {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD);
        let error = plan(&text).unwrap_err();
        (error.message, text[error.at.unwrap()].to_owned(), error.help.unwrap())
    }

    #[test]
    fn cells_are_the_product_and_trials_their_repeats() {
        let plan = plan(GOOD).unwrap();
        assert_eq!(plan.cells.len(), 2 * 2 * 3);
        assert_eq!(plan.trials.len(), 2 * 2 * 3 * 3);
        assert_eq!(plan.servers(), ["13", "18"]);
        assert_eq!(plan.cells[0].to_string(), "13 default select-only scale 1 clients 1 prepared unix");
    }

    #[test]
    fn every_block_holds_every_cell_once_and_blocks_differ() {
        let plan = plan(GOOD).unwrap();
        let blocks: Vec<Vec<usize>> =
            plan.trials.chunks(12).map(|b| b.iter().map(|t| t.cell).collect()).collect();
        for block in &blocks {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..12).collect::<Vec<_>>());
        }
        assert_ne!(blocks[0], blocks[1]);
    }

    #[test]
    fn a_seed_fixes_the_order_for_good() {
        let first: Vec<usize> = plan(GOOD).unwrap().trials[..12].iter().map(|t| t.cell).collect();
        assert_eq!(first, [8, 7, 11, 10, 6, 2, 1, 3, 5, 9, 0, 4]);
    }

    #[test]
    fn as_written_repeats_each_cell_in_turn() {
        let plan = plan(&GOOD.replace("seed = 7", "order = 'as-written'")).unwrap();
        let head: Vec<_> = plan.trials[..4].iter().map(|t| (t.cell, t.repeat)).collect();
        assert_eq!(head, [(0, 1), (0, 2), (0, 3), (1, 1)]);
        assert_eq!(plan.run.seed, 1, "the drawn seed is recorded");
    }

    #[test]
    fn what_is_out_of_range_or_unknown_is_shown_with_what_was_expected() {
        let (message, at, help) = refused("[1, 2, 4]", "[1, 0]");
        assert_eq!((message.as_str(), at.as_str()), ("clients = 0 is out of range", "0"));
        assert_eq!(help, "expected a whole number from 1 to 262143");

        let (message, at, help) = refused("'tpcb-like'", "'tpcc'");
        assert_eq!((message.as_str(), at.as_str()), ("there is no workload \"tpcc\"", "'tpcc'"));
        assert_eq!(help, "expected \"tpcb-like\", \"simple-update\", \"select-only\"");

        let (_, at, _) = refused("['13', '18']", "[]");
        assert_eq!(at, "[]");
        let (message, ..) = refused("[1, 2, 4]", "[4, 4]");
        assert!(message.contains("twice"), "{message}");
        for version in ["'8'", "'9'", "'18beta1'", "'18.1.2'", "''"] {
            let (message, at, _) = refused("'18'", version);
            assert_eq!(at, version);
            assert!(message.contains("is not a PostgreSQL version"), "{message}");
        }
    }

    #[test]
    fn settings_are_named_tables() {
        let with = |table: &str| {
            plan(&format!(
                "{}\n[settings.big]\n{table}\n",
                GOOD.replace("clients =", "settings = ['default', 'big']\nclients =")
            ))
        };
        let plan = with("shared_buffers = '1GB'\nfsync = false\nmax_connections = 300").unwrap();
        let big = &plan.cells.iter().find(|cell| cell.settings.name == "big").unwrap().settings;
        assert_eq!(big.values["fsync"], "off");
        assert_eq!(big.values["max_connections"], "300");
        assert!(with("port = 5432").unwrap_err().message.contains("pgdyno itself"));
        assert!(with("x = [1]").unwrap_err().help.unwrap().contains("a string"));
        let (message, _, help) = refused("clients =", "settings = ['bag']\nclients =");
        assert_eq!(message, "there are no settings \"bag\"");
        assert!(help.contains("[settings.bag]"), "{help}");
    }
}
