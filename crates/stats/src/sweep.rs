//! Throughput by number of clients.

/// The knee is at this share of the peak throughput.
const KNEE_SHARE: f64 = 0.95;
/// The largest root mean square residual of a law that [fits](Usl::fits).
const MAX_RMS: f64 = 0.05;
/// The largest residual of a law that fits.
const MAX_RESIDUAL: f64 = 0.10;

/// Throughputs by number of clients, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    points: Vec<(u32, f64)>,
}

/// A change of throughput from one number of clients to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The smaller number of clients.
    pub from: u32,
    /// The next larger one.
    pub to: u32,
    /// The ratio of the throughput with the larger number to that with the smaller.
    pub ratio: f64,
}

/// The universal scalability law: with N clients, throughput is λN / (1 + σ(N − 1) + κN(N − 1)).
///
/// Source: Gunther, "Guerrilla Capacity Planning" (2007), chapter 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// λ: the throughput of a single client.
    pub lambda: f64,
    /// σ: contention, the share of serialized work.
    pub sigma: f64,
    /// κ: coherency, the cost of each pair of clients.
    pub kappa: f64,
    /// The root of the mean squared residual, of logarithms: 0.05 is 5%.
    pub rms: f64,
    /// The largest absolute residual.
    pub worst: f64,
}

impl Sweep {
    /// A sweep of these numbers of clients with their throughputs (geometric means or medians of the runs), in any
    /// order; `None` if there are none, a number of clients is 0 or occurs twice, or a throughput is not a positive
    /// finite number.
    pub fn new(points: impl IntoIterator<Item = (u32, f64)>) -> Option<Self> {
        let mut points: Vec<(u32, f64)> = points.into_iter().collect();
        points.sort_by_key(|(clients, _)| *clients);
        let is_twice = points.windows(2).any(|pair| pair[0].0 == pair[1].0);
        let is_good = |(clients, value): &(u32, f64)| *clients > 0 && *value > 0.0 && value.is_finite();
        (!points.is_empty() && !is_twice && points.iter().all(is_good)).then_some(Self { points })
    }

    /// The largest throughput and its number of clients; the fewest clients if there are several.
    pub fn peak(&self) -> (u32, f64) {
        self.points[1..]
            .iter()
            .fold(self.points[0], |peak, point| if point.1 > peak.1 { *point } else { peak })
    }

    /// The fewest clients with at least 95% of the peak: more add little but waiting.
    pub fn knee(&self) -> u32 {
        let enough = KNEE_SHARE * self.peak().1;
        self.points
            .iter()
            .find(|(_, value)| *value >= enough)
            .map_or(self.points[0].0, |(clients, _)| *clients)
    }

    /// The greatest loss from one number of clients to the next; `None` if throughput never falls.
    pub fn steepest_step(&self) -> Option<Step> {
        let steps = self.points.windows(2).map(|pair| Step {
            from: pair[0].0,
            to: pair[1].0,
            ratio: pair[1].1 / pair[0].1,
        });
        steps.filter(|step| step.ratio < 1.0).min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// Fits the universal scalability law, σ and κ not negative, by least squares of logarithms; `None` for fewer than
    /// 4 points. Show it only if it [fits](Usl::fits).
    ///
    /// By the method of Levenberg and Marquardt (Marquardt, "An Algorithm for Least-Squares Estimation of Nonlinear
    /// Parameters", Journal of the Society for Industrial and Applied Mathematics 11 (1963)), clamped at 0.
    pub fn usl(&self) -> Option<Usl> {
        // Three points always fit exactly.
        if self.points.len() < 4 {
            return None;
        }
        // The result may depend on the start, as parameters may not be negative.
        let starts = [[0.0, 0.0], [0.05, 0.0], [0.0, 1e-4], [0.05, 1e-4], [0.5, 1e-2]];
        let best = starts.map(|start| Fit::new(&self.points, start).improved());
        let best = best.into_iter().min_by(|a, b| a.squares.total_cmp(&b.squares))?;
        let worst = best.residuals.iter().fold(0.0, |worst: f64, residual| worst.max(residual.abs()));
        Some(Usl {
            lambda: best.ln_lambda.exp(),
            sigma: best.parameters[0],
            kappa: best.parameters[1],
            rms: (best.squares / self.points.len() as f64).sqrt(),
            worst,
        })
    }
}

impl Usl {
    /// Whether the law describes the measurement: a root mean square residual of at most 5%, and none beyond 10%.
    /// Otherwise, its parameters mean nothing.
    pub fn fits(&self) -> bool {
        self.rms <= MAX_RMS && self.worst <= MAX_RESIDUAL
    }

    /// Throughput with this number of clients.
    pub fn throughput(&self, clients: f64) -> f64 {
        self.lambda * clients / (1.0 + (clients - 1.0) * (self.sigma + self.kappa * clients))
    }

    /// The number of clients with the largest throughput; `None` if κ is 0: more are never worse.
    pub fn peak_clients(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
    }
}

/// The law with given σ and κ, and the best λ for them.
#[derive(Clone)]
struct Fit<'p> {
    points: &'p [(u32, f64)],
    parameters: [f64; 2],
    ln_lambda: f64,
    residuals: Vec<f64>,
    squares: f64,
}

impl<'p> Fit<'p> {
    fn new(points: &'p [(u32, f64)], parameters: [f64; 2]) -> Self {
        // ln X − ln N + ln(1 + σ(N − 1) + κN(N − 1)), whose mean is ln λ.
        let mut residuals: Vec<f64> = points
            .iter()
            .map(|&(clients, value)| (value / f64::from(clients)).ln() + divisor(clients, parameters).ln())
            .collect();
        let ln_lambda = residuals.iter().sum::<f64>() / points.len() as f64;
        residuals.iter_mut().for_each(|residual| *residual -= ln_lambda);
        let squares = residuals.iter().map(|residual| residual * residual).sum();
        Self { points, parameters, ln_lambda, residuals, squares }
    }

