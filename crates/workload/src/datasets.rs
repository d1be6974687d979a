//! Databases of the user's own that workloads name, with the hashes of their files.

use std::path::Path;

use host::{Contents, Progress};
use model::dataset::OwnDatabase;
use model::spec::{Dataset, Spanned, SpecError, Tables};

/// The tables `[datasets.NAME]` of a campaign, and the receiver of progress while the files of a large one are read.
#[derive(Clone, Copy)]
pub(crate) struct Datasets<'a> {
    pub(crate) tables: &'a Tables<Spanned<Dataset>>,
    pub(crate) progress: &'a dyn Progress,
}

/// The database of a table `[datasets.NAME]`; paths are relative to `directory`.
///
/// # Errors
/// There is no such table, or its files can't be read.
pub(crate) fn own_database(
    name: &Spanned<String>,
    datasets: Datasets<'_>,
    directory: &Path,
) -> Result<OwnDatabase, SpecError> {
    let Datasets { tables, progress } = datasets;
    let Some((_, table)) = tables.iter().find(|(known, _)| known.get_ref() == name.get_ref()) else {
        let known: Vec<&str> = tables.keys().map(|name| name.get_ref().as_str()).collect();
        let help = match known.as_slice() {
            [] => format!("define it: [datasets.{}]", name.get_ref()),
            known => format!("expected one of: {}", known.join(", ")),
        };
        return Err(SpecError::at(name, format!("there is no data set \"{}\"", name.get_ref()), help));
    };
    let source = Dataset::source(name.get_ref(), table)?;
    let contents = source.path().map(|path| Contents::read(&directory.join(path), progress)).transpose();
    let contents = contents.map_err(|error| {
        SpecError::at(
            table,
            format!(
                "the {} of the data set \"{}\" can't be read: {error}",
                source.kind().in_words(),
                name.get_ref()
            ),
            "expected the path of what pg_dump or pg_basebackup wrote",
        )
    })?;
    Ok(OwnDatabase {
        name: name.get_ref().clone(),
        kind: source.kind(),
        database: source.database().map(str::to_owned),
        bytes: contents.as_ref().map(|contents| contents.bytes),
        content: contents.map(|contents| contents.sha256),
    })
}
