//! Parses the output of `perf script` by line. Source: perf-script(1), with the fields in [`FIELDS`].

/// Fields for `-F`; a sample's period may be requested in addition.
pub(super) const FIELDS: &str = "comm,pid,tid,time,event,ip,sym,dso";

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Start of a sample. Without callers, its only frame is on the same line. It stands for as many events as its
    /// period states, if that was requested.
    Sample { thread: Thread<'a>, event: &'a str, period: u64, only: Option<Frame<'a>> },
    /// A function of the sample, innermost first.
    Frame(Frame<'a>),
    /// End of the sample.
    End,
    /// Number of samples lost.
    Lost(u64),
    /// A thread was switched to or from a CPU.
    Switch { thread: Thread<'a>, direction: SwitchDirection },
    /// A process started another.
    Fork { pid: u32, parent: u32 },
    /// Anything else.
    Other,
}

/// A thread at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread<'a> {
    /// The process's name.
    pub(super) comm: &'a str,
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// On `CLOCK_MONOTONIC`.
    pub(super) at_us: i64,
}

/// Direction of a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchDirection {
    /// It gets a CPU.
    In,
    /// It leaves its CPU to wait.
    Out,
    /// It is preempted.
    Preempted,
}

/// A function on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Its instruction's address.
    pub(super) address: u64,
    /// Its name; none if unknown.
    pub(super) symbol: Option<&'a str>,
    /// Its file, as perf names it; empty if unknown.
    pub(super) file: &'a str,
}

/// Start of the upper half of the address space: the kernel's.
const KERNEL_START: u64 = 1 << 63;
/// Symbol that perf prints if the name is unknown.
const UNKNOWN: &str = "[unknown]";

impl Frame<'_> {
    pub(super) const fn is_kernel(&self) -> bool {
        self.address >= KERNEL_START
    }

    /// Mark that unwinding leaves at the end of a stack if it could not continue.
    pub(super) const fn is_end_mark(&self) -> bool {
        self.address == u64::MAX
    }
}

impl<'a> Line<'a> {
    /// Parses a line, with or without its line break.
    pub(super) fn read(line: &'a str) -> Self {
        let line = line.trim_end();
        if line.is_empty() {
            return Self::End;
        }
        // Process names are padded with spaces, and may look like numbers.
        if line.starts_with('\t')
            && let Some(frame) = frame(line)
        {
            return Self::Frame(frame);
        }
        parse_header(line).unwrap_or(Self::Other)
    }
}

/// Parses `comm pid/tid time: event:`, or with a record in place of an event. A name may contain spaces.
fn parse_header(line: &str) -> Option<Line<'_>> {
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.find('/')?;
        from = at + 1;
        let before = line[..at].trim_end_matches(|c: char| c.is_ascii_digit());
        let Ok(pid) = line[before.len()..at].parse::<u32>() else { continue };
        if !before.ends_with(' ') {
            continue;
        }
        let after = line[from..].trim_start_matches(|c: char| c.is_ascii_digit());
        let tid = line[from..line.len() - after.len()].parse::<u32>();
        let Some((time, rest)) = after.trim_start().split_once(": ") else { continue };
        let (Ok(tid), Ok(time), true) = (tid, time.parse::<f64>(), after.starts_with(' ')) else { continue };
        let thread = Thread { comm: before.trim(), pid, tid, at_us: (time * 1e6).round() as i64 };
        return Some(parse_event(thread, rest.trim_start()));
    }
}

fn parse_event<'a>(thread: Thread<'a>, text: &'a str) -> Line<'a> {
    if let Some(task) = text.strip_prefix("PERF_RECORD_") {
        return switch(thread, task).or_else(|| record(task)).unwrap_or(Line::Other);
    }
    let period = text.split_once(' ').and_then(|(period, rest)| Some((period.parse().ok()?, rest)));
    let (period, text) = period.map_or((1, text), |(period, rest)| (period, rest.trim_start()));
    let (event, rest) = match text.split_once(' ') {
        Some((event, rest)) => (event, frame(rest)),
        None => (text, None),
    };
    match event.strip_suffix(':') {
        Some(event) => Line::Sample { thread, event, period, only: rest },
        None => Line::Other,
    }
}

