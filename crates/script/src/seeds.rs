//! Seeding of the generators, in pgbench's order.

use crate::RandomState;

/// The generators of a run, seeded from `--random-seed` in the order in which pgbench (15 to 18) seeds its own, so that
/// the same seed sends the same statements.
///
/// A base generator is seeded with the random seed. Each generator of the run is then seeded with the next 64 bits of
/// the base one, in this order:
///
/// 1. for each client, the one of its script's random functions;
/// 2. `:default_seed` takes the next 64 bits as they are, unless `-D` defines it, which draws nothing;
/// 3. for each thread: the choice of scripts, the throttle, the sampling of the log.
///
/// A client keeps its generator for the whole run. When a transaction is retried, pgbench resets the generator to its
/// state at the start of the transaction (clone it there). With a single script the choice draws nothing; with several
/// each transaction draws `range_i64(0, sum of the weights - 1)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds {
    /// The generators of the scripts' random functions, by client.
    pub clients: Vec<RandomState>,
    /// The value of `:default_seed`, or `None` if it is defined already.
    pub default_seed: Option<i64>,
    /// The generators of the threads.
    pub threads: Vec<ThreadSeeds>,
}

/// The generators of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSeeds {
    /// Chooses among several scripts.
    pub choose: RandomState,
    /// Spaces the transactions of `--rate`.
    pub throttle: RandomState,
    /// Samples the log of `--sampling-rate`.
    pub sample: RandomState,
}

impl Seeds {
    /// Creates the generators of a run with this many clients and threads. `default_seed_defined`: whether `-D` defines
    /// `:default_seed`.
    pub fn draw(random_seed: u64, clients: usize, threads: usize, default_seed_defined: bool) -> Self {
        let mut base = RandomState::from_seed(random_seed);
        Seeds {
            clients: (0..clients).map(|_| next(&mut base)).collect(),
            default_seed: (!default_seed_defined).then(|| base.next_u64() as i64),
            threads: (0..threads)
                .map(|_| ThreadSeeds {
                    choose: next(&mut base),
                    throttle: next(&mut base),
                    sample: next(&mut base),
                })
                .collect(),
        }
    }
}

fn next(base: &mut RandomState) -> RandomState {
    RandomState::from_seed(base.next_u64())
}
