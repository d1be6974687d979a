//! A server's side of a connection, for tests of what a real server does not do.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use tempfile::TempDir;

/// The response to a statement.
pub(crate) const ANSWER: &[u8] = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

/// Listens on a Unix socket in a directory of its own, with PostgreSQL's default port.
pub(crate) fn listen() -> (TempDir, UnixListener) {
    let directory = TempDir::new().unwrap();
    let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
    (directory, listener)
}

/// Receives what a client sends first.
pub(crate) fn read_startup(client: &mut UnixStream) {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut startup).unwrap();
}

/// Accepts a client.
pub(crate) fn log_in(client: &mut UnixStream) {
    read_startup(client);
    client.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
}
