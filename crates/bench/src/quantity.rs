//! Quantities in the syntax of the command line: `30s`, `400/s`, `10s:100..500`, `10ms..50ms`, `40001=retry`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use driver::{OnError, Stage, Think};
use model::units::Span;

/// A text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a duration.
    #[error(
        "`{0}` is not a duration: expected a value such as 30s, 500ms, 5min or 1min30s; a number without a unit is seconds"
    )]
    Duration(String),
    /// A duration of zero.
    #[error("must be greater than zero")]
    ZeroDuration,
    /// An interval too short to merge histograms in.
    #[error("must be at least 1ms")]
    ShortInterval,
    /// Not a rate.
    #[error("`{0}` is not a rate: expected transactions per second, such as 400/s or 400")]
    Rate(String),
    /// A rate of zero.
    #[error("must be greater than zero; for a pause within a schedule use `--stage 5s:0`")]
    ZeroRate,
    /// Not a stage of a schedule.
    #[error("`{0}` is not a stage: expected LENGTH:RATE or LENGTH:FROM..TO, such as 10s:100..500")]
    Stage(String),
    /// A stage with an invalid length or rate.
    #[error("`{0}` is not a stage: expected LENGTH:RATE or LENGTH:FROM..TO, such as 10s:100..500; {1}")]
    StagePart(String, Box<QuantityError>),
    /// A range of durations from a longer to a shorter one.
    #[error("`{0}` is not a range: the first duration is longer than the second")]
    Reversed(String),
    /// Not a spacing of arrivals.
    #[error("`{0}` is not a spacing of arrivals: expected poisson, uniform or file:PATH")]
    Spacing(String),
    /// Not a rule for errors.
    #[error(
        "`{0}` is not a rule: expected STATE=ACTION; STATE is a SQLSTATE such as 40001, the beginning of one such as 40, or \
         * for all others; ACTION is retry, count, reconnect or abort"
    )]
    ErrorRule(String),
    /// Not a weight of a script.
    #[error("`{0}` is not a weight: expected an integer")]
    Weight(String),
    /// An empty name of a script.
    #[error("the name of the script is empty")]
    EmptyName,
    /// Not a variable with a value.
    #[error(
        "`{0}` is not a variable: expected NAME=VALUE, NAME of letters, digits and _, not starting with a digit"
    )]
    Define(String),
}

/// A duration: `30s`, `500ms`, `1min30s`; a plain number is seconds.
///
/// # Errors
/// The text is not a duration.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let invalid = || QuantityError::Duration(text.to_owned());
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| invalid());
    }
    let mut whole = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_alphabetic()).ok_or_else(invalid)?;
        let length = rest[unit..].find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len() - unit);
        let name = match rest[unit..unit + length].trim() {
            "m" => "min",
            "µs" => "us",
            name => name,
        };
        let span: Span = format!("{}{name}", rest[..unit].trim()).parse().map_err(|_| invalid())?;
        whole += span.duration();
        rest = rest[unit + length..].trim_start();
    }
    if text.is_empty() { Err(invalid()) } else { Ok(whole) }
}

/// A [`duration`] above zero.
///
/// # Errors
/// The text is not a duration, or the duration is zero.
pub fn positive_duration(text: &str) -> Result<Duration, QuantityError> {
    match duration(text)? {
        Duration::ZERO => Err(QuantityError::ZeroDuration),
        duration => Ok(duration),
    }
}

/// A [`duration`] of at least a millisecond: the driver would only merge the histograms of shorter intervals.
///
/// # Errors
/// The text is not a duration, or it is too short.
pub fn interval(text: &str) -> Result<Duration, QuantityError> {
    match duration(text)? {
        short if short < Duration::from_millis(1) => Err(QuantityError::ShortInterval),
        interval => Ok(interval),
    }
}

/// A rate in transactions per second: `400/s`, `400`, `24000/min`.
pub(crate) fn rate(text: &str) -> Result<f64, QuantityError> {
    let invalid = || QuantityError::Rate(text.to_owned());
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match unit.trim() {
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(invalid()),
    };
    let number: f64 = number.trim().parse().map_err(|_| invalid())?;
    let rate = number / seconds;
    // The clock resolves at most one per nanosecond.
    if rate.is_finite() && (0.0..=1e9).contains(&rate) { Ok(rate) } else { Err(invalid()) }
}

/// A rate in transactions per second above zero: `400/s`, `400`, `24000/min`.
///
/// # Errors
/// The text is not a rate, or the rate is zero.
pub fn positive_rate(text: &str) -> Result<f64, QuantityError> {
    match rate(text)? {
        0.0 => Err(QuantityError::ZeroRate),
        rate => Ok(rate),
    }
}

/// A part of a schedule: `10s:200` at a rate, `10s:100..500` from one rate to another.
///
/// # Errors
/// The text is not a stage.
pub fn stage(text: &str) -> Result<Stage, QuantityError> {
    let in_stage = |error| QuantityError::StagePart(text.to_owned(), Box::new(error));
    let (length, rates) = text.split_once(':').ok_or_else(|| QuantityError::Stage(text.to_owned()))?;
    let length = positive_duration(length).map_err(in_stage)?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    Ok(Stage { length, from: rate(from).map_err(in_stage)?, to: rate(to).map_err(in_stage)? })
}

/// A pause between two transactions: `10ms`, or of random length, `10ms..50ms`.
///
/// # Errors
/// The text is neither.
pub fn think_time(text: &str) -> Result<Think, QuantityError> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let (min, max) = (duration(min)?, duration(max)?);
    if min > max {
        return Err(QuantityError::Reversed(text.to_owned()));
    }
    Ok(Think { min, max })
}

