//! `--probe-threads`: whether another number of threads of the driver would give more, by short loads that alternate.

use std::time::Duration;

use driver::Load;
use script::Seeds;
use serde::Serialize;
use stats::{Interval, Logs};

use crate::error::RunError;
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::measure::{Measurement, measure};

/// Loads with each number of threads.
const ROUNDS: usize = 16;

/// Length of one of them. If transactions are long, it lasts for so many of each client, up to a limit.
const LENGTH: Duration = Duration::from_millis(250);
const MAX_LENGTH: Duration = Duration::from_secs(2);
const MIN_TRANSACTIONS: f64 = 50.0;

/// Load before its measured window.
const WARMUP: Duration = Duration::from_millis(100);

/// Probability that at least one interval does not contain its ratio.
const ALPHA: f64 = 0.01;

/// Gain above which the number of threads limits a load.
const MAX_GAIN: f64 = 0.05;

/// Throughput of a load with other numbers of threads.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadsProbe {
    /// Number of clients.
    pub clients: u32,
    /// Number of the load's threads.
    pub threads: u32,
    /// Geometric mean of the throughput with them.
    pub tps: f64,
    /// Number of loads with each number of threads.
    pub rounds: usize,
    /// Length of each load.
    pub length_us: f64,
    /// Probability that all intervals contain their ratios.
    pub confidence: f64,
    /// Other numbers of threads.
    pub alternatives: Vec<Alternative>,
}

/// Throughput with another number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Alternative {
    /// Number of threads.
    pub threads: u32,
    /// Geometric mean of the throughput.
    pub tps: f64,
    /// Ratio to the throughput with the load's own threads, and its confidence interval.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl ThreadsProbe {
    /// The other number of threads with the highest throughput of those that certainly give more than 5 % more.
    pub fn limit(&self) -> Option<&Alternative> {
        let more = self.alternatives.iter().filter(|other| other.low > 1.0 + MAX_GAIN);
        more.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// Whether no other number of threads gives more than 5 % more, with certainty.
    pub fn is_sound(&self) -> bool {
        self.alternatives.iter().all(|other| other.high <= 1.0 + MAX_GAIN)
    }

    /// The conclusion in a sentence.
    pub fn conclusion(&self) -> String {
        let Self { clients, threads, .. } = self;
        match self.limit() {
            Some(Alternative { threads: other, ratio, .. }) => format!(
                "{clients} clients: the driver is the limit, {other} threads give {ratio:.2} times the throughput of {threads}"
            ),
            None if self.is_sound() => {
                format!("{clients} clients: no other number of threads gives 5% more than {threads}")
            }
            None => format!(
                "{clients} clients: not decided, a gain of 5% by other threads than {threads} is within an interval"
            ),
        }
    }

    /// The throughputs with the load's own threads, then with each alternative, by round.
    fn new(clients: u32, counts: &[u32], tps: &[Vec<f64>], length: Duration) -> Option<Self> {
        let ([threads, others @ ..], [own, tps_of_others @ ..]) = (counts, tps) else { return None };
        let level = 1.0 - ALPHA / others.len().max(1) as f64;
        let alternative = |(&threads, tps): (&u32, &Vec<f64>)| {
            let ratios = Logs::new(tps.iter().zip(own).map(|(other, own)| other / own))?;
            let Interval { low, high } = ratios.confidence_interval(level)?;
            let tps = Logs::new(tps.iter().copied())?.mean().exp();
            Some(Alternative { threads, tps, ratio: ratios.mean().exp(), low, high })
        };
        Some(Self {
            clients,
            threads: *threads,
            tps: Logs::new(own.iter().copied())?.mean().exp(),
            rounds: own.len(),
            length_us: length.as_secs_f64() * 1e6,
            confidence: 1.0 - ALPHA,
            alternatives: others.iter().zip(tps_of_others).map(alternative).collect::<Option<_>>()?,
        })
    }
}

/// Alternates short loads with the load's threads and with each of the other numbers, of which there is at least one.
/// `measured` is the load as it ran, `seed` that of its random numbers.
///
/// # Errors
/// A load can't be run; a client is aborted; no transaction ends in a load; the user interrupts.
pub(crate) fn probe_threads(
    load: &Load,
    others: &[u32],
    measured: &Measurement,
    seed: u64,
    interrupt: &Interrupt,
    live: &mut Live<'_>,
) -> Result<ThreadsProbe, RunError> {
    let counts: Vec<u32> = [load.threads].into_iter().chain(others.iter().copied()).collect();
    let length = length(measured, load.clients());
    let doing = || "probing other numbers of threads".to_owned();
    let loads = ROUNDS * counts.len();
    let takes = (length + WARMUP) * loads as u32;
    live.line(&format!(
        "{} with {} clients: {loads} loads, {} s in all",
        doing(),
        load.clients(),
        takes.as_secs_f64().round()
    ));
    let mut tps = vec![Vec::new(); counts.len()];
    for slice in order(counts.len()) {
        interrupt.check(doing)?;
        let threads = counts[slice.which];
        // Other random numbers than the load's: scripts may insert what they draw.
        let seed = seed.wrapping_add(slice.number);
        let clients = load.main.clients as usize;
        let part = Load {
            threads,
            seeds: Seeds::draw(seed, clients, threads as usize, load.seeds.default_seed.is_none()),
            length: Some(length),
            warmup: WARMUP,
            interval: length,
            per_command: false,
            ..load.clone()
        };
        let part = measure(part, interrupt.control(), &mut Live::new(None), None, &|_| false)?;
        interrupt.check(doing)?;
        if let Some(cause) = part.aborts.first() {
            return Err(RunError::ProbeAborted { threads, cause: cause.clone() });
        }
        tps[slice.which].push(transactions(&part) as f64 * 1e9 / part.outcome.window_ns as f64);
    }
    ThreadsProbe::new(load.clients(), &counts, &tps, length).ok_or(RunError::ProbeTooShort { length })
}

