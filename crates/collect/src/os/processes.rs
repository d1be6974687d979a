//! Processes by their role in a trial.

use std::collections::HashMap;
use std::path::Path;
use std::sync::PoisonError;

use rustix::param::clock_ticks_per_second;

use model::metric;
use strum::VariantArray;

use super::foreign::Foreign;
use super::kernel_file::KernelFile;
use super::proc_files::Proc;
use super::process::{EndedTotals, FIGURES, Figures, Process, RUN, ReadOutcome, SYSTEM, USER};
use super::role::Role;
use super::threads::Threads;
use super::watched::{ProcessRole, Watched};
use crate::error::CollectError;
use crate::root::Root;
use crate::{Reading, Source};

/// Counters by role: CPU time, time in run queues, context switches, disk I/O in bytes. The counters of ended processes
/// remain in their role's. Processes without a role have their CPU time counted by name. `docs/metrics.md` describes its
/// metrics. Source: proc(5).
#[derive(Debug)]
pub struct Processes {
    watched: Watched,
    own: u32,
    proc: Option<Proc>,
    stat: Option<KernelFile>,
    /// Whether the kernel has each counter.
    is_counted: [bool; FIGURES.len()],
    /// By process id, with the number of the last reading that included it.
    known: HashMap<u32, (u64, Known)>,
    listed: Vec<u32>,
    reading: u64,
    ended: EndedTotals,
    unread: UnreadTime,
    foreign_us: Option<f64>,
    foreign: Foreign,
}

#[derive(Debug)]
enum Known {
    Trial(Box<Process>),
    /// A process of neither the trial nor the kernel.
    Other,
}

/// CPU time of the server's ended processes that was not read before their end. See `docs/metrics.md`.
const UNREAD: &str = "server ended";
/// CPU time of processes that belong neither to the trial nor to the kernel. See `docs/metrics.md`.
const FOREIGN: &str = "foreign";

impl Processes {
    /// Watches these processes, this one, and kernel threads.
    pub fn new(watched: Watched) -> Self {
        Self::at(&Root::new(Path::new("/")), watched, std::process::id())
    }

    fn at(root: &Root, watched: Watched, own: u32) -> Self {
        let mut proc = Proc::open(root);
        let mut own_process = Process::new(None, 0, None);
        if let Some(proc) = &mut proc
            && let Some(stat) = proc.stat(own)
        {
            own_process = Process::new(None, stat.started, None);
            own_process.read(proc, own);
        }
        let foreign = Foreign::new(watched.has_other_side.then_some(own));
        Self {
            watched,
            own,
            proc,
            stat: KernelFile::open(root, "proc/stat"),
            is_counted: own_process.figures.map(|figure| figure.is_some()),
            known: HashMap::new(),
            listed: Vec::new(),
            reading: 0,
            ended: [[0.0; FIGURES.len()]; Role::VARIANTS.len()],
            unread: UnreadTime::default(),
            foreign_us: None,
            foreign,
        }
    }

    /// Lists all processes, and reads those of the trial.
    fn update(&mut self) -> Option<()> {
        let Self { watched, own, proc, known, listed, ended, unread, foreign, .. } = self;
        let proc = proc.as_mut()?;
        self.reading += 1;
        proc.list(format_args!("."), listed)?;
        let backends = watched.backends.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for &pid in &*listed {
            let outcome = match known.get_mut(&pid) {
                Some((_, Known::Trial(process))) => process.read(proc, pid),
                Some((_, Known::Other)) => ReadOutcome::Same,
                None => ReadOutcome::Replaced,
            };
            match outcome {
                ReadOutcome::Same => (),
                ReadOutcome::Ended => continue,
                ReadOutcome::Replaced => {
                    if let Some((_, Known::Trial(process))) = known.remove(&pid) {
                        process.leave_role(ended);
                        unread.add_read(&process);
                    }
                    let Some(new) = identify(proc, pid, watched, *own, known, foreign) else { continue };
                    known.insert(pid, (0, new));
                }
            }
            let Some((last_reading, process)) = known.get_mut(&pid) else { continue };
            *last_reading = self.reading;
            if let Known::Trial(process) = process {
                process.update_role(proc, pid, backends.role(pid), ended);
            }
        }
        known.retain(|pid, (last_reading, known)| {
            let is_listed = *last_reading == self.reading;
            match known {
                Known::Trial(process) if !is_listed => {
                    process.leave_role(ended);
                    unread.add_read(process);
                }
                Known::Other if !is_listed => foreign.end(*pid),
                _ => (),
            }
            is_listed
        });
        foreign.listed();
        Some(())
    }

