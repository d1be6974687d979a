//! The page in a browser, by `web/bench/report.mjs`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(crate) struct Browser<'a> {
    pub(crate) web: &'a Path,
    pub(crate) chromium: &'a Path,
    pub(crate) rounds: u32,
}

/// Medians of the rounds.
#[derive(Debug, Deserialize)]
pub(crate) struct OpenTimes {
    pub(crate) first_chart_s: f64,
    /// None if the page shows no trial in detail.
    pub(crate) trial_s: Option<f64>,
}

/// Medians of the rounds; None if the page has no timeline.
#[derive(Debug, Deserialize)]
pub(crate) struct PanFigures {
    pub(crate) points: Option<u64>,
    pub(crate) frames_per_s: Option<f64>,
    pub(crate) longest_frame_s: Option<f64>,
}

impl Browser<'_> {
    /// Opens the page, and from its overview a trial.
    pub(crate) fn open(&self, url: &str, trial: &str) -> Result<OpenTimes> {
        self.run("open", url, trial)
    }

    /// Pans the timeline of a trial.
    pub(crate) fn pan(&self, url: &str, trial: &str) -> Result<PanFigures> {
        self.run("pan", url, trial)
    }

    fn run<T: DeserializeOwned>(&self, what: &str, url: &str, trial: &str) -> Result<T> {
        let output = Command::new("node")
            .arg(self.web.join("bench/report.mjs"))
            .args([what, url, trial, &self.rounds.to_string()])
            .arg(self.chromium)
            .stderr(Stdio::inherit())
            .output()
            .context("could not start node")?;
        if !output.status.success() {
            bail!("the browser could not {what} {url}");
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(stdout.trim()).with_context(|| format!("invalid output of report.mjs: {stdout}"))
    }
}
