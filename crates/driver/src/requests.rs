//! The runner's requests to the driver.

use std::io::{BufRead, Lines};

use model::message::Request;

use crate::error::LoadError;

/// The next request; an error if it is none, or if the runner has exited.
pub(crate) fn next_request(requests: &mut Lines<impl BufRead>) -> Result<Request, LoadError> {
    match requests.next() {
        Some(Ok(line)) => serde_json::from_str(&line).map_err(|error| LoadError::Request(error.to_string())),
        Some(Err(_)) | None => Err(LoadError::RunnerExited),
    }
}
