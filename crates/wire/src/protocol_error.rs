//! Violations of the protocol by a server.

/// Bytes that are no answer to what was sent; the connection is of no further use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A kind of message that does not exist or has no place here.
    #[error("the server sent a message of kind {:?}, which has no place in an answer: is it PostgreSQL?", *.0 as char)]
    UnexpectedMessage(u8),
    /// A length that the kind of message cannot have.
    #[error("the server sent a message of kind {:?} with the impossible length {length}: is it PostgreSQL?", *.kind as char)]
    ImpossibleLength {
        /// Kind of the message.
        kind: u8,
        /// Its length field.
        length: u32,
    },
    /// A message whose parts do not fill its length.
    #[error("the server sent a message of kind {:?} whose parts do not make a whole: is it PostgreSQL?", *.0 as char)]
    Malformed(u8),
    /// ReadyForQuery with a state that does not exist.
    #[error("the server says that it is ready in the unknown state {:?}: is it PostgreSQL?", *.0 as char)]
    UnknownStatus(u8),
    /// COPY was begun.
    #[error(
        "the statement begins a COPY to or from the client, which scripts cannot do: take it out of the script"
    )]
    Copy,
}
