//! What a data set holds: pgbench's tables at a scale, and what a workload's setup makes.

use std::fmt;
use std::sync::Arc;

use model::workload::Statement;

use host::Fingerprint;

/// What a data set holds. Two are the same where all of it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// pgbench's scale factor.
    pub scale: u32,
    /// What else is made, and whether pgbench's tables are; none for these alone.
    pub setup: Option<Arc<Setup>>,
}

/// What a workload's data set has of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setup {
    /// The workload's name, for people.
    pub workload: String,
    /// Whether pgbench's tables are there, too.
    pub pgbench_tables: bool,
    /// Statements, each sent whole, in their order.
    pub statements: Vec<Statement>,
}

impl From<u32> for Content {
    /// pgbench's tables alone.
    fn from(scale: u32) -> Self {
        Self { scale, setup: None }
    }
}

impl Content {
    /// Whether pgbench's tables are there.
    pub(crate) fn has_pgbench_tables(&self) -> bool {
        self.setup.as_ref().is_none_or(|setup| setup.pgbench_tables)
    }

    /// What is made beyond pgbench's tables, in eight hexadecimal digits; none where nothing is. The workload's name is no
    /// part of it.
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
