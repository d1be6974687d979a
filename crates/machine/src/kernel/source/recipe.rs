//! Steps of the build of a kernel in its build directory: source, configuration, compilation, and what is kept.

use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

use super::COMPILER;
use super::commit::Commit;
use super::config::{CompleteConfig, Config, FILE, lines_for_guests};
use crate::error::Error;
use crate::kernel::image;
use crate::kernel::stored::image_of;
use host::{BuildLog, IoContext, Progress, check_interrupted, tools};

/// The copy of the source in a build directory, with git's index of it.
const SOURCE: &str = "source";
const INDEX: &str = "index";
/// Directory of the build.
const BUILD: &str = "build";
/// Image in the directory of the build.
const IMAGE: &str = "arch/x86/boot/bzImage";
/// List of the drivers built into the image.
const BUILT_IN: &str = "modules.builtin";

/// Makes the copy that of a commit, whatever the repository's settings say of files, and writes nothing into the repository.
const GIT_OPTIONS: [&str; 8] = [
    "-c",
    "safe.directory=*",
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.sparseCheckout=false",
    "-c",
    "core.splitIndex=false",
];
/// Values that would otherwise differ between builds of the same code.
const REPRODUCIBLE: [&str; 5] = [
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_VERSION=1",
    "KBUILD_BUILD_USER=pgdyno",
    "KBUILD_BUILD_HOST=pgdyno",
    "LOCALVERSION=",
];

/// Tools that generate code, with the files that they read: later kernels need others.
const GENERATORS: [(&str, &str); 5] = [
    ("scripts/kconfig/lexer.l", "flex"),
    ("scripts/kconfig/zconf.l", "flex"),
    ("scripts/kconfig/parser.y", "bison"),
    ("scripts/kconfig/zconf.y", "bison"),
    ("kernel/time/timeconst.bc", "bc"),
];
/// Headers of libraries that the kernel's own tools use, with their packages.
const HEADERS: [(&str, &str); 3] =
    [("gelf.h", "libelf-dev"), ("libelf.h", "libelf-dev"), ("openssl/", "libssl-dev")];
/// How make reports a command that the shell did not find.
const NOT_FOUND: &str = "Error 127";

/// One build.
pub(super) struct Recipe<'a> {
    pub(super) commit: &'a Commit,
    /// The build directory.
    pub(super) directory: &'a Path,
    pub(super) log: &'a BuildLog<'a>,
    pub(super) progress: &'a dyn Progress,
}

