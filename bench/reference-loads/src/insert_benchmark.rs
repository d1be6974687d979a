//! The workload `insert-benchmark`, and iibench.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use analysis::metric::Metric;
use anyhow::{Context, Result, ensure};
use clap::Args;
use model::record::TrialRecord;

use crate::iibench::{ADVICE, DATABASE, Iibench, Line, Played};
use crate::reference_server::ReferenceServer;
use crate::table::{Figures, Load};
use crate::{Common, Comparison};

/// Rows of a transaction, of l.i2 and of the others.
const SMALL_BATCH: u32 = 5;
const BATCH: u32 = 50;

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The iibench.py to compare with, of github.com/mdcallag/mytools
    #[arg(long, value_name = "PATH")]
    iibench: PathBuf,
    /// The Python that runs it, which needs psycopg2
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// Rows that each client inserts in l.i0; a third of that in l.i1, a thirtieth in l.i2
    #[arg(long, default_value_t = 600_000, value_parser = clap::value_parser!(u32).range(1500..))]
    rows: u32,
    /// Number of clients: of iibench, processes with a table each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Length of a query phase, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    seconds: u32,
}

/// Reports a Python that can't run iibench, before a server starts.
pub(crate) fn check_python(options: &Options) -> Result<()> {
    let python = options.python.display();
    let status = Command::new(&options.python)
        .args(["-c", "import psycopg2"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {python}"))?;
    ensure!(status.success(), "{python} has no psycopg2: {ADVICE}; --python names another Python");
    ensure!(options.iibench.is_file(), "there is no {}: {ADVICE}", options.iibench.display());
    Ok(())
}

pub(crate) struct InsertBenchmark {
    iibench: Iibench,
    server: ReferenceServer,
    /// Rows of each client in l.i0, l.i1 and l.i2.
    rows: [u32; 3],
    clients: u32,
    seconds: u32,
}

impl InsertBenchmark {
    pub(crate) fn new(options: Options, server: ReferenceServer) -> Self {
        let Options { common: _, iibench: script, python, rows, clients, seconds } = options;
        // Whole transactions.
        let rows = [1, 3, 30].map(|part| rows / part / BATCH * BATCH);
        Self { iibench: Iibench { python, script, clients }, server, rows, clients, seconds }
    }

    /// Rows that all clients insert in one of l.i0, l.i1 and l.i2.
    fn rows_of_all(&self, number: usize) -> f64 {
        f64::from(self.rows[number]) * f64::from(self.clients)
    }

    fn play(&mut self, args: &[&str]) -> Result<Played> {
        self.iibench.play(&mut self.server, args)
    }

    /// One of l.i0, l.i1 and l.i2 of iibench.
    fn play_rows(&mut self, number: usize, batch: u32, args: &[&str]) -> Result<Figures> {
        let rows = format!("--max_rows={}", self.rows[number]);
        let batch = format!("--rows_per_commit={batch}");
        let played = self.play(&[&[rows.as_str(), &batch], args].concat())?;
        let rows = self.rows_of_all(number);
        Ok(Figures {
            rate: rows / played.elapsed_s,
            client_us: Some(played.client_us / rows),
            server_us: Some(played.server_us / rows),
        })
    }

    /// One of l.i0, l.i1 and l.i2 of pgdyno.
    fn measured_rows(&self, record: &TrialRecord, number: usize, batch: u32) -> Result<Figures> {
        let name = self.loads()[[0, 2, 3][number]].name;
        let phase = phase(record, name)?;
        let cpu_us = phase.trial.summary.as_ref().and_then(|summary| summary.driver_cpu_us);
        Ok(Figures {
            rate: Metric::Rows.value(&phase).with_context(|| format!("{name} of pgdyno has no rate"))?,
            client_us: cpu_us.map(|us| us as f64 / self.rows_of_all(number)),
            server_us: Metric::CpuPerTransaction.value(&phase).map(|us| us / f64::from(batch)),
        })
    }
}

impl Comparison for InsertBenchmark {
    fn loads(&self) -> &'static [Load] {
        &[
            Load { name: "l.i0", unit: "rows/s" },
            Load { name: "l.x", unit: "seconds" },
            Load { name: "l.i1", unit: "rows/s" },
            Load { name: "l.i2", unit: "rows/s" },
            Load { name: "qr100", unit: "queries/s" },
        ]
    }

    fn reference(&mut self) -> Result<Vec<Figures>> {
        self.server.create(DATABASE, "template0")?;
        let li0 = self.play_rows(0, BATCH, &["--setup", "--num_secondary_indexes=0"])?;
        // It inserts a transaction before.
        let indexed = self.play(&["--max_rows=50", "--rows_per_commit=50", "--secondary_at_end"])?;
        let lx = Figures {
            rate: indexing_s(&indexed.outputs).context("iibench did not report that it created indexes")?,
            client_us: None,
            server_us: Some(indexed.server_us),
        };
        let li1 = self.play_rows(1, BATCH, &["--delete_per_insert"])?;
        let li2 = self.play_rows(2, SMALL_BATCH, &["--delete_per_insert"])?;
        self.server.execute(DATABASE, "VACUUM ANALYZE")?;
        let seconds = format!("--max_seconds={}", self.seconds);
        let queried = self.play(&[
            "--max_rows=1000000",
            "--rows_per_commit=50",
            "--delete_per_insert",
            "--query_threads=1",
            "--inserts_per_second=100",
            &seconds,
        ])?;
        let reports: Option<Vec<Report>> = queried.outputs.iter().map(|lines| Report::last(lines)).collect();
        let reports = reports.context("iibench did not report its queries")?;
        let queries: f64 = reports.iter().map(|report| report.queries).sum();
        let qr100 = Figures {
            rate: reports.iter().map(|report| report.queries_per_second).sum(),
            client_us: Some(queried.client_us / queries),
            server_us: Some(queried.server_us / queries),
        };
        Ok(vec![li0, lx, li1, li2, qr100])
    }

    fn pgdyno(&mut self) -> Result<Vec<Figures>> {
        let Self { rows: [rows, i1_rows, i2_rows], clients, seconds, .. } = self;
        let record = self.server.campaign(&format!(
            "workload = [\"ib\"]\nclients = [{clients}]\nprotocol = [\"simple\"]\nduration = [\"{seconds}s\"]\n\
             [workloads.ib]\nbuiltin = \"insert-benchmark\"\n\
             parameters = {{ rows = {rows}, i1_rows = {i1_rows}, i2_rows = {i2_rows} }}\n"
        ))?;
        let indexing = phase(&record, "l.x")?;
        let latency = indexing.trial.summary.as_ref().and_then(|summary| summary.latency.as_ref()?.mean_us);
        let queries = phase(&record, "qr100")?;
        let summary = queries.trial.summary.as_ref().context("qr100 of pgdyno has no results")?;
        let transactions = queries.trial.accounting.driver_transactions.map(|count| count as f64);
        Ok(vec![
            self.measured_rows(&record, 0, BATCH)?,
            Figures {
                rate: latency.context("l.x of pgdyno has no latency")? / 1e6,
                client_us: None,
                server_us: Metric::CpuPerTransaction.value(&indexing),
            },
            self.measured_rows(&record, 1, BATCH)?,
            self.measured_rows(&record, 2, SMALL_BATCH)?,
            Figures {
                rate: summary.tps,
                client_us: summary.driver_cpu_us.zip(transactions).map(|(us, count)| us as f64 / count),
                server_us: Metric::CpuPerTransaction.value(&queries),
            },
        ])
    }
}

fn phase(record: &TrialRecord, name: &str) -> Result<TrialRecord> {
    record.of_phase(name).with_context(|| format!("the trial of pgdyno has no phase {name}"))
}

/// Seconds in which all processes created their indexes: until the line that says so, from the one before it.
fn indexing_s(outputs: &[Vec<Line>]) -> Option<f64> {
    let mut span = None;
    for lines in outputs {
        let created = lines.iter().position(|line| line.text.starts_with("Created secondary indexes"))?;
        let (from, to) = (lines.get(created.checked_sub(1)?)?.at, lines[created].at);
        span = Some(span.map_or((from, to), |(first, last)| (from.min(first), to.max(last))));
    }
    let (from, to) = span?;
    Some(to.duration_since(from).as_secs_f64())
}

/// A line of iibench about the time since its start, each second.
struct Report {
    queries_per_second: f64,
    queries: f64,
}

impl Report {
    /// Its columns are i_sec, t_sec, i_ips, t_ips, i_dps, t_dps, i_qps, t_qps, max_i, max_d, max_q, t_ins, t_del, t_query and
    /// three of retries.
    fn last(lines: &[Line]) -> Option<Self> {
        let is_report = |line: &&Line| line.text.starts_with(|first: char| first.is_ascii_digit());
        let report = lines.iter().rev().find(is_report)?;
        let figures: Vec<f64> = report.text.split('\t').map_while(|figure| figure.parse().ok()).collect();
        Some(Self { queries_per_second: *figures.get(7)?, queries: *figures.get(13)? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_last_report_and_the_time_of_indexing_are_read() {
        let start = Instant::now();
        let line =
            |at_s: u64, text: &str| Line { at: start + Duration::from_secs(at_s), text: text.to_owned() };
        let first = vec![
            line(
                1,
                "i_sec\tt_sec\ti_ips\tt_ips\ti_dps\tt_dps\ti_qps\tt_qps\tmax_i\tmax_d\tmax_q\tt_ins\tt_del\tt_query",
            ),
            line(2, "1.0\t1.0\t100\t100\t100\t100\t2990\t2990\t900\t800\t700\t100\t100\t2991\t0\t0\t0"),
            line(3, "1.0\t2.0\t100\t100\t100\t100\t3010\t3000\t900\t800\t700\t200\t200\t6002\t0\t0\t0"),
            line(4, "Insert rt:         1"),
            line(6, "Created secondary indexes in 2.0 seconds"),
        ];
        let report = Report::last(&first).unwrap();
        assert_eq!((report.queries_per_second, report.queries), (3000.0, 6002.0));
        let second =
            vec![line(5, "Insert rt:         1"), line(8, "Created secondary indexes in 3.0 seconds")];
        assert_eq!(indexing_s(&[first, second]), Some(4.0));
        assert_eq!(indexing_s(&[vec![line(1, "Done")]]), None);
    }
}
