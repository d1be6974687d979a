//! Quantities as the command line writes them: `30s`, `400/s`, `10s:100..500`, `10ms..50ms`, `40001=retry`.

use std::str::FromStr;
use std::time::Duration;

use driver::{OnError, Stage, Think};
use model::units::Span;

/// A length of time: `30s`, `500ms`, `1min30s`; a plain number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let refuse = || {
        format!(
            "`{text}` is not a duration: expected such as 30s, 500ms, 5min or 1min30s; a plain number is seconds"
        )
    };
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| refuse());
    }
    let mut whole = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_alphabetic()).ok_or_else(refuse)?;
        let length = rest[unit..].find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len() - unit);
        let name = match rest[unit..unit + length].trim() {
            "m" => "min",
            "µs" => "us",
            name => name,
        };
        let span: Span = format!("{}{name}", rest[..unit].trim()).parse().map_err(|_| refuse())?;
        whole += span.duration();
        rest = rest[unit + length..].trim_start();
    }
    if text.is_empty() { Err(refuse()) } else { Ok(whole) }
}

/// As [`duration`], and not nothing.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it has to be more than nothing".to_owned()),
        duration => Ok(duration),
    }
}

/// Transactions a second: `400/s`, `400`, `24000/min`.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let refuse = || format!("`{text}` is not a rate: expected transactions a second, such as 400/s or 400");
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match unit.trim() {
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(refuse()),
    };
    let number: f64 = number.trim().parse().map_err(|_| refuse())?;
    let rate = number / seconds;
    // One a nanosecond is more than the clock tells apart.
    if rate.is_finite() && (0.0..=1e9).contains(&rate) { Ok(rate) } else { Err(refuse()) }
}

/// As [`rate`], and not nothing.
pub(super) fn some_rate(text: &str) -> Result<f64, String> {
    match rate(text)? {
        0.0 => Err("it has to be more than nothing; a pause within a schedule is `--stage 5s:0`".to_owned()),
        rate => Ok(rate),
    }
}

/// A part of the schedule: `10s:200` at a rate, `10s:100..500` from one rate to another.
pub(super) fn stage(text: &str) -> Result<Stage, String> {
    let refuse =
        || format!("`{text}` is not a stage: expected LENGTH:RATE or LENGTH:FROM..TO, such as 10s:100..500");
    let (length, rates) = text.split_once(':').ok_or_else(refuse)?;
    let length = some_time(length).map_err(|why| format!("{}; {why}", refuse()))?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    let rate = |text| rate(text).map_err(|why| format!("{}; {why}", refuse()));
    Ok(Stage { length, from: rate(from)?, to: rate(to)? })
}

/// A pause: `10ms`, or of random length: `10ms..50ms`.
pub(super) fn think(text: &str) -> Result<Think, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (least, most) = (duration(least)?, duration(most)?);
    if least > most {
        return Err(format!("`{text}` ends before it begins"));
    }
    Ok(Think { least, most })
}

/// What to do about a SQLSTATE (or the beginning of one; empty for any).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorRule {
    pub(super) sqlstate: String,
    pub(super) action: OnError,
}

impl FromStr for ErrorRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "`{text}` is not a rule: expected STATE=ACTION; STATE is a SQLSTATE such as 40001, the beginning of one \
                 such as 40, or * for all others; ACTION is retry, count, reconnect or abort"
            )
        };
        let (state, action) = text.split_once('=').ok_or_else(refuse)?;
        let action = match action.trim() {
            "retry" => OnError::Retry,
            "count" => OnError::Count,
            "reconnect" => OnError::Reconnect,
            "abort" => OnError::Abort,
            _ => return Err(refuse()),
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
            _ => return Err(refuse()),
        };
        Ok(Self { sqlstate, action })
    }
}

/// A script and its weight: `name`, `name@3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Weighted {
    pub(super) name: String,
    pub(super) weight: u64,
}

impl FromStr for Weighted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once('@') {
            Some((name, weight)) if !name.is_empty() && weight.bytes().all(|b| b.is_ascii_digit()) => {
                // As with pgbench, whose weights are 32 bits wide.
                let weight: u32 = weight
                    .parse()
                    .map_err(|_| format!("`{weight}` is not a weight: expected a whole number"))?;
                Ok(Self { name: name.to_owned(), weight: u64::from(weight) })
            }
            _ if text.is_empty() => Err("a script has a name".to_owned()),
            _ => Ok(Self { name: text.to_owned(), weight: 1 }),
        }
    }
}

/// A variable and its value: `name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Define {
    pub(super) name: String,
    pub(super) value: String,
}

impl FromStr for Define {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if script::is_valid_variable_name(name) => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err(format!(
                "`{text}` is no variable: expected NAME=VALUE, NAME of letters, digits and _, not beginning with a digit"
            )),
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
            assert!(ms(wrong).unwrap_err().contains("500ms"), "{wrong}");
        }
        assert!(some_time("0").is_err());
    }

    #[test]
    fn rates_are_by_the_second_unless_said_otherwise() {
        assert_eq!(
            ["400/s", "400", "24000/min", "0"].map(|text| rate(text).unwrap()),
            [400.0, 400.0, 400.0, 0.0]
        );
        for wrong in ["", "-1", "400/fortnight", "inf", "400tps"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert!(some_rate("0").unwrap_err().contains("--stage"));
    }

    #[test]
    fn stages_are_constant_or_go_from_one_rate_to_another() {
        let of = |seconds, from, to| Ok(Stage { length: Duration::from_secs(seconds), from, to });
        assert_eq!(stage("10s:200"), of(10, 200.0, 200.0));
        assert_eq!(stage("10s:100..500/s"), of(10, 100.0, 500.0));
        assert_eq!(stage("5:0"), of(5, 0.0, 0.0));
        for wrong in ["10s", "0s:5", "10s:a..b", ":5"] {
            assert!(stage(wrong).unwrap_err().contains("10s:100..500"), "{wrong}");
        }
    }

    #[test]
    fn error_rules_are_by_state_class_or_for_all() {
        let rule = |text: &str| text.parse::<ErrorRule>().map(|rule| (rule.sqlstate, rule.action));
        assert_eq!(rule("40001=retry"), Ok(("40001".to_owned(), OnError::Retry)));
        assert_eq!(rule("40p=abort"), Ok(("40P".to_owned(), OnError::Abort)));
        assert_eq!(rule("*=count"), Ok((String::new(), OnError::Count)));
        for wrong in ["40001", "=retry", "400001=retry", "40001=ignore", "4*=count"] {
            assert!(rule(wrong).unwrap_err().contains("reconnect"), "{wrong}");
        }
    }

    #[test]
    fn a_weight_is_what_is_behind_the_last_at_if_it_is_a_number() {
        let weighted = |text: &str| text.parse::<Weighted>().map(|w| (w.name, w.weight));
        assert_eq!(weighted("a.sql@3"), Ok(("a.sql".to_owned(), 3)));
        assert_eq!(weighted("me@home.sql"), Ok(("me@home.sql".to_owned(), 1)));
        assert!(weighted("a@99999999999").is_err());
    }
}
