//! The commits between two of a repository of Linux.

use std::path::Path;

use crate::error::Error;
use host::git::RangeCommit;

/// Directories from which nothing gets into a kernel.
const OTHER_DIRECTORIES: [&str; 4] = ["Documentation/", "LICENSES/", "samples/", "tools/"];
/// Directory of the tools that builds use.
const BUILD_TOOLS: [&str; 5] =
    ["tools/build/", "tools/include/", "tools/lib/", "tools/objtool/", "tools/arch/x86/"];
/// Directory of the architectures, and that of the one that pgdyno boots.
const ARCHITECTURES: &str = "arch/";
const ARCHITECTURE: &str = "arch/x86/";
/// Files without code, and ends of the names of such files.
const OTHER_FILES: [&str; 3] = ["MAINTAINERS", "CREDITS", "COPYING"];
const TEXTS: [&str; 2] = [".rst", ".md"];

/// The commits of first parents from an older one, which is the first, to a newer one, with whether they can change a kernel: others
/// change only documentation, samples, tools or other architectures.
///
/// # Errors
/// As [`host::git::commits_between`].
pub fn commits_between(repository: &Path, older: &str, newer: &str) -> Result<Vec<RangeCommit>, Error> {
    Ok(host::git::commits_between(repository, older, newer, is_of_kernel)?)
}

/// The commits that a merge brought, in the same way; none if the commit is no merge of one branch.
///
/// # Errors
/// As [`host::git::commits_of_merge`].
pub fn commits_of_merge(repository: &Path, merge: &str) -> Result<Option<Vec<RangeCommit>>, Error> {
    Ok(host::git::commits_of_merge(repository, merge, is_of_kernel)?)
}

/// Whether a kernel is made from a file.
fn is_of_kernel(file: &str) -> bool {
    let is_below = |directories: &[&str]| directories.iter().any(|directory| file.starts_with(directory));
    let is_elsewhere = is_below(&OTHER_DIRECTORIES) && !is_below(&BUILD_TOOLS);
    let is_foreign = file.strip_prefix(ARCHITECTURES).is_some_and(|rest| rest.contains('/'))
        && !file.starts_with(ARCHITECTURE);
    let is_text = OTHER_FILES.contains(&file) || TEXTS.iter().any(|end| file.ends_with(end));
    let is_of_git = file.starts_with(".git") || file.ends_with("/.gitignore");
    !(is_elsewhere || is_foreign || is_text || is_of_git)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_and_other_architectures_do_not_change_a_kernel() {
        for file in [
            "Documentation/admin-guide/mm/ksm.rst",
            "LICENSES/preferred/MIT",
            "samples/bpf/Makefile",
            "tools/perf/perf.c",
            "tools/testing/selftests/mm/ksm_tests.c",
            "arch/arm64/mm/fault.c",
            "arch/x86_extra/Kconfig",
            "drivers/staging/README.rst",
            "MAINTAINERS",
            "CREDITS",
            ".gitignore",
            "scripts/.gitignore",
            ".mailmap.md",
        ] {
            assert!(!is_of_kernel(file), "{file}");
        }
        for file in [
            "mm/memory.c",
            "arch/x86/mm/fault.c",
            "arch/Kconfig",
            "kernel/sched/fair.c",
            "include/linux/sched.h",
            "tools/objtool/check.c",
            "scripts/Makefile.build",
            "Makefile",
            "init/Kconfig",
            "fs/MAINTAINERS",
        ] {
            assert!(is_of_kernel(file), "{file}");
        }
    }
}
