//! What `pgdyno replay` and pgreplay make of the same log of a server: the statements that each executes, by the log of the
//! server that it plays against, and the CPU time of both programs. With `--to`, what pgdyno makes of each format of the log
//! on a server of another version.

mod cluster;
mod upgrade;
mod usage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Parser;
use cluster::{Cluster, Machine};
use processes::sibling_program;
use usage::{Usage, measured};

/// Tables of the load.
const TABLES: u32 = 10;
/// Rows of each.
const ROWS: u32 = 10_000;

/// Compare `pgdyno replay` with pgreplay on the log of a real server
#[derive(Parser)]
struct Options {
    /// Version of the server
    #[arg(long, default_value = "15")]
    server: String,
    /// Sessions of the recorded load
    #[arg(long, default_value_t = 20)]
    clients: u32,
    /// Transactions per second of the recorded load, of five to six statements each
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Length of the recorded load in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Play the log in each of its formats on this version instead, by pgdyno alone: outcomes, order and lag
    #[arg(long)]
    to: Option<String>,
    /// Rounds of playing: each program once in each
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The program [default: the one next to this]
    #[arg(long)]
    pgdyno: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let program = match &options.pgdyno {
        Some(program) => program.clone(),
        None => sibling_program("pgdyno")?,
    };
    let machine = Machine::new(&options.server)?;
    let initial = machine.initialize("initial")?;
    fill(&initial, &program)?;
    initial.stop()?;

    let recorded = machine.copy("initial", "recorded")?;
    load(&recorded, &program, &options)?;
    recorded.stop()?;
    if let Some(version) = &options.to {
        return upgrade::play(machine, version, &program);
    }
    let log = machine.log("recorded");
    let expected = Executed::count(&log)?;
    let mut out = io::stdout().lock();
    writeln!(out, "recorded  {expected}")?;
    writeln!(out, "program   round  executed            of recorded  failed  CPU s  elapsed s")?;
    for round in 1..=options.rounds {
        for (number, tool) in [Tool::Pgdyno, Tool::Pgreplay].into_iter().enumerate() {
            let name = format!("played-{round}-{number}");
            let cluster = machine.copy("initial", &name)?;
            let usage = tool.play(&program, &log, &cluster, &machine)?;
            cluster.stop()?;
            let executed = Executed::count(&machine.log(&name))?;
            writeln!(
                out,
                "{:9} {round:5}  {:>8}  {:>16.3} %  {:>6}  {:>5.2}  {:>9.1}",
                tool.name(),
                executed.statements,
                expected.part_of(&executed) * 100.0,
                executed.failures.values().sum::<u64>(),
                usage.cpu_s,
                usage.elapsed_s
            )?;
            machine.remove(&name)?;
        }
    }
    Ok(())
}

/// A program that replays logs.
#[derive(Clone, Copy)]
enum Tool {
    Pgdyno,
    Pgreplay,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Pgdyno => "pgdyno",
            Self::Pgreplay => "pgreplay",
        }
    }

    /// Reads and plays a log. pgreplay does both in one process; pgdyno's reading is counted, too.
    fn play(self, program: &Path, log: &Path, cluster: &Cluster, machine: &Machine) -> Result<Usage> {
        match self {
            Self::Pgdyno => {
                let trace = machine.path("app.pgdt");
                let mut read = Command::new(program);
                read.args(["replay", "read", "--prefix", cluster::PREFIX, "-o"]).arg(&trace).arg(log);
                let mut play = Command::new(program);
                play.args(["replay", "play"]).arg(&trace);
                cluster.connect(&mut play);
                Ok(measured(&mut read)? + measured(&mut play)?)
            }
            Self::Pgreplay => {
                let mut play = Command::new("pgreplay");
                play.arg("-h").arg(cluster.sockets()).args(["-p", cluster::PORT, "-W", ""]).arg(log);
                measured(&mut play).context("is pgreplay installed? It is a Debian package")
            }
        }
    }
}

