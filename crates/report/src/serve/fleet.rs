//! `/api/fleet`: agents and runs of a fleet. Viewers share an answer for some seconds, as each question goes to all agents.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::response::Response;
use model::fleet::FleetStatus;
use tokio::sync::Mutex;

use super::response::{Document, ErrorResponse, JSON};
use crate::fleet;

/// Asks a fleet what it does; the error is for people.
pub type AskFleet = Box<dyn Fn() -> Result<FleetStatus, String> + Send + Sync>;

/// Time for which an answer is the current one.
const CURRENT: Duration = Duration::from_secs(2);

/// The fleet, and its last answer.
pub(crate) struct Fleet {
    ask: Arc<AskFleet>,
    /// One question at a time.
    answer: Mutex<Option<(Instant, Document)>>,
}

impl Fleet {
    pub(crate) fn new(ask: AskFleet) -> Self {
        Self { ask: Arc::new(ask), answer: Mutex::new(None) }
    }

    /// The response to a request with these headers.
    pub(crate) async fn response(&self, headers: &HeaderMap) -> Result<Response, ErrorResponse> {
        let mut answer = self.answer.lock().await;
        let document = match &*answer {
            Some((at, document)) if at.elapsed() < CURRENT => document.clone(),
            _ => {
                let ask = Arc::clone(&self.ask);
                let asked = tokio::task::spawn_blocking(move || ask()).await;
                let status = asked.map_err(ErrorResponse::failed)?.map_err(ErrorResponse::busy)?;
                let document = Document::json(&fleet::Document::new(&status))?;
                *answer = Some((Instant::now(), document.clone()));
                document
            }
        };
        Ok(document.response(headers, JSON))
    }
}
