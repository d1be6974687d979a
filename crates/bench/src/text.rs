//! A report as text for people.

use std::fmt::Write as _;

use plaintext::{Format, Table, wrap};

use crate::figures::{bytes, counted, grouped, ms, percent, time};
use crate::find_max::Search;
use crate::report::Report;
use crate::results::{Driver, Latency, Results, Script, Totals};
use crate::threads_probe::{Alternative, ThreadsProbe};

/// Width of errors and warnings, in characters.
const WIDTH: usize = 110;

/// A report as text, with or without colours.
pub fn text(report: &Report, colours: bool) -> String {
    let mut out = String::new();
    let style = Style { colours };
    let results = &report.results;
    out.push_str(&format!("{}\n{}\n", report.server.line(), report.load.line()));
    if let Some(search) = &report.find_max {
        out.push_str(&format!("\n{}", search_text(search, &style)));
    }
    if report.started.is_none() {
        out.push_str("\nThe load never started.\n");
        return out;
    }
    let totals = &results.totals;
    out.push('\n');
    write_field(&mut out, "throughput", &throughput(report, &style));
    if let Some(line) = outcomes(totals) {
        write_field(&mut out, "transactions", &line);
    }
    write_field(&mut out, "received", &received(totals));
    write_field(&mut out, "connections", &connections(report));
    driver(&mut out, &results.driver, u64::from(report.load.clients));
    if results.after_window.transactions > 0
        && let Some(max_us) = results.after_window.max_us
        && totals.latency.as_ref().is_none_or(|latency| max_us > latency.max_us)
    {
        let (count, longest) = (results.after_window.transactions, time(max_us * 1e3));
        let text = format!(
            "{} in flight, the slowest took {longest} and is not among the latencies",
            grouped(count as f64)
        );
        write_field(&mut out, "at the end", &text);
    }
    if totals.latency.is_some() {
        out.push_str(&format!("\n{}", latencies(results)));
    }
    if results.scripts.len() > 1 {
        out.push_str(&format!("\n{}", scripts(&results.scripts)));
    }
    for script in results.scripts.iter().filter(|script| !script.statements.is_empty()) {
        out.push_str(&format!("\n{}", statements(script, results.scripts.len() > 1)));
    }
    if !totals.errors.is_empty() {
        out.push_str(&format!("\n{}", errors(totals)));
    }
    if let Some(probe) = &report.threads_probe {
        out.push_str(&format!("\n{}", probes_text(std::slice::from_ref(probe))));
    }
    for warning in &report.warnings {
        out.push('\n');
        out.push_str(&style.warning(&wrap(&format!("{WARNING} {}", warning.text), WIDTH)));
    }
    out
}

/// Probes of other numbers of threads as a table, and their conclusions.
pub fn probes_text(probes: &[ThreadsProbe]) -> String {
    let mut out = probes_table(probes).render(Format::Table);
    for probe in probes {
        out.push_str(&wrap(&probe.conclusion(), WIDTH));
    }
    out
}

/// Throughput with each number of threads; of each probe the load's own first.
pub fn probes_table(probes: &[ThreadsProbe]) -> Table {
    let mut table =
        Table::new(["#clients", "#threads", "#tps", "#ratio", "#99 % interval"].map(str::to_owned));
    for probe in probes {
        let mut row = |threads: u32, tps, ratio, interval| {
            table.push(vec![probe.clients.to_string(), threads.to_string(), grouped(tps), ratio, interval]);
        };
        row(probe.threads, probe.tps, "1".to_owned(), String::new());
        for Alternative { threads, tps, ratio, low, high } in &probe.alternatives {
            row(*threads, *tps, format!("{ratio:.2}"), format!("{low:.2} to {high:.2}"));
        }
    }
    table
}

/// Prefix of a warning.
const WARNING: &str = "warning:";

/// Emphasis of text.
struct Style {
    colours: bool,
}

