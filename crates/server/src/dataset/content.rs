//! Content of a data set: pgbench's tables at a scale or a database of the user's own, and the data of a workload's setup.

use std::fmt;
use std::sync::Arc;

use model::dataset::{DatabaseKind, OwnDatabase};
use model::workload::Statement;

use host::Fingerprint;

/// Content of a data set. Two data sets are the same if all of it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// pgbench's scale factor; 1 with a database of the user's own.
    pub scale: u32,
    /// A database of the user's own; none for generated tables.
    pub own: Option<Arc<OwnDatabase>>,
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
    /// Whether the tables of the star schema exist, too.
    pub star_tables: bool,
    /// Statements, each sent whole, in order.
    pub statements: Vec<Statement>,
}

impl From<u32> for Content {
    /// pgbench's tables alone.
    fn from(scale: u32) -> Self {
        Self { scale, own: None, setup: None }
    }
}

impl Content {
    /// Whether pgbench's tables exist.
    pub(crate) fn has_pgbench_tables(&self) -> bool {
        self.own.is_none() && self.setup.as_ref().is_none_or(|setup| setup.pgbench_tables)
    }

    /// Name of its origin for names of templates: `scale-10`, or the kind and a hash of the user's own database, of which the
    /// name in the campaign is no part.
    pub(crate) fn origin(&self) -> String {
        let Some(own) = &self.own else { return format!("scale-{}", self.scale) };
        let kind = match own.kind {
            DatabaseKind::Dump => "dump",
            DatabaseKind::BaseBackup => "backup",
            DatabaseKind::Template => "template",
        };
        let mut key = Fingerprint::new();
        [&own.content, &own.database]
            .into_iter()
            .for_each(|part| key.add(part.as_deref().unwrap_or_default()));
        format!("{kind}-{}", key.short())
    }

    /// Hash of the additional content, in eight hexadecimal digits; none without any. The workload's name is not part
    /// of it.
    pub(crate) fn key(&self) -> Option<String> {
        let setup = self.setup.as_ref()?;
        let mut key = Fingerprint::new();
        key.add([u8::from(setup.pgbench_tables)]);
        if setup.star_tables {
            key.add("star tables, version 1");
        }
        for statement in &setup.statements {
            key.add(&statement.sql);
        }
        Some(key.short())
    }
}

impl fmt::Display for Content {
    /// `scale 10`, `scale 10, queue`, `data set shop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.own {
            Some(own) => write!(f, "data set {}", own.name)?,
            None => write!(f, "scale {}", self.scale)?,
        }
        match &self.setup {
            Some(setup) => write!(f, ", {}", setup.workload),
            None => Ok(()),
        }
    }
}
