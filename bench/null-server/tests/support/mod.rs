//! A null server for the tests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A separate null server, with a directory for its socket.
pub(crate) struct NullServer {
    pub(crate) child: Child,
    pub(crate) directory: TempDir,
    pub(crate) port: u16,
}

impl NullServer {
    pub(crate) fn start(options: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_null-server"))
            .arg("--directory")
            .arg(directory.path())
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let port = line.split_whitespace().last().unwrap().parse().unwrap();
        Self { child, directory, port }
    }

    pub(crate) fn host(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