    fn improved(mut self) -> Self {
        let mut damping = 1e-3;
        while (1e-12..1e12).contains(&damping) {
            let next = Self::new(self.points, self.step(damping));
            let gain = self.squares - next.squares;
            if gain > 0.0 {
                let is_done = gain <= 1e-15 * self.squares;
                self = next;
                damping /= 3.0;
                if is_done {
                    break;
                }
            } else {
                damping *= 4.0;
            }
        }
        self
    }

    /// The parameters after a step.
    fn step(&self, damping: f64) -> [f64; 2] {
        let mut slopes: Vec<[f64; 2]> = self
            .points
            .iter()
            .map(|&(clients, _)| {
                let (n, divisor) = (f64::from(clients), divisor(clients, self.parameters));
                [(n - 1.0) / divisor, n * (n - 1.0) / divisor]
            })
            .collect();
        for i in 0..2 {
            // Subtracting the mean accounts for λ.
            let mean = slopes.iter().map(|slope| slope[i]).sum::<f64>() / slopes.len() as f64;
            slopes.iter_mut().for_each(|slope| slope[i] -= mean);
        }
        let sum = |f: &dyn Fn(usize) -> f64| (0..slopes.len()).map(f).sum::<f64>();
        let gradient = [0, 1].map(|i| sum(&|at| slopes[at][i] * self.residuals[at]));
        let square = |i: usize, j: usize| sum(&|at| slopes[at][i] * slopes[at][j]);
        // A parameter that is 0 and would become negative stays.
        let is_free = [0, 1].map(|i: usize| self.parameters[i] > 0.0 || gradient[i] < 0.0);
        let (a, b, c) = (square(0, 0) * (1.0 + damping), square(0, 1), square(1, 1) * (1.0 + damping));
        let step = match is_free {
            [true, true] => {
                let determinant = a * c - b * b;
                [
                    (c * gradient[0] - b * gradient[1]) / determinant,
                    (a * gradient[1] - b * gradient[0]) / determinant,
                ]
            }
            [true, false] => [gradient[0] / a, 0.0],
            [false, true] => [0.0, gradient[1] / c],
            [false, false] => [0.0, 0.0],
        };
        [0, 1].map(|i| (self.parameters[i] - step[i]).max(0.0))
    }
}

fn divisor(clients: u32, [sigma, kappa]: [f64; 2]) -> f64 {
    let n = f64::from(clients);
    1.0 + (n - 1.0) * (sigma + kappa * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENTS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

    fn law(lambda: f64, sigma: f64, kappa: f64) -> Sweep {
        let law = Usl { lambda, sigma, kappa, rms: 0.0, worst: 0.0 };
        Sweep::new(CLIENTS.map(|clients| (clients, law.throughput(f64::from(clients))))).unwrap()
    }

    #[test]
    fn a_sweep_needs_distinct_numbers_of_clients_and_positive_throughputs() {
        assert_eq!(Sweep::new([]), None);
        assert_eq!(Sweep::new([(1, 1.0), (1, 2.0)]), None);
        assert_eq!(Sweep::new([(0, 1.0)]), None);
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Sweep::new([(1, value)]), None, "{value}");
        }
    }

    #[test]
    fn the_knee_has_nearly_the_peak_throughput() {
        let sweep = Sweep::new([(64, 900.0), (1, 100.0), (8, 700.0), (16, 960.0), (32, 1000.0)]).unwrap();
        assert_eq!((sweep.knee(), sweep.peak()), (16, (32, 1000.0)));
        assert_eq!(sweep.steepest_step(), Some(Step { from: 32, to: 64, ratio: 0.9 }));
        assert_eq!(Sweep::new([(1, 1.0), (2, 1.0)]).unwrap().steepest_step(), None);
    }

    #[test]
    fn the_law_is_fitted() {
        for (lambda, sigma, kappa) in [
            (5000.0, 0.03, 1e-4),
            (900.0, 0.0, 2e-3),
            (100.0, 0.4, 0.0),
            (10.0, 0.0, 0.0),
            (1.0, 0.001, 0.05),
        ] {
            let usl = law(lambda, sigma, kappa).usl().unwrap();
            assert!(usl.fits() && usl.worst < 1e-6, "{usl:?}");
            assert!((usl.lambda / lambda - 1.0).abs() < 1e-5, "{usl:?}");
            assert!((usl.sigma - sigma).abs() < 1e-5 && (usl.kappa - kappa).abs() < 1e-6, "{usl:?}");
        }
    }

    #[test]
    fn the_law_has_its_peak_at_the_computed_number_of_clients() {
        let usl = law(5000.0, 0.02, 5e-4).usl().unwrap();
        assert!((usl.peak_clients().unwrap() - (0.98_f64 / 5e-4).sqrt()).abs() < 0.1, "{usl:?}");
        assert_eq!(Usl { kappa: 0.0, ..usl }.peak_clients(), None);
    }

    /// A cliff does not follow the law.
    #[test]
    fn other_curves_do_not_fit() {
        let cliff = Sweep::new([(1, 100.0), (2, 200.0), (4, 400.0), (8, 150.0), (16, 160.0)]).unwrap();
        assert!(!cliff.usl().unwrap().fits());
        assert_eq!(Sweep::new([(1, 1.0), (2, 2.0), (3, 3.0)]).unwrap().usl(), None);
    }
}
