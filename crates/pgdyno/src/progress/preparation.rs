//! Progress of a preparation, such as installing or filling: one line per step without a terminal.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use host::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use plaintext::printable;

use crate::output::note;

/// Progress of a preparation, one step at a time.
pub(crate) struct PreparationProgress {
    bar: Option<ProgressBar>,
    /// Current step.
    step: Mutex<String>,
}

impl PreparationProgress {
    /// A spinner or bar on a terminal, else lines.
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(ProgressBar::new_spinner);
        Self { bar, step: Mutex::new(String::new()) }
    }

    /// Removes the bar before other output.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
        self.step.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
    }
}

impl Progress for PreparationProgress {
    fn step(&self, what: &str, done: u64, total: Option<u64>) {
        let mut step = self.step.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_new = *step != what;
        if is_new {
            what.clone_into(&mut step);
        }
        let Some(bar) = &self.bar else {
            if is_new {
                note(&format!("{what}\n"));
            }
            return;
        };
        if is_new {
            bar.reset();
            bar.set_style(style(total.is_some()));
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        if let Some(total) = total {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    fn notice(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(printable(text)),
            None => note(&format!("{text}\n")),
        }
    }
}

/// The templates are constants; an invalid one would fall back to indicatif's default.
fn style(with_bar: bool) -> ProgressStyle {
    let template = if with_bar {
        "{spinner} {msg} [{bar:30}] {percent}% {eta} left"
    } else {
        "{spinner} {msg} {elapsed}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