    /// Number of processes with a role, and their totals: none if one of them, or the kernel, lacks it.
    fn sums(&self, role: Role) -> (usize, Figures) {
        let mut sums = self.ended[role as usize].map(Some);
        let mut count = 0;
        for process in self.trial_processes().filter(|process| process.role == Some(role)) {
            count += 1;
            for (sum, figure) in sums.iter_mut().zip(process.in_role()) {
                *sum = sum.zip(figure).map(|(sum, figure)| sum + figure);
            }
        }
        for (sum, is_counted) in sums.iter_mut().zip(self.is_counted) {
            *sum = sum.filter(|_| is_counted).map(to_nanoseconds);
        }
        (count, sums)
    }

    fn trial_processes(&self) -> impl Iterator<Item = &Process> {
        self.known.values().filter_map(|(_, known)| match known {
            Known::Trial(process) => Some(&**process),
            Known::Other => None,
        })
    }

    /// Whether a role is reported; one without processes is reported too, as zero.
    fn is_reported(&self, role: Role) -> bool {
        match role {
            Role::Driver => self.watched.driver.is_some(),
            Role::Pgdyno => self.watched.driver != Some(self.own),
            Role::Background => {
                !self.watched.backends.lock().unwrap_or_else(PoisonError::into_inner).background.is_empty()
            }
            // In containers they are not visible.
            Role::Kernel => self.trial_processes().any(|process| process.role == Some(role)),
            Role::ReplicaReplay | Role::ReplicaOther => {
                self.watched.companion.is_some_and(|(_, kind)| kind.is_replica())
            }
            Role::Pgbouncer => self.watched.companion.is_some_and(|(_, kind)| !kind.is_replica()),
            _ => self.watched.postmaster.is_some(),
        }
    }

    /// CPU time of all processes, in microseconds; interrupts belong to none.
    fn busy_us(&mut self) -> Option<f64> {
        let text = self.stat.as_mut()?.text()?;
        let mut ticks = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_ascii_whitespace()
            .map_while(|n| n.parse::<f64>().ok());
        let (user, nice, system) = (ticks.next()?, ticks.next()?, ticks.next()?);
        Some((user + nice + system) * 1e6 / clock_ticks_per_second() as f64)
    }

    /// Adds the driver's busiest thread: one without time left delays all its clients.
    fn add_busiest(&self, into: &mut Reading) -> Option<()> {
        let (_, Known::Trial(driver)) = self.known.get(&self.watched.driver?)? else { return None };
        let [run, wait] = driver.threads.as_ref()?.busiest_us()?;
        into.add(metric!("role.busiest_run_us"), Some(Role::Driver.as_str()), run);
        into.add(metric!("role.busiest_wait_us"), Some(Role::Driver.as_str()), wait);
        Some(())
    }
}

/// Rounds a sum of microseconds to nanoseconds, the kernel's resolution. A sum of floating-point numbers depends on the
/// order of the processes, and must not make a counter decrease.
fn to_nanoseconds(us: f64) -> f64 {
    (us * 1e3).round() / 1e3
}

impl Source for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn read(&mut self, into: &mut Reading) -> Result<(), CollectError> {
        // Both first: what ends or works until the processes are read must not count as unread, or foreign.
        let busy_us = self.busy_us();
        let postmaster_stat = self.watched.postmaster.and_then(|pid| self.proc.as_mut()?.stat(pid));
        self.update().ok_or(CollectError::Kernel("the list of processes in /proc"))?;

