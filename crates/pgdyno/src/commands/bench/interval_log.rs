//! `--hlog`: the histograms of every interval, in the form of the `latency.hlog` of a bundle (docs/bundle.md). Service
//! times have the tag of the latencies with `:service` behind it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use driver::Record;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use jiff::Timestamp;
use store::hlog;

/// A log that is being written.
pub(super) struct IntervalLog {
    path: PathBuf,
    file: BufWriter<File>,
    scripts: Vec<String>,
    serializer: V2DeflateSerializer,
    serialized: Vec<u8>,
}

impl IntervalLog {
    /// Makes the file, for scripts of these names.
    pub(super) fn create(path: &Path, scripts: Vec<String>) -> anyhow::Result<Self> {
        let file = File::create(path)
            .with_context(|| format!("the interval log {} can't be made", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            scripts,
            serializer: V2DeflateSerializer::new(),
            serialized: Vec::new(),
        })
    }

    /// A load begins. Of several, as in a search, the last one stays.
    pub(super) fn begin(&mut self, started: Timestamp) -> anyhow::Result<()> {
        let again = File::create(&self.path);
        let begun = again.and_then(|file| {
            self.file = BufWriter::new(file);
            self.file.write_all(hlog::header(started).as_bytes())
        });
        self.told(begun)
    }

    /// Writes an interval. It is in the file when this returns.
    pub(super) fn interval(&mut self, record: &Record) -> anyhow::Result<()> {
        let start_us = record.start_ns / 1_000;
        let width_us = record.end_ns / 1_000 - start_us;
        for (number, script) in record.scripts.iter().enumerate() {
            let name = self.scripts.get(number).map_or("?", String::as_str);
            let tag = hlog::tag(name, record.phase);
            let service = script.service.as_ref().map(|service| (format!("{tag}{}", hlog::SERVICE), service));
            for (tag, histogram) in [(tag, &script.latency)].into_iter().chain(service) {
                let payload = self.payload(histogram)?;
                let line = hlog::written(&tag, start_us, width_us, histogram.max(), &payload);
                let written = self.file.write_all(line.as_bytes());
                self.told(written)?;
            }
        }
        let flushed = self.file.flush();
        self.told(flushed)
    }

    fn payload(&mut self, histogram: &Histogram<u64>) -> anyhow::Result<String> {
        self.serialized.clear();
        self.serializer.serialize(histogram, &mut self.serialized).context("a histogram can't be written")?;
        Ok(STANDARD.encode(&self.serialized))
    }

    fn told(&self, result: std::io::Result<()>) -> anyhow::Result<()> {
        result.with_context(|| {
            format!("the interval log {} can't be written; is the disk full?", self.path.display())
        })
    }
}
