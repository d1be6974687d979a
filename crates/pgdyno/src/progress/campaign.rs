//! Progress of a campaign on standard error.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use host::Progress as _;
use indicatif::{ProgressBar, ProgressStyle};
use model::cell::Levels;
use model::factor::Factor;
use model::merit::Merit;
use model::message::Interval;
use model::plan::Plan;
use model::record::{Status, Trial};
use model::units::Span;
use plaintext::figures::{self, duration};
use plaintext::printable;
use runner::observer::{Event, Observer};

use crate::output::note;
use crate::progress::preparation::PreparationProgress;
use crate::progress::{bisection, session};

/// Where output is no terminal, one in so many sessions of a comparison is shown.
const SHOWN_SESSIONS: usize = 10;

/// Progress of a campaign.
pub(crate) struct CampaignProgress {
    terminal: bool,
    /// Shown until the first trial begins.
    preparation: PreparationProgress,
    /// Shown from then on.
    bar: ProgressBar,
    /// Whether a trial has begun.
    measuring: AtomicBool,
    /// Whether trials are sides of sessions: these are shown instead.
    paired: bool,
    /// Whether the trials of a session run one after the other, which takes minutes: each of them is shown, too.
    one_by_one: bool,
    /// Factors in which the cells differ.
    varied: Vec<Factor>,
}

impl CampaignProgress {
    /// A bar on a terminal, else lines.
    pub(crate) fn new(plan: &Plan) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        Self {
            terminal,
            preparation: PreparationProgress::new(),
            bar,
            measuring: AtomicBool::new(false),
            paired: plan.run.order.is_paired(),
            one_by_one: !plan.is_in_slices(),
            varied: Factor::varied(&plan.cells),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.preparation.clear();
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.terminal {
            self.bar.println(printable(text));
        } else {
            note(&format!("{text}\n"));
        }
    }

    /// What a cell has unlike others, as a selector; of a single cell, its workload.
    fn label(&self, cell: &impl Levels) -> String {
        let factors = if self.varied.is_empty() { &[Factor::Workload][..] } else { &self.varied };
        let levels: Vec<String> =
            factors.iter().map(|factor| format!("{}={}", factor.name(), factor.level(cell))).collect();
        levels.join(",")
    }

    fn load(&self, interval: &Interval) {
        let done: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        let tps = done as f64 * 1e6 / interval.width_us.max(1) as f64;
        self.bar.set_prefix(format!("{tps:.0} tps"));
    }
}

impl Observer for CampaignProgress {
    fn on_event(&self, event: &Event) {
        match event {
            // Between trials, data sets are copied.
            Event::Preparing { done, total, .. } if self.measuring.load(Ordering::Relaxed) => {
                if let Some(share) = total.and_then(|total| (done * 100).checked_div(total)) {
                    self.bar.set_prefix(format!("copy {share} %"));
                }
            }
            Event::Preparing { what, done, total } => self.preparation.step(what, *done, *total),
            Event::Notice(text) if self.measuring.load(Ordering::Relaxed) => self.line(text),
            Event::Notice(text) => self.preparation.notice(text),
            Event::TrialBegins {
                trial,
                cell,
                attempt,
                reason,
                of,
                of_at_most,
                remaining,
                remaining_at_most,
                ..
            } => {
                self.measuring.store(true, Ordering::Relaxed);
                self.preparation.clear();
                self.bar.set_style(trial_style());
                self.bar.enable_steady_tick(Duration::from_millis(100));
                self.bar.set_length(*of_at_most as u64);
                self.bar.set_position(u64::from(trial.position) - 1);
                if self.paired && self.one_by_one {
                    self.bar.set_style(trial_of_session_style());
                    let text = format!("session {}: {}", trial.repeat, self.label(*cell));
                    if !self.terminal {
                        self.line(&text);
                    }
                    self.bar.set_message(text);
                    self.bar.set_prefix("");
                    return;
                }
                if self.paired {
                    self.bar.set_style(session_style());
                    if trial.repeat == 1 {
                        self.bar.set_message(format!("first session: {}", self.label(*cell)));
                    }
                    return;
                }
                let place =
                    place(trial.position as usize, (*of, *of_at_most), (*remaining, *remaining_at_most));
                let cell = self.label(*cell);
                self.bar.set_message(format!("{place}: {cell}"));
                self.bar.set_prefix("");
                if !self.terminal {
                    self.line(&format!("trial {place}: {cell}"));
                }
                if let Some(reason) = reason {
                    let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                    self.line(&format!("  {cell}, repeat {}{attempt}: {reason}", trial.repeat));
                }
            }
            // A session is over before a figure could be read.
            Event::Load { side: Some(_), .. } => {}
            Event::Load { interval, .. } => self.load(interval),
            Event::TrialEnded(trial) => {
                let is_shown = !self.paired || self.one_by_one || trial.validity.status != Status::Valid;
                if let Some(text) = ended(trial, &self.label(&trial.cell), self.terminal).filter(|_| is_shown)
                {
                    self.line(&text);
                }
            }
            Event::SessionEnded(state) => {
                let (text, sessions) = match state.bisection {
                    Some(bisection) if bisection.posterior().is_some() => {
                        (bisection::line(bisection, state), bisection.sessions())
                    }
                    _ => (session::line(state, &self.varied), state.sequence.sessions()),
                };
                let is_decided = state.time_left.is_some_and(Span::is_zero);
                let is_tenth = !self.terminal && sessions % SHOWN_SESSIONS == 0;
                if is_decided || self.one_by_one || is_tenth {
                    self.line(&text);
                }
                self.bar.set_message(text);
            }
        }
    }
}

