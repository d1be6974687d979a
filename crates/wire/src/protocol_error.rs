//! Violations of the protocol by a server.

/// Bytes that are not a valid response; the connection is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// An unknown type of message, or one that is invalid here.
    #[error("the server sent an unexpected message of type {:?}: is it PostgreSQL?", *.0 as char)]
    UnexpectedMessage(u8),
    /// A length that is invalid for the type of message.
    #[error("the server sent a message of type {:?} with the invalid length {length}: is it PostgreSQL?", *.kind as char)]
    InvalidLength {
        /// Type of the message.
        kind: u8,
        /// Its length field.
        length: u32,
    },
    /// A message whose fields do not fill its length.
    #[error("the server sent a malformed message of type {:?}: is it PostgreSQL?", *.0 as char)]
    Malformed(u8),
    /// ReadyForQuery with an unknown status.
    #[error("the server sent ReadyForQuery with the unknown status {:?}: is it PostgreSQL?", *.0 as char)]
    UnknownStatus(u8),
    /// A COPY was started.
    #[error("the statement starts a COPY to or from the client, which scripts do not support: remove it")]
    Copy,
}