/// Parses `SWITCH_CPU_WIDE IN prev pid/tid: 1/1`, `SWITCH OUT`, `SWITCH_CPU_WIDE OUT preempt next pid/tid: 1/1`.
fn switch<'a>(thread: Thread<'a>, text: &str) -> Option<Line<'a>> {
    let mut words = text.strip_prefix("SWITCH")?.split_whitespace().skip_while(|word| word.starts_with('_'));
    let direction = match (words.next()?, words.next()) {
        ("IN", _) => SwitchDirection::In,
        ("OUT", Some("preempt")) => SwitchDirection::Preempted,
        ("OUT", _) => SwitchDirection::Out,
        _ => return None,
    };
    Some(Line::Switch { thread, direction })
}

/// Parses `FORK(pid:tid):(parent:its thread)`, `LOST lost 3`, `LOST_SAMPLES lost 3`.
fn record(text: &str) -> Option<Line<'_>> {
    if let Some(fork) = text.strip_prefix("FORK(") {
        let (child, parent) = fork.split_once("):(")?;
        let pid = |ids: &str| ids.split_once(':')?.0.parse().ok();
        return Some(Line::Fork { pid: pid(child)?, parent: pid(parent)? });
    }
    let lost = text.strip_prefix("LOST")?.rsplit_once("lost ")?.1;
    Some(Line::Lost(lost.trim().parse().ok()?))
}

