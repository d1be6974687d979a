//! `pgdyno serve` as a process, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};

use serde_json::Value;

use super::{Bench, TIMEOUT, signal};

/// A running `pgdyno serve`.
pub(crate) struct Server {
    child: Child,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
    /// URL that it printed.
    pub(crate) url: String,
}

impl Server {
    /// Starts it with these arguments.
    pub(crate) fn start(bench: &Bench, args: &[&str]) -> Self {
        let mut command = bench.command(&["serve"]);
        command.args(args).env_remove("PGDYNO_TOKEN").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let port = url.split('/').nth(2).unwrap().rsplit_once(':').unwrap().1.to_owned();
        Self { child, address: format!("127.0.0.1:{port}"), url: url.trim_end().to_owned() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends an HTTP 1.0 request, whose response has no chunks and ends with the connection.
    pub(crate) fn request(&self, path: &str, headers: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n{headers}\r\n", self.address).unwrap();
        BufReader::new(stream)
    }

    /// Status and body of a response.
    pub(crate) fn get(&self, path: &str, headers: &str) -> (u16, String) {
        let mut response = String::new();
        self.request(path, headers).read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Its list of runs.
    pub(crate) fn runs(&self) -> Value {
        let (status, body) = self.get("/api/runs", "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Ends it with a signal.
    pub(crate) fn end(mut self, with: libc::c_int) -> ExitStatus {
        signal(self.child.id() as i32, with);
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
