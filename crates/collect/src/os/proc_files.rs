//! The kernel's files on one process or thread. Sources: proc(5), and the kernel's scheduler/sched-stats.
//!
//! These few files are parsed by hand: the types of the crate `procfs` parse some thirty strings and lists per process,
//! of which we need eight numbers, for hundreds of processes per second.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, open, openat};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};

use crate::root::Root;

/// Larger than any of the files.
const BUFFER_BYTES: usize = 16 * 1024;
/// Enough for a thousand clients and the threads of a large machine's kernel.
const MAX_HELD_FILES: u64 = 4096;
/// `PF_KTHREAD` in the kernel's `linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// `/proc`, opened.
#[derive(Debug)]
pub(super) struct Proc {
    directory: OwnedFd,
    path: String,
    content: Vec<u8>,
    us_per_tick: f64,
    /// File descriptors are kept open only below this number, to leave enough for everything else.
    held_below: i32,
}

/// Fields of `/proc/PID/stat`. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stat {
    pub(super) parent: u32,
    pub(super) is_kernel_thread: bool,
    /// In ticks after boot: distinguishes processes that reuse an id.
    pub(super) started: u64,
    /// User and system time of all its threads, living or ended.
    pub(super) cpu_us: [f64; 2],
    /// The same for children that were waited for.
    pub(super) children_us: [f64; 2],
}

/// Fields of `/proc/PID/schedstat`: time on a CPU, time in a run queue, and number of time slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    pub(super) run_us: f64,
    pub(super) wait_us: f64,
    slices: f64,
}

