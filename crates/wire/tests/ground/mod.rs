//! Environment of a client: a home directory, and a server by socket and by TCP that records requests.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use wire::{ConnectParams, Given, Handshake, Resolved, Transport};

/// Names and values, of flags or of the environment.
pub(crate) type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Time limit for psql to connect or to fail.
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory with sockets, a home directory, and a local port with a server that records requests.
pub(crate) struct Ground {
    directory: tempfile::TempDir,
    tcp_port: u16,
    /// None for a client that sent no request.
    met: mpsc::Receiver<Option<Met>>,
}

/// Request of a client that wants to connect.
#[derive(Debug, PartialEq)]
pub(crate) struct Met {
    pub(crate) transport: Transport,
    pub(crate) startup: String,
    pub(crate) password: Option<String>,
}

impl Ground {
    /// An environment with these files, each a name and a content.
    pub(crate) fn with(files: Pairs<'_>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("home")).unwrap();
        let (sender, met) = mpsc::channel();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp_port = tcp.local_addr().unwrap().port();
        let unix = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let to_tcp = sender.clone();
        thread::spawn(move || {
            tcp.incoming().for_each(|stream| meet(stream.unwrap(), Transport::Tcp, &to_tcp))
        });
        thread::spawn(move || {
            unix.incoming().for_each(|stream| meet(stream.unwrap(), Transport::Unix, &sender))
        });
        let ground = Self { directory, tcp_port, met };
        files.iter().for_each(|(name, content)| ground.write(name, content));
        ground
    }

    /// Substitutes the directory and the port in a text.
    pub(crate) fn fill(&self, text: &str) -> String {
        let path = self.directory.path().to_str().unwrap();
        let encoded = path.replace('/', "%2F");
        text.replace("{encoded}", &encoded)
            .replace("{dir}", path)
            .replace("{port}", &self.tcp_port.to_string())
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, self.fill(content)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }

    fn environment(&self, environment: Pairs<'_>) -> BTreeMap<String, String> {
        let base = [("HOME", "{dir}/home"), ("PGSSLMODE", "disable"), ("PGUSER", "someone")];
        let all = base.iter().chain(environment);
        all.map(|(name, value)| ((*name).to_owned(), self.fill(value))).collect()
    }

    /// The request that our client would send.
    pub(crate) fn ours(&self, flags: Pairs<'_>, environment: Pairs<'_>) -> Result<Met, String> {
        let environment = self.environment(environment);
        let mut given: Given = flags.iter().map(|(keyword, value)| (*keyword, self.fill(value))).collect();
        given.set("fallback_application_name", "psql");
        let Resolved { params, warnings } =
            ConnectParams::resolve(&given, &|name| environment.get(name).cloned())
                .map_err(|error| error.to_string())?;
        assert_eq!(warnings, [""; 0]);
        let mut out = Vec::new();
        let host = &params.hosts[0];
        Handshake::start(&params, 0, host.transport(), None, &mut out).unwrap();
        match host.transport() {
            Transport::Tcp => assert_eq!(host.port, self.tcp_port),
            Transport::Unix => assert_eq!(host.socket_path().unwrap(), self.fill("{dir}/.s.PGSQL.5432")),
        }
        let startup = String::from_utf8(out.split_off(8)).unwrap();
        Ok(Met { transport: host.transport(), startup, password: host.password.clone() })
    }

    /// The request that psql sends.
    pub(crate) fn theirs(
        &self,
        psql: &Path,
        flags: Pairs<'_>,
        environment: Pairs<'_>,
    ) -> Result<Met, String> {
        let mut command = Command::new(psql);
        command
            .args(["-X", "-w", "-c", ""])
            .env_clear()
            .envs(self.environment(environment))
            .stdin(Stdio::null());
        for (keyword, value) in flags {
            let flag = match *keyword {
                "host" => "-h",
                "port" => "-p",
                "user" => "-U",
                "dbname" => "-d",
                other => panic!("psql has no flag for {other}"),
            };
            command.arg(flag).arg(self.fill(value));
        }
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let connected = stderr.contains("connection to server") || stderr.contains("password");
        let met = if connected { self.met.recv_timeout(PATIENCE).ok().flatten() } else { None };
        met.ok_or_else(|| stderr.trim_end().trim_start_matches("psql: error: ").to_owned())
    }
}

/// Serves a client up to its password.
fn meet(mut stream: impl Read + Write, transport: Transport, met: &mpsc::Sender<Option<Met>>) {
    let mut length = [0; 4];
    if stream.read_exact(&mut length).is_err() {
        met.send(None).unwrap();
        return;
    }
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup).unwrap();
    stream.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
    let mut answer = Vec::new();
    let mut head = [0; 5];
    let mut password = None;
    if stream.read_exact(&mut head).is_ok() {
        answer.resize(u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4, 0);
        stream.read_exact(&mut answer).unwrap();
        answer.pop();
        password = Some(String::from_utf8(answer).unwrap());
    }
    let startup = String::from_utf8(startup.split_off(4)).unwrap();
    met.send(Some(Met { transport, startup, password })).unwrap();
}

/// A psql that is not Debian's wrapper, which sets variables of its own.
pub(crate) fn psql() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let in_path = std::env::split_paths(&path);
    let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let all = in_path.chain(packaged.map(|version| version.path().join("bin")));
    let is_wrapper =
        |program: &Path| fs::canonicalize(program).is_ok_and(|real| real.ends_with("pg_wrapper"));
    all.map(|directory| directory.join("psql")).find(|program| program.is_file() && !is_wrapper(program))
}
