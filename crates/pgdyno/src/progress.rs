//! Progress of a campaign on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use model::message::{Interval, Phase};
use model::record::{Status, Trial};
use runner::progress::{Event, Observer};

use crate::output::{about, note};

/// Shows what a campaign does.
pub(crate) struct Progress {
    terminal: bool,
    bar: ProgressBar,
    /// What was last said of the preparation, so that plain lines are not repeated.
    said: Mutex<String>,
}

impl Progress {
    /// A progress display that fits standard error.
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        bar.set_style(style("{spinner} {msg}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { terminal, bar, said: Mutex::new(String::new()) }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.terminal {
            self.bar.println(text);
        } else {
            note(&format!("{text}\n"));
        }
    }

    fn preparing(&self, what: &str, done: u64, total: Option<u64>) {
        let mut said = self.said.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if *said != what {
            what.clone_into(&mut said);
            if !self.terminal {
                self.line(what);
            }
            self.bar.set_style(match total {
                Some(_) => style("{spinner} {msg} [{bar:30}] {percent}% {eta} left"),
                None => style("{spinner} {msg} {elapsed}"),
            });
            self.bar.reset();
            self.bar.set_message(what.to_owned());
        }
        self.bar.set_length(total.unwrap_or(0));
        self.bar.set_position(done);
    }

    fn load(&self, interval: &Interval) {
        let done: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        let tps = done as f64 * 1e6 / interval.width_us.max(1) as f64;
        self.bar.set_message(match interval.phase {
            Phase::Warmup => format!("{tps:.0} tps (warm-up)"),
            Phase::Measure | Phase::Drain => format!("{tps:.0} tps"),
        });
    }
}

impl Observer for Progress {
    fn see(&self, event: &Event) {
        match event {
            Event::Preparing { what, done, total } => self.preparing(what, *done, *total),
            Event::Notice(text) => self.line(text),
            Event::TrialBegins { trial, cell, of, remaining } => {
                self.bar.set_style(style("{spinner} [{bar:30}] {prefix} {msg}"));
                self.bar.set_length(*of as u64);
                self.bar.set_position(u64::from(trial.position) - 1);
                self.bar.set_prefix(format!(
                    "{}/{of}, {} left: {cell}",
                    trial.position,
                    about(remaining.seconds())
                ));
                self.bar.set_message("");
                if !self.terminal {
                    self.line(&format!(
                        "trial {}/{of}, about {} left: {cell}",
                        trial.position,
                        about(remaining.seconds())
                    ));
                }
            }
            Event::Load(interval) => self.load(interval),
            Event::TrialEnded(trial) => {
                if let Some(text) = ended(trial, self.terminal) {
                    self.line(&text);
                }
            }
        }
    }
}

/// The line that stays when a trial has ended. On a terminal only what needs attention stays.
fn ended(trial: &Trial, terminal: bool) -> Option<String> {
    let status = trial.validity.status;
    if terminal && status == Status::Valid {
        return None;
    }
    let came_out = match &trial.summary {
        Some(summary) => format!("{:.0} tps", summary.tps),
        None => "no load".to_owned(),
    };
    if status == Status::Valid {
        return Some(format!("  {came_out}"));
    }
    let reasons: Vec<&str> = trial
        .validity
        .findings
        .iter()
        .filter(|finding| finding.status != Status::Valid)
        .map(|finding| finding.evidence.as_str())
        .collect();
    Some(format!("  {} ({came_out}) {}: {}", status.name(), trial.cell, reasons.join("; ")))
}

/// The templates above are constants; one that did not parse would fall back to indicatif's own.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
