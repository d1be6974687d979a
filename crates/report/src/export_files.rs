//! Trials in files: as tables in Parquet, CSV or JSON, as [metrics](MetricsExport), or as [bundles](BundleExport). Files have temporary names and are
//! renamed when all are complete.

mod bundles;
mod csv;
mod file;
mod jsonl;
mod metrics;
mod parquet;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use model::record::Trial;
use store::{StoreError, StoreReader};

use crate::export_tables::{Table, Value};
pub use bundles::{BundleExport, WrittenBundles};
use file::PendingFile;
pub use metrics::{MetricsExport, MetricsFormat, WrittenMetrics};

/// Error of an export. Incomplete files are removed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file could not be written.
    #[error("could not write {place}")]
    Write {
        /// The file, or its directory.
        place: String,
        /// Reason.
        source: io::Error,
    },
    /// The directory is a file.
    #[error("{} exists and is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The file is a directory.
    #[error("{} is a directory, and this export is one file: name it", .0.display())]
    IsADirectory(PathBuf),
    /// The directory could not be created.
    #[error("could not create the directory {}", directory.display())]
    CreateDirectory {
        /// The directory.
        directory: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// None of the trials can be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ExportError {
    /// Whether the reader has closed the pipe.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values, RFC 4180.
    Csv,
    /// JSON, an object per line.
    Json,
}

impl FileFormat {
    const ALL: [Self; 3] = [Self::Parquet, Self::Csv, Self::Json];

    /// File name extensions, the default first.
    const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Parquet => &["parquet"],
            Self::Csv => &["csv"],
            Self::Json => &["jsonl", "ndjson", "json"],
        }
    }

    /// Format by a path's extension.
    pub fn from_extension(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.into_iter().find(|format| format.extensions().contains(&extension.as_str()))
    }
}

/// An export: tables, format and place.
#[derive(Clone, Debug)]
pub struct Export {
    /// Tables, one file each.
    pub tables: Vec<Table>,
    /// Format of the files.
    pub format: FileFormat,
    /// The file of the only table, `-` for standard output; else the directory of all files.
    pub output: PathBuf,
    /// Whether `output` is a file.
    pub is_file: bool,
}

/// Outcome of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportOutcome {
    /// All files are complete.
    Complete(Vec<WrittenFile>),
    /// The user interrupted the export: there is no file.
    Interrupted,
}

/// A complete file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its path, or `standard output`.
    pub path: String,
    /// Its table.
    pub table: Table,
    /// Number of its rows.
    pub rows: u64,
}

impl fmt::Display for WrittenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} rows of {}", self.path, self.rows, self.table.name())
    }
}

/// A file that rows are added to.
trait Rows {
    fn add(&mut self, values: &[Value<'_>]) -> io::Result<()>;
    /// Writes the remaining data and completes the file.
    fn end(self: Box<Self>) -> io::Result<()>;
}

/// A table with its file.
struct Output {
    table: Table,
    pending: PendingFile,
    rows: Box<dyn Rows>,
    count: u64,
}

impl Export {
    /// Writes the tables of these trials, without those that can't be read; `is_interrupted` is called before each row.
    ///
    /// # Errors
    /// A file can't be written, or none of the trials can be read.
    pub fn write(
        &self,
        reader: &StoreReader,
        trials: &[&Trial],
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<ExportOutcome, ExportError> {
        if !self.is_file {
            create_directory(&self.output)?;
        }
        let mut outputs = self.tables.iter().map(|table| self.open(*table)).collect::<Result<Vec<_>, _>>()?;
        let added = add_all(&mut outputs, reader, trials, is_interrupted);
        if is_interrupted() {
            return Ok(ExportOutcome::Interrupted);
        }
        added?;
        // Files are renamed only when all are complete.
        let mut complete = Vec::new();
        for Output { table, pending, rows, count } in outputs {
            rows.end().map_err(|source| pending.failed(source))?;
            complete.push((table, pending, count));
        }
        let renamed = complete
            .into_iter()
            .map(|(table, pending, rows)| Ok(WrittenFile { path: pending.publish()?, table, rows }));
        Ok(ExportOutcome::Complete(renamed.collect::<Result<_, ExportError>>()?))
    }

    fn open(&self, table: Table) -> Result<Output, ExportError> {
        let pending = if self.output == Path::new("-") {
            PendingFile::stdout()
        } else if self.is_file {
            PendingFile::file(&self.output)?
        } else {
            let extension = self.format.extensions().first().unwrap_or(&"");
            PendingFile::file(&self.output.join(format!("{}.{extension}", table.name())))?
        };
        let out = pending.writer()?;
        let rows = match self.format {
            FileFormat::Parquet => parquet::rows(out, table),
            FileFormat::Csv => csv::rows(out, table),
            FileFormat::Json => Ok(jsonl::rows(out, table)),
        };
        let rows = rows.map_err(|source| pending.failed(source))?;
        Ok(Output { table, pending, rows, count: 0 })
    }
}

fn add_all(
    outputs: &mut [Output],
    reader: &StoreReader,
    trials: &[&Trial],
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), ExportError> {
    if outputs.iter().any(|output| !matches!(output.table, Table::Runs | Table::Cells)) {
        for trial in trials {
            let Some(record) = reader.load(&trial.id) else { continue };
            for output in &mut *outputs {
                let table = output.table;
                let added = table.rows_of_trial(&record, &mut |values| output.add(values, is_interrupted));
                added.map_err(|source| output.pending.failed(source))?;
            }
        }
    }
    // All tables are of the same trials.
    let mut written = trials.to_vec();
    written.retain(|trial| !reader.is_left_out(&trial.id));
    if let Some(first) = trials.first().filter(|_| written.is_empty()) {
        return Err(reader.error(&first.id).into());
    }
    for output in outputs {
        let table = output.table;
        let added = table.rows_of_runs(&written, &mut |values| output.add(values, is_interrupted));
        added.map_err(|source| output.pending.failed(source))?;
    }
    Ok(())
}

impl Output {
    /// Adds a row, unless the export is interrupted.
    fn add(&mut self, values: &[Value<'_>], is_interrupted: &dyn Fn() -> bool) -> io::Result<()> {
        if is_interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.count += 1;
        self.rows.add(values)
    }
}

fn create_directory(path: &Path) -> Result<(), ExportError> {
    if path.exists() && !path.is_dir() {
        return Err(ExportError::NotADirectory(path.to_owned()));
    }
    std::fs::create_dir_all(path)
        .map_err(|source| ExportError::CreateDirectory { directory: path.to_owned(), source })
}
