//! pgbench's output at the end of a run.

use model::factor::Factor;
use model::record::Latency;
use model::workload::Workload;

use crate::error::PgbenchError;
use crate::import::Draft;

/// Figures in an output, as far as it has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Output {
    version: Option<String>,
    workload: Option<String>,
    /// Names of the scripts, if there are several.
    pub(super) scripts: Vec<String>,
    levels: Vec<(Factor, String)>,
    /// Excludes the time to connect.
    pub(super) tps: f64,
    transactions: Option<u64>,
    failed: Option<u64>,
    mean_ms: Option<f64>,
    stddev_ms: Option<f64>,
    connect_ms: Option<f64>,
    is_throttled: bool,
}

impl Output {
    /// Parses the report of one run; other lines are ignored.
    pub(super) fn read(text: &str) -> Result<Self, PgbenchError> {
        let mut output = Self::default();
        let (mut runs, mut with_connecting, mut without) = (0, None, None);
        for line in text.lines().map(str::trim_end) {
            if let Some((name, version)) = line.split_once(' ')
                && name.ends_with("pgbench")
                && let Some(version) = version.strip_prefix('(')
            {
                output.version = server_version(version);
                continue;
            }
            if let Some(weight) = line.strip_prefix(" - weight: ")
                && let Some(script) = output.scripts.last_mut()
            {
                let weight = weight.split_whitespace().next().unwrap_or_default();
                script.push_str(&format!("@{weight}"));
                continue;
            }
            let Some((name, value)) = line.split_once(": ").or_else(|| line.split_once(" = ")) else {
                continue;
            };
            let first = value.split([' ', '/', '(']).next().unwrap_or_default();
            match name {
                "transaction type" => {
                    runs += 1;
                    output.workload = workload(value);
                }
                "scaling factor" => output.levels.push((Factor::Scale, first.to_owned())),
                "query mode" => output.levels.push((Factor::Protocol, first.to_owned())),
                "number of clients" => output.levels.push((Factor::Clients, first.to_owned())),
                "number of threads" => output.levels.push((Factor::Threads, first.to_owned())),
                "duration" => output.levels.push((Factor::Duration, value.to_owned())),
                "number of transactions actually processed" => output.transactions = first.parse().ok(),
                "number of failed transactions" => output.failed = first.parse().ok(),
                "latency average" => output.mean_ms = figure(first),
                "latency stddev" => output.stddev_ms = figure(first),
                "initial connection time" => output.connect_ms = figure(first),
                "rate limit schedule lag" => output.is_throttled = true,
                "tps" if value.contains("including connections") => with_connecting = figure(first),
                "tps" => without = figure(first),
                _ if name.starts_with("SQL script ") => output.scripts.push(script_name(value)),
                _ => {}
            }
        }
        if runs > 1 {
            return Err(PgbenchError::SeveralRuns(runs));
        }
        let tps = without.or(with_connecting).ok_or(PgbenchError::NoThroughput)?;
        if tps <= 0.0 {
            return Err(PgbenchError::NoTransactions);
        }
        output.tps = tps;
        if output.scripts.len() < 2 {
            output.scripts.clear();
        }
        Ok(output)
    }

    /// Adds its figures to a draft.
    pub(super) fn add_to(&self, draft: &mut Draft) {
        let mut put = |factor: Factor, level: &str| {
            // Levels that pgdyno does not have are unknown.
            let _ = draft.cell.set(factor, level);
        };
        for (factor, level) in &self.levels {
            put(*factor, level);
        }
        if let Some(workload) = &self.workload {
            put(Factor::Workload, workload);
        }
        if !self.scripts.is_empty() {
            put(Factor::Workload, &self.scripts.join("+"));
        }
        if let Some(version) = &self.version {
            put(Factor::Server, version);
        }
        if !self.is_throttled {
            put(Factor::Rate, "max");
        }
        put(Factor::Warmup, "0s");
        draft.server_version.clone_from(&self.version);
        let summary = &mut draft.summary;
        summary.transactions = self.transactions;
        summary.failed = self.failed;
        summary.connect_us = self.connect_ms.map(|ms| (ms * 1e3).round() as u64);
        // The inverse of pgbench's own calculation.
        summary.window_us =
            self.transactions.map(|transactions| (transactions as f64 / self.tps * 1e6).round() as u64);
        let us = |ms: Option<f64>| ms.map(|ms| ms * 1e3);
        let latency =
            Latency { mean_us: us(self.mean_ms), stddev_us: us(self.stddev_ms), ..Latency::default() };
        summary.latency = (latency != Latency::default()).then_some(latency);
    }
}

fn figure(text: &str) -> Option<f64> {
    text.parse().ok().filter(|figure: &f64| figure.is_finite() && *figure >= 0.0)
}

/// Parses `15.14 (Debian 15.14-0+deb12u1))`, or `15.3, server 14.2)` if the server's version differs.
fn server_version(text: &str) -> Option<String> {
    let server = text.split_once("server ").map_or(text, |(_, server)| server);
    let version = server.split([' ', ',', ')']).next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// The workload of a run with one script; up to 9.5, a custom script had no name.
fn workload(text: &str) -> Option<String> {
    match text {
        "Custom query" | "multiple scripts" | "" => None,
        script => Some(script_name(script)),
    }
}

/// Name of a built-in script, or of a file without its directories.
fn script_name(text: &str) -> String {
    let builtin = match text {
        "<builtin: TPC-B (sort of)>" | "TPC-B (sort of)" => Workload::TpcbLike,
        "<builtin: simple update>" | "Update only pgbench_accounts" | "Update only accounts" => {
            Workload::SimpleUpdate
        }
        "<builtin: select only>" | "SELECT only" => Workload::SelectOnly,
        file => return file.rsplit('/').next().unwrap_or(file).to_owned(),
    };
    builtin.name().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_servers_version_takes_precedence_over_the_clients() {
        let version = |text| server_version(text);
        assert_eq!(version("15.14 (Debian 15.14-0+deb12u1))").as_deref(), Some("15.14"));
        assert_eq!(version("15.3, server 14.2)").as_deref(), Some("14.2"));
        assert_eq!(version("15.3 (Debian 15.3-1), server 9.6.24 (Debian))").as_deref(), Some("9.6.24"));
        assert_eq!(version("18beta1, server 18devel)").as_deref(), Some("18devel"));
        assert_eq!(version("PostgreSQL) 9.6.2"), None);
    }

    #[test]
    fn an_invalid_output_is_rejected_with_the_reason() {
        assert!(Output::read("").unwrap_err().to_string().contains("tps = "));
        let two = "transaction type: a\ntps = 1 (x)\ntransaction type: a\ntps = 2 (x)\n";
        assert!(Output::read(two).unwrap_err().to_string().contains("2 runs"));
        assert!(Output::read("tps = 0.0 (x)\n").unwrap_err().to_string().contains("no transaction"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(
            text in "(((transaction type|tps|duration|SQL script 1|latency average| - weight|pgbench)(: | = | \\())?[0-9a-zé<>./@() ]{0,12}\n){0,8}"
        ) {
            if let Ok(output) = Output::read(&text) {
                output.add_to(&mut Draft::new(model::cell::RecordedCell::default(), 1.0));
            }
        }
    }
}
