//! The servers of a comparison: versions, directories of programs, sources, git refs, and patched sources.

use std::path::{Path, PathBuf};

use model::server::{Build, BuildSystem, ServerSpec, Source};

use crate::exit::Usage;

/// Maximum length of a server's name, with room for a number that distinguishes it.
const MAX_NAME: usize = 56;

/// The servers that the command line names; with patches, the one without and the one with them. Paths are absolute, so
/// that the run can be resumed from anywhere.
pub(in crate::commands) fn servers(
    names: &[String],
    repository: Option<&Path>,
    patches: &[PathBuf],
) -> Result<Vec<ServerSpec>, Usage> {
    let mut servers: Vec<ServerSpec> = Vec::new();
    for text in names {
        let (name, source) = server(text, repository)?;
        servers.push(named(&name, source, &servers));
    }
    if patches.is_empty() {
        return Ok(servers);
    }
    let [ServerSpec { name, source: Source::Build(build), .. }] = servers.as_slice() else {
        return Err(Usage(
            "error: --patch compares one source with the same source patched: expected one SERVER, a directory or tarball \
             with the source, or a ref with --repo"
                .to_owned(),
        ));
    };
    let patch = patches.iter().map(|patch| absolute(patch)).collect::<Result<Vec<_>, _>>()?;
    let stem = patch[0].file_stem().unwrap_or_default().to_string_lossy();
    let patched = named(
        &format!("{name}+{stem}"),
        Source::Build(Build { patches: patch.clone(), ..build.clone() }),
        &servers,
    );
    servers.push(patched);
    Ok(servers)
}

/// A server with its name, which no other one has.
fn named(name: &str, source: Source, others: &[ServerSpec]) -> ServerSpec {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let name: String = name.chars().take(MAX_NAME).map(|c| if is_allowed(c) { c } else { '-' }).collect();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let is_free = |name: &String| others.iter().all(|other| other.name != *name);
    let name = std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name);
    ServerSpec { name, source, initdb: Vec::new() }
}

/// The server that a text names.
fn server(text: &str, repository: Option<&Path>) -> Result<(String, Source), Usage> {
    if let Some(source) = Source::from_name(text) {
        return Ok((text.to_owned(), source));
    }
    if let Some(repository) = repository.filter(|_| !is_path(text)) {
        let git_ref = Some(text.to_owned());
        return Ok((text.to_owned(), build(absolute(repository)?, git_ref)));
    }
    let Ok(path) = Path::new(text).canonicalize() else { return Err(unknown(text, repository)) };
    let is_programs = [path.join("postgres"), path.join("bin/postgres")].iter().any(|file| file.is_file());
    if is_programs {
        let directory = if path.ends_with("bin") { path.parent().unwrap_or(&path) } else { &path };
        return Ok((file_name(directory), Source::Bin(path)));
    }
    let is_source = path.is_dir() && path.join("src/backend").is_dir();
    let tarball = file_name(&path).split_once(".tar").map(|(name, _)| name.to_owned());
    match tarball.filter(|_| path.is_file()) {
        Some(name) => Ok((name, build(path, None))),
        None if is_source => Ok((file_name(&path), build(path, None))),
        None => Err(Usage(format!(
            "error: {text} has neither the programs of a server (bin/postgres) nor its source (src/backend)"
        ))),
    }
}

fn build(location: PathBuf, git_ref: Option<String>) -> Source {
    // The default is configure, which a git repository has at every ref up to 18.
    let is_meson = git_ref.is_none()
        && location.is_dir()
        && !location.join("configure").exists()
        && location.join("meson.build").exists();
    let system = is_meson.then_some(BuildSystem::Meson);
    Source::Build(Build {
        location,
        git_ref,
        system,
        options: Vec::new(),
        cflags: None,
        patches: Vec::new(),
        sorted_functions: false,
    })
}

/// Whether a text can only be a path: refs neither begin with a slash nor with a dot.
fn is_path(text: &str) -> bool {
    text.starts_with(['/', '.'])
}

pub(in crate::commands) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(in crate::commands) fn absolute(path: &Path) -> Result<PathBuf, Usage> {
    path.canonicalize().map_err(|error| Usage(format!("error: {}: {error}", path.display())))
}

fn unknown(text: &str, repository: Option<&Path>) -> Usage {
    let hint = match repository {
        None => " (for a branch, tag or commit, name its repository: --repo DIR)",
        Some(_) => "",
    };
    Usage(format!(
        "error: \"{text}\" is no server: expected a version such as 18 or 16.4, the name of a build, or the directory of a \
         server's programs or of its source{hint}; scripts end in .sql"
    ))
}
