//! Turns: pgdynos that measure on one host at the same time disturb each other, so that one waits for the other, unless
//! its user does not want to.
//!
//! They know each other by Unix-domain sockets in the abstract namespace: all users see them, nobody can remove or replace
//! those of others, and the kernel removes those of dead processes. Each network namespace has its own, so that
//! containers do not see each other.
//!
//! ```text
//! pgdyno/<queue>/next             of the one that measures alone, or will next
//! pgdyno/<queue>/<pid>.<n>/<label>  of each one that measures; those that begin nevertheless send it `<pid>/<label>`
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{Uid, User};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};

use crate::error::Error;
use crate::hash::Fingerprint;
use crate::progress::{Progress, check_interrupted};

/// Time after which a wait is reported.
const REPORT_AFTER: Duration = Duration::from_secs(1);
/// Time between attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Longest label: a socket's name has at most 107 bytes.
const MAX_LABEL: usize = 48;

/// The turn to measure on this host, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Turn {
    queue: String,
    /// None if this process has not waited.
    _next: Option<UnixListener>,
    /// None if others can't see this process.
    own: Option<(Name, UnixListener)>,
}

/// A pgdyno that measures on this host. Its [`fmt::Display`] is for its user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measuring {
    /// What it measures, such as `campaign quick`, in printable ASCII.
    pub label: String,
    pid: u32,
}

/// The last two parts of the name of a socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

impl Turn {
    /// Takes the turn to measure what `label` says; reports who measures, and waits for them unless concurrent measuring is
    /// allowed. A hook is part of its campaign's measurement: it never waits and is not seen.
    ///
    /// `PGDYNO_QUEUE` names the pgdynos that wait for each other, by default all on the host.
    ///
    /// # Errors
    /// The user interrupts.
    pub fn take(label: &str, allow_concurrent: bool, progress: &dyn Progress) -> Result<Self, Error> {
        let queue = queue();
        if is_hook() {
            return Ok(Self { queue, _next: None, own: None });
        }
        Self::take_in(queue, label, allow_concurrent, progress)
    }

    /// Whether [`take`](Self::take) would wait for another pgdyno now.
    pub fn is_taken(allow_concurrent: bool) -> bool {
        !allow_concurrent && !is_hook() && present(&queue()).iter().any(|name| name.measuring().is_some())
    }

    fn take_in(
        queue: String,
        label: &str,
        allow_concurrent: bool,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let next = if allow_concurrent { None } else { wait(&queue, progress)? };
        let own = announce(&queue, label)
            .inspect_err(|error| {
                progress.notice(&format!(
                    "other pgdynos on this host are not seen, and do not see this one: {error}"
                ));
            })
            .ok();
        let turn = Self { queue, _next: next, own };
        let others = turn.others();
        if !others.is_empty() {
            progress
                .notice(&format!("measuring at the same time as {}: they disturb each other", list(&others)));
        }
        Ok(turn)
    }

    /// Runs something, and returns who else measured meanwhile.
    pub fn watch<T>(&self, run: impl FnOnce() -> T) -> (T, BTreeSet<Measuring>) {
        // Those that have ended do not count.
        self.arrivals();
        let mut others = self.others();
        let result = run();
        others.extend(self.arrivals());
        (result, others)
    }

    fn others(&self) -> BTreeSet<Measuring> {
        let Some((own, _)) = &self.own else { return BTreeSet::new() };
        present(&self.queue).iter().filter(|name| *name != own).filter_map(Name::measuring).collect()
    }

    /// Those that began to measure since the last call.
    fn arrivals(&self) -> BTreeSet<Measuring> {
        let mut arrivals = BTreeSet::new();
        let Some((_, listener)) = &self.own else { return arrivals };
        while let Ok((stream, _)) = listener.accept() {
            let mut text = String::new();
            // Never waits for another process.
            if stream.set_nonblocking(true).is_ok() {
                let _ = stream.take(MAX_LABEL as u64 + 16).read_to_string(&mut text);
            }
            arrivals.extend(Measuring::parse(&text));
        }
        arrivals
    }
}

/// The queue of this process.
fn queue() -> String {
    match std::env::var_os("PGDYNO_QUEUE") {
        Some(name) if !name.is_empty() => {
            let mut fingerprint = Fingerprint::new();
            fingerprint.add(name.as_encoded_bytes());
            fingerprint.finish().chars().take(16).collect()
        }
        _ => "host".to_owned(),
    }
}

