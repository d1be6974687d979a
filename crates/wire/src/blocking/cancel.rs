//! Requests to cancel a running statement.
//!
//! Source: PostgreSQL manual, "Message Flow", "Canceling Requests in Progress".

use super::attempt::{self, FailedAttempt, Place};
use crate::{ConnectParams, Encryption, SessionInfo, TlsContext};

/// Cancels the running statement of one session, from any thread. The request has a connection of its own, to the same
/// address and encrypted as the session is.
pub struct Canceller {
    pub(super) params: ConnectParams,
    pub(super) place: Place,
    pub(super) context: Option<TlsContext>,
    pub(super) encryption: Encryption,
    pub(super) info: SessionInfo,
}

impl Canceller {
    /// Asks the server to cancel the running statement; the response to the statement shows whether it did. A session
    /// without a running statement ignores the request.
    ///
    /// # Errors
    ///
    /// If the server can't be reached.
    pub fn cancel(&self) -> Result<(), FailedAttempt> {
        let Self { params, place, context, encryption, info } = self;
        attempt::cancel(params, place, context.as_ref(), *encryption, info)
    }
}
