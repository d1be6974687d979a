//! Folds samples into stacks by role while they are read: memory grows with the number of distinct stacks, not of
//! samples.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use model::profile::{KERNEL_SUFFIX, Stacks};

use super::script::{Frame, Line, Thread};
use crate::os::Roster;

/// Role of processes that have none.
pub(super) const FOREIGN: &str = "foreign";

/// Totals of all samples.
#[derive(Debug, Default)]
pub(super) struct FoldedSamples {
    /// By perf's name.
    pub(super) event: Option<String>,
    pub(super) samples: u64,
    pub(super) lost: u64,
    /// Samples of roles whose innermost function has no name, by file.
    pub(super) nameless: BTreeMap<String, u64>,
    /// By role.
    stacks: BTreeMap<&'static str, BTreeMap<String, u64>>,
}

/// One sample while it is read; its buffers are reused for the next.
#[derive(Default)]
pub(super) struct Sample {
    pid: u32,
    comm: String,
    /// Innermost first.
    frames: Vec<String>,
    /// File of the innermost frame, if that has no name.
    nameless: Option<String>,
    pub(super) is_open: bool,
}

impl FoldedSamples {
    /// Folds the output of `perf script`, without the samples of the process `without`.
    pub(super) fn read(
        mut script: impl BufRead,
        roster: &mut Roster,
        without: Option<u32>,
    ) -> io::Result<Self> {
        let mut folded = Self::default();
        let mut sample = Sample::default();
        let mut bytes = Vec::new();
        let mut stack = String::new();
        loop {
            bytes.clear();
            let is_end = script.read_until(b'\n', &mut bytes)? == 0;
            let line = String::from_utf8_lossy(&bytes);
            let line = Line::read(&line);
            if !matches!(line, Line::Frame(_)) {
                folded.close(&mut sample, roster, &mut stack);
            }
            match line {
                // An idle CPU runs the kernel's process 0.
                Line::Sample { thread: Thread { pid: 0, .. }, .. }
                | Line::Switch { .. }
                | Line::Other
                | Line::End => {}
                Line::Sample { thread, .. } if without == Some(thread.pid) => {}
                Line::Sample { thread, event, only, .. } => {
                    if folded.event.is_none() {
                        folded.event = Some(event.to_owned());
                    }
                    sample.open(thread);
                    only.iter().for_each(|frame| sample.push(frame));
                }
                Line::Frame(frame) if sample.is_open => sample.push(&frame),
                Line::Frame(_) => {}
                Line::Lost(lost) => folded.lost += lost,
                Line::Fork { pid, parent } => roster.forked(pid, parent),
            }
            if is_end {
                return Ok(folded);
            }
        }
    }

    /// Stacks of all roles with samples, by name.
    pub(super) fn into_stacks(self) -> Vec<Stacks> {
        let of_role = |(role, samples): (&str, _)| Stacks { role: role.to_owned(), samples };
        self.stacks.into_iter().map(of_role).collect()
    }

    fn close(&mut self, sample: &mut Sample, roster: &Roster, stack: &mut String) {
        if !sample.is_open {
            return;
        }
        sample.is_open = false;
        let role = sample.role(roster);
        if let (Some(file), true) = (&sample.nameless, role != FOREIGN) {
            *self.nameless.entry(file.clone()).or_default() += 1;
        }
        sample.write(stack);
        self.samples += 1;
        let stacks = self.stacks.entry(role).or_default();
        match stacks.get_mut(stack.as_str()) {
            Some(samples) => *samples += 1,
            None => {
                stacks.insert(stack.clone(), 1);
            }
        }
    }
}

impl Sample {
    pub(super) fn open(&mut self, thread: Thread<'_>) {
        self.comm = process(thread.comm);
        self.pid = thread.pid;
        self.frames.clear();
        self.nameless = None;
        self.is_open = true;
    }

