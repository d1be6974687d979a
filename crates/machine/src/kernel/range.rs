//! The kernels between two, in the order of their versions: what apt has and what was fetched, and the kernels of a directory.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::kernel::apt;
use crate::kernel::choice::{Wanted, choose, flavour, is_signed};
use crate::kernel::debian_version::{compare, upstream};
use crate::kernel::package::Package;
use crate::kernel::{Kernel, in_place, stored};
use host::files::entries;
use host::{Cache, Progress};

/// Kernels between two, of which there is one for each version of Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRange {
    /// Versions of Linux of its ends.
    pub versions: [String; 2],
    /// Labels of the kernels between them, oldest first.
    pub between: Vec<String>,
}

/// The kernels between those of two labels: packages of apt and of the cache, of the same flavour as the first one's. Without apt,
/// those of the cache, with a notice.
///
/// # Errors
/// A label is invalid, or a path; there is no such kernel; the first is not older than the second; interrupted.
pub fn kernel_range(cache: &Cache, labels: [&str; 2], progress: &dyn Progress) -> Result<KernelRange, Error> {
    let [from, to]: [Wanted; 2] = [labels[0].parse()?, labels[1].parse()?];
    progress.step("looking for kernels", 0, None);
    let mut known = stored::packages(cache)?;
    match apt::packages(&from, progress) {
        Ok(packages) => known.extend(packages),
        Err(error) if error.is_interrupted() => return Err(error),
        Err(error) => progress.notice(&format!("{error}; only the kernels in the cache are known")),
    }
    let end = |wanted: &Wanted| match stored::find(cache, wanted)?.as_ref().and_then(package_of) {
        Some(package) => Ok(package),
        None => choose(wanted, &known),
    };
    let [first, last] = [end(&from)?, end(&to)?];
    let versions = [&first, &last].map(|package| upstream(&package.version).to_owned());
    if compare(&versions[0], &versions[1]) != Ordering::Less {
        let [from, to] = labels.map(str::to_owned);
        return Err(Error::NotOlder { from, to, versions: Box::new(versions) });
    }
    Ok(KernelRange { between: between(&first, &last, &known), versions })
}

/// The package of a kernel of the cache.
fn package_of(kernel: &Kernel) -> Option<Package> {
    let (name, version) = kernel.origin.split_once(' ')?;
    Some(Package::named(name, version))
}

/// Labels of the packages between two: of each version of Linux the one that its label stands for, else the newest by its name.
fn between(first: &Package, last: &Package, known: &[Package]) -> Vec<String> {
    let [from, to] = [first, last].map(|package| upstream(&package.version));
    let is_between = |version: &str| compare(from, version).is_lt() && compare(version, to).is_lt();
    let is_like = |package: &&Package| package.is_kernel() && flavour(&package.name) == flavour(&first.name);
    let mut versions: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in known.iter().filter(is_like) {
        let version = upstream(&package.version);
        if is_between(version) {
            versions.entry(version).or_default().push(package);
        }
    }
    let mut ordered: Vec<(&str, Vec<&Package>)> = versions.into_iter().collect();
    ordered.sort_by(|(a, _), (b, _)| compare(a, b));
    let label = |(version, packages): (&str, Vec<&Package>)| {
        let wanted: Option<Wanted> = version.parse().ok();
        let chosen = wanted.as_ref().and_then(|wanted| choose(wanted, known).ok());
        if chosen.is_some_and(|chosen| packages.iter().any(|package| package.name == chosen.name)) {
            return Some(version.to_owned());
        }
        let newest = packages.into_iter().max_by(|a, b| {
            let signed = is_signed(&a.name).cmp(&is_signed(&b.name));
            signed.then_with(|| compare(&a.version, &b.version))
        });
        newest.map(|package| package.name.clone())
    };
    ordered.into_iter().filter_map(label).collect()
}

