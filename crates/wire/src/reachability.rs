//! Errors of a server that can't be reached at present, as opposed to one that rejects the client.

use std::io::{self, ErrorKind};

use crate::{LoginError, ServerError};

/// SQLSTATEs of a server that shuts down, has crashed, or is starting up: admin_shutdown, crash_shutdown,
/// cannot_connect_now.
const NOT_AVAILABLE: [&str; 3] = ["57P01", "57P02", "57P03"];

/// Whether a socket's error means that nothing listens, or that the connection was lost.
pub fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        // A missing socket file.
        ErrorKind::NotFound
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    )
}

impl ServerError {
    /// Whether the server is shutting down or starting up.
    pub fn is_unreachable(&self) -> bool {
        self.code().is_some_and(|code| NOT_AVAILABLE.contains(&code))
    }
}

impl LoginError {
    /// Whether the server is shutting down or starting up, or closes the connection without a reason.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Rejected(error) => error.is_unreachable(),
            Self::Closed => true,
            Self::Retry { cause, .. } => cause.is_unreachable(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnectParams;
    use crate::blocking::Session;

    #[test]
    fn a_server_that_is_starting_or_stopping_can_not_be_reached_and_one_that_rejects_can() {
        let rejected = |body: &[u8]| LoginError::Rejected(Box::new(ServerError::from_body(body)));
        assert!(rejected(b"SFATAL\0C57P03\0Mthe database system is starting up\0").is_unreachable());
        assert!(!rejected(b"SFATAL\0C28P01\0Mpassword authentication failed\0").is_unreachable());
        assert!(LoginError::Closed.is_unreachable());
        assert!(is_unreachable(&io::Error::from(ErrorKind::ConnectionRefused)));
        assert!(!is_unreachable(&io::Error::from(ErrorKind::PermissionDenied)));
    }

    #[test]
    fn a_socket_that_nobody_listens_on_can_not_be_reached() {
        let directory = std::env::temp_dir().join("pgdyno-no-such-directory");
        let params = ConnectParams::new(directory.display().to_string(), 5432, "u", "d", None);
        let error = Session::connect(&params).unwrap_err();
        assert!(error.is_unreachable() && error.io_error().is_some(), "{error}");
    }
}
