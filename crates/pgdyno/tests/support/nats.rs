//! A real NATS server, and agents of a fleet.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{Bench, Running, wait_until};

/// A NATS server with JetStream, which keeps its data when it is killed.
pub(crate) struct Nats {
    directory: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Nats {
    /// A running server; none, and reported as skipped, where there is no program.
    pub(crate) fn start() -> Option<Self> {
        Self::with_configuration(|_| String::new())
    }

    /// The same with lines of configuration, made from its directory.
    pub(crate) fn with_configuration(configuration: impl FnOnce(&Path) -> String) -> Option<Self> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            skip::skip("there is no nats-server");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let more = configuration(directory.path());
        let text = format!(
            "host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: \"{}\" }}\n{more}\n",
            directory.path().join("data").display()
        );
        fs::write(directory.path().join("nats.conf"), text).unwrap();
        let mut nats = Self { directory, port, child: None };
        nats.restart();
        Some(nats)
    }

    /// Its directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again, with the data that it had.
    pub(crate) fn restart(&mut self) {
        let log =
            fs::File::options().create(true).append(true).open(self.directory.path().join("log")).unwrap();
        let child = Command::new("nats-server")
            .arg("-c")
            .arg(self.directory.path().join("nats.conf"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        wait_until("the NATS server listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Publishes a message, as any client can. Source: NATS's client protocol.
    pub(crate) fn publish(&self, subject: &str, payload: &[u8]) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!("CONNECT {{\"verbose\":false}}\r\nPUB {subject} {}\r\n", payload.len());
        stream.write_all(&[head.as_bytes(), payload, b"\r\nPING\r\n"].concat()).unwrap();
        let mut answer = BufReader::new(stream).lines();
        assert!(answer.any(|line| line.unwrap() == "PONG"));
    }

    /// Listens to a subject, as any client can. Source: NATS's client protocol.
    pub(crate) fn subscribe(&self, subject: &str) -> Subscription {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB {subject} 1\r\nPING\r\n").unwrap();
        let mut subscription = Subscription(BufReader::new(stream));
        while subscription.line() != "PONG" {}
        subscription
    }

    /// Subjects that agents take blocks from: of each run and requirement.
    pub(crate) fn queues(&self) -> Vec<String> {
        let consumers = self.directory.path().join("data/jetstream/$G/streams/pgdyno-blocks/obs");
        let names = fs::read_dir(consumers).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| format!("pgdyno.block.{}", name.to_str().unwrap().replace('-', "."))).collect()
    }

    /// Replaces text of its configuration, and starts it again.
    pub(crate) fn reconfigure(&mut self, from: &str, to: &str) {
        self.kill();
        let path = self.directory.path().join("nats.conf");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        self.restart();
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Messages of a subject.
pub(crate) struct Subscription(BufReader<TcpStream>);

impl Subscription {
    /// The payload of the next message.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        loop {
            let line = self.line();
            match line.split(' ').collect::<Vec<&str>>().as_slice() {
                ["PING"] => self.0.get_mut().write_all(b"PONG\r\n").unwrap(),
                ["MSG", .., bytes] => {
                    let mut payload = vec![0; bytes.parse().unwrap()];
                    self.0.read_exact(&mut payload).unwrap();
                    assert_eq!(self.line(), "");
                    return payload;
                }
                _ => {}
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the NATS server ended the connection");
        line.trim_end().to_owned()
    }
}

/// Starts an agent, as on a machine of its own, and waits until it is ready.
pub(crate) fn agent(bench: &Bench, nats: &Nats, name: &str, args: &[&str]) -> Running {
    let mut running = start_agent(bench, nats, name, args);
    running.wait_for("waits for trials");
    running
}

/// Starts an agent.
pub(crate) fn start_agent(bench: &Bench, nats: &Nats, name: &str, args: &[&str]) -> Running {
    let url = nats.url();
    let mut command = bench.command(&["agent", "--name", name, "--nats", &url]);
    // Agents of this test do not wait for each other.
    command.args(args).env("PGDYNO_QUEUE", bench.path().join(name));
    bench.start_command(command)
}
