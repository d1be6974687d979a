//! The order of Debian's versions. Source: deb-version(7), "Sorting algorithm".

use std::cmp::Ordering;

/// Compares two versions, `[EPOCH:]UPSTREAM[-REVISION]`.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    compare_part(a.0, b.0).then_with(|| compare_part(a.1, b.1)).then_with(|| compare_part(a.2, b.2))
}

/// The upstream part of a version: of `6.12.117-1~deb12u1`, `6.12.117`.
pub(crate) fn upstream(version: &str) -> &str {
    parts(version).1
}

/// Epoch, upstream version and revision. A missing part is empty, which counts as 0.
fn parts(version: &str) -> (&str, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// Parts without digits and parts of digits alternate.
fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, text_b) =
            (take_while(&mut a, |c| !c.is_ascii_digit()), take_while(&mut b, |c| !c.is_ascii_digit()));
        // The end of a text sorts after a tilde and before all else.
        let weights = |text: &str| text.bytes().map(weight).chain([0]).collect::<Vec<_>>();
        let (digits_a, digits_b) =
            (take_while(&mut a, |c| c.is_ascii_digit()), take_while(&mut b, |c| c.is_ascii_digit()));
        let number = |digits: &str| digits.trim_start_matches('0').to_owned();
        let (number_a, number_b) = (number(digits_a), number(digits_b));
        let order = weights(text_a)
            .cmp(&weights(text_b))
            .then_with(|| number_a.len().cmp(&number_b.len()))
            .then_with(|| number_a.cmp(&number_b));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Letters sort before everything else but the tilde.
fn weight(byte: u8) -> i32 {
    match byte {
        b'~' => -1,
        byte if byte.is_ascii_alphabetic() => i32::from(byte),
        byte => 256 + i32::from(byte),
    }
}

/// Removes and returns the leading characters of a kind.
fn take_while<'a>(text: &mut &'a str, is: impl Fn(char) -> bool) -> &'a str {
    let end = text.find(|c| !is(c)).unwrap_or(text.len());
    let (taken, rest) = text.split_at(end);
    *text = rest;
    taken
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn versions_are_ordered_as_in_the_manual() {
        // Each comes before the next.
        let ordered = [
            "",
            "1~~",
            "1~~a",
            "1~",
            "1",
            "1a",
            "1+",
            "6.1~rc3-1~exp1",
            "6.1.0-1",
            "6.1.9-1",
            "6.1.76-1",
            "6.1.192-2",
            "6.12.9-1~bpo12+1",
            "6.12.9-1",
            "6.12.117-1~deb12u1",
            "6.12.117-1",
            "6.12.117-1+b1",
            "6.12.117-1.1",
            "6.12.117-2",
            "6.12.117-10",
            "1:5.0-1",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
        for (a, b) in [("1.0", "1.0-0"), ("1.007", "1.7"), ("0:1", "1"), ("1.0", "1.")] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} and {b}");
        }
    }

    /// Without dpkg, this compares nothing; the test above does not need it.
    #[test]
    fn dpkg_orders_versions_alike() {
        let versions = [
            "1~~",
            "1",
            "1+",
            "6.1~rc3-1~exp1",
            "6.1.76-1",
            "6.1.192-2",
            "6.12.117-1~deb12u1",
            "6.12.117-1",
            "1:5.0-1",
        ];
        for a in versions {
            for b in versions {
                let mut dpkg = Command::new("dpkg");
                let Ok(status) = dpkg.args(["--compare-versions", a, "lt", b]).status() else {
                    return skip::skip("no dpkg is installed here to compare with");
                };
                assert_eq!(status.success(), compare(a, b).is_lt(), "{a} and {b}");
            }
        }
    }

    #[test]
    fn the_upstream_version_is_between_epoch_and_revision() {
        assert_eq!(upstream("6.12.117-1~deb12u1"), "6.12.117");
        assert_eq!(upstream("1:6.1-rc2-3"), "6.1-rc2");
        assert_eq!(upstream("6.8"), "6.8");
    }
}
