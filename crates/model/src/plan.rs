//! The plan of a campaign. Cells are the products of the factors' levels; trials are their repeats, in execution order.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cell::Cell;
use crate::check::{CheckedCampaign, Supported};
use crate::dataset::{DatasetSource, DatasetSpec};
use crate::factor::Factor;
use crate::fleet::Fleet;
use crate::load_hosts::RequestedHosts;
use crate::machine::{Acceleration, KernelSpec};
use crate::merit::Merit;
use crate::profile::Profile;
pub use crate::run::{
    Basis, Collect, DEFAULT_CONFIDENCE, DEFAULT_EFFECT, Hooks, Order, Repeats, RunSettings, Vacuum,
};
use crate::server::{ServerSpec, Source, without_sorted_functions};
use crate::shuffle::Shuffler;
use crate::spec::{Campaign, SpecError};
use crate::units::Span;
use crate::validity::Thresholds;
use crate::workload::{Custom, Workloads};
use crate::{check, matrix};

/// A checked campaign: all values are in range, all names known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The campaign's name.
    pub campaign: String,
    /// Words to select its trials by.
    pub tags: Vec<String>,
    /// Notes for people.
    pub notes: Option<String>,
    /// Run settings of the trials.
    pub run: RunSettings,
    /// Metrics collected during each load.
    pub collect: Collect,
    /// CPU profile of each load; none without one.
    pub profile: Option<Profile>,
    /// Thresholds of the validity gates.
    pub validity: Thresholds,
    /// Commands before and after the campaign and its trials.
    pub hooks: Hooks,
    /// What it wants of the machines of a fleet.
    pub fleet: Fleet,
    /// The hosts that the load comes from; none for this host.
    pub load_hosts: Option<RequestedHosts>,
    /// The servers of the cells, in that order.
    pub servers: Vec<ServerSpec>,
    /// The databases of the user's own that cells run on, in that order.
    pub datasets: Vec<DatasetSpec>,
    /// The kernels of the cells, in that order.
    pub kernels: Vec<KernelSpec>,
    /// Every combination of factor levels, in the order of the file; with [`RunSettings::link_order`], then each once more with the
    /// functions of its server sorted.
    pub cells: Vec<Cell>,
    /// The trials planned from the start, in execution order.
    pub trials: Vec<PlannedTrial>,
    /// The directory that the files of traces are relative to: the campaign's own.
    #[serde(skip)]
    pub directory: PathBuf,
    /// Why combinations of levels are left out of [`Plan::cells`]: a sentence for each workload that some servers are too old for.
    pub left_out: Vec<String>,
}

/// One trial to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedTrial {
    /// Its place in the order, from 1.
    pub position: u32,
    /// Index of its cell in [`Plan::cells`].
    pub cell: usize,
    /// Number of the repeat of the cell, from 1; in randomized blocks, number of the block; of paired trials, number of the
    /// session in the run.
    pub repeat: u32,
}

impl Plan {
    /// Checks a campaign and lays out its cells and trials.
    ///
    /// `seed` is used if the campaign has none; the plan records the one used. The driver has one CPU.
    ///
    /// # Errors
    /// A value out of range or an unknown name, with its place in the campaign's text.
    pub fn new(campaign: &Campaign, seed: u64) -> Result<Self, SpecError> {
        Self::with_workloads(campaign, Basis { seed, processors: Some(1) }, &Workloads::default())
    }

