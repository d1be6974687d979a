//! Measurement in pairs: two servers that run at the same time, with load on one or the other in short slices.
//!
//! A *session* is one start of both servers; it leaves two trials, one per *side*. A *pair* is two slices next to each other,
//! one on each side, in an order drawn for each pair.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::merit::Merit;
use crate::message::Slice;
use crate::metrics::Better;
use crate::units::Span;

/// Pairs of a session, unless its servers take long to start. Fewer do not average out the noise within a session, more lengthen
/// it without changing what its servers have drawn. In simulations with the variances of loads as measured on two CPUs
/// (`bench/verdicts`), none of 20, 30 and 45 decides all of them as soon: they take 93 to 109 %, 88 to 126 % and 87 to 154 % of its time.
pub const PAIRS: u32 = 15;

/// Share of a slice, at its start, whose transactions do not count: caches belong to the other side then.
pub const GUARD: f64 = 0.1;

/// Default length of the slices of one side in a session, together.
pub(crate) const DEFAULT_DURATION: Span = Span::from_us(750_000);

/// Default load of each side before them. With 200 ms, reads from 256 MB of shared buffers against 4 MB differed by 15 % in the
/// first pair, and by 21 % from the third on.
pub(crate) const DEFAULT_WARMUP: Span = Span::from_us(300_000);

/// Side of a comparison.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Side {
    /// The baseline.
    A,
    /// What is compared with it.
    B,
}

impl Side {
    /// Its name in bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Its place among both, 0 or 1.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A trial that is one side of a session. The other side's trial has the same run and session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairedTrial {
    /// Number of the session in its run, from 1.
    pub session: u32,
    /// The trial's side.
    pub side: Side,
    /// Its slices in the order of the pairs, without warm-up: the first of each side are a pair, and so on.
    pub slices: Vec<MeasuredSlice>,
}

impl PairedTrial {
    /// Throughput of a closed or an open loop with this many clients in all its slices, transactions per second; none
    /// without transactions.
    pub fn tps(&self, clients: u32) -> Option<f64> {
        let sum = |of: fn(&Slice) -> u64| self.slices.iter().map(|slice| of(&slice.load)).sum::<u64>();
        tps(sum(|load| load.transactions), sum(|load| load.client_us), clients)
    }

    /// Time that so many transactions take at the throughput of its slices, in microseconds: of those of a window, the
    /// window without its pauses. None without transactions in the slices.
    pub fn load_time_us(&self, transactions: f64) -> Option<f64> {
        let us: u64 =
            self.slices.iter().map(|slice| slice.load.end_us.saturating_sub(slice.load.start_us)).sum();
        let in_slices: u64 = self.slices.iter().map(MeasuredSlice::all_transactions).sum();
        (in_slices > 0).then(|| us as f64 * transactions / in_slices as f64)
    }

    /// CPU time of the server per transaction of its slices, in microseconds, those of the guards included; none if unknown.
    pub fn server_cpu_us_per_transaction(&self) -> Option<f64> {
        self.per_transaction(|slice| slice.server_cpu_us)
    }

    /// Instructions of the server's programs per transaction of its slices, those of the guards included; none if unknown.
    pub fn server_instructions_per_transaction(&self) -> Option<f64> {
        self.per_transaction(|slice| slice.server_instructions)
    }

    fn per_transaction(&self, of: fn(&MeasuredSlice) -> Option<u64>) -> Option<f64> {
        let known = self.slices.iter().filter_map(|slice| Some((of(slice)?, slice.all_transactions())));
        let (sum, transactions) = known.fold((0, 0), |all, slice| (all.0 + slice.0, all.1 + slice.1));
        (transactions > 0).then(|| sum as f64 / transactions as f64)
    }
}

/// Throughput of clients that were busy for `client_us` in all, transactions per second.
///
/// Each client counts from its first begin to its last end, so transactions that the slice's end cuts off do not bias it.
fn tps(transactions: u64, client_us: u64, clients: u32) -> Option<f64> {
    (transactions > 0 && client_us > 0)
        .then(|| transactions as f64 * f64::from(clients) * 1e6 / client_us as f64)
}

/// A slice of load on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredSlice {
    /// Its transactions, as the driver counted them.
    pub load: Slice,
    /// CPU time of the server's processes, user and system, from its start to the end of its last transaction, in microseconds;
    /// none if unknown.
    pub server_cpu_us: Option<u64>,
    /// The same in the pause before it, in which the other side had the load: disturbance of the other side.
    pub paused_cpu_us: Option<u64>,
    /// Instructions of the server's programs in that time, without the kernel's; none where the CPU does not count them.
    pub server_instructions: Option<u64>,
}

