//! Content to build: a directory in its present state, a git ref, or a tarball, each with patches if any are given.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::record::Commit;
use model::server::Build;

use super::refuse;
use super::run::Runner;
use crate::error::Error;
use host::Fingerprint;
use host::IoContext;
use host::tools;

/// A source with its content.
pub(super) struct Content {
    /// Canonical path.
    pub(super) location: PathBuf,
    /// Identifies equal content, as in [`crate::BuildRecord::content`].
    pub(super) fingerprint: String,
    kind: Kind,
    /// Canonical paths of the patches, in the order in which they apply.
    patches: Vec<PathBuf>,
}

enum Kind {
    Directory(Vec<PathBuf>),
    /// A tree of a git repository.
    Tree(String),
    Tarball,
}

impl Content {
    /// Inspects a source, without changing it.
    pub(super) fn new(build: &Build) -> Result<Self, Error> {
        let location = build.location.canonicalize();
        let location = location.map_err(|error| refuse(&build.location, error.to_string()))?;
        let (kind, fingerprint) = match (&build.git_ref, location.is_dir()) {
            (Some(git_ref), true) => {
                let tree = tree_of(&location, git_ref)?;
                let fingerprint = format!("tree:{tree}");
                (Kind::Tree(tree), fingerprint)
            }
            (Some(git_ref), false) => {
                return Err(refuse(
                    &location,
                    format!("it has no ref \"{git_ref}\", since it is not a git repository"),
                ));
            }
            (None, true) => {
                let files = files_of(&location)?;
                let fingerprint = fingerprint(&location, &files)?;
                (Kind::Directory(files), fingerprint)
            }
            (None, false) => {
                let mut sum = Fingerprint::new();
                sum.add_file(&location)?;
                (Kind::Tarball, format!("tarball:{}", sum.finish()))
            }
        };
        let (patches, fingerprint) = with_patches(build, &location, fingerprint)?;
        Ok(Self { location, fingerprint, kind, patches })
    }

