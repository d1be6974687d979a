//! Faults of processes: one of them is killed, asked to end, or stopped for a while, at a random moment.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::site::{POLL_INTERVAL, Started};
use crate::support::{Process, process_tree};

/// The process that a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Pgdyno,
    Driver,
    Postmaster,
    Backend,
    Guest,
}

#[derive(Clone, Copy, Debug)]
enum Blow {
    Kill,
    Terminate,
    Stop(Duration),
}

/// Processes of a campaign on this machine.
pub(crate) const HOST_VICTIMS: [Victim; 4] =
    [Victim::Pgdyno, Victim::Driver, Victim::Postmaster, Victim::Backend];
/// Processes of a campaign in virtual machines.
pub(crate) const GUEST_VICTIMS: [Victim; 2] = [Victim::Pgdyno, Victim::Guest];

impl Victim {
    fn find(self, pgdyno: i32, rng: &mut fastrand::Rng) -> Option<Process> {
        let is_victim = |process: &Process| {
            let command = &process.command;
            match self {
                Self::Pgdyno => process.pid == pgdyno,
                Self::Driver => command.contains("pgdyno driver"),
                Self::Postmaster => command.contains("bin/postgres -D"),
                Self::Backend => command.starts_with("postgres: "),
                Self::Guest => command.starts_with("qemu-system") && command.contains("-kernel"),
            }
        };
        let found: Vec<Process> = process_tree(pgdyno).into_iter().filter(is_victim).collect();
        (!found.is_empty()).then(|| found[rng.usize(..found.len())].clone())
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pgdyno => "pgdyno",
            Self::Driver => "driver",
            Self::Postmaster => "postmaster",
            Self::Backend => "server process",
            Self::Guest => "QEMU",
        })
    }
}

impl Blow {
    fn choose(rng: &mut fastrand::Rng) -> Self {
        match rng.u8(..4) {
            0 | 1 => Self::Kill,
            2 => Self::Terminate,
            _ => Self::Stop(Duration::from_millis(rng.u64(50..1500))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Terminate => "SIGTERM",
            Self::Stop(_) => "SIGSTOP, SIGCONT",
        }
    }
}

/// A process that appears after its fault is due, as a driver does for each trial, is hit this long after it at most.
const LONGEST_LIFE: Duration = Duration::from_millis(400);

/// Hits a random one of the victims after a random delay, as soon as there is one, unless the campaign ends before.
pub(crate) fn inject(
    campaign: &mut Started,
    victims: &[Victim],
    longest: Duration,
    rng: &mut fastrand::Rng,
    counts: &mut Counts,
    mut meanwhile: impl FnMut(),
) {
    let (victim, blow) = (victims[rng.usize(..victims.len())], Blow::choose(rng));
    let mut moment = Instant::now() + longest.mul_f64(rng.f64());
    let mut is_awaited = false;
    let process = loop {
        if campaign.has_ended() {
            return;
        }
        meanwhile();
        if Instant::now() >= moment {
            match victim.find(campaign.pid(), rng) {
                Some(process) if !is_awaited => break process,
                Some(_) => {
                    is_awaited = false;
                    moment = Instant::now() + LONGEST_LIFE.mul_f64(rng.f64());
                }
                None => is_awaited = true,
            }
        }
        thread::sleep(POLL_INTERVAL);
    };
    counts.fault(format!("{} to {victim}", blow.name()));
    let send = |signal| {
        // SAFETY: kill has no preconditions; the process is a descendant of this one.
        unsafe { libc::kill(process.pid, signal) }
    };
    match blow {
        Blow::Kill => send(libc::SIGKILL),
        Blow::Terminate => send(libc::SIGTERM),
        Blow::Stop(duration) => {
            send(libc::SIGSTOP);
            thread::sleep(duration);
            send(libc::SIGCONT)
        }
    };
}