        let mut trial_us = Some(0.0);
        for role in Role::VARIANTS.iter().copied().filter(|role| self.is_reported(*role)) {
            let (count, sums) = self.sums(role);
            into.add(metric!("role.processes"), Some(role.as_str()), count as f64);
            for (metric, sum) in FIGURES.into_iter().zip(sums) {
                if let Some(sum) = sum {
                    into.add(metric, Some(role.as_str()), sum);
                }
            }
            let by_ticks = || Some(sums[USER]? + sums[SYSTEM]?);
            trial_us = trial_us.zip(sums[RUN].or_else(by_ticks)).map(|(trial, role)| trial + role);
        }
        self.add_busiest(into);
        if let Some(stat) = postmaster_stat {
            let [user, system] = self.unread.update(stat.children_us);
            into.add(FIGURES[USER], Some(UNREAD), user);
            into.add(FIGURES[SYSTEM], Some(UNREAD), system);
            into.add(FIGURES[RUN], Some(UNREAD), user + system);
        }
        if let Some((busy_us, trial_us)) = busy_us.zip(trial_us)
            && !self.watched.has_hidden_processes
        {
            let [user, system] = self.unread.max_us;
            // The kernel counts the two in different ways, so that their difference may decrease for a moment.
            let now = busy_us - trial_us - user - system;
            let foreign_us = self.foreign_us.map_or(now, |before| before.max(now));
            self.foreign_us = Some(foreign_us);
            into.add(FIGURES[RUN], Some(FOREIGN), foreign_us);
            if let Some(proc) = &mut self.proc {
                self.foreign.read(proc, foreign_us);
            }
            for (name, us) in self.foreign.busy_names() {
                into.add(metric!("foreign.run_us"), Some(name), us);
            }
        }
        Ok(())
    }
}

/// Determines the role of a new process; none if it has ended already.
fn identify(
    proc: &mut Proc,
    pid: u32,
    watched: &Watched,
    own: u32,
    known: &HashMap<u32, (u64, Known)>,
    foreign: &mut Foreign,
) -> Option<Known> {
    let (name, stat) = proc.named_stat(pid)?;
    let parent = match known.get(&stat.parent) {
        Some((_, Known::Trial(parent))) => Some(parent),
        _ => None,
    };
    let parent = parent.map(|parent| parent.role);
    let ProcessRole::Trial(role) = watched.role_of(own, pid, &stat, parent) else {
        foreign.add(pid, &name, &stat);
        return Some(Known::Other);
    };
    let has_threads = watched.driver == Some(pid) || pid == own;
    let threads = has_threads.then(Threads::default);
    let mut process = Process::new(role, stat.started, threads);
    process.read(proc, pid);
    Some(Known::Trial(Box::new(process)))
}

/// CPU time of ended children that was not read: the postmaster has the total of all children it has waited for,
/// including those that started and ended between two readings. Times are user and system, in microseconds.
#[derive(Debug, Default)]
struct UnreadTime {
    first_us: Option<[f64; 2]>,
    read_us: [f64; 2],
    max_us: [f64; 2],
}

impl UnreadTime {
    /// Counts what was read of a process that has ended.
    fn add_read(&mut self, process: &Process) {
        if process.role.is_some_and(Role::is_of_server) {
            self.read_us[USER] += process.figures[USER].unwrap_or_default();
            self.read_us[SYSTEM] += process.figures[SYSTEM].unwrap_or_default();
        }
    }

