//! Simulates the critical values of `stats::Split`, the 1% level of T for samples of one normal distribution: `cargo
//! run --release -p stats --example critical_split [SAMPLES [SEED]]`. Results are in `tests/data/critical-split.csv`.
//!
//! `critical` is the quantile of T at 99%, `standard_error` half the distance of the order statistics one binomial
//! standard deviation of ranks below and above it.

use std::env;
use std::error::Error;
use std::io::{Write, stdout};

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::Split;

const LEVEL: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let samples: usize = arguments.next().map_or(Ok(10_000_000), |word| word.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(20_080_619), |word| word.parse())?;
    writeln!(stdout(), "n,critical,standard_error,samples,seed")?;
    for n in 3..=50 {
        let (quantile, standard_error) = simulate(n, samples, seed);
        writeln!(stdout(), "{n},{quantile:.4},{standard_error:.4},{samples},{seed}")?;
    }
    Ok(())
}

/// The 99% quantile of T, and its standard error.
fn simulate(n: usize, samples: usize, seed: u64) -> (f64, f64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed + n as u64);
    let mut values = vec![0.0_f64; n];
    let mut ts: Vec<f64> = (0..samples)
        .filter_map(|_| {
            values.fill_with(|| random.sample(StandardNormal));
            values.sort_unstable_by(f64::total_cmp);
            Split::from_ascending(&values).map(|split| split.t)
        })
        .collect();
    ts.sort_unstable_by(f64::total_cmp);
    let rank = (samples as f64 * (1.0 - LEVEL)) as usize;
    let deviation = (samples as f64 * LEVEL * (1.0 - LEVEL)).sqrt() as usize;
    (ts[rank], (ts[rank + deviation] - ts[rank - deviation]) / 2.0)
}