/// The kernels in a directory, images and built trees, in the order of their releases. What is no kernel is left out.
///
/// # Errors
/// The directory can't be read.
pub fn kernels_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for (_, path) in entries(directory)? {
        let release = in_place::release(&path);
        found.extend(release.map(|release| (release, path)));
    }
    found.sort_by(|(a, one), (b, other)| compare(a, b).then_with(|| one.cmp(other)));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::apt::tests::{packages, paragraph};
    use crate::kernel::choice::architecture;
    use crate::kernel::image::tests::image;

    /// Packages of a Debian; `ARCH` stands for this machine's architecture.
    const DEBIAN: [(&str, &str); 11] = [
        ("linux-image-6.1.0-47-cloud-ARCH", "6.1.170-3"),
        ("linux-image-6.1.0-47-ARCH", "6.1.170-3"),
        ("linux-image-6.1.0-47-rt-ARCH", "6.1.170-3"),
        ("linux-image-6.1.0-9-cloud-ARCH", "6.1.27-1"),
        ("linux-image-6.1.0-56-cloud-ARCH-unsigned", "6.1.192-2"),
        ("linux-image-6.1.0-56-cloud-ARCH", "6.1.192-2"),
        ("linux-image-6.12.9+deb12-cloud-ARCH", "6.12.9-1~bpo12+1"),
        ("linux-image-6.12.9+deb13-cloud-ARCH", "6.12.9-1"),
        ("linux-image-6.12.100+deb13-cloud-ARCH", "6.12.100-1"),
        ("linux-image-6.12.100+deb13-ARCH-dbg", "6.12.100-1"),
        ("linux-image-6.12.117+deb13-cloud-ARCH", "6.12.117-1"),
    ];

    fn known() -> Vec<Package> {
        let here = |text: &str| text.replace("ARCH", architecture());
        let text: String = DEBIAN.iter().map(|(name, version)| paragraph(&here(name), version, "")).collect();
        packages(&text)
    }

    fn labels(from: &str, to: &str) -> Vec<String> {
        let known = known();
        let package = |name: &str| {
            let name = name.replace("ARCH", architecture());
            known.iter().find(|package| package.name == name).unwrap().clone()
        };
        let labels = between(&package(from), &package(to), &known);
        labels.into_iter().map(|label| label.replace(architecture(), "ARCH")).collect()
    }

    #[test]
    fn a_range_has_one_kernel_of_each_version_in_their_order() {
        let (first, last) = ("linux-image-6.1.0-9-cloud-ARCH", "linux-image-6.12.117+deb13-cloud-ARCH");
        assert_eq!(labels(first, last), ["6.1.170", "6.1.192", "6.12.9", "6.12.100"]);
        let unsigned = "linux-image-6.1.0-56-cloud-ARCH-unsigned";
        assert_eq!(labels(unsigned, last), ["6.12.9", "6.12.100"]);
        assert!(labels("linux-image-6.12.100+deb13-cloud-ARCH", last).is_empty());
    }

    /// A version stands for the flavour of virtual machines.
    #[test]
    fn kernels_of_another_flavour_are_named_by_their_package() {
        let mut known = known();
        let name = format!("linux-image-6.1.0-50-rt-{}", architecture());
        known.push(Package::named(&name, "6.1.175-1"));
        let rt =
            |version: &str| Package::named(&format!("linux-image-{version}-rt-{}", architecture()), version);
        assert_eq!(between(&rt("6.1.170-3"), &rt("6.12.117-1"), &known), [name]);
    }

    #[test]
    fn kernels_of_a_directory_are_in_the_order_of_their_releases() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let file = directory.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        };
        write("a", &image("6.12.9"));
        write("b", &image("6.2.0"));
        write("tree/arch/x86/boot/bzImage", &image("6.10.1"));
        write("config", b"CONFIG_X=y");
        std::fs::create_dir(directory.path().join("empty")).unwrap();
        let found = kernels_in(directory.path()).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["b", "tree", "a"]);
    }
}
