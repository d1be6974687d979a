//! The live view on standard error: one line that is kept up to date on a terminal, a line a second elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use driver::{Load, Record};
use indicatif::{ProgressBar, ProgressStyle};
use model::message::Phase;

use super::figures::{grouped, ms};
use super::plan;
use crate::output::note;

/// What a user sees of a running load.
pub(super) struct Live {
    shown: Shown,
    /// Before every line: which step of a search it is.
    label: String,
    /// How long the load is to go on, where that is known.
    planned: Option<Duration>,
    started: Instant,
    /// What has been counted since a line was last shown.
    since: Option<Record>,
    failed: u64,
    aborted: u32,
}

enum Shown {
    Nothing,
    Lines,
    Bar(ProgressBar),
}

/// How often something is shown.
const EVERY_NS: u64 = 950_000_000;

/// Aborted clients that have a line each.
const ABORTS_SHOWN: u32 = 3;

impl Live {
    pub(super) fn new(quiet: bool) -> Self {
        let shown = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Shown::Nothing,
            (false, true) => Shown::Bar(ProgressBar::hidden()),
            (false, false) => Shown::Lines,
        };
        Self {
            shown,
            label: String::new(),
            planned: None,
            started: Instant::now(),
            since: None,
            failed: 0,
            aborted: 0,
        }
    }

    /// A load is about to connect.
    pub(super) fn expect(&mut self, load: &Load, label: &str) {
        self.label = if label.is_empty() { String::new() } else { format!("{label}  ") };
        self.planned = plan::duration(load).map(|duration| load.warmup + duration);
        self.since = None;
        (self.failed, self.aborted) = (0, 0);
        if let Shown::Bar(_) = self.shown {
            let bar = match self.planned {
                Some(planned) => {
                    ProgressBar::new(planned.as_millis() as u64).with_style(style("{bar:16.cyan/dim} "))
                }
                None => ProgressBar::new_spinner().with_style(style("{spinner} ")),
            };
            bar.set_message(format!("{}connecting {} clients", self.label, load.clients()));
            bar.enable_steady_tick(Duration::from_millis(100));
            self.shown = Shown::Bar(bar);
        }
    }

    pub(super) fn connected(&mut self, took: Duration) {
        if let Shown::Bar(bar) = &self.shown {
            bar.set_message(format!("{}connected in {} ms", self.label, ms(took.as_nanos() as f64)));
        }
    }

    pub(super) fn started(&mut self) {
        self.started = Instant::now();
    }

    pub(super) fn interval(&mut self, record: &Record) {
        if matches!(self.shown, Shown::Nothing) {
            return;
        }
        self.failed += record.scripts.iter().map(|script| script.failures.sum()).sum::<u64>();
        match &mut self.since {
            Some(since) if since.phase == record.phase => since.add(record),
            since => *since = Some(record.clone()),
        }
        let Some(since) = &self.since else { return };
        if since.end_ns - since.start_ns < EVERY_NS {
            return;
        }
        let text = self.figures(since);
        self.since = None;
        match &self.shown {
            Shown::Nothing => {}
            // Of a search, a line a step is enough.
            Shown::Lines if !self.label.is_empty() => {}
            Shown::Lines => note(&format!("{:>7.1} s  {text}\n", record.end_ns as f64 / 1e9)),
            Shown::Bar(bar) => {
                if self.planned.is_some() {
                    bar.set_position(self.started.elapsed().as_millis() as u64);
                }
                bar.set_message(text);
            }
        }
    }

    fn figures(&self, since: &Record) -> String {
        let done: u64 = since.scripts.iter().map(|script| script.moments.count).sum();
        let tps = done as f64 * 1e9 / (since.end_ns - since.start_ns) as f64;
        let p99 = since.scripts.split_first().and_then(|(first, others)| {
            let mut latency = first.latency.clone();
            for other in others {
                latency.add(&other.latency).ok()?;
            }
            (!latency.is_empty()).then(|| ms(latency.value_at_quantile(0.99) as f64))
        });
        let phase = match since.phase {
            Phase::Warmup => "  warm-up",
            Phase::Measure => "",
            Phase::Drain => "  last transactions",
        };
        format!(
            "{}{:>9} tps  p99 {:>9} ms  failed {}  busy {:.0} %{phase}",
            self.label,
            grouped(tps),
            p99.as_deref().unwrap_or("–"),
            grouped(self.failed as f64),
            since.busy * 100.0
        )
    }

    /// A client has ended: which, where and why.
    pub(super) fn aborted(&mut self, text: &str) {
        self.aborted += 1;
        match self.aborted {
            n if n <= ABORTS_SHOWN => self.line(&format!("aborted: {text}")),
            n if n == ABORTS_SHOWN + 1 => self.line("aborted: further clients"),
            _ => {}
        }
    }

    /// A line that stays.
    pub(super) fn line(&self, text: &str) {
        match &self.shown {
            Shown::Nothing => {}
            Shown::Lines => note(&format!("{text}\n")),
            Shown::Bar(bar) if bar.is_hidden() || bar.is_finished() => note(&format!("{text}\n")),
            Shown::Bar(bar) => bar.println(text),
        }
    }

    /// The load is over.
    pub(super) fn finish(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// The template is a constant; one that did not parse would fall back to indicatif's own.
fn style(begin: &str) -> ProgressStyle {
    ProgressStyle::with_template(&format!("{begin}{{elapsed:>4}}  {{wide_msg}}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}
