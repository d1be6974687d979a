//! Layout of an overview: the cells of columns, panels and rows, and their order.

use std::collections::{BTreeMap, BTreeSet};

use model::cell::{Levels, RecordedCell};
use model::factor::{Factor, Place};
use model::plan::Plan;
use model::record::Trial;
use model::spec::Campaign;
use model::workload::{Workload, Workloads};

use crate::context::TrialContext;
use crate::version;

/// The key of a panel: a cell without its column and its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PanelKey(pub(crate) RecordedCell);

impl PanelKey {
    pub(crate) fn new(cell: &RecordedCell) -> Self {
        Self(cell.clone().only(|factor| !matches!(factor.place(), Place::Column | Place::Row)))
    }

    /// Levels that are not the default, or differ between panels.
    pub(crate) fn conditions(&self, panels: &[Self]) -> Vec<String> {
        let condition = |factor: Factor| {
            let level = factor.level(&self.0);
            let varies = panels.iter().any(|panel| factor.level(&panel.0) != level);
            (varies || self.0.is_noteworthy(factor)).then(|| format!("{} {level}", factor.name()))
        };
        Factor::at(Place::Condition).filter_map(condition).collect()
    }
}

/// The key of a column: a cell's levels of the factors that are columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnKey(RecordedCell);

impl ColumnKey {
    pub(crate) fn new(cell: &RecordedCell) -> Self {
        Self(cell.clone().only(|factor| factor.place() == Place::Column))
    }

    pub(crate) fn level(&self, factor: Factor) -> Option<String> {
        factor.known_level(&self.0)
    }

    pub(crate) fn holds(&self, cell: &RecordedCell) -> bool {
        *self == Self::new(cell)
    }
}

/// Panels and columns that have trials, in order.
pub(crate) struct Layout {
    pub(crate) panels: Vec<PanelKey>,
    pub(crate) columns: Vec<ColumnKey>,
}

impl Layout {
    pub(crate) fn new(trials: &[&Trial], releases: &BTreeMap<String, String>) -> Self {
        let mut layout = Self { panels: Vec::new(), columns: Vec::new() };
        for cell in ordered_cells(trials) {
            let panel = PanelKey::new(&cell);
            if !layout.panels.contains(&panel) {
                layout.panels.push(panel);
            }
            if !layout.columns.iter().any(|column| column.holds(&cell)) {
                layout.columns.push(ColumnKey::new(&cell));
            }
        }
        sort_kernels(&mut layout.columns, releases, |column| &column.0);
        layout
    }

    /// Whether the columns differ in this factor.
    pub(crate) fn vary(&self, factor: Factor) -> bool {
        self.columns.iter().any(|column| column.level(factor) != self.columns[0].level(factor))
    }
}

/// Distinct cells with trials: those of a plan in its order, those of an imported run in the order of the import, then
/// others by version; but kernels by version, after the first one, which is the baseline.
pub fn ordered_cells(trials: &[&Trial]) -> Vec<RecordedCell> {
    let mut others: Vec<&RecordedCell> = trials.iter().map(|trial| &trial.cell).collect();
    others.sort_by_cached_key(|cell| {
        let kernel = cell.kernel.known().and_then(Option::as_deref);
        let kernel = kernel.map(|kernel| version::sort_key(kernel, None));
        let server = cell.server.known().map(|server| version::sort_key(server, None));
        (server, kernel, (*cell).clone())
    });
    others.dedup();
    let mut ordered: Vec<RecordedCell> = Vec::new();
    for trials in runs(trials) {
        let cells = match trials[0].imported {
            Some(_) => trials.iter().map(|trial| trial.cell.clone()).collect(),
            None => {
                let planned = plan(&trials).map(|plan| plan.cells).unwrap_or_default();
                planned.into_iter().map(RecordedCell::from).collect::<Vec<_>>()
            }
        };
        ordered.extend(cells.into_iter().filter(|cell| others.contains(&cell)));
    }
    ordered.extend(others.into_iter().cloned());
    let mut known: BTreeSet<RecordedCell> = BTreeSet::new();
    ordered.retain(|cell| known.insert(cell.clone()));
    sort_kernels(&mut ordered, &BTreeMap::new(), |cell| cell);
    ordered
}

/// Sorts kernels among items that differ only in the kernel; everything else keeps its position, and so does the first
/// kernel, before all others. `releases` has the known releases of kernels by level.
fn sort_kernels<T: Clone>(
    all: &mut [T],
    releases: &BTreeMap<String, String>,
    cell: impl Fn(&T) -> &RecordedCell,
) {
    let level = |one: &T| Factor::Kernel.level(cell(one));
    let Some(baseline) = all.first().map(level) else { return };
    let mut alike: BTreeMap<RecordedCell, Vec<usize>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate() {
        alike.entry(cell(one).clone().without(Factor::Kernel)).or_default().push(at);
    }
    for places in alike.into_values() {
        let mut sorted: Vec<T> = places.iter().map(|at| all[*at].clone()).collect();
        sorted.sort_by_cached_key(|one| {
            let level = level(one);
            let place = version::sort_key(&level, releases.get(&level).map(String::as_str));
            (level != baseline, place)
        });
        for (at, one) in places.into_iter().zip(sorted) {
            all[at] = one;
        }
    }
}

/// The kernels that trials ran under, by the level of `kernel`; for a level with several kernels, one of them.
pub(crate) fn releases(
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
) -> BTreeMap<String, String> {
    let release = |trial: &&Trial| {
        let kernel = contexts.get(&trial.id)?.environment.kernel.clone()?;
        Some((Factor::Kernel.known_level(&trial.cell)?, kernel))
    };
    trials.iter().filter_map(release).collect()
}

/// Groups trials by run; `trials` must be sorted by run.
pub(crate) fn runs<'a>(trials: &[&'a Trial]) -> Vec<Vec<&'a Trial>> {
    trials.chunk_by(|a, b| a.run.id == b.run.id).map(<[_]>::to_vec).collect()
}

/// The plan of the trials' run; `None` if this release can't read its campaign. Workloads that are not built into
/// pgbench are taken from the trials.
pub(crate) fn plan(trials: &[&Trial]) -> Option<Plan> {
    let run = &trials.first()?.run;
    let campaign = Campaign::parse(&run.campaign_toml).ok()?;
    let mut workloads = Workloads::default();
    workloads.add_custom(trials.iter().filter_map(|trial| trial.cell.workload.known()));
    let levels = campaign.workload_levels().map(|level| level.get_ref());
    for name in levels.chain(campaign.workloads.keys().map(|name| name.get_ref())) {
        workloads.0.entry(name.clone()).or_insert_with(|| Workload::Named(name.clone()));
    }
    Plan::with_workloads(&campaign, run.basis()?, &workloads).ok()
}

/// Levels of the factors that are columns: a trial's server and kernel.
pub(crate) fn column_levels(cell: &impl Levels) -> Vec<String> {
    Factor::at(Place::Column).map(|factor| factor.level(cell)).collect()
}

pub(crate) fn clients_of(trial: &Trial) -> Option<u32> {
    trial.cell.clients.into_known()
}
