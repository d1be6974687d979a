//! `pgdyno store show`: a trial as text.

use std::fmt::Write as _;

use model::load_hosts::LoadHost;
use model::record::{Environment, PhaseOutcome, Trial, TrialRecord};
use model::statistics::Percentile;
use plaintext::table::{Format, Table};

/// Names and values under a heading.
struct Section {
    name: &'static str,
    fields: Vec<(String, String)>,
}

/// Sections with their names and values, for a terminal.
pub fn text(record: &TrialRecord) -> String {
    let mut text = String::new();
    for section in sections(record) {
        let mut table = Table::new(["", ""]);
        table.rows =
            section.fields.into_iter().map(|(name, value)| vec![format!("  {name}"), value]).collect();
        let rows = table.render(Format::Table);
        // Without the row of empty heads.
        let _ = writeln!(text, "{}\n{}", section.name, rows.split_once('\n').map_or("", |(_, rows)| rows));
    }
    if let Some(chart) =
        analysis::spans::spans(record).map(|spans| crate::gantt(&spans)).filter(|chart| !chart.is_empty())
    {
        let _ = writeln!(text, "Transactions one by one\n{chart}");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The sections as a table of section, name and value.
pub fn table(record: &TrialRecord) -> Table {
    let mut table = Table::new(["section", "name", "value"]);
    for section in sections(record) {
        for (name, value) in section.fields {
            table.push(vec![section.name.to_owned(), name, value]);
        }
    }
    table
}

fn sections(record: &TrialRecord) -> Vec<Section> {
    let trial = &record.trial;
    let mut sections = vec![
        about(record),
        validity(trial),
        load(trial),
        phases(trial),
        steadiness(trial),
        latency(trial),
        accounting(trial),
        load_hosts(trial),
        profile(trial),
    ];
    sections.push(machine(&record.environment));
    sections.push(settings(record));
    sections.push(events(record));
    sections.retain(|section| !section.fields.is_empty());
    sections
}

impl Section {
    fn new(name: &'static str) -> Self {
        Self { name, fields: Vec::new() }
    }

    fn push(&mut self, name: &str, value: impl ToString) {
        self.fields.push((name.to_owned(), value.to_string()));
    }

    /// Adds a value if it is known.
    fn push_known(&mut self, name: &str, value: &Option<impl ToString>) {
        if let Some(value) = value {
            self.push(name, value.to_string());
        }
    }
}

fn about(record: &TrialRecord) -> Section {
    let trial = &record.trial;
    let mut section = Section::new("Trial");
    section.push("id", &trial.id);
    section.push("campaign", format!("{} (run {})", trial.run.campaign, trial.run.id));
    section.push("cell", &trial.cell);
    section.push("repeat", format!("{}, attempt {}", trial.repeat, trial.attempt));
    section.push("position in the run", trial.position);
    section.push_known("agent", &trial.agent);
    section.push_known("started", &trial.started);
    section.push_known("ended", &trial.ended);
    section.push_known("server version", &trial.server_version);
    section.push_known("server banner", &trial.server_banner);
    section.push_known("database size", &database_size(record));
    let raw_read = trial.raw_read.as_ref().map(|read| {
        let rate = read.mb_s().map(|rate| format!(", {rate:.1} MB/s")).unwrap_or_default();
        format!("{}: {} bytes in {:.3} s{rate}", read.relation, read.bytes, read.elapsed_us as f64 / 1e6)
    });
    section.push_known("raw read", &raw_read);
    section.push("pgdyno version", &trial.run.pgdyno_version);
    section.push_known("seed", &trial.run.seed);
    if !trial.run.tags.is_empty() {
        section.push("tags", trial.run.tags.join(", "));
    }
    if let Some(imported) = &trial.imported {
        section.push("imported", format!("{} ({})", imported.at, imported.format));
        for file in &imported.files {
            let line = imported.line.map(|line| format!(", line {line}")).unwrap_or_default();
            section.push("from", format!("{}{line} (SHA-256 {})", file.name, file.sha256));
        }
    }
    section
}

/// `15728640 bytes, 0.1% of memory, 11.7% of shared_buffers`, as far as these are known.
fn database_size(record: &TrialRecord) -> Option<String> {
    let bytes = record.trial.database_bytes?;
    let share = |total: Option<u64>, what: &str| {
        let total = total.filter(|total| *total > 0)?;
        Some(format!("{:.1}% of {what}", bytes as f64 / total as f64 * 100.0))
    };
    let shared_buffers = || {
        let setting = record.settings.iter().find(|setting| setting.name == "shared_buffers")?;
        setting.value.parse::<u64>().ok()?.checked_mul(bytes_of_unit(setting.unit.as_deref()?)?)
    };
    let parts = [
        Some(format!("{bytes} bytes")),
        share(record.environment.memory_bytes, "memory"),
        share(shared_buffers(), "shared_buffers"),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Bytes of a unit such as `8kB`, which depends on how the server was built.
fn bytes_of_unit(unit: &str) -> Option<u64> {
    match unit.strip_suffix("kB")? {
        "" => Some(1024),
        count => count.parse::<u64>().ok()?.checked_mul(1024),
    }
}

fn validity(trial: &Trial) -> Section {
    let mut section = Section::new("Validity");
    section.push("status", trial.validity.status.as_str());
    for finding in &trial.validity.findings {
        section.push(&finding.gate, format!("{}: {}", finding.status.as_str(), finding.sentence()));
    }
    section
}

fn load(trial: &Trial) -> Section {
    let mut section = Section::new("Load");
    let Some(summary) = &trial.summary else { return section };
    section.push("transactions per second", format!("{:.1}", summary.tps));
    let seconds = |us: u64| format!("{:.3} s", us as f64 / 1e6);
    let connecting = summary.connect_us.map(|us| format!("{:.1} ms", us as f64 / 1e3));
    let busy = summary.driver_busy_max.map(|share| format!("{:.1} %", share * 100.0));
    let lag = summary.driver_lag_max_us.map(|us| format!("{us:.1} µs"));
    section.push_known("transactions", &summary.transactions);
    section.push_known("window", &summary.window_us.map(seconds));
    section.push_known("failed, whole load", &summary.failed);
    for background in &summary.background {
        let us = |us: Option<f64>| us.map_or("unknown".to_owned(), |us| format!("{:.3} ms", us / 1e3));
        let latency = background.latency.as_ref().map_or("no latency".to_owned(), |latency| {
            format!(
                "mean {}, p99 {}, longest {}",
                us(latency.mean_us),
                us(latency.p99_us),
                us(latency.max_us)
            )
        });
        section.push(
            &format!("background: {}", background.workload),
            format!(
                "{} transactions, {:.1}/s, {} failed; {latency}",
                background.transactions, background.tps, background.failed
            ),
        );
    }
    for (metric, figure) in &trial.figures {
        section.push(metric, figure.to_string());
    }
    section.push_known("connecting took", &connecting);
    section.push_known("driver CPU, whole load", &summary.driver_cpu_us.map(seconds));
    section.push_known("driver busy, at most", &busy);
    section.push_known("driver lag, at most", &lag);
    section
}

/// The phases that are not judged, a line each.
fn phases(trial: &Trial) -> Section {
    let mut section = Section::new("Other phases");
    for PhaseOutcome { name, summary, validity, .. } in &trial.phases {
        let status = validity.status.as_str();
        let result = summary.as_ref().map_or("no load".to_owned(), |summary| {
            let transactions =
                summary.transactions.map(|count| format!("{count} transactions, ")).unwrap_or_default();
            format!("{transactions}{:.1}/s", summary.tps)
        });
        section.push(name, format!("{result}; {status}"));
    }
    section
}

/// Statistics of the run alone. A missing figure has its reason.
fn steadiness(trial: &Trial) -> Section {
    let mut section = Section::new("Within this run, with 95% confidence (other runs may differ by more)");
    let Some(of) = trial.summary.as_ref().and_then(|summary| summary.statistics.as_ref()) else {
        return section;
    };
    let seconds = |us: u64| format!("{} s", us as f64 / 1e6);
    let why = |name: &str| of.missing.get(name).map_or("–".to_owned(), |why| format!("– ({why})"));
    let interval = of.tps_interval.map(|(low, high)| {
        let effective = of.effective_seconds.unwrap_or_default();
        format!("{low:.1} to {high:.1} ({} seconds are worth {effective:.0})", of.seconds)
    });
    section.push("transactions per second", interval.unwrap_or_else(|| why("tps_interval")));
    let drift = || format!("a drift of {:+.1} %", of.drift_share.unwrap_or_default() * 100.0);
    section.push(
        "throughput",
        match of.stationary {
            Some(true) => format!("stationary ({})", drift()),
            Some(false) => {
                format!("NON-STATIONARY ({}, p = {:.2e})", drift(), of.trend_p.unwrap_or_default())
            }
            None => why("stationary"),
        },
    );
    let cut = of.warmup_cut_us.map(|us| match trial.cell.warmup.known() {
        Some(warmup) => format!("{}; {} were left out", seconds(us), seconds(warmup.us())),
        None => seconds(us),
    });
    section.push("MSER-5 would leave out", cut.unwrap_or_else(|| why("warmup_cut_us")));
    section.push(
        "stalls",
        match &of.stalls {
            None => why("stalls"),
            Some(stalls) => {
                let all: Vec<String> = stalls
                    .iter()
                    .map(|stall| {
                        let (length, start) = (seconds(stall.length_us), seconds(stall.start_us));
                        format!("{length} at {start} (baseline: {:.0}/s)", stall.baseline_tps)
                    })
                    .collect();
                if all.is_empty() { "none".to_owned() } else { all.join(", ") }
            }
        },
    );
    for percentile in &of.percentiles {
        let name = Percentile::name(percentile.share);
        let interval = percentile
            .interval_us
            .map(|(low, high)| format!("{:.3} to {:.3} ms", low / 1e3, high / 1e3))
            .unwrap_or_else(|| match of.missing.contains_key(&name) {
                true => why(&name),
                false => why("percentiles.interval_us"),
            });
        section.push(&format!("latency, {name}"), interval);
    }
    section
}

fn latency(trial: &Trial) -> Section {
    let mut section = Section::new("Latency");
    let Some(latency) = trial.summary.as_ref().and_then(|summary| summary.latency.as_ref()) else {
        return section;
    };
    for (name, us) in [
        ("mean", latency.mean_us),
        ("standard deviation", latency.stddev_us),
        ("smallest", latency.min_us),
        ("50 %", latency.p50_us),
        ("90 %", latency.p90_us),
        ("95 %", latency.p95_us),
        ("99 %", latency.p99_us),
        ("99.9 %", latency.p999_us),
        ("largest", latency.max_us),
    ] {
        section.push_known(name, &us.map(|us| format!("{:.3} ms", us / 1e3)));
    }
    section
}

fn accounting(trial: &Trial) -> Section {
    let mut section = Section::new("Transactions as both sides counted them, whole load");
    section.push_known("driver saw succeed", &trial.accounting.driver_transactions);
    section.push_known("in commits", &trial.accounting.driver_commits);
    section.push_known("other commits of pgdyno", &trial.accounting.other_commits);
    section.push_known("server counted", &trial.accounting.server_commits);
    section.push_known("not explained", &trial.accounting.surplus());
    section
}

/// A line for each host that the load came from.
fn load_hosts(trial: &Trial) -> Section {
    let mut section = Section::new("Load hosts");
    for host in &trial.load_hosts {
        section.push(&host.name, load_host(host));
    }
    section
}

fn load_host(host: &LoadHost) -> String {
    let ms = |us: f64| format!("{:.3} ms", us / 1e3);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let parts = [
        Some(format!("{} clients, {} transactions in the window", host.clients, host.transactions)),
        host.offset_us.map(|us| {
            let bound = host.bound_us.map_or("unknown".to_owned(), |us| ms(us as f64));
            format!("clock {:+.3} ms ± {bound}", us as f64 / 1e3)
        }),
        host.late_us.map(|us| format!("began {} after the agreed instant", ms(us as f64))),
        host.busy
            .zip(host.busy_max)
            .map(|(busy, max)| format!("busy {}, at most {}", percent(busy), percent(max))),
        host.lag_us
            .zip(host.lag_max_us)
            .map(|(lag, max)| format!("lag {lag:.1} µs a transaction, at most {max:.1} µs a response")),
        host.cpu_us.map(|us| format!("CPU {:.3} s", us as f64 / 1e6)),
        host.lost.as_ref().map(|why| format!("lost: {why}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// How the profile was taken. `pgdyno profile` shows its samples.
fn profile(trial: &Trial) -> Section {
    let mut section = Section::new("Profile");
    let Some(taken) = &trial.profile else { return section };
    let length_us = (taken.to_us - taken.from_us) as f64;
    let (from, length) = (taken.from_us as f64 / 1e6, length_us / 1e6);
    section.push("samples", taken.samples);
    section.push("taken", format!("{length:.1} s long, {from:.1} s after the load's start"));
    section.push("how", analysis::profile::description(taken, taken.lost));
    let cpu = taken.perf_cpu_us.map(|us| format!("{:.2} % of a processor", us as f64 / length_us * 100.0));
    section.push("perf", format!("version {}", taken.perf_version));
    section.push_known("perf's own CPU while it sampled", &cpu);
    section.push_known("off CPU", &analysis::profile::off_cpu_description(taken));
    section
}

/// Groups that are in the JSON only: hundreds of lines.
const LONG_GROUPS: [&str; 4] = ["available_extensions.", "limits.", "mount.", "sysctl."];

fn machine(environment: &Environment) -> Section {
    let mut section = Section::new("Machine");
    section.push_known("host", &environment.hostname);
    for (name, value) in environment.flatten() {
        if !LONG_GROUPS.iter().any(|group| name.starts_with(group)) {
            section.push(&name, value);
        }
    }
    section.push_known("memory_available_bytes", &environment.memory_available_bytes);
    section.push_known("swap_used_bytes", &environment.swap_used_bytes);
    let load = environment.load_average_1m_centi.map(|centi| format!("{:.2}", f64::from(centi) / 100.0));
    section.push_known("load average, 1 min", &load);
    section
}

fn settings(record: &TrialRecord) -> Section {
    let mut section = Section::new("Settings that are not at their default");
    for setting in record.settings.iter().filter(|setting| setting.source != "default") {
        let unit = setting.unit.as_ref().map(|unit| format!(" × {unit}")).unwrap_or_default();
        section.push(&setting.name, format!("{}{unit} ({})", setting.value, setting.source));
    }
    section
}

fn events(record: &TrialRecord) -> Section {
    let mut section = Section::new("Events");
    for event in &record.events {
        section.push(&event.at.to_string(), format!("{}: {}", event.kind, event.message.replace('\n', " ")));
    }
    section
}
