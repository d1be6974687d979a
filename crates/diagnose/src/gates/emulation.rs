//! Did emulation distort the time?

use model::machine::Acceleration;

use super::{Gate, GateFinding, Observation, at_most, percent, suspect};

pub(super) const GATES: [Gate; 2] = [("emulated", emulated), ("disk-wait", disk_wait)];

/// Largest share of virtual time spent waiting for the disk: a change of a hundredth matters there.
const MAX_WAIT_SHARE: f64 = 0.01;

/// The gates that assume that driver and server run concurrently, on CPUs that others may take or slow down. If
/// instructions are counted, one CPU runs both in turns by design, and nothing else affects its time.
pub(super) const REAL_TIME_GATES: [&str; 7] = [
    "driver-saturated",
    "driver-threads",
    "driver-lag",
    "driver-starved",
    "cpu-steal",
    "foreign-cpu",
    "cpu-frequency",
];

fn emulated(observed: &Observation) -> Option<GateFinding> {
    (observed.acceleration == Acceleration::Tcg).then(|| {
        suspect("emulated in real time: the results depend on the host".to_owned()).with_advice(
            "acceleration = \"icount\" counts instructions; \"kvm\", if available, measures time",
        )
    })
}

/// If instructions are counted and there are none to execute, time jumps from timer to timer until the emulator's disk
/// has answered: it is not the time of any disk.
fn disk_wait(observed: &Observation) -> Option<GateFinding> {
    if observed.acceleration != Acceleration::Icount {
        return None;
    }
    let share =
        observed.share_of_window("cpu.iowait_us", Some("all")).filter(|share| *share > MAX_WAIT_SHARE)?;
    let evidence = format!(
        "{} of virtual time was spent waiting for the disk: throughput does not reflect path length alone",
        percent(share)
    );
    Some(suspect(evidence).with_threshold(at_most(MAX_WAIT_SHARE)).with_advice(
        "compare instructions per transaction (--metric instructions), or keep the data in memory",
    ))
}

#[cfg(test)]
mod tests {
    use model::record::Status;
    use strum::VariantArray;

    use super::super::fixture::{TrialFixture, gates, sessions};
    use super::super::{GROUPS, Observation};
    use super::*;

    fn on(acceleration: Acceleration, trial: &TrialFixture) -> (Status, Vec<&'static str>) {
        gates(&Observation { acceleration, ..trial.observed() })
    }

    /// With fewer driver threads than by default.
    fn on_with_one_thread(acceleration: Acceleration, trial: &TrialFixture) -> (Status, Vec<&'static str>) {
        let (driver_threads, default_driver_threads) = (Some(1), Some(4));
        gates(&Observation { acceleration, driver_threads, default_driver_threads, ..trial.observed() })
    }

    #[test]
    fn only_emulation_in_real_time_makes_the_trial_suspect() {
        let trial = TrialFixture::new();
        for &acceleration in Acceleration::VARIANTS {
            let expected = match acceleration {
                Acceleration::Tcg => (Status::Suspect, vec!["emulated"]),
                _ => (Status::Valid, vec![]),
            };
            assert_eq!(on(acceleration, &trial), expected, "{}", acceleration.as_str());
        }
    }

    #[test]
    fn gates_of_real_time_do_not_apply_to_counted_instructions() {
        let mut trial = TrialFixture::new();
        trial.intervals.iter_mut().for_each(|interval| {
            interval.busy = Some(1.0);
            interval.lag_mean_us = Some(300.0);
        });
        trial.counter("role.busiest_wait_us", Some("driver"), 900_000.0);
        trial.counter("role.run_us", Some("foreign"), 5_000_000.0);
        trial.counter("cpu.steal_us", Some("all"), 1_000_000.0);
        trial.counter("cpu.idle_us", Some("all"), 1_500_000.0);
        trial.waits = sessions(70);
        trial.gauge("cpu.frequency_hz", Some("cpu0"), &[3.5e9, 3.5e9, 3.0e9, 2.5e9, 2.0e9]);
        let mut suspected = on_with_one_thread(Acceleration::Kvm, &trial).1;
        suspected.sort_unstable();
        let mut of_real_time = REAL_TIME_GATES;
        of_real_time.sort_unstable();
        assert_eq!(suspected, of_real_time);
        assert_eq!(on_with_one_thread(Acceleration::Icount, &trial), (Status::Valid, vec![]));
        // Other gates still apply.
        trial.counter("vm.pswpout", None, 2.0);
        assert_eq!(on(Acceleration::Icount, &trial), (Status::Suspect, vec!["swap"]));
    }

    #[test]
    fn waiting_for_the_disk_in_virtual_time_makes_the_trial_suspect() {
        let mut trial = TrialFixture::new();
        trial.counter("cpu.iowait_us", Some("all"), 9_000.0);
        assert_eq!(on(Acceleration::Icount, &trial), (Status::Valid, vec![]));
        let mut trial = TrialFixture::new();
        trial.counter("cpu.iowait_us", Some("all"), 350_000.0);
        assert_eq!(on(Acceleration::Icount, &trial), (Status::Suspect, vec!["disk-wait"]));
        assert_eq!(on(Acceleration::Kvm, &trial), (Status::Valid, vec![]));
        let found =
            disk_wait(&Observation { acceleration: Acceleration::Icount, ..trial.observed() }).unwrap();
        assert!(found.evidence.starts_with("35% of virtual time"), "{}", found.evidence);
    }

    #[test]
    fn every_real_time_gate_exists() {
        let known: Vec<&str> = GROUPS.into_iter().flatten().map(|(gate, _)| *gate).collect();
        assert!(REAL_TIME_GATES.into_iter().all(|gate| known.contains(&gate)), "{known:?}");
    }
}
