//! Figures in text: grouped thousands, signed percentages, binary units, durations.

/// A figure such as throughput: grouped by thousands; decimals only if needed for three significant digits.
pub fn tps(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 || v == 0.0 => 2,
        v if v >= 0.099_95 => 3,
        _ => 4,
    };
    grouped(&format!("{value:.decimals$}"))
}

/// Times in microseconds, all in the unit that fits the smallest: `870 µs`, `1.34 ms`, `2.10 s`.
pub fn times<const N: usize>(us: [Option<f64>; N]) -> [Option<String>; N] {
    let least = us.iter().flatten().copied().filter(|us| *us > 0.0).fold(f64::INFINITY, f64::min);
    let (unit, name) = match least {
        least if least < 999.5 || least.is_infinite() => (1.0, "µs"),
        least if least < 999_500.0 => (1e3, "ms"),
        _ => (1e6, "s"),
    };
    us.map(|us| Some(format!("{} {name}", tps(us? / unit))))
}

/// A signed relative change in percent: `+4.2%`.
pub fn change(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let decimals = if percent.abs() >= 99.95 { 0 } else { 1 };
    let text = format!("{percent:+.decimals$}%");
    // A change that rounds to zero has no sign.
    if matches!(text.as_str(), "+0.0%" | "-0.0%") { "0.0%".to_owned() } else { text }
}

/// Bytes in the largest binary unit that gives at least 1: `23.4 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// An approximate duration: `45 s`, `4 min`, `3 h 20 min`, `2 d 4 h`.
pub fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        0..=1 => format!("{seconds:.0} s"),
        2..60 => format!("{minutes} min"),
        60..1440 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1440, minutes % 1440 / 60),
    }
}

/// `1 trial`, `2 trials`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A number with its thousands in groups: `12,346.5`.
pub fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_has_at_least_three_digits_and_no_needless_ones() {
        let shown = [0.0, 0.0612, 0.1234, 1.234, 9.999, 47.06, 99.96, 999.6, 12_345.6, 1_234_567.0].map(tps);
        assert_eq!(
            shown,
            ["0.00", "0.0612", "0.123", "1.23", "10.0", "47.1", "100", "1,000", "12,346", "1,234,567"]
        );
    }

    #[test]
    fn times_have_one_unit_which_fits_the_smallest() {
        let shown = |us: [f64; 2]| times(us.map(Some)).map(Option::unwrap);
        assert_eq!(shown([870.0, 1340.0]), ["870 µs", "1,340 µs"]);
        assert_eq!(shown([1_340_000.0, 999.6]), ["1,340 ms", "1.00 ms"]);
        assert_eq!(shown([999_499.0, 2_100_000.0]), ["999 ms", "2,100 ms"]);
        assert_eq!(shown([999_500.0, 92_120_000.0]), ["1.00 s", "92.1 s"]);
        assert_eq!(shown([0.0, 2400.0]), ["0.00 ms", "2.40 ms"]);
        assert_eq!(times([None, Some(0.0)]), [None, Some("0.00 µs".to_owned())]);
    }

    #[test]
    fn a_change_has_its_sign_unless_there_is_none() {
        let shown = [0.042, -0.5, 0.0, -0.0001, 0.0001, 1.5].map(change);
        assert_eq!(shown, ["+4.2%", "-50.0%", "0.0%", "0.0%", "0.0%", "+150%"]);
    }

    #[test]
    fn bytes_are_in_binary_units() {
        let shown = [0, 1023, 1024, 25_165_824, 8_589_934_592].map(bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "24.0 MiB", "8.0 GiB"]);
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let texts = [45.0, 89.0, 240.0, 12_000.0, 187_200.0].map(duration);
        assert_eq!(texts, ["45 s", "89 s", "4 min", "3 h 20 min", "2 d 4 h"]);
    }
}