/// Spacing of the arrivals of an open loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Random, as from many independent users.
    Poisson,
    /// Evenly.
    Uniform,
    /// At the times in a file.
    File(PathBuf),
}

impl FromStr for Spacing {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match (text, text.strip_prefix("file:")) {
            ("poisson", _) => Ok(Self::Poisson),
            ("uniform", _) => Ok(Self::Uniform),
            (_, Some(path)) => Ok(Self::File(path.into())),
            _ => Err(QuantityError::Spacing(text.to_owned())),
        }
    }
}

/// The action for a SQLSTATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorRule {
    /// The SQLSTATE, or the beginning of one; empty for any.
    pub sqlstate: String,
    /// The action.
    pub action: OnError,
}

impl FromStr for ErrorRule {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let invalid = || QuantityError::ErrorRule(text.to_owned());
        let (state, action) = text.split_once('=').ok_or_else(invalid)?;
        let action = match action.trim() {
            "retry" => OnError::Retry,
            "count" => OnError::Count,
            "reconnect" => OnError::Reconnect,
            "abort" => OnError::Abort,
            _ => return Err(invalid()),
        };
        let state = state.trim().to_ascii_uppercase();
        let sqlstate = match state.as_str() {
            "*" => String::new(),
            state
                if !state.is_empty()
                    && state.len() <= 5
                    && state.bytes().all(|b| b.is_ascii_alphanumeric()) =>
            {
                state.to_owned()
            }
            _ => return Err(invalid()),
        };
        Ok(Self { sqlstate, action })
    }
}

/// The name of a script and its weight: `name`, `name@3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedName {
    /// A file's path or the name of a built-in script.
    pub name: String,
    /// How often it is chosen, relative to the others.
    pub weight: u64,
}

impl FromStr for WeightedName {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match text.rsplit_once('@') {
            Some((name, weight)) if !name.is_empty() && weight.bytes().all(|b| b.is_ascii_digit()) => {
                // pgbench's weights have 32 bits.
                let weight: u32 = weight.parse().map_err(|_| QuantityError::Weight(weight.to_owned()))?;
                Ok(Self { name: name.to_owned(), weight: u64::from(weight) })
            }
            _ if text.is_empty() => Err(QuantityError::EmptyName),
            _ => Ok(Self { name: text.to_owned(), weight: 1 }),
        }
    }
}

/// A variable and its value: `name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl FromStr for Define {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match text.split_once('=') {
            Some((name, value)) if script::is_valid_variable_name(name) => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err(QuantityError::Define(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_seconds() {
        let ms = |text: &str| duration(text).map(|duration| duration.as_millis());
        assert_eq!(
            ["30s", "500ms", "2", "0.25", "1min30s", "1m", "1h"].map(|t| ms(t).unwrap()),
            [30_000, 500, 2_000, 250, 90_000, 60_000, 3_600_000]
        );
        assert_eq!(duration("250µs"), Ok(Duration::from_micros(250)));
        for wrong in ["", "s", "-1", "5 parsecs", "1s2", "nan", "1e300"] {
            assert!(ms(wrong).unwrap_err().to_string().contains("500ms"), "{wrong}");
        }
        assert_eq!(positive_duration("0"), Err(QuantityError::ZeroDuration));
        assert_eq!(interval("999us"), Err(QuantityError::ShortInterval));
    }

    #[test]
    fn rates_are_per_second_by_default() {
        assert_eq!(
            ["400/s", "400", "24000/min", "0"].map(|text| rate(text).unwrap()),
            [400.0, 400.0, 400.0, 0.0]
        );
        for wrong in ["", "-1", "400/fortnight", "inf", "400tps"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert!(positive_rate("0").unwrap_err().to_string().contains("--stage"));
    }

    #[test]
    fn stages_are_constant_or_ramps() {
        let expected = |seconds, from, to| Ok(Stage { length: Duration::from_secs(seconds), from, to });
        assert_eq!(stage("10s:200"), expected(10, 200.0, 200.0));
        assert_eq!(stage("10s:100..500/s"), expected(10, 100.0, 500.0));
        assert_eq!(stage("5:0"), expected(5, 0.0, 0.0));
        for wrong in ["10s", "0s:5", "10s:a..b", ":5"] {
            assert!(stage(wrong).unwrap_err().to_string().contains("10s:100..500"), "{wrong}");
        }
    }

    #[test]
    fn error_rules_match_a_state_a_class_or_all() {
        let rule = |text: &str| text.parse::<ErrorRule>().map(|rule| (rule.sqlstate, rule.action));
        assert_eq!(rule("40001=retry"), Ok(("40001".to_owned(), OnError::Retry)));
        assert_eq!(rule("40p=abort"), Ok(("40P".to_owned(), OnError::Abort)));
        assert_eq!(rule("*=count"), Ok((String::new(), OnError::Count)));
        for wrong in ["40001", "=retry", "400001=retry", "40001=ignore", "4*=count"] {
            assert!(rule(wrong).unwrap_err().to_string().contains("reconnect"), "{wrong}");
        }
    }

    #[test]
    fn a_weight_follows_the_last_at_sign() {
        let weighted = |text: &str| text.parse::<WeightedName>().map(|w| (w.name, w.weight));
        assert_eq!(weighted("a.sql@3"), Ok(("a.sql".to_owned(), 3)));
        assert_eq!(weighted("me@home.sql"), Ok(("me@home.sql".to_owned(), 1)));
        assert!(weighted("a@99999999999").is_err());
    }
}