impl MeasuredSlice {
    /// Throughput of a closed loop with this many clients, transactions per second; none without transactions.
    pub fn tps(&self, clients: u32) -> Option<f64> {
        tps(self.load.transactions, self.load.client_us, clients)
    }

    /// Mean latency from the intended start, in microseconds; none without transactions.
    pub fn latency_us(&self) -> Option<f64> {
        (self.load.transactions > 0).then(|| self.load.latency_us as f64 / self.load.transactions as f64)
    }

    /// Transactions that began in it, those of the guard included.
    pub const fn all_transactions(&self) -> u64 {
        self.load.transactions + self.load.failed + self.load.guarded
    }

    /// CPU time of the server per transaction, in microseconds, those of the guard included; none if unknown.
    pub fn server_cpu_us_per_transaction(&self) -> Option<f64> {
        self.per_transaction(self.server_cpu_us)
    }

    fn per_transaction(&self, sum: Option<u64>) -> Option<f64> {
        let all = self.all_transactions();
        sum.filter(|_| all > 0).map(|sum| sum as f64 / all as f64)
    }
}

/// A figure whose ratio pairs measure: each pair of slices, or of whole trials ([`crate::session`]), gives a ratio.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, EnumString, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PairedFigure {
    /// Transactions per second, of a closed loop.
    Throughput,
    /// Mean latency from the intended start.
    Latency,
    /// CPU time of the server per transaction, which steal and other processes hardly affect.
    ServerCpu,
    /// Instructions of the server's programs per transaction, where the CPU counts them.
    ServerInstructions,
    /// Instructions of client, server and kernel per transaction, where a virtual machine counts them: of whole trials.
    Instructions,
}

impl PairedFigure {
    /// The figure that decides comparisons of cells with this merit. Slices are too short for a 99th percentile: the mean takes its
    /// place. Of new orders, it is all transactions: the mix is the same on both sides.
    pub const fn of(merit: Merit) -> Self {
        match merit {
            Merit::Throughput | Merit::Blocks | Merit::NewOrders => Self::Throughput,
            Merit::Latency | Merit::Length => Self::Latency,
            Merit::Instructions => Self::Instructions,
        }
    }

    /// The figures that decide comparisons of cells with this merit, the one that matters most first; `with_cpu` if the server's
    /// CPU time is one.
    pub fn deciding(merit: Merit, with_cpu: bool) -> Vec<Self> {
        std::iter::once(Self::of(merit)).chain(with_cpu.then_some(Self::ServerCpu)).collect()
    }

    /// Its name in documents.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Direction in which it improves.
    pub const fn better(self) -> Better {
        match self {
            Self::Throughput => Better::Higher,
            Self::Latency | Self::ServerCpu | Self::ServerInstructions | Self::Instructions => Better::Lower,
        }
    }

    /// Its value in a slice with this many clients; none if unknown.
    pub fn value(self, slice: &MeasuredSlice, clients: u32) -> Option<f64> {
        match self {
            Self::Throughput => slice.tps(clients),
            Self::Latency => slice.latency_us(),
            Self::ServerCpu => slice.server_cpu_us_per_transaction(),
            Self::ServerInstructions => slice.per_transaction(slice.server_instructions),
            Self::Instructions => None,
        }
    }

    /// Its values in the pairs of a session, (a, b), whose sides have so many clients; pairs in which one is unknown are left out.
    pub fn pairs(self, [a, b]: [&PairedTrial; 2], clients: [u32; 2]) -> Vec<(f64, f64)> {
        let slices = a.slices.iter().zip(&b.slices);
        slices.filter_map(|(a, b)| Some((self.value(a, clients[0])?, self.value(b, clients[1])?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_slice_are_those_of_its_clients_time() {
        let load = Slice {
            start_us: 0,
            pause_us: 50_000,
            end_us: 51_000,
            transactions: 300,
            failed: 0,
            guarded: 100,
            client_us: 180_000,
            latency_us: 150_000,
            service_us: None,
        };
        let slice = MeasuredSlice {
            load,
            server_cpu_us: Some(20_000),
            paused_cpu_us: None,
            server_instructions: None,
        };
        let (tps, latency_us, cpu_us) = (
            slice.tps(4).unwrap(),
            slice.latency_us().unwrap(),
            slice.server_cpu_us_per_transaction().unwrap(),
        );
        assert!(
            (tps - 6666.7).abs() < 0.1 && latency_us == 500.0 && cpu_us == 50.0,
            "{tps} {latency_us} {cpu_us}"
        );
        let none = Slice { transactions: 0, guarded: 0, client_us: 0, ..load };
        let none = MeasuredSlice { load: none, ..slice };
        assert_eq!(
            (none.tps(4), none.latency_us(), none.server_cpu_us_per_transaction()),
            (None, None, None)
        );
    }
}
