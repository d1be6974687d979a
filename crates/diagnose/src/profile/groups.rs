//! Groups of functions by purpose. Sources: the names of PostgreSQL's functions in 9.6 to 18; which of them exist
//! depends on the major, and which are visible on the compiler, which inlines some.

use model::profile::{KERNEL_SUFFIX, Stacks};

use super::functions::{base_name, frames};

/// Groups with the names of their functions; a `*` at the end of a name matches any suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups(Vec<(String, Vec<String>)>);

/// A group's share of some stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupShare {
    /// The group; `None` for samples in no group.
    pub group: Option<String>,
    /// Own samples: those in which the innermost function that is in any group is in this one. They add up to all
    /// samples.
    pub own: u64,
    /// Samples in which any function is in the group. They do not add up: a group may call functions of another.
    pub inclusive: u64,
}

/// Groups of PostgreSQL's functions, in the order in which a statement passes through them. Functions of other groups
/// called from these count for the other groups: the WAL of a commit is `WAL`.
const BUILT_IN: [(&str, &[&str]); 7] = [
    (
        "protocol",
        &[
            "pq_*",
            "secure_*",
            "be_tls_*",
            "socket_*",
            "internal_putbytes",
            "internal_flush",
            "internal_flush_buffer",
            "SocketBackend",
            "ReadCommand",
            "ReadyForQuery",
            "EndCommand",
            "printtup*",
            "SendRowDescription*",
            "ProcessClientReadInterrupt",
            "ProcessClientWriteInterrupt",
        ],
    ),
    (
        "parse and plan",
        &[
            "raw_parser",
            "base_yyparse",
            "pg_parse_query",
            "pg_analyze_and_rewrite*",
            "parse_analyze*",
            "pg_rewrite_query",
            "QueryRewrite",
            "pg_plan_quer*",
            "planner",
            "standard_planner",
            "subquery_planner",
            "exec_parse_message",
            "GetCachedPlan",
            "RevalidateCachedQuery",
            "BuildCachedPlan",
            "CheckCachedPlan",
        ],
    ),
    (
        "executor",
        &[
            "Executor*",
            "standard_Executor*",
            "Exec*",
            "PortalRunSelect",
            "PortalRunMulti",
            "ProcessQuery",
            "IndexNext",
            "SeqNext",
            "IndexOnlyNext",
            "BitmapHeapNext",
        ],
    ),
    (
        "commit",
        &[
            "CommitTransaction*",
            "RecordTransactionCommit*",
            "PrepareTransaction*",
            "AbortTransaction*",
            "CommitSubTransaction",
            "ProcArrayEndTransaction*",
            "TransactionIdCommitTree",
            "TransactionIdSetTreeStatus",
            "finish_xact_command",
            "PreCommit_*",
            "AtEOXact_*",
        ],
    ),
    (
        "buffer",
        &[
            "ReadBuffer*",
            "StartReadBuffer*",
            "WaitReadBuffers*",
            "ReleaseAndReadBuffer",
            "ReleaseBuffer",
            "UnlockReleaseBuffer",
            "PinBuffer*",
            "UnpinBuffer*",
            "BufferAlloc",
            "GetVictimBuffer",
            "StrategyGetBuffer",
            "BufTable*",
            "LockBuffer*",
            "UnlockBuffer*",
            "MarkBufferDirty*",
            "FlushBuffer",
            "SyncOneBuffer",
            "BgBufferSync",
            "BufferSync",
            "CheckPointBuffers",
            "ExtendBufferedRel*",
            "PrefetchBuffer*",
            "smgrread*",
            "smgrwrite*",
            "smgrextend*",
            "mdread*",
            "mdwrite*",
            "mdextend*",
            "FileRead*",
            "FileWrite*",
            "pgaio_*",
        ],
    ),
    (
        "WAL",
        &[
            "XLogInsert*",
            "XLogBeginInsert",
            "XLogRegister*",
            "XLogRecordAssemble",
            "CopyXLogRecordToWAL",
            "XLogFlush",
            "XLogWrite",
            "XLogBackgroundFlush",
            "AdvanceXLInsertBuffer",
            "GetXLogBuffer",
            "ReserveXLogInsertLocation",
            "WALInsertLock*",
            "issue_xlog_fsync",
        ],
    ),
    (
        "lock",
        &[
            "LWLock*",
            "LockAcquire*",
            "LockRelease*",
            "LockRelation*",
            "UnlockRelation*",
            "LockTuple*",
            "UnlockTuple*",
            "LockCheckConflicts",
            "FastPath*",
            "s_lock",
            "perform_spin_delay",
            "ProcSleep",
            "ProcWakeup",
            "ProcLockWakeup",
            "DeadLockCheck",
            "XactLockTableWait",
            "ConditionVariable*",
            "PGSemaphore*",
        ],
    ),
];

