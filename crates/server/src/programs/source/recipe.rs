//! Configuration, compilation and installation of PostgreSQL: the parts that a server needs.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

use model::server::BuildSystem;

use super::run::Runner;
use super::sync::{BUILD, SOURCE, unless_missing};
use super::{BuildConfig, refuse};
use crate::error::Error;
use crate::programs::installation::missing_program;
use host::Fingerprint;
use host::IoContext;
use host::files::remove_tree;
use host::{Progress, check_interrupted, tools};

/// Prefix that PostgreSQL is configured with. It finds its files relative to its programs, so that it runs at any
/// place.
const PREFIX: &str = "/usr/local/pgsql";
/// Library directory, relative to the programs and to the modules.
const LIBRARIES: &str = "$ORIGIN/../lib";
/// Makefile with what a server needs.
const SERVER: &str = include_str!("server.mk");
/// The grammar and the file generated from it: tarballs of releases up to 16 have both.
const GRAMMAR: &str = "src/backend/parser/gram.y";
const PARSER: &str = "src/backend/parser/gram.c";
/// Record of the configuration in a configured directory.
const CONFIGURED: &str = "pgdyno-configured";

/// Steps of one build in its directory.
pub(super) struct Recipe<'a> {
    system: BuildSystem,
    arguments: Vec<String>,
    /// Command of the compiler, with ccache if available.
    compiler: String,
    /// Version of the compiler; a change starts a new build.
    compiler_version: &'a str,
    source: PathBuf,
    build: PathBuf,
    /// Directory of stored results of `configure`'s checks.
    configure_results: PathBuf,
    runner: &'a Runner<'a>,
    progress: &'a dyn Progress,
}

impl<'a> Recipe<'a> {
    /// Chooses the build options for the source in a build directory, and checks that the tools are installed.
    pub(super) fn new(
        config: &'a BuildConfig,
        directory: &Path,
        configure_results: PathBuf,
        runner: &'a Runner<'a>,
        progress: &'a dyn Progress,
    ) -> Result<Self, Error> {
        let (source, build) = (directory.join(SOURCE), directory.join(BUILD));
        let compiler = match tools::find("ccache") {
            Some(_) if !config.compiler.contains("ccache") => format!("ccache {}", config.compiler),
            _ => config.compiler.clone(),
        };
        let mut arguments = match config.system {
            BuildSystem::Configure => configure_arguments(&source, config, &compiler, runner)?,
            BuildSystem::Meson => meson_arguments(&source, config, runner)?,
        };
        arguments.extend(config.options.iter().cloned());
        let compiler_version = &config.compiler_version;
        Ok(Self {
            system: config.system,
            arguments,
            compiler,
            compiler_version,
            source,
            build,
            configure_results,
            runner,
            progress,
        })
    }

    /// Arguments of `configure` or `meson setup`.
    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Configures, unless it was already configured in the same way.
    pub(super) fn configure(&self) -> Result<(), Error> {
        let mark = self.build.join(CONFIGURED);
        let configuration = [&self.arguments[..], &[self.compiler.clone(), self.compiler_version.to_owned()]];
        let configuration = configuration.concat().join("\n");
        if fs::read_to_string(&mark).is_ok_and(|before| before == configuration) {
            return Ok(());
        }
        self.step("configuring")?;
        match self.system {
            BuildSystem::Configure => self.configure_with_stored_results(&configuration)?,
            BuildSystem::Meson => {
                let mut meson = tools::command("meson");
                meson.arg("setup").arg(&self.build).arg(&self.source).env("CC", &self.compiler);
                self.run_configure(meson)?;
            }
        }
        Ok(fs::write(&mark, configuration).doing("write", &mark)?)
    }

    /// Runs `configure` with its stored results for this machine, if the same script ran in the same way before: most
    /// of its time goes into checks.
    fn configure_with_stored_results(&self, configuration: &str) -> Result<(), Error> {
        let script = self.source.join("configure");
        let mut fingerprint = Fingerprint::new();
        fingerprint.add(configuration);
        fingerprint.add_file(&script)?;
        let stored = self.configure_results.join(fingerprint.finish());
        let results = self.build.with_file_name("answers");
        let site = self.build.with_file_name("config.site");
        // As an argument, it would be in the output of the server's pg_config.
        fs::write(&site, format!("cache_file='{}'\n", results.display())).doing("write", &site)?;
        let run = || {
            let mut configure = tools::command(&script.to_string_lossy());
            configure.env("CONFIG_SITE", &site);
            self.run_configure(configure)
        };
        unless_missing(fs::remove_file(&results)).doing("remove", &results)?;
        if fs::copy(&stored, &results).is_ok() {
            match run() {
                // The environment or the machine may have changed.
                Err(Error::Build { .. }) => {
                    unless_missing(fs::remove_file(&stored)).doing("remove", &stored)?;
                    unless_missing(fs::remove_file(&results)).doing("remove", &results)?;
                }
                outcome => return outcome,
            }
        }
        run()?;
        Ok(unless_missing(fs::rename(&results, &stored)).doing("store", &stored)?)
    }

