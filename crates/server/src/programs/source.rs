//! Servers built from source: once per source and build options, outside the source tree, and kept.

mod catalogs;
mod content;
mod data_format;
mod extension;
mod range;
mod recipe;
mod run;
mod sync;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::Timestamp;
use model::server::{Build, BuildSystem};

use crate::error::Error;
use crate::programs::installation::{
    BUILD_LOG, BuildRecord, Installation, Origin, Record, installed, lock_file, put_in_place,
};
pub use catalogs::catalogs_of_commits;
use content::Content;
pub use content::commit;
pub(super) use content::walk;
pub use extension::{ExtensionSource, with_extension};
use host::Cache;
use host::Fingerprint;
use host::IoContext;
use host::Lock;
use host::files::{create_public_directory, remove_tree};
use host::{Progress, check_interrupted, tools};
pub use range::{commits_between, commits_of_merge};
use recipe::Recipe;
use run::Runner;
pub(super) use sync::are_equal;

/// Default compiler flags: the same for all majors, with frame pointers for stack traces.
const CFLAGS: &str = "-O2 -g -fno-omit-frame-pointer";
/// Version of pgdyno's way of building; builds of older ones are no longer used.
const FORMAT: &str = "2";
/// Digits of the hash in an identity, and in the name of a build directory.
const DIGITS: usize = 12;

/// Makes the server of a source available: an existing build is used as it is, else it is built.
///
/// The build directory has a fixed place, so that a change of a few files recompiles only these, and ccache finds its
/// entries; one pgdyno uses it at a time. Before that, `make_room` may remove others. A new server is installed only if
/// `try_out` accepts it: what make installs differs between majors.
pub(crate) fn build(
    cache: &Cache,
    build: &Build,
    make_room: &dyn Fn() -> Result<(), Error>,
    try_out: &dyn Fn(&Installation) -> Result<(), Error>,
    progress: &dyn Progress,
) -> Result<Installation, Error> {
    check_options(build)?;
    progress.step(&format!("reading the source {}", build.location.display()), 0, None);
    let content = Content::new(build)?;
    let config = BuildConfig::new(build)?;
    let suffix = config.suffix(&content);
    if let Some(installation) = built(cache, &suffix)? {
        return Ok(installation);
    }
    let name = config.hash_with(content.origin().as_os_str().as_bytes())[..DIGITS].to_owned();
    let directory = cache.builds().join(&name);
    create_public_directory(&directory)?;
    let what = format!("the build of {}", content.location.display());
    let _build_lock = Lock::exclusive_for(&directory_lock(cache, &name), &what, progress)?;
    if let Some(installation) = built(cache, &suffix)? {
        return Ok(installation);
    }
    check_interrupted(progress)?;
    make_room()?;
    let runner = Runner::new(&content.location, &directory.join(BUILD_LOG), progress)?;
    let version = sync::update(&content, &directory, &runner, progress)?;
    let identity = format!("{version}{suffix}");
    let runner = runner.of_version(version);
    // The same source may be built from another place at the same time.
    let compile = || {
        let recipe = Recipe::new(&config, &directory, cache.configure_results(), &runner, progress)?;
        recipe.configure()?;
        recipe.compile()?;
        let data_format = data_format::data_format(&directory.join(sync::SOURCE), &config.hash_with(""))?;
        let record = Record {
            format: 1,
            version: version.to_string(),
            source: Origin::Build,
            archive: None,
            sha512: None,
            build: Some(Box::new(BuildRecord {
                location: content.location.clone(),
                git_ref: build.git_ref.clone(),
                patches: build.patches.clone(),
                content: content.fingerprint.clone(),
                system: config.system,
                arguments: recipe.arguments().to_vec(),
                cflags: config.cflags.clone(),
                compiler: config.compiler_version.clone(),
                directory: name,
                data_format,
            })),
            extension: None,
            installed: Timestamp::now(),
        };
        let make = |tree: &Path| {
            recipe.install(tree)?;
            let log = tree.join(BUILD_LOG);
            Ok(fs::copy(runner.log(), &log).doing("copy the log to", &log).map(drop)?)
        };
        let installation = put_in_place(cache, &identity, &record, make, |installation| {
            check_interrupted(progress)?;
            progress.step(&format!("starting {} for the first time", runner.what()), 0, None);
            try_out(installation).map_err(|error| Error::UnusableBuild {
                version: version.to_string(),
                location: content.location.clone(),
                log: runner.log().to_owned(),
                error: Box::new(error),
            })
        })?;
        sync::clear(&directory)?;
        Ok(installation)
    };
    let find = || built(cache, &suffix);
    Lock::create_once(&lock_file(cache, &identity), &what, progress, find, compile)
}

