//! The real pgbench accepts the null server as a server. If no pgbench is installed, the tests report that they are
//! skipped.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};

use support::NullServer;

impl NullServer {
    /// Stops it by closing its standard input.
    fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        assert_eq!(fs::read_dir(self.directory.path()).unwrap().count(), 0, "its socket is gone");
    }
}

fn pgbench(host: &str, port: u16, arguments: &[&str]) -> Option<Output> {
    let port = port.to_string();
    let address = ["-h", host, "-p", &port, "-U", "postgres", "postgres"];
    let output = Command::new("pgbench").args(arguments).args(address).output();
    if output.is_err() {
        eprintln!("skipped: no pgbench is installed");
    }
    output.ok()
}

fn assert_processed(output: &Output, transactions: u32) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("scaling factor: 10\n"), "{stdout}");
    let processed = format!("number of transactions actually processed: {transactions}/{transactions}\n");
    assert!(stdout.contains(&processed), "{stdout}{stderr}");
}

#[test]
fn every_protocol_and_transport() {
    let server = NullServer::start(&[]);
    for protocol in ["simple", "extended", "prepared"] {
        for host in [server.host(), "127.0.0.1"] {
            let load = ["-n", "-S", "-M", protocol, "-c", "8", "-t", "25"];
            let Some(output) = pgbench(host, server.port, &load) else { return };
            assert_processed(&output, 200);
        }
    }
    server.stop();
}

#[test]
fn a_thousand_clients() {
    let server = NullServer::start(&[]);
    let load = ["-n", "-S", "-M", "prepared", "-c", "1000", "-t", "2"];
    let Some(output) = pgbench(server.host(), server.port, &load) else { return };
    assert_processed(&output, 2000);
    server.stop();
}

#[test]
fn fragmented_responses_are_the_same() {
    let server = NullServer::start(&["--piece", "7"]);
    let load = ["-n", "-S", "-M", "prepared", "-c", "4", "-t", "2"];
    if let Some(output) = pgbench(server.host(), server.port, &load) {
        assert_processed(&output, 8);
    }
    let whole = NullServer::start(&[]);
    assert_eq!(
        response_bytes(server.directory.path(), server.port),
        response_bytes(whole.directory.path(), whole.port)
    );
    server.stop();
    whole.stop();
}

#[test]
fn a_client_that_does_not_read_does_not_block_others() {
    let server = NullServer::start(&[]);
    // More responses than sockets buffer.
    let mut stalled = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stalled.set_nonblocking(true).unwrap();
    stalled.write_all(START).unwrap();
    let describe = b"D\0\0\0\x06S\0".repeat(1000);
    while stalled.write(&describe).is_ok() {}
    assert!(response_bytes(server.directory.path(), server.port).ends_with(b"Z\0\0\0\x05I"));
    // A client that reads again gets its responses.
    stalled.set_nonblocking(false).unwrap();
    stalled.shutdown(Shutdown::Write).unwrap();
    let mut read = Vec::new();
    stalled.read_to_end(&mut read).unwrap();
    assert!(read.len() > 1 << 20);
    server.stop();
}

/// A start-up message of protocol 3.0.
const START: &[u8] = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";

/// Everything that is sent to a client that connects, queries and terminates.
fn response_bytes(directory: &Path, port: u16) -> Vec<u8> {
    let mut stream = UnixStream::connect(directory.join(format!(".s.PGSQL.{port}"))).unwrap();
    stream.write_all(START).unwrap();
    stream.write_all(b"Q\0\0\0\x0bselect\0S\0\0\0\x04X\0\0\0\x04").unwrap();
    let mut read = Vec::new();
    stream.read_to_end(&mut read).unwrap();
    read
}
