//! How far the sessions of a playback are: what statements that depend on another session wait for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Awaited;
use crate::io::Waker;

/// Parts of the sessions with a lock each, so that threads rarely wait for each other.
const SHARDS: usize = 64;

/// How far the open sessions are, for all threads.
pub(super) struct Progress {
    shards: Vec<Mutex<HashMap<u32, Position>>>,
    threads: Vec<Mailbox>,
}

/// How far a session is.
#[derive(Default)]
struct Position {
    /// Statements that have ended.
    ended: u64,
    /// Sessions that wait for it, with the number of its statements that have to have ended.
    waiting: Vec<(u64, Waiting)>,
}

/// A session that waits.
#[derive(Clone, Copy)]
struct Waiting {
    thread: usize,
    session: u32,
}

/// Sessions of a thread that no longer wait for another.
struct Mailbox {
    released: Mutex<Vec<u32>>,
    waker: Waker,
}

impl Progress {
    /// Without sessions; a waker for each thread.
    pub(super) fn new(wakers: Vec<Waker>) -> Self {
        let mailbox = |waker| Mailbox { released: Mutex::default(), waker };
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            threads: wakers.into_iter().map(mailbox).collect(),
        }
    }

    /// A session is about to begin. What is not known has ended.
    pub(super) fn begin(&self, session: u32) {
        locked(self.shard(session)).insert(session, Position::default());
    }

    /// A statement of a session has ended, executed or not.
    pub(super) fn advance(&self, session: u32, from_thread: usize) {
        let released = {
            let mut shard = locked(self.shard(session));
            let Some(position) = shard.get_mut(&session) else { return };
            position.ended += 1;
            let ended = position.ended;
            position.waiting.extract_if(.., |(needed, _)| *needed <= ended).map(|(_, who)| who).collect()
        };
        self.release(released, from_thread);
    }

    /// A session has ended.
    pub(super) fn end(&self, session: u32, from_thread: usize) {
        let position = locked(self.shard(session)).remove(&session);
        let waiting = position.map(|position| position.waiting).unwrap_or_default();
        self.release(waiting.into_iter().map(|(_, who)| who).collect(), from_thread);
    }

    /// Whether a statement has ended; if not, `session` of `thread` is released once it has.
    pub(super) fn is_ended(&self, awaited: Awaited, session: u32, thread: usize) -> bool {
        let mut shard = locked(self.shard(awaited.session));
        let Some(position) = shard.get_mut(&awaited.session) else { return true };
        if position.ended > awaited.number {
            return true;
        }
        position.waiting.push((awaited.number + 1, Waiting { thread, session }));
        false
    }

    /// The sessions of a thread that were released.
    pub(super) fn take_released(&self, thread: usize) -> Vec<u32> {
        self.threads
            .get(thread)
            .map(|mailbox| std::mem::take(&mut *locked(&mailbox.released)))
            .unwrap_or_default()
    }

    fn release(&self, waiting: Vec<Waiting>, from_thread: usize) {
        for Waiting { thread, session } in waiting {
            let Some(mailbox) = self.threads.get(thread) else { continue };
            locked(&mailbox.released).push(session);
            // A thread looks into its own before it waits.
            if thread != from_thread {
                mailbox.waker.wake();
            }
        }
    }

    fn shard(&self, session: u32) -> &Mutex<HashMap<u32, Position>> {
        &self.shards[session as usize % SHARDS]
    }
}

/// Nothing that panics is done under a lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
