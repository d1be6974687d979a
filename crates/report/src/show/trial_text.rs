//! One trial as text, for a terminal with charts. Charts over time show the measured window.

use diagnose::Component;
use model::record::Latency;

use super::load_hosts::load_hosts;
use super::phases::phases;
use super::statements::{self, statements};
use super::trial::{MetricSeries, Part, Second, Span, TrialEvent, TrialReport};
use crate::chart::{Terminal, bar, lane, log_bar, plot, sparkline};
use crate::explain::MIN_SHARE;
use plaintext::figures::{self, counted};
use plaintext::table::{BETWEEN, Column, Format, GAP, Table};
use plaintext::wrap;

/// Columns without a terminal.
const WIDTH: usize = 100;
/// Most kinds of waits that are shown.
const MAX_WAITS: usize = 8;
/// Most parts of the latency that are named.
const MAX_PARTS: usize = 6;
/// Lines of the chart of throughput.
const HEIGHT: usize = 5;

pub(super) fn page(trial: &TrialReport, terminal: Option<Terminal>) -> String {
    let width = terminal.map_or(WIDTH, |terminal| terminal.width);
    let painted = |text: &str, rendition: &str| match terminal {
        Some(terminal) => terminal.painted(text, rendition),
        None => text.to_owned(),
    };
    let mut out = painted(&wrap(&trial.cell, width), "1");
    out += &wrap(&about(trial), width);
    let rendition = match trial.validity {
        "valid" => "32",
        "suspect" => "33",
        _ => "1;31",
    };
    out += &format!("{}\n", painted(trial.validity, rendition));
    for finding in &trial.findings {
        let advice = finding.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        let status = if finding.validity == "valid" { "note" } else { finding.validity };
        let line = format!("  {status}: {}: {}{advice}", finding.gate, finding.evidence);
        out += &wrap(&line, width);
    }
    let sections = [
        throughput(trial, terminal, width),
        latency(trial, terminal),
        parts(trial),
        own_figures(trial),
        phases(&trial.phases),
        statements(&trial.statements, terminal, width),
        load_hosts(&trial.load_hosts),
        time(trial, width),
        waits(trial, terminal),
        metrics(trial, terminal),
        events(trial, terminal),
    ];
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        out += &format!("\n{section}");
    }
    out
}