    fn update(&mut self, waited_for_us: [f64; 2]) -> [f64; 2] {
        let first_us = *self.first_us.get_or_insert(waited_for_us);
        for kind in [USER, SYSTEM] {
            // An ended process may not have been waited for yet.
            let now = waited_for_us[kind] - first_us[kind] - self.read_us[kind];
            self.max_us[kind] = self.max_us[kind].max(now);
        }
        self.max_us
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::{Arc, Mutex};

    use tempfile::TempDir;

    use super::*;
    use crate::os::Backends;

    /// A `/proc` with a pgdyno of id 2, in which a tick is ten milliseconds.
    struct FakeProc(TempDir);

    const OWN: u32 = 2;
    const POSTMASTER: u32 = 10;

    impl FakeProc {
        fn new() -> Self {
            let proc = Self(tempfile::tempdir().unwrap());
            proc.process(OWN, 1, "pgdyno run", 0, 0);
            proc.thread(OWN, 2, 0, 0);
            proc.process(POSTMASTER, 1, "/usr/bin/postgres -D data", 0, 0);
            proc
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.path().join("proc").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// A process with these ticks of user time, and as much of all counters that depend on it.
        fn process(&self, pid: u32, parent: u32, title: &str, ticks: u64, children: u64) {
            self.write(&format!("{pid}/stat"), &stat(pid, parent, 0, ticks, children, pid));
            self.write(&format!("{pid}/cmdline"), &format!("{title}\0\0\0"));
            self.thread_files(&pid.to_string(), ticks * 10_000_000, ticks * 1000);
            let io = format!("rchar: 1\nread_bytes: {}\nwrite_bytes: {}\n", ticks * 512, ticks * 1024);
            self.write(&format!("{pid}/io"), &io);
        }

        fn thread(&self, pid: u32, id: u32, run_ns: u64, wait_ns: u64) {
            self.thread_files(&format!("{pid}/task/{id}"), run_ns, wait_ns);
        }

        fn thread_files(&self, path: &str, run_ns: u64, wait_ns: u64) {
            // A process that never ran has no counters.
            self.write(&format!("{path}/schedstat"), &format!("{run_ns} {wait_ns} {}\n", run_ns / 1000 + 1));
            let switches = format!("voluntary_ctxt_switches:\t{run_ns}\nnonvoluntary_ctxt_switches:\t7\n");
            self.write(&format!("{path}/status"), &format!("Name:\ta\n{switches}"));
        }

        fn end(&self, pid: u32) {
            fs::remove_dir_all(self.0.path().join("proc").join(pid.to_string())).unwrap();
        }

        fn remove(&self, file: &str) {
            fs::remove_file(self.0.path().join("proc").join(file)).unwrap();
        }

        fn watch(&self) -> (Processes, Arc<Mutex<Backends>>) {
            let backends = Arc::default();
            let watched = Watched {
                driver: None,
                postmaster: Some(POSTMASTER),
                has_hidden_processes: false,
                has_other_side: false,
                companion: None,
                profilers: Arc::default(),
                backends: Arc::clone(&backends),
            };
            (Processes::at(&Root::new(self.0.path()), watched, OWN), backends)
        }
    }

    fn stat(pid: u32, parent: u32, flags: u32, ticks: u64, children: u64, started: u32) -> String {
        format!(
            "{pid} (a ) name) S {parent} 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 {children} 0 20 0 1 0 {started} 0 0"
        )
    }

    /// A value in the latest reading.
    fn read(processes: &mut Processes) -> impl Fn(&str, &str) -> Option<f64> + use<> {
        let mut reading = Reading::default();
        processes.read(&mut reading).unwrap();
        let values: Vec<(String, f64)> = reading
            .values()
            .iter()
            .map(|value| (format!("{} {}", value.metric.name, value.label.as_deref().unwrap()), value.value))
            .collect();
        move |metric, role| Some(values.iter().find(|(name, _)| *name == format!("{metric} {role}"))?.1)
    }

    fn us(ticks: u64) -> Option<f64> {
        Some(ticks as f64 * 1e6 / clock_ticks_per_second() as f64)
    }

    #[test]
    fn a_sum_does_not_depend_on_the_order_of_processes() {
        let us = [0.1, 0.2, 0.3];
        let sum = |order: [usize; 3]| order.iter().fold(0.0, |sum, at| sum + us[*at]);
        assert_ne!(sum([0, 1, 2]), sum([2, 1, 0]));
        assert_eq!(to_nanoseconds(sum([0, 1, 2])), to_nanoseconds(sum([2, 1, 0])));
        assert_eq!(to_nanoseconds(4_691.429_999_999_999), 4_691.43);
    }

    #[test]
    fn a_role_keeps_the_counters_of_ended_processes() {
        let proc = FakeProc::new();
        proc.process(11, POSTMASTER, "postgres: u d [local] SELECT", 5, 0);
        proc.process(12, POSTMASTER, "postgres: u d [local] idle", 3, 0);
        let (mut processes, _) = proc.watch();
        let now = read(&mut processes);
        assert_eq!((now("role.processes", "load"), now("role.user_us", "load")), (Some(2.0), us(8)));
        assert_eq!(now("role.run_us", "load"), Some(80_000.0));
        assert_eq!(now("role.wait_us", "load"), Some(8.0));
        assert_eq!(
            (now("role.read_bytes", "load"), now("role.write_bytes", "load")),
            (Some(4096.0), Some(8192.0))
        );
        assert_eq!(now("role.switches_involuntary", "load"), Some(14.0));
        assert_eq!(
            (now("role.processes", "archiver"), now("role.run_us", "archiver")),
            (Some(0.0), Some(0.0))
        );

        proc.end(11);
        proc.process(12, POSTMASTER, "postgres: u d [local] idle", 4, 0);
        let now = read(&mut processes);
        assert_eq!((now("role.processes", "load"), now("role.user_us", "load")), (Some(1.0), us(9)));
        // The id of an ended process is reused.
        proc.process(12, POSTMASTER, "postgres: u d [local] idle", 2, 0);
        proc.write("12/stat", &stat(12, POSTMASTER, 0, 2, 0, 99));
        assert_eq!(read(&mut processes)("role.user_us", "load"), us(11));
    }

    #[test]
    fn a_collectors_earlier_work_remains_in_its_former_role() {
        let proc = FakeProc::new();
        proc.process(11, POSTMASTER, "postgres: u d [local] idle", 5, 0);
        let (mut processes, backends) = proc.watch();
        assert_eq!(read(&mut processes)("role.user_us", "load"), us(5));
        backends.lock().unwrap().collectors.push(11);
        proc.process(11, POSTMASTER, "postgres: u d [local] idle", 9, 0);
        let now = read(&mut processes);
        // Work between the two readings can't be attributed.
        assert_eq!((now("role.user_us", "load"), now("role.user_us", "collector")), (us(9), us(0)));
        proc.process(11, POSTMASTER, "postgres: u d [local] idle", 10, 0);
        let now = read(&mut processes);
        assert_eq!((now("role.user_us", "load"), now("role.user_us", "collector")), (us(9), us(1)));
    }

    #[test]
    fn a_process_gets_its_role_with_its_title_and_its_children_are_server_other() {
        let proc = FakeProc::new();
        proc.process(11, POSTMASTER, "/usr/bin/postgres -D data", 5, 0);
        let (mut processes, _) = proc.watch();
        assert_eq!(read(&mut processes)("role.processes", "server other"), Some(0.0));
        proc.process(11, POSTMASTER, "postgres: archiver", 6, 0);
        proc.process(12, 11, "sh -c cp", 2, 0);
        let now = read(&mut processes);
        assert_eq!((now("role.user_us", "archiver"), now("role.user_us", "server other")), (us(6), us(2)));
    }

    #[test]
    fn unread_time_of_ended_server_processes_is_reported() {
        let proc = FakeProc::new();
        proc.process(POSTMASTER, 1, "postgres", 0, 100);
        proc.process(11, POSTMASTER, "postgres: u d [local] SELECT", 5, 0);
        let (mut processes, _) = proc.watch();
        assert_eq!(read(&mut processes)("role.user_us", "server ended"), us(0));
        // A process of which 5 were read ended with 7, and others started and ended with 20.
        proc.end(11);
        proc.process(POSTMASTER, 1, "postgres", 0, 127);
        let now = read(&mut processes);
        assert_eq!((now("role.user_us", "server ended"), now("role.user_us", "load")), (us(22), us(5)));
        assert_eq!(now("role.run_us", "server ended"), us(22));
    }

    #[test]
    fn driver_threads_are_summed_and_the_busiest_is_reported() {
        let proc = FakeProc::new();
        proc.process(20, OWN, "pgdyno driver", 50, 0);
        proc.thread(20, 20, 1000, 1000);
        proc.thread(20, 21, 5_000_000, 40_000);
        proc.thread(20, 22, 6_000_000, 30_000);
        proc.process(21, 20, "sh -c true", 1, 0);
        let (mut processes, _) = proc.watch();
        processes.watched.driver = Some(20);
        let now = read(&mut processes);
        assert_eq!(now("role.run_us", "driver"), Some(11_001.0 + 10_000.0));
        assert_eq!(now("role.user_us", "driver"), us(51));
        assert_eq!(now("role.busiest_run_us", "driver"), Some(6000.0));
        assert_eq!(now("role.busiest_wait_us", "driver"), Some(30.0));
        // An ended thread remains in the sum.
        fs::remove_dir_all(proc.0.path().join("proc/20/task/22")).unwrap();
        proc.thread(20, 21, 7_000_000, 40_000);
        let now = read(&mut processes);
        assert_eq!(now("role.run_us", "driver"), Some(13_001.0 + 10_000.0));
        assert_eq!(now("role.busiest_run_us", "driver"), Some(7000.0));
    }

    #[test]
    fn time_of_foreign_processes_and_the_kernel_is_distinguished() {
        let proc = FakeProc::new();
        proc.write("stat", "cpu  100 0 0 9 9 9 9\n");
        proc.process(11, POSTMASTER, "postgres: u d [local] SELECT", 10, 0);
        proc.process(30, 1, "cc1", 50, 0);
        proc.process(40, 3, "", 4, 0);
        proc.write("40/stat", &stat(40, 3, 0x0020_8040, 4, 0, 1));
        let (mut processes, _) = proc.watch();
        let before = read(&mut processes);
        assert_eq!(before("role.user_us", "kernel"), us(4));
        assert_eq!(before("role.run_us", "foreign"), us(100 - 10 - 4));
        proc.write("stat", "cpu  150 10 20 99 9 9 9\n");
        proc.process(11, POSTMASTER, "postgres: u d [local] SELECT", 30, 0);
        proc.process(30, 1, "cc1", 80, 0);
        let now = read(&mut processes);
        assert_eq!(now("role.run_us", "foreign"), us(180 - 30 - 4));
        assert_eq!(now("foreign.run_us", "a ) name"), us(80 - 50));
        // It never decreases.
        proc.process(11, POSTMASTER, "postgres: u d [local] SELECT", 35, 0);
        assert_eq!(read(&mut processes)("role.run_us", "foreign"), us(180 - 30 - 4));
    }

    #[test]
    fn counters_that_the_kernel_lacks_are_omitted() {
        let proc = FakeProc::new();
        proc.process(11, POSTMASTER, "postgres: u d [local] SELECT", 10, 0);
        for pid in [OWN, POSTMASTER, 11] {
            proc.write(&format!("{pid}/schedstat"), "0 0 0\n");
        }
        // This process is another user's.
        proc.remove("11/io");
        let (mut processes, _) = proc.watch();
        let now = read(&mut processes);
        for role in ["load", "checkpointer", "postmaster"] {
            assert_eq!((now("role.run_us", role), now("role.wait_us", role)), (None, None), "{role}");
            assert!(now("role.user_us", role).is_some(), "{role}");
        }
        assert_eq!((now("role.read_bytes", "load"), now("role.read_bytes", "postmaster")), (None, Some(0.0)));
        // Without schedstat, all files are read every time.
        proc.process(11, POSTMASTER, "postgres: u d [local] SELECT", 12, 0);
        proc.write("11/schedstat", "0 0 0\n");
        assert_eq!(read(&mut processes)("role.user_us", "load"), us(12));
    }

    #[test]
    fn a_remote_server_has_no_processes() {
        let proc = FakeProc::new();
        proc.write("stat", "cpu  100 0 0 9 9 9 9\n");
        let mut processes = Processes::at(&Root::new(proc.0.path()), Watched::default(), OWN);
        let now = read(&mut processes);
        assert_eq!((now("role.processes", "load"), now("role.processes", "driver")), (None, None));
        assert_eq!((now("role.processes", "pgdyno"), now("role.processes", "kernel")), (Some(1.0), None));
        let gone = tempfile::tempdir().unwrap();
        assert_eq!(now("role.run_us", "foreign"), us(100));
        let hidden = Watched { has_hidden_processes: true, ..Watched::default() };
        let mut processes = Processes::at(&Root::new(proc.0.path()), hidden, OWN);
        assert_eq!(read(&mut processes)("role.run_us", "foreign"), None, "the server's may be among them");
        let mut nothing = Processes::at(&Root::new(gone.path()), Watched::default(), OWN);
        assert!(nothing.read(&mut Reading::default()).unwrap_err().to_string().contains("/proc"));
    }
}
