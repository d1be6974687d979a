//! Why a connection did not become a session.

use crate::ServerError;
use crate::protocol_error::ProtocolError;
use crate::scram::ScramError;
use crate::tls::{Encryption, TlsError};

/// Why there is no session. Texts are libpq's, where it has them.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server says no.
    #[error("{0}")]
    Refused(Box<ServerError>),
    /// The session is not one of those that `target_session_attrs` asks for: another host may have one.
    #[error("{0}")]
    Unsuitable(Unsuitable),
    /// This connection came to nothing, and `sslmode` allows for another one to the same address, with
    /// [`Handshake::start_over`](crate::Handshake::start_over).
    #[error("{because}")]
    Retry {
        /// What to try.
        with: Encryption,
        /// What has failed.
        because: Box<LoginError>,
    },
    /// The server closed the connection.
    #[error("server closed the connection unexpectedly")]
    Closed,
    /// A password is asked for, and there is none.
    #[error("the server asks for a password of role \"{user}\", and none is given")]
    PasswordMissing {
        /// Role.
        user: String,
    },
    /// A way of authentication that is not supported.
    #[error("the server asks for {0} authentication, which pgdyno does not support")]
    Unsupported(String),
    /// A way of authentication that `require_auth` excludes.
    #[error("authentication method requirement \"{required}\" failed: {method}")]
    AuthNotAllowed {
        /// `require_auth` as it was given.
        required: String,
        /// What the server wants.
        method: AuthMethod,
    },
    /// The server could not prove that it knows the password, or broke the rules of SCRAM.
    #[error("SCRAM authentication with the server failed: {0}")]
    Scram(#[from] ScramError),
    /// `channel_binding=require`, and the server lets in without.
    #[error("channel binding required, but server authenticated client without channel binding")]
    NotBound,
    /// `channel_binding=require`, and the server asks for something else than SCRAM.
    #[error("channel binding required but not supported by server's authentication request")]
    BindingNotOffered,
    /// `channel_binding=require`, and the server has SCRAM only without.
    #[error(
        "channel binding is required, but server did not offer an authentication method that supports channel binding"
    )]
    PlusNotOffered,
    /// `channel_binding=require` without TLS.
    #[error("channel binding required, but SSL not in use")]
    BindingWithoutTls,
    /// `channel_binding=require`, and the server's certificate has a signature that cannot be bound to.
    #[error(
        "could not find digest for the signature of the server's certificate: channel binding cannot be used"
    )]
    NoEndPoint,
    /// Channel binding is offered where there is no channel to bind to.
    #[error("server offered SCRAM-SHA-256-PLUS authentication over a non-SSL connection")]
    PlusWithoutTls,
    /// TLS is asked for, and the server has none.
    #[error("server does not support SSL, but SSL was required")]
    TlsNotSupported,
    /// The server answers to the request for TLS by an error, which cannot be trusted to be its own.
    #[error("server sent an error response during SSL exchange")]
    ErrorBeforeTls,
    /// Something came before TLS that would be taken for the server's words under TLS.
    #[error("received unencrypted data after SSL response")]
    DataBeforeTls,
    /// TLS failed.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server speaks an older protocol than `min_protocol_version`.
    #[error(
        "protocol version not supported by server: client uses a newer one, server supports up to {major}.{minor}"
    )]
    ProtocolTooOld {
        /// Newest protocol that the server speaks.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// TLS is asked for, and the caller brings no context for it.
    #[error("internal error, please report it: no context for SSL")]
    NoTlsContext,
    /// The caller names a host that the parameters do not have.
    #[error("internal error, please report it: the connection parameters have no host number {0}")]
    NoSuchHost(usize),
    /// Another user than `requirepeer` runs the server.
    #[error("requirepeer specifies \"{required}\", but actual peer user name is \"{actual}\"")]
    WrongPeer {
        /// `requirepeer`.
        required: String,
        /// Who runs the server.
        actual: String,
    },
    /// A text that cannot be sent.
    #[error("the {what} contains a zero byte, which PostgreSQL does not allow")]
    ZeroByte {
        /// Which text.
        what: &'static str,
    },
    /// Bytes that do not belong to a start-up.
    #[error("the server's answer to the start-up message cannot be understood ({0}): is it PostgreSQL?")]
    Protocol(String),
    /// Bytes that do not belong to the answer to a question about the session.
    #[error(transparent)]
    Answer(#[from] ProtocolError),
}

/// SQLSTATE of a server that starts, stops or recovers.
const CANNOT_CONNECT_NOW: &str = "57P03";

impl LoginError {
    /// The text as libpq has it behind `connection to server … failed: `; of several lines each but the last with its
    /// end.
    pub fn libpq_text(&self) -> String {
        match self {
            Self::Refused(error) => error.libpq_text(None).trim_end().to_owned(),
            Self::PasswordMissing { .. } => "fe_sendauth: no password supplied".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether to go on to the next host. As with libpq, hosts are not tried any further when one of them does not let
    /// in.
    pub fn another_host_may_do(&self) -> bool {
        match self {
            Self::Unsuitable(_) => true,
            Self::Refused(error) => error.code() == Some(CANNOT_CONNECT_NOW),
            Self::Retry { because, .. } => because.another_host_may_do(),
            _ => false,
        }
    }
}

/// What a session is that it should not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
    /// It cannot write.
    #[error("session is read-only")]
    ReadOnly,
    /// It can write.
    #[error("session is not read-only")]
    NotReadOnly,
    /// It is of a standby.
    #[error("server is in hot standby mode")]
    HotStandby,
    /// It is not of a standby.
    #[error("server is not in hot standby mode")]
    NotHotStandby,
    /// It does not say.
    #[error("the server does not say whether the session is read-only or the server a standby")]
    Unknown,
}

/// What a server asks for, in libpq's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthMethod {
    /// Nothing, or it lost interest on the way.
    #[error("server did not complete authentication")]
    None,
    /// A password.
    #[error("server requested a cleartext password")]
    Password,
    /// A password's MD5.
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
