//! What the kernel tells of one process or thread. Sources: proc(5), and the kernel's scheduler/sched-stats.
//!
//! These few files are read by hand: the types of the crate `procfs` take some thirty strings and lists apart for each
//! process, of which we want eight numbers, for hundreds of processes a second.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, open, openat};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};

use crate::root::Root;

/// More than any of the files has.
const ROOM: usize = 16 * 1024;
/// Enough for a thousand clients and the threads of a large machine's kernel.
const HELD_MOST: u64 = 4096;
/// `PF_KTHREAD` in the kernel's `linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// `/proc`, opened.
#[derive(Debug)]
pub(super) struct Proc {
    directory: OwnedFd,
    path: String,
    content: Vec<u8>,
    us_per_tick: f64,
    /// Files are kept open only below this descriptor, so that there are enough left for everybody else.
    held_below: i32,
}

/// Of `/proc/PID/stat`. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stat {
    pub(super) parent: u32,
    pub(super) is_kernel_thread: bool,
    /// In ticks after the machine's start: tells two processes of one id apart.
    pub(super) started: u64,
    /// User and system, of all threads there have been.
    pub(super) cpu_us: [f64; 2],
    /// The same of children that were waited for.
    pub(super) children_us: [f64; 2],
}

/// Of `/proc/PID/schedstat`: time on a processor, time in a run queue, and how often it ran.
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
            content: vec![0; ROOM],
            us_per_tick: 1e6 / clock_ticks_per_second() as f64,
            held_below: getrlimit(Resource::Nofile).current.map_or(HELD_MOST, |most| HELD_MOST.min(most / 2))
                as i32,
        })
    }

    /// The numbers among the names of a directory: processes, or threads of one.
    pub(super) fn list(&mut self, directory: fmt::Arguments<'_>, into: &mut Vec<u32>) -> Option<()> {
        into.clear();
        let directory = self.open_file(directory, OFlags::DIRECTORY)?;
        for entry in Dir::new(directory).ok()?.flatten() {
            into.extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
        }
        Some(())
    }

    /// None where there is no such process.
    pub(super) fn stat(&mut self, pid: u32) -> Option<Stat> {
        self.held_stat(pid, &mut None)
    }

    /// The same by the file that is held.
    pub(super) fn held_stat(&mut self, pid: u32, held: &mut Option<OwnedFd>) -> Option<Stat> {
        let us_per_tick = self.us_per_tick;
        let text = self.held_text(format_args!("{pid}/stat"), held)?;
        // After the name, which may have anything in it. The state is field 3 of the manual.
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

    /// The schedule of a process' first thread, or of another one. None where the kernel does not count it.
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

    /// How often a process' first thread, or another one, gave its processor away, and how often that was taken from it.
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

    /// Bytes that a process had the disks read and write; none where we may not know.
    pub(super) fn io_bytes(&mut self, pid: u32, held: &mut Option<OwnedFd>) -> [Option<f64>; 2] {
        let text = self.held_text(format_args!("{pid}/io"), held);
        text.map(|text| values(&text, ["read_bytes:", "write_bytes:"])).unwrap_or_default()
    }

    /// What a process calls itself: its command line, or what it has written over that.
    pub(super) fn title(&mut self, pid: u32) -> Option<Cow<'_, str>> {
        let text = self.held_text(format_args!("{pid}/cmdline"), &mut None)?;
        Some(match text {
            Cow::Borrowed(text) => Cow::Borrowed(until_nul(text)),
            Cow::Owned(text) => Cow::Owned(until_nul(&text).to_owned()),
        })
    }

    /// What is in a file, which is kept open for the next time where there is room: opening one costs as much as reading
    /// it. Of a process that has ended nothing can be read; its file is opened anew, as its number may be another's now.
    fn held_text(&mut self, path: fmt::Arguments<'_>, held: &mut Option<OwnedFd>) -> Option<Cow<'_, str>> {
        // The kernel gives these files whole to whoever has the room.
        let again = held.take().and_then(|file| {
            let read = rustix::io::pread(&file, &mut self.content[..], 0).ok().filter(|read| *read > 0)?;
            *held = Some(file);
            Some(read)
        });
        let read = match again {
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

fn schedule(text: &str) -> Option<Schedule> {
    let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse::<f64>().ok());
    let (run_ns, wait_ns, slices) = (numbers.next()?, numbers.next()?, numbers.next()?);
    // All are zero where the kernel does not count: whoever is there has run once.
    let is_counted = run_ns > 0.0 || wait_ns > 0.0 || slices > 0.0;
    is_counted.then_some(Schedule { run_us: run_ns / 1e3, wait_us: wait_ns / 1e3, slices })
}

/// The numbers after these names at the beginnings of lines.
fn values<const N: usize>(text: &str, names: [&str; N]) -> [Option<f64>; N] {
    names.map(|name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()))
}

fn until_nul(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default().trim_end()
}
