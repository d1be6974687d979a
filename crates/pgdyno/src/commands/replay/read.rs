//! `pgdyno replay read`: a trace from logs.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use host::Progress as _;
use pglog::Prefix;
use plaintext::figures::bytes;
use plaintext::table::Format;
use replay::{Key, Progress, inspect, record};
use report::replay::inspection_text;
use trace::TraceReader;

use super::check_output;
use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json, terminal};
use crate::progress::PreparationProgress;

/// Make a trace from the logs of a server, and show what is in it
///
/// Reads csvlog, jsonlog and stderr logs of PostgreSQL 9.6 to 18, and those of cloud providers, also compressed by gzip or
/// zstd, in any order; `-` is standard input. Needs little memory, no matter how long the logs are. What can't be read, and
/// what logs do not have, is counted, with the place of the first.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Logs of one server
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// The trace to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// log_line_prefix of stderr logs (`show log_line_prefix`); may be repeated if it has changed [default: that of the known
    /// ones which the lines have]
    #[arg(long, value_name = "PREFIX")]
    prefix: Vec<String>,

    /// Replace literals and parameters by others of the same type and length, equal ones by equal ones
    #[arg(long)]
    anonymize: bool,

    /// Secret for --anonymize, at least 16 bytes: the same file gives the same values in other traces [default: a random one]
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    key_file: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArg,
}

impl ReadArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let prefixes = self.prefix.iter().map(|text| prefix(text)).collect::<Result<Vec<_>, Usage>>()?;
        check_output(&self.logs, &self.output)?;
        let progress = PreparationProgress::new();
        let mut report = |now: Progress| {
            let total = (now.total_bytes > 0).then_some(now.total_bytes);
            progress.step("reading logs", now.bytes, total);
        };
        let key = self.key()?;
        let recorded = record(&self.logs, &prefixes, key.as_ref(), &self.output, &mut report)?;
        progress.step("summing up", 0, None);
        let inspection = inspect(&TraceReader::open(&self.output)?)?;
        progress.clear();
        note(&format!("wrote {}, {}\n", self.output.display(), bytes(recorded.trace_bytes)));
        match self.format.get() {
            Format::Json => print_json(&inspection)?,
            format => print(&inspection_text(&inspection, format, terminal()))?,
        }
        Ok(Exit::Ok)
    }

    /// The key of the values that replace others, if any do.
    fn key(&self) -> anyhow::Result<Option<Key>> {
        let key = match &self.key_file {
            _ if !self.anonymize => return Ok(None),
            Some(path) => {
                Key::from_file(path).with_context(|| format!("the key {} can't be used", path.display()))?
            }
            None => Key::random().context("there are no random numbers for a key")?,
        };
        Ok(Some(key))
    }
}

/// A prefix from the command line.
fn prefix(text: &str) -> Result<Prefix, Usage> {
    let refuse = |error| Usage(format!("error: the prefix '{text}' can't be used: {error}"));
    let prefix: Prefix = text.parse().map_err(refuse)?;
    prefix.check().map_err(refuse)?;
    Ok(prefix)
}
