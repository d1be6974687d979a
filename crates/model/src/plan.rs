//! The plan: what a campaign comes to. Cells are the product of the factors' levels; trials are their repeats, in the
//! order in which they will run.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use toml::Spanned;

use crate::spec::{Campaign, Levels, SpecError};
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
    const ALL: [(&'static str, Self); 2] =
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

/// The most clients a campaign may ask for: beyond PostgreSQL's own limit of connections.
const MAX_CLIENTS: i64 = 262_143;
/// The highest scale at which pgbench's account numbers fit its tables' integer columns.
const MAX_SCALE: i64 = 21_474;

impl Plan {
    /// Checks a campaign and lays out its cells and trials.
    ///
    /// `drawn_seed` is used where the campaign names none; the plan records which.
    ///
    /// # Errors
    /// A value out of its range or a name that is not known, with its place in the campaign's text.
    pub fn of(campaign: &Campaign, drawn_seed: u64) -> Result<Self, SpecError> {
        check_name(&campaign.name)?;
        let run = run_settings(campaign, drawn_seed)?;
        let cells = cells(campaign)?;
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

fn check_name(name: &Spanned<String>) -> Result<(), SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = name.get_ref();
    if text.is_empty() || text.len() > 60 || !text.chars().all(plain) {
        return Err(SpecError::at(
            name,
            format!("campaign name \"{text}\" can't be used"),
            "expected 1 to 60 letters, digits, `-`, `_` or `.`",
        ));
    }
    Ok(())
}

fn run_settings(campaign: &Campaign, drawn_seed: u64) -> Result<RunSettings, SpecError> {
    let run = &campaign.run;
    let duration = match &run.duration {
        None => Span::from_us(10_000_000),
        Some(given) if given.get_ref().us() < 100_000 => {
            return Err(SpecError::at(
                given,
                format!("a duration of {} is too short to measure", given.get_ref()),
                "expected at least 100ms",
            ));
        }
        Some(given) => *given.get_ref(),
    };
    let warmup = match &run.warmup {
        None => Span::from_us(duration.us() / 10),
        Some(given) => *given.get_ref(),
    };
    let order = match &run.order {
        None => Order::RandomisedBlocks,
        Some(given) => one_of(given, "order", &Order::ALL)?,
    };
    let seed = match &run.seed {
        None => drawn_seed,
        Some(given) => whole(given, "seed", 0, i64::MAX)? as u64,
    };
    Ok(RunSettings {
        duration,
        warmup,
        repeats: or(&run.repeats, "repeats", 3, 10_000)?,
        order,
        seed,
        threads: or(&run.threads, "threads", 1, 1024)?,
    })
}

fn cells(campaign: &Campaign) -> Result<Vec<Cell>, SpecError> {
    let factors = &campaign.factors;
    let servers = levels(&factors.server, "server", server)?;
    let settings = optional(
        &factors.settings,
        "settings",
        SettingsVariant { name: DEFAULT_SETTINGS.to_owned(), values: BTreeMap::new() },
        |name| variant(campaign, name),
    )?;
    let workloads = levels(&factors.workload, "workload", |name| {
        one_of(name, "workload", &Workload::ALL.map(|w| (w.name(), w)))
    })?;
    let scales = optional(&factors.scale, "scale", 1, |n| whole(n, "scale", 1, MAX_SCALE).map(|n| n as u32))?;
    let clients =
        levels(&factors.clients, "clients", |n| whole(n, "clients", 1, MAX_CLIENTS).map(|n| n as u32))?;
    let protocols = optional(&factors.protocol, "protocol", Protocol::Prepared, |name| {
        one_of(name, "protocol", &Protocol::ALL.map(|p| (p.name(), p)))
    })?;
    let transports = optional(&factors.transport, "transport", Transport::Unix, |name| {
        one_of(name, "transport", &Transport::ALL.map(|t| (t.name(), t)))
    })?;

    let mut cells = Vec::new();
    for server in &servers {
        for settings in &settings {
            for &workload in &workloads {
                for &scale in &scales {
                    for &clients in &clients {
                        for &protocol in &protocols {
                            for &transport in &transports {
                                cells.push(Cell {
                                    server: server.clone(),
                                    settings: settings.clone(),
                                    workload,
                                    scale,
                                    clients,
                                    protocol,
                                    transport,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// Checks each level of a factor: there is at least one, none twice.
fn levels<T, U: PartialEq>(
    given: &Levels<T>,
    factor: &str,
    check: impl Fn(&Spanned<T>) -> Result<U, SpecError>,
) -> Result<Vec<U>, SpecError> {
    let mut levels = Vec::new();
    for level in given.get_ref() {
        let checked = check(level)?;
        if levels.contains(&checked) {
            return Err(SpecError::at(
                level,
                format!("this level of the factor `{factor}` is there twice"),
                "expected each level once; `run.repeats` repeats a cell",
            ));
        }
        levels.push(checked);
    }
    if levels.is_empty() {
        return Err(SpecError::at(
            given,
            format!("the factor `{factor}` has no levels"),
            "expected at least one",
        ));
    }
    Ok(levels)
}

fn optional<T, U: PartialEq>(
    given: &Option<Levels<T>>,
    factor: &str,
    default: U,
    check: impl Fn(&Spanned<T>) -> Result<U, SpecError>,
) -> Result<Vec<U>, SpecError> {
    match given {
        None => Ok(vec![default]),
        Some(given) => levels(given, factor, check),
    }
}

fn whole(given: &Spanned<i64>, what: &str, least: i64, most: i64) -> Result<i64, SpecError> {
    let value = *given.get_ref();
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(SpecError::at(
        given,
        format!("{what} = {value} is out of range"),
        format!("expected a whole number from {least} to {most}"),
    ))
}

fn or(given: &Option<Spanned<i64>>, what: &str, default: u32, most: i64) -> Result<u32, SpecError> {
    match given {
        None => Ok(default),
        Some(given) => whole(given, what, 1, most).map(|value| value as u32),
    }
}

fn one_of<T: Copy>(given: &Spanned<String>, what: &str, known: &[(&str, T)]) -> Result<T, SpecError> {
    let name = given.get_ref();
    if let Some((_, value)) = known.iter().find(|(known, _)| known == name) {
        return Ok(*value);
    }
    let names: Vec<String> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    Err(SpecError::at(
        given,
        format!("there is no {what} \"{name}\""),
        format!("expected {}", names.join(", ")),
    ))
}

/// The settings variant that is always there.
const DEFAULT_SETTINGS: &str = "default";

/// Reads a version: a major (`9.6`, `18`) or a full one (`9.6.24`, `16.4`). Whether it can be had is the target's to say.
fn server(given: &Spanned<String>) -> Result<String, SpecError> {
    let text = given.get_ref();
    let parts: Vec<Option<u32>> =
        text.split('.').map(|part| part.parse().ok().filter(|_| part.len() <= 4)).collect();
    let good = match parts.as_slice() {
        [Some(9), Some(_)] | [Some(9), Some(_), Some(_)] => true,
        [Some(major)] | [Some(major), Some(_)] => *major >= 10,
        _ => false,
    };
    if good {
        return Ok(text.clone());
    }
    Err(SpecError::at(
        given,
        format!("\"{text}\" is not a PostgreSQL version"),
        "expected a major version such as \"18\", or a full one such as \"16.4\"",
    ))
}

fn variant(campaign: &Campaign, name: &Spanned<String>) -> Result<SettingsVariant, SpecError> {
    let defined = campaign.settings.iter().find(|(defined, _)| defined.get_ref() == name.get_ref());
    let values = match defined {
        Some((_, values)) => values
            .iter()
            .map(|(setting, value)| Ok((setting_name(setting, value)?, setting_value(value)?)))
            .collect::<Result<_, SpecError>>()?,
        None if name.get_ref() == DEFAULT_SETTINGS => BTreeMap::new(),
        None => {
            let known: Vec<String> = std::iter::once(DEFAULT_SETTINGS)
                .chain(campaign.settings.keys().map(|name| name.get_ref().as_str()))
                .map(|name| format!("\"{name}\""))
                .collect();
            return Err(SpecError::at(
                name,
                format!("there are no settings \"{}\"", name.get_ref()),
                format!("expected {}, or a table [settings.{}]", known.join(", "), name.get_ref()),
            ));
        }
    };
    Ok(SettingsVariant { name: name.get_ref().clone(), values })
}

/// Settings that pgdyno itself decides: where the server lives and listens.
const OUR_SETTINGS: [&str; 6] = [
    "data_directory",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "logging_collector",
    "log_destination",
];

fn setting_name(name: &str, value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(SpecError::at(
            value,
            format!("`{name}` can't be the name of a server setting"),
            "expected letters, digits, `_` and `.`, as in postgresql.conf",
        ));
    }
    if OUR_SETTINGS.contains(&name) {
        return Err(SpecError::at(value, format!("`{name}` is set by pgdyno itself"), "leave it out"));
    }
    Ok(name.to_owned())
}

fn setting_value(value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    match value.get_ref() {
        toml::Value::String(text) if !text.contains(['\n', '\0']) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(true) => Ok("on".to_owned()),
        toml::Value::Boolean(false) => Ok("off".to_owned()),
        _ => Err(SpecError::at(
            value,
            "this can't be the value of a server setting",
            "expected a string without line breaks, a number, or true or false",
        )),
    }
}

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
