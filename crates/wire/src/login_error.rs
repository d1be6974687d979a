//! Errors between a connection and its session.

use crate::ServerError;
use crate::protocol_error::ProtocolError;
use crate::scram::ScramError;
use crate::tls::{Encryption, TlsError};

/// Errors of a handshake. Texts are libpq's, if it has them.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server rejected the connection.
    #[error("{0}")]
    Rejected(Box<ServerError>),
    /// The session does not satisfy `target_session_attrs`: another host's may.
    #[error("{0}")]
    Unsuitable(Unsuitable),
    /// This connection failed, and `sslmode` allows another one to the same address, with
    /// [`Handshake::start_over`](crate::Handshake::start_over).
    #[error("{cause}")]
    Retry {
        /// Encryption to try.
        encryption: Encryption,
        /// The failure.
        cause: Box<LoginError>,
    },
    /// The server closed the connection.
    #[error("server closed the connection unexpectedly")]
    Closed,
    /// The server requests a password, and none is given.
    #[error("the server requires a password for user \"{user}\", and none is given")]
    PasswordMissing {
        /// Role.
        user: String,
    },
    /// An authentication method that is not supported.
    #[error("the server requests {0} authentication, which pgdyno does not support")]
    Unsupported(String),
    /// An authentication method that `require_auth` excludes.
    #[error("authentication method requirement \"{required}\" failed: {method}")]
    AuthNotAllowed {
        /// `require_auth` as it was given.
        required: String,
        /// Method that the server requests.
        method: AuthMethod,
    },
    /// The server could not prove that it knows the password, or violated SCRAM.
    #[error("SCRAM authentication with the server failed: {0}")]
    Scram(#[from] ScramError),
    /// `channel_binding=require`, and the server authenticates without.
    #[error("channel binding required, but server authenticated client without channel binding")]
    NotBound,
    /// `channel_binding=require`, and the server requests a method other than SCRAM.
    #[error("channel binding required but not supported by server's authentication request")]
    BindingNotOffered,
    /// `channel_binding=require`, and the server offers SCRAM only without.
    #[error(
        "channel binding is required, but server did not offer an authentication method that supports channel binding"
    )]
    PlusNotOffered,
    /// `channel_binding=require` without TLS.
    #[error("channel binding required, but SSL not in use")]
    BindingWithoutTls,
    /// `channel_binding=require`, and the signature of the server's certificate does not support it.
    #[error(
        "could not find digest for the signature of the server's certificate: channel binding cannot be used"
    )]
    NoEndPoint,
    /// The server offers channel binding without TLS.
    #[error("server offered SCRAM-SHA-256-PLUS authentication over a non-SSL connection")]
    PlusWithoutTls,
    /// TLS is required, and the server has none.
    #[error("server does not support SSL, but SSL was required")]
    TlsNotSupported,
    /// The server responds to the SSLRequest with an error, which cannot be trusted to be its own.
    #[error("server sent an error response during SSL exchange")]
    ErrorBeforeTls,
    /// Data received before TLS, which would be treated as sent under TLS.
    #[error("received unencrypted data after SSL response")]
    DataBeforeTls,
    /// TLS failed.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server supports only protocols older than `min_protocol_version`.
    #[error(
        "protocol version not supported by server: client uses a newer one, server supports up to {major}.{minor}"
    )]
    ProtocolTooOld {
        /// Major version of the server's newest protocol.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// TLS is requested, and the caller provides no context for it.
    #[error("internal error, please report it: no context for SSL")]
    NoTlsContext,
    /// The caller passes the number of a host that does not exist.
    #[error("internal error, please report it: the connection parameters have no host number {0}")]
    NoSuchHost(usize),
    /// A user other than `requirepeer` runs the server.
    #[error("requirepeer specifies \"{required}\", but actual peer user name is \"{actual}\"")]
    WrongPeer {
        /// `requirepeer`.
        required: String,
        /// The user who runs the server.
        actual: String,
    },
    /// A text that cannot be sent.
    #[error("the {what} contains a zero byte, which PostgreSQL does not allow")]
    ZeroByte {
        /// Name of the text.
        what: &'static str,
    },
    /// Invalid response to the start-up message.
    #[error("the server sent an invalid response to the startup message ({0}): is it PostgreSQL?")]
    Protocol(String),
    /// Invalid response to the query about the session.
    #[error(transparent)]
    SessionQuery(#[from] ProtocolError),
}

/// SQLSTATE of a server that is starting up, shutting down or recovering.
const CANNOT_CONNECT_NOW: &str = "57P03";

impl LoginError {
    /// Returns the text that libpq prints after `connection to server … failed: `; each of several lines but the last
    /// has a line end.
    pub fn libpq_text(&self) -> String {
        match self {
            Self::Rejected(error) => error.libpq_text(None).trim_end().to_owned(),
            Self::PasswordMissing { .. } => "fe_sendauth: no password supplied".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether to try the next host. As in libpq, no other host is tried after one that rejects the login.
    pub fn allows_next_host(&self) -> bool {
        match self {
            Self::Unsuitable(_) => true,
            Self::Rejected(_) => self.is_not_ready(),
            Self::Retry { cause, .. } => cause.allows_next_host(),
            _ => false,
        }
    }

    /// Whether the server is starting up, shutting down or recovering, so that it may accept the same login soon.
    pub fn is_not_ready(&self) -> bool {
        matches!(self, Self::Rejected(error) if error.code() == Some(CANNOT_CONNECT_NOW))
    }
}

/// Reasons why a session is not suitable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
    /// It cannot write.
    #[error("session is read-only")]
    ReadOnly,
    /// It can write.
    #[error("session is not read-only")]
    NotReadOnly,
    /// The server is a standby.
    #[error("server is in hot standby mode")]
    HotStandby,
    /// The server is not a standby.
    #[error("server is not in hot standby mode")]
    NotHotStandby,
    /// The server does not report it.
    #[error("the server does not report whether the session is read-only or the server is a standby")]
    Unknown,
}

/// Method that a server requests, in libpq's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthMethod {
    /// None, or the server ended the exchange early.
    #[error("server did not complete authentication")]
    None,
    /// A password.
    #[error("server requested a cleartext password")]
    Password,
    /// An MD5-hashed password.
    #[error("server requested a hashed password")]
    Md5,
    /// SCRAM.
    #[error("server requested SASL authentication")]
    Sasl,
    /// GSSAPI.
    #[error("server requested GSSAPI authentication")]
    Gss,
    /// SSPI.
    #[error("server requested SSPI authentication")]
    Sspi,
}
