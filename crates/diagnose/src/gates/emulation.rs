//! Whose time was it, where processors were emulated?

use model::machine::Acceleration;

use super::{Found, Gate, Observation, suspect};

pub(super) const GATES: [Gate; 1] = [("emulated", emulated)];

/// The gates that presuppose that driver and server run at the same time, on processors that others may take or slow
/// down. Where instructions are counted, one processor runs both in turns by design, and nothing outside has a part in
/// its time.
pub(super) const OF_REAL_TIME: [&str; 6] =
    ["driver-saturated", "driver-lag", "driver-starved", "cpu-steal", "foreign-cpu", "cpu-frequency"];

fn emulated(observed: &Observation) -> Option<Found> {
    (observed.acceleration == Acceleration::Tcg).then(|| {
        suspect("emulated in real time: the figures depend on the emulating machine".to_owned()).so(
            "acceleration = \"icount\" counts instructions, \"kvm\" measures time where the machine has it",
        )
    })
}

#[cfg(test)]
mod tests {
    use model::record::Status;

    use super::super::sound::{Sound, gates};
    use super::super::{GROUPS, Observation};
    use super::*;

    fn on(acceleration: Acceleration, sound: &Sound) -> (Status, Vec<&'static str>) {
        gates(&Observation { acceleration, ..sound.observed() })
    }

    #[test]
    fn only_what_is_emulated_in_real_time_is_suspected_for_it() {
        let sound = Sound::new();
        for acceleration in Acceleration::ALL {
            let expected = match acceleration {
                Acceleration::Tcg => (Status::Suspect, vec!["emulated"]),
                _ => (Status::Valid, vec![]),
            };
            assert_eq!(on(acceleration, &sound), expected, "{}", acceleration.name());
        }
    }

    #[test]
    fn where_instructions_are_counted_one_processor_runs_driver_and_server() {
        let mut sound = Sound::new();
        sound.intervals.iter_mut().for_each(|interval| {
            interval.busy = Some(1.0);
            interval.lag_mean_us = Some(300.0);
        });
        sound.counter("role.busiest_wait_us", Some("driver"), 900_000.0);
        sound.counter("role.run_us", Some("foreign"), 5_000_000.0);
        sound.counter("cpu.steal_us", Some("all"), 1_000_000.0);
        sound.gauge("cpu.frequency_hz", Some("cpu0"), &[3.5e9, 3.5e9, 3.0e9, 2.5e9, 2.0e9]);
        let mut suspected = on(Acceleration::Kvm, &sound).1;
        suspected.sort_unstable();
        let mut of_real_time = OF_REAL_TIME;
        of_real_time.sort_unstable();
        assert_eq!(suspected, of_real_time);
        assert_eq!(on(Acceleration::Icount, &sound), (Status::Valid, vec![]));
        // Others still look.
        sound.counter("vm.pswpout", None, 2.0);
        assert_eq!(on(Acceleration::Icount, &sound), (Status::Suspect, vec!["swap"]));
    }

    #[test]
    fn every_gate_of_real_time_is_one() {
        let known: Vec<&str> = GROUPS.into_iter().flatten().map(|(gate, _)| *gate).collect();
        assert!(OF_REAL_TIME.into_iter().all(|gate| known.contains(&gate)), "{known:?}");
    }
}