/// Whether this process is a hook of a campaign.
fn is_hook() -> bool {
    std::env::var_os("PGDYNO_RUN").is_some()
}

/// Waits until nobody else measures and this process is next; none if the kernel has no such sockets.
fn wait(queue: &str, progress: &dyn Progress) -> Result<Option<UnixListener>, Error> {
    let start = Instant::now();
    let mut next = None;
    let mut is_reported = false;
    loop {
        if next.is_none() {
            match bind(queue, "next") {
                Ok(listener) => next = Some(listener),
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(_) => return Ok(None),
            }
        }
        let others: BTreeSet<_> = present(queue).iter().filter_map(Name::measuring).collect();
        if next.is_some() && others.is_empty() {
            return Ok(next);
        }
        check_interrupted(progress)?;
        if !is_reported && start.elapsed() >= REPORT_AFTER {
            is_reported = true;
            let others = if others.is_empty() { "another pgdyno".to_owned() } else { list(&others) };
            progress.notice(&format!(
                "waiting for other measurements on this host: {others}; --allow-concurrent does not wait"
            ));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Makes this process visible, first to those that begin later, then to those that measure.
fn announce(queue: &str, label: &str) -> io::Result<(Name, UnixListener)> {
    let label = printable(label);
    let pid = std::process::id();
    let mut number = 0;
    let (own, listener) = loop {
        let own = Name(format!("{pid}.{number}/{label}"));
        match bind(queue, &own.0) {
            Ok(listener) => break (own, listener),
            // A process of another PID namespace may have the same id.
            Err(error) if error.kind() == ErrorKind::AddrInUse => number += 1,
            Err(error) => return Err(error),
        }
    };
    listener.set_nonblocking(true)?;
    for other in present(queue).iter().filter(|name| **name != own) {
        // One that has ended meanwhile need not know.
        let _ = send_to(queue, other, &format!("{pid}/{label}"));
    }
    Ok((own, listener))
}

fn send_to(queue: &str, name: &Name, text: &str) -> rustix::io::Result<()> {
    let address = SocketAddrUnix::new_abstract_name(full_name(queue, &name.0).as_bytes())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    send(&socket, text.as_bytes(), SendFlags::NOSIGNAL).map(drop)
}

fn bind(queue: &str, name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(full_name(queue, name))?)
}

fn full_name(queue: &str, name: &str) -> String {
    format!("pgdyno/{queue}/{name}")
}

/// The names of those that measure. Source: proc(5), `/proc/net/unix`.
fn present(queue: &str) -> BTreeSet<Name> {
    let sockets = fs::read("/proc/net/unix").unwrap_or_default();
    // `0000000000000000: 00000002 00000000 00010000 0001 01 21654 @pgdyno/host/4711.0/bench`
    let prefix = format!(" @{}", full_name(queue, ""));
    let names = String::from_utf8_lossy(&sockets);
    names.lines().filter_map(|line| Some(Name(line.split_once(&prefix)?.1.to_owned()))).collect()
}

impl Name {
    /// None for `next`.
    fn measuring(&self) -> Option<Measuring> {
        let (id, label) = self.0.split_once('/')?;
        Measuring::parse(&format!("{}/{label}", id.split_once('.')?.0))
    }
}

impl Measuring {
    /// Parses `<pid>/<label>`, which any process can write.
    fn parse(text: &str) -> Option<Self> {
        let (pid, label) = text.split_once('/')?;
        Some(Self { label: printable(label), pid: pid.parse().ok()? })
    }
}

impl fmt::Display for Measuring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}", self.label, self.pid)?;
        let owner =
            fs::metadata(format!("/proc/{}", self.pid)).ok().map(|process| Uid::from_raw(process.uid()));
        if let Some(user) = owner.and_then(|uid| User::from_uid(uid).ok().flatten()) {
            write!(f, " of {}", user.name)?;
        }
        f.write_str(")")
    }
}

