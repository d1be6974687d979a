//! `/metrics`: the running campaigns, for Prometheus. Each request reads what is new in their live files; nothing is read
//! between requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use tokio::sync::Mutex;

use super::report_cache::ReportCache;
use super::response::ErrorResponse;
use crate::monitoring::{LiveRun, Syntax, running};

/// The runs in progress, as far as earlier requests read them.
pub(crate) struct Metrics {
    cache: Arc<ReportCache>,
    /// One request at a time: it takes milliseconds.
    runs: Arc<Mutex<BTreeMap<String, LiveRun>>>,
}

impl Metrics {
    pub(crate) fn new(cache: Arc<ReportCache>) -> Self {
        Self { cache, runs: Arc::default() }
    }

    /// The document, in the format that the client prefers. It does not wait for computations, which may take longer than
    /// a scrape.
    pub(crate) async fn response(&self, headers: &HeaderMap) -> Result<Response, ErrorResponse> {
        let syntax = accepted(headers);
        let (cache, mut runs) = (Arc::clone(&self.cache), Arc::clone(&self.runs).lock_owned().await);
        let read = tokio::task::spawn_blocking(move || {
            update(&cache, &mut runs);
            running(syntax, runs.values(), Timestamp::now())
        });
        let text = read.await.map_err(ErrorResponse::failed)?;
        let headers = [(CONTENT_TYPE, syntax.content_type()), (CACHE_CONTROL, "no-store"), (VARY, "Accept")];
        Ok((headers, text).into_response())
    }
}

/// Reads what is new, and forgets the runs that are over.
fn update(cache: &ReportCache, runs: &mut BTreeMap<String, LiveRun>) {
    for id in cache.store().running() {
        if !runs.contains_key(&id)
            && let Ok(reader) = cache.store().open_live(&id)
        {
            runs.insert(id.clone(), LiveRun::new(id, reader));
        }
    }
    runs.retain(|_, run| run.update());
}

/// OpenMetrics if the client asks for this version at least as much as for text, else text, which every client can read.
///
/// Source: RFC 9110, section 12.5.1.
fn accepted(headers: &HeaderMap) -> Syntax {
    let (mut openmetrics, mut text) = (0_f32, 0_f32);
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut version) = (1_f32, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.to_ascii_lowercase().as_str() {
                "q" => quality = value.parse().unwrap_or(0.0),
                "version" => version = Some(value.trim_matches('"')),
                _ => {}
            }
        }
        match (media_type.as_str(), version) {
            ("application/openmetrics-text", None | Some("1.0.0")) => openmetrics = quality.max(openmetrics),
            ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => text = quality.max(text),
            _ => {}
        }
    }
    if openmetrics > 0.0 && openmetrics >= text { Syntax::OpenMetrics } else { Syntax::Prometheus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_those_who_prefer_it() {
        let syntax = |accept: &str| {
            let headers = [(ACCEPT, accept.parse().unwrap())].into_iter().collect();
            accepted(&headers)
        };
        for accept in [
            "application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0",
            "Application/OpenMetrics-Text;Version=\"1.0.0\",*/*",
            // Prometheus 2 and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ] {
            assert_eq!(syntax(accept), Syntax::OpenMetrics, "{accept}");
        }
        for accept in [
            "*/*",
            "",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily",
            "text/plain;version=0.0.4",
            "text/plain,application/openmetrics-text;q=0.5",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;version=9.0.0",
        ] {
            assert_eq!(syntax(accept), Syntax::Prometheus, "{accept}");
        }
        assert_eq!(accepted(&HeaderMap::new()), Syntax::Prometheus);
    }
}
