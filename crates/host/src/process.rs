//! Child processes that do not outlive this one.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, kill_process_group};

/// Polling interval of states without a notification.
pub const POLL_INTERVAL: Duration = Duration::from_millis(3);
/// Time limit of processes to end after a signal.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(8);

/// Lines of a log that an error quotes.
pub const LOG_TAIL_LINES: usize = 20;

/// Starts a child that receives `signal` when this process dies in any way, and that Ctrl-C does not reach.
pub fn spawn(mut command: Command, signal: Signal) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    command.process_group(0);
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
    unsafe {
        // The standard library runs this after it has changed the user, which would clear the death signal.
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // The parent may have died before it was set.
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(rustix::io::Errno::CANCELED.into())
            }
        });
    }
    spawn_on_spawner_thread(command)
}

/// Makes a command enter control groups before it starts, through their open files `cgroup.procs`. The kernel checks
/// the rights of the opener (from Linux 5.16 on, and with CVE-2021-4197 fixed): by then the process runs as the
/// server's user.
pub fn enter_cgroups(command: &mut Command, groups: Vec<File>) {
    if groups.is_empty() {
        return;
    }
    // SAFETY: as above.
    unsafe {
        command.pre_exec(move || {
            for group in &groups {
                rustix::io::write(group, b"0")?;
            }
            Ok(())
        });
    }
}

/// Makes a command inherit a file under the same descriptor.
pub fn inherit_fd(command: &mut Command, file: OwnedFd) {
    // SAFETY: as above.
    unsafe {
        command.pre_exec(move || Ok(rustix::io::fcntl_setfd(&file, FdFlags::empty())?));
    }
}

/// Makes a command not inherit the environment variables whose names are of this kind.
pub fn withhold_variables(command: &mut Command, is_withheld: impl Fn(&str) -> bool) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(&is_withheld) {
            command.env_remove(name);
        }
    }
}

/// Starts a process in a session of its own, which outlives this one.
pub fn spawn_detached(mut command: Command) -> io::Result<Child> {
    // SAFETY: as above.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
    command.spawn()
}

/// The kernel sends the death signal when the *thread* that forked ends, so all children come from one thread that
/// lasts as long as the process.
fn spawn_on_spawner_thread(command: Command) -> io::Result<Child> {
    type Request = (Command, mpsc::Sender<io::Result<Child>>);
    static THREAD: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    let ended = || io::Error::other("the thread that starts processes has ended");
    let thread = THREAD.get_or_init(|| {
        let (sender, requests) = mpsc::channel::<Request>();
        // If no thread can be created, the channel is closed and sending below fails.
        let _ = thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            for (mut command, reply) in requests {
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, child) = mpsc::channel();
    thread.send((command, reply)).map_err(|_| ended())?;
    child.recv().map_err(|_| ended())?
}

/// Waits for a child of [`spawn`] while it is wanted; then ends its whole process group and returns none.
pub fn wait_while(child: &mut Child, mut is_wanted: impl FnMut() -> bool) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if !is_wanted() {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let signal = |signal| group.is_none_or(|group| kill_process_group(group, signal).is_err());
            signal(Signal::TERM);
            // The group exists until its leader has been waited for.
            wait_until(STOP_TIMEOUT, || child.try_wait().is_ok_and(|status| status.is_some()));
            signal(Signal::KILL);
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Sends a signal; a process that has ended is no error.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Polls a condition until it holds; false after a timeout.
pub fn wait_until(timeout: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + timeout;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Limits of the shell (`ulimit`) that a program may have failed for, as the end of an advice; empty without any.
pub fn limits_of_shell() -> String {
    let limits: Vec<String> =
        [(Resource::As, "address space", "ulimit -v"), (Resource::Fsize, "size of a file", "ulimit -f")]
            .into_iter()
            .filter_map(|(resource, what, command)| {
                let bytes = getrlimit(resource).current?;
                Some(format!("{what} {} MB, {command}", bytes >> 20))
            })
            .collect();
    if limits.is_empty() {
        String::new()
    } else {
        format!(", and the limits of the shell ({})", limits.join("; "))
    }
}

/// Last lines of a text.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() {
        0 => "(it is empty)".to_owned(),
        all => lines[all.saturating_sub(count)..].join("\n"),
    }
}
