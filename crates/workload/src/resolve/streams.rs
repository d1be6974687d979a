//! Workloads whose scripts are run by streams.

use model::spec::{Spanned, Workload as Table};
use model::trace::Trace;
use model::workload::Custom;

use super::TableReader;
use crate::error::WorkloadError;
use crate::streams::{MAX_STREAMS, NAME, Streams};

impl TableReader<'_> {
    /// A workload with the streams of its table.
    pub(super) fn with_streams(
        &self,
        custom: Custom,
        table: &Table,
        given: &Spanned<toml::Value>,
    ) -> Result<Custom, WorkloadError> {
        self.check_keys_of_streams(table)?;
        if let Some((campaign, overrides)) = self.overridden_by {
            campaign.check_keys_of_streams(overrides)?;
        }
        let streams = self.number_of(Some(given), "streams", &custom.parameters)?.unwrap_or(1);
        if streams > MAX_STREAMS {
            return Err(self.wrong(
                given.span(),
                format!("invalid number of streams: {streams}"),
                &format!("expected at most {MAX_STREAMS}"),
            ));
        }
        let drawn = Streams::draw(&custom, streams).map_err(|error| {
            WorkloadError::Script(format!("error: the workload \"{}\": {error}", self.name))
        })?;
        let trace = Trace {
            file: NAME.to_owned(),
            sha256: drawn.sum(),
            speed: Default::default(),
            rate_scale: Default::default(),
            closed: true,
            sessions: None,
            streams: Some(streams),
        };
        Ok(Custom { trace: Some(trace), ..custom })
    }

    /// Refuses keys of clients.
    fn check_keys_of_streams(&self, table: &Table) -> Result<(), WorkloadError> {
        let keys = [
            ("reconnect", table.reconnect.as_ref().map(Spanned::span)),
            ("stagger", table.stagger.as_ref().map(Spanned::span)),
            ("iterations", table.iterations.as_ref().map(Spanned::span)),
            ("spans", table.spans.as_ref().map(Spanned::span)),
            ("background", table.background.as_ref().map(Spanned::span)),
            ("warmup", table.warmup.as_ref().map(Spanned::span)),
            ("phases", table.phases.as_ref().map(Spanned::span)),
        ];
        match keys.into_iter().find_map(|(key, at)| Some((key, at?))) {
            None => Ok(()),
            Some((key, at)) => Err(self.wrong(
                at,
                format!("a workload with streams has no `{key}`"),
                "leave it out: each stream runs all scripts once, one after the other; in the `background` of another workload, \
                 clients run them",
            )),
        }
    }
}
