//! pgdyno as pgbench, and PostgreSQL's own pgbench if one is installed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::workload::Transport;
use server::Server;
use tempfile::TempDir;
use wire::blocking::Session;

/// The pgbench to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pgbench {
    /// pgdyno, as this major's pgbench.
    Ours(u32),
    /// PostgreSQL's own.
    Oracle,
}

/// Major version of PostgreSQL's pgbench, or why there is none to compare with.
pub(crate) fn oracle() -> Result<u32, String> {
    let output = Command::new("pgbench").arg("--version").output();
    let output = output.map_err(|error| format!("there is no pgbench here to compare with: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.strip_prefix("pgbench (PostgreSQL) ").and_then(|version| version.split('.').next());
    let major = version.and_then(|major| major.trim().parse().ok());
    major
        .filter(|major| [15, 17, 18].contains(major))
        .ok_or_else(|| format!("pgdyno does not emulate the pgbench that is here: {}", text.trim()))
}

impl Pgbench {
    pub(crate) fn command(self) -> Command {
        let mut command = match self {
            Self::Ours(major) => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
                command.arg("pgbench").env("PGDYNO_PGBENCH_COMPAT", major.to_string());
                command
            }
            Self::Oracle => Command::new("pgbench"),
        };
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") && name != "PGDYNO_PGBENCH_COMPAT" {
                command.env_remove(name);
            }
        }
        command.env_remove("POSIXLY_CORRECT").env("LC_ALL", "C");
        command
    }
}

/// A server with a database of its own, and a directory for scripts and logs.
pub(crate) struct Bench {
    server: Server,
    pub(crate) directory: TempDir,
}

impl Bench {
    /// Starts a server that has the standard tables at scale 1 and logs every statement.
    pub(crate) fn new(major: &str) -> Self {
        let cache = Cache::open().unwrap();
        let installation = server::install(&cache, major, &NoProgress).unwrap();
        let template = server::template(&cache, &installation, &[], &1.into(), None, &NoProgress).unwrap();
        let settings = [
            ("log_statement", "all"),
            ("log_line_prefix", "<%c> "),
            ("fsync", "off"),
            ("autovacuum", "off"),
            ("deadlock_timeout", "10ms"),
        ];
        let settings: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let server = template.clone_cluster(&cache, &NoProgress).unwrap().start(&settings).unwrap();
        Self { server, directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, pgbench: Pgbench) -> Command {
        let Endpoint::Unix { directory, port } = self.server.endpoint(Transport::Unix) else {
            panic!("not a socket")
        };
        let mut command = pgbench.command();
        command
            .current_dir(self.directory.path())
            .env("PGHOST", directory)
            .env("PGPORT", port.to_string())
            .env("PGUSER", server::USER)
            .env("PGDATABASE", server::DATABASE);
        command
    }

    /// Runs a pgbench to its end.
    pub(crate) fn run(&self, pgbench: Pgbench, args: &[&str]) -> RunOutput {
        RunOutput::new(self.command(pgbench).args(args).output().unwrap())
    }

    pub(crate) fn client(&self) -> Session {
        self.connect(server::DATABASE)
    }

    fn connect(&self, database: &str) -> Session {
        self.server.session(database).unwrap()
    }

    /// Writes a script into the directory.
    pub(crate) fn script(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    /// Reads and deletes the files whose names begin with `prefix`. Returns their texts by the rest of their names,
    /// after the process id.
    pub(crate) fn take_logs(&self, prefix: &str) -> BTreeMap<String, String> {
        let mut logs = BTreeMap::new();
        for entry in std::fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(OsStr::to_str).unwrap().to_owned();
            if let Some(rest) = name.strip_prefix(prefix) {
                let thread = rest.trim_start_matches('.').trim_start_matches(|c: char| c.is_ascii_digit());
                logs.insert(thread.to_owned(), take(&path));
            }
        }
        logs
    }

    /// Statements, with their parameters, that the server logged after the first `since` bytes of its log, for each
    /// session whose client ran scripts.
    pub(crate) fn statements(&self, since: usize) -> Vec<Vec<String>> {
        let prepares = |statement: &String| statement.contains("count(*) from pgbench_branches");
        let mut sessions = self.all_statements(since);
        sessions.retain(|statements| !statements.iter().any(prepares));
        sessions
    }

    /// As [`Self::statements`], for all sessions.
    pub(crate) fn all_statements(&self, since: usize) -> Vec<Vec<String>> {
        let log = self.server.log().unwrap();
        let mut sessions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // Continuation lines are indented.
        for entry in log[since..].replace("\n\t", "\\n").lines() {
            if let Some((session, text)) = entry.strip_prefix('<').and_then(|entry| entry.split_once("> "))
                && let Some(statement) = statement(text)
            {
                sessions.entry(session.to_owned()).or_default().push(statement);
            }
        }
        sessions.into_values().collect()
    }

    pub(crate) fn log_length(&self) -> usize {
        self.server.log().unwrap().len()
    }
}

fn take(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    text
}

/// Statement of a log entry, or its parameters, without the name of the prepared statement.
fn statement(text: &str) -> Option<String> {
    let (level, rest) = text.split_once(":  ")?;
    match level {
        "LOG" => {
            let (kind, sql) = rest.split_once(": ")?;
            (kind == "statement" || kind.starts_with("execute ")).then(|| sql.to_owned())
        }
        // The case of the first letter differs between versions.
        "DETAIL" => rest.get(1..).filter(|rest| rest.starts_with("arameters: ")).map(str::to_owned),
        _ => None,
    }
}

/// Exit code and output of a program.
pub(crate) struct RunOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl RunOutput {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Exit code and output, for messages of tests.
    pub(crate) fn all(&self) -> String {
        format!("exit code {:?}\n{}\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Form of a text: `#` in place of each number's integer part and of each digit after its point.
pub(crate) fn form(text: &str) -> String {
    let mut form = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if !char.is_ascii_digit() {
            form.push(char);
            continue;
        }
        while chars.next_if(char::is_ascii_digit).is_some() {}
        form.push('#');
        let mut ahead = chars.clone();
        if ahead.next() == Some('.') && ahead.next().is_some_and(|char| char.is_ascii_digit()) {
            chars.next();
            form.push('.');
            while chars.next_if(char::is_ascii_digit).is_some() {
                form.push('#');
            }
        }
    }
    form
}
