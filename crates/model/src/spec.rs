//! A campaign as it is written: a TOML file, read strictly, with the place of every value kept for error messages.
//!
//! ```toml
//! name = "upgrade"
//!
//! [factors]                      # each list is an axis; the cells are their product
//! server   = ["14", "18"]
//! settings = ["default", "big"]
//! workload = ["select-only", "tpcb-like"]
//! scale    = [10]
//! clients  = [1, 2, 4, 8]
//!
//! [run]
//! duration = "30s"
//! repeats  = 5
//!
//! [settings.big]                 # a named set of server settings
//! shared_buffers = "2GB"
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::units::Span;

/// A campaign file as written. [`crate::plan::Plan::of`] checks it and makes cells and trials of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// Short name: letters, digits, `-`, `_` and `.`.
    pub name: Spanned<String>,
    /// What the campaign is to find out, for people.
    pub description: Option<String>,
    /// The axes.
    pub factors: Factors,
    /// How each trial runs, and how many of them.
    #[serde(default)]
    pub run: Run,
    /// Named sets of server settings, for the factor `settings`.
    #[serde(default)]
    pub settings: BTreeMap<Spanned<String>, BTreeMap<String, Spanned<toml::Value>>>,
}

/// The axes of a campaign. Each is a list of levels; a factor left out has its single default level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factors {
    /// PostgreSQL versions: a major (`"18"`) or a full version (`"16.4"`).
    pub server: Levels<String>,
    /// Names of `[settings.…]` tables; `"default"` is the server as it comes.
    pub settings: Option<Levels<String>>,
    /// Built-in scripts by pgbench's names.
    pub workload: Levels<String>,
    /// pgbench scale factors; 1 is 100,000 accounts, about 16 MB.
    pub scale: Option<Levels<i64>>,
    /// Numbers of clients.
    pub clients: Levels<i64>,
    /// `simple`, `extended`, `prepared`.
    pub protocol: Option<Levels<String>>,
    /// `unix`, `tcp`.
    pub transport: Option<Levels<String>>,
}

/// The levels of one factor, each with its place in the file.
pub type Levels<T> = Spanned<Vec<Spanned<T>>>;

/// How trials run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Length of the measured window (default 10s).
    pub duration: Option<Spanned<Span>>,
    /// Load before the window, not counted (default a tenth of the duration).
    pub warmup: Option<Spanned<Span>>,
    /// Trials of each cell (default 3).
    pub repeats: Option<Spanned<i64>>,
    /// Order of the trials (default `randomised-blocks`).
    pub order: Option<Spanned<String>>,
    /// Seed of the order and of the scripts' random numbers; drawn and recorded where it is left out.
    pub seed: Option<Spanned<i64>>,
    /// Threads of the driver (default 1; never more than clients).
    pub threads: Option<Spanned<i64>>,
}

/// Why a campaign can't be used, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// What is wrong.
    pub message: String,
    /// Bytes of the campaign's text that are to blame; none where it is the whole file.
    pub at: Option<Range<usize>>,
    /// What was expected, or what to do.
    pub help: Option<String>,
}

impl SpecError {
    /// An error at a value's place.
    pub fn at<T>(place: &Spanned<T>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), at: Some(place.span()), help: Some(help.into()) }
    }
}

impl Campaign {
    /// Reads a campaign's text.
    ///
    /// # Errors
    /// Malformed TOML, an unknown key, a missing one or a wrong type, with its place.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        toml::from_str(text).map_err(|error| {
            let (message, help) = split_expectation(error.message());
            SpecError { message, at: error.span(), help }
        })
    }
}

/// Parts "what is wrong, expected …" at the comma, so that the expectation is shown as help.
fn split_expectation(message: &str) -> (String, Option<String>) {
    let message = message.trim_end();
    match message.split_once(", expected ") {
        Some((what, "a sequence")) => (what.to_owned(), Some("expected a list in [brackets]".to_owned())),
        Some((what, expected)) => (what.to_owned(), Some(format!("expected {expected}"))),
        None => (message.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n";

    fn refused(text: &str) -> (SpecError, String) {
        let error = Campaign::parse(text).unwrap_err();
        let at = text[error.at.clone().unwrap()].to_owned();
        (error, at)
    }

    #[test]
    fn the_least_campaign_is_read() {
        let campaign = Campaign::parse(GOOD).unwrap();
        assert_eq!(campaign.factors.clients.get_ref().len(), 2);
    }

    #[test]
    fn an_unknown_key_is_shown_with_the_known_ones() {
        let (error, at) = refused(&GOOD.replace("clients", "client"));
        assert_eq!(at, "client");
        assert_eq!(error.message, "unknown field `client`");
        assert!(error.help.unwrap().contains("`clients`"));
    }

    #[test]
    fn a_wrong_type_is_shown_at_its_value() {
        let (error, at) = refused(&GOOD.replace("[1, 2]", "[1, 'two']"));
        assert_eq!(at, "'two'");
        assert!(error.message.contains("string \"two\""), "{error}");
        let (error, at) = refused(&GOOD.replace("[1, 2]", "8"));
        assert_eq!(at, "8");
        assert!(error.help.unwrap_or_default().contains("a list"));
    }

    #[test]
    fn a_duration_needs_its_unit() {
        let (error, at) = refused(&format!("{GOOD}[run]\nduration = '5'\n"));
        assert_eq!(at, "'5'");
        assert!(error.to_string().contains("`5` is not a duration"));
    }

    #[test]
    fn malformed_toml_has_a_place() {
        let (_, at) = refused("name = 'n'\n[factors\n");
        assert!(at.trim().is_empty(), "{at:?}");
    }
}
