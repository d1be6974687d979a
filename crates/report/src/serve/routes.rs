//! Routes of the server. docs/serve.md describes each response.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use store::{Store, StoreError, is_id};
use tower_http::compression::{CompressionLayer, CompressionLevel};

use super::fleet::{AskFleet, Fleet};
use super::guard::{self, Guard};
use super::metrics::Metrics;
use super::page::{Page, PageError};
use super::report_cache::ReportCache;
use super::response::{Document, ErrorResponse, HTML, JSON};
use super::watch::Watch;

/// The served page and data.
pub(crate) struct Site {
    page: Document,
    policy: HeaderValue,
    cache: Arc<ReportCache>,
    watch: Arc<Watch>,
    metrics: Metrics,
    fleet: Option<Fleet>,
}

impl Site {
    pub(crate) fn new(store: Store, fleet: Option<AskFleet>) -> Result<Self, PageError> {
        let page = Page::new(crate::html::PAGE)?;
        let policy = HeaderValue::try_from(&page.policy)
            .map_err(|_| PageError::new("its content security policy is not plain text"))?;
        let cache = Arc::new(ReportCache::new(store));
        let watch = Arc::new(Watch::new(Arc::clone(&cache)));
        let metrics = Metrics::new(Arc::clone(&cache));
        let fleet = fleet.map(Fleet::new);
        Ok(Self { page: Document::new(page.html), policy, cache, watch, metrics, fleet })
    }
}

pub(crate) fn router(site: Arc<Site>, guard: Arc<Guard>) -> Router {
    let policy = site.policy.clone();
    Router::new()
        .route("/", get(page))
        .route("/api/runs", get(runs))
        .route("/api/runs/{id}", get(view))
        .route("/api/runs/{id}/histories", get(histories))
        .route("/api/trials/{id}", get(detail))
        .route("/api/live", get(live))
        .route("/api/fleet", get(fleet))
        .route("/metrics", get(metrics))
        .fallback(not_found)
        .with_state(site)
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(from_fn_with_state(guard, guard::guard))
        .layer(from_fn_with_state(policy, guard::headers))
}

async fn page(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    site.page.response(&headers, HTML)
}

async fn runs(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, ErrorResponse> {
    Ok(site.cache.runs().await?.response(&headers, JSON))
}

async fn view(State(site): State<Arc<Site>>, id: Id, headers: HeaderMap) -> Result<Response, ErrorResponse> {
    let run = valid_id("run", id)?;
    Ok(site.cache.view(run).await?.response(&headers, JSON))
}

async fn histories(
    State(site): State<Arc<Site>>,
    id: Id,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let run = valid_id("run", id)?;
    Ok(site.cache.histories(run).await?.response(&headers, JSON))
}

async fn detail(
    State(site): State<Arc<Site>>,
    id: Id,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let trial = valid_id("trial", id)?;
    Ok(site.cache.detail(trial).await?.response(&headers, JSON))
}

async fn live(State(site): State<Arc<Site>>) -> Result<Response, ErrorResponse> {
    let events = Sse::new(site.watch.listen().await?).keep_alive(KeepAlive::default());
    Ok(([(CACHE_CONTROL, "no-store")], events).into_response())
}

async fn metrics(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, ErrorResponse> {
    site.metrics.response(&headers).await
}

async fn fleet(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, ErrorResponse> {
    match &site.fleet {
        Some(fleet) => fleet.response(&headers).await,
        None => Ok(Document::json(&())?.response(&headers, JSON)),
    }
}

async fn not_found() -> ErrorResponse {
    ErrorResponse::not_found("not found: the page is at /, and docs/serve.md lists the endpoints".to_owned())
}

type Id = Result<Path<String>, PathRejection>;

/// A valid id from a path.
fn valid_id(what: &str, id: Id) -> Result<String, ErrorResponse> {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    match is_id(&id) {
        true => Ok(id),
        false => Err(ErrorResponse::not_found(format!(
            "this is not the id of a {what}: an id is a ULID of 26 characters"
        ))),
    }
}

impl From<StoreError> for ErrorResponse {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } => Self::not_found(error.to_string()),
            _ => Self::failed(error),
        }
    }
}
