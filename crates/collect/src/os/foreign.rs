//! CPU time of the processes of neither the trial nor the kernel, by their names.
//!
//! Reading all of them costs more than it tells while they do nothing, so they are read when they have used enough CPU
//! time since. A process that has ended is read no more, but its parent has the total time of its children: what was
//! never read of them counts as that of `children of` the parent.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use super::proc_files::{Proc, Stat};

/// CPU time per process that makes it worth to read all: some twenty times of what that costs.
const WORTH_READING_US: f64 = 200.0;
/// Share of all time from which a name is reported.
const MIN_SHARE: f64 = 0.01;

/// The processes, and the CPU time of each name since the first reading.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// Descendants of this process are not counted.
    excluded: Option<u32>,
    processes: HashMap<u32, ForeignProcess>,
    /// Those that have ended since the last reading.
    ended: HashMap<u32, ForeignProcess>,
    names: BTreeMap<String, NamedTime>,
    total_us: f64,
    /// Their CPU time when all were last read.
    read_at_us: Option<f64>,
    /// Whether processes were listed before: one that is new then has started since.
    is_listed: bool,
}

#[derive(Debug)]
struct ForeignProcess {
    started: u64,
    parent: u32,
    cpu_us: f64,
    /// Time of the children that had ended before it was first read.
    first_children_us: f64,
    /// Time that was read of children that have ended since.
    read_children_us: f64,
    /// Time of ended children that was not read.
    unread_children_us: f64,
}

#[derive(Debug, Default)]
struct NamedTime {
    us: f64,
    is_reported: bool,
}

impl Foreign {
    /// None yet; does not count descendants of the process `excluded`.
    pub(super) fn new(excluded: Option<u32>) -> Self {
        Self { excluded, ..Self::default() }
    }

    /// Adds a process that was not in the list before.
    pub(super) fn add(&mut self, pid: u32, name: &str, stat: &Stat) {
        let is_new = self.is_listed;
        let process = ForeignProcess {
            started: stat.started,
            parent: stat.parent,
            cpu_us: if is_new { 0.0 } else { sum(stat.cpu_us) },
            first_children_us: if is_new { 0.0 } else { sum(stat.children_us) },
            read_children_us: 0.0,
            unread_children_us: 0.0,
        };
        self.processes.insert(pid, process);
        self.count(pid, name, stat);
    }

    /// Removes a process that is no longer in the list.
    pub(super) fn end(&mut self, pid: u32) {
        self.ended.extend(self.processes.remove(&pid).map(|process| (pid, process)));
    }

    /// Completes the changes of the list: what was read of ended processes is a part of their parents' children's time.
    pub(super) fn listed(&mut self) {
        self.is_listed = true;
        let ended = mem::take(&mut self.ended);
        for process in ended.values() {
            // If its parent has ended too, that one's parent has waited for both.
            let parents = std::iter::successors(Some(process.parent), |pid| Some(ended.get(pid)?.parent));
            let living = parents.take(ended.len() + 1).find_map(|pid| self.processes.get_key_value(&pid));
            if let Some(pid) = living.map(|(pid, _)| *pid)
                && let Some(parent) = self.processes.get_mut(&pid)
            {
                parent.read_children_us += process.total_us();
            }
        }
    }

