//! Instructions that a server's programs execute, as the CPU counts them: what their code takes, whatever else the machine
//! does. The kernel's are not counted, which needs no rights beyond `perf_event_paranoid` = 2.

use std::path::Path;

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, CountAndTime, Counter};

use super::proc_files::Proc;
use crate::root::Root;

/// Counters of a postmaster, of its children, and of all that they start.
#[derive(Debug)]
pub struct ServerInstructions {
    counters: Vec<Counter>,
}

impl ServerInstructions {
    /// The processes of this postmaster; `None` if the CPU does not count (as in most virtual machines), or the kernel does not
    /// let this user count them.
    pub fn new(postmaster: u32) -> Option<Self> {
        Self::counting(Hardware::INSTRUCTIONS, postmaster)
    }

    fn counting(event: impl Event + Clone, postmaster: u32) -> Option<Self> {
        let mut processes = Vec::new();
        Proc::open(&Root::new(Path::new("/")))?.children(postmaster, &mut processes)?;
        // A session that the postmaster starts from now on is counted with it.
        processes.insert(0, postmaster);
        let counters = processes.into_iter().filter_map(|pid| {
            let mut builder = Builder::new(event.clone());
            let counter =
                builder.observe_pid(pid.cast_signed()).any_cpu().inherit(true).enabled(true).build();
            match counter {
                Ok(counter) => Some(Some(counter)),
                // It has ended since.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && pid != postmaster => None,
                Err(_) => Some(None),
            }
        });
        Some(Self { counters: counters.collect::<Option<_>>()? })
    }

    /// Their instructions since [`ServerInstructions::new`], extrapolated if the CPU had too few counters for all the time.
    pub fn read(&mut self) -> Option<u64> {
        let mut sum = 0.0;
        for counter in &mut self.counters {
            let CountAndTime { count, time_enabled, time_running } = counter.read_count_and_time().ok()?;
            let share = if time_running == 0 { 1.0 } else { time_enabled as f64 / time_running as f64 };
            sum += count as f64 * share;
        }
        Some(sum as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use perf_event::events::Software;

    use super::*;
    use crate::os::ServerCpu;

    /// Their CPU time takes the place of instructions, which virtual machines do not count. A child that was there before, one
    /// that it starts and one that has ended count, and nothing while all wait.
    #[test]
    fn processes_that_exist_and_those_that_they_start_count() {
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let child = format!("echo; read _; {work}; echo; read _; ({work}); echo; read _");
        let mut parent = Command::new("sh");
        parent.args(["-c", &format!("exec 3<&0; ({child}) <&3 & wait")]);
        let mut parent = parent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut to, mut from) =
            (parent.stdin.take().unwrap(), BufReader::new(parent.stdout.take().unwrap()).lines());
        from.next().unwrap().unwrap();
        let mut counted = ServerInstructions::counting(Software::TASK_CLOCK, parent.id()).unwrap();
        let mut cpu = ServerCpu::new(parent.id()).unwrap();
        let mut step = || {
            let before = (counted.read().unwrap(), cpu.read().unwrap());
            let waited = counted.read().unwrap() - before.0;
            to.write_all(b"\n").unwrap();
            from.next().unwrap().unwrap();
            let used_us = cpu.read().unwrap() - before.1;
            ((counted.read().unwrap() - before.0) as f64 / 1e3, used_us, waited)
        };
        let (counted_us, used_us, waited) = step();
        assert!((0.8..1.25).contains(&(counted_us / used_us)), "{counted_us} µs, and used were {used_us}");
        assert_eq!(waited, 0);
        let (of_started_us, ..) = step();
        assert!(of_started_us > 0.3 * counted_us, "{of_started_us} µs after {counted_us}");
        drop(to);
        parent.wait().unwrap();
    }

    #[test]
    fn a_process_that_does_not_exist_is_not_counted() {
        assert!(ServerInstructions::counting(Software::TASK_CLOCK, u32::MAX / 4).is_none());
    }
}
