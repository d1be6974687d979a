//! Content of a data set: pgbench's tables at a scale, and the data of a workload's setup.

use std::fmt;
use std::sync::Arc;

use model::workload::Statement;

use host::Fingerprint;

/// Content of a data set. Two data sets are the same if all of it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// pgbench's scale factor.
    pub scale: u32,
    /// Additional content, and whether there are pgbench's tables; none for these alone.
    pub setup: Option<Arc<Setup>>,
}

/// A workload's own part of a data set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setup {
    /// Name of the workload, for messages.
    pub workload: String,
    /// Whether pgbench's tables exist, too.
    pub pgbench_tables: bool,
    /// Statements, each sent whole, in order.
    pub statements: Vec<Statement>,
}

impl From<u32> for Content {
    /// pgbench's tables alone.
    fn from(scale: u32) -> Self {
        Self { scale, setup: None }
    }
}

impl Content {
    /// Whether pgbench's tables exist.
    pub(crate) fn has_pgbench_tables(&self) -> bool {
        self.setup.as_ref().is_none_or(|setup| setup.pgbench_tables)
    }

    /// Hash of the additional content, in eight hexadecimal digits; none without any. The workload's name is not part
    /// of it.
    pub(crate) fn key(&self) -> Option<String> {
        let setup = self.setup.as_ref()?;
        let mut key = Fingerprint::new();
        key.add([u8::from(setup.pgbench_tables)]);
        for statement in &setup.statements {
            key.add(&statement.sql);
        }
        Some(key.short())
    }
}

impl fmt::Display for Content {
    /// `scale 10`, `scale 10, queue`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scale {}", self.scale)?;
        match &self.setup {
            Some(setup) => write!(f, ", {}", setup.workload),
            None => Ok(()),
        }
    }
}
