//! Names of wait events: PostgreSQL has renamed many of them, above all in 13 (LWLocks, hash joins) and in 17 (all that
//! a list in its sources now generates).
//!
//! Source: `pg_wait_events` of PostgreSQL 17 and 18; for older majors `pgstat.c`, `wait_event.c`, `lwlock.c` and
//! `lwlocknames.txt` of 9.6 to 16.

/// The name of a wait event in PostgreSQL 18: its type, and its name. Names without a later one are returned as they are.
pub fn canonical<'a>(kind: &'a str, event: &'a str) -> (&'a str, &'a str) {
    // 9.6 has two types of LWLocks.
    let kind = if matches!(kind, "LWLockNamed" | "LWLockTranche") { "LWLock" } else { kind };
    if let Some((.., new_kind, new)) =
        RENAMED.iter().find(|(old_kind, old, ..)| (*old_kind, *old) == (kind, event))
    {
        return (new_kind, new);
    }
    // Before 13, the name of each single lock ended in `Lock`.
    match event.strip_suffix("Lock").filter(|name| kind == "LWLock" && !name.is_empty()) {
        Some(name) => (kind, name),
        None => (kind, event),
    }
}

/// Old type and name, new type and name; without those of LWLocks that only lost the suffix `Lock`. Not here: the two
/// events of recovery that exchanged a name in 13, and events whose meaning changed.
const RENAMED: [(&str, &str, &str, &str); 98] = [
    // In 13.
    ("IPC", "ClogGroupUpdate", "IPC", "XactGroupUpdate"),
    ("IPC", "Hash/Batch/Allocating", "IPC", "HashBatchAllocate"),
    ("IPC", "Hash/Batch/Electing", "IPC", "HashBatchElect"),
    ("IPC", "Hash/Batch/Loading", "IPC", "HashBatchLoad"),
    ("IPC", "Hash/Build/Allocating", "IPC", "HashBuildAllocate"),
    ("IPC", "Hash/Build/Electing", "IPC", "HashBuildElect"),
    ("IPC", "Hash/Build/HashingInner", "IPC", "HashBuildHashInner"),
    ("IPC", "Hash/Build/HashingOuter", "IPC", "HashBuildHashOuter"),
    ("IPC", "Hash/GrowBatches/Allocating", "IPC", "HashGrowBatchesReallocate"),
    ("IPC", "Hash/GrowBatches/Deciding", "IPC", "HashGrowBatchesDecide"),
    ("IPC", "Hash/GrowBatches/Electing", "IPC", "HashGrowBatchesElect"),
    ("IPC", "Hash/GrowBatches/Finishing", "IPC", "HashGrowBatchesFinish"),
    ("IPC", "Hash/GrowBatches/Repartitioning", "IPC", "HashGrowBatchesRepartition"),
    ("IPC", "Hash/GrowBuckets/Allocating", "IPC", "HashGrowBucketsReallocate"),
    ("IPC", "Hash/GrowBuckets/Electing", "IPC", "HashGrowBucketsElect"),
    ("IPC", "Hash/GrowBuckets/Reinserting", "IPC", "HashGrowBucketsReinsert"),
    ("Lock", "speculative token", "Lock", "spectoken"),
    ("LWLock", "AsyncCtlLock", "LWLock", "NotifySLRU"),
    ("LWLock", "AsyncQueueLock", "LWLock", "NotifyQueue"),
    ("LWLock", "CLogControlLock", "LWLock", "XactSLRU"),
    ("LWLock", "CLogTruncationLock", "LWLock", "XactTruncation"),
    ("LWLock", "CommitTsControlLock", "LWLock", "CommitTsSLRU"),
    ("LWLock", "MultiXactMemberControlLock", "LWLock", "MultiXactMemberSLRU"),
    ("LWLock", "MultiXactOffsetControlLock", "LWLock", "MultiXactOffsetSLRU"),
    ("LWLock", "OldSerXidLock", "LWLock", "SerialSLRU"),
    ("LWLock", "SerializableFinishedListLock", "LWLock", "SerializableFinishedList"),
    ("LWLock", "SerializablePredicateLockListLock", "LWLock", "SerializablePredicateList"),
    ("LWLock", "SubtransControlLock", "LWLock", "SubtransSLRU"),
    ("LWLock", "async", "LWLock", "NotifyBuffer"),
    ("LWLock", "buffer_content", "LWLock", "BufferContent"),
    ("LWLock", "buffer_mapping", "LWLock", "BufferMapping"),
    ("LWLock", "clog", "LWLock", "XactBuffer"),
    ("LWLock", "commit_timestamp", "LWLock", "CommitTsBuffer"),
    ("LWLock", "lock_manager", "LWLock", "LockManager"),
    ("LWLock", "multixact_member", "LWLock", "MultiXactMemberBuffer"),
    ("LWLock", "multixact_offset", "LWLock", "MultiXactOffsetBuffer"),
    ("LWLock", "oldserxid", "LWLock", "SerialBuffer"),
    ("LWLock", "parallel_append", "LWLock", "ParallelAppend"),
    ("LWLock", "parallel_hash_join", "LWLock", "ParallelHashJoin"),
    ("LWLock", "parallel_query_dsa", "LWLock", "ParallelQueryDSA"),
    ("LWLock", "predicate_lock_manager", "LWLock", "PredicateLockManager"),
    ("LWLock", "proc", "LWLock", "LockFastPath"),
    ("LWLock", "replication_origin", "LWLock", "ReplicationOriginState"),
    ("LWLock", "replication_slot_io", "LWLock", "ReplicationSlotIO"),
    ("LWLock", "serializable_xact", "LWLock", "PerXactPredicateList"),
    ("LWLock", "session_dsa", "LWLock", "PerSessionDSA"),
    ("LWLock", "session_record_table", "LWLock", "PerSessionRecordType"),
    ("LWLock", "session_typmod_table", "LWLock", "PerSessionRecordTypmod"),
    ("LWLock", "shared_tuplestore", "LWLock", "SharedTupleStore"),
    ("LWLock", "subtrans", "LWLock", "SubtransBuffer"),
    ("LWLock", "tbm", "LWLock", "SharedTidBitmap"),
    ("LWLock", "wal_insert", "LWLock", "WALInsert"),
    // In 13, and in 14, which waits without a lock.
    ("LWLock", "buffer_io", "IPC", "BufferIo"),
    ("LWLock", "BufferIO", "IPC", "BufferIo"),
    // In 14.
    ("Client", "WalReceiverWaitStart", "IPC", "WalReceiverWaitStart"),
    // In 16.
    ("IPC", "HashGrowBatchesAllocate", "IPC", "HashGrowBatchesReallocate"),
    ("IPC", "HashGrowBucketsAllocate", "IPC", "HashGrowBucketsReallocate"),
    // In 17.
    ("Activity", "AutoVacuumMain", "Activity", "AutovacuumMain"),
    ("Activity", "BgWriterHibernate", "Activity", "BgwriterHibernate"),
    ("Activity", "BgWriterMain", "Activity", "BgwriterMain"),
    ("Activity", "SysLoggerMain", "Activity", "SysloggerMain"),
    ("Client", "GSSOpenServer", "Client", "GssOpenServer"),
    ("Client", "LibPQWalReceiverConnect", "Client", "LibpqwalreceiverConnect"),
    ("Client", "LibPQWalReceiverReceive", "Client", "LibpqwalreceiverReceive"),
    ("Client", "SSLOpenServer", "Client", "SslOpenServer"),
    ("Client", "WalSenderWaitForWAL", "Client", "WalSenderWaitForWal"),
    ("IPC", "BgWorkerShutdown", "IPC", "BgworkerShutdown"),
    ("IPC", "BgWorkerStartup", "IPC", "BgworkerStartup"),
    ("IPC", "BufferIO", "IPC", "BufferIo"),
    ("IPC", "ProcArrayGroupUpdate", "IPC", "ProcarrayGroupUpdate"),
    ("IO", "BaseBackupRead", "IO", "BasebackupRead"),
    ("IO", "BaseBackupSync", "IO", "BasebackupSync"),
    ("IO", "BaseBackupWrite", "IO", "BasebackupWrite"),
    ("IO", "BufFileRead", "IO", "BuffileRead"),
    ("IO", "BufFileTruncate", "IO", "BuffileTruncate"),
    ("IO", "BufFileWrite", "IO", "BuffileWrite"),
    ("IO", "DSMAllocate", "IO", "DsmAllocate"),
    ("IO", "DSMFillZeroWrite", "IO", "DsmFillZeroWrite"),
    ("IO", "LockFileAddToDataDirRead", "IO", "LockFileAddtodatadirRead"),
    ("IO", "LockFileAddToDataDirSync", "IO", "LockFileAddtodatadirSync"),
    ("IO", "LockFileAddToDataDirWrite", "IO", "LockFileAddtodatadirWrite"),
    ("IO", "LockFileReCheckDataDirRead", "IO", "LockFileRecheckdatadirRead"),
    ("IO", "SLRUFlushSync", "IO", "SlruFlushSync"),
    ("IO", "SLRURead", "IO", "SlruRead"),
    ("IO", "SLRUSync", "IO", "SlruSync"),
    ("IO", "SLRUWrite", "IO", "SlruWrite"),
    ("IO", "WALBootstrapSync", "IO", "WalBootstrapSync"),
    ("IO", "WALBootstrapWrite", "IO", "WalBootstrapWrite"),
    ("IO", "WALCopyRead", "IO", "WalCopyRead"),
    ("IO", "WALCopySync", "IO", "WalCopySync"),
    ("IO", "WALCopyWrite", "IO", "WalCopyWrite"),
    ("IO", "WALInitSync", "IO", "WalInitSync"),
    ("IO", "WALInitWrite", "IO", "WalInitWrite"),
    ("IO", "WALRead", "IO", "WalRead"),
    ("IO", "WALSenderTimelineHistoryRead", "IO", "WalsenderTimelineHistoryRead"),
    ("IO", "WALSync", "IO", "WalSync"),
    ("IO", "WALSyncMethodAssign", "IO", "WalSyncMethodAssign"),
    ("IO", "WALWrite", "IO", "WalWrite"),
];

