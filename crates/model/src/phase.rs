//! Phases of a workload: loads that a trial runs one after the other on one server.
//!
//! One phase is judged: it is the workload itself, whose scripts, bounds and background workloads are the workload's own. Its
//! figures are those of the trial. The others have loads of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cell::{Cell, RecordedCell};
use crate::units::{Rate, Span};
use crate::workload::{BackgroundWorkload, Custom, Phase, Workload};

/// A phase of a cell's trials, as a cell of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseCell {
    /// Its name; none if the workload has no phases.
    pub name: Option<String>,
    /// Whether it is the judged phase.
    pub is_judged: bool,
    /// The cell: its workload has neither phases nor numbers that depend on those of the clients.
    pub cell: Cell,
}

/// Limit of a phase whose clients have iterations.
const MAX_ITERATIONS_DURATION: Span = Span::from_us(3_600_000_000);

impl Custom {
    /// The name of the judged phase; none without phases.
    pub fn judged_phase(&self) -> Option<&str> {
        self.phases.iter().find(|phase| phase.load.is_none()).map(|phase| phase.name.as_str())
    }

    /// The workload as this number of clients runs it in a phase with these parameters: without phases, and with the background
    /// workloads of all clients.
    fn for_clients(&self, clients: u32, parameters: &BTreeMap<String, String>) -> Self {
        let background = self.background.iter().map(|background| background.for_clients(clients));
        let mut running = Self { phases: Vec::new(), background: background.collect(), ..self.clone() };
        running.parameters.extend(parameters.clone());
        running
    }
}

impl BackgroundWorkload {
    /// The workload in the background of this number of clients.
    fn for_clients(&self, clients: u32) -> Self {
        if !self.per_client {
            return self.clone();
        }
        let rate = self.rate.get().and_then(|rate| Rate::per_second(rate * f64::from(clients)));
        Self {
            clients: self.clients.saturating_mul(clients),
            rate: rate.unwrap_or(Rate::MAX),
            per_client: false,
            ..self.clone()
        }
    }
}

impl Cell {
    /// Its phases in the order in which they run; one without a name if its workload has none.
    pub fn phases(&self) -> Vec<PhaseCell> {
        let Workload::Custom(custom) = &self.workload else {
            return vec![PhaseCell { name: None, is_judged: true, cell: self.clone() }];
        };
        if custom.phases.is_empty() {
            let cell = self.running(custom, &BTreeMap::new());
            return vec![PhaseCell { name: None, is_judged: true, cell }];
        }
        let phase = |phase: &Phase| {
            let cell = match &phase.load {
                None => self.running(custom, &phase.parameters),
                Some(load) => {
                    let other = Self {
                        clients: load.clients.unwrap_or(self.clients),
                        rate: load.rate,
                        duration: load.duration.unwrap_or(self.duration),
                        warmup: load.warmup.unwrap_or(self.warmup),
                        ..self.clone()
                    };
                    other.running(&load.workload, &phase.parameters)
                }
            };
            let cell = match cell.workload.iterations() {
                None => cell,
                Some(_) => Self { duration: MAX_ITERATIONS_DURATION, warmup: Span::default(), ..cell },
            };
            PhaseCell { name: Some(phase.name.clone()), is_judged: phase.load.is_none(), cell }
        };
        custom.phases.iter().map(phase).collect()
    }

    /// The cell of one of its phases; none if it has no phase of this name.
    pub fn of_phase(&self, name: &str) -> Option<Self> {
        let phase = self.phases().into_iter().find(|phase| phase.name.as_deref() == Some(name))?;
        Some(phase.cell)
    }

    /// Number of clients of its workload and of its background workloads; the largest of its phases.
    pub fn all_clients(&self) -> u32 {
        let of_phase = |cell: &Self| {
            let background = cell.workload.custom().map_or(&[][..], |custom| &custom.background);
            cell.clients + background.iter().map(|background| background.clients).sum::<u32>()
        };
        self.phases().iter().map(|phase| of_phase(&phase.cell)).max().unwrap_or(self.clients)
    }

    /// The cell with a workload as its clients run it.
    fn running(&self, custom: &Arc<Custom>, parameters: &BTreeMap<String, String>) -> Self {
        let running = custom.for_clients(self.clients, parameters);
        let custom = if running == **custom { Arc::clone(custom) } else { Arc::new(running) };
        Self { workload: Workload::Custom(custom), ..self.clone() }
    }
}