fn about(trial: &TrialReport) -> String {
    let parts = [
        Some(trial.campaign.clone()),
        trial.server_version.as_ref().map(|version| format!("PostgreSQL {version}")),
        trial.started.map(|started| started.strftime("%Y-%m-%d %H:%M UTC").to_string()),
        Some(match trial.attempt {
            1 => format!("repeat {}", trial.repeat),
            attempt => format!("repeat {}, attempt {attempt}", trial.repeat),
        }),
        Some(format!("trial {}", trial.id)),
        Some(format!("run {}", trial.run)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn throughput(trial: &TrialReport, terminal: Option<Terminal>, width: usize) -> String {
    let Some(tps) = trial.tps else { return "no load ran\n".to_owned() };
    let seconds = trial.window_us.map(|us| format!(" in {} s", seconds(us as f64)));
    let interval = trial
        .tps_interval
        .map(|(low, high)| format!(" ({} to {} with 95% confidence)", figures::tps(low), figures::tps(high)));
    let parts = [
        Some(format!("{} transactions per second{}", figures::tps(tps), interval.unwrap_or_default())),
        trial
            .transactions
            .map(|count| format!("{}{}", figures::grouped(&count.to_string()), seconds.unwrap_or_default())),
        trial
            .instructions_per_transaction
            .map(|count| format!("{} instructions for each transaction", figures::tps(count))),
        trial.failed.map(|count| format!("{} failed", figures::grouped(&count.to_string()))),
    ];
    let mut out = wrap(&parts.into_iter().flatten().collect::<Vec<_>>().join(" · "), width);
    out += &trial.notes.iter().map(|note| wrap(&format!("  {note}"), width)).collect::<String>();
    if let Some([min, median, max]) = spread(trial.seconds.iter().map(|second| second.tps)) {
        out += &wrap(
            &format!(
                "  per second: minimum {}, median {}, maximum {}",
                figures::tps(min),
                figures::tps(median),
                figures::tps(max)
            ),
            width,
        );
        if let Some(chart) = terminal.and_then(|terminal| over_time(trial, max, terminal)) {
            out += &chart;
        }
    }
    let at = |us: i64| seconds_of(us as f64);
    let spans = |spans: &[Span]| -> Vec<String> {
        let ends = |span: &Span| [at(span.start_us), at(span.end_us)];
        let range = |[start, end]: [String; 2]| {
            if start == end { format!("{start} s") } else { format!("{start} to {end} s") }
        };
        spans.iter().map(|span| range(ends(span))).collect()
    };
    let stalls: Vec<String> = trial
        .stalls
        .iter()
        .flatten()
        .map(|stall| {
            format!("{} s at {} s", seconds_of(stall.length_us as f64), seconds_of(stall.start_us as f64))
        })
        .collect();
    for (what, spans) in
        [("stalls", stalls), ("checkpoints", spans(&trial.checkpoints)), ("vacuums", spans(&trial.vacuums))]
    {
        if !spans.is_empty() {
            out += &wrap(&format!("  {what}: {}", first_few(spans)), width);
        }
    }
    out
}

/// Throughput over the window, with stalls, checkpoints and vacuums below.
fn over_time(trial: &TrialReport, max: f64, terminal: Terminal) -> Option<String> {
    let (first, last) = trial.seconds.first().zip(trial.seconds.last())?;
    let (from_us, to_us) = (first.start_us as f64, (last.start_us + last.width_us) as f64);
    let top = figures::tps(max);
    let within = |start_us: f64, end_us: f64| (start_us - from_us, end_us - from_us);
    let stalls = trial.stalls.iter().flatten();
    let stalls = stalls.map(|stall| within(stall.start_us as f64, (stall.start_us + stall.length_us) as f64));
    let spans = |spans: &[Span]| -> Vec<(f64, f64)> {
        spans.iter().map(|span| within(span.start_us as f64, span.end_us as f64)).collect()
    };
    let lanes = [
        ("stall", '×', stalls.collect()),
        ("checkpoint", '━', spans(&trial.checkpoints)),
        ("vacuum", '━', spans(&trial.vacuums)),
    ];
    let names = lanes.iter().filter(|(_, _, spans)| !spans.is_empty()).map(|(name, ..)| name.len());
    let label = names.chain([top.len()]).max()?;
    // Two spaces before, and the axis.
    let width = chart_width(terminal, 2 + label + 2)?;
    let values: Vec<Option<f64>> = trial.seconds.iter().map(|second| Some(second.tps)).collect();
    let mut out = String::new();
    for (line, dots) in plot(&values, max, width, HEIGHT).into_iter().enumerate() {
        let (name, axis) = match line {
            0 => (top.as_str(), '┤'),
            last if last + 1 == HEIGHT => ("0", '┤'),
            _ => ("", '│'),
        };
        out +=
            &format!("{}\n", format!("  {name:>label$} {axis}{}", terminal.painted(&dots, "36")).trim_end());
    }
    let (start, end) = (format!("{} s", seconds_of(from_us)), format!("{} s", seconds_of(to_us)));
    out += &format!(
        "  {:label$} └{start}{end:>rest$}\n",
        "",
        rest = width.saturating_sub(start.chars().count())
    );
    for (name, mark, spans) in lanes.iter().filter(|(_, _, spans)| !spans.is_empty()) {
        out += &format!("  {name:>label$}  {}\n", lane(spans, to_us - from_us, *mark, width));
    }
    Some(out)
}

/// Width of charts over time; none if it is too small.
fn chart_width(terminal: Terminal, used: usize) -> Option<usize> {
    const MAX_WIDTH: usize = 120;
    const MIN_WIDTH: usize = 20;
    let left = terminal.width.saturating_sub(used);
    (left >= MIN_WIDTH).then_some(left.min(MAX_WIDTH))
}

/// A figure of latency with its name.
type Figure = (&'static str, fn(&Latency) -> Option<f64>);

/// The figures that are shown.
const PERCENTILES: [Figure; 8] = [
    ("mean", |latency| latency.mean_us),
    ("smallest", |latency| latency.min_us),
    ("50%", |latency| latency.p50_us),
    ("90%", |latency| latency.p90_us),
    ("95%", |latency| latency.p95_us),
    ("99%", |latency| latency.p99_us),
    ("99.9%", |latency| latency.p999_us),
    ("largest", |latency| latency.max_us),
];

fn latency(trial: &TrialReport, terminal: Option<Terminal>) -> String {
    let Some(latency) = &trial.latency else { return String::new() };
    let known: Vec<_> =
        PERCENTILES.iter().filter_map(|(name, of)| Some((*name, *of, of(latency)?))).collect();
    let mut table = Table::new(["latency", "#ms"]);
    if trial.service.is_some() {
        table.columns[1].name = "ms from intended start".to_owned();
        table.columns.push(Column { name: "ms of service".to_owned(), numeric: true });
    }
    for (name, of, us) in &known {
        let mut row = vec![(*name).to_owned(), ms(*us)];
        row.extend(trial.service.as_ref().map(|service| of(service).map_or(GAP.to_owned(), ms)));
        table.push(row);
    }
    let ends = spread(known.iter().map(|(.., us)| *us).filter(|us| *us > 0.0));
    if let (Some(terminal), Some([min, _, max])) = (terminal, ends)
        && let Some(width) = terminal.width_left(table.width() + BETWEEN)
    {
        let scale = (10f64.powf(min.log10().floor()), 10f64.powf(max.log10().ceil()).max(min * 10.0));
        let head = format!("{} to {} ms, logarithmic", plain(scale.0 / 1e3), plain(scale.1 / 1e3));
        table
            .columns
            .push(Column { name: if head.len() > width { String::new() } else { head }, numeric: false });
        for (row, (.., us)) in table.rows.iter_mut().zip(&known) {
            row.push(log_bar(us.max(scale.0), scale, width));
        }
    }
    table.render(Format::Table)
}

/// The scripts of a workload that has several, and background workloads.
fn parts(trial: &TrialReport) -> String {
    let scripts = trial.scripts.iter().map(|of| {
        let latency = of.latency.as_ref().map(|of| [of.mean_us, of.p99_us]);
        (of.script.clone(), of.tps, of.transactions, of.failed, latency)
    });
    let background = trial.background.iter().map(|of| {
        let latency = of.latency.as_ref().map(|of| [of.mean_us, of.p99_us]);
        (of.workload.clone(), of.tps, of.transactions, Some(of.failed), latency)
    });
    let ms = |of: Option<f64>| of.map_or(GAP.to_owned(), ms);
    let mut tables = Vec::new();
    for (title, parts) in [("script", scripts.collect::<Vec<_>>()), ("background", background.collect())] {
        let mut table = Table::new([title, "#per second", "#transactions", "#failed", "#mean ms", "#99% ms"]);
        for (name, tps, transactions, failed, latency) in parts {
            let [mean, p99] = latency.unwrap_or_default().map(ms);
            let failed = failed.map_or(GAP.to_owned(), |failed| failed.to_string());
            table.push(vec![name, figures::tps(tps), transactions.to_string(), failed, mean, p99]);
        }
        tables.extend((!table.rows.is_empty()).then(|| table.render(Format::Table)));
    }
    tables.join("\n")
}

/// The figures that queries of the workload's own returned.
fn own_figures(trial: &TrialReport) -> String {
    let mut table = Table::new(["figure", "#"]);
    for (metric, figure) in &trial.figures {
        table.push(vec![metric.clone(), figures::tps(*figure)]);
    }
    if table.rows.is_empty() { String::new() } else { table.render(Format::Table) }
}

fn time(trial: &TrialReport, width: usize) -> String {
    let Some(explained) = &trial.explained else {
        let why = trial.unexplained.as_ref().filter(|_| trial.tps.is_some());
        return why
            .map(|why| wrap(&format!("where the time goes is unknown: {why}"), width))
            .unwrap_or_default();
    };
    let shown_part = |part: &Part| format!("{} {:.0}%", part.name, 100.0 * part.share);
    let (unexplained, known): (Vec<&Part>, Vec<&Part>) =
        explained.parts.iter().partition(|part| part.name == Component::Unexplained.name());
    let shown = known.iter().take(MAX_PARTS).take_while(|part| part.share >= MIN_SHARE).count();
    let (shown, rest) = known.split_at(shown);
    let mut parts: Vec<String> = shown.iter().map(|part| shown_part(part)).collect();
    if !rest.is_empty() {
        let share: f64 = rest.iter().map(|part| part.share).sum();
        parts.push(format!("{} {:.0}%", counted(rest.len(), "smaller part"), 100.0 * share));
    }
    parts.extend(unexplained.iter().map(|part| shown_part(part)));
    wrap(&format!("where the time goes: {}", parts.join(" · ")), width)
        + &wrap(&format!("  {} (confidence: {})", explained.verdict, explained.confidence), width)
}

fn waits(trial: &TrialReport, terminal: Option<Terminal>) -> String {
    let mut table = Table::new(["clients' sessions", "#% of their time", "#sessions"]);
    for wait in trial.waits.iter().take(MAX_WAITS) {
        table.push(vec![
            wait.what.clone(),
            format!("{:.1}", 100.0 * wait.share),
            format!("{:.2}", wait.sessions),
        ]);
    }
    if table.rows.is_empty() {
        return String::new();
    }
    if let Some(width) = terminal.and_then(|terminal| terminal.width_left(table.width() + BETWEEN)) {
        table.columns.push(Column { name: String::new(), numeric: false });
        for (row, wait) in table.rows.iter_mut().zip(&trial.waits) {
            row.push(bar(wait.share, width));
        }
    }
    let rest = trial.waits.len().saturating_sub(MAX_WAITS);
    let share: f64 = trial.waits.iter().skip(MAX_WAITS).map(|wait| wait.share).sum();
    let rest = (rest > 0).then(|| format!("  and {rest} more, {:.1}% together\n", 100.0 * share));
    table.render(Format::Table) + &rest.unwrap_or_default()
}

fn metrics(trial: &TrialReport, terminal: Option<Terminal>) -> String {
    let mut table = Table::new(["by the second", "#mean", "#least", "#greatest", "unit"]);
    for MetricSeries { name, unit, values } in &trial.metrics {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let Some([min, _, max]) = spread(known.iter().copied()) else { continue };
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let [mean, min, max] = [mean, min, max].map(figures::tps);
        table.push(vec![(*name).to_owned(), mean, min, max, (*unit).to_owned()]);
    }
    if table.rows.is_empty() {
        return String::new();
    }
    if let Some(width) = terminal.and_then(|terminal| chart_width(terminal, table.width() + BETWEEN)) {
        table.columns.push(Column { name: "over the window, from 0".to_owned(), numeric: false });
        for (row, metric) in table.rows.iter_mut().zip(&trial.metrics) {
            row.push(sparkline(&metric.values, width));
        }
    }
    table.render(Format::Table)
}

/// The load's events by kind: time of the first one, their number, and the message of the first.
fn events(trial: &TrialReport, terminal: Option<Terminal>) -> String {
    let mut kinds: Vec<(&TrialEvent, usize)> = Vec::new();
    for event in &trial.events {
        match kinds.iter_mut().find(|(known, _)| known.kind == event.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((event, 1)),
        }
    }
    let mut table = Table::new(["#first at s", "#count", "event", ""]);
    for (event, count) in &kinds {
        let at = seconds_of(event.at_us as f64);
        table.push(vec![at, count.to_string(), event.kind.clone(), event.message.clone()]);
    }
    let text = table.render(Format::Table);
    match terminal {
        _ if kinds.is_empty() => String::new(),
        Some(terminal) => text.lines().map(|line| truncated(line, terminal.width) + "\n").collect(),
        None => text,
    }
}

/// The whole report as one table, one row per figure.
pub(super) fn long(trial: &TrialReport) -> Table {
    let mut table = Table::new(["section", "name", "#value", "unit"]);
    let mut row = |section: &str, name: &str, value: Option<String>, unit: &str| {
        if let Some(value) = value {
            table.push(vec![section.to_owned(), name.to_owned(), value, unit.to_owned()]);
        }
    };
    let text = |value: &str| Some(value.to_owned());
    row("trial", "id", text(&trial.id), "");
    row("trial", "run", text(&trial.run), "");
    row("trial", "campaign", text(&trial.campaign), "");
    row("trial", "cell", text(&trial.cell), "");
    row("trial", "server version", trial.server_version.clone(), "");
    row("trial", "repeat", Some(trial.repeat.to_string()), "");
    row("trial", "attempt", Some(trial.attempt.to_string()), "");
    row("trial", "started", trial.started.map(|started| started.to_string()), "");
    row("validity", "status", text(trial.validity), "");
    for finding in &trial.findings {
        row("validity", &finding.gate, Some(format!("{}: {}", finding.validity, finding.evidence)), "");
    }
    row("throughput", "mean", trial.tps.map(|tps| tps.to_string()), "/s");
    row(
        "throughput",
        "instructions per transaction",
        trial.instructions_per_transaction.map(|count| count.to_string()),
        "",
    );
    let interval = trial.tps_interval;
    row("throughput", "95% interval, low", interval.map(|(low, _)| low.to_string()), "/s");
    row("throughput", "95% interval, high", interval.map(|(_, high)| high.to_string()), "/s");
    let seconds = spread(trial.seconds.iter().map(|second: &Second| second.tps));
    for (at, name) in ["least second", "median second", "greatest second"].into_iter().enumerate() {
        row("throughput", name, seconds.map(|seconds| seconds[at].to_string()), "/s");
    }
    row("throughput", "transactions", trial.transactions.map(|count| count.to_string()), "");
    row("throughput", "failed", trial.failed.map(|count| count.to_string()), "");
    row("throughput", "window", trial.window_us.map(|us| us.to_string()), "us");
    for (metric, figure) in &trial.figures {
        row("figure", metric, Some(figure.to_string()), "");
    }
    for phase in &trial.phases {
        let section = format!("phase {}", phase.phase);
        let count = |figure: Option<u64>| figure.map(|figure| figure.to_string());
        let real = |figure: Option<f64>| figure.map(|figure| figure.to_string());
        row(&section, "throughput", real(phase.tps), "/s");
        row(&section, "worst second", real(phase.worst_second_tps), "/s");
        row(&section, "rows", real(phase.rows_per_second), "/s");
        row(&section, "transactions", count(phase.transactions), "");
        row(&section, "failed", count(phase.failed), "");
        row(&section, "window", count(phase.window_us), "us");
        row(
            &section,
            "99% of latency",
            real(phase.latency.as_ref().and_then(|latency| latency.p99_us)),
            "us",
        );
        row(&section, "largest latency", real(phase.max_us), "us");
        row(&section, "longest stall", count(phase.longest_stall_us), "us");
        row(&section, "validity", phase.validity.map(str::to_owned), "");
    }
    for stall in trial.stalls.iter().flatten() {
        row("stall", &format!("at {} us", stall.start_us), Some(stall.length_us.to_string()), "us");
    }
    for (section, spans) in [("checkpoint", &trial.checkpoints), ("vacuum", &trial.vacuums)] {
        for Span { start_us, end_us } in spans {
            row(section, &format!("at {start_us} us"), Some((end_us - start_us).to_string()), "us");
        }
    }
    for (section, latency) in [("latency", &trial.latency), ("service time", &trial.service)] {
        for (name, of) in PERCENTILES {
            row(section, name, latency.as_ref().and_then(of).map(|us| us.to_string()), "us");
        }
    }
    for of in &trial.scripts {
        row("script", &of.script, Some(of.tps.to_string()), "/s");
        let latency = of.latency.as_ref();
        let section = format!("latency of {}", of.script);
        for (name, us) in [
            ("mean", latency.and_then(|of| of.mean_us)),
            ("50%", latency.and_then(|of| of.p50_us)),
            ("95%", latency.and_then(|of| of.p95_us)),
            ("99%", latency.and_then(|of| of.p99_us)),
        ] {
            row(&section, name, us.map(|us| us.to_string()), "us");
        }
    }
    for (section, name, value, unit) in statements::long(&trial.statements) {
        row(&section, name, value, unit);
    }
    for of in &trial.background {
        row("beside", &of.workload, Some(of.tps.to_string()), "/s");
    }
    if let Some(explained) = &trial.explained {
        row("where the time goes", "in a sentence", text(&explained.verdict), "");
        for part in &explained.parts {
            row("where the time goes", &part.name, Some(part.share.to_string()), "share");
        }
    }
    for wait in &trial.waits {
        row("waits", &wait.what, Some(wait.share.to_string()), "share");
    }
    for MetricSeries { name, unit, values } in &trial.metrics {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        row("metrics", name, Some((known.iter().sum::<f64>() / known.len() as f64).to_string()), unit);
    }
    for event in &trial.events {
        row("events", &format!("{} at {} us", event.kind, event.at_us), text(&event.message), "");
    }
    table
}

/// The smallest, the median and the largest value; none without values.
fn spread(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let sample = stats::Sample::new(values)?;
    Some([sample.minimum(), sample.median(), sample.maximum()])
}

fn ms(us: f64) -> String {
    format!("{:.3}", us / 1e3)
}

/// A power of ten without exponent.
fn plain(value: f64) -> String {
    let decimals = (-value.log10()).ceil().max(0.0) as usize;
    format!("{value:.decimals$}")
}

fn seconds_of(us: f64) -> String {
    format!("{:.1}", us / 1e6)
}

/// A number of seconds without needless digits.
fn seconds(us: f64) -> String {
    let text = format!("{:.3}", us / 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn first_few(mut all: Vec<String>) -> String {
    const MAX_SHOWN: usize = 8;
    let more = all.len().saturating_sub(MAX_SHOWN);
    all.truncate(MAX_SHOWN);
    all.extend((more > 0).then(|| format!("and {more} more")));
    all.join(", ")
}

fn truncated(line: &str, width: usize) -> String {
    match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    }
}
