//! Random numbers that each client and each thread draws, compared with pgbench itself.
//!
//! Recorded from Debian's pgbench 15.18 with `--random-seed=42`, by a server that keeps its input.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper may fail its test")]

use script::{RandomState, Seeds};

/// `-c 5 -j 2 -t 3`, the script `\set r random(1, 1000000)`, `SELECT :client_id, :r, :default_seed;`.
#[test]
fn clients_and_the_default_seed() {
    let mut seeds = Seeds::draw(42, 5, 2, false);
    let drawn: Vec<[i64; 3]> = seeds.clients.iter_mut().map(draw_three).collect();
    assert_eq!(
        drawn,
        [
            [668_251, 855_542, 665_859],
            [844_242, 649_374, 585_467],
            [802_035, 146_794, 695_680],
            [814_673, 829_722, 998_845],
            [110_815, 378_359, 285_601],
        ]
    );
    assert_eq!(seeds.default_seed, Some(3_163_695_393_723_252_040));
}

fn draw_three(client: &mut RandomState) -> [i64; 3] {
    std::array::from_fn(|_| client.range_i64(1, 1_000_000))
}

/// `-c 3 -j 3 -t 12` with scripts of weights 5, 3 and 2: the scripts that each thread's only client runs.
#[test]
fn threads_choose_scripts() {
    let mut seeds = Seeds::draw(42, 3, 3, false);
    assert_eq!(
        choices(&mut seeds),
        [
            [0, 1, 0, 2, 2, 0, 0, 1, 0, 0, 2, 0],
            [2, 2, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1],
            [2, 0, 2, 0, 1, 1, 0, 1, 1, 2, 0, 0],
        ]
    );
}

/// The same with `-Ddefault_seed=9`, which leaves the seed of threads one draw earlier.
#[test]
fn a_defined_default_seed_is_not_drawn() {
    let mut seeds = Seeds::draw(42, 3, 3, true);
    assert_eq!(seeds.default_seed, None);
    assert_eq!(
        choices(&mut seeds),
        [
            [1, 1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0],
            [1, 2, 1, 1, 0, 2, 2, 0, 0, 0, 1, 0],
            [2, 0, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1],
        ]
    );
}

fn choices(seeds: &mut Seeds) -> Vec<[usize; 12]> {
    let weights = [5, 3, 2];
    let choose = |random: &mut RandomState| {
        let mut rest = random.range_i64(0, weights.iter().sum::<i64>() - 1);
        weights
            .iter()
            .position(|weight| {
                rest -= weight;
                rest < 0
            })
            .unwrap()
    };
    seeds.threads.iter_mut().map(|thread| std::array::from_fn(|_| choose(&mut thread.choose))).collect()
}
