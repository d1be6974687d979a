//! Processes: children that do not outlive us, and finding those that a data directory still has.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::error::TargetError;

/// How often a state that nothing announces is looked at.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(3);
/// How long processes have after a signal that they should obey at once.
pub(crate) const OBEY_WITHIN: Duration = Duration::from_secs(8);

/// Starts a child that gets `signal` when this process dies, however it dies, and that Ctrl-C does not reach.
pub(crate) fn spawn(mut command: Command, signal: Signal) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    command.process_group(0);
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
    unsafe {
        // The standard library runs this after it has changed the user, which would clear the death signal.
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // The parent may have died before it was set.
            match rustix::process::getppid() == Some(parent) {
                true => Ok(()),
                false => Err(rustix::io::Errno::CANCELED.into()),
            }
        });
    }
    on_the_lasting_thread(command)
}

/// Has a command enter control groups before it begins, by their files `cgroup.procs`. What counts is the right of who
/// has opened these (from Linux 5.16 on, and where CVE-2021-4197 was mended): by now the process has the server's user.
pub(crate) fn enter(command: &mut Command, groups: Vec<File>) {
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

/// Has a command inherit a file under the same descriptor.
pub(crate) fn keep_open(command: &mut Command, file: OwnedFd) {
    // SAFETY: as above.
    unsafe {
        command.pre_exec(move || Ok(rustix::io::fcntl_setfd(&file, FdFlags::empty())?));
    }
}

/// Starts a process in a session of its own, which outlives us.
pub(crate) fn spawn_detached(mut command: Command) -> io::Result<Child> {
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
fn on_the_lasting_thread(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static THREAD: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts processes is gone");
    let thread = THREAD.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        // Where no thread can be made, the channel is closed and the order below fails.
        let _ = thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            for (mut command, reply) in orders {
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, child) = mpsc::channel();
    thread.send((command, reply)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

/// Waits for a child that [`spawn`] started as long as it is wanted. None where that ended first; its whole process group
/// is gone then.
pub(crate) fn wait_while(
    child: &mut Child,
    mut is_wanted: impl FnMut() -> bool,
) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if !is_wanted() {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let signal = |signal| group.is_none_or(|group| kill_process_group(group, signal).is_err());
            signal(Signal::TERM);
            // The group is there as long as its leader has not been waited for.
            until(OBEY_WITHIN, || child.try_wait().is_ok_and(|status| status.is_some()));
            signal(Signal::KILL);
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Sends a signal; a process that is gone already is no error.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// The PostgreSQL processes whose working directory is this data directory: every server process stays in it.
pub(crate) fn postgres_processes(data: &Path) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
            let is_postgres = |exe: &Path| {
                let name = exe.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                name == "postgres" || name == "postgres (deleted)"
            };
            // Zombies have no working directory and are not found.
            link("cwd").is_ok_and(|cwd| cwd == data) && link("exe").is_ok_and(|exe| is_postgres(&exe))
        })
        .collect()
}

/// The server's main process as `postmaster.pid` states it, if it is alive and really is this directory's.
pub(crate) fn postmaster(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid = text.lines().next()?.trim().parse().ok()?;
    postgres_processes(data).contains(&pid).then_some(pid)
}

/// Ends every PostgreSQL process of a data directory: asks the postmaster to quit, then kills. Gives how many there
/// were.
pub(crate) fn end_all(data: &Path) -> Result<usize, TargetError> {
    let found = postgres_processes(data).len();
    if found == 0 {
        return Ok(0);
    }
    if let Some(pid) = postmaster(data) {
        signal(pid, Signal::QUIT);
        if none_within(data, OBEY_WITHIN) {
            return Ok(found);
        }
    }
    for pid in postgres_processes(data) {
        signal(pid, Signal::KILL);
    }
    match none_within(data, OBEY_WITHIN) {
        true => Ok(found),
        false => Err(TargetError::WontStop { pids: postgres_processes(data), directory: data.to_owned() }),
    }
}

/// Waits until a data directory has no PostgreSQL process.
pub(crate) fn none_within(data: &Path, within: Duration) -> bool {
    until(within, || postgres_processes(data).is_empty())
}

/// Looks at a state again and again until it holds, or the time is up.
pub(crate) fn until(within: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + within;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
}
