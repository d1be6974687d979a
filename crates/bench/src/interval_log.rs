//! `--hlog`: the histograms of every interval, in the format of a bundle's `latency.hlog` (docs/bundle.md). The tag of
//! service times is that of the latencies with `:service` appended.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use driver::Record;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use jiff::Timestamp;
use store::hlog;

use crate::error::RunError;

/// An interval log, open for writing.
pub(crate) struct IntervalLog {
    path: PathBuf,
    file: BufWriter<File>,
    /// The names of the scripts.
    scripts: Vec<String>,
    serializer: V2DeflateSerializer,
    serialized: Vec<u8>,
}

impl IntervalLog {
    /// Creates the file, for scripts with these names.
    pub(crate) fn create(path: &Path, scripts: Vec<String>) -> Result<Self, RunError> {
        let file =
            File::create(path).map_err(|source| RunError::CreateLog { path: path.to_owned(), source })?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            scripts,
            serializer: V2DeflateSerializer::new(),
            serialized: Vec::new(),
        })
    }

    /// Starts the log of a load. Of a search, the log of the last load remains.
    pub(crate) fn start(&mut self, started: Timestamp) -> Result<(), RunError> {
        let header = File::create(&self.path).and_then(|file| {
            self.file = BufWriter::new(file);
            self.file.write_all(hlog::header(started).as_bytes())
        });
        header.map_err(|source| self.write_error(source))
    }

    /// Writes an interval, and flushes the file.
    pub(crate) fn interval(&mut self, record: &Record) -> Result<(), RunError> {
        self.write(record).map_err(|source| self.write_error(source))
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let start_us = record.start_ns / 1_000;
        let width_us = record.end_ns / 1_000 - start_us;
        for (number, script) in record.scripts.iter().enumerate() {
            let name = self.scripts.get(number).map_or("?", String::as_str).to_owned();
            for of_phase in script.by_phase(record.phase) {
                let tag = hlog::tag(&name, of_phase.phase);
                let service = of_phase.service.map(|service| (format!("{tag}{}", hlog::SERVICE), service));
                for (tag, histogram) in [(tag, of_phase.latency)].into_iter().chain(service) {
                    let payload = self.payload(&histogram)?;
                    let line = hlog::format_line(&tag, start_us, width_us, histogram.max(), &payload);
                    self.file.write_all(line.as_bytes())?;
                }
            }
        }
        self.file.flush()
    }

    fn payload(&mut self, histogram: &Histogram<u64>) -> io::Result<String> {
        self.serialized.clear();
        self.serializer.serialize(histogram, &mut self.serialized).map_err(io::Error::other)?;
        Ok(STANDARD.encode(&self.serialized))
    }

    fn write_error(&self, source: io::Error) -> RunError {
        RunError::WriteLog { path: self.path.clone(), source }
    }
}