/// What a server executed, by its log.
#[derive(Debug, Default)]
struct Executed {
    statements: u64,
    /// Executions by text.
    texts: BTreeMap<String, u64>,
    /// Errors by text.
    failures: BTreeMap<String, u64>,
}

impl Executed {
    fn count(log: &Path) -> Result<Self> {
        let mut executed = Self::default();
        let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
        for line in text.lines() {
            if let Some((_, error)) = line.split_once("|ERROR:  ") {
                *executed.failures.entry(error.to_owned()).or_default() += 1;
            }
            let Some((_, message)) = line.split_once("|LOG:  ") else { continue };
            let statement = match message.split_once(": ") {
                Some(("statement", statement)) => statement,
                // With the name of the prepared statement, which programs choose as they like.
                Some((execute, statement)) if execute.starts_with("execute ") => statement,
                _ => continue,
            };
            executed.statements += 1;
            *executed.texts.entry(statement.to_owned()).or_default() += 1;
        }
        Ok(executed)
    }

    /// The share of these executions that `other` has, too.
    fn part_of(&self, other: &Self) -> f64 {
        let common =
            |(text, count): (&String, &u64)| (*count).min(other.texts.get(text).copied().unwrap_or(0));
        self.texts.iter().map(common).sum::<u64>() as f64 / self.statements.max(1) as f64
    }
}

impl std::fmt::Display for Executed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let failures = self.failures.values().sum::<u64>();
        write!(f, "{} statements, {} texts, {failures} failures", self.statements, self.texts.len())
    }
}

fn fill(cluster: &Cluster, program: &Path) -> Result<()> {
    let mut setup = String::new();
    for table in 0..TABLES {
        let _ = writeln!(setup, "create table t{table} (id int primary key, a int, b int, note text);");
        let _ = writeln!(
            setup,
            "insert into t{table} select n, n % 100, 0, repeat('x', 50) from generate_series(1, {ROWS}) n;"
        );
        let _ = writeln!(setup, "create index t{table}_a on t{table} (a);");
    }
    for table in 0..TABLES {
        let _ =
            writeln!(setup, "create table entries{table} (id int, at timestamptz default now(), note text);");
        let _ = writeln!(setup, "create index entries{table}_id on entries{table} (id);");
    }
    setup.push_str("create table once (id int primary key);\ninsert into once values (1);\n");
    cluster.bench(program, &setup, &["-c", "1", "-t", "1", "-M", "simple"])
}

/// Half of the load by the simple protocol, half by prepared statements, one after the other.
fn load(cluster: &Cluster, program: &Path, options: &Options) -> Result<()> {
    let (clients, rate) = (options.clients.to_string(), format!("{}/s", options.rate));
    let duration = format!("{}s", options.seconds.div_ceil(2));
    let mut script =
        format!("\\set id random(1, {ROWS})\n\\set a random(1, 100)\n\\set t random(0, {})\n", TABLES - 1);
    for table in 0..TABLES {
        let _ = writeln!(script, "\\if :t = {table}");
        let _ = writeln!(script, "select note from t{table} where id = :id;");
        let _ = writeln!(script, "select count(*), max(b) from t{table} where a = :a;");
        script.push_str("begin;\n");
        let _ = writeln!(script, "update t{table} set b = b + 1 where id = :id;");
        let _ = writeln!(script, "insert into entries{table} (id, note) values (:id, 'it''s {table}');");
        script.push_str("commit;\n");
        let _ = writeln!(script, "delete from entries{table} where id = :id - 1;");
        if table == 0 {
            script.push_str("insert into once values (1);\n");
        }
        script.push_str("\\endif\n");
    }
    for protocol in ["simple", "prepared"] {
        let args =
            ["-c", &clients, "--rate", &rate, "-T", &duration, "-M", protocol, "--on-error", "*=count"];
        cluster.bench(program, &script, &args)?;
    }
    Ok(())
}