/// Parses `address symbol (file)`; both may contain spaces and parentheses.
fn frame(text: &str) -> Option<Frame<'_>> {
    let text = text.trim();
    let (address, named) = text.split_once(' ').unwrap_or((text, ""));
    let address = u64::from_str_radix(address, 16).ok()?;
    let named = named.trim();
    let (symbol, file) = match named.strip_suffix(')') {
        // A deleted file is marked as such.
        Some(inner) => {
            let path = inner.strip_suffix(" (deleted)").unwrap_or(inner);
            match path.rsplit_once('(') {
                Some((symbol, file)) => (symbol.trim_end(), file),
                None => (named, ""),
            }
        }
        None => (named, ""),
    };
    let is_known = !symbol.is_empty() && symbol != UNKNOWN;
    Some(Frame { address, symbol: is_known.then_some(symbol), file: if file == UNKNOWN { "" } else { file } })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn samples_are_distinguished_from_other_events() {
        let thread = |comm, pid, tid, at_us| Thread { comm, pid, tid, at_us };
        let sample = |thread, event| Line::Sample { thread, event, period: 1, only: None };
        for (line, read) in [
            (
                "postgres 31480/31480 25520.528687: cpu-clock: \n",
                sample(thread("postgres", 31480, 31480, 25_520_528_687), "cpu-clock"),
            ),
            (
                "driver-0 31465/31478 25523.838885:  cycles:u: ",
                sample(thread("driver-0", 31465, 31478, 25_523_838_885), "cycles:u"),
            ),
            (
                "kworker/0:1-eve    9/9     12.5: cycles:",
                sample(thread("kworker/0:1-eve", 9, 9, 12_500_000), "cycles"),
            ),
            ("a 1/x b    7/8     12.5: cycles:P:", sample(thread("a 1/x b", 7, 8, 12_500_000), "cycles:P")),
            (
                "perf 5997/5997  25894.391568: PERF_RECORD_FORK(5998:5998):(5997:5997)",
                Line::Fork { pid: 5998, parent: 5997 },
            ),
            ("perf 5997/5997  25894.391568: PERF_RECORD_LOST lost 12", Line::Lost(12)),
            ("perf 5997/5997  25894.391568: PERF_RECORD_LOST_SAMPLES lost 3", Line::Lost(3)),
            (
                "postgres 7/8 12.5:         17 context-switches:k: ",
                Line::Sample {
                    thread: thread("postgres", 7, 8, 12_500_000),
                    event: "context-switches:k",
                    period: 17,
                    only: None,
                },
            ),
            (
                "rcu_preempt    15/15    36817.857353: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid: 3/3",
                Line::Switch {
                    thread: thread("rcu_preempt", 15, 15, 36_817_857_353),
                    direction: SwitchDirection::In,
                },
            ),
            (
                "a    1/2    1.5: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:    15/15   ",
                Line::Switch { thread: thread("a", 1, 2, 1_500_000), direction: SwitchDirection::Preempted },
            ),
            (
                "a    1/2    1.5: PERF_RECORD_SWITCH OUT          ",
                Line::Switch { thread: thread("a", 1, 2, 1_500_000), direction: SwitchDirection::Out },
            ),
            // A thread that has ended.
            (
                "a    1/-1    1.5: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:    15/15   ",
                Line::Other,
            ),
            ("perf 5997/5997  0.000000: PERF_RECORD_COMM: postgres:9/9", Line::Other),
            ("perf 5997/5997  0.000000: PERF_RECORD_FORK(x)", Line::Other),
            ("", Line::End),
            ("nonsense", Line::Other),
        ] {
            assert_eq!(Line::read(line), read, "{line}");
        }
        let only = Frame { address: 0x401000, symbol: Some("main"), file: "/bin/a" };
        assert_eq!(
            Line::read("a 1/1 1.0: cycles:   401000 main (/bin/a)"),
            Line::Sample {
                thread: Thread { comm: "a", pid: 1, tid: 1, at_us: 1_000_000 },
                event: "cycles",
                period: 1,
                only: Some(only)
            }
        );
    }

    #[test]
    fn frames_have_names_and_files_with_spaces_and_parentheses() {
        for (line, address, symbol, file) in [
            (
                "\tffffffff81e29002 sock_recvmsg ([kernel.kallsyms])",
                0xffff_ffff_81e2_9002,
                Some("sock_recvmsg"),
                "[kernel.kallsyms]",
            ),
            (
                "\t          10a929 __libc_recv (/lib/libc.so.6)",
                0x10_a929,
                Some("__libc_recv"),
                "/lib/libc.so.6",
            ),
            (
                "\t 1098978 <driver::io::Uring as driver::Io>::wait (/a b/pgdyno)",
                0x109_8978,
                Some("<driver::io::Uring as driver::Io>::wait"),
                "/a b/pgdyno",
            ),
            ("\t 10 f (/tmp/x (deleted))", 0x10, Some("f"), "/tmp/x"),
            ("\t 10 std::f(int) (/bin/x)", 0x10, Some("std::f(int)"), "/bin/x"),
            ("\t 10 [unknown] (/bin/x)", 0x10, None, "/bin/x"),
            ("\tffffffffffffffff [unknown] ([unknown])", u64::MAX, None, ""),
            ("\t 27304 __libc_start_main_impl (inlined)", 0x27304, Some("__libc_start_main_impl"), "inlined"),
            ("\t 27304", 0x27304, None, ""),
        ] {
            assert_eq!(Line::read(line), Line::Frame(Frame { address, symbol, file }), "{line}");
        }
        let Line::Frame(frame) = Line::read("\tffffffff81e29002 f ([kernel.kallsyms])") else { panic!() };
        assert!(frame.is_kernel() && !frame.is_end_mark());
    }

    proptest! {
        #[test]
        fn arbitrary_lines_do_not_panic(line in "[\\t ]{0,2}(\\PC{0,40}|[0-9a-f/:. ()\\[\\]]{0,40})") {
            let _ = Line::read(&line);
        }

        #[test]
        fn printed_samples_and_frames_round_trip(
            comm in "[a-z/:]([a-z0-9/: ]{0,13}[a-z])?",
            pid in any::<u32>(),
            address in any::<u64>(),
            symbol in "[a-zA-Z_<][a-zA-Z0-9_:<>&, ]{0,30}[a-z>]",
            file in "/[a-z0-9/._ -]{0,30}[a-z]",
        ) {
            let head = format!("{comm:>16} {pid:>7}/{pid:<7} 123.456789: cycles: ");
            let thread = Thread { comm: comm.trim(), pid, tid: pid, at_us: 123_456_789 };
            prop_assert_eq!(Line::read(&head), Line::Sample { thread, event: "cycles", period: 1, only: None });
            let line = format!("\t{address:16x} {symbol} ({file})");
            let frame = Frame { address, symbol: Some(symbol.as_str()), file: file.as_str() };
            prop_assert_eq!(Line::read(&line), Line::Frame(frame));
        }
    }
}
