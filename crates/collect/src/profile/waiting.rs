//! Off-CPU profile: stacks of threads when they left their CPU, and how long they waited, by role, while it is read.
//!
//! Every switch is recorded, and the requested number of them with a stack, so that the time that a role waited is
//! counted, and its distribution over stacks is an estimate from samples.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufRead};

use model::profile::{NO_STACK, PREEMPTED, Stacks};

use super::fold::{FOREIGN, Sample, process};
use super::script::{Line, SwitchDirection, Thread};
use crate::os::Roster;

/// For each lost record at least so many switches, each of which has two records, and one more if it is sampled.
const MIN_SWITCHES_PER_LOST: u64 = 10;

/// Totals of all switches.
#[derive(Debug, Default)]
pub(super) struct FoldedWaits {
    /// Number of times that a thread left its CPU.
    pub(super) switches: u64,
    /// Number of these with a stack.
    pub(super) sampled: u64,
    pub(super) lost: u64,
    roles: BTreeMap<&'static str, Waits>,
}

/// Waits of a process, or a role.
#[derive(Debug, Default)]
struct Waits {
    /// Time of waits whose start was recorded.
    us: u64,
    /// By stack, of waits with one: time multiplied by the sample's period.
    weights: BTreeMap<String, f64>,
    /// By process name, of waits that started before.
    before_us: BTreeMap<String, u64>,
}

/// A thread off its CPU.
struct OffCpuThread {
    at_us: i64,
    pid: u32,
    stack: Option<(String, u64)>,
}

#[derive(Default)]
struct WaitFolder {
    totals: FoldedWaits,
    /// By thread.
    off_cpu: HashMap<u32, OffCpuThread>,
    /// Threads seen.
    seen: HashSet<u32>,
    /// Latest sample of a thread, which is about to leave its CPU.
    sampled: HashMap<u32, (String, u64)>,
    /// By process, with the role from its first sample: some are known only by their functions.
    processes: HashMap<u32, (Option<&'static str>, Waits)>,
}

impl FoldedWaits {
    /// Reads the output of `perf script` for a recording between two times of `CLOCK_MONOTONIC`.
    pub(super) fn read(
        mut script: impl BufRead,
        roster: &mut Roster,
        [from_us, to_us]: [i64; 2],
    ) -> io::Result<Self> {
        let mut folder = WaitFolder::default();
        let mut sample = Sample::default();
        let mut of_sample = (0, 0, 0);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let is_end = script.read_until(b'\n', &mut bytes)? == 0;
            let line = String::from_utf8_lossy(&bytes);
            let line = Line::read(&line);
            if !matches!(line, Line::Frame(_)) && sample.is_open {
                sample.is_open = false;
                let mut stack = String::new();
                sample.write(&mut stack);
                let (pid, tid, period) = of_sample;
                folder.processes.entry(pid).or_default().0.get_or_insert_with(|| sample.role(roster));
                folder.sampled.insert(tid, (stack, period));
            }
            match line {
                Line::Sample { thread, period, only, .. } if thread.pid != 0 => {
                    sample.open(thread);
                    of_sample = (thread.pid, thread.tid, period);
                    only.iter().for_each(|frame| sample.push(frame));
                }
                Line::Frame(frame) if sample.is_open => sample.push(&frame),
                Line::Switch { thread, direction }
                    if thread.pid != 0 && (from_us..=to_us).contains(&thread.at_us) =>
                {
                    folder.add_switch(thread, direction, from_us);
                }
                Line::Lost(lost) => folder.totals.lost += lost,
                Line::Fork { pid, parent } => roster.forked(pid, parent),
                _ => {}
            }
            if is_end {
                return Ok(folder.end(roster, to_us));
            }
        }
    }

    /// Whether so many records were lost that the waits are not known: with lost records, waits are missing, or two count as
    /// one with the time between them.
    pub(super) fn is_incomplete(&self) -> bool {
        self.lost.saturating_mul(MIN_SWITCHES_PER_LOST) > self.switches
    }

    /// Microseconds of all roles, by name.
    pub(super) fn into_stacks(self) -> Vec<Stacks> {
        let us = |us: f64| us.round() as u64;
        let of_role = |(name, role): (&str, Waits)| {
            let sampled: f64 = role.weights.values().sum();
            let scale = role.us as f64 / sampled;
            let mut samples: BTreeMap<String, u64> = if sampled > 0.0 {
                role.weights.into_iter().map(|(stack, weight)| (stack, us(weight * scale))).collect()
            } else {
                BTreeMap::from([(format!("{name};{NO_STACK}"), role.us)])
            };
            for (comm, before_us) in role.before_us {
                *samples.entry(format!("{comm};{NO_STACK}")).or_default() += before_us;
            }
            samples.retain(|_, us| *us > 0);
            Stacks { role: name.to_owned(), samples }
        };
        let all = self.roles.into_iter().map(of_role);
        all.filter(|stacks| !stacks.samples.is_empty()).collect()
    }
}

impl WaitFolder {
    fn add_switch(&mut self, thread: Thread<'_>, direction: SwitchDirection, from_us: i64) {
        let is_new = self.seen.insert(thread.tid);
        if direction == SwitchDirection::In {
            match self.off_cpu.remove(&thread.tid) {
                Some(out) => self.add_wait(out, thread.at_us),
                None if is_new => {
                    let waits = &mut self.processes.entry(thread.pid).or_default().1;
                    *waits.before_us.entry(process(thread.comm)).or_default() +=
                        length_us(from_us, thread.at_us);
                }
                None => {}
            }
            return;
        }
        self.totals.switches += 1;
        let stack = self.sampled.remove(&thread.tid).map(|(mut stack, period)| {
            self.totals.sampled += 1;
            if direction == SwitchDirection::Preempted {
                stack.push(';');
                stack.push_str(PREEMPTED);
            }
            (stack, period)
        });
        self.off_cpu.insert(thread.tid, OffCpuThread { at_us: thread.at_us, pid: thread.pid, stack });
    }