impl Recipe<'_> {
    /// Makes the copy of the source that of the commit: only files that differ are written.
    pub(super) fn update_source(&self) -> Result<(), Error> {
        self.step("copying the source of")?;
        let source = self.directory.join(SOURCE);
        fs::create_dir_all(&source).doing("create the directory", &source)?;
        // That of a killed git.
        let lock = self.directory.join(format!("{INDEX}.lock"));
        match fs::remove_file(&lock) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).doing("remove", &lock)?,
            _ => {}
        }
        let mut read = self.git(&source);
        read.args(["read-tree", "--reset", "-u", &self.commit.tree]);
        self.run("copy the source of", read)?;
        // Files of a commit whose copy was interrupted.
        let mut clean = self.git(&source);
        clean.args(["clean", "-f", "-f", "-d", "-x", "-q"]);
        self.run("copy the source of", clean)?;
        let needed = GENERATORS.iter().filter(|(file, _)| source.join(file).is_file());
        Ok(needed.map(|(_, tool)| *tool).try_for_each(tools::require)?)
    }

    /// A command of git on the repository's objects and on the copy of the source.
    fn git(&self, source: &Path) -> Command {
        let mut git = host::git::command(source);
        git.args(GIT_OPTIONS).arg("--git-dir").arg(&self.commit.git_directory).arg("--work-tree").arg(source);
        git.env("GIT_INDEX_FILE", self.directory.join(INDEX)).env("GIT_OPTIONAL_LOCKS", "0");
        git
    }

    /// Configures, and returns the commit's complete configuration.
    pub(super) fn configure(&self, config: &Config) -> Result<CompleteConfig, Error> {
        self.step("configuring")?;
        let build = self.build();
        fs::create_dir_all(&build).doing("create the directory", &build)?;
        let file = build.join(FILE);
        // Not that of another commit, which would leave its choices in this one.
        let text = match config {
            Config::Given { text, .. } => text.clone(),
            Config::Default => {
                self.run("configure", self.make(&["defconfig", "kvm_guest.config"]))?;
                let own = fs::read(&file).doing("read", &file)?;
                String::from_utf8_lossy(&own).into_owned() + &lines_for_guests()
            }
        };
        fs::write(&file, text).doing("write", &file)?;
        self.run("configure", self.make(&["olddefconfig"]))?;
        CompleteConfig::read(&file, config, self.commit)
    }

    /// Compiles what is out of date.
    pub(super) fn compile(&self, config: &CompleteConfig) -> Result<(), Error> {
        self.step("compiling")?;
        let targets: &[&str] = if config.has_modules() { &["bzImage", "modules"] } else { &["bzImage"] };
        self.run("compile", self.make(targets))
    }

    /// Copies image, configuration and modules into a tree, as packages have them. Returns the release.
    pub(super) fn install(&self, config: &CompleteConfig, tree: &Path) -> Result<String, Error> {
        let build = self.build();
        let image = build.join(IMAGE);
        let release =
            image::release(&image).map_err(|source| Error::Image { path: image.clone(), source })?;
        let copy = |from: &Path, to: &Path| -> Result<(), Error> {
            let above = to.parent().unwrap_or(to);
            fs::create_dir_all(above).doing("create the directory", above)?;
            Ok(fs::copy(from, to).doing("copy to", to).map(drop)?)
        };
        copy(&image, &image_of(tree, &release))?;
        copy(&build.join(FILE), &tree.join("boot").join(format!("config-{release}")))?;
        let modules = tree.join("lib/modules").join(&release);
        if config.has_modules() {
            let into = format!("INSTALL_MOD_PATH={}", tree.display());
            // What depmod writes is not needed.
            self.run(
                "install the modules of",
                self.make(&["modules_install", &into, "INSTALL_MOD_STRIP=1", "DEPMOD=true"]),
            )?;
            for link in ["build", "source"].map(|name| modules.join(name)) {
                match fs::remove_file(&link) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        Err(error).doing("remove", &link)?;
                    }
                    _ => {}
                }
            }
        } else if build.join(BUILT_IN).is_file() {
            copy(&build.join(BUILT_IN), &modules.join(BUILT_IN))?;
        }
        Ok(release)
    }

    fn build(&self) -> PathBuf {
        self.directory.join(BUILD)
    }

    fn step(&self, doing: &str) -> Result<(), Error> {
        check_interrupted(self.progress)?;
        self.progress.step(&format!("{doing} the kernel {}", self.commit.origin()), 0, None);
        Ok(())
    }

    fn make(&self, targets: &[&str]) -> Command {
        let mut make = tools::command("make");
        make.arg("-C").arg(self.directory.join(SOURCE)).arg(format!("O={}", self.build().display()));
        make.arg(format!("-j{}", available_parallelism().map_or(1, NonZero::get))).args(REPRODUCIBLE);
        if tools::find("ccache").is_some() {
            make.arg(format!("CC=ccache {COMPILER}"));
        }
        make.args(targets);
        make
    }

    /// Runs a command to its end. `doing` is its purpose, as in "could not compile".
    fn run(&self, doing: &'static str, command: Command) -> Result<(), Error> {
        let status = self.log.run(command)?;
        if status.success() {
            return Ok(());
        }
        let log = self.log.path().to_owned();
        if let Some((what, package)) = missing(&self.log.text()) {
            return Err(Error::BuildNeeds { kernel: self.commit.origin(), what, package, log });
        }
        Err(Error::Build {
            step: format!("{doing} the kernel {}", self.commit.origin()),
            why: status.to_string(),
            log,
            output: self.log.tail().into(),
        })
    }
}

/// A command or header that a build did not find on this machine, with its Debian package.
fn missing(log: &str) -> Option<(String, String)> {
    let header = |line: &str| {
        let (name, _) = line.split_once("fatal error: ")?.1.split_once(": No such file")?;
        let (_, package) = HEADERS.iter().find(|(begin, _)| name.starts_with(begin))?;
        Some((name.to_owned(), (*package).to_owned()))
    };
    let tool = |line: &str| {
        let name = line.strip_suffix(": not found")?.rsplit(": ").next()?;
        let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
        is_word.then(|| (name.to_owned(), tools::package(name).to_owned()))
    };
    let found = log.lines().rev().find_map(header);
    found.or_else(|| log.lines().rev().find_map(tool).filter(|_| log.contains(NOT_FOUND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_does_not_find_on_the_machine_is_named_with_its_package() {
        let needs = |log: &str| missing(log).map(|(what, package)| format!("{what} {package}"));
        for (log, expected) in [
            (
                "  BC x\n/bin/sh: 1: bc: not found\nmake[1]: *** [Kbuild:24: timeconst.h] Error 127\n",
                Some("bc bc"),
            ),
            ("sh: 1: xz: not found\nmake: *** [x] Error 127\n", Some("xz xz-utils")),
            ("elf.h:10:10: fatal error: gelf.h: No such file or directory\n", Some("gelf.h libelf-dev")),
            (
                "certs/x.c:3:10: fatal error: openssl/bio.h: No such file or directory\n",
                Some("openssl/bio.h libssl-dev"),
            ),
            // The source's own headers, and a check that is no error.
            ("mm/a.c:1:10: fatal error: linux/gone.h: No such file or directory\n", None),
            ("/bin/sh: 1: pahole: not found\nmm/a.c:1:1: error: x\nmake: *** [x] Error 1\n", None),
        ] {
            assert_eq!(needs(log).as_deref(), expected, "{log}");
        }
    }
}