    /// Reads all of them if that is worth it; `used_us` is the CPU time that they have used together.
    pub(super) fn read(&mut self, proc: &mut Proc, used_us: f64) {
        let read_at_us = *self.read_at_us.get_or_insert(used_us);
        if used_us - read_at_us < WORTH_READING_US * self.processes.len() as f64 || used_us == read_at_us {
            return;
        }
        self.read_at_us = Some(used_us);
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            // One that has ended is removed when the processes are listed.
            let Some((name, stat)) = proc.named_stat(pid) else { continue };
            let is_same = |process: &ForeignProcess| process.started == stat.started;
            if self.processes.get(&pid).is_some_and(is_same) {
                self.count(pid, &name, &stat);
            } else {
                self.end(pid);
                self.add(pid, &name, &stat);
            }
        }
    }

    /// Names with a noticeable share of all time, and their CPU time in microseconds. One that was reported stays.
    pub(super) fn busy_names(&mut self) -> impl Iterator<Item = (&str, f64)> {
        let min_us = MIN_SHARE * self.total_us;
        self.names.iter_mut().filter_map(move |(name, time)| {
            time.is_reported |= time.us > 0.0 && time.us >= min_us;
            time.is_reported.then_some((name.as_str(), time.us))
        })
    }

    /// Counts what a process and its ended children have used since it was last read.
    fn count(&mut self, pid: u32, name: &str, stat: &Stat) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let cpu_us = process.cpu_us.max(sum(stat.cpu_us));
        let waited_for_us = sum(stat.children_us) - process.first_children_us;
        // An ended process may not have been waited for yet.
        let unread_us = process.unread_children_us.max(waited_for_us - process.read_children_us);
        let (own_us, children_us) = (cpu_us - process.cpu_us, unread_us - process.unread_children_us);
        (process.cpu_us, process.unread_children_us) = (cpu_us, unread_us);
        process.parent = stat.parent;
        if (own_us > 0.0 || children_us > 0.0) && !self.is_excluded(pid) {
            self.add_time(name.to_owned(), own_us);
            self.add_time(format!("children of {name}"), children_us);
        }
    }

    fn add_time(&mut self, name: String, us: f64) {
        if us > 0.0 {
            self.names.entry(name).or_default().us += us;
            self.total_us += us;
        }
    }

    fn is_excluded(&self, pid: u32) -> bool {
        let parents = std::iter::successors(Some(pid), |pid| Some(self.processes.get(pid)?.parent));
        self.excluded
            .is_some_and(|excluded| parents.take(self.processes.len() + 1).any(|pid| pid == excluded))
    }
}

impl ForeignProcess {
    /// Its time and its ended children's, as far as it was read.
    fn total_us(&self) -> f64 {
        self.cpu_us + self.first_children_us + self.read_children_us + self.unread_children_us
    }
}

