//! Responses: JSON with an entity tag, so that a browser receives only what has changed; and errors.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

pub(crate) const JSON: &str = "application/json";
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// A document and its tag.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    body: Bytes,
    tag: HeaderValue,
}

impl Document {
    pub(crate) fn new(body: String) -> Self {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let hash = hasher.finish();
        // Weak: it may be sent compressed or not.
        let tag = HeaderValue::try_from(format!("W/\"{hash:016x}\""));
        Self { body: body.into(), tag: tag.unwrap_or(HeaderValue::from_static("W/\"0\"")) }
    }

    pub(crate) fn json(value: &impl Serialize) -> Result<Self, ErrorResponse> {
        serde_json::to_string(value).map(Self::new).map_err(ErrorResponse::failed)
    }

    /// The response to a request with these headers: the document, or 304 Not Modified.
    pub(crate) fn response(&self, headers: &HeaderMap, content_type: &'static str) -> Response {
        let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known =
            known.flat_map(|tags| tags.split(',')).any(|tag| tag.trim().as_bytes() == self.tag.as_bytes());
        let (status, body) = match is_known {
            true => (StatusCode::NOT_MODIFIED, Body::empty()),
            false => (StatusCode::OK, Body::from(self.body.clone())),
        };
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (ETAG, self.tag.clone()),
            // Cached, but revalidated each time.
            (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        ];
        (status, headers, body).into_response()
    }
}

/// An error response, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
}

impl ErrorResponse {
    pub(crate) fn not_found(error: String) -> Self {
        Self { status: StatusCode::NOT_FOUND, error }
    }

    pub(crate) fn busy(error: String) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, error }
    }

    pub(crate) fn failed(error: impl ToString) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, error: error.to_string() }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.error }).to_string();
        let headers = [(CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")];
        (self.status, headers, body).into_response()
    }
}
