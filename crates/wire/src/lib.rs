//! The PostgreSQL frontend/backend protocol 3 as state machines without I/O, and [`blocking`]: a session over them.
//!
//! Input arrives in slices, split anywhere, and output goes to a caller's `Vec<u8>`; sockets and time are the caller's.
//! In the order of a connection's life: [`ConnectParams`] (where and how) → [`Handshake`] (TLS by [`TlsContext`],
//! authentication, check of the session) → [`encode`] (messages of the client) → [`Reader`] (responses of the server) →
//! [`encode::terminate`]; in between, [`Tls`] encrypts and decrypts the bytes, if used. [`ServerError`] is an error or
//! notice of the server. Only the construction of parameters and TLS contexts reads files, and only [`blocking`] has
//! sockets: it is for a single session that waits for each response.
//!
//! Source: PostgreSQL manual, part VII, "Frontend/Backend Protocol".

pub mod blocking;
mod commits;
pub mod encode;
mod handshake;
mod login;
mod login_error;
mod params;
mod password;
mod protocol_error;
mod quote;
mod reachability;
mod reader;
mod results;
mod scram;
mod server_error;
mod session;
mod tls;

pub use handshake::{Established, Handshake};
pub use login_error::{AuthMethod, LoginError, Unsuitable};
pub use params::{
    ChannelBinding, ConnectParams, Given, Host, Keepalives, ParamError, ProtocolVersion, RequireAuth,
    Resolved, RootCert, SslMode, SslNegotiation, SslParams, TargetSessionAttrs, TlsVersion, Transport,
    shuffle, without_secrets,
};
pub use password::{NoRandomNumbers, random_password, stored_password};
pub use protocol_error::ProtocolError;
pub use quote::{quote_identifier, quote_literal};
pub use reachability::is_unreachable;
pub use reader::{CopyKind, Event, Reader, Response, TransactionStatus};
pub use results::{Columns, KeptRows, ResultKind, ResultSet, Values};
pub use scram::ScramError;
pub use server_error::ServerError;
pub use session::SessionInfo;
pub use tls::{Encryption, Tls, TlsContext, TlsError, TlsFlow};
