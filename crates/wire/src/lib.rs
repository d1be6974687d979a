//! The PostgreSQL frontend/backend protocol 3.0 as state machines without I/O, over the crate `postgres-protocol`.
//!
//! Bytes come in by slices, split in any way, and go out to a caller's `Vec<u8>`; sockets and time are the caller's.
//! In the order of a connection's life: [`Login`] (start-up and authentication) → [`encode`] (what a client says)
//! → [`Reader`] (what the server answers) → [`encode::terminate`]. [`ServerError`] is the server's own complaint.
//!
//! Source: PostgreSQL manual, part VII, "Frontend/Backend Protocol".

pub mod encode;
mod login;
mod reader;
mod server_error;

pub use login::{Login, LoginError, Session, Startup};
pub use reader::{Answer, ProtocolError, Reader, TransactionStatus};
pub use server_error::ServerError;
