//! Checks of the databases of the user's own: their tables, and which servers they fit.

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::dataset::{DatabaseKind, DatasetSpec};
use crate::server::{ServerSpec, Source};
use crate::spec::Dataset;
use crate::value::{Spanned, SpecError};

impl CheckedCampaign<'_> {
    /// The databases of the cells, each once.
    pub(crate) fn datasets(&self, cells: &[Cell]) -> Result<Vec<DatasetSpec>, SpecError> {
        let mut found: Vec<DatasetSpec> = Vec::new();
        for own in cells.iter().filter_map(|cell| cell.workload.own_database()) {
            let is_new = found.iter().all(|known| known.name != own.name);
            let table = self.campaign.datasets.iter().find(|(name, _)| *name.get_ref() == own.name);
            if let (true, Some((_, table))) = (is_new, table) {
                found
                    .push(DatasetSpec { name: own.name.clone(), source: Dataset::source(&own.name, table)? });
            }
        }
        Ok(found)
    }

    /// Rejects cells whose server can't have their database.
    pub(crate) fn check_datasets(&self, cells: &[Cell], servers: &[ServerSpec]) -> Result<(), SpecError> {
        for cell in cells {
            let Some(own) = cell.workload.own_database() else { continue };
            let Some(server) = servers.iter().find(|server| server.name == cell.server) else { continue };
            let is_external = matches!(server.source, Source::Dsn(_));
            let (what, help) = match own.kind {
                DatabaseKind::Template if !is_external => (
                    "is a database of a running server",
                    "name a server with a `dsn`, or take a dump or base backup of the database",
                ),
                DatabaseKind::BaseBackup if is_external => {
                    ("is a base backup, which needs a server that pgdyno starts", "use a dump, or `template`")
                }
                DatabaseKind::BaseBackup if !server.initdb.is_empty() => (
                    "is a base backup: options of `initdb` have no effect on it",
                    "leave `initdb` out, or use a dump",
                ),
                _ => continue,
            };
            let table = self.campaign.datasets.keys().find(|name| *name.get_ref() == own.name);
            return Err(SpecError {
                message: format!(
                    "the workload \"{}\" can't run on the server \"{}\": its data set \"{}\" {what}",
                    cell.workload.name(),
                    cell.server,
                    own.name
                ),
                at: table.map(Spanned::span),
                help: Some(format!(
                    "{help}; or leave this combination out, by `exclude` or a separate `[[matrix]]`"
                )),
            });
        }
        Ok(())
    }
}
