//! Numbers as the C library reads them, which is how pgbench reads its options.

use crate::message::Fatal;

/// The value of an option that takes an integer within bounds.
pub(crate) fn parse_integer(value: &str, option: &str, min: i32, max: i32) -> Result<u32, Fatal> {
    let out_of_range = || Fatal::new(format_args!("{option} must be in range {min}..{max}"));
    let (number, rest) = match leading_integer(value) {
        Some(found) => found,
        None => (Some(0), value),
    };
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(Fatal::new(format_args!("invalid value \"{value}\" for option {option}")));
    }
    match number.and_then(|number| i32::try_from(number).ok()) {
        Some(number) if (min..=max).contains(&number) => Ok(number.unsigned_abs()),
        _ => Err(out_of_range()),
    }
}

/// The integer at the start of a text (None beyond 64 bits) and the rest; None if the text starts otherwise (`strtol`).
pub(crate) fn leading_integer(text: &str) -> Option<(Option<i64>, &str)> {
    let text = text.trim_start_matches(is_space);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let end = text.len() - digits.len() + count;
    (count > 0).then(|| (text[..end].parse().ok(), &text[end..]))
}

/// The number at the start of a text, 0 if it starts otherwise (`atof`).
pub(crate) fn leading_double(text: &str) -> f64 {
    let text = text.trim_start_matches(is_space);
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(text.starts_with(['+', '-']));
    let mut end = sign + digits(sign);
    let mut any = end - sign;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        any += fraction;
        end += 1 + fraction;
    }
    if any == 0 {
        return 0.0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(signed..).map_or(0, |_| digits(signed));
        if exponent > 0 {
            end = signed + exponent;
        }
    }
    text[..end].parse().unwrap_or(0.0)
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\x0B' | '\x0C' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_may_be_surrounded_by_spaces_only() {
        let read = |value| parse_integer(value, "-c/--client", 1, i32::MAX);
        assert_eq!(read(" +3 "), Ok(3));
        let error = |value| format!("{:?}", read(value).unwrap_err());
        for value in ["three", "3x", "-", "3 4"] {
            assert!(error(value).contains("invalid value"), "{value}");
        }
        for value in ["", "0", "-1", "2147483648", "99999999999999999999"] {
            assert!(error(value).contains("-c/--client must be in range 1..2147483647"), "{value}");
        }
    }

    #[test]
    fn the_leading_double_is_parsed() {
        let cases = [
            ("100", 100.0),
            (" -1.5e2x", -150.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("", 0.0),
            (".", 0.0),
            ("x", 0.0),
        ];
        for (text, value) in cases {
            assert_eq!(leading_double(text), value, "{text}");
        }
    }
}
