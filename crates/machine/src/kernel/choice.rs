//! Choice of the package for a label.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use glob::Pattern;

use crate::error::Error;
use crate::kernel::debian_version::{compare, upstream};
use crate::kernel::package::{PREFIX, Package};

/// A label of packages.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    label: String,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// A version of Linux, or its beginning.
    Version,
    /// The name of a package.
    Name,
    /// A glob of names.
    Glob(Pattern),
}

impl FromStr for Wanted {
    type Err = Error;

    fn from_str(label: &str) -> Result<Self, Error> {
        let refuse = || Error::NotAKernel { label: label.to_owned() };
        let has_only = |others: &str| label.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
        let form = match label {
            _ if label.starts_with(|c: char| c.is_ascii_digit()) && has_only(".+-~") => Form::Version,
            _ if !label.starts_with(PREFIX) => return Err(refuse()),
            _ if has_only(".+-~") => Form::Name,
            _ if has_only(".+-~*?[]!") => Form::Glob(Pattern::new(label).map_err(|_| refuse())?),
            _ => return Err(refuse()),
        };
        Ok(Self { label: label.to_owned(), form })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl Wanted {
    /// The label.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Whether it is the name of a single package.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self.form, Form::Name)
    }

    /// Whether a package matches.
    pub(crate) fn matches(&self, package: &Package) -> bool {
        match &self.form {
            Form::Name => package.name == self.label,
            Form::Glob(pattern) => pattern.matches(&package.name) && package.is_kernel(),
            Form::Version => {
                let release = package.name.strip_prefix(PREFIX).unwrap_or_default();
                let is_plain =
                    matches!(Flavour::from_package(&package.name), Flavour::Cloud | Flavour::Plain);
                let begins = |version: &str| begins_with(version, &self.label);
                package.is_kernel() && is_plain && (begins(upstream(&package.version)) || begins(release))
            }
        }
    }

    /// Order of preference of matching packages. For a version, the flavour precedes the rest: one for machines like
    /// this, built for virtual machines if there is one.
    pub(crate) fn compare(&self, a: &Package, b: &Package) -> Ordering {
        let signed = is_signed(&a.name).cmp(&is_signed(&b.name));
        let version = compare(&a.version, &b.version);
        let flavour = Flavour::from_package(&a.name).cmp(&Flavour::from_package(&b.name));
        match self.form {
            Form::Version => signed.then(flavour).then(version),
            _ => signed.then(version).then(flavour),
        }
    }
}

/// Target of a kernel's configuration, least preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flavour {
    /// Any other, such as `rt`, or one for other machines.
    Other,
    /// Any machine of this architecture.
    Plain,
    /// Virtual machines of this architecture.
    Cloud,
}

impl Flavour {
    fn from_package(name: &str) -> Self {
        match flavour(name) {
            "cloud" => Self::Cloud,
            "" => Self::Plain,
            _ => Self::Other,
        }
    }
}

/// The part of a package's name between release and architecture, as in `linux-image-6.12.117+deb12-cloud-amd64`; empty if there is
/// none.
pub(crate) fn flavour(name: &str) -> &str {
    let name = name.strip_suffix(UNSIGNED).unwrap_or(name);
    let rest = name.strip_suffix(architecture()).and_then(|rest| rest.strip_suffix('-')).unwrap_or(name);
    let last = rest.rsplit('-').next().unwrap_or_default();
    if last.starts_with(|c: char| c.is_ascii_digit()) { "" } else { last }
}

const UNSIGNED: &str = "-unsigned";

/// Whether a package's image is signed.
pub(crate) fn is_signed(name: &str) -> bool {
    !name.ends_with(UNSIGNED)
}