    /// What the build directory belongs to: the repository of a git work tree, so that its work trees, refs and patches
    /// share one, else the location.
    pub(super) fn origin(&self) -> PathBuf {
        let mut git = tools::git(&self.location);
        git.args(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let is_repository = self.location.join(".git").exists() || matches!(self.kind, Kind::Tree(_));
        let output = is_repository.then(|| git.output().ok()).flatten();
        match output.filter(|output| output.status.success()) {
            Some(output) => PathBuf::from(OsStr::from_bytes(output.stdout.trim_ascii())),
            None => self.location.clone(),
        }
    }

    /// Returns the source as a directory with the sorted paths of its files. Packed sources are unpacked into the empty
    /// directory `scratch`.
    pub(super) fn as_directory(
        &self,
        scratch: &Path,
        runner: &Runner<'_>,
    ) -> Result<(PathBuf, Vec<PathBuf>), Error> {
        let unpacked = match &self.kind {
            Kind::Directory(files) if self.patches.is_empty() => {
                return Ok((self.location.clone(), files.clone()));
            }
            Kind::Directory(files) => self.copy(files, scratch, runner)?,
            Kind::Tree(tree) => {
                let archive = scratch.join("tree.tar");
                let mut git = tools::git_of_build(&self.location);
                git.args(["archive", "--format=tar", "-o"]).arg(&archive).arg(tree);
                runner.run("read from git", git)?;
                unpack(&archive, &scratch.join("tree"), runner)?
            }
            Kind::Tarball => unpack(&self.location, &scratch.join("tree"), runner)?,
        };
        self.apply_patches(&unpacked, scratch, runner)?;
        let files = walk(&unpacked)?;
        Ok((unpacked, files))
    }

    /// Copies the files of a directory.
    fn copy(&self, files: &[PathBuf], scratch: &Path, runner: &Runner<'_>) -> Result<PathBuf, Error> {
        let (list, archive) = (scratch.join("files"), scratch.join("tree.tar"));
        fs::write(&list, file_list(files)).doing("write", &list)?;
        let mut tar = tools::command("tar");
        tar.arg("-C").arg(&self.location).args(["--null", "--no-recursion", "-T"]).arg(&list);
        tar.arg("-cf").arg(&archive);
        runner.run("copy", tar)?;
        unpack(&archive, &scratch.join("tree"), runner)
    }

    fn apply_patches(&self, tree: &Path, scratch: &Path, runner: &Runner<'_>) -> Result<(), Error> {
        for patch in &self.patches {
            let mut git = tools::git(tree);
            // The cache may be in a repository, whose paths git would take those of the patch for.
            git.env("GIT_CEILING_DIRECTORIES", scratch);
            git.args(["apply", "--whitespace=nowarn", "--"]).arg(patch);
            runner.run("patch", git)?;
        }
        Ok(())
    }

    /// Whether a copy still equals this source as it was inspected.
    pub(super) fn equals(&self, copy: &Path, files: &[PathBuf]) -> Result<bool, Error> {
        match self.kind {
            Kind::Directory(_) if self.patches.is_empty() => {
                Ok(fingerprint(copy, files)? == self.fingerprint)
            }
            Kind::Directory(_) | Kind::Tree(_) | Kind::Tarball => Ok(true),
        }
    }
}

/// The canonical paths of a build's patches, and the fingerprint of the source with them.
fn with_patches(
    build: &Build,
    location: &Path,
    fingerprint: String,
) -> Result<(Vec<PathBuf>, String), Error> {
    if build.patches.is_empty() {
        return Ok((Vec::new(), fingerprint));
    }
    tools::require("git")?;
    let mut sum = Fingerprint::new();
    let mut patches = Vec::new();
    for patch in &build.patches {
        let path = patch.canonicalize();
        let path = path.map_err(|error| {
            refuse(location, format!("the patch {} can't be read: {error}", patch.display()))
        })?;
        sum.add_file(&path)?;
        patches.push(path);
    }
    Ok((patches, format!("{fingerprint}+patch:{}", sum.finish())))
}

/// ID of the tree that a git ref stands for.
fn tree_of(repository: &Path, git_ref: &str) -> Result<String, Error> {
    tools::require("git")?;
    let mut git = tools::git(repository);
    git.args(["rev-parse", "--verify", "--end-of-options"]).arg(format!("{git_ref}^{{tree}}"));
    let output = git.output().doing("run git in", repository)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(refuse(repository, format!("git has no ref \"{git_ref}\" in it: {}", stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The commit that a build's ref stands for; none without a ref, in a shallow clone, whose history is incomplete, and
/// if git or the ref is missing.
pub fn commit(build: &Build) -> Option<Commit> {
    let git = |arguments: &[&str]| {
        let mut git = host::git::command(&build.location);
        // Regardless of the repository's owner, as for its build.
        let output = git.args(["-c", "safe.directory=*"]).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let name = format!("{}^{{commit}}", build.git_ref.as_ref()?);
    let id = git(&["rev-parse", "--verify", "--end-of-options", &name])?;
    let is_complete = git(&["rev-parse", "--is-shallow-repository"])? == "false";
    let position = git(&["rev-list", "--count", &id])?.parse().ok()?;
    is_complete.then_some(Commit { id, position })
}

/// Files of a source directory: in a git work tree those that git does not ignore. Build directories are left out.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = if directory.join(".git").exists() {
        files_of_work_tree(directory)?
    } else if directory.join("config.status").exists() {
        return Err(refuse(
            directory,
            "it was built in place; run `make distclean` there, or give a git work tree or a tarball",
        ));
    } else {
        walk(directory)?
    };
    let is_build_file = |file: &Path| matches!(file.to_str(), Some("config.status" | "build.ninja"));
    let build_directories: BTreeSet<PathBuf> = files
        .iter()
        .filter(|file| file.file_name().is_some_and(|name| is_build_file(Path::new(name))))
        .filter_map(|file| file.parent().map(Path::to_owned))
        .filter(|parent| !parent.as_os_str().is_empty())
        .collect();
    let is_source = |file: &PathBuf| !file.ancestors().skip(1).any(|above| build_directories.contains(above));
    Ok(files.into_iter().filter(is_source).collect())
}

fn files_of_work_tree(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    tools::require("git")?;
    let mut git = tools::git(directory);
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().doing("run git in", directory)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(refuse(directory, format!("git can't list its files: {}", stderr.trim())));
    }
    // A file with a merge conflict is listed several times; a deleted one is listed, too.
    let names: BTreeSet<&[u8]> = output.stdout.split(|&byte| byte == 0).collect();
    let paths = names.into_iter().map(|name| PathBuf::from(OsStr::from_bytes(name)));
    Ok(paths.filter(|path| is_file_or_link(&directory.join(path))).collect())
}

fn is_file_or_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() || meta.is_symlink())
}

/// All files and links below a directory, sorted.
pub(in crate::programs) fn walk(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).doing("read the directory", &directory)? {
            let entry = entry.doing("read the directory", &directory)?;
            let path = entry.path();
            let kind = entry.file_type().doing("inspect", &path)?;
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() || kind.is_symlink() {
                found.extend(path.strip_prefix(root).ok().map(Path::to_owned));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Paths of files, each terminated by a zero.
pub(super) fn file_list(files: &[PathBuf]) -> Vec<u8> {
    files.iter().flat_map(|file| [file.as_os_str().as_bytes(), b"\0"].concat()).collect()
}

/// Fingerprint of files: their names, whether they are executable, and their content.
fn fingerprint(root: &Path, files: &[PathBuf]) -> Result<String, Error> {
    let mut sum = Fingerprint::new();
    for file in files {
        let path = root.join(file);
        let meta = fs::symlink_metadata(&path).doing("inspect", &path)?;
        sum.add(file.as_os_str().as_bytes());
        if meta.is_symlink() {
            sum.add("link");
            sum.add(fs::read_link(&path).doing("read", &path)?.into_os_string().into_vec());
        } else {
            sum.add(if meta.permissions().mode() & 0o100 == 0 { "file" } else { "program" });
            sum.add_file(&path)?;
        }
    }
    Ok(format!("files:{}", sum.finish()))
}

/// Unpacks a tarball, and returns the directory with its content: most have a single top-level directory.
fn unpack(tarball: &Path, into: &Path, runner: &Runner<'_>) -> Result<PathBuf, Error> {
    tools::require("tar")?;
    let decompressor = match tarball.extension().and_then(OsStr::to_str) {
        Some("tar") => None,
        Some("gz" | "tgz") => Some("gzip"),
        Some("bz2" | "tbz2") => Some("bzip2"),
        Some("xz" | "txz") => Some("xz"),
        _ => {
            return Err(refuse(
                tarball,
                "it is neither a directory nor a tarball (.tar, .tar.gz, .tar.bz2, .tar.xz)",
            ));
        }
    };
    decompressor.map_or(Ok(()), tools::require)?;
    fs::create_dir(into).doing("create the directory", into)?;
    let mut tar = tools::command("tar");
    tar.arg("-xf").arg(tarball).arg("-C").arg(into).args(["--no-same-owner", "--no-same-permissions"]);
    runner.run("unpack", tar)?;
    let mut entries = fs::read_dir(into).doing("read the directory", into)?;
    match (entries.next(), entries.next()) {
        (Some(Ok(only)), None) if only.path().is_dir() => Ok(only.path()),
        _ => Ok(into.to_owned()),
    }
}
