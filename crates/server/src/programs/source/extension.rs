//! Extensions built from source by PGXS, each in an installation of its own: the server's programs and the extension.
//!
//! Source: PostgreSQL manual, "Extension Building Infrastructure".

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::server::Build;

use super::content::Content;
use super::recipe::jobs;
use super::run::Runner;
use super::{DIGITS, FORMAT};
use crate::error::Error;
use crate::programs::installation::{
    BUILD_LOG, ExtensionRecord, Installation, RECORD, Record, find, lock_file, put_in_place,
};
use host::files::{create_public_directory, remove_tree};
use host::{Cache, Fingerprint, IoContext, Lock, Progress, tools};

/// Directory of control files in an installation.
const CONTROL_FILES: &str = "share/extension";
/// Makefile of PGXS in an installation.
const MAKEFILE: &str = "lib/pgxs/src/makefiles/pgxs.mk";
/// Suffix of a control file.
const CONTROL: &str = ".control";

/// The source of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionSource {
    /// Its name, that of its control file.
    pub name: String,
    /// The directory of its Makefile.
    pub directory: PathBuf,
}

/// The programs of a server together with an extension: what was built before is used as it is.
///
/// # Errors
/// There is no such source, the server can't build extensions, or the build fails.
pub fn with_extension(
    cache: &Cache,
    server: &Installation,
    extension: &ExtensionSource,
    progress: &dyn Progress,
) -> Result<Installation, Error> {
    let ExtensionSource { name, directory } = extension;
    tools::require("make")?;
    let refuse = |why: String| Error::Extension { name: name.clone(), location: directory.clone(), why };
    check(name, directory).map_err(refuse)?;
    let content = Content::new(&Build {
        location: directory.clone(),
        git_ref: None,
        system: None,
        options: Vec::new(),
        cflags: None,
        patches: Vec::new(),
        sorted_functions: false,
    })?;
    let has_makefiles = server.program("pg_config").is_file() && server.directory().join(MAKEFILE).is_file();
    if !has_makefiles {
        let identity = server.identity();
        return Err(refuse(format!(
            "the server {identity} has no headers and makefiles to build it with, as it was built by an earlier pgdyno: \
                 `pgdyno server remove {identity}`, and it is built again"
        )));
    }
    let mut key = Fingerprint::new();
    for part in [FORMAT, server.identity(), name, &content.fingerprint] {
        key.add(part);
    }
    let hash = &key.finish()[..DIGITS];
    let identity = format!("{}-ext-{hash}", server.identity());
    let find = || find(cache, &identity);
    let build = || {
        let place = cache.builds().join(format!("ext-{hash}"));
        remove_tree(&place)?;
        create_public_directory(&place)?;
        let runner = Runner::new(&content.location, &place.join(BUILD_LOG), progress)?.of_extension(name);
        let (source, files) = content.as_directory(&place, &runner)?;
        let copy = place.join("source");
        for file in &files {
            let (from, to) = (source.join(file), copy.join(file));
            fs::create_dir_all(to.parent().unwrap_or(&copy)).doing("create the directory of", &to)?;
            fs::copy(&from, &to).doing("copy", &from)?;
        }
        let record = Record {
            extension: Some(ExtensionRecord {
                name: name.clone(),
                location: content.location.clone(),
                content: content.fingerprint.clone(),
            }),
            installed: Timestamp::now(),
            ..server.record.clone()
        };
        let make = |tree: &Path| {
            link(server.directory(), tree)?;
            progress.step(&format!("building {}", runner.what()), 0, None);
            for (doing, target) in [("compile", "all"), ("install", "install")] {
                let mut make = tools::command("make");
                make.arg("-C").arg(&copy).args([&jobs(), target, "USE_PGXS=1"]);
                make.arg(format!("PG_CONFIG={}", tree.join("bin/pg_config").display()));
                runner.run(doing, make)?;
            }
            let control = tree.join(CONTROL_FILES).join(format!("{name}{CONTROL}"));
            if !control.is_file() {
                return Err(runner.failed("install", &format!("it installed no {name}{CONTROL}")));
            }
            let log = tree.join(BUILD_LOG);
            Ok(fs::copy(runner.log(), &log).doing("copy the log to", &log).map(drop)?)
        };
        let installation = put_in_place(cache, &identity, &record, make, |_| Ok(()))?;
        remove_tree(&place)?;
        Ok(installation)
    };
    let what = format!("the build of the extension {name}");
    Lock::create_once(&lock_file(cache, &identity), &what, progress, find, build)
}

/// Checks that a source has the control file of an extension.
fn check(name: &str, source: &Path) -> Result<(), String> {
    let entries = fs::read_dir(source).map_err(|error| error.to_string())?;
    if source.join(format!("{name}{CONTROL}")).is_file() {
        return Ok(());
    }
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut others: Vec<String> =
        names.filter_map(|name| name.strip_suffix(CONTROL).map(str::to_owned)).collect();
    others.sort();
    let help = match others.as_slice() {
        [] => "is it the source of an extension?".to_owned(),
        others => format!("name the extension, as in \"{}={}\"", others.join(" or "), source.display()),
    };
    Err(format!("it has no {name}{CONTROL}; {help}"))
}

/// Links the files of an installation into a new directory, without what is its own.
fn link(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).doing("create the directory", to)?;
    for entry in fs::read_dir(from).doing("read the directory", from)? {
        let entry = entry.doing("read the directory", from)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().doing("inspect", &source)?;
        if kind.is_dir() {
            link(&source, &target)?;
        } else if kind.is_symlink() {
            let place = fs::read_link(&source).doing("read the link", &source)?;
            std::os::unix::fs::symlink(&place, &target).doing("create the link", &target)?;
        } else if entry.file_name() != RECORD && entry.file_name() != BUILD_LOG {
            // What `make install` replaces, it replaces by new files.
            fs::hard_link(&source, &target).doing("link", &source)?;
        }
    }
    Ok(())
}
