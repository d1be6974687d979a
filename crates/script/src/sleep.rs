//! `\sleep`.

use std::time::Duration;

use crate::{EvalError, Slot, Value, Variables};

/// Duration of a `\sleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleep {
    /// Number of units.
    pub amount: Amount,
    /// The unit.
    pub unit: TimeUnit,
}

/// A number in the script, or a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Literal(i64),
    /// A variable, whose text must begin with an integer.
    Variable(Slot),
}

/// The units of `\sleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`, and when no unit is given.
    Seconds,
}

impl TimeUnit {
    /// The unit of this name, in any case.
    pub(crate) fn from_name(name: &str) -> Option<TimeUnit> {
        [("us", TimeUnit::Microseconds), ("ms", TimeUnit::Milliseconds), ("s", TimeUnit::Seconds)]
            .into_iter()
            .find_map(|(known, unit)| known.eq_ignore_ascii_case(name).then_some(unit))
    }

    fn times(self, amount: u64) -> Duration {
        match self {
            TimeUnit::Microseconds => Duration::from_micros(amount),
            TimeUnit::Milliseconds => Duration::from_millis(amount),
            TimeUnit::Seconds => Duration::from_secs(amount),
        }
    }
}

impl Sleep {
    /// Returns the time to wait with one client's variables. A negative amount is no time. Of a variable's text only
    /// the leading integer counts, so 1.5 is 1.
    ///
    /// # Errors
    ///
    /// When the variable is undefined, or does not begin with an integer.
    pub fn duration(&self, variables: &Variables) -> Result<Duration, EvalError> {
        let amount = match self.amount {
            Amount::Literal(amount) => amount,
            Amount::Variable(slot) => variable(slot, variables)?,
        };
        Ok(self.unit.times(u64::try_from(amount).unwrap_or(0)))
    }
}

fn variable(slot: Slot, variables: &Variables) -> Result<i64, EvalError> {
    if let Some(Value::Int(amount)) = variables.value(slot) {
        return Ok(amount);
    }
    let name = || variables.names().name(slot).to_owned();
    let mut text = Vec::new();
    if variables.write_text(slot, &mut text).is_err() {
        return Err(EvalError::UndefinedIn { command: "sleep".to_owned(), name: name() });
    }
    let amount = leading_int(&text);
    // pgbench's rule, which accepts " 5" but not " 0".
    if amount == 0 && !text.first().is_some_and(u8::is_ascii_digit) {
        let text = String::from_utf8_lossy(&text).into_owned();
        return Err(EvalError::InvalidSleep { text, name: name() });
    }
    Ok(amount)
}

/// The leading integer of a text, after blanks, as C's `atoi` parses it, limited to the range of 64 bits; 0 when there
/// is none.
pub(crate) fn leading_int(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0_i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        let value = value.saturating_mul(10);
        if negative { value.saturating_sub(digit) } else { value.saturating_add(digit) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;

    fn variable_duration(set: impl FnOnce(&mut Variables, Slot)) -> Result<Duration, String> {
        let mut names = Names::default();
        let slot = names.slot("x").unwrap();
        let mut variables = Variables::new(&names);
        set(&mut variables, slot);
        Sleep { amount: Amount::Variable(slot), unit: TimeUnit::Milliseconds }
            .duration(&variables)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn variables_begin_with_an_integer() {
        for (value, ms) in [
            (Value::Int(7), 7),
            (Value::Double(1.5), 1),
            (Value::Int(-7), 0),
            (Value::Int(i64::MAX), i64::MAX as u64),
        ] {
            assert_eq!(
                variable_duration(|variables, slot| variables.set(slot, value).unwrap()),
                Ok(Duration::from_millis(ms))
            );
        }
        for (text, ms) in [("12abc", 12), (" 5", 5), ("0", 0), ("99999999999999999999", i64::MAX as u64)] {
            assert_eq!(
                variable_duration(|variables, slot| variables.set_text(slot, text).unwrap()),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for text in ["", "abc", " 0", "-0", "+"] {
            assert_eq!(
                variable_duration(|variables, slot| variables.set_text(slot, text).unwrap()),
                Err(format!("sleep: invalid sleep time \"{text}\" for variable \"x\""))
            );
        }
        assert_eq!(
            variable_duration(|variables, slot| variables.set(slot, Value::Null).unwrap()),
            Err("sleep: invalid sleep time \"NULL\" for variable \"x\"".to_owned())
        );
        assert_eq!(variable_duration(|_, _| ()), Err("sleep: undefined variable \"x\"".to_owned()));
    }
}