    /// Like [`Plan::new`], with the workloads in addition to pgbench's that the campaign can name.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with_workloads(
        campaign: &Campaign,
        basis: Basis,
        workloads: &Workloads,
    ) -> Result<Self, SpecError> {
        let checked = CheckedCampaign::new(campaign, workloads, basis.processors)?;
        let cells = matrix::cells(campaign, &checked.definitions, checked.defaults)?;
        let run = checked.run_settings(&cells, basis)?;
        let Supported { cells, left_out } = checked.supported(cells, &run, comparisons)?;
        let servers = checked.servers(&cells)?;
        checked.check_topologies(&cells, &servers)?;
        checked.check_extensions(&cells, &servers)?;
        checked.check_server_support(&cells, &servers)?;
        checked.check_datasets(&cells, &servers)?;
        checked.check_virtual_machines(&cells, &servers)?;
        let load_hosts = checked.load_hosts(&cells, &servers)?;
        let comparisons = comparisons(&cells, run.compare);
        if run.order.is_paired() {
            checked.check_pairs(&cells, &servers, &comparisons)?;
        }
        let trials = trials(&cells, &comparisons, &run);
        let (cells, servers) = if run.link_order { with_sorted(cells, servers) } else { (cells, servers) };
        Ok(Self {
            campaign: campaign.name.get_ref().clone(),
            tags: campaign.tags.iter().map(|tag| tag.get_ref().clone()).collect(),
            notes: campaign.notes.clone(),
            collect: checked.collect()?,
            profile: checked.profile(&cells)?,
            validity: checked.validity()?,
            hooks: checked.hooks(),
            fleet: checked.fleet()?,
            load_hosts,
            servers,
            datasets: checked.datasets(&cells)?,
            kernels: checked.kernels(&cells),
            trials,
            run,
            cells,
            directory: PathBuf::new(),
            left_out,
        })
    }

    /// Resolves relative paths of servers, data sets, kernels and traces against this directory, the campaign's own.
    pub fn relative_to(&mut self, directory: &Path) {
        self.directory = directory.to_owned();
        for server in &mut self.servers {
            match &mut server.source {
                Source::Bin(path) => *path = directory.join(&*path),
                Source::Build(build) => {
                    build.location = directory.join(&build.location);
                    build.patches.iter_mut().for_each(|patch| *patch = directory.join(&*patch));
                }
                Source::Embedded(_) | Source::Installed(_) | Source::Dsn(_) => {}
            }
        }
        for dataset in &mut self.datasets {
            match &mut dataset.source {
                DatasetSource::Dump(path) | DatasetSource::BaseBackup { directory: path, .. } => {
                    *path = directory.join(&*path);
                }
                DatasetSource::Template(_) => {}
            }
        }
        for path in self.kernels.iter_mut().filter_map(|kernel| kernel.path.as_mut()) {
            *path = directory.join(&*path);
        }
    }

    /// The comparisons of each level of the compared factor with its first level: indices of the baseline's cell and of the
    /// other, in the order of the latter. Both differ in that factor only, and are judged by the same figure.
    pub fn comparisons(&self) -> Vec<(usize, usize)> {
        comparisons(&self.cells, self.run.compare)
    }

    /// The cell that differs from another one only in that the functions of its server are sorted: its index.
    pub fn sorted(&self, cell: usize) -> Option<usize> {
        let is_sorted = |other: &Cell| {
            let of = without_sorted_functions(&other.server);
            of == Some(&*self.cells[cell].server)
                && Cell { server: self.cells[cell].server.clone(), ..other.clone() } == self.cells[cell]
        };
        self.cells.iter().position(is_sorted)
    }

    /// Whether the load of sessions alternates between two servers in slices, as on the machine itself; else a session is two
    /// trials, one after the other, each in a virtual machine of its own ([`crate::session`]).
    pub fn is_in_slices(&self) -> bool {
        is_in_slices(&self.cells)
    }

    /// The two trials of a session of a comparison, `(a, b)`: the baseline's first, or, if they run one after the other, in the
    /// order in which they do.
    pub fn session(&self, comparison: (usize, usize), number: u32) -> [PlannedTrial; 2] {
        session(comparison, number, self.run.seed, self.is_in_slices())
    }

    /// The cell of a trial.
    pub fn cell(&self, trial: &PlannedTrial) -> &Cell {
        &self.cells[trial.cell]
    }

    /// The server of a cell.
    pub fn server(&self, cell: &Cell) -> Option<&ServerSpec> {
        self.servers.iter().find(|server| server.name == cell.server)
    }

    /// Where the database of a cell is, if its workload has one of its own.
    pub fn dataset(&self, cell: &Cell) -> Option<&DatasetSource> {
        let own = cell.workload.own_database()?;
        self.datasets.iter().find(|known| known.name == own.name).map(|known| &known.source)
    }

    /// The kernel of a cell; none for the machine's running kernel.
    pub fn kernel(&self, cell: &Cell) -> Option<&KernelSpec> {
        let name = cell.kernel.as_ref()?;
        self.kernels.iter().find(|kernel| kernel.name == *name)
    }

    /// The distinct workloads of the cells that are not pgbench's, in the order of the cells.
    pub fn custom_workloads(&self) -> Vec<&Custom> {
        let mut found: Vec<&Custom> = Vec::new();
        for custom in self.cells.iter().filter_map(|cell| cell.workload.custom()) {
            if !found.contains(&custom) {
                found.push(custom);
            }
        }
        found
    }

    /// Whether anything except the load may change the data set in a trial.
    pub fn alters_data(&self) -> bool {
        self.run.vacuum != Vacuum::None
            || self.hooks.before_trial.is_some()
            || self.hooks.after_trial.is_some()
    }

    /// Distinct warnings about cells that are left out, that can run but may fail, as their memory limits are tight, or may get no
    /// verdict, as their repeats are few.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.cells.iter().filter_map(check::memory::small_memory_warning).collect();
        warnings.sort();
        warnings.dedup();
        warnings.splice(0..0, self.left_out.iter().cloned());
        if self.run.compare.is_some() && self.run.repeats.max < EXACT_REPEATS {
            warnings.push(format!(
                "with {} a side, cells whose runs spread by more than 5% get a verdict only if they changed by several times \
                 that: the exact test of such cells needs {EXACT_REPEATS} (repeats = {EXACT_REPEATS})",
                match self.run.repeats.max {
                    1 => "1 run".to_owned(),
                    n => format!("{n} runs"),
                }
            ));
        }
        warnings
    }

    /// Approximate time of all trials: loads and what surrounds them, without downloads and filling.
    pub fn estimate(&self) -> Span {
        self.estimate_of(&self.trials)
    }

    /// Approximate time of some of the plan's trials.
    pub fn estimate_of(&self, trials: &[PlannedTrial]) -> Span {
        let load = |trial: &PlannedTrial| {
            let cell = self.cell(trial);
            let folding = self.profile.map_or(0, |_| PROFILE_OVERHEAD_US);
            // The length of a load that ends by itself is unknown.
            let length_us = |cell: &Cell| {
                let window_us =
                    if cell.workload.ends_by_itself() { ASSUMED_ITERATIONS_US } else { cell.duration.us() };
                cell.warmup.us() + window_us
            };
            let phases_us: u64 = cell.phases().iter().map(|phase| length_us(&phase.cell)).sum();
            let (slowdown, overhead_us) = match cell.acceleration {
                Acceleration::None => (1, TRIAL_OVERHEAD_US),
                Acceleration::Kvm | Acceleration::Tcg => (1, BOOT_US),
                Acceleration::Icount => (ICOUNT_SLOWDOWN, BOOT_US),
            };
            let lead_us = match (cell.acceleration, self.profile) {
                (Acceleration::Icount, Some(profile)) => profile.counted_lead_us(),
                _ => 0,
            };
            let load_us = phases_us + lead_us;
            slowdown * (load_us + self.run.settle.us() + folding) + overhead_us
        };
        Span::from_us(trials.iter().map(load).sum())
    }
}

