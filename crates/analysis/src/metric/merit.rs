//! Metrics of the figures of merit, and how they are shown.

use model::cell::RecordedCell;
use model::merit::{Merit, NEW_ORDER_SCRIPT};
use model::metrics::Better;
use model::paired::PairedFigure;
use model::record::{Trial, TrialRecord};
use stats::Spread;
use strum::VariantArray;

use super::{BlockFigure, LatencyFigure, Metric, SECONDS_PER_MINUTE, ScriptSummary, Window};

/// How a figure of merit is shown.
pub(crate) struct Presentation {
    /// Description with its unit.
    pub(crate) label: &'static str,
    /// The unit alone.
    pub(crate) unit: &'static str,
    /// Factor from the metric's own unit to this one.
    pub(crate) factor: f64,
    /// Description of the figure next to it.
    pub(crate) secondary: Option<&'static str>,
}

impl Metric {
    /// The metric that a figure of merit is.
    pub const fn of(merit: Merit) -> Self {
        match merit {
            Merit::Throughput => Self::Tps,
            Merit::Latency => Self::Latency(LatencyFigure::P99),
            Merit::Length => Self::Latency(LatencyFigure::Mean),
            Merit::Blocks => Self::Blocks(BlockFigure::Visited),
            Merit::NewOrders => Self::NewOrders,
            Merit::Instructions => Self::Instructions,
        }
    }

    /// The metric that is compared next to a figure of merit.
    pub const fn secondary(merit: Merit) -> Option<Self> {
        match merit {
            Merit::Latency => Some(Self::Latency(LatencyFigure::Mean)),
            Merit::Blocks => Some(Self::Blocks(BlockFigure::PhysicalReads)),
            Merit::Throughput | Merit::Length | Merit::NewOrders | Merit::Instructions => None,
        }
    }

    /// The metrics of cells with this merit that sessions of pairs decide: the one that they are judged by, and what the server's
    /// work costs, of which the machine may lack the last.
    pub const fn paired(merit: Merit) -> [Self; 3] {
        [
            Self::of_paired(PairedFigure::of(merit)),
            Self::of_paired(PairedFigure::ServerCpu),
            Self::of_paired(PairedFigure::ServerInstructions),
        ]
    }

    /// Those of them that decide, the one that matters most first; `with_cpu` if the server's CPU time is one.
    pub fn deciding(merit: Merit, with_cpu: bool) -> Vec<Self> {
        PairedFigure::deciding(merit, with_cpu).into_iter().map(Self::of_paired).collect()
    }

    const fn of_paired(figure: PairedFigure) -> Self {
        match figure {
            PairedFigure::Throughput => Self::Tps,
            PairedFigure::Latency => Self::Latency(LatencyFigure::Mean),
            PairedFigure::ServerCpu => Self::CpuPerTransaction,
            PairedFigure::ServerInstructions => Self::ServerInstructions,
            PairedFigure::Instructions => Self::Instructions,
        }
    }

    /// The figure of slices that it is; `None` if slices do not measure it.
    pub fn paired_figure(&self) -> Option<PairedFigure> {
        let of_slices = PairedFigure::VARIANTS.iter().filter(|figure| **figure != PairedFigure::Instructions);
        of_slices.copied().find(|figure| Self::of_paired(*figure) == *self)
    }

    /// Whether it is the throughput of the measured workload, or of one of its scripts.
    pub fn is_throughput(&self) -> bool {
        match self {
            Self::Phase { metric, .. } => metric.is_throughput(),
            _ => {
                matches!(self, Self::Tps | Self::Rows | Self::NewOrders | Self::Script { latency: None, .. })
            }
        }
    }

    /// Whether a cell's rate decides it: the throughput of an open loop is the schedule's.
    pub fn is_scheduled(&self, cell: &RecordedCell) -> bool {
        if let Self::Phase { phase, metric } = self {
            return cell.of_phase(phase).is_some_and(|cell| metric.is_scheduled(&cell));
        }
        self.is_throughput() && cell.is_open_loop()
    }

    /// Whether a saturated driver decides it.
    pub fn depends_on_driver(&self) -> bool {
        use BlockFigure::HitRatio;
        match self {
            Self::Blocks(HitRatio) => false,
            Self::Phase { metric, .. } => metric.depends_on_driver(),
            Self::Tps
            | Self::Latency(_)
            | Self::Rows
            | Self::NewOrders
            | Self::WorstSecond
            | Self::LongestStall
            | Self::Background { .. }
            | Self::Script { .. }
            | Self::Blocks(_) => true,
            _ => false,
        }
    }

    /// The spreads at which its runs are noisy and wide.
    pub fn spread(&self) -> Spread {
        match self {
            Self::Phase { metric, .. } => metric.spread(),
            Self::Latency(LatencyFigure::P95)
            | Self::Background { latency: Some(LatencyFigure::P95), .. }
            | Self::Script { latency: Some(LatencyFigure::P95), .. } => Spread::P95,
            Self::Latency(LatencyFigure::P99)
            | Self::Background { latency: Some(LatencyFigure::P99), .. }
            | Self::Script { latency: Some(LatencyFigure::P99), .. } => Spread::P99,
            _ => Spread::MEAN,
        }
    }
}

/// How a figure of merit is shown.
pub(crate) const fn presentation(merit: Merit) -> Presentation {
    let (label, unit, factor, secondary) = match merit {
        Merit::Throughput => ("transactions per second", "TPS", 1.0, None),
        Merit::Latency => ("99th percentile of latency, ms", "ms", 1e-3, Some("mean, ms")),
        Merit::Length => ("mean length of a transaction, s", "s", 1e-6, Some("× 1 client")),
        Merit::Blocks => ("blocks per second", "blocks/s", 1.0, Some("read/s")),
        Merit::NewOrders => ("new orders per minute", "orders/min", 1.0, None),
        Merit::Instructions => ("instructions per transaction", "instructions", 1.0, None),
    };
    Presentation { label, unit, factor, secondary }
}

/// Word for the better direction.
pub(crate) const fn better(merit: Merit) -> &'static str {
    match merit.better() {
        Better::Higher => "higher",
        _ => "lower",
    }
}

/// Blocks that a trial's server visited and read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockRates {
    /// Visited per second.
    pub visited: Option<f64>,
    /// Read per second, as they were not in shared buffers.
    pub read: Option<f64>,
}

impl BlockRates {
    /// Rates in the window of a trial whose metrics were read.
    pub(crate) fn new(record: &TrialRecord) -> Self {
        let Some(window) = Window::from_record(record) else { return Self::default() };
        let value = |figure: BlockFigure| figure.value(record, window.from_us, window.to_us);
        Self { visited: value(BlockFigure::Visited), read: value(BlockFigure::PhysicalReads) }
    }
}

/// The figure of merit of a trial and the one next to it, in their metrics' units, from its head or, where that lacks them, from
/// its rates of `blocks` and the results of its `scripts`.
pub(crate) fn figures(
    merit: Merit,
    trial: &Trial,
    blocks: Option<BlockRates>,
    scripts: &[ScriptSummary],
) -> [Option<f64>; 2] {
    match merit {
        Merit::Blocks => {
            let blocks = blocks.unwrap_or_default();
            [blocks.visited, blocks.read]
        }
        Merit::NewOrders => {
            let of_script = scripts.iter().find(|summary| summary.script == NEW_ORDER_SCRIPT);
            [of_script.map(|summary| summary.tps * SECONDS_PER_MINUTE), None]
        }
        _ => [Some(Metric::of(merit)), Metric::secondary(merit)].map(|metric| metric?.head_value(trial)),
    }
}
