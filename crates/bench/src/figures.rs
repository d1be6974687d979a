//! Formatting of figures.

/// Nanoseconds as milliseconds, to the microsecond, so that the decimal points of a column are aligned.
pub(crate) fn ms(ns: f64) -> String {
    let text = format!("{:.3}", ns / 1e6);
    let (whole, rest) = text.split_at(text.len() - 4);
    separated(whole) + rest
}

/// A number with thousands separators, and as many decimals as three significant digits need.
pub(crate) fn grouped(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 || v.fract() == 0.0 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    separated(whole) + rest
}

/// A share in percent: `0.2 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        p if p == 0.0 || p >= 9.995 => 0,
        p if p >= 0.995 => 1,
        p if p >= 0.0095 => 2,
        _ => return "below 0.01 %".to_owned(),
    };
    format!("{percent:.decimals$} %")
}

/// Bytes in the largest binary unit that gives at least 1.
pub(crate) fn bytes(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            return format!("{} {unit}", if unit == "B" { format!("{value:.0}") } else { grouped(value) });
        }
        value /= 1024.0;
    }
    format!("{} GiB", grouped(value))
}

/// A time in its largest unit: `12 µs`, `1.23 ms`, `2.05 s`.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} µs", grouped(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", grouped(ns / 1e6)),
        ns => format!("{} s", grouped(ns / 1e9)),
    }
}

/// `1 client`, `2 clients`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count as f64), if count == 1 { "" } else { "s" })
}

fn separated(whole: &str) -> String {
    let mut out = String::with_capacity(whole.len() + whole.len() / 3);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        assert_eq!([900.0, 4_213_000.0, 1_942_100_000.0].map(ms), ["0.001", "4.213", "1,942.100"]);
        assert_eq!([0.0, 1.234, 47.06, 12_345.6, 7.0].map(grouped), ["0", "1.23", "47.1", "12,346", "7"]);
        assert_eq!(
            [0.0, 0.00001, 0.002, 0.0333, 0.5].map(percent),
            ["0 %", "below 0.01 %", "0.20 %", "3.3 %", "50 %"]
        );
        assert_eq!([512.0, 2_048.0, 3.5e6].map(bytes), ["512 B", "2 KiB", "3.34 MiB"]);
        assert_eq!([17.0, 1_500.0, 2_050_000.0, 3e9].map(time), ["17 ns", "1.50 µs", "2.05 ms", "3 s"]);
        assert_eq!(
            (counted(1, "client"), counted(1_000, "client")),
            ("1 client".into(), "1,000 clients".into())
        );
    }
}
