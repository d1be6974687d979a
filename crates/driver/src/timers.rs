//! Timers of one thread's clients.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Alarms of clients, at most one per client: setting one cancels the client's earlier one.
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Number of the valid alarm, by client.
    valid: Vec<u32>,
}

impl Timers {
    pub(crate) fn new(clients: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(clients * 2), valid: vec![0; clients] }
    }

    /// Sets a client's alarm.
    #[inline]
    pub(crate) fn set(&mut self, client: usize, at_ns: u64) {
        self.cancel(client);
        self.heap.push(Reverse((at_ns, client as u32, self.valid[client])));
    }

    /// Cancels a client's alarm, if there is one.
    #[inline]
    pub(crate) fn cancel(&mut self, client: usize) {
        self.valid[client] = self.valid[client].wrapping_add(1);
    }

    /// The time of the next alarm.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> Option<u64> {
        while let Some(Reverse((at_ns, client, number))) = self.heap.peek() {
            if self.valid[*client as usize] == *number {
                return Some(*at_ns);
            }
            self.heap.pop();
        }
        None
    }

    /// The next client whose alarm is due.
    #[inline]
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<usize> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse((_, client, _)) = self.heap.pop()?;
        self.cancel(client as usize);
        Some(client as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_come_in_order_and_only_the_last_of_each_client() {
        let mut timers = Timers::new(3);
        timers.set(0, 30);
        timers.set(1, 10);
        timers.set(2, 20);
        timers.set(1, 40);
        timers.cancel(2);
        assert_eq!(timers.next_ns(), Some(30));
        assert_eq!(timers.pop_due(29), None);
        assert_eq!(timers.pop_due(100), Some(0));
        assert_eq!(timers.pop_due(100), Some(1));
        assert_eq!((timers.pop_due(100), timers.next_ns()), (None, None));
    }
}