/// The fewest runs a side whose exact permutation test can reach p = 0.01: one of the 252 ways to split ten runs has p of
/// 2/252, one of the 70 ways to split eight only 2/70.
const EXACT_REPEATS: u32 = 5;

/// Assumed length of a load that ends after its iterations.
const ASSUMED_ITERATIONS_US: u64 = 60_000_000;

/// Time around a trial's load: copying, starting, connecting and counting, as measured on small machines at scale 1.
const TRIAL_OVERHEAD_US: u64 = 400_000;

/// Time to pack and boot a virtual machine, and to start and stop the server in it by emulation, as measured on small
/// machines.
const BOOT_US: u64 = 25_000_000;

/// Slowdown by counting instructions, as measured on small machines.
const ICOUNT_SLOWDOWN: u64 = 10;

/// Time to end a recording and fold its samples after a load, as measured on small machines.
const PROFILE_OVERHEAD_US: u64 = 3_000_000;

/// See [`Plan::comparisons`].
fn comparisons(cells: &[Cell], compare: Option<Factor>) -> Vec<(usize, usize)> {
    let (Some(compare), Some(first)) = (compare, cells.first()) else { return Vec::new() };
    let baseline = compare.level(first);
    let is_level = |cell: &usize| without_sorted_functions(&cells[*cell].server).is_none();
    let (of_baseline, others): (Vec<usize>, Vec<usize>) =
        (0..cells.len()).filter(is_level).partition(|cell| compare.level(&cells[*cell]) == baseline);
    let merit = |cell: usize| Merit::of(&cells[cell].clone().into());
    let with_baseline = |other: usize| {
        let is_same = |cell: &&usize| {
            Factor::varied([&cells[**cell], &cells[other]]) == [compare] && merit(**cell) == merit(other)
        };
        Some((*of_baseline.iter().find(is_same)?, other))
    };
    others.into_iter().filter_map(with_baseline).collect()
}

