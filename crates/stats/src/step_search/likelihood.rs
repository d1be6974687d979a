//! The likelihood of a position's level, for each noise, on a grid of levels.

/// Share of the sessions that are far off: something else ran.
const OUTLIERS: f64 = 0.03;

/// Their standard deviation, in that of the others.
const OUTLIER_SCALE: f64 = 5.0;

/// Standard deviations of builds, as log ratios, with their prior weights: how far code layout alone moves the figure. Rebuilding
/// programs with other link orders moves them by up to some per cent (Mytkowicz et al., "Producing Wrong Data Without Doing Anything
/// Obviously Wrong!", ASPLOS 2009; Curtsinger and Berger, "Stabilizer", ASPLOS 2013).
const BUILDS: [(f64, f64); 4] = [(0.002, 0.3), (0.006, 0.35), (0.012, 0.25), (0.025, 0.1)];

/// Number of standard deviations of sessions on the grid.
const SESSION_SDS: usize = 7;

/// The most levels of the grid.
const MAX_LEVELS: f64 = 400.0;

/// Noise of sessions and builds: the grid of standard deviations that posteriors integrate over.
#[derive(Clone, Debug)]
pub(super) struct Noises {
    /// Standard deviations of sessions, equally likely.
    pub(super) sessions: Vec<f64>,
    /// Each with all of these of builds, with their prior weights.
    pub(super) builds: [(f64, f64); BUILDS.len()],
}

impl Noises {
    /// The grid around the standard deviation of sessions of the ends, which differ by this. No noise is assumed to be less than
    /// the resolution of the levels: a twentieth of the difference.
    pub(super) fn new(session_sd: f64, difference: f64) -> Self {
        let low = (session_sd / 2.0).max(difference / 20.0).max(1e-5);
        let high = (session_sd * 2.5).max(difference / 4.0).max(2.0 * low);
        let ratio = (high / low).powf(1.0 / (SESSION_SDS - 1) as f64);
        let sessions = (0..SESSION_SDS).map(|at| low * ratio.powi(at as i32)).collect();
        Self { sessions, builds: BUILDS }
    }

    /// All combinations: the indices of both, and the prior weight.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let weight = 1.0 / self.sessions.len() as f64;
        (0..self.sessions.len()).flat_map(move |of| {
            self.builds.iter().enumerate().map(move |(at, build)| (of, at, weight * build.1))
        })
    }

    fn largest_build(&self) -> f64 {
        self.builds.iter().map(|(sd, _)| *sd).fold(0.0, f64::max)
    }
}

/// Levels, equally spaced.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// The last one's, as measured; the baseline's is 0.
    pub(super) end: f64,
    low: f64,
    step: f64,
    count: usize,
    /// Levels beyond both ends, for the luck of builds.
    beyond: usize,
}

impl Levels {
    /// Levels that contain the baseline's and that of the last position, as measured by so many sessions, with room for a step
    /// beyond either.
    pub(super) fn new(end: f64, noises: &Noises, sessions: usize) -> Self {
        let difference = end.abs();
        let session_sd = noises.sessions[SESSION_SDS / 2];
        let error = session_sd / (sessions.max(1) as f64).sqrt();
        let room = (1.2 * difference).max(4.0 * error).max(2.0 * noises.builds[1].0);
        let (low, high) = (end.min(0.0) - room, end.max(0.0) + room);
        let step = (error / 2.0).min(difference / 20.0).max((high - low) / MAX_LEVELS);
        let count = ((high - low) / step).ceil() as usize + 1;
        let beyond = (3.0 * noises.largest_build() / step).ceil() as usize;
        Self { end, low, step, count, beyond }
    }

    /// The levels, lowest first.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.count).map(|at| self.low + self.step * at as f64)
    }

    /// Weights of a normal distribution on the levels, which add up to 1.
    pub(super) fn normal(&self, mean: f64, sd: f64) -> Vec<f64> {
        normalized(self.values().map(|level| (-0.5 * ((level - mean) / sd).powi(2)).exp()).collect())
    }

    /// Equal weights.
    pub(super) fn flat(&self) -> Vec<f64> {
        vec![1.0 / self.count as f64; self.count]
    }
}

