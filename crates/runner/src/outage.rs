//! Outages: failures of what trials depend on. They cost no attempts: the campaign waits for a server that can't be
//! reached, and stops if the host is exhausted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::outage::Outage;

/// Longest wait for the end of an outage.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(5 * 60);
/// The same in messages.
pub(crate) const MAX_WAIT_TEXT: &str = "5 minutes";

/// Time between attempts during an outage.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Interval between checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An outage that kept a trial from running, or ended its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrialOutage {
    pub(crate) kind: Outage,
    /// What failed, and why.
    pub(crate) reason: String,
}

/// Repeats `attempt` while it fails because of an outage, up to a deadline or an interrupt. The first failure is passed
/// to `on_outage`; the last one is returned.
pub(crate) fn outlast<T, E>(
    deadline: Instant,
    interrupt: &AtomicBool,
    mut attempt: impl FnMut() -> Result<T, E>,
    is_outage: impl Fn(&E) -> bool,
    mut on_outage: impl FnMut(&E),
) -> Result<T, E> {
    let mut is_first = true;
    loop {
        let error = match attempt() {
            Err(error) if is_outage(&error) => error,
            outcome => return outcome,
        };
        if std::mem::take(&mut is_first) {
            on_outage(&error);
        }
        let next = Instant::now() + RETRY_INTERVAL;
        while Instant::now() < next {
            if interrupt.load(Ordering::Relaxed) || Instant::now() >= deadline {
                return Err(error);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors of a number of attempts, of which those below 10 are outages.
    fn attempts(errors: &[u32], deadline: Instant, interrupt: bool) -> (Result<(), u32>, Vec<u32>) {
        let mut left = errors.iter();
        let mut reported = Vec::new();
        let outcome = outlast(
            deadline,
            &AtomicBool::new(interrupt),
            || left.next().map_or(Ok(()), |error| Err(*error)),
            |error| *error < 10,
            |error| reported.push(*error),
        );
        (outcome, reported)
    }

    #[test]
    fn an_outage_is_outlasted_and_reported_once() {
        let deadline = Instant::now() + MAX_WAIT;
        assert_eq!(attempts(&[], deadline, false), (Ok(()), vec![]));
        assert_eq!(attempts(&[1, 2], deadline, false), (Ok(()), vec![1]));
        assert_eq!(attempts(&[1, 20, 3], deadline, false), (Err(20), vec![1]), "another error");
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_by_an_interrupt() {
        assert_eq!(attempts(&[1, 2], Instant::now(), false), (Err(1), vec![1]));
        assert_eq!(attempts(&[1, 2], Instant::now() + MAX_WAIT, true), (Err(1), vec![1]));
    }
}
