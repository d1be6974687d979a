//! Workloads that play a trace.

use ::trace::{SessionFilter, TraceReader};
use model::spec::{Spanned, Workload as Table};
use model::trace::Trace;
use model::workload::Custom;

use super::TableReader;
use crate::error::WorkloadError;
use crate::read::Location;

impl TableReader<'_> {
    /// Reads a table with `trace`.
    pub(super) fn read_trace(&self, table: &Table) -> Result<Custom, WorkloadError> {
        let refused = [
            ("streams", table.streams.as_ref().map(Spanned::span)),
            ("reconnect", table.reconnect.as_ref().map(Spanned::span)),
            ("stagger", table.stagger.as_ref().map(Spanned::span)),
            ("iterations", table.iterations.as_ref().map(Spanned::span)),
            ("spans", table.spans.as_ref().map(Spanned::span)),
            ("background", table.background.as_ref().map(Spanned::span)),
            ("judged", table.judged.as_ref().map(Spanned::span)),
            ("warmup", table.warmup.as_ref().map(Spanned::span)),
        ];
        if let Some((key, at)) = refused.into_iter().find_map(|(key, at)| Some((key, at?))) {
            let help = "expected `speed`, `rate_scale`, `closed`, `sessions`, `dataset`, `setup` and keys of the data set, `writes`, `figure`, \
                        `duration` or `description`";
            return Err(self.wrong(at, format!("a workload that plays a trace has no `{key}`"), help));
        }
        let (Some(file), Location::Directory(directory)) = (&table.trace, self.location) else {
            return Err(self.wrong(self.at.clone(), "there is no trace".to_owned(), "expected `trace`"));
        };
        let read = TraceReader::open(&directory.join(file.get_ref()));
        let read = read.map_err(|error| {
            self.wrong(file.span(), error.to_string(), "expected a trace of `pgdyno replay read`")
        })?;
        if let Some(sessions) = &table.sessions {
            sessions.get_ref().parse::<SessionFilter>().map_err(|error| {
                self.wrong(
                    sessions.span(),
                    error.to_string(),
                    "expected as for `pgdyno replay play --sessions`",
                )
            })?;
        }
        let writes = match &table.writes {
            Some(writes) => *writes.get_ref(),
            None => read.summary().shapes.iter().any(::trace::Shape::writes),
        };
        let without_scripts =
            Table { speed: None, rate_scale: None, closed: None, sessions: None, ..table.clone() };
        let custom = Custom {
            writes,
            trace: Some(Trace {
                file: file.get_ref().clone(),
                sha256: read.sum(),
                speed: table.speed.as_ref().map(|speed| *speed.get_ref()).unwrap_or_default(),
                rate_scale: table.rate_scale.as_ref().map(|scale| *scale.get_ref()).unwrap_or_default(),
                closed: table.closed.as_ref().is_some_and(|closed| *closed.get_ref()),
                sessions: table.sessions.as_ref().map(|sessions| sessions.get_ref().clone()),
                streams: None,
            }),
            ..self.read_scripts(&without_scripts)?
        };
        if writes && custom.dataset.is_none() && custom.setup.is_empty() {
            let message =
                format!("the trace {} writes, but nothing says what data it begins with", file.get_ref());
            return Err(self.wrong(
                file.span(),
                message,
                "name the data as they were when the log began, by `dataset` in a table [workloads.NAME] with this `trace`: each \
                 trial begins with a copy of them; or `writes = false` if it only reads",
            ));
        }
        Ok(custom)
    }
}