impl RecordedCell {
    /// Like [`Cell::of_phase`]; none also if a level is unknown.
    pub fn of_phase(&self, name: &str) -> Option<Self> {
        Some(self.to_cell()?.of_phase(name)?.into())
    }

    /// The names of its phases in the order in which they run; empty if its workload has none.
    pub fn phase_names(&self) -> Vec<&str> {
        let custom = self.workload.known().and_then(Workload::custom);
        custom.into_iter().flat_map(|custom| &custom.phases).map(|phase| phase.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Basis, Plan};
    use crate::spec::Campaign;
    use crate::workload::{PhaseLoad, WeightedScript, Workloads};

    fn custom(name: &str, iterations: Option<u32>) -> Custom {
        let script =
            WeightedScript { name: format!("{name}.sql"), weight: 1, text: "select 1;\n".to_owned() };
        let parameters = BTreeMap::from([("batch".to_owned(), "50".to_owned())]);
        Custom { iterations, parameters, ..Custom::new(name, vec![script]) }
    }

    /// A load of iterations, then the judged phase, with two background clients at 10 per second for each of its own, then a rate.
    fn cell() -> Cell {
        let load = |workload: Custom, rate| PhaseLoad {
            workload: Arc::new(workload),
            clients: Some(3),
            rate,
            duration: None,
            warmup: Some(Span::from_us(7)),
        };
        let phase = |name: &str, load| Phase { name: name.to_owned(), parameters: BTreeMap::new(), load };
        let mut judged = custom("ingest", None);
        judged.background = vec![BackgroundWorkload {
            workload: Workload::SelectOnly,
            clients: 2,
            rate: Rate::per_second(10.0).unwrap(),
            start: Span::default(),
            per_client: true,
            replica: false,
        }];
        judged.phases = vec![
            phase("load", Some(load(custom("load", Some(9)), Rate::MAX))),
            Phase { parameters: [("batch".to_owned(), "5".to_owned())].into(), ..phase("read", None) },
            phase("at-rate", Some(load(custom("at-rate", None), Rate::per_second(2.0).unwrap()))),
        ];
        let text = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['ingest']\nclients = [4]\n\
                    duration = ['20s']\n[workloads.ingest]\nscript = 'x'\n";
        let mut workloads = Workloads::default();
        workloads.insert("ingest", Workload::Custom(Arc::new(judged)));
        let basis = Basis { seed: 1, processors: Some(2) };
        Plan::with_workloads(&Campaign::parse(text).unwrap(), basis, &workloads).unwrap().cells.remove(0)
    }

    #[test]
    fn each_phase_is_a_cell_without_phases() {
        let cell = cell();
        let phases = cell.phases();
        let names: Vec<_> =
            phases.iter().map(|phase| (phase.name.as_deref().unwrap(), phase.is_judged)).collect();
        assert_eq!(names, [("load", false), ("read", true), ("at-rate", false)]);
        assert!(phases.iter().all(|phase| !phase.cell.workload.has_phases()));
        let lengths =
            phases.iter().map(|phase| (phase.cell.clients, phase.cell.warmup.us(), phase.cell.duration.us()));
        let lengths: Vec<_> = lengths.collect();
        // One with iterations has no warm-up, and only a limit of its length.
        assert_eq!(lengths, [(3, 0, 3_600_000_000), (4, 2_000_000, 20_000_000), (3, 7, 20_000_000)]);
        assert_eq!(phases[2].cell.rate.get(), Some(2.0));
        let read = phases[1].cell.workload.custom().unwrap();
        assert_eq!(read.parameters["batch"], "5");
        let background = &read.background[0];
        assert_eq!(
            (background.clients, background.rate.get(), background.per_client),
            (8, Some(40.0), false)
        );
        assert_eq!(cell.all_clients(), 12);

        let recorded = RecordedCell::from(cell.clone());
        assert_eq!(recorded.phase_names(), ["load", "read", "at-rate"]);
        assert_eq!(recorded.of_phase("load"), Some(phases[0].cell.clone().into()));
        assert_eq!(recorded.of_phase("lode"), None);
    }

    #[test]
    fn a_cell_without_phases_is_its_only_one() {
        let mut cell = cell();
        cell.workload = Workload::SelectOnly;
        assert_eq!(cell.phases(), [PhaseCell { name: None, is_judged: true, cell: cell.clone() }]);
        cell.workload = Workload::Custom(Arc::new(custom("one", Some(3))));
        // Its limit is that of its cell.
        assert_eq!(cell.phases(), [PhaseCell { name: None, is_judged: true, cell: cell.clone() }]);
    }
}