/// The names that events have now, with those that they had before.
pub fn renamed() -> impl Iterator<Item = ((&'static str, &'static str), (&'static str, &'static str))> {
    RENAMED.into_iter().map(|(old_kind, old, new_kind, new)| ((old_kind, old), (new_kind, new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_major_are_those_of_18() {
        for (old, new) in [
            (("LWLockNamed", "WALWriteLock"), ("LWLock", "WALWrite")),
            (("LWLockTranche", "buffer_content"), ("LWLock", "BufferContent")),
            (("LWLock", "CLogControlLock"), ("LWLock", "XactSLRU")),
            (("LWLock", "buffer_io"), ("IPC", "BufferIo")),
            (("IPC", "BufferIO"), ("IPC", "BufferIo")),
            (("IO", "WALSync"), ("IO", "WalSync")),
            (("IO", "WalSync"), ("IO", "WalSync")),
            (("IPC", "Hash/GrowBuckets/Allocating"), ("IPC", "HashGrowBucketsReallocate")),
            // Neither a renamed LWLock, nor a lock of ours.
            (("LWLock", "WALWrite"), ("LWLock", "WALWrite")),
            (("Extension", "MyLock"), ("Extension", "MyLock")),
            (("LWLock", "Lock"), ("LWLock", "Lock")),
        ] {
            assert_eq!(canonical(old.0, old.1), new);
        }
    }

    #[test]
    fn a_new_name_is_not_an_old_one() {
        for (old, new) in renamed() {
            assert_ne!(old, new);
            assert_eq!(canonical(new.0, new.1), new);
        }
    }
}