/// Debian's name of this machine's architecture.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Whether a version equals `beginning` or continues it: 6.12.9 begins with 6.12, but 6.120 does not.
fn begins_with(version: &str, beginning: &str) -> bool {
    let rest = version.strip_prefix(beginning);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// The package that a label stands for. A metapackage stands for the kernel package that it depends on.
pub(crate) fn choose(wanted: &Wanted, packages: &[Package]) -> Result<Package, Error> {
    let matching = packages.iter().filter(|package| wanted.matches(package));
    let Some(mut chosen) = matching.max_by(|a, b| wanted.compare(a, b)) else {
        return Err(Error::NoKernel { label: wanted.to_string(), why: available(packages) });
    };
    // Such chains are short; the limit ends cycles.
    for _ in 0..4 {
        let Some((name, version)) = chosen.depends_on(PREFIX) else { break };
        let is_it = |package: &&Package| {
            package.name == name && version.as_ref().is_none_or(|version| *version == package.version)
        };
        let newest = packages.iter().filter(is_it).max_by(|a, b| compare(&a.version, &b.version));
        chosen = newest.ok_or_else(|| Error::NoKernel {
            label: wanted.to_string(),
            why: format!("{} needs {name}, which apt does not have; run `apt-get update`", chosen.name),
        })?;
    }
    if chosen.is_auxiliary() {
        Err(Error::NoKernel {
            label: wanted.to_string(),
            why: format!(
                "{} contains only files that belong to a kernel; {}",
                chosen.name,
                available(packages)
            ),
        })
    } else {
        Ok(chosen.clone())
    }
}

/// The newest of each series and flavour, oldest series first.
fn available(packages: &[Package]) -> String {
    let mut kernels: Vec<&Package> = packages
        .iter()
        .filter(|package| package.is_kernel() && is_signed(&package.name))
        .filter(|package| Flavour::from_package(&package.name) != Flavour::Other)
        .collect();
    kernels.sort_by(|a, b| {
        let flavour = || Flavour::from_package(&b.name).cmp(&Flavour::from_package(&a.name));
        let series = series(a).cmp(&series(b));
        series.then_with(flavour).then_with(|| compare(&b.version, &a.version))
    });
    kernels.dedup_by_key(|package| (series(package), Flavour::from_package(&package.name)));
    let names: Vec<&str> = kernels.iter().map(|package| package.name.as_str()).collect();
    match names[..] {
        [] => "apt has none for this machine; run `apt-get update` to update its lists".to_owned(),
        _ => format!(
            "apt has {}, and others of these versions; `apt-get update` gets newer lists",
            names.join(", ")
        ),
    }
}

/// The first two numbers of a version.
fn series(package: &Package) -> (u32, u32) {
    let mut numbers = upstream(&package.version).split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::apt::tests::{packages, paragraph};

    /// Packages of a Debian; `ARCH` stands for this machine's architecture.
    const DEBIAN: [(&str, &str, &str); 15] = [
        ("linux-image-6.1.0-9-cloud-ARCH", "6.1.90-1", ""),
        ("linux-image-6.1.0-56-cloud-ARCH", "6.1.192-2", ""),
        ("linux-image-6.1.0-56-ARCH", "6.1.192-2", ""),
        ("linux-image-6.1.0-57-rt-ARCH", "6.1.193-1", ""),
        ("linux-image-6.1.0-57-ARCH-dbg", "6.1.193-1", ""),
        ("linux-image-6.1.0-57-cloud-ARCH-unsigned", "6.1.193-1", ""),
        ("linux-image-6.12.9+deb13-ARCH", "6.12.9-1", ""),
        ("linux-image-6.12.10+deb13-ARCH", "6.12.10-1", ""),
        ("linux-image-6.12.10+deb13-otherarch", "6.12.10-1", ""),
        ("linux-image-6.17.1+deb14-ARCH-unsigned", "6.17.1-1", ""),
        ("linux-image-6.18-rc3-ARCH", "6.18~rc3-1~exp1", ""),
        ("linux-image-ARCH", "6.12.10-1", "linux-image-6.12.10+deb13-ARCH (= 6.12.10-1)"),
        ("linux-image-cloud-ARCH", "6.1.192-2", "linux-image-6.1.0-56-cloud-ARCH (= 6.1.192-2)"),
        ("linux-image-lost-ARCH", "6.1.200-1", "linux-image-6.1.0-60-ARCH (= 6.1.200-1)"),
        ("linux-image-ARCH-signed-template", "6.1.192-2", ""),
    ];

    /// The package that a label stands for, with `ARCH`, or the error.
    fn chosen(label: &str) -> Result<String, String> {
        let here = |text: &str| text.replace("ARCH", architecture());
        let text: String =
            DEBIAN.iter().map(|(name, version, needs)| here(&paragraph(name, version, needs))).collect();
        let wanted: Wanted = here(label).parse().map_err(|error: Error| error.to_string())?;
        let package = choose(&wanted, &packages(&text)).map_err(|error| error.to_string())?;
        Ok(package.name.replace(architecture(), "ARCH"))
    }

    #[test]
    fn the_newest_package_that_matches_a_label_is_chosen() {
        for (label, name) in [
            // Versions: the cloud flavour first, then the plain one, in Debian's order.
            ("6.1", "linux-image-6.1.0-56-cloud-ARCH"),
            ("6.1.90", "linux-image-6.1.0-9-cloud-ARCH"),
            ("6.1.0-9", "linux-image-6.1.0-9-cloud-ARCH"),
            ("6.12", "linux-image-6.12.10+deb13-ARCH"),
            ("6.12.9", "linux-image-6.12.9+deb13-ARCH"),
            ("6.17", "linux-image-6.17.1+deb14-ARCH-unsigned"),
            // Names, and metapackages.
            ("linux-image-6.1.0-57-rt-ARCH", "linux-image-6.1.0-57-rt-ARCH"),
            ("linux-image-ARCH", "linux-image-6.12.10+deb13-ARCH"),
            ("linux-image-cloud-ARCH", "linux-image-6.1.0-56-cloud-ARCH"),
            // Globs.
            ("linux-image-6.1.*-cloud-ARCH", "linux-image-6.1.0-56-cloud-ARCH"),
            ("linux-image-6.1.*-cloud-ARCH*", "linux-image-6.1.0-56-cloud-ARCH"),
            ("linux-image-6.1.*-rt-ARCH", "linux-image-6.1.0-57-rt-ARCH"),
            ("linux-image-6.12.?+deb13-*", "linux-image-6.12.9+deb13-ARCH"),
            ("linux-image-6.12.*", "linux-image-6.12.10+deb13-ARCH"),
            ("linux-image-6.1[0-2].*-ARCH", "linux-image-6.12.10+deb13-ARCH"),
        ] {
            assert_eq!(chosen(label).as_deref(), Ok(name), "{label}");
        }
    }

    #[test]
    fn an_unknown_label_lists_the_known_ones() {
        for label in ["5", "6.120", "6.2", "6.1.19", "linux-image-5.*", "linux-image-6.1.0-56-clod-ARCH"] {
            let error = chosen(label).unwrap_err();
            let names = ["6.1.0-56-cloud-ARCH, ", "6.1.0-56-ARCH, ", "6.12.10+deb13-ARCH, "];
            let names =
                names.map(|name| format!("linux-image-{}", name.replace("ARCH", architecture()))).concat();
            assert!(error.contains("there is no kernel") && error.contains(&names), "{label}: {error}");
            assert!(error.contains("apt-get update"), "{error}");
        }
        let error = chosen("linux-image-lost-ARCH").unwrap_err();
        assert!(error.contains("needs linux-image-6.1.0-60-"), "{error}");
        let error = chosen("linux-image-6.1.0-57-ARCH-dbg").unwrap_err();
        assert!(error.contains("contains only files that belong to a kernel"), "{error}");
    }

    #[test]
    fn invalid_labels_are_refused() {
        for label in [
            "",
            "bzImage",
            "linux-6.12",
            "6.1 ",
            "6.*",
            "linux-image-[a",
            "linux-image-6.1;ls",
            "-6.1",
            "linux-image-\0",
        ] {
            let error = chosen(label).unwrap_err();
            assert!(error.contains("is not a kernel: expected a version such as"), "{label}: {error}");
        }
    }
}
