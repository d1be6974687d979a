//! Parts of a load that runs on several hosts.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The part of a load that one of several hosts runs.
///
/// Clients and threads keep the numbers, and so the random numbers, that they have if one host runs the whole load. Each
/// host has a range of them, and takes the arrivals of an open loop in turns with the others: of `n` hosts that have
/// clients of a workload, host `i` takes the arrivals `i`, `i + n`, `i + 2n` and so on of its one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of the host, from 0.
    pub host: u32,
    /// Number of hosts, at least 1.
    pub hosts: u32,
}

impl Part {
    /// All of a load.
    pub const WHOLE: Self = Self { host: 0, hosts: 1 };

    /// The parts of a load on this many hosts.
    pub fn all(hosts: u32) -> impl Iterator<Item = Self> {
        (0..hosts).map(move |host| Self { host, hosts })
    }

    /// The clients of this part, of so many of a workload: all parts together have each once, and none has more than one
    /// client more than another. If there are fewer clients than hosts, the first hosts have one each.
    pub fn clients(self, number: u32) -> Range<u32> {
        // As pgbench distributes clients over threads: the first ones have more.
        let (each, more) = (number / self.hosts.max(1), number % self.hosts.max(1));
        let before = |host: u32| host * each + host.min(more);
        before(self.host)..before(self.host + 1)
    }

    /// The threads of this part, of so many: at least one.
    pub fn threads(self, number: u32) -> Range<u32> {
        self.clients(number.max(self.hosts))
    }

    /// Of this many clients' arrivals, the number that this host leaves to others before its first, and between any two of
    /// its own.
    pub fn arrivals_of_others(self, clients: u32) -> (u32, u32) {
        let hosts = self.hosts.min(clients);
        (self.host.min(hosts), hosts.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(hosts: u32, number: u32) -> Vec<u32> {
        Part::all(hosts).map(|part| part.clients(number).len() as u32).collect()
    }

    #[test]
    fn each_client_is_in_exactly_one_part() {
        for (hosts, number) in [(1, 5), (4, 10), (4, 4), (4, 3), (4, 0), (3, 1000)] {
            let all: Vec<u32> = Part::all(hosts).flat_map(|part| part.clients(number)).collect();
            assert_eq!(all, (0..number).collect::<Vec<_>>(), "{number} on {hosts}");
        }
        assert_eq!(sizes(4, 10), [3, 3, 2, 2]);
        assert_eq!(sizes(4, 2), [1, 1, 0, 0]);
        assert_eq!(Part::WHOLE.clients(7), 0..7);
    }

    #[test]
    fn each_part_has_a_thread_and_none_has_more_threads_than_clients() {
        for hosts in 1..6 {
            for clients in hosts..20 {
                for threads in 1..=clients {
                    for part in Part::all(hosts) {
                        let threads = part.threads(threads).len();
                        assert!((1..=part.clients(clients).len()).contains(&threads), "{part:?} {clients}");
                    }
                }
            }
        }
        assert_eq!(Part { host: 1, hosts: 2 }.threads(5), 3..5);
    }

    #[test]
    fn hosts_without_clients_take_no_turn() {
        let turns = |hosts, clients| -> Vec<_> {
            Part::all(hosts).map(|part| part.arrivals_of_others(clients)).collect()
        };
        assert_eq!(turns(3, 9), [(0, 2), (1, 2), (2, 2)]);
        assert_eq!(turns(3, 2)[..2], [(0, 1), (1, 1)]);
        assert_eq!(turns(1, 9), [(0, 0)]);
    }
}
