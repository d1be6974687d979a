//! The compared servers: one with settings A, and one with settings B.

use stats::Verdict;

/// A comparison with a known answer.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// `select-only`, `tpcb-like`, or `hashing`: a select by key that also hashes a text of `planted.bytes`.
    pub(crate) workload: &'static str,
    pub(crate) clients: u32,
    /// Settings of both sides, as in a campaign.
    pub(crate) settings: [&'static str; 2],
    /// The right verdict at a margin of 5 %; none where only the ratio matters.
    pub(crate) expected: Option<Verdict>,
}

const NONE: [&str; 2] = ["", ""];

/// All cases. Bytes to hash were chosen by the CPU time of a transaction, as the table shows it.
pub(crate) const CASES: [Case; 11] = [
    Case {
        name: "same-read-1",
        workload: "select-only",
        clients: 1,
        settings: NONE,
        expected: Some(Verdict::Equivalent),
    },
    Case {
        name: "same-read-4",
        workload: "select-only",
        clients: 4,
        settings: NONE,
        expected: Some(Verdict::Equivalent),
    },
    Case {
        name: "same-write-1",
        workload: "tpcb-like",
        clients: 1,
        settings: NONE,
        expected: Some(Verdict::Equivalent),
    },
    Case {
        name: "same-write-4",
        workload: "tpcb-like",
        clients: 4,
        settings: NONE,
        expected: Some(Verdict::Equivalent),
    },
    Case {
        name: "minus-2",
        workload: "hashing",
        clients: 4,
        settings: ["'planted.bytes' = 100", "'planted.bytes' = 210"],
        expected: Some(Verdict::Regression),
    },
    Case {
        name: "minus-5",
        workload: "hashing",
        clients: 4,
        settings: ["'planted.bytes' = 100", "'planted.bytes' = 340"],
        expected: Some(Verdict::Regression),
    },
    Case {
        name: "minus-10",
        workload: "hashing",
        clients: 4,
        settings: ["'planted.bytes' = 100", "'planted.bytes' = 600"],
        expected: Some(Verdict::Regression),
    },
    Case {
        name: "commit-delay",
        workload: "tpcb-like",
        clients: 4,
        settings: ["", "commit_delay = 1000\ncommit_siblings = 1"],
        expected: None,
    },
    Case {
        name: "full-page-writes",
        workload: "tpcb-like",
        clients: 4,
        settings: ["", "full_page_writes = false"],
        expected: None,
    },
    Case {
        name: "shared-buffers",
        workload: "select-only",
        clients: 4,
        settings: ["shared_buffers = '256MB'", "shared_buffers = '4MB'"],
        expected: None,
    },
    Case {
        name: "force-custom-plan",
        workload: "select-only",
        clients: 4,
        settings: ["", "plan_cache_mode = 'force_custom_plan'"],
        expected: None,
    },
];