impl Default for Groups {
    fn default() -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self(BUILT_IN.iter().map(|(group, names)| ((*group).to_owned(), owned(names))).collect())
    }
}

impl Groups {
    /// Adds a group, or functions to an existing one. A function in several groups belongs to the one that was last
    /// added to.
    pub fn add(&mut self, group: &str, functions: impl IntoIterator<Item = String>) {
        let at = self.0.iter().position(|(name, _)| name == group);
        let (name, mut known) = at.map_or_else(|| (group.to_owned(), Vec::new()), |at| self.0.remove(at));
        known.extend(functions);
        self.0.insert(0, (name, known));
    }

    /// Index of a function's group. Functions of the kernel have none: they count for their callers.
    fn index_of(&self, frame: &str) -> Option<usize> {
        if frame.ends_with(KERNEL_SUFFIX) {
            return None;
        }
        let name = base_name(frame);
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *pattern,
        };
        self.0.iter().position(|(_, patterns)| patterns.iter().any(fits))
    }

    /// Shares of the groups in some stacks, the most own samples first; groups without samples are omitted.
    pub fn shares(&self, stacks: &Stacks) -> Vec<GroupShare> {
        let mut own = vec![0; self.0.len() + 1];
        let mut inclusive = own.clone();
        let none = self.0.len();
        let mut known: std::collections::HashMap<&str, Option<usize>> = std::collections::HashMap::new();
        for (stack, &samples) in &stacks.samples {
            let mut groups: Vec<usize> = frames(stack)
                .rev()
                .filter_map(|frame| *known.entry(frame).or_insert_with(|| self.index_of(frame)))
                .collect();
            own[groups.first().copied().unwrap_or(none)] += samples;
            groups.sort_unstable();
            groups.dedup();
            for group in groups {
                inclusive[group] += samples;
            }
        }
        inclusive[none] = own[none];
        let names = self.0.iter().map(|(name, _)| Some(name.clone())).chain([None]);
        let mut shares: Vec<GroupShare> = names
            .zip(own.into_iter().zip(inclusive))
            .map(|(group, (own, inclusive))| GroupShare { group, own, inclusive })
            .filter(|share| share.inclusive > 0)
            .collect();
        shares
            .sort_by(|a, b| (a.group.is_none(), b.own, &a.group).cmp(&(b.group.is_none(), a.own, &b.group)));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(groups: &Groups, text: &str) -> Vec<(String, u64, u64)> {
        let shares = groups.shares(&Stacks::from_folded("load", text).unwrap());
        let name = |share: &GroupShare| share.group.clone().unwrap_or_default();
        shares.iter().map(|share| (name(share), share.own, share.inclusive)).collect()
    }

    fn expected(shares: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        shares.iter().map(|(name, own, inclusive)| ((*name).to_owned(), *own, *inclusive)).collect()
    }

    const TEXT: &str = "\
p;PostgresMain;pq_getbyte;secure_read;recv_[k] 5
p;PostgresMain;standard_ExecutorRun;ExecScan;heap_getnext 4
p;PostgresMain;standard_ExecutorRun;ExecScan;ReadBufferExtended;LWLockAcquire.isra.0;futex_[k] 3
p;PostgresMain;finish_xact_command;CommitTransaction;XLogFlush;LWLockAcquire 2
p;PostgresMain 1
";

    #[test]
    fn a_sample_counts_for_the_group_of_its_innermost_grouped_function() {
        let shares = shares(&Groups::default(), TEXT);
        assert_eq!(
            shares,
            expected(&[
                ("lock", 5, 5),
                ("protocol", 5, 5),
                ("executor", 4, 7),
                ("WAL", 0, 2),
                ("buffer", 0, 3),
                ("commit", 0, 2),
                ("", 1, 1)
            ])
        );
        assert_eq!(shares.iter().map(|(_, own, _)| own).sum::<u64>(), 15);
    }

    #[test]
    fn groups_can_be_added_and_extended() {
        let mut groups = Groups::default();
        groups.add("protocol", ["PostgresMain".to_owned()]);
        groups.add("tables", ["heap_*".to_owned(), "ReadBufferExtended".to_owned(), "LWLock*".to_owned()]);
        let shares = shares(&groups, TEXT);
        assert_eq!(&shares[..2], expected(&[("tables", 9, 9), ("protocol", 6, 15)]));
    }
}