    /// The role of its process.
    pub(super) fn role(&self, roster: &Roster) -> &'static str {
        roster.role(self.pid, self.outermost_first()).unwrap_or(FOREIGN)
    }

    /// Writes it as a folded stack.
    pub(super) fn write(&self, stack: &mut String) {
        stack.clear();
        stack.push_str(&self.comm);
        for frame in self.outermost_first() {
            stack.push(';');
            stack.push_str(frame);
        }
    }

    fn outermost_first(&self) -> impl Iterator<Item = &str> {
        self.frames.iter().rev().map(String::as_str)
    }

    pub(super) fn push(&mut self, frame: &Frame) {
        if frame.is_end_mark() {
            return;
        }
        let suffix = if frame.is_kernel() { KERNEL_SUFFIX } else { "" };
        let name = match frame.symbol {
            // The separator of frames must not occur within one.
            Some(symbol) => format!("{}{suffix}", symbol.replace(';', ":")),
            None => {
                let file = match (frame.is_kernel(), frame.file.trim_matches(['[', ']'])) {
                    (true, _) => "kernel",
                    (false, "") => "unknown",
                    (false, path) => path.rsplit('/').next().unwrap_or(path),
                };
                let file = format!("[{}]", file.replace(';', ":"));
                // A caller's return address may lie beyond its end, if the call is its last instruction.
                if self.frames.is_empty() {
                    self.nameless = Some(file.clone());
                }
                format!("{file}{suffix}")
            }
        };
        self.frames.push(name);
    }
}

/// A process's name in stacks.
pub(super) fn process(comm: &str) -> String {
    // Kernel threads are named after their current work, such as `kworker/0:1-events`.
    comm.split('/').next().unwrap_or(comm).replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Watched;

    const SCRIPT: &str = "\
perf 90/90 1.0: PERF_RECORD_FORK(21:21):(10:10)
postgres 21/21 1.1: cpu-clock: 
\tffffffff81e29002 sock_recvmsg ([kernel.kallsyms])
\t  10a929 [unknown] (/lib/libc.so.6)
\t  3f9c0a PostgresMain (/bin/postgres)
\tffffffffffffffff [unknown] ([unknown])

swapper 0/0 1.15: cpu-clock: 
\tffffffff821ef72b pv_native_safe_halt ([kernel.kallsyms])

perf 90/90 1.2: PERF_RECORD_LOST lost 12
postgres 21/21 1.2: cpu-clock: 
\tffffffff81e29002 sock_recvmsg ([kernel.kallsyms])
\t  10a929 [unknown] (/lib/libc.so.6)
\t  3f9c0a PostgresMain (/bin/postgres)

postgres 21/21 1.25: cpu-clock: 
\t  10a929 [unknown] (/lib/libjit.so)
\t  3f9c0a PostgresMain (/bin/postgres)

cc1 77/77 1.3: cpu-clock:    401000 a;b (/bin/cc1)
kworker/0:1-eve 9/9 1.4: cpu-clock: 
\tffffffffc0000000 [unknown] ([unknown])
";

    #[test]
    fn samples_of_the_profiler_are_left_out() {
        let mut roster = Roster::new(Watched::default());
        let folded = FoldedSamples::read(SCRIPT.as_bytes(), &mut roster, Some(77)).unwrap();
        let samples = folded.samples;
        let stacks = folded.into_stacks();
        assert!(stacks.iter().all(|stacks| !stacks.folded().contains("cc1")), "{stacks:?}");
        assert_eq!((samples, stacks.iter().map(Stacks::total).sum::<u64>()), (4, 4));
    }

    #[test]
    fn samples_are_folded_by_role_and_nameless_functions_are_counted_by_file() {
        let mut roster = Roster::new(Watched { postmaster: Some(10), ..Watched::default() });
        let folded = FoldedSamples::read(SCRIPT.as_bytes(), &mut roster, None).unwrap();
        assert_eq!((folded.samples, folded.lost), (5, 12));
        assert_eq!(folded.event.as_deref(), Some("cpu-clock"));
        let nameless = BTreeMap::from([("[libjit.so]".to_owned(), 1)]);
        assert_eq!(folded.nameless, nameless, "neither callers nor others' processes count");
        let text = |stacks: &Stacks| format!("{}: {}", stacks.role, stacks.folded());
        assert_eq!(
            folded.into_stacks().iter().map(text).collect::<String>(),
            "foreign: cc1;a:b 1\nkworker;[kernel]_[k] 1\n\
             load: postgres;PostgresMain;[libc.so.6];sock_recvmsg_[k] 2\n\
             postgres;PostgresMain;[libjit.so] 1\n"
        );
    }
}
