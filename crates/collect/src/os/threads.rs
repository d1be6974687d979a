//! The threads of one process: the kernel sums only some of their counters.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use super::proc_files::{Proc, Schedule};

/// Counters of threads: run and wait in microseconds, voluntary and involuntary switches.
pub(super) type Figures = [Option<f64>; 4];

/// The counters of one thread.
pub(super) fn figures(schedule: Option<Schedule>, switches: [Option<f64>; 2]) -> Figures {
    let [voluntary, involuntary] = switches;
    [schedule.map(|times| times.run_us), schedule.map(|times| times.wait_us), voluntary, involuntary]
}

/// All threads seen.
#[derive(Debug, Default)]
pub(super) struct Threads {
    living: HashMap<u32, Thread>,
    /// Totals of ended threads.
    ended: [f64; 4],
    busiest_us: [f64; 2],
    listed: Vec<u32>,
}

#[derive(Debug, Default)]
struct Thread {
    schedule: Option<Schedule>,
    figures: Figures,
    is_listed: bool,
    /// Its open files.
    schedstat: Option<OwnedFd>,
    status: Option<OwnedFd>,
}

impl Threads {
    /// Reads all of them. Counters that can't be read keep their values.
    pub(super) fn read(&mut self, proc: &mut Proc, pid: u32) {
        if proc.list(format_args!("{pid}/task"), &mut self.listed).is_none() {
            return;
        }
        for &id in &self.listed {
            let thread = self.living.entry(id).or_default();
            thread.is_listed = true;
            let schedule = proc.schedule(pid, Some(id), &mut thread.schedstat);
            // If it has not run, nothing else has changed.
            if schedule.is_some() && schedule == thread.schedule {
                continue;
            }
            let now = figures(schedule, proc.switches(pid, Some(id), &mut thread.status));
            thread.schedule = schedule;
            thread.figures = std::array::from_fn(|figure| now[figure].or(thread.figures[figure]));
        }
        self.living.retain(|_, thread| {
            if !thread.is_listed {
                for (sum, figure) in self.ended.iter_mut().zip(thread.figures) {
                    *sum += figure.unwrap_or_default();
                }
            }
            std::mem::take(&mut thread.is_listed)
        });
        let busiest = self.living.values().filter_map(|thread| thread.schedule);
        if let Some(busiest) = busiest.max_by(|a, b| a.run_us.total_cmp(&b.run_us)) {
            // Another thread with less wait may be the busiest now: a counter must not decrease.
            self.busiest_us[0] = self.busiest_us[0].max(busiest.run_us);
            self.busiest_us[1] = self.busiest_us[1].max(busiest.wait_us);
        }
    }

    /// Totals of all threads; none if one of them lacks the counter.
    pub(super) fn sums(&self) -> Figures {
        std::array::from_fn(|figure| {
            self.living
                .values()
                .try_fold(self.ended[figure], |sum, thread| Some(sum + thread.figures[figure]?))
        })
    }

    /// Run and wait of the thread that has run most, in microseconds; none if not counted.
    pub(super) fn busiest_us(&self) -> Option<[f64; 2]> {
        (self.busiest_us[0] > 0.0).then_some(self.busiest_us)
    }
}
