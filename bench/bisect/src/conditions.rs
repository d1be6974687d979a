//! What is simulated.

/// Conditions of a simulation.
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    /// Changes of throughput by the steps, as shares, in their order.
    pub(crate) steps: &'static [f64],
    /// Standard deviation of sessions, as log ratios.
    pub(crate) session_sd: f64,
    /// Standard deviation of builds.
    pub(crate) build_sd: f64,
    /// Share of the sessions that are off by five times as much.
    pub(crate) outliers: f64,
    /// Share of the commits that do not build.
    pub(crate) unbuildable: f64,
    /// Loss of the machine's speed per hour.
    pub(crate) drift_per_hour: f64,
}

const ONE: Condition = Condition {
    name: "one step of −5%",
    steps: &[-0.05],
    session_sd: 0.06,
    build_sd: 0.005,
    outliers: 0.0,
    unbuildable: 0.0,
    drift_per_hour: 0.0,
};

pub(crate) const CONDITIONS: [Condition; 10] = [
    ONE,
    Condition { name: "one step of −5%, sessions spread by 2%", session_sd: 0.02, ..ONE },
    Condition { name: "one step of −3%", steps: &[-0.03], ..ONE },
    Condition { name: "no step", steps: &[], ..ONE },
    Condition { name: "two steps, −5% and −4%", steps: &[-0.05, -0.04], ..ONE },
    Condition { name: "two steps, −8% and +4%", steps: &[-0.08, 0.04], ..ONE },
    Condition { name: "20% of the commits do not build", unbuildable: 0.2, ..ONE },
    Condition { name: "drift of 10% an hour", drift_per_hour: 0.1, ..ONE },
    Condition { name: "5% of the sessions are outliers", outliers: 0.05, ..ONE },
    Condition { name: "builds spread by 2%", build_sd: 0.02, ..ONE },
];
