//! `pgdyno dataset list` as a versioned document and as a table.

use host::Cache;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::dataset::OwnDatabase;
use plaintext::table::Table;
use serde::Serialize;
use server::{Facts, Template};

/// Every data set.
#[derive(Debug, Serialize)]
pub struct List {
    format: u32,
    cache: String,
    datasets: Vec<DatasetEntry>,
}

#[derive(Debug, Serialize)]
struct DatasetEntry {
    name: String,
    server: String,
    version: String,
    initdb: Vec<String>,
    /// pgbench's scale factor; 1 if it was made from a database of the user's own.
    scale: u32,
    /// The database of the user's own that it was made from; null for generated tables.
    own: Option<OwnDatabase>,
    /// Workload whose setup created it; null if it has only pgbench's tables.
    workload: Option<String>,
    bytes: u64,
    made: Timestamp,
    last_used: Timestamp,
    /// Whether it was created by an older pgdyno and is no longer used.
    outdated: bool,
    /// Null if it is outdated.
    facts: Option<Facts>,
    directory: String,
}

impl List {
    /// Reads the data sets from the cache.
    ///
    /// # Errors
    /// The cache can't be read.
    pub fn read(cache: &Cache) -> Result<Self, server::Error> {
        Ok(Self {
            format: 1,
            cache: cache.directory().display().to_string(),
            datasets: server::templates(cache)?.iter().map(DatasetEntry::new).collect(),
        })
    }

    /// One row per data set.
    pub fn table(&self) -> Table {
        let columns = [
            "name",
            "server",
            "initdb options",
            "#scale",
            "database",
            "workload",
            "#size",
            "made",
            "last used",
            "state",
        ];
        let mut table = Table::new(columns);
        for entry in &self.datasets {
            table.push(vec![
                entry.name.clone(),
                entry.server.clone(),
                entry.initdb.join(" "),
                if entry.own.is_some() { String::new() } else { entry.scale.to_string() },
                entry
                    .own
                    .as_ref()
                    .map(|own| format!("{} {}", own.kind.in_words(), own.name))
                    .unwrap_or_default(),
                entry.workload.clone().unwrap_or_default(),
                size(entry.bytes),
                minute(entry.made),
                minute(entry.last_used),
                if entry.outdated { "outdated" } else { "" }.to_owned(),
            ]);
        }
        table
    }
}

impl DatasetEntry {
    fn new(template: &Template) -> Self {
        Self {
            name: template.name().to_owned(),
            server: template.server().to_owned(),
            version: template.version().to_string(),
            initdb: template.initdb().to_owned(),
            scale: template.scale(),
            own: template.own().cloned(),
            workload: template.workload().map(str::to_owned),
            bytes: template.bytes(),
            made: template.made(),
            last_used: template.last_used(),
            outdated: !template.is_current(),
            facts: template.facts().cloned(),
            directory: template.directory().display().to_string(),
        }
    }
}

/// A human-readable size, in units of 1000.
pub fn size(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// A moment in the local time zone.
fn minute(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
