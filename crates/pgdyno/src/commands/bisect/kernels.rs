//! Kernels, and the arguments and parameters of one: measured in virtual machines.

use std::path::{Path, PathBuf, absolute};

use clap::Args;
use host::Cache;
use host::git::RangeCommit;
use machine::KernelRange;
use model::machine::kernel_commit;
use model::server::ServerSpec;
use runner::campaign_file::ab::Sides;

use super::candidates::without_others;
use super::settings::{Settings, one_after_the_other};
use crate::commands::ab::count::default_kernel;
use crate::commands::ab::servers::{self, servers};
use crate::commands::ab::{Setting, settings};
use crate::exit::Usage;
use crate::output::note;
use crate::progress::PreparationProgress;

#[derive(Debug, Args)]
#[command(next_help_heading = "Kernels")]
pub(super) struct KernelsArgs {
    /// Find a kernel: GOOD and BAD are versions of Linux or Debian packages, between which those are that apt has or that were
    /// fetched; or all kernels in their order; or a directory of kernels; or, with --repo, commits of Linux
    #[arg(long)]
    kernels: bool,

    /// With --kernels: the server that runs under each of them [default: the newest major]
    #[arg(long, value_name = "SERVER", requires = "kernels")]
    server: Option<String>,

    /// Find an argument on a kernel's command line: the good arguments, such as 'mitigations=off quiet' [default: none]
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    good_args: Option<String>,

    /// Find an argument on a kernel's command line: the bad arguments [default: none]
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    bad_args: Option<String>,

    /// Find a kernel parameter, such as vm.swappiness=1: parameter of the good kernel; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    good_sysctl: Vec<Setting>,

    /// Find a kernel parameter: parameter of the bad kernel; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    bad_sysctl: Vec<Setting>,

    /// The kernel of these arguments or parameters [default: the one fetched last, else Debian's for virtual machines]
    #[arg(long, value_name = "LABEL", conflicts_with = "kernels")]
    kernel: Option<String>,
}

/// What is searched, and the kernels of the virtual machines.
pub(super) type KernelSides = (Sides, Vec<String>);

impl KernelsArgs {
    /// Whether a kernel, an argument or a parameter is to be found.
    pub(super) fn is_given(&self) -> bool {
        self.kernels || self.has_args() || self.has_parameters()
    }

    /// Whether the ends are kernels.
    pub(super) const fn are_ends(&self) -> bool {
        self.kernels
    }

    /// Whether a kernel is named, for arguments or parameters.
    pub(super) const fn is_named(&self) -> bool {
        self.kernel.is_some()
    }

    const fn has_args(&self) -> bool {
        self.good_args.is_some() || self.bad_args.is_some()
    }

    const fn has_parameters(&self) -> bool {
        !self.good_sysctl.is_empty() || !self.bad_sysctl.is_empty()
    }

    /// The levels between the ends, the good one first.
    pub(super) fn sides(&self, ends: &[&str], repository: Option<&Path>) -> Result<KernelSides, Usage> {
        if usize::from(self.kernels) + usize::from(self.has_args()) + usize::from(self.has_parameters()) > 1 {
            return Err(Usage(
                "error: the ends would differ in several ways: find a kernel (--kernels), an argument (--bad-args) or a \
                 parameter (--bad-sysctl), one at a time"
                    .to_owned(),
            ));
        }
        if self.kernels {
            let newest = || server::known_majors().into_iter().max().map(|major| major.to_string());
            let name = self.server.clone().or_else(newest).unwrap_or_default();
            let labels = match (ends, repository) {
                ([good, bad], Some(repository)) => commits(repository, good, bad)?,
                (_, Some(_)) => {
                    return Err(Usage(
                        "error: expected two commits of the repository, such as v6.6 v6.7 or v6.6..v6.7"
                            .to_owned(),
                    ));
                }
                (_, None) => labels(ends)?,
            };
            return Ok((Sides::Kernels(server(&name)?), labels));
        }
        let [name] = ends else {
            return Err(Usage(
                "error: expected one server, under whose kernel an argument or a parameter is searched"
                    .to_owned(),
            ));
        };
        let server = server(name)?;
        let kernel = self.kernel.as_deref().map_or_else(|| Ok(default_kernel()), label)?;
        let sides = if self.has_args() {
            let [good, bad] =
                [&self.good_args, &self.bad_args].map(|args| args.as_deref().unwrap_or_default());
            Sides::KernelArgs(server, arguments(good, bad)?)
        } else {
            Sides::Sysctls(server, parameters(&settings(&self.good_sysctl), &settings(&self.bad_sysctl))?)
        };
        Ok((sides, vec![kernel]))
    }
}

fn server(name: &str) -> Result<ServerSpec, Usage> {
    Ok(servers(&[name.to_owned()], None, &[])?.remove(0))
}

/// Labels of the commits from the good one to the bad one, of first parents.
fn commits(repository: &Path, good: &str, bad: &str) -> Result<Vec<String>, Usage> {
    let repository = servers::absolute(repository)?;
    let commits = machine::commits_between(&repository, good, bad).map_err(Usage::from_error)?;
    let only = "documentation, tools or other architectures";
    let commits = without_others(commits, [good, bad], "kernel", only)?;
    let label = |commit: RangeCommit| format!("{}@{}", repository.display(), commit.id);
    Ok(commits.into_iter().map(label).collect())
}

