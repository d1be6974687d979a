//! Numbers as text, in pgbench's forms: how they are written into statements and read from scripts and options.

use std::fmt::{self, Write};

/// Errors of parsing an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntError {
    /// Something other than a sign and digits.
    Syntax,
    /// More than 64 bits.
    Range,
}

/// Parses `[+-]digits`.
pub(crate) fn parse_int(text: &str) -> Result<i64, IntError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(IntError::Syntax);
    }
    text.parse().map_err(|_| IntError::Range)
}

/// Parses a double as C's `strtod` does in the C locale; `None` when the text is not a double or is outside the range
/// or the precision of normal doubles.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let value = parse_hexadecimal(hex)?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let value: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let named = !text.bytes().any(|byte| byte.is_ascii_digit());
    let zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (named || zero || value.is_normal()).then_some(value)
}

/// Parses `digits[.digits][p[+-]digits]` after `0x`; the exponent is of base 2, in decimal digits.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => match parse_int(exponent) {
            Ok(exponent) => (mantissa, exponent),
            // Beyond all doubles: the exact exponent does not matter.
            Err(IntError::Range) => (mantissa, if exponent.starts_with('-') { i64::MIN } else { i64::MAX }),
            Err(IntError::Syntax) => return None,
        },
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The first 64 bits; of the rest only whether any is set, which is all that rounding needs.
    let mut bits = 0_u64;
    let mut scale = 0_i64;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if bits.leading_zeros() >= 4 {
            bits = bits << 4 | digit;
        } else {
            bits |= u64::from(digit != 0);
            scale += 4;
        }
    }
    if bits == 0 {
        return Some(0.0);
    }
    let scale = exponent.saturating_add(scale).saturating_sub(4 * fraction.len() as i64);
    let value = scaled(bits as f64, scale);
    let exact =
        || (bits as f64) as u128 == u128::from(bits) && scaled(value, scale.saturating_neg()) == bits as f64;
    (value.is_normal() || (value.is_subnormal() && exact())).then_some(value)
}

/// `value` times a power of 2. Rounds once at most, for a value of at least 1.
fn scaled(mut value: f64, power: i64) -> f64 {
    let mut rest = power.clamp(-4000, 4000) as i32;
    while rest != 0 {
        let step = rest.clamp(-1000, 1000);
        value *= 2_f64.powi(step);
        rest -= step;
    }
    value
}

/// Appends an integer.
pub(crate) fn write_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a double as PostgreSQL's `%.15g` does: 15 significant digits without trailing zeros, with an exponent when
/// it is below -4 or above 14.
pub(crate) fn write_double(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"Infinity");
        return;
    }
    let (digits, exponent) = significant_digits(value.abs());
    let kept = 1 + digits.iter().rposition(|digit| *digit != b'0').unwrap_or(0);
    let digits = &digits[..kept];
    match exponent {
        0..SIGNIFICANT => {
            let whole = exponent as usize + 1;
            out.extend_from_slice(&digits[..kept.min(whole)]);
            out.resize(out.len() + whole.saturating_sub(kept), b'0');
            if kept > whole {
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
        }
        -4..0 => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exponent - 1) as usize, b'0');
            out.extend_from_slice(digits);
        }
        _ => {
            out.push(digits[0]);
            if kept > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            if exponent.abs() < 10 {
                out.push(b'0');
            }
            write_int(i64::from(exponent.abs()), out);
        }
    }
}

/// C's `DBL_DIG`.
const SIGNIFICANT: i32 = 15;

/// The first 15 decimal digits of a finite number, rounded, and the exponent of the first one.
fn significant_digits(value: f64) -> ([u8; SIGNIFICANT as usize], i32) {
    let mut text = Scratch { bytes: [0; 32], length: 0 };
    // "d.dddddddddddddde-ddd" always fits.
    let _ = write!(text, "{value:.14e}");
    let mut digits = [b'0'; SIGNIFICANT as usize];
    let mut exponent = 0;
    let mut negative = false;
    let mut at = 0;
    let mut in_exponent = false;
    for byte in &text.bytes[..text.length] {
        match byte {
            b'e' => in_exponent = true,
            b'-' => negative = true,
            b'0'..=b'9' if in_exponent => exponent = exponent * 10 + i32::from(byte - b'0'),
            b'0'..=b'9' if at < digits.len() => {
                digits[at] = *byte;
                at += 1;
            }
            _ => {}
        }
    }
    (digits, if negative { -exponent } else { exponent })
}

/// Stack buffer for one formatted number.
struct Scratch {
    bytes: [u8; 32],
    length: usize,
}

impl Write for Scratch {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> String {
        let mut out = Vec::new();
        write_int(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        write_double(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_are_written_as_by_to_string() {
        for value in [0, 7, -7, 10, i64::MAX, i64::MIN] {
            assert_eq!(int(value), value.to_string());
        }
    }

    #[test]
    fn doubles_are_written_as_by_printf_g() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (100_000.0, "100000"),
            (0.1 + 0.2, "0.3"),
            (2.0 / 3.0, "0.666666666666667"),
            (2_f64.sqrt(), "1.4142135623731"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (999_999_999_999_999.0, "999999999999999"),
            (9_999_999_999_999_999.0, "1e+16"),
            (123_456_789_012_345_678.0, "1.23456789012346e+17"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (1e-5, "1e-05"),
            (1.5e-300, "1.5e-300"),
            (f64::from_bits(1), "4.94065645841247e-324"),
            (f64::MAX, "1.79769313486232e+308"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn doubles_are_parsed_as_by_strtod() {
        for (text, value) in [
            ("1", 1.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("1.5E-3", 0.0015),
            ("+7", 7.0),
            ("inf", f64::INFINITY),
            ("0e9", 0.0),
            ("0x10", 16.0),
            ("-0X1.8p1", -3.0),
            ("0x.8", 0.5),
            ("0x1.p-2", 0.25),
            ("0x0p99999999999999999999", 0.0),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffff7ffffffffp0", 1.999_999_999_999_999_8),
            ("0x10000000000000801", 18_446_744_073_709_555_712.0),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1.fffffffffffffp1023", f64::MAX),
        ] {
            assert_eq!(parse_double(text), Some(value), "{text}");
        }
        for text in [
            "",
            ".",
            "1e",
            "1e400",
            "1e-400",
            "1e-320",
            "bla",
            "12 ",
            "0x",
            "0x.",
            "0xg",
            "0x1p",
            "0x1p1024",
            "0x1p-1075",
            "0x1.8p-1074",
            "0x1p-99999999999999999999",
            "1p3",
            "0x1e+1",
            "0x-1",
        ] {
            assert_eq!(parse_double(text), None, "{text}");
        }
    }
}
