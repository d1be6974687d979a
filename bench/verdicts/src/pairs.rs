//! Comparisons in pairs: sessions are added until they are decided.

use rand_distr::StudentT;
use stats::{DecidingFigure, PairedSequence, Verdict, deciding, session_log_ratio};

use crate::comparisons::is_change;
use crate::random::{PairNoise, Random, Tails};
use crate::table::{Bound, Row, percent};

/// Pairs of a session, as in a campaign.
const PAIRS: usize = 15;
/// Other numbers of them.
const MORE_PAIRS: [usize; 3] = [20, 30, 45];
/// Time that starting and stopping a session's servers takes, in relation to that of a pair.
const RESTART_IN_PAIRS: usize = 14;
/// Sessions after which a comparison ends undecided.
const MAX_SESSIONS: usize = 1000;
/// Comparisons that are decided together.
const MATRIX: usize = 10;

/// A quiet machine, as measured: sessions spread by 4 %, pairs by 19 %.
const QUIET: PairNoise = PairNoise { session: 0.04, pair: 0.19, tails: Tails::Normal, drift: 0.0 };
/// Writes on it: sessions hardly differ by more than their pairs explain.
const WRITES: PairNoise = PairNoise { session: 0.01, pair: 0.24, ..QUIET };
/// One on which other programs run.
const BUSY: PairNoise = PairNoise { session: 0.11, pair: 0.33, ..QUIET };

/// CPU time per transaction on the latter, as measured next to compilers.
const BUSY_CPU: PairNoise = PairNoise { session: 0.015, pair: 0.05, ..QUIET };

pub(crate) fn rows(random: &mut Random, times: usize) -> Vec<Row> {
    let Ok(student) = StudentT::new(3.0) else { return Vec::new() };
    let heavy_tails = PairNoise { tails: Tails::Heavy(student), ..QUIET };
    let drift = PairNoise { drift: 0.5, ..QUIET };
    let mut rows = Vec::new();
    for (conditions, noise, ratio, margin, times) in [
        ("quiet", QUIET, 1.0, 1.05, times),
        ("heavy tails", heavy_tails, 1.0, 1.05, times),
        ("drifting by 50%", drift, 1.0, 1.05, times),
        ("writes", WRITES, 1.0, 1.05, times),
        ("busy", BUSY, 1.0, 1.05, times / 5),
        ("quiet, margin 2%", QUIET, 1.0, 1.02, times / 5),
        ("quiet, −3%", QUIET, 0.97, 1.05, times),
        ("quiet, −5%", QUIET, 0.95, 1.05, times),
        ("heavy tails, −5%", heavy_tails, 0.95, 1.05, times),
        ("drifting by 50%, −5%", drift, 0.95, 1.05, times),
        ("writes, −5%", WRITES, 0.95, 1.05, times),
        ("busy, −5%", BUSY, 0.95, 1.05, times / 5),
        ("quiet, −2%, margin 2%", QUIET, 0.98, 1.02, times / 5),
        ("quiet, −8%", QUIET, 0.92, 1.05, times),
    ] {
        rows.extend(until_decided(random, times, conditions, noise, ratio, margin));
    }
    let what = format!("any false decision among {MATRIX} comparisons in pairs, quiet");
    rows.push(Row::share(what, times / 10, Bound::AtMost(0.01), || {
        (0..MATRIX).any(|_| {
            is_change(decide(random, PAIRS, QUIET, 1.0, PairedSequence::new(1.05, MATRIX)).verdict())
        })
    }));
    for (conditions, ratios, is_right, bound) in [
        ("no change, a false one", [1.0, 1.0], is_change as fn(Verdict) -> bool, Bound::AtMost(0.01)),
        ("no change, equivalent", [1.0, 1.0], |verdict| verdict == Verdict::Equivalent, Bound::AtLeast(0.99)),
        ("−2% and CPU time +5%, found", [0.98, 1.05], is_change, Bound::AtLeast(0.99)),
    ] {
        let what = format!("by throughput or CPU time, in pairs: busy, {conditions}");
        rows.push(Row::share(what, times / 5, bound, || is_right(decide_by_either(random, ratios))));
    }
    rows
}

