//! Partitioning of pgbench_accounts.

/// The partitioning method of pgbench_accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionMethod {
    Range,
    Hash,
}

impl PartitionMethod {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Hash => "hash",
        }
    }
}
