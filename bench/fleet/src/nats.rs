//! A NATS server.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// A server with JetStream on a directory of its own, until it is dropped.
pub(crate) struct Nats {
    _directory: TempDir,
    child: Child,
    port: u16,
    monitor: u16,
}

impl Nats {
    /// Starts it.
    pub(crate) fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let (port, monitor) = (free()?.port(), free()?.port());
        let path = directory.path().join("nats.conf");
        fs::write(
            &path,
            format!(
                "listen: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\nmax_connections: 10000\n\
                 jetstream {{ store_dir: \"{}\" }}\n",
                directory.path().display()
            ),
        )?;
        let child = Command::new("nats-server")
            .arg("-c")
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("nats-server can't be started: is it installed?")?;
        let nats = Self { _directory: directory, child, port, monitor };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(nats);
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("nats-server does not listen")
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Messages that it has received and sent, and the CPU time in seconds that it has used.
    pub(crate) fn counts(&self) -> Result<(u64, f64)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor))?;
        stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (_, body) = text.split_once("\r\n\r\n").context("no answer")?;
        let figures: serde_json::Value = serde_json::from_str(body)?;
        let count = |name: &str| figures[name].as_u64().unwrap_or(0);
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((count("in_msgs") + count("out_msgs"), (ticks(11) + ticks(12)) / 100.0))
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