fn list(others: &BTreeSet<Measuring>) -> String {
    others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The beginning of a text, with anything else than printable ASCII replaced.
fn printable(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().take(MAX_LABEL).map(keep).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Interrupts at the first notice, if wanted.
    #[derive(Default)]
    struct Notices {
        texts: Mutex<Vec<String>>,
        interrupts: bool,
        interrupted: AtomicBool,
    }

    impl Progress for Notices {
        fn step(&self, _: &str, _: u64, _: Option<u64>) {}

        fn interrupted(&self) -> bool {
            self.interrupted.load(Ordering::Relaxed)
        }

        fn notice(&self, text: &str) {
            self.texts.lock().unwrap().push(text.to_owned());
            self.interrupted.store(self.interrupts, Ordering::Relaxed);
        }
    }

    impl Notices {
        fn take(self) -> Vec<String> {
            self.texts.into_inner().unwrap()
        }
    }

    fn queue(test: &str) -> String {
        format!("test-{}-{test}", std::process::id())
    }

    fn take(queue: &str, label: &str, allow_concurrent: bool, notices: &Notices) -> Result<Turn, Error> {
        Turn::take_in(queue.to_owned(), label, allow_concurrent, notices)
    }

    fn labels(others: &BTreeSet<Measuring>) -> Vec<&str> {
        others.iter().map(|other| &*other.label).collect()
    }

    #[test]
    fn one_waits_for_the_other_and_says_for_whom_until_interrupted() {
        let queue = queue("wait");
        let quiet = Notices::default();
        let first = take(&queue, "campaign a", false, &quiet).unwrap();
        let notices = Notices { interrupts: true, ..Notices::default() };
        let error = take(&queue, "campaign b", false, &notices).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        let notices = notices.take();
        let start = format!(
            "waiting for other measurements on this host: campaign a (process {} of ",
            std::process::id()
        );
        assert!(notices.len() == 1 && notices[0].starts_with(&start), "{notices:?}");
        thread::scope(|scope| {
            let second = scope.spawn(|| take(&queue, "campaign b", false, &quiet).unwrap());
            drop(first);
            assert!(second.join().unwrap().others().is_empty());
        });
        assert!(quiet.take().is_empty());
    }

    #[test]
    fn those_that_do_not_wait_are_waited_for_and_each_learns_of_the_other() {
        let queue = queue("concurrent");
        let quiet = Notices::default();
        let first = take(&queue, "campaign a", false, &quiet).unwrap();
        let (_, others) = first.watch(|| ());
        assert_eq!(labels(&others), [""; 0]);
        let notices = Notices::default();
        let (second, others) = first.watch(|| take(&queue, "bench\n\u{1b}[31m", true, &notices).unwrap());
        assert_eq!(labels(&others), ["bench??[31m"], "it began meanwhile");
        assert!(notices.take()[0].starts_with("measuring at the same time as campaign a ("));
        assert_eq!(labels(&second.watch(|| ()).1), ["campaign a"]);
        assert_eq!(labels(&first.watch(|| ()).1), ["bench??[31m"], "it still measures");
        let (_, others) = first.watch(|| drop(take(&queue, "short", true, &quiet).unwrap()));
        assert_eq!(labels(&others), ["bench??[31m", "short"], "it has ended");

        drop(first);
        let notices = Notices { interrupts: true, ..Notices::default() };
        assert!(matches!(take(&queue, "c", false, &notices), Err(Error::Interrupted)));
        assert!(notices.take()[0].contains(": bench??[31m (process "));
        drop(second);
        take(&queue, "c", false, &quiet).unwrap();
    }

    #[test]
    fn a_wait_for_one_that_only_has_the_turn_is_reported_too() {
        let queue = queue("next");
        let _next = bind(&queue, "next").unwrap();
        let notices = Notices { interrupts: true, ..Notices::default() };
        assert!(matches!(take(&queue, "a", false, &notices), Err(Error::Interrupted)));
        assert!(notices.take()[0].contains(": another pgdyno; --allow-concurrent"));
    }

    #[test]
    fn what_other_processes_write_is_harmless() {
        let queue = queue("strange");
        let _strange = ["x", "1", "a.0/b", "4294967296.0/b"].map(|name| bind(&queue, name).unwrap());
        let quiet = Notices::default();
        let turn = take(&queue, "a", false, &quiet).unwrap();
        let (own, _) = turn.own.as_ref().unwrap();
        let (_, others) = turn.watch(|| {
            for text in ["", "x", "/", "7", "-1/b", &"9".repeat(100)] {
                send_to(&queue, own, text).unwrap();
            }
        });
        assert_eq!(labels(&others), [""; 0]);
    }
}