/// Whether a source is built already. Nothing is changed.
///
/// # Errors
/// There is no such source or ref, a build option can't be used, or a tool is missing.
pub fn is_built(cache: &Cache, build: &Build) -> Result<bool, Error> {
    check_options(build)?;
    let content = Content::new(build)?;
    let config = BuildConfig::new(build)?;
    if built(cache, &config.suffix(&content))?.is_some() {
        return Ok(true);
    }
    match config.system {
        BuildSystem::Configure => tools::require("make")?,
        BuildSystem::Meson => ["meson", "ninja"].into_iter().try_for_each(tools::require)?,
    }
    Ok(false)
}

/// Build options of a server, with all defaults filled in.
struct BuildConfig {
    system: BuildSystem,
    cflags: String,
    options: Vec<String>,
    compiler: String,
    compiler_version: String,
}

impl BuildConfig {
    fn new(build: &Build) -> Result<Self, Error> {
        let is_compiler = |option: &String| option.starts_with("CC=");
        let compiler = build.options.iter().rfind(|option| is_compiler(option));
        let compiler = compiler.map_or("cc", |option| &option["CC=".len()..]);
        let system = build.system.unwrap_or(BuildSystem::Configure);
        let mut cflags = build.cflags.clone().unwrap_or_else(|| CFLAGS.to_owned());
        let mut options: Vec<String> =
            build.options.iter().filter(|option| !is_compiler(option)).cloned().collect();
        if build.sorted_functions {
            cflags += " -ffunction-sections";
            add_link_option(&mut options, "-Wl,--sort-section=name");
        }
        Ok(Self {
            system,
            cflags,
            options,
            compiler: compiler.to_owned(),
            compiler_version: tools::compiler_version(compiler)?,
        })
    }

    /// End of the name of a server that is built from this source.
    fn suffix(&self, content: &Content) -> String {
        format!("-src-{}", &self.hash_with(&content.fingerprint)[..DIGITS])
    }

    /// Hash of these options and `other`.
    fn hash_with(&self, other: impl AsRef<[u8]>) -> String {
        let mut fingerprint = Fingerprint::new();
        fingerprint.add(other);
        for part in [FORMAT, self.system.as_str(), &self.cflags] {
            fingerprint.add(part);
        }
        for part in [&self.compiler, &self.compiler_version].into_iter().chain(&self.options) {
            fingerprint.add(part);
        }
        fingerprint.finish()
    }
}

/// Adds an option of the linker to those of the user, for `configure`.
fn add_link_option(options: &mut Vec<String>, option: &str) {
    const NAME: &str = "LDFLAGS=";
    match options.iter_mut().rfind(|given| given.starts_with(NAME)) {
        Some(given) => *given = format!("{given} {option}"),
        None => options.push(format!("{NAME}{option}")),
    }
}

/// Refuses options that pgdyno sets itself.
fn check_options(build: &Build) -> Result<(), Error> {
    let refuse = |option: &str, why: &str| {
        Err(Error::Source {
            location: build.location.clone(),
            why: format!("the build option {option} can't be used: {why}"),
        })
    };
    for option in &build.options {
        let name = option.split('=').next().unwrap_or_default();
        match name {
            "CFLAGS" | "-Dc_args" => return refuse(option, "set `cflags` instead"),
            "--prefix" | "--exec-prefix" | "--bindir" | "--libdir" | "--datadir" | "--datarootdir"
            | "-Dprefix" | "-Dbindir" | "-Dlibdir" | "-Ddatadir" => {
                return refuse(option, "pgdyno sets the installation directory itself");
            }
            _ => {}
        }
    }
    Ok(())
}

/// An earlier build, of any version.
fn built(cache: &Cache, suffix: &str) -> Result<Option<Installation>, Error> {
    Ok(installed(cache)?.into_iter().find(|installation| installation.identity().ends_with(suffix)))
}

/// Removes a build directory that no installation needs any more.
pub(crate) fn remove_directory(cache: &Cache, name: &str) -> Result<(), Error> {
    let uses = |found: &Installation| found.build().is_some_and(|build| build.directory == name);
    if installed(cache)?.iter().any(uses) {
        return Ok(());
    }
    match Lock::try_exclusive(&directory_lock(cache, name))? {
        Some(_lock) => Ok(remove_tree(&cache.builds().join(name))?),
        // Another build is using it.
        None => Ok(()),
    }
}

fn directory_lock(cache: &Cache, name: &str) -> std::path::PathBuf {
    cache.lock_file(&format!("build-{name}"))
}

/// Error of a source that can't be built.
fn refuse(location: &Path, why: impl Into<String>) -> Error {
    Error::Source { location: location.to_owned(), why: why.into() }
}
