//! The CPUs of this host.

use std::fs;
use std::thread;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Number of CPUs that this process may use by its affinity and control group; none if unknown.
pub fn usable_cpus() -> Option<u32> {
    thread::available_parallelism().ok()?.get().try_into().ok()
}

/// Restricts a thread to some CPUs; this one if none is given. The threads and processes that it will start inherit them.
///
/// # Errors
/// The system does not allow it, or there is no such thread (`ESRCH`).
pub fn pin_to_cpus(thread: Option<Pid>, cpus: &[u32]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU) {
        set.set(cpu as usize);
    }
    sched_setaffinity(thread, &set)
}

/// The CPUs that this process may use by its affinity, in two halves, for programs that are to share none: each has whole
/// cores and, where the numbers allow it, those of one socket. An odd core belongs to the first half. A single CPU is in
/// both. None if unknown.
pub fn halves_of_cpus() -> Option<[Vec<u32>; 2]> {
    let allowed = sched_getaffinity(None).ok()?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| cpu as u32);
    halves(cpus.map(|cpu| (place(cpu), cpu)).collect())
}

/// Where a CPU is: its socket and its core, by what tells them apart.
type Place = (u32, String);

/// The place of a CPU; all are in one socket and have a core of their own where the kernel does not say.
fn place(cpu: u32) -> Place {
    let read = |file: &str| fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}"));
    let socket = read("physical_package_id").ok().and_then(|text| text.trim().parse().ok());
    let core = read("thread_siblings_list").map_or_else(|_| cpu.to_string(), |text| text.trim().to_owned());
    (socket.unwrap_or(0), core)
}

/// CPUs with their places, in two halves.
fn halves(cpus: Vec<(Place, u32)>) -> Option<[Vec<u32>; 2]> {
    // Sockets, then cores by their first CPU.
    let first_of_core =
        |place: &Place| cpus.iter().filter(|(other, _)| other == place).map(|(_, cpu)| *cpu).min();
    let mut ordered: Vec<_> = cpus.iter().map(|(place, cpu)| (place.0, first_of_core(place), *cpu)).collect();
    ordered.sort_unstable();
    let mut cores: Vec<Vec<u32>> = Vec::new();
    for same_core in ordered.chunk_by(|a, b| a.1 == b.1) {
        cores.push(same_core.iter().map(|(.., cpu)| *cpu).collect());
    }
    // Threads of a single core are all there is to share out.
    if let [only] = cores.as_slice() {
        cores = only.iter().map(|cpu| vec![*cpu]).collect();
    }
    let sorted = |cores: &[Vec<u32>]| {
        let mut cpus = cores.concat();
        cpus.sort_unstable();
        cpus
    };
    match cores.as_slice() {
        [] => None,
        [only] => Some([only.clone(), only.clone()]),
        several => {
            let (first, second) = several.split_at(several.len().div_ceil(2));
            Some([sorted(first), sorted(second)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves of CPUs, each given as its socket and the first CPU of its core.
    fn of(places: &[(u32, u32)]) -> Option<[Vec<u32>; 2]> {
        let cpus = places.iter().zip(0..).map(|((socket, core), cpu)| ((*socket, core.to_string()), cpu));
        halves(cpus.collect())
    }

    #[test]
    fn halves_are_whole_cores_of_a_socket() {
        assert_eq!(of(&[(0, 0), (0, 1)]).unwrap(), [vec![0], vec![1]]);
        assert_eq!(
            of(&[(0, 0), (0, 1), (0, 2)]).unwrap(),
            [vec![0, 1], vec![2]],
            "the first has the odd one"
        );
        // Two threads a core, numbered one after the other, or the second ones after all first ones.
        assert_eq!(of(&[(0, 0), (0, 0), (0, 2), (0, 2)]).unwrap(), [vec![0, 1], vec![2, 3]]);
        assert_eq!(of(&[(0, 0), (0, 1), (0, 0), (0, 1)]).unwrap(), [vec![0, 2], vec![1, 3]]);
        // Two sockets whose CPUs take turns.
        assert_eq!(of(&[(0, 0), (1, 1), (0, 2), (1, 3)]).unwrap(), [vec![0, 2], vec![1, 3]]);
        assert_eq!(of(&[(0, 0), (0, 0)]).unwrap(), [vec![0], vec![1]], "two threads of the only core");
        assert_eq!(of(&[(0, 0)]).unwrap(), [vec![0], vec![0]], "a single CPU has no halves");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_halves_are_what_this_process_may_use() {
        let [first, second] = halves_of_cpus().unwrap();
        let mut all = [first, second].concat();
        all.sort_unstable();
        all.dedup();
        let allowed = sched_getaffinity(None).unwrap();
        assert_eq!(all.len() as u32, allowed.count());
        assert!(all.iter().all(|&cpu| allowed.is_set(cpu as usize)), "{all:?}");
    }
}