/// Labels of all kernels between the ends, with these.
fn labels(ends: &[&str]) -> Result<Vec<String>, Usage> {
    match ends {
        [directory] if is_directory_of_kernels(directory) => kernels_in(Path::new(directory)),
        [good, bad] if !is_path(good) && !is_path(bad) => range(good, bad),
        [_] => Err(Usage(
            "error: expected two kernels, such as 6.1 6.12 or 6.1..6.12, or a directory of kernels"
                .to_owned(),
        )),
        several => several.iter().map(|name| label(name)).collect(),
    }
}

/// Whether a text is the path of a directory which is no built tree itself.
fn is_directory_of_kernels(text: &str) -> bool {
    let path = Path::new(text);
    path.is_dir() && !path.join("arch/x86/boot").is_dir()
}

/// A label; of a path, the absolute one, so that the run can be resumed from anywhere.
fn label(name: &str) -> Result<String, Usage> {
    if !is_path(name) {
        return Ok(name.to_owned());
    }
    let path = Path::new(name);
    let is_of_repository =
        || kernel_commit(name).is_some_and(|(repository, _)| Path::new(repository).is_dir());
    if !path.exists() && !is_of_repository() {
        return Err(Usage(format!(
            "error: there is no kernel {name}: expected a bzImage, a built kernel tree, or a commit such as ./linux@v6.6"
        )));
    }
    // Not that which a link refers to: links may be the names of kernels.
    absolute(path)
        .map(|path| path.to_string_lossy().into_owned())
        .map_err(|error| Usage(format!("error: {name}: {error}")))
}

fn is_path(name: &str) -> bool {
    name.contains('/')
}

/// The kernels of a directory.
fn kernels_in(directory: &Path) -> Result<Vec<String>, Usage> {
    let found: Vec<PathBuf> = machine::kernels_in(directory).map_err(Usage::from_error)?;
    if found.len() < 2 {
        return Err(Usage(format!(
            "error: {} has {} kernels: expected several, each a bzImage or a built kernel tree",
            directory.display(),
            found.len()
        )));
    }
    found.iter().map(|path| label(&path.to_string_lossy())).collect()
}

/// The kernels between two that apt and the cache have, with these.
fn range(good: &str, bad: &str) -> Result<Vec<String>, Usage> {
    let cache = Cache::open().map_err(Usage::from_error)?;
    let bar = PreparationProgress::new();
    let range = machine::kernel_range(&cache, [good, bad], &bar);
    bar.clear();
    let KernelRange { versions: [from, to], between } = range.map_err(Usage::from_error)?;
    if between.is_empty() {
        note(&format!(
            "neither apt nor the cache has a kernel between {good} (Linux {from}) and {bad} (Linux {to})\n"
        ));
    }
    Ok(std::iter::once(good.to_owned()).chain(between).chain([bad.to_owned()]).collect())
}

/// The good arguments, and then one after the other as in the bad ones. Arguments of the same name, such as several
/// consoles, are one.
fn arguments(good: &str, bad: &str) -> Result<Vec<String>, Usage> {
    let by_name = |text: &str| {
        let mut all = Settings::new();
        for word in words(text) {
            let name = word.split_once('=').map_or(word, |(name, _)| name);
            let of_name = all.entry(name.to_owned()).or_default();
            *of_name = if of_name.is_empty() { word.to_owned() } else { format!("{of_name} {word}") };
        }
        all
    };
    let levels = one_after_the_other(&by_name(good), &by_name(bad))?;
    let text = |level: &Settings| level.values().cloned().collect::<Vec<_>>().join(" ");
    let none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    Ok(levels.iter().map(|(_, level)| none(text(level))).collect())
}

/// The words of a kernel's command line: spaces within quotes belong to a word.
fn words(text: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let is_end = |c: char| {
        is_quoted ^= c == '"';
        c.is_ascii_whitespace() && !is_quoted
    };
    text.split(is_end).filter(|word| !word.is_empty()).collect()
}

/// The good parameters, and then one after the other as in the bad ones; each level has the name of its parameter, without what a
/// table's name can't have.
fn parameters(good: &Settings, bad: &Settings) -> Result<Vec<(String, Settings)>, Usage> {
    let levels = one_after_the_other(good, bad)?.into_iter();
    Ok(levels.map(|(name, level)| (name.trim_start_matches('/').replace('/', "."), level)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_change_one_argument_after_the_other() {
        let levels = |good, bad| arguments(good, bad).unwrap();
        assert_eq!(
            levels("quiet", "mitigations=off nosmt quiet"),
            ["quiet", "mitigations=off quiet", "mitigations=off nosmt quiet"]
        );
        assert_eq!(levels("", "nosmt"), ["none", "nosmt"]);
        assert_eq!(levels("x=1 y", "x=2"), ["x=1 y", "x=2 y", "x=2"]);
        assert_eq!(levels("console=a console=b", "console=b"), ["console=a console=b", "console=b"]);
        assert_eq!(levels("", "dyndbg=\"file a.c +p\" quiet").len(), 3);
        assert!(arguments("a b", "b  a").unwrap_err().0.contains("are the same"));
    }

    #[test]
    fn levels_of_parameters_have_names_of_tables() {
        let settings = |texts: &[&str]| {
            texts
                .iter()
                .filter_map(|text| text.split_once('='))
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .collect()
        };
        let (good, bad) = (settings(&["vm.swappiness=60"]), settings(&["/sys/kernel/mm/ksm/run=1"]));
        let names: Vec<String> = parameters(&good, &bad).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["good", "sys.kernel.mm.ksm.run", "vm.swappiness"]);
    }
}