/// Weights that add up to 1; if all are 0, equal ones.
pub(super) fn normalized(mut weights: Vec<f64>) -> Vec<f64> {
    let (sum, count) = (weights.iter().sum::<f64>(), weights.len() as f64);
    weights.iter_mut().for_each(|weight| *weight = if sum > 0.0 { *weight / sum } else { 1.0 / count });
    weights
}

/// The likelihood of a position's level.
#[derive(Clone, Debug)]
pub(super) struct Likelihood {
    sessions: usize,
    /// Logarithms of the likelihood of the position's own level, which has the luck of its build, for each standard deviation of sessions.
    own: Vec<Vec<f64>>,
    /// For each of these and each standard deviation of builds, the likelihood of the common level.
    curves: Vec<Vec<Curve>>,
}

/// A likelihood on the levels, in relation to its largest value before the luck of builds.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    /// Logarithm of what it is in relation to.
    pub(super) log_scale: f64,
    /// By level.
    pub(super) values: Vec<f64>,
}

impl Likelihood {
    /// Without sessions.
    pub(super) fn new(levels: &Levels, noises: &Noises) -> Self {
        let count = levels.count + 2 * levels.beyond;
        Self { sessions: 0, own: vec![vec![0.0; count]; noises.sessions.len()], curves: Vec::new() }
    }

    /// Adds sessions.
    pub(super) fn add(&mut self, sessions: &[f64], levels: &Levels, noises: &Noises) {
        self.sessions += sessions.len();
        let first = levels.low - levels.step * levels.beyond as f64;
        for (own, sd) in self.own.iter_mut().zip(&noises.sessions) {
            for (at, log) in own.iter_mut().enumerate() {
                let level = first + levels.step * at as f64;
                let density = |value: &f64| log_density((value - level) / sd) - sd.ln();
                *log += sessions.iter().map(density).sum::<f64>();
            }
        }
        self.curves = self.own.iter().map(|own| curves(own, levels, noises)).collect();
    }

    /// Number of sessions.
    pub(super) fn sessions(&self) -> usize {
        self.sessions
    }

    /// The likelihood of the common level for a noise, by its indices.
    pub(super) fn curve(&self, session: usize, build: usize) -> &Curve {
        &self.curves[session][build]
    }
}

/// Logarithm of the density of a session's luck, in standard deviations: normal, with outliers.
fn log_density(x: f64) -> f64 {
    let usual = (1.0 - OUTLIERS) * (-0.5 * x * x).exp();
    let far = OUTLIERS / OUTLIER_SCALE * (-0.5 * (x / OUTLIER_SCALE).powi(2)).exp();
    // Where both vanish, as the wider one goes on.
    (usual + far).max(f64::MIN_POSITIVE).ln()
}

/// The likelihood of the common level for each standard deviation of builds.
fn curves(own: &[f64], levels: &Levels, noises: &Noises) -> Vec<Curve> {
    let log_scale = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let own: Vec<f64> = own.iter().map(|log| (log - log_scale).exp()).collect();
    let curve = |(sd, _): &(f64, f64)| {
        let reach = ((3.0 * sd / levels.step).round() as usize).min(levels.beyond);
        let weight = |off: usize| (-0.5 * (off as f64 * levels.step / sd).powi(2)).exp();
        let weights: Vec<f64> = (0..=reach).map(weight).collect();
        let sum = weights[0] + 2.0 * weights[1..].iter().sum::<f64>();
        let value = |at: usize| {
            let center = at + levels.beyond;
            let sides = (1..=reach).map(|off| weights[off] * (own[center - off] + own[center + off]));
            (weights[0] * own[center] + sides.sum::<f64>()) / sum
        };
        Curve { log_scale, values: (0..levels.count).map(value).collect() }
    };
    noises.builds.iter().map(curve).collect()
}
