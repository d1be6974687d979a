//! A log in each of its formats, played on a server of another version: outcomes, order within sessions, and lag.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cluster::{self, Machine};

/// Formats of a log, by their extensions.
const FORMATS: [&str; 3] = ["csv", "json", "log"];

/// Plays the log of the server `recorded`.
pub(crate) fn play(recorded: Machine, version: &str, program: &Path) -> Result<()> {
    let expected = sequences(&recorded.log("recorded"))?;
    let machine = recorded.of_version(version)?;
    let initial = machine.initialize("other")?;
    crate::fill(&initial, program)?;
    initial.stop()?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "format  statements  shapes  failed      reads as recorded     others as recorded  sessions  in order  lag p99 ms  by the driver"
    )?;
    for format in FORMATS {
        let trace = machine.path("app.pgdt");
        let mut read = Command::new(program);
        read.args(["replay", "read", "--format", "json", "--prefix", cluster::PREFIX, "-o"]).arg(&trace);
        let inspection = json(read.arg(machine.log_as("recorded", format)))?;
        let name = format!("played-{format}");
        let cluster = machine.copy("other", &name)?;
        let mut play = Command::new(program);
        play.args(["replay", "play", "--format", "json"]).arg(&trace);
        cluster.connect(&mut play);
        let report = json(&mut play)?;
        cluster.stop()?;
        let played = sequences(&machine.log(&name))?;
        let in_order = expected.iter().filter(|sequence| played.binary_search(sequence).is_ok()).count();
        let [reads, others] = as_recorded(&inspection, &report)?;
        let share =
            |(same, all): (u64, u64)| format!("{same} of {all} ({:.2} %)", 100.0 * same as f64 / all as f64);
        writeln!(
            out,
            "{format:6}  {:>10}  {:>6}  {:>6}  {:>21}  {:>21}  {:>8}  {in_order:>8}  {:>10.3}  {:>13.3}",
            number(&inspection["executions"])?,
            inspection["statements"].as_array().map_or(0, Vec::len),
            inspection["failures"]
                .as_object()
                .map_or(0, |all| all.values().filter_map(Value::as_u64).sum::<u64>()),
            share(reads),
            share(others),
            expected.len(),
            p99_ms(&report["schedule"]["lag"])?,
            p99_ms(&report["schedule"]["driver_lag"])?,
        )?;
        machine.remove(&name)?;
    }
    Ok(())
}

fn json(command: &mut Command) -> Result<Value> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn number(value: &Value) -> Result<u64> {
    value.as_u64().with_context(|| format!("{value} is not a number"))
}

fn p99_ms(figures: &Value) -> Result<f64> {
    Ok(figures["p99_us"].as_f64().with_context(|| format!("there is no p99 in {figures}"))? / 1e3)
}

/// Statements that ended as recorded, of all: of those that read, and of others.
fn as_recorded(inspection: &Value, report: &Value) -> Result<[(u64, u64); 2]> {
    let kind = |text: &Value| usize::from(!text.as_str().unwrap_or_default().starts_with("select"));
    let mut counts = [(0, 0); 2];
    for statement in inspection["statements"].as_array().context("no statements")? {
        let count = number(&statement["calls"])?;
        let (same, all) = &mut counts[kind(&statement["text"])];
        *same += count;
        *all += count;
    }
    for difference in report["differences"].as_array().context("no differences")? {
        counts[kind(&difference["text"])].0 -= number(&difference["count"])?;
    }
    Ok(counts)
}

/// The statements of each session of a log with their parameters, in their order; the sessions sorted.
fn sequences(log: &Path) -> Result<Vec<Vec<String>>> {
    let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let mut sessions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.splitn(5, '|').skip(3);
        let (Some(session), Some(message)) = (fields.next(), fields.next()) else { continue };
        let statements = sessions.entry(session).or_default();
        if let Some(parameters) = message.strip_prefix("DETAIL:  ") {
            // The case of the first letter differs between versions.
            if let (Some(statement), Some(parameters)) = (statements.last_mut(), parameters.get(1..)) {
                statement.push_str(parameters);
            }
        } else if let Some((_, statement)) =
            message.strip_prefix("LOG:  ").and_then(|message| message.split_once(": "))
            && (message.starts_with("LOG:  statement") || message.starts_with("LOG:  execute"))
        {
            statements.push(statement.to_owned());
        }
    }
    let mut sequences: Vec<Vec<String>> =
        sessions.into_values().filter(|statements| !statements.is_empty()).collect();
    sequences.sort();
    Ok(sequences)
}
