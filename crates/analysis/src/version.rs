//! The order of versions, of PostgreSQL and of kernels.

/// A version of PostgreSQL or of a kernel, in order of release: `9.6.24` before `18beta1` before `18rc1` before `18.0`,
/// `4.6-rc3` before `4.6.0` before `4.6.0-37-amd64`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    numbers: Vec<u64>,
    stage: Stage,
    /// The suffix, such as a distribution's own number.
    rest: Vec<Part>,
}

/// Stage of a release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Devel,
    Alpha(u64),
    Beta(u64),
    ReleaseCandidate(u64),
    Released,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Version {
    /// `None` if it does not begin with a number; a prefix `Linux` or, in a package's name, `linux-image` is skipped.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let before = ["Linux ", "linux-image-unsigned-", "linux-image-"];
        let text = before.into_iter().find_map(|before| text.strip_prefix(before)).unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let mut numbers: Vec<u64> = numbers
            .trim_end_matches('.')
            .split('.')
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let word = rest.trim_start_matches('-');
        let numbered = |name: &str| {
            let (number, rest) = split_number(word.strip_prefix(name)?);
            Some((number?, rest))
        };
        let (stage, rest) = None
            .or_else(|| Some((Stage::Devel, word.strip_prefix("devel")?)))
            .or_else(|| numbered("alpha").map(|(number, rest)| (Stage::Alpha(number), rest)))
            .or_else(|| numbered("beta").map(|(number, rest)| (Stage::Beta(number), rest)))
            .or_else(|| numbered("rc").map(|(number, rest)| (Stage::ReleaseCandidate(number), rest)))
            .unwrap_or((Stage::Released, rest));
        Some(Self { numbers, stage, rest: parts(rest) })
    }
}

fn split_number(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().ok(), &text[end..])
}

fn parts(mut text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit();
        let end = match text.starts_with(is_digit) {
            true => text.find(|c| !is_digit(c)),
            false => text.find(is_digit),
        };
        let (part, rest) = text.split_at(end.unwrap_or(text.len()));
        parts.push(part.parse().map_or_else(|_| Part::Text(part.to_owned()), Part::Number));
        text = rest;
    }
    parts
}

/// Sort key of a level of `server` or `kernel`: versions first, in their order; then other levels, such as paths, by
/// their release, if known; then by name.
pub(crate) fn sort_key(level: &str, release: Option<&str>) -> impl Ord + use<> {
    let version = Version::parse(level);
    let class = match (&version, release) {
        (Some(_), _) => 0,
        (None, Some(_)) => 1,
        (None, None) => 2,
    };
    (class, version.or_else(|| Version::parse(release?)), level.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_their_release() {
        for ordered in [
            &[
                "9.6.24", "10.2", "10.10", "18devel", "18alpha1", "18beta2", "18beta10", "18rc1", "18.0",
                "18.1",
            ][..],
            &[
                "2.6.39",
                "3.0.101",
                "3.2.79",
                "3.10.101",
                "3.10.101-stats",
                "4.4.7",
                "4.5.4",
                "4.6-rc3",
                "4.6.0",
            ],
            &[
                "Linux 6.1.0-9-amd64",
                "Linux 6.1.0-37-amd64",
                "6.12.1-200.fc41.x86_64",
                "6.12.1-1000.fc41.x86_64",
            ],
        ] {
            let versions: Vec<Option<Version>> = ordered.iter().map(|text| Version::parse(text)).collect();
            assert!(versions.iter().all(Option::is_some), "{ordered:?}");
            assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
        }
        let kernels = [
            "6.1",
            "linux-image-6.1.*-amd64",
            "6.2",
            "linux-image-6.12.*-cloud-amd64",
            "linux-image-6.12.48+deb13-amd64",
            "6.13",
        ];
        let versions: Vec<Option<Version>> = kernels.iter().map(|text| Version::parse(text)).collect();
        assert!(versions.iter().all(Option::is_some) && versions.is_sorted(), "{versions:?}");
        for text in
            ["", "patched", "linux-image-cloud-amd64", "./bzImage", "host", "v18", "99999999999999999999"]
        {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn other_texts_come_after_versions_by_their_release() {
        let mut levels = [
            ("./new", Some("Linux 6.18.0")),
            ("host", None),
            ("6.12", Some("Linux 6.12.9")),
            ("./old", Some("Linux 5.4.0")),
            ("./bzImage", None),
            ("6.2", None),
        ];
        levels.sort_by_cached_key(|(level, release)| sort_key(level, *release));
        let levels = levels.map(|(level, _)| level);
        assert_eq!(levels, ["6.2", "6.12", "./old", "./new", "./bzImage", "host"]);
    }
}