/// Adds sessions on the busy machine until throughput or CPU time decides; the ratios are theirs.
fn decide_by_either(random: &mut Random, ratios: [f64; 2]) -> Verdict {
    let mut sequences = [(); 2].map(|()| PairedSequence::new(1.05, 2));
    loop {
        let figures = [(&sequences[0], true), (&sequences[1], false)];
        let figures =
            figures.map(|(sequence, higher_is_better)| DecidingFigure { sequence, higher_is_better });
        let verdict = sequences[deciding(&figures)].verdict();
        if !verdict.is_open() || sequences[0].sessions() == MAX_SESSIONS {
            return verdict;
        }
        for ((sequence, noise), ratio) in sequences.iter_mut().zip([BUSY, BUSY_CPU]).zip(ratios) {
            sequence.add(session_log_ratio(&random.session(PAIRS, ratio, noise)).unwrap_or_default());
        }
    }
}

fn until_decided(
    random: &mut Random,
    times: usize,
    conditions: &str,
    noise: PairNoise,
    ratio: f64,
    margin: f64,
) -> Vec<Row> {
    let what = |figure: &str| format!("{figure}, in pairs: {conditions}");
    let (mut sessions, mut held) = (Vec::new(), 0);
    let decided = Row::share(what("decided as it is"), times, Bound::AtLeast(0.99), || {
        let sequence = decide(random, PAIRS, noise, ratio, PairedSequence::new(margin, 1));
        sessions.push(sequence.sessions());
        held += usize::from(
            sequence.interval().is_none_or(|interval| (interval.low..=interval.high).contains(&ratio)),
        );
        match sequence.verdict() {
            Verdict::Equivalent => (1.0 / margin..=margin).contains(&ratio),
            Verdict::Regression => ratio < 1.0,
            _ => false,
        }
    });
    sessions.sort_unstable();
    let quantile = |share: f64| sessions[(share * (sessions.len() - 1) as f64) as usize] as f64;
    let mut rows = vec![
        decided,
        Row::new(
            what("interval at the decision holds the ratio"),
            held as f64 / times as f64,
            Bound::AtLeast(0.99),
            percent,
        ),
        Row::new(what("sessions, median"), quantile(0.5), Bound::Unbounded, whole),
        Row::new(what("sessions, 95th percentile"), quantile(0.95), Bound::Unbounded, whole),
    ];
    let mean = |sessions: &[usize]| sessions.iter().sum::<usize>() as f64 / sessions.len() as f64;
    let time = |pairs: usize, sessions: &[usize]| (RESTART_IN_PAIRS + pairs) as f64 * mean(sessions);
    let with_usual = time(PAIRS, &sessions);
    rows.extend(MORE_PAIRS.map(|pairs| {
        let sessions = |_| decide(random, pairs, noise, ratio, PairedSequence::new(margin, 1)).sessions();
        let sessions: Vec<usize> = (0..times.div_ceil(5)).map(sessions).collect();
        let figure = what(&format!("mean time with {pairs} pairs a session, of that with {PAIRS}"));
        Row::new(figure, time(pairs, &sessions) / with_usual, Bound::Unbounded, percent)
    }));
    rows
}

/// Adds sessions of so many pairs until they decide.
fn decide(
    random: &mut Random,
    pairs: usize,
    noise: PairNoise,
    ratio: f64,
    mut sequence: PairedSequence,
) -> PairedSequence {
    while sequence.verdict().is_open() && sequence.sessions() < MAX_SESSIONS {
        let log_ratio = session_log_ratio(&random.session(pairs, ratio, noise));
        sequence.add(log_ratio.unwrap_or_default());
    }
    sequence
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}
