//! Transactions one by one, as text: a table of trials, and a chart of each.

use analysis::overview::view::{Column, Panel, Row, Trial};
use analysis::spans::Spans;
use plaintext::figures::counted;
use plaintext::table::{Format, GAP, Table};

/// Characters of a bar that is as long as all of the transactions together.
const WIDTH: u64 = 56;
/// Most clients of a chart; of more, the first are shown.
const MAX_CLIENTS: usize = 40;
/// Legend of the table.
pub(crate) const LEGEND: [&str; 2] = [
    "lone: ratio to the mean with 1 client, all else equal; total: from the first start to the last end; read: from disk",
    "meanwhile; raw read: the table's files, bypassing the server; together: ended together, although they started apart",
];

/// One row per trial of a panel; none if no trial's transactions were kept.
pub(crate) fn table(panel: &Panel, columns: &[Column]) -> Option<Table> {
    let mut table = Table::new([
        "one by one",
        "#clients",
        "#repeat",
        "#count",
        "#mean s",
        "#× lone",
        "#longest s",
        "#total s",
        "#read MB",
        "#MB/s",
        "#raw read MB/s",
        "#together",
    ]);
    for (row, at, trial, spans) in all(panel) {
        let together: Vec<String> = spans.clumps.iter().map(|clump| clump.transactions.to_string()).collect();
        let total_us = spans.end_us - spans.start_us;
        let raw_read = trial.raw_read.as_ref().and_then(|read| read.mb_s);
        table.push(vec![
            columns[at].label.clone(),
            row.clients.map_or(GAP.to_owned(), |clients| clients.to_string()),
            trial.repeat.to_string(),
            spans.count.to_string(),
            known(spans.mean_us.map(seconds)),
            known(spans.lone_us.zip(spans.mean_us).map(|(lone, mean)| format!("{:.2}", mean / lone))),
            known(spans.longest_us.map(|us| seconds(us as f64))),
            seconds(total_us as f64),
            known(spans.read_bytes.map(|bytes| format!("{:.0}", bytes / 1e6))),
            known(
                spans
                    .read_bytes
                    .filter(|_| total_us > 0)
                    .map(|bytes| format!("{:.1}", bytes / total_us as f64)),
            ),
            known(raw_read.map(|rate| format!("{rate:.1}"))),
            if together.is_empty() { GAP.to_owned() } else { together.join(" + ") },
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The charts of a panel: for each cell with several clients, of the first trial that is not invalid.
pub(crate) fn charts(panel: &Panel, columns: &[Column], format: Format) -> String {
    let mut out = String::new();
    let mut last = None;
    for (row, at, trial, spans) in all(panel) {
        let cell = Some((row.clients, at));
        if row.clients == Some(1) || trial.validity == "invalid" || last == cell {
            continue;
        }
        last = cell;
        let clients = row.clients.map(|clients| format!(", {}", counted(clients as usize, "client")));
        let title = format!("{}{}, repeat {}", columns[at].label, clients.unwrap_or_default(), trial.repeat);
        let chart = gantt(spans);
        if !chart.is_empty() {
            out += &match format {
                Format::Markdown => format!("\n{title}\n\n```\n{chart}```\n"),
                _ => format!("\n{title}\n{chart}"),
            };
        }
    }
    out
}

/// A line for each client, with the spans and durations of its transactions. Those that ended together have the same
/// letter. Empty if single transactions are unknown.
pub fn gantt(spans: &Spans) -> String {
    let total_us = (spans.end_us - spans.start_us).max(1);
    let place = |us: u64| ((us - spans.start_us) * WIDTH + total_us / 2) / total_us;
    let lines: Vec<_> = spans.each.chunk_by(|a, b| a.client == b.client).collect();
    let digits = lines.last().map_or(1, |line| line[0].client.to_string().len());
    let mut out = String::new();
    for line in lines.iter().take(MAX_CLIENTS) {
        let mut bar = vec![' '; WIDTH as usize];
        let mut lengths = Vec::new();
        for span in *line {
            let from = place(span.start_us).min(WIDTH - 1) as usize;
            let to = (place(span.end_us) as usize).clamp(from + 1, WIDTH as usize);
            // Neighbouring bars differ.
            let ink = if span.iteration % 2 == 1 { '█' } else { '▒' };
            bar[from..to].fill(if span.failed { '×' } else { ink });
            let length = (span.end_us - span.start_us) as f64;
            let lone = spans.lone_us.filter(|_| !span.failed);
            let multiple = lone.map(|lone| format!(" ×{:.2}", length / lone)).unwrap_or_default();
            let clump = span.clump.map(|clump| format!(" {}", letter(clump))).unwrap_or_default();
            let failed = if span.failed { " failed" } else { "" };
            lengths.push(format!("{} s{multiple}{clump}{failed}", seconds(length)));
        }
        let (bar, lengths) = (bar.into_iter().collect::<String>(), lengths.join(", "));
        out += &format!("  client {:>digits$} │{bar}│ {lengths}\n", line[0].client);
    }
    if lines.len() > MAX_CLIENTS {
        out += &format!("  and {} more clients\n", lines.len() - MAX_CLIENTS);
    }
    for (at, clump) in spans.clumps.iter().enumerate() {
        let within = (clump.last_end_us - clump.first_end_us) as f64;
        out += &format!(
            "  {} ended together: {} within {} s\n",
            letter(at),
            clump.transactions,
            seconds(within)
        );
    }
    out
}

/// `A`, `B`, … `Z`, then numbers.
fn letter(at: usize) -> String {
    match u8::try_from(at).ok().filter(|at| *at < 26) {
        Some(at) => char::from(b'A' + at).to_string(),
        None => at.to_string(),
    }
}

/// The trials of a panel whose transactions were kept, with the index of their column.
fn all(panel: &Panel) -> impl Iterator<Item = (&Row, usize, &Trial, &Spans)> {
    panel.trials().filter_map(|(row, at, trial)| Some((row, at, trial, trial.spans.as_ref()?)))
}

fn known(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| GAP.to_owned())
}

/// Seconds with at least two significant digits.
fn seconds(us: f64) -> String {
    let seconds = us / 1e6;
    let decimals = match seconds {
        s if s >= 9.95 => 1,
        s if s >= 0.995 => 2,
        _ => 3,
    };
    format!("{seconds:.decimals$}")
}
