//! Kernels built from the commits of a git repository: once per tree, configuration and compiler, and kept in the cache.

mod commit;
mod config;
mod range;
mod recipe;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernel::stored::{self, KernelBuild, KernelOrigin, Record};
use host::files::{create_public_directory, remove_tree};
use host::{BuildLog, Cache, Fingerprint, IoContext, Lock, Progress, check_interrupted, tools};

pub(super) use commit::Commit;
use config::Config;
pub use range::{commits_between, commits_of_merge};
use recipe::Recipe;

/// Version of pgdyno's way of building; kernels of older ones are no longer found.
const FORMAT: &str = "1";
/// The compiler, as kernels call it.
const COMPILER: &str = "gcc";
/// Log of a build, in its directory and with the kernel.
const LOG: &str = "build.log";
/// Digits of a hash in the name of a kernel or of a build directory.
const DIGITS: usize = 12;

/// Makes the kernel of a commit available: one that was built is used as it is, else it is built.
///
/// All commits of a repository with the same configuration share a build directory, so that only changed files are compiled; one pgdyno
/// uses it at a time.
pub(super) fn kernel(
    cache: &Cache,
    label: &str,
    commit: Commit,
    progress: &dyn Progress,
) -> Result<Kernel, Error> {
    let build = Build::new(commit)?;
    let id = build.id();
    loop {
        if let Some(kernel) = stored::built(cache, label, &id, progress)? {
            return Ok(kernel);
        }
        let what = format!("the build of {}", build.commit.repository.display());
        let _lock = Lock::exclusive_for(&directory_lock(cache, &build.directory), &what, progress)?;
        if stored::built(cache, label, &id, progress)?.is_none() {
            build.make(cache, &id, progress)?;
        }
    }
}

/// Whether the kernel of a commit is built already. Nothing is changed.
///
/// # Errors
/// It can't be built: a tool is missing, or its repository's configuration can't be read.
pub(super) fn is_built(cache: &Cache, commit: Commit) -> Result<bool, Error> {
    let build = Build::new(commit)?;
    if cache.kernels().join(build.id()).is_dir() {
        return Ok(true);
    }
    tools::require("make")?;
    Ok(false)
}

/// A commit with all that its kernel depends on.
struct Build {
    commit: Commit,
    config: Config,
    /// The first line of the compiler's `--version`.
    compiler: String,
    /// Name of the build directory.
    directory: String,
}

impl Build {
    fn new(commit: Commit) -> Result<Self, Error> {
        let config = Config::of(&commit.repository)?;
        let compiler = tools::compiler_version(COMPILER)?;
        let git_directory = commit.git_directory.as_os_str().as_bytes();
        let directory = format!("kernel-{}", hash(git_directory, &config, &compiler));
        Ok(Self { commit, config, compiler, directory })
    }

    /// Name of the kernel in the cache: equal content has the same.
    fn id(&self) -> String {
        format!("src-{}", hash(self.commit.tree.as_bytes(), &self.config, &self.compiler))
    }

    /// Builds the kernel. The caller has locked the build directory.
    fn make(&self, cache: &Cache, id: &str, progress: &dyn Progress) -> Result<(), Error> {
        check_interrupted(progress)?;
        tools::require("make")?;
        let directory = cache.builds().join(&self.directory);
        create_public_directory(&directory)?;
        let log = BuildLog::new(&directory.join(LOG), progress)?;
        let recipe = Recipe { commit: &self.commit, directory: &directory, log: &log, progress };
        recipe.update_source()?;
        let config = recipe.configure(&self.config)?;
        recipe.compile(&config)?;
        stored::put(cache, id, progress, |_, tree| {
            let release = recipe.install(&config, tree)?;
            let to = tree.join(LOG);
            std::fs::copy(log.path(), &to).doing("copy the log to", &to)?;
            let build = KernelBuild {
                repository: self.commit.repository.clone(),
                commit: self.commit.id.clone(),
                tree: self.commit.tree.clone(),
                config: self.config.identity(),
                compiler: self.compiler.clone(),
                directory: self.directory.clone(),
            };
            Record::new(KernelOrigin::Build { build }, release, tree)
        })
    }
}

/// Hash of a content, the configuration and the compiler.
fn hash(content: &[u8], config: &Config, compiler: &str) -> String {
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(content);
    for part in [FORMAT, &config.identity().unwrap_or_default(), compiler] {
        fingerprint.add(part);
    }
    let mut digits = fingerprint.finish();
    digits.truncate(DIGITS);
    digits
}

/// Removes a build directory that no kernel needs any more.
pub(super) fn remove_directory(cache: &Cache, name: &str) -> Result<(), Error> {
    let uses = |origin: &KernelOrigin| origin.build().is_some_and(|build| build.directory == name);
    if stored::kernels(cache)?.iter().any(|kernel| uses(&kernel.origin)) {
        return Ok(());
    }
    match Lock::try_exclusive(&directory_lock(cache, name))? {
        Some(_lock) => Ok(remove_tree(&cache.builds().join(name))?),
        // Another build is using it.
        None => Ok(()),
    }
}

fn directory_lock(cache: &Cache, name: &str) -> PathBuf {
    cache.lock_file(&format!("build-{name}"))
}

/// Error of a commit that can't be built.
fn refuse(commit: &Path, why: impl Into<String>) -> Error {
    Error::Kernel { kernel: commit.display().to_string(), why: why.into() }
}
