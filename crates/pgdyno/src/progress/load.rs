//! Progress of `pgdyno bench`: an updated line on a terminal, a line per second elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use bench::LiveView;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::note;

/// Progress of successive loads.
pub(crate) struct LoadProgress {
    /// Bar on a terminal.
    bar: Option<ProgressBar>,
    /// Running step of a search.
    step: Option<String>,
    has_length: bool,
}

impl LoadProgress {
    /// A bar on a terminal, else lines.
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(ProgressBar::hidden);
        Self { bar, step: None, has_length: false }
    }
}

impl LiveView for LoadProgress {
    fn begin(&mut self, step: Option<&str>, planned: Option<Duration>) {
        self.step = step.map(str::to_owned);
        self.has_length = planned.is_some();
        let Some(bar) = &mut self.bar else { return };
        *bar = match planned {
            Some(planned) => {
                ProgressBar::new(planned.as_millis() as u64).with_style(style("{bar:16.cyan/dim} "))
            }
            None => ProgressBar::new_spinner().with_style(style("{spinner} ")),
        };
        bar.enable_steady_tick(Duration::from_millis(100));
    }

    fn status(&mut self, at: Option<Duration>, text: &str) {
        match (&self.bar, &self.step, at) {
            (Some(bar), step, at) => {
                if let (true, Some(at)) = (self.has_length, at) {
                    bar.set_position(at.as_millis() as u64);
                }
                bar.set_message(step.as_ref().map_or(text.to_owned(), |step| format!("{step}  {text}")));
            }
            (None, None, Some(at)) => note(&format!("{:>7.1} s  {text}\n", at.as_secs_f64())),
            // One line per step is enough for a search, and connecting needs none.
            _ => {}
        }
    }

    fn line(&mut self, text: &str) {
        match &self.bar {
            Some(bar) if !bar.is_hidden() && !bar.is_finished() => bar.println(text),
            _ => note(&format!("{text}\n")),
        }
    }

    fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The template is a constant; an invalid one would fall back to indicatif's default.
fn style(begin: &str) -> ProgressStyle {
    ProgressStyle::with_template(&format!("{begin}{{elapsed:>4}}  {{wide_msg}}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}