/// One load of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    /// From 1.
    number: u64,
    /// Place of its number of threads.
    which: usize,
}

/// The loads in their order. Within a round each number of threads has one, and the order is reversed in every other round.
fn order(counts: usize) -> impl Iterator<Item = Slice> {
    let which = (0..ROUNDS).flat_map(move |round| {
        (0..counts).map(move |place| if round % 2 == 0 { place } else { counts - 1 - place })
    });
    (1..).zip(which).map(|(number, which)| Slice { number, which })
}

/// Length of the loads, by the mean time that a client had for a transaction.
fn length(measured: &Measurement, clients: u32) -> Duration {
    let window = Duration::from_nanos(measured.outcome.window_ns);
    let count = transactions(measured).max(1) as f64;
    let wanted = window.as_secs_f64() * f64::from(clients) / count * MIN_TRANSACTIONS;
    Duration::from_secs_f64(wanted.clamp(LENGTH.as_secs_f64(), MAX_LENGTH.as_secs_f64()))
}

/// Successful transactions of the window.
fn transactions(measured: &Measurement) -> u64 {
    measured.intervals.iter().map(|interval| interval.transactions).sum()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use script::RandomState;

    use super::*;

    /// A probe with these throughputs, of which all but the first are alternately higher and lower.
    fn probe(means: &[(u32, f64)], spread: f64) -> ThreadsProbe {
        let counts: Vec<u32> = means.iter().map(|(threads, _)| *threads).collect();
        let tps = |(place, (_, mean)): (usize, &(u32, f64))| {
            let shift = |round: usize| if round.is_multiple_of(2) { spread } else { -spread };
            (0..ROUNDS).map(|round| if place > 0 { mean * shift(round).exp() } else { *mean }).collect()
        };
        let tps: Vec<Vec<f64>> = means.iter().enumerate().map(tps).collect();
        ThreadsProbe::new(8, &counts, &tps, LENGTH).unwrap()
    }

    #[test]
    fn a_gain_is_found_where_it_is_certain() {
        let judge = |means: &[(u32, f64)], spread| {
            let probe = probe(means, spread);
            (probe.limit().map(|best| best.threads), probe.is_sound())
        };
        assert_eq!(judge(&[(1, 100.0), (2, 120.0), (4, 130.0)], 0.01), (Some(4), false));
        assert_eq!(judge(&[(2, 100.0), (1, 80.0), (4, 101.0)], 0.01), (None, true));
        assert_eq!(judge(&[(2, 100.0), (1, 80.0), (4, 108.0)], 0.3), (None, false));
        assert_eq!(judge(&[(2, 100.0), (4, 103.0)], 0.01), (None, true), "below the bound");
    }

    /// The rates in docs/bench.md, of loads that vary by 10 % around throughputs in these ratios to the load's own.
    #[test]
    fn rates_of_gains_that_are_found() {
        let mut random = RandomState::from_seed(1);
        let mut found = |ratios: [f64; 2]| {
            let times = 2000;
            let hits = (0..times).filter(|_| {
                let mut loads = |mean: f64| -> Vec<f64> {
                    (0..ROUNDS).map(|_| mean * (0.1 * normal(&mut random)).exp()).collect()
                };
                let tps = [1.0, ratios[0], ratios[1]].map(&mut loads);
                ThreadsProbe::new(8, &[2, 1, 4], &tps, LENGTH).unwrap().limit().is_some()
            });
            hits.count() as f64 / f64::from(times)
        };
        let rates = [[1.05, 1.05], [1.0, 0.9], [1.15, 0.9], [1.3, 1.1]].map(&mut found);
        assert!(rates[0] < 0.01 && rates[1] < 0.01 && rates[2] > 0.2 && rates[3] > 0.97, "{rates:?}");
    }

    /// A normal variate, by Box and Muller.
    fn normal(random: &mut RandomState) -> f64 {
        (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (TAU * random.f64()).cos()
    }

    #[test]
    fn each_number_of_threads_is_as_often_early_as_late_in_a_round() {
        let places: Vec<usize> = order(3).map(|slice| slice.which).collect();
        assert_eq!(places[..6], [0, 1, 2, 2, 1, 0]);
        assert_eq!(places.len(), 3 * ROUNDS);
        let numbers: Vec<u64> = order(3).map(|slice| slice.number).collect();
        assert_eq!((numbers[0], numbers.len()), (1, numbers[numbers.len() - 1] as usize));
    }

    #[test]
    fn a_load_without_transactions_has_no_throughput() {
        assert!(ThreadsProbe::new(8, &[1, 2], &[vec![0.0, 1.0], vec![1.0, 1.0]], LENGTH).is_none());
    }
}
