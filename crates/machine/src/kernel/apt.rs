//! The machine's own apt, which lists, downloads and verifies packages. Nothing is installed, and nothing needs root.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::error::Error;
use crate::kernel::choice::Wanted;
use crate::kernel::package::{PREFIX, Package, is_word};
use host::IoContext;
use host::Progress;
use host::process::{LOG_TAIL_LINES, last_lines};
use host::process::{spawn, wait_while};

/// All packages of kernels that apt has.
pub(crate) fn packages(wanted: &Wanted, progress: &dyn Progress) -> Result<Vec<Package>, Error> {
    let apt = Apt { label: wanted.label(), progress };
    let names = apt.apt_cache(&["pkgnames", PREFIX])?;
    let names: Vec<&str> = names.lines().filter(|name| is_word(name)).collect();
    let packages = apt.show(&names)?;
    if packages.is_empty() {
        Err(apt.failed("apt's lists of packages contain no kernels; run `apt-get update`".to_owned()))
    } else {
        Ok(packages)
    }
}

/// Downloads a package of a kernel, and those of its image and its modules if these are separate, into a directory of
/// their own. Returns their files.
pub(crate) fn download(
    wanted: &Wanted,
    package: &Package,
    into: &Path,
    progress: &dyn Progress,
) -> Result<Vec<PathBuf>, Error> {
    let apt = Apt { label: wanted.label(), progress };
    let mut all = vec![package.clone()];
    for prefix in ["linux-binary-", "linux-modules-"] {
        if let Some((name, version)) = package.depends_on(prefix) {
            let found = apt.show(&[&name])?;
            let is_it = |part: &Package| {
                part.name == name && version.as_ref().is_none_or(|version| *version == part.version)
            };
            all.push(found.into_iter().find(is_it).ok_or_else(|| {
                apt.failed(format!(
                    "{} needs {name}, which apt does not have; run `apt-get update`",
                    package.name
                ))
            })?);
        }
    }
    let total = all.iter().map(|package| package.bytes).sum();
    let mut command = Command::new("apt-get");
    // As root, apt would drop to a user that may not write here, and warn.
    command.args(["-q", "-o", "APT::Sandbox::User=root", "download"]).current_dir(into);
    command.args(all.iter().map(|package| format!("{}={}", package.name, package.version)));
    let what = format!("downloading {}", package.name);
    apt.run(command, || progress.step(&what, size_of(into), Some(total)))?.map_err(|output| {
        apt.failed(format!(
            "apt-get could not download {}: {output}\nIf the package no longer exists, run `apt-get update`",
            package.name
        ))
    })?;
    let mut files: Vec<PathBuf> = fs::read_dir(into)
        .doing("read the directory", into)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    files.sort();
    Ok(files)
}

/// Unpacks a package's file into a directory.
pub(crate) fn unpack(
    wanted: &Wanted,
    file: &Path,
    into: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let apt = Apt { label: wanted.label(), progress };
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").args([file, into]);
    apt.run(command, || {})?.map(drop).map_err(|output| {
        let name = file.file_name().unwrap_or_default().display();
        apt.failed(format!("{name} can't be unpacked: {output}"))
    })
}

/// A command of apt failed: its last lines of error output, else its exit status.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct CommandFailed(String);

/// Runs commands of apt for one label.
struct Apt<'a> {
    label: &'a str,
    progress: &'a dyn Progress,
}