impl Style {
    fn strong(&self, text: &str) -> String {
        if self.colours { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Emphasizes the start of a warning.
    fn warning(&self, text: &str) -> String {
        if self.colours {
            text.replacen(WARNING, &format!("\x1b[1;33m{WARNING}\x1b[0m"), 1)
        } else {
            text.to_owned()
        }
    }
}

fn write_field(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "{name:<14}{text}");
}

fn throughput(report: &Report, style: &Style) -> String {
    let totals = &report.results.totals;
    let tps = style.strong(&format!("{} tps", grouped(totals.tps)));
    let warm = match report.load.warmup_us {
        0.0 => String::new(),
        us => format!(" after {} of warm-up", time(us * 1e3)),
    };
    let interrupted = if report.interrupted { ", interrupted" } else { "" };
    let window = time((report.results.window_us * 1e3 / 1e6).round() * 1e6);
    format!("{tps}   {} in {window}{warm}{interrupted}", counted(totals.transactions, "transaction"))
}

/// Transactions that failed, were retried, skipped, late or never started; None without any.
fn outcomes(totals: &Totals) -> Option<String> {
    let ended = (totals.transactions + totals.failed + totals.skipped).max(1) as f64;
    let share = |count: u64| format!("{} ({})", grouped(count as f64), percent(count as f64 / ended));
    let mut parts = Vec::new();
    if totals.failed > 0 {
        parts.push(format!("{} failed", share(totals.failed)));
    }
    if totals.retried > 0 {
        let tries = if totals.retries == 1 { "try" } else { "tries" };
        parts.push(format!(
            "{} retried, {} further {tries}",
            share(totals.retried),
            grouped(totals.retries as f64)
        ));
    }
    if totals.skipped > 0 {
        parts.push(format!("{} skipped, already late", share(totals.skipped)));
    }
    if totals.late > 0 {
        parts.push(format!("{} beyond the latency limit", share(totals.late)));
    }
    if let Some(never @ 1..) = totals.never_begun {
        parts.push(format!("{} never started", grouped(never as f64)));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn received(totals: &Totals) -> String {
    format!("{} rows/s · {}/s", grouped(totals.rows_per_s), bytes(totals.received_bytes_per_s))
}

fn connections(report: &Report) -> String {
    let connecting = &report.results.connecting;
    let mut text = format!("{} in {}", report.load.clients, time(connecting.took_us * 1e3));
    if let (Some(mean_us), Some(max_us)) = (connecting.in_window_mean_us, connecting.in_window_max_us) {
        let _ = write!(
            text,
            " · {} in the window, {} each, {} at most",
            grouped(connecting.in_window as f64),
            time(mean_us * 1e3),
            time(max_us * 1e3)
        );
    }
    text
}

/// Number of clients from which memory per client is more than noise.
const CLIENTS_FOR_MEMORY: u64 = 64;

fn driver(out: &mut String, driver: &Driver, clients: u64) {
    let mut parts = vec![driver.engine.to_owned()];
    parts.push(format!("{} busy, {} at most", percent(driver.busy_share), percent(driver.busy_share_max)));
    if let (Some(mean_us), Some(max_us)) = (driver.lag_mean_us, driver.lag_max_us) {
        parts.push(format!("lag {}, {} at most", time(mean_us * 1e3), time(max_us * 1e3)));
    }
    if let (Some(mean_us), Some(max_us)) = (driver.send_lag_mean_us, driver.send_lag_max_us) {
        parts.push(format!("starts {} late, {} at most", time(mean_us * 1e3), time(max_us * 1e3)));
    }
    write_field(out, "driver", &parts.join(" · "));
    let mut costs = Vec::new();
    if let Some(us) = driver.cpu_us_per_transaction {
        costs.push(format!("{} CPU per transaction", time(us * 1e3)));
    }
    if clients >= CLIENTS_FOR_MEMORY
        && let Some(each) = driver.memory_bytes_per_client
    {
        costs.push(format!("{} memory per client", bytes(each as f64)));
    }
    if let Some(reason) = &driver.engine_reason {
        costs.push(reason.clone());
    }
    if !costs.is_empty() {
        write_field(out, "", &costs.join(" · "));
    }
}

const PERCENTILES: [&str; 9] = ["#p50", "#p90", "#p95", "#p99", "#p99.9", "#p99.99", "#max", "#mean", "#±"];

fn row(latency: Option<&Latency>) -> Vec<String> {
    let Some(latency) = latency else { return vec!["–".to_owned(); PERCENTILES.len()] };
    // Fewer than a thousand transactions have no p99.9.
    let quantile =
        |us: f64, one_in: u64| if latency.count >= one_in { ms(us * 1e3) } else { "–".to_owned() };
    vec![
        quantile(latency.p50_us, 2),
        quantile(latency.p90_us, 10),
        quantile(latency.p95_us, 20),
        quantile(latency.p99_us, 100),
        quantile(latency.p999_us, 1_000),
        quantile(latency.p9999_us, 10_000),
        ms(latency.max_us * 1e3),
        ms(latency.mean_us * 1e3),
        ms(latency.stddev_us * 1e3),
    ]
}

fn table<'a>(head: &'a str, more: impl IntoIterator<Item = &'a str>) -> Table {
    Table::new([head].into_iter().chain(more).chain(PERCENTILES))
}

fn latencies(results: &Results) -> String {
    let totals = &results.totals;
    let mut table = table("latency in ms", []);
    let mut push = |name: &str, latency: Option<&Latency>| {
        let mut cells = vec![name.to_owned()];
        cells.extend(row(latency));
        table.push(cells);
    };
    if results.is_open() {
        push("from intended start", totals.latency.as_ref());
        push("service time", totals.service.as_ref());
    } else {
        push("as measured", totals.latency.as_ref());
        if let Some(corrected) = &totals.corrected {
            push("corrected", Some(corrected));
        }
    }
    table.render(Format::Table)
}

fn scripts(scripts: &[Script]) -> String {
    let failing = scripts.iter().any(|script| script.failed > 0);
    let open = scripts.iter().any(|script| script.service.is_some());
    let mut heads = vec!["#weight", "#tps"];
    if failing {
        heads.push("#failed");
    }
    let mut table = table("script, ms", heads);
    for script in scripts {
        let mut cells = vec![script.name.clone(), script.weight.to_string(), grouped(script.tps)];
        if failing {
            cells.push(grouped(script.failed as f64));
        }
        cells.extend(row(script.latency.as_ref()));
        table.push(cells);
        if open {
            let mut cells = vec!["  service time".to_owned(), String::new(), String::new()];
            if failing {
                cells.push(String::new());
            }
            cells.extend(row(script.service.as_ref()));
            table.push(cells);
        }
    }
    table.render(Format::Table)
}

/// Characters of a statement that are shown.
const MAX_STATEMENT: usize = 26;

fn statements(script: &Script, several: bool) -> String {
    let failing = script.statements.iter().any(|statement| statement.failures + statement.retries > 0);
    let head =
        if several { format!("statements of {}, ms", script.name) } else { "statements, ms".to_owned() };
    let heads: &[&str] = if failing { &["#failed", "#retried"] } else { &[] };
    let mut table = table(&head, heads.iter().copied());
    for statement in &script.statements {
        let mut cells = vec![format!("{:>3}  {}", statement.line, truncate(&statement.text, MAX_STATEMENT))];
        if failing {
            cells.push(grouped(statement.failures as f64));
            cells.push(grouped(statement.retries as f64));
        }
        cells.extend(row(statement.latency.as_ref()));
        table.push(cells);
    }
    table.render(Format::Table)
}

fn errors(totals: &Totals) -> String {
    let mut table = Table::new(["error", "#failed", "#retries", "example message"]);
    for error in &totals.errors {
        let text = error.text.lines().next().unwrap_or_default();
        table.push(vec![
            error.sqlstate.clone().unwrap_or_else(|| "none".to_owned()),
            grouped(error.failed as f64),
            grouped(error.retries as f64),
            truncate(text, WIDTH - 30),
        ]);
    }
    table.render(Format::Table)
}

fn search_text(search: &Search, style: &Style) -> String {
    let mut heads = vec!["step".to_owned(), "#rate/s".to_owned(), "#done/s".to_owned()];
    heads.extend(search.objectives.iter().map(|objective| {
        let unit = if objective.is_share() { "" } else { " ms" };
        format!("#{}{unit}", objective.figure_name())
    }));
    heads.push(String::new());
    let mut table = Table::new(heads);
    for step in &search.steps {
        let mut cells = vec![
            step.kind.as_str().to_owned(),
            step.rate_per_s.map_or("–".to_owned(), grouped),
            grouped(step.tps),
        ];
        for (objective, value) in search.objectives.iter().zip(&step.values) {
            cells.push(match value {
                None => "–".to_owned(),
                Some(share) if objective.is_share() => percent(*share),
                Some(us) => ms(us * 1e3),
            });
        }
        cells.push(step.verdict());
        table.push(cells);
    }
    let objectives = search.objectives.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let found = match search.rate_per_s {
        Some(rate) => {
            let rate = style.strong(&format!("{}/s", grouped(rate)));
            let confirmed = if search.confirmed {
                ", confirmed by a longer run"
            } else {
                ", not confirmed by a longer run"
            };
            let between = match (search.low_per_s, search.high_per_s) {
                (Some(low), Some(high)) => format!(" (between {} and {})", grouped(low), grouped(high)),
                (None, Some(high)) => format!(" (below {})", grouped(high)),
                (Some(low), None) => format!(" (at least {})", grouped(low)),
                (None, None) => String::new(),
            };
            format!("highest rate with {objectives}: {rate}{between}{confirmed}")
        }
        None => format!("no rate found that meets {objectives}"),
    };
    let mut text = format!("{}\n{found}\n", table.render(Format::Table));
    for contradiction in &search.contradictions {
        text.push_str(&format!("steps contradict each other: {contradiction}; use longer steps (-T)\n"));
    }
    text
}

fn truncate(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated() {
        assert_eq!(truncate("abcdef", 4), "abc…");
        assert_eq!(truncate("abcd", 4), "abcd");
    }
}
