//! Campaigns under random faults, for as long as wanted: no finished trial is lost or run twice, and nothing is left
//! behind. `make soak` runs it; `SOAK_SECONDS` is its length, and `SOAK_SEED` repeats the faults of an earlier run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that panics has failed")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it reports its progress")]

mod counts;
mod damage;
mod faults;
mod leftovers;
mod rounds;
mod site;
mod small_disk;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use counts::Counts;
use rounds::Round;
use site::Site;

const DEFAULT_SECONDS: u64 = 3600;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
#[ignore = "runs for an hour: make soak"]
fn finished_trials_survive_faults_and_nothing_is_left() {
    let length = Duration::from_secs(variable("SOAK_SECONDS").unwrap_or(DEFAULT_SECONDS));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = variable("SOAK_SEED").unwrap_or_else(now);
    println!("soak for {} s, SOAK_SEED={seed}", length.as_secs());
    let mut rng = fastrand::Rng::with_seed(seed);
    let site = Site::new();
    let mut counts = Counts::default();
    let begun = Instant::now();
    for number in 1.. {
        let round = Round::choose(number, &mut rng);
        println!("{:>5} s  round {number}: {round}", begun.elapsed().as_secs());
        round.run(&site, &mut rng, &mut counts);
        counts.rounds += 1;
        if begun.elapsed() >= length {
            break;
        }
    }
    println!("{counts}");
    assert!(counts.violations().is_empty(), "SOAK_SEED={seed}: {:#?}", counts.violations());
}