    /// Runs in an empty directory.
    fn run_configure(&self, mut command: Command) -> Result<(), Error> {
        remove_tree(&self.build)?;
        fs::create_dir(&self.build).doing("create the directory", &self.build)?;
        command.args(&self.arguments).current_dir(&self.build);
        self.runner.run("configure", command)
    }

    /// Compiles what is out of date.
    pub(super) fn compile(&self) -> Result<(), Error> {
        self.step("compiling")?;
        match self.system {
            BuildSystem::Configure => self.make("compile", &["all"]),
            BuildSystem::Meson => {
                let mut ninja = tools::command("ninja");
                ninja.arg("-C").arg(&self.build).arg(jobs());
                self.runner.run("compile", ninja)
            }
        }
    }

    /// Installs as the new directory `tree`. Its parent is private to the caller.
    pub(super) fn install(&self, tree: &Path) -> Result<(), Error> {
        self.step("installing")?;
        let stage = tree.with_file_name("stage");
        match self.system {
            BuildSystem::Configure => {
                self.make("install", &["install", &format!("DESTDIR={}", stage.display())])?;
            }
            BuildSystem::Meson => {
                let mut meson = tools::command("meson");
                meson.args(["install", "--quiet", "--no-rebuild", "-C"]).arg(&self.build);
                meson.arg("--destdir").arg(&stage);
                self.runner.run("install", meson)?;
            }
        }
        let installed = stage.join(PREFIX.trim_start_matches('/'));
        if let Some(program) = missing_program(&installed.join("bin")) {
            return Err(self.runner.failed("install", &format!("it contains no bin/{program}")));
        }
        Ok(fs::rename(&installed, tree).doing("rename to", tree)?)
    }

    fn step(&self, doing: &str) -> Result<(), Error> {
        check_interrupted(self.progress)?;
        self.progress.step(&format!("{doing} {}", self.runner.what()), 0, None);
        Ok(())
    }

    fn make(&self, doing: &'static str, what: &[&str]) -> Result<(), Error> {
        let makefile = self.build.join("pgdyno.mk");
        fs::write(&makefile, SERVER).doing("write", &makefile)?;
        let mut make = tools::command("make");
        make.arg("-C").arg(&self.build).arg("-f").arg(&makefile).arg(jobs()).args(what);
        // Both make and the shell expand it.
        make.arg(format!("rpathdir={}", LIBRARIES.replace('$', "$$")));
        self.runner.run(doing, make)
    }
}

/// Option of `make` and `ninja` for as many jobs as there are processors.
pub(super) fn jobs() -> String {
    format!("-j{}", available_parallelism().map_or(1, NonZero::get))
}

fn configure_arguments(
    source: &Path,
    config: &BuildConfig,
    compiler: &str,
    runner: &Runner<'_>,
) -> Result<Vec<String>, Error> {
    tools::require("make")?;
    if source.join(GRAMMAR).exists() && !source.join(PARSER).exists() {
        require_generators()?;
    }
    let script = source.join("configure");
    let text = fs::read(&script)
        .map_err(|_| refuse(runner.location(), "it has no `configure`; build it with meson"))?;
    let mut arguments: Vec<String> =
        ["--enable-depend", "--without-readline", "--without-zlib"].map(str::to_owned).into();
    // ICU is the default from 16 on, and unknown before 10.
    if String::from_utf8_lossy(&text).contains("--without-icu") {
        arguments.push("--without-icu".to_owned());
    }
    arguments.push(format!("--prefix={PREFIX}"));
    arguments.push(format!("CC={compiler}"));
    arguments.push(format!("CFLAGS={}", config.cflags));
    Ok(arguments)
}

fn meson_arguments(source: &Path, config: &BuildConfig, runner: &Runner<'_>) -> Result<Vec<String>, Error> {
    for tool in ["meson", "ninja"] {
        tools::require(tool)?;
    }
    require_generators()?;
    if !source.join("meson.build").exists() {
        return Err(refuse(
            runner.location(),
            "it has no `meson.build`, which PostgreSQL has from 16 on; build it with configure",
        ));
    }
    let own = ["--auto-features=disabled", "--buildtype=plain", "--libdir=lib", "-Drpath=false"];
    let mut arguments: Vec<String> = own.map(str::to_owned).into();
    arguments.push(format!("--prefix={PREFIX}"));
    arguments.push(format!("-Dc_args={}", config.cflags));
    arguments.push(format!("-Dc_link_args=-Wl,-rpath,{LIBRARIES}"));
    Ok(arguments)
}

/// Tools that generate C files.
fn require_generators() -> Result<(), Error> {
    Ok(["bison", "flex", "perl"].into_iter().try_for_each(tools::require)?)
}