impl Proc {
    pub(super) fn open(root: &Root) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Some(Self {
            directory: open(root.path("proc"), flags, Mode::empty()).ok()?,
            path: String::new(),
            content: vec![0; BUFFER_BYTES],
            us_per_tick: 1e6 / clock_ticks_per_second() as f64,
            held_below: getrlimit(Resource::Nofile)
                .current
                .map_or(MAX_HELD_FILES, |limit| MAX_HELD_FILES.min(limit / 2)) as i32,
        })
    }

    /// Numbers among the names in a directory: processes, or threads of one.
    pub(super) fn list(&mut self, directory: fmt::Arguments<'_>, into: &mut Vec<u32>) -> Option<()> {
        into.clear();
        let directory = self.open_file(directory, OFlags::DIRECTORY)?;
        for entry in Dir::new(directory).ok()?.flatten() {
            into.extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
        }
        Some(())
    }

    /// Children of a process' first thread. None if there is no such process, or the kernel does not report them.
    pub(super) fn children(&mut self, pid: u32, into: &mut Vec<u32>) -> Option<()> {
        into.clear();
        let file = self.open_file(format_args!("{pid}/task/{pid}/children"), OFlags::empty())?;
        let mut end = 0;
        while end < self.content.len() {
            match rustix::io::pread(&file, &mut self.content[end..], end as u64).ok()? {
                0 => break,
                read => end += read,
            }
        }
        let text = String::from_utf8_lossy(&self.content[..end]);
        into.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        Some(())
    }

    /// None if there is no such process.
    pub(super) fn stat(&mut self, pid: u32) -> Option<Stat> {
        self.held_stat(pid, &mut None)
    }

    /// The same, by an open file.
    pub(super) fn held_stat(&mut self, pid: u32, held: &mut Option<OwnedFd>) -> Option<Stat> {
        let us_per_tick = self.us_per_tick;
        parse_stat(&self.held_text(format_args!("{pid}/stat"), held)?, us_per_tick)
    }

    /// The same, after the process' name.
    pub(super) fn named_stat(&mut self, pid: u32) -> Option<(String, Stat)> {
        let us_per_tick = self.us_per_tick;
        let text = self.held_text(format_args!("{pid}/stat"), &mut None)?;
        let name = text.rsplit_once(") ")?.0.split_once('(')?.1.to_owned();
        Some((name, parse_stat(&text, us_per_tick)?))
    }

    /// The schedule of a process' first thread, or of another one. None if the kernel does not count it.
    pub(super) fn schedule(
        &mut self,
        pid: u32,
        thread: Option<u32>,
        held: &mut Option<OwnedFd>,
    ) -> Option<Schedule> {
        let text = match thread {
            Some(thread) => self.held_text(format_args!("{pid}/task/{thread}/schedstat"), held),
            None => self.held_text(format_args!("{pid}/schedstat"), held),
        };
        schedule(&text?)
    }

    /// Voluntary and involuntary context switches of a process' first thread, or of another one.
    pub(super) fn switches(
        &mut self,
        pid: u32,
        thread: Option<u32>,
        held: &mut Option<OwnedFd>,
    ) -> [Option<f64>; 2] {
        let text = match thread {
            Some(thread) => self.held_text(format_args!("{pid}/task/{thread}/status"), held),
            None => self.held_text(format_args!("{pid}/status"), held),
        };
        let names = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
        text.map(|text| values(&text, names)).unwrap_or_default()
    }

    /// Bytes that a process read from and wrote to disks; none without permission.
    pub(super) fn io_bytes(&mut self, pid: u32, held: &mut Option<OwnedFd>) -> [Option<f64>; 2] {
        let text = self.held_text(format_args!("{pid}/io"), held);
        text.map(|text| values(&text, ["read_bytes:", "write_bytes:"])).unwrap_or_default()
    }

    /// Title of a process: its command line, or what it has overwritten that with.
    pub(super) fn title(&mut self, pid: u32) -> Option<Cow<'_, str>> {
        let text = self.held_text(format_args!("{pid}/cmdline"), &mut None)?;
        Some(match text {
            Cow::Borrowed(text) => Cow::Borrowed(until_nul(text)),
            Cow::Owned(text) => Cow::Owned(until_nul(&text).to_owned()),
        })
    }

    /// Text of a file, which is kept open for the next time if possible: opening one costs as much as reading it. The
    /// file of an ended process can't be read; it is opened again, as its id may have been reused.
    fn held_text(&mut self, path: fmt::Arguments<'_>, held: &mut Option<OwnedFd>) -> Option<Cow<'_, str>> {
        // The kernel returns these files whole if the buffer is large enough.
        let reread = held.take().and_then(|file| {
            let read = rustix::io::pread(&file, &mut self.content[..], 0).ok().filter(|read| *read > 0)?;
            *held = Some(file);
            Some(read)
        });
        let read = match reread {
            Some(read) => read,
            None => {
                let file = self.open_file(path, OFlags::empty())?;
                let read =
                    rustix::io::pread(&file, &mut self.content[..], 0).ok().filter(|read| *read > 0)?;
                *held = Some(file).filter(|file| file.as_raw_fd() < self.held_below);
                read
            }
        };
        Some(String::from_utf8_lossy(&self.content[..read]))
    }

    fn open_file(&mut self, path: fmt::Arguments<'_>, flags: OFlags) -> Option<OwnedFd> {
        self.path.clear();
        self.path.write_fmt(path).ok()?;
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
        openat(&self.directory, self.path.as_str(), flags, Mode::empty()).ok()
    }
}

fn parse_stat(text: &str, us_per_tick: f64) -> Option<Stat> {
    // After the name, which may contain anything. The state is field 3 in the manual.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let mut field = |skip: usize| fields.nth(skip)?.parse::<u64>().ok();
    let parent = u32::try_from(field(1)?).ok()?;
    let flags = field(4)?;
    let [user, system, children_user, children_system] = [field(4)?, field(0)?, field(0)?, field(0)?];
    let started = field(4)?;
    let us = |ticks: u64| ticks as f64 * us_per_tick;
    Some(Stat {
        parent,
        is_kernel_thread: flags & KERNEL_THREAD != 0,
        started,
        cpu_us: [us(user), us(system)],
        children_us: [us(children_user), us(children_system)],
    })
}

fn schedule(text: &str) -> Option<Schedule> {
    let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse::<f64>().ok());
    let (run_ns, wait_ns, slices) = (numbers.next()?, numbers.next()?, numbers.next()?);
    // All are zero if the kernel does not count: every existing process has run.
    let is_counted = run_ns > 0.0 || wait_ns > 0.0 || slices > 0.0;
    is_counted.then_some(Schedule { run_us: run_ns / 1e3, wait_us: wait_ns / 1e3, slices })
}

/// Numbers after these names at the start of lines.
fn values<const N: usize>(text: &str, names: [&str; N]) -> [Option<f64>; N] {
    names.map(|name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()))
}

fn until_nul(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default().trim_end()
}
