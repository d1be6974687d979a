//! Metrics of stored trials in one file: OpenMetrics or OTLP.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

use model::record::{Trial, TrialRecord};
use store::StoreReader;

use super::ExportError;
use super::file::PendingFile;
use crate::monitoring::{OPENMETRICS_END, openmetrics_parts, write_otlp};

/// An export of metrics.
#[derive(Clone, Debug)]
pub struct MetricsExport {
    /// Format of the file.
    pub format: MetricsFormat,
    /// The file; `-` for standard output.
    pub output: PathBuf,
}

/// Format of a file of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics text with times.
    OpenMetrics,
    /// OTLP/JSON, a request per line.
    Otlp,
}

/// A complete file of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenMetrics {
    /// Its path, or `standard output`.
    pub path: String,
    /// Number of its trials.
    pub trials: usize,
    /// Number of its samples.
    pub samples: u64,
}

impl fmt::Display for WrittenMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, trials, samples } = self;
        write!(f, "{path}: {samples} samples of {trials} {}", if *trials == 1 { "trial" } else { "trials" })
    }
}

impl MetricsExport {
    /// Writes the metrics of these trials, without those that can't be read. None if the user interrupted the export:
    /// there is no file; `is_interrupted` is called before each trial.
    ///
    /// # Errors
    /// The file can't be written, or none of the trials can be read.
    pub fn write(
        &self,
        reader: &StoreReader,
        trials: &[&Trial],
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<WrittenMetrics>, ExportError> {
        let pending = PendingFile::single(&self.output)?;
        let mut out = pending.writer()?;
        let failed = |source| pending.failed(source);
        let mut document = match self.format {
            MetricsFormat::OpenMetrics => Some(Families::new(pending.scratch().map_err(failed)?)),
            MetricsFormat::Otlp => None,
        };
        let (mut written, mut samples) = (0, 0);
        for trial in trials {
            if is_interrupted() {
                return Ok(None);
            }
            let Some(record) = reader.load(&trial.id) else { continue };
            samples += match &mut document {
                Some(document) => document.add(&record),
                None => write_otlp(&record, &mut out),
            }
            .map_err(failed)?;
            written += 1;
        }
        if let Some(first) = trials.first().filter(|_| written == 0) {
            return Err(reader.error(&first.id).into());
        }
        if let Some(document) = document {
            document.write(&mut out).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        drop(out);
        Ok(Some(WrittenMetrics { path: pending.publish()?, trials: written, samples }))
    }
}

/// A document in OpenMetrics, which has all samples of a family together, also those of different trials. They are in a
/// file meanwhile, so that only one trial is in memory.
struct Families {
    spool: BufWriter<File>,
    written: u64,
    /// Head of each family by its name, and where its samples are in the file.
    families: BTreeMap<String, (String, Vec<(u64, u64)>)>,
}

impl Families {
    fn new(spool: File) -> Self {
        Self { spool: BufWriter::new(spool), written: 0, families: BTreeMap::new() }
    }

    fn add(&mut self, record: &TrialRecord) -> io::Result<u64> {
        let mut samples = 0;
        for part in openmetrics_parts(record) {
            self.spool.write_all(part.samples.as_bytes())?;
            let length = part.samples.len() as u64;
            let (_, places) = self.families.entry(part.name).or_insert_with(|| (part.head, Vec::new()));
            places.push((self.written, length));
            self.written += length;
            samples += part.count;
        }
        Ok(samples)
    }

    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let mut spool = self.spool.into_inner().map_err(io::IntoInnerError::into_error)?;
        for (head, places) in self.families.values() {
            out.write_all(head.as_bytes())?;
            for (start, length) in places {
                spool.seek(SeekFrom::Start(*start))?;
                io::copy(&mut (&spool).take(*length), out)?;
            }
        }
        out.write_all(OPENMETRICS_END.as_bytes())
    }
}