/// A trial's position among the planned trials and, if cells may need more repeats, among all that may run; and the
/// time that remains.
fn place(position: usize, (of, of_at_most): (usize, usize), (left, left_at_most): (Span, Span)) -> String {
    let [left, left_at_most] = [left, left_at_most].map(|left| duration(left.seconds()));
    if of_at_most <= of {
        format!("{position}/{of}, about {left} left")
    } else if position < of {
        format!("{position}/{of} (at most {of_at_most}), about {left} left (at most {left_at_most})")
    } else {
        format!("{position} of at most {of_at_most}, at most {left_at_most} left")
    }
}

/// Line printed for an ended trial; on a terminal, only for trials that need attention. The tables at the end sum up why trials
/// are suspect; why one is invalid, and what to do, is needed at once.
fn ended(trial: &Trial, cell: &str, terminal: bool) -> Option<String> {
    let status = trial.validity.status;
    if terminal && status == Status::Valid {
        return None;
    }
    let merit = Merit::of(&trial.cell);
    let figure = trial.summary.as_ref().map(|summary| match (merit, merit.value(summary)) {
        (_, None) => format!("no {}", merit.as_str()),
        (Merit::Throughput | Merit::Blocks | Merit::NewOrders, Some(tps)) => {
            format!("{} tps", figures::tps(tps))
        }
        (Merit::Latency, Some(us)) => format!("p99 {} ms", figures::tps(us / 1e3)),
        (Merit::Length, Some(us)) => format!("{} s each", figures::tps(us / 1e6)),
        (Merit::Instructions, Some(n)) => format!("{} instructions each", figures::tps(n)),
    });
    let figure = figure.unwrap_or_else(|| "no load".to_owned());
    if status == Status::Valid {
        return Some(format!("  {figure}"));
    }
    let findings = trial.validity.findings.iter().filter(|finding| finding.status != Status::Valid);
    let reasons: Vec<&str> = findings
        .map(|finding| match status {
            // The rest of several lines, such as a build's output, is in the bundle.
            Status::Invalid => finding.evidence.lines().next().unwrap_or_default(),
            _ => &finding.gate,
        })
        .collect();
    let separator = if status == Status::Invalid { "; " } else { ", " };
    Some(format!("  {} ({figure}) {cell}: {}", status.as_str(), reasons.join(separator)))
}

/// The template is a constant; an invalid one would fall back to indicatif's default.
fn trial_style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} [{bar:20}] {prefix:>10} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A trial of a session, whose load is shown.
fn trial_of_session_style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {prefix:>10} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// How many sessions there will be is not known.
fn session_style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_that_may_follow_are_part_of_the_number_and_the_time() {
        let [none, minute, hour] = [0, 60, 3600].map(|s| Span::from_us(s * 1_000_000));
        let (short, long) = (duration(60.0), duration(3600.0));
        assert_eq!(place(12, (60, 60), (minute, minute)), format!("12/60, about {short} left"));
        assert_eq!(
            place(12, (60, 120), (minute, hour)),
            format!("12/60 (at most 120), about {short} left (at most {long})")
        );
        assert_eq!(place(61, (61, 120), (none, hour)), format!("61 of at most 120, at most {long} left"));
    }
}
