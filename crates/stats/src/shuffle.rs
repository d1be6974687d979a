//! Random permutations and draws, and p-values from permutations.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Permutations after which a p far from the level is accepted, for up to [`FEW`] values and for more. Near the level,
/// there are ten times as many.
const PERMUTATIONS: (usize, usize) = (999, 299);
/// Number of values up to which permutations take negligible time.
const FEW: usize = 200;
/// The factor from the level, in either direction, at which p is far from it.
const FAR: f64 = 3.0;

/// p from successive permutations of `n` values, each of which is as good as observed or not, if it is at most `alpha`.
///
/// It is (1 + k)/(1 + R), with k of R permutations as good. They end as soon as p cannot fall to `alpha`, and early if
/// p is far from it: there are 999 for up to 200 values and 299 for more (or as many as p needs to be far below
/// `alpha`), and ten times as many if p after these is between a third and three times `alpha`.
///
/// Sources: Phipson and Smyth, "Permutation P-values Should Never Be Zero", Statistical Applications in Genetics and
/// Molecular Biology 9 (2010); Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78 (1991), and Gandy,
/// "Sequential Implementation of Monte Carlo Tests With Uniformly Bounded Resampling Risk", Journal of the American
/// Statistical Association 104 (2009), for ending early.
pub(crate) fn p_of_chance(alpha: f64, n: usize, mut next_is_as_good: impl FnMut() -> bool) -> Option<f64> {
    let first = if n <= FEW { PERMUTATIONS.0 } else { PERMUTATIONS.1 };
    let first = first.max((FAR / alpha).round() as usize - 1);
    let last = 10 * (first + 1) - 1;
    // With this many, p is too large even if no other follows.
    let (far_too_many, too_many) =
        ((FAR * alpha * (first + 1) as f64) as usize, (alpha * (last + 1) as f64) as usize);
    // A third of alpha is far below it, however it is rounded.
    let is_far_below = |p: f64| p * FAR <= alpha * (1.0 + 1e-9);
    let mut as_good = 0;
    for permutation in 1..=last {
        as_good += usize::from(next_is_as_good());
        let p = (1 + as_good) as f64 / (1 + permutation) as f64;
        match permutation {
            _ if as_good >= too_many || permutation <= first && as_good >= far_too_many => return None,
            _ if permutation == last || permutation == first && is_far_below(p) => return Some(p),
            _ => (),
        }
    }
    None
}

/// Shuffles the values, each order with the same probability.
///
/// Source: Durstenfeld, "Algorithm 235: Random Permutation", Communications of the ACM 7 (1964).
pub(crate) fn shuffle<T>(values: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..values.len()).rev() {
        values.swap(last, below(last + 1, random));
    }
}

/// A random number from 0 to `bound` − 1.
///
/// Source: Lemire, "Fast Random Integer Generation in an Interval", ACM Transactions on Modeling and Computer
/// Simulation 29 (2019), without its rejection, which for bounds below a million affects less than one draw in 10¹³.
pub(crate) fn below(bound: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}
