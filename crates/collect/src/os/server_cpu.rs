//! CPU time of a server's processes, read between the slices of a paired trial: a few files, in a fraction of a
//! millisecond.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::proc_files::Proc;
use crate::root::Root;

/// CPU time of a postmaster and its children.
#[derive(Debug)]
pub struct ServerCpu {
    proc: Proc,
    postmaster: u32,
    children: Vec<u32>,
    /// Open files of the processes, by process id.
    files: HashMap<u32, Option<OwnedFd>>,
    postmaster_stat: Option<OwnedFd>,
}

impl ServerCpu {
    /// The processes of this postmaster; `None` without `/proc`.
    pub fn new(postmaster: u32) -> Option<Self> {
        let proc = Proc::open(&Root::new(Path::new("/")))?;
        Some(Self { proc, postmaster, children: Vec::new(), files: HashMap::new(), postmaster_stat: None })
    }

    /// Their CPU time since the server's start, user and system, in microseconds: exact for processes that run and do
    /// not use a CPU now, in clock ticks for those that have ended. `None` if the kernel does not report it.
    pub fn read(&mut self) -> Option<f64> {
        let Self { proc, postmaster, children, files, postmaster_stat } = self;
        proc.children(*postmaster, children)?;
        // First: the time of a child that ends meanwhile is missing rather than counted twice.
        let [user_us, system_us] = proc.held_stat(*postmaster, postmaster_stat)?.children_us;
        files.retain(|pid, _| pid == postmaster || children.contains(pid));
        let mut total_us = user_us + system_us;
        for pid in children.iter().chain([&*postmaster]) {
            let schedule = proc.schedule(*pid, None, files.entry(*pid).or_default());
            total_us += schedule.map_or(0.0, |schedule| schedule.run_us);
        }
        Some(total_us)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// CPU time of a child counts while it runs and after it has ended. The child ends by itself.
    #[test]
    fn children_count_while_they_run_and_after() {
        let script = "(i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done) & wait; echo; read line";
        let mut parent = Command::new("sh");
        parent.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut parent = parent.spawn().unwrap();
        let mut cpu = ServerCpu::new(parent.id()).unwrap();
        let before = cpu.read().unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while cpu.read().unwrap() < before + 100_000.0 {
            assert!(Instant::now() < end, "its CPU time does not grow");
            std::thread::sleep(Duration::from_millis(5));
        }
        parent.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert!(cpu.read().unwrap() >= before + 80_000.0, "but for rounding to clock ticks");
        assert!(cpu.children.is_empty());
        drop(parent.stdin.take());
        parent.wait().unwrap();
    }

    #[test]
    fn a_process_that_does_not_exist_has_none() {
        assert_eq!(ServerCpu::new(u32::MAX - 1).unwrap().read(), None);
    }
}
