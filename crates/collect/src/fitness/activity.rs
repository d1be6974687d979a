//! Activity of the machine, from two readings of the kernel's counters. Source: proc(5), `/proc/stat`, `/proc/PID/stat`
//! and `/proc/vmstat`.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use model::fitness::{Activity, BusyProcess};
use rustix::param::clock_ticks_per_second;

use crate::root::Root;

/// Number of processes reported.
const BUSIEST: usize = 3;
/// Minimum CPU use of a process to be reported, in CPUs.
const BUSY_CPUS: f64 = 0.01;

/// Reads the counters twice, `duration` apart.
pub(super) fn watch(root: &Root, duration: Duration) -> Option<Activity> {
    let before = Counters::read(root)?;
    thread::sleep(duration);
    let after = Counters::read(root)?;
    Some(between(&before, &after, std::process::id()))
}

/// Counters at one time. Times are in ticks.
struct Counters {
    at: Instant,
    ticks_per_second: f64,
    /// Busy time of the CPUs.
    work: u64,
    /// CPU steal; none if the kernel does not report it.
    steal: Option<u64>,
    /// Total time of all CPUs.
    total: u64,
    swapped_pages: Option<u64>,
    processes: HashMap<u32, Process>,
}

struct Process {
    name: String,
    ticks: u64,
}

impl Counters {
    fn read(root: &Root) -> Option<Self> {
        let cpu = root.line("proc/stat")?;
        let ticks: Vec<u64> = cpu
            .strip_prefix("cpu ")?
            .split_ascii_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; user includes guest time.
        let [user, nice, system, idle, iowait, irq, softirq, ..] = ticks[..] else { return None };
        let steal = ticks.get(7).copied();
        let work = user + nice + system + irq + softirq;
        Some(Self {
            at: Instant::now(),
            ticks_per_second: clock_ticks_per_second() as f64,
            work,
            steal,
            total: work + idle + iowait + steal.unwrap_or_default(),
            swapped_pages: swapped_pages(root),
            processes: processes(root),
        })
    }
}

fn swapped_pages(root: &Root) -> Option<u64> {
    let text = root.text("proc/vmstat")?;
    let count = |name: &str| {
        text.lines().filter_map(|line| line.split_once(' ')).find(|(field, _)| *field == name)?.1.parse().ok()
    };
    let (read, written): (u64, u64) = (count("pswpin")?, count("pswpout")?);
    read.checked_add(written)
}

fn processes(root: &Root) -> HashMap<u32, Process> {
    root.numbered("proc", "")
        .into_iter()
        .filter_map(|pid| Some((pid, process(&root.line(&format!("proc/{pid}/stat"))?)?)))
        .collect()
}

/// Parses `12 (a name) S …`: after the name, which may contain anything, user and system time are the 12th and 13th
/// field.
fn process(stat: &str) -> Option<Process> {
    let (head, fields) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1.to_owned();
    let mut times = fields.split(' ').skip(11);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(Process { name, ticks: user + system })
}

/// Activity between two readings, without that of the process `own`.
fn between(before: &Counters, after: &Counters, own: u32) -> Activity {
    let seconds = (after.at - before.at).as_secs_f64();
    let cpus = |ticks: u64| ticks as f64 / after.ticks_per_second / seconds;
    let spent = |pid: u32, process: &Process| {
        let earlier = before.processes.get(&pid).map_or(0, |process| process.ticks);
        cpus(process.ticks.saturating_sub(earlier))
    };
    let by_us = after.processes.get(&own).map_or(0.0, |process| spent(own, process));
    let total = after.total.saturating_sub(before.total);
    let steal = before.steal.zip(after.steal).map(|(before, after)| after.saturating_sub(before));
    let mut busiest: Vec<BusyProcess> = after
        .processes
        .iter()
        .filter(|(pid, _)| **pid != own)
        .map(|(&pid, process)| BusyProcess { pid, name: process.name.clone(), cpus: spent(pid, process) })
        .filter(|process| process.cpus >= BUSY_CPUS)
        .collect();
    busiest.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    busiest.truncate(BUSIEST);
    Activity {
        seconds,
        foreign_cpus: (cpus(after.work.saturating_sub(before.work)) - by_us).max(0.0),
        steal_share: steal.filter(|_| total > 0).map(|steal| steal as f64 / total as f64),
        swapped_pages: before
            .swapped_pages
            .zip(after.swapped_pages)
            .map(|(before, after)| after.saturating_sub(before)),
        busiest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(files: &[(&str, &str)]) -> Option<Counters> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Counters::read(&Root::new(root.path()))
    }

    fn stat(name: &str, user: u64, system: u64) -> String {
        format!("7 ({name}) S 1 7 7 0 -1 4194560 1 0 0 0 {user} {system} 0 0 20 0 1 0 5 1 1")
    }

    #[test]
    fn work_of_other_processes_is_reported() {
        let read = |cpu: &str, swapped: u64, ours: u64, theirs: u64| {
            counters(&[
                ("proc/stat", cpu),
                ("proc/vmstat", &format!("pswpin 1\npswpout {swapped}\n")),
                ("proc/7/stat", &stat("pgdyno", ours, 0)),
                ("proc/8/stat", &stat("a) b (c", 0, theirs)),
                ("proc/9/stat", &stat("idle", 3, 3)),
                ("proc/self/stat", "a link to a process, which is no other one"),
            ])
            .unwrap()
        };
        let before = read("cpu  100 0 0 1000 0 0 0 10 0 0\ncpu0 1 1", 5, 0, 50);
        let mut after = read("cpu  250 10 20 1190 5 5 5 25 0 0\ncpu0 1 1", 9, 20, 150);
        after.at = before.at + Duration::from_secs(2);
        let ticks = before.ticks_per_second;
        let seen = between(&before, &after, 7);
        assert_eq!(seen.seconds, 2.0);
        assert_eq!(seen.foreign_cpus, (190.0 - 20.0) / ticks / 2.0);
        assert_eq!(seen.steal_share, Some(15.0 / 400.0));
        assert_eq!(seen.swapped_pages, Some(4));
        let busy = BusyProcess { pid: 8, name: "a) b (c".to_owned(), cpus: 100.0 / ticks / 2.0 };
        assert_eq!(seen.busiest, [busy]);
    }

    #[test]
    fn unreported_counters_are_none() {
        let old = || counters(&[("proc/stat", "cpu  1 2 3 4 5 6 7\n")]).unwrap();
        let (before, after) = (old(), old());
        let seen = between(&before, &after, 7);
        assert_eq!((seen.steal_share, seen.swapped_pages, seen.busiest), (None, None, Vec::new()));
        assert!(counters(&[]).is_none());
        assert!(counters(&[("proc/stat", "cpu  1 2 x")]).is_none());
    }
}