fn sum([user, system]: [f64; 2]) -> f64 {
    user + system
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::param::clock_ticks_per_second;
    use tempfile::TempDir;

    use super::*;
    use crate::root::Root;

    /// A `/proc` of processes, and what is counted of them. Times are in ticks.
    struct Machine {
        files: TempDir,
        proc: Proc,
        foreign: Foreign,
        used_us: f64,
    }

    impl Machine {
        fn new(excluded: Option<u32>) -> Self {
            let files = tempfile::tempdir().unwrap();
            fs::create_dir(files.path().join("proc")).unwrap();
            let proc = Proc::open(&Root::new(files.path())).unwrap();
            Self { files, proc, foreign: Foreign::new(excluded), used_us: 0.0 }
        }

        /// A process with this time, and this of its ended children.
        fn process(&self, pid: u32, parent: u32, name: &str, ticks: u64, children: u64) {
            self.started(1, pid, parent, name, ticks, children);
        }

        fn started(&self, at: u64, pid: u32, parent: u32, name: &str, ticks: u64, children: u64) {
            let directory = self.files.path().join("proc").join(pid.to_string());
            fs::create_dir_all(&directory).unwrap();
            let stat = format!(
                "{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 {children} 0 20 0 1 0 {at} 0"
            );
            fs::write(directory.join("stat"), stat).unwrap();
        }

        fn end(&self, pid: u32) {
            fs::remove_dir_all(self.files.path().join("proc").join(pid.to_string())).unwrap();
        }

        /// Lists the processes as [`super::super::Processes`] does, then reads all.
        fn read(&mut self) -> Vec<(String, f64)> {
            self.list();
            self.used_us += 1e6;
            self.foreign.read(&mut self.proc, self.used_us);
            self.named()
        }

        fn list(&mut self) {
            let mut listed = Vec::new();
            self.proc.list(format_args!("."), &mut listed).unwrap();
            listed.sort_unstable();
            for &pid in &listed {
                if !self.foreign.processes.contains_key(&pid) {
                    let (name, stat) = self.proc.named_stat(pid).unwrap();
                    self.foreign.add(pid, &name, &stat);
                }
            }
            let gone = self.foreign.processes.keys().copied().filter(|pid| !listed.contains(pid));
            for pid in gone.collect::<Vec<u32>>() {
                self.foreign.end(pid);
            }
            self.foreign.listed();
        }

        /// In ticks.
        fn named(&mut self) -> Vec<(String, f64)> {
            let us_per_tick = 1e6 / clock_ticks_per_second() as f64;
            let named = self.foreign.busy_names();
            named.map(|(name, us)| (name.to_owned(), us / us_per_tick)).collect()
        }
    }

    fn named<const N: usize>(names: [(&str, f64); N]) -> Vec<(String, f64)> {
        names.map(|(name, ticks)| (name.to_owned(), ticks)).to_vec()
    }

    #[test]
    fn time_since_the_first_reading_counts_by_name() {
        let mut machine = Machine::new(None);
        machine.process(30, 1, "cc1", 500, 0);
        machine.process(31, 1, "a) (b", 70, 9);
        assert_eq!(machine.read(), []);
        machine.process(30, 1, "cc1", 600, 0);
        // New, with all its time.
        machine.process(32, 1, "cc1", 50, 0);
        machine.process(31, 1, "a) (b", 71, 9);
        assert_eq!(machine.read(), named([("cc1", 150.0)]), "less than 1% is not reported");
        machine.process(31, 1, "a) (b", 75, 9);
        machine.end(30);
        assert_eq!(machine.read(), named([("a) (b", 5.0), ("cc1", 150.0)]));
        // It has become another program, and its name was reported before.
        machine.process(32, 1, "ld", 2_050, 0);
        assert_eq!(machine.read(), named([("a) (b", 5.0), ("cc1", 150.0), ("ld", 2_000.0)]));
    }

    #[test]
    fn time_of_ended_children_that_was_not_read_is_that_of_the_parents_children() {
        let mut machine = Machine::new(None);
        machine.process(30, 1, "make", 0, 1_000);
        machine.process(31, 30, "cc1", 40, 0);
        machine.process(32, 30, "sh", 0, 0);
        machine.process(33, 32, "as", 10, 5);
        machine.read();
        machine.process(31, 30, "cc1", 50, 0);
        machine.process(33, 32, "as", 13, 5);
        let read = named([("as", 3.0), ("cc1", 10.0)]);
        assert_eq!(machine.read(), read);
        // It ended with 60, and has not been waited for.
        machine.end(31);
        assert_eq!(machine.read(), read);
        machine.process(30, 1, "make", 0, 1_060);
        let with_cc1 = named([("as", 3.0), ("cc1", 10.0), ("children of make", 10.0)]);
        assert_eq!(machine.read(), with_cc1);
        // Both end: 20 of `as` with 7 of its children, and 2 of the shell.
        machine.end(32);
        machine.end(33);
        machine.process(30, 1, "make", 0, 1_060 + 27 + 2);
        let unread = 10.0 + 27.0 + 2.0 - 13.0 - 5.0;
        assert_eq!(machine.read(), named([("as", 3.0), ("cc1", 10.0), ("children of make", unread)]));
        // Children that no reading has seen.
        machine.process(30, 1, "make", 4, 1_089 + 30);
        let expected = [("as", 3.0), ("cc1", 10.0), ("children of make", unread + 30.0), ("make", 4.0)];
        assert_eq!(machine.read(), named(expected));
    }

    #[test]
    fn processes_are_read_when_they_have_used_enough() {
        let mut machine = Machine::new(None);
        machine.process(30, 1, "cc1", 1, 0);
        machine.process(31, 1, "bash", 1, 0);
        machine.read();
        machine.process(30, 1, "cc1", 9, 0);
        machine.list();
        let used_us = machine.used_us;
        machine.foreign.read(&mut machine.proc, used_us + 1.9 * WORTH_READING_US);
        assert_eq!(machine.named(), []);
        machine.foreign.read(&mut machine.proc, used_us + 2.0 * WORTH_READING_US);
        assert_eq!(machine.named(), named([("cc1", 8.0)]));
    }

    #[test]
    fn a_reused_process_id_is_another_process() {
        let mut machine = Machine::new(None);
        machine.process(30, 1, "cc1", 100, 0);
        machine.read();
        machine.started(2, 30, 1, "ld", 7, 0);
        assert_eq!(machine.read(), named([("ld", 7.0)]));
    }

    #[test]
    fn descendants_of_the_excluded_process_are_not_counted() {
        let mut machine = Machine::new(Some(20));
        machine.process(30, 20, "postgres", 0, 0);
        machine.process(31, 30, "postgres", 0, 0);
        machine.process(40, 1, "postgres", 0, 0);
        machine.read();
        machine.process(30, 20, "postgres", 10, 5);
        machine.process(31, 30, "postgres", 10, 0);
        machine.process(40, 1, "postgres", 3, 0);
        assert_eq!(machine.read(), named([("postgres", 3.0)]));
        // Ids that are each other's parent end a search.
        machine.process(40, 41, "a", 4, 0);
        machine.process(41, 40, "b", 0, 0);
        machine.read();
        machine.end(40);
        machine.end(41);
        assert_eq!(machine.read(), named([("a", 1.0), ("postgres", 3.0)]));
    }
}