/// The cells and servers, and then those with sorted functions.
fn with_sorted(mut cells: Vec<Cell>, mut servers: Vec<ServerSpec>) -> (Vec<Cell>, Vec<ServerSpec>) {
    let sorted: Vec<ServerSpec> = servers.iter().filter_map(ServerSpec::with_sorted_functions).collect();
    for server in sorted {
        let of = without_sorted_functions(&server.name);
        let twins = cells.iter().filter(|cell| of == Some(&*cell.server));
        let twins: Vec<Cell> =
            twins.map(|cell| Cell { server: server.name.clone(), ..cell.clone() }).collect();
        cells.extend(twins);
        servers.push(server);
    }
    (cells, servers)
}

fn is_in_slices(cells: &[Cell]) -> bool {
    !cells.iter().any(|cell| cell.acceleration.is_virtual())
}

fn session((a, b): (usize, usize), number: u32, seed: u64, is_in_slices: bool) -> [PlannedTrial; 2] {
    let mut cells = [a, b];
    if !is_in_slices {
        // Drawn, so that drift affects both alike.
        Shuffler::new(seed.wrapping_add(u64::from(number))).shuffle(&mut cells);
    }
    let [first, second] = cells;
    [(2 * number - 1, first), (2 * number, second)].map(|(position, cell)| PlannedTrial {
        position,
        cell,
        repeat: number,
    })
}

fn trials(cells: &[Cell], comparisons: &[(usize, usize)], run: &RunSettings) -> Vec<PlannedTrial> {
    let is_in_slices = is_in_slices(cells);
    let cells = cells.len();
    let mut pairs: Vec<(usize, u32)> = Vec::with_capacity(cells * run.repeats.min as usize);
    match run.order {
        Order::Sequential => {
            for cell in 0..cells {
                pairs.extend((1..=run.repeats.min).map(|repeat| (cell, repeat)));
            }
        }
        Order::RandomizedBlocks => {
            let mut random = Shuffler::new(run.seed);
            for repeat in 1..=run.repeats.min {
                let mut block: Vec<usize> = (0..cells).collect();
                random.shuffle(&mut block);
                pairs.extend(block.into_iter().map(|cell| (cell, repeat)));
            }
        }
        Order::Paired | Order::Bisect => {
            // A bisection begins with both ends.
            let first = if run.order == Order::Bisect { comparisons.len().saturating_sub(1) } else { 0 };
            let sessions = (1..).zip((0..run.repeats.min).flat_map(|_| &comparisons[first..]));
            return sessions.flat_map(|(number, of)| session(*of, number, run.seed, is_in_slices)).collect();
        }
    }
    (1..).zip(pairs).map(|(position, (cell, repeat))| PlannedTrial { position, cell, repeat }).collect()
}