    fn add_wait(&mut self, thread: OffCpuThread, until_us: i64) {
        let us = length_us(thread.at_us, until_us);
        let waits = &mut self.processes.entry(thread.pid).or_default().1;
        waits.us += us;
        if let Some((stack, period)) = thread.stack {
            *waits.weights.entry(stack).or_default() += us as f64 * period as f64;
        }
    }

    /// Ends the waits that are still in progress.
    fn end(mut self, roster: &Roster, to_us: i64) -> FoldedWaits {
        for (_, out) in std::mem::take(&mut self.off_cpu) {
            self.add_wait(out, to_us);
        }
        for (pid, (sampled, waits)) in self.processes {
            let role = sampled.or_else(|| roster.role(pid, std::iter::empty())).unwrap_or(FOREIGN);
            let role = self.totals.roles.entry(role).or_default();
            role.us += waits.us;
            for (stack, weight) in waits.weights {
                *role.weights.entry(stack).or_default() += weight;
            }
            for (comm, us) in waits.before_us {
                *role.before_us.entry(comm).or_default() += us;
            }
        }
        self.totals
    }
}

fn length_us(from_us: i64, to_us: i64) -> u64 {
    u64::try_from(to_us - from_us).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Watched;

    /// A backend that waits for 300 ms with a stack and for 100 ms without; that waits for a CPU for 50 ms, in a sample
    /// that stands for two; and that still waits at the end. Another whose wait started before. The kernel's idle
    /// process.
    const SCRIPT: &str = "\
perf 90/90 1.0: PERF_RECORD_FORK(21:21):(10:10)
perf 90/90 1.0: PERF_RECORD_FORK(22:22):(10:10)
postgres 21/21 1.05: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid: 0/0
postgres 22/22 1.2: PERF_RECORD_SWITCH_CPU_WIDE IN          prev pid/tid: 0/0
postgres 21/21 1.3: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid: 0/0
postgres 21/21 1.3: 1 context-switches:k: 
\tffffffff81e29002 schedule ([kernel.kallsyms])
\t  10a929 ProcSleep (/bin/postgres)
\t  3f9c0a PostgresMain (/bin/postgres)

postgres 21/21 1.3: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid: 0/0
swapper 0/0 1.35: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid: 21/21
postgres 21/21 1.6: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid: 0/0
postgres 21/21 1.61: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid: 0/0
postgres 21/21 1.71: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid: 0/0
postgres 21/21 1.72: 2 context-switches:k: 
\t  3f9c0a PostgresMain (/bin/postgres)

postgres 21/21 1.72: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid: 22/22
postgres 21/21 1.77: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid: 22/22
postgres 21/21 1.8: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid: 0/0
postgres 21/21 2.5: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid: 0/0
";

    #[test]
    fn waits_are_distributed_by_samples() {
        let mut roster = Roster::new(Watched { postmaster: Some(10), ..Watched::default() });
        let between_us = [1_100_000, 2_000_000];
        let waiting = FoldedWaits::read(SCRIPT.as_bytes(), &mut roster, between_us).unwrap();
        assert_eq!((waiting.switches, waiting.sampled, waiting.lost), (4, 2, 0));
        assert!(!waiting.is_incomplete());
        let text = |stacks: &Stacks| format!("{}: {}", stacks.role, stacks.folded());
        // 300 + 100 + 50 + 200 ms, three parts of which are ProcSleep's, and one is the preemption.
        assert_eq!(
            waiting.into_stacks().iter().map(text).collect::<String>(),
            "load: postgres;PostgresMain;ProcSleep;schedule_[k] 487500\n\
             postgres;PostgresMain;[preempted] 162500\n\
             postgres;[no stack] 200000\n\
             server other: postgres;[no stack] 100000\n"
        );
    }

    #[test]
    fn waits_are_not_known_if_more_than_one_record_in_ten_switches_was_lost() {
        let with_lost = |script: &str| {
            let mut roster = Roster::new(Watched { postmaster: Some(10), ..Watched::default() });
            FoldedWaits::read(script.as_bytes(), &mut roster, [1_000_000, 3_000_000]).unwrap()
        };
        let lost = "perf 90/90 1.5: PERF_RECORD_LOST lost 1\n";
        let few = with_lost(&format!("{SCRIPT}{lost}"));
        assert_eq!((few.switches, few.lost, few.is_incomplete()), (5, 1, true));
        let switches = |seconds: u32| {
            format!(
                "postgres 21/21 {seconds}.1: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid: 0/0\n\
                 postgres 21/21 {seconds}.2: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid: 0/0\n"
            )
        };
        let ten = with_lost(&format!("{lost}{}", switches(1).repeat(5) + &switches(2).repeat(5)));
        assert_eq!((ten.switches, ten.lost, ten.is_incomplete()), (10, 1, false));
        let more = with_lost(&format!("{lost}{lost}{}", switches(1).repeat(10)));
        assert_eq!((more.switches, more.lost, more.is_incomplete()), (10, 2, true));
    }
}