impl Apt<'_> {
    /// Output of `apt-cache`.
    fn apt_cache(&self, arguments: &[&str]) -> Result<String, Error> {
        let mut command = Command::new("apt-cache");
        command.args(arguments);
        self.run(command, || {})?.map_err(|output| self.failed(format!("apt-cache failed: {output}")))
    }

    /// All available versions of these packages.
    fn show(&self, names: &[&str]) -> Result<Vec<Package>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = Command::new("apt-cache");
        command.args(["show", "--"]).args(names);
        // It fails if there is none.
        Ok(self.run(command, || {})?.map_or_else(|_| Vec::new(), |text| read(&text)))
    }

    /// Runs a command to its end, calling `meanwhile` periodically; returns its output.
    fn run(
        &self,
        mut command: Command,
        meanwhile: impl Fn(),
    ) -> Result<Result<String, CommandFailed>, Error> {
        let program = PathBuf::from(command.get_program());
        let file = || tempfile::tempfile().doing("create a temporary file in", &std::env::temp_dir());
        let (out, err) = (file()?, file()?);
        let handle = |file: &File| file.try_clone().doing("write the output of", &program);
        command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(handle(&out)?).stderr(handle(&err)?);
        let mut child = match spawn(command, Signal::TERM) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.no_apt(&program)),
            outcome => outcome.doing("run", &program)?,
        };
        let is_wanted = || {
            meanwhile();
            !self.progress.interrupted()
        };
        let Some(status) = wait_while(&mut child, is_wanted).doing("wait for", &program)? else {
            return Err(host::Error::Interrupted.into());
        };
        let read = |file: File| content(file).doing("read the output of", &program);
        let out = read(out)?;
        if status.success() {
            return Ok(Ok(out));
        }
        let stderr = read(err)?;
        Ok(Err(CommandFailed(match stderr.trim() {
            "" => status.to_string(),
            stderr => last_lines(stderr, LOG_TAIL_LINES),
        })))
    }

    fn no_apt(&self, program: &Path) -> Error {
        self.failed(format!(
            "kernels by version or package are Debian's; fetching them requires apt and dpkg, but this machine has no \
             `{}`; the path of a bzImage, such as ./bzImage, works on any machine",
            program.display()
        ))
    }

    fn failed(&self, why: String) -> Error {
        Error::KernelPackage { label: self.label.to_owned(), why }
    }
}

/// Parses the output of `apt-cache show`: paragraphs of fields. Omits what can't be downloaded.
fn read(text: &str) -> Vec<Package> {
    let package = |paragraph: &str| {
        let field = |name: &str| {
            paragraph
                .lines()
                .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
        };
        field("Filename")?;
        Some(Package {
            name: field("Package").filter(|name| is_word(name))?,
            version: field("Version").filter(|version| is_word(version))?,
            depends: field("Depends").unwrap_or_default(),
            bytes: field("Size").and_then(|size| size.parse().ok()).unwrap_or(0),
        })
    };
    text.split("\n\n").filter_map(package).collect()
}

/// Bytes of the files in a directory.
fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|meta| meta.len()).sum()
}

fn content(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A package as `apt-cache show` prints it.
    pub(crate) fn paragraph(name: &str, version: &str, depends: &str) -> String {
        format!(
            "Package: {name}\nSource: linux\nVersion: {version}\nDepends: {depends}\nDescription: Linux\n Version: no\n\
             Filename: pool/{name}.deb\nSize: 1000\n\n"
        )
    }

    pub(crate) fn packages(text: &str) -> Vec<Package> {
        read(text)
    }

    #[test]
    fn downloadable_packages_are_read() {
        let whole = paragraph("linux-image-6.12.9-amd64", "6.12.9-1", "kmod, linux-base (>= 4.12~)");
        let installed_only =
            "Package: linux-image-6.12.8-amd64\nStatus: install ok installed\nVersion: 6.12.8-1\n\n";
        let others =
            ["Package: -o\nVersion: 1\nFilename: x\n\n", "Package: a/b\nVersion: 1\nFilename: x\n\n", "\n\n"];
        let found = read(&[&whole, installed_only, &others.concat(), "Package: cut"].concat());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&*found[0].name, &*found[0].version, found[0].bytes),
            ("linux-image-6.12.9-amd64", "6.12.9-1", 1000)
        );
        assert!(found[0].is_kernel());
    }

    #[test]
    fn the_first_alternative_of_a_dependency_counts() {
        let depends =
            "kmod, linux-binary-7.0 (= 7.0-1) | linux-binary-7.0-unsigned (= 7.0-1), linux-modules-7.0";
        let package = &read(&paragraph("linux-image-7.0-amd64", "7.0-1", depends))[0];
        assert_eq!(
            package.depends_on("linux-binary-"),
            Some(("linux-binary-7.0".to_owned(), Some("7.0-1".to_owned())))
        );
        assert_eq!(package.depends_on("linux-modules-"), Some(("linux-modules-7.0".to_owned(), None)));
        assert_eq!(package.depends_on(PREFIX), None);
    }
}
