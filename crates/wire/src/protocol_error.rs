//! Violations of the protocol by a server.

/// Bytes that are not a valid response; the connection is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// An unknown type of message, or one that is invalid here.
    #[error("the server sent a message of kind {:?}, which has no place in an answer: is it PostgreSQL?", *.0 as char)]
    UnexpectedMessage(u8),
    /// A length that is invalid for the type of message.
    #[error("the server sent a message of kind {:?} with the impossible length {length}: is it PostgreSQL?", *.kind as char)]
    ImpossibleLength {
        /// Type of the message.
        kind: u8,
        /// Its length field.
        length: u32,
    },
    /// A message whose fields do not fill its length.
    #[error("the server sent a message of kind {:?} whose parts do not make a whole: is it PostgreSQL?", *.0 as char)]
    Malformed(u8),
    /// ReadyForQuery with an unknown status.
    #[error("the server says that it is ready in the unknown state {:?}: is it PostgreSQL?", *.0 as char)]
    UnknownStatus(u8),
    /// A COPY was started.
    #[error(
        "the statement begins a COPY to or from the client, which scripts cannot do: take it out of the script"
    )]
    Copy,
}
