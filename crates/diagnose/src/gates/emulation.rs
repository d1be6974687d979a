//! Did emulation distort the time?

use model::machine::Acceleration;

use super::{Found, Gate, Observation, at_most, percent, suspect};

pub(super) const GATES: [Gate; 2] = [("emulated", emulated), ("disk-wait", disk_wait)];

/// Largest share of virtual time spent waiting for the disk: a change of a hundredth matters there.
const WAIT_SHARE: f64 = 0.01;

/// The gates that assume that driver and server run concurrently, on CPUs that others may take or slow down. If
/// instructions are counted, one CPU runs both in turns by design, and nothing else affects its time.
pub(super) const OF_REAL_TIME: [&str; 6] =
    ["driver-saturated", "driver-lag", "driver-starved", "cpu-steal", "foreign-cpu", "cpu-frequency"];

fn emulated(observed: &Observation) -> Option<Found> {
    (observed.acceleration == Acceleration::Tcg).then(|| {
        suspect("emulated in real time: the results depend on the host".to_owned()).so(
            "acceleration = \"icount\" counts instructions, \"kvm\" measures time where the machine has it",
        )
    })
}

/// If instructions are counted and there are none to execute, time jumps from timer to timer until the emulator's disk
/// has answered: it is not the time of any disk.
fn disk_wait(observed: &Observation) -> Option<Found> {
    if observed.acceleration != Acceleration::Icount {
        return None;
    }
    let share = observed.share_of_window("cpu.iowait_us", Some("all")).filter(|share| *share > WAIT_SHARE)?;
    let evidence = format!(
        "{} of virtual time was spent waiting for the disk: throughput does not reflect path length alone",
        percent(share)
    );
    Some(suspect(evidence).beyond(at_most(WAIT_SHARE)).so(
        "compare the instructions of each transaction (--metric instructions), or have the data in memory",
    ))
}

#[cfg(test)]
mod tests {
    use model::record::Status;
    use strum::VariantArray;

    use super::super::sound::{Sound, gates};
    use super::super::{GROUPS, Observation};
    use super::*;

    fn on(acceleration: Acceleration, sound: &Sound) -> (Status, Vec<&'static str>) {
        gates(&Observation { acceleration, ..sound.observed() })
    }

    #[test]
    fn only_what_is_emulated_in_real_time_is_suspected_for_it() {
        let sound = Sound::new();
        for &acceleration in Acceleration::VARIANTS {
            let expected = match acceleration {
                Acceleration::Tcg => (Status::Suspect, vec!["emulated"]),
                _ => (Status::Valid, vec![]),
            };
            assert_eq!(on(acceleration, &sound), expected, "{}", acceleration.as_str());
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
        // Other gates still apply.
        sound.counter("vm.pswpout", None, 2.0);
        assert_eq!(on(Acceleration::Icount, &sound), (Status::Suspect, vec!["swap"]));
    }

    #[test]
    fn virtual_time_that_goes_by_for_the_disk_is_no_path_length() {
        let mut sound = Sound::new();
        sound.counter("cpu.iowait_us", Some("all"), 9_000.0);
        assert_eq!(on(Acceleration::Icount, &sound), (Status::Valid, vec![]));
        let mut sound = Sound::new();
        sound.counter("cpu.iowait_us", Some("all"), 350_000.0);
        assert_eq!(on(Acceleration::Icount, &sound), (Status::Suspect, vec!["disk-wait"]));
        assert_eq!(on(Acceleration::Kvm, &sound), (Status::Valid, vec![]));
        let found =
            disk_wait(&Observation { acceleration: Acceleration::Icount, ..sound.observed() }).unwrap();
        assert!(found.evidence.starts_with("35% of virtual time"), "{}", found.evidence);
    }

    #[test]
    fn every_gate_of_real_time_is_one() {
        let known: Vec<&str> = GROUPS.into_iter().flatten().map(|(gate, _)| *gate).collect();
        assert!(OF_REAL_TIME.into_iter().all(|gate| known.contains(&gate)), "{known:?}");
    }
}
