//! Metrics of processes, by their role in a trial. Source: proc(5).

use crate::metrics::metric::Condition::If;
use crate::metrics::metric::{Condition, Group, counter, gauge};

const SCHED_INFO: Condition = If("the kernel has `CONFIG_SCHED_INFO`");
const BYTES: Condition = If("pgdyno may read `io` of each process");
const OTHERS: Condition = If("other processes use CPU time");
const THREADS: Condition = If("role `driver`");

pub(super) const ROLES: Group = Group {
    name: "roles",
    label: Some("role"),
    metrics: &[
        gauge("role.processes", "`/proc`", "number of processes"),
        counter("role.user_us", "`stat`", "processor time in programs, in steps of 10 ms"),
        counter("role.system_us", "`stat`", "processor time in the kernel, in steps of 10 ms"),
        counter("role.run_us", "`schedstat`", "processor time, user and system, to the nanosecond").when(SCHED_INFO),
        counter("role.wait_us", "`schedstat`", "time ready to run, waiting for a processor").when(SCHED_INFO),
        counter("role.switches_voluntary", "`status`", "context switches to wait for something"),
        counter("role.switches_involuntary", "`status`", "context switches forced by the scheduler"),
        counter("role.read_bytes", "`io`", "bytes read from disks").when(BYTES),
        counter("role.write_bytes", "`io`", "bytes of file pages dirtied, even if another process writes them later").when(BYTES),
        counter("role.busiest_run_us", "`task/*/schedstat`", "processor time of the thread that has run most since it started")
            .when(THREADS),
        counter("role.busiest_wait_us", "`task/*/schedstat`", "time for which that busiest thread waited for a processor; if another one becomes the busiest, the larger of the two")
            .when(THREADS),
    ],
};

pub(super) const NAMES: Group = Group {
    name: "names",
    label: Some("process name"),
    metrics: &[counter(
        "foreign.run_us",
        "`stat`",
        "processor time of the processes of this name, user and system, since the first reading, in steps of 10 ms",
    )
    .when(OTHERS)],
};
