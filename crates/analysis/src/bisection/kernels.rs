//! Levels that are kernels or their arguments: short names, and what they are.

use std::path::{Path, PathBuf};

use model::factor::Factor;
use model::plan::Plan;
use model::record::Trial;

use super::view::BisectionLevel;
use crate::context::TrialContext;

/// Names kernels at paths by what distinguishes these, and adds the releases of those that trials ran under. Commits have names and
/// subjects already.
pub(super) fn describe(plan: &Plan, levels: &mut [BisectionLevel], contexts: &[(&Trial, &TrialContext)]) {
    let paths: Vec<&Path> = plan.kernels.iter().filter_map(|kernel| kernel.path.as_deref()).collect();
    let directory = common_directory(&paths);
    for level in levels {
        let path = plan.kernels.iter().find(|kernel| kernel.name == level.name);
        let path = path.filter(|kernel| kernel.commit().is_none());
        if let Some(path) = path.and_then(|kernel| kernel.path.as_ref()) {
            let name = directory.as_ref().and_then(|directory| path.strip_prefix(directory).ok());
            level.short = name.unwrap_or(path).display().to_string();
        }
        let is_of_level =
            |trial: &Trial| Factor::Kernel.known_level(&trial.cell).as_ref() == Some(&level.name);
        let of_level = contexts.iter().filter(|(trial, _)| is_of_level(trial));
        let release = of_level.filter_map(|(_, context)| context.environment.kernel.as_ref()).next();
        level.title = level.title.take().or_else(|| release.cloned());
    }
}

/// The directory that has all files.
fn common_directory(paths: &[&Path]) -> Option<PathBuf> {
    let (first, others) = paths.split_first()?;
    let mut candidates = first.ancestors().skip(1);
    candidates.find(|directory| others.iter().all(|path| path.starts_with(directory))).map(Path::to_owned)
}

/// Names arguments by what distinguishes each level from the one before, with all of its arguments as its title.
pub(super) fn describe_arguments(levels: &mut [BisectionLevel]) {
    let all: Vec<String> = levels.iter().map(|level| level.name.clone()).collect();
    for (level, names) in levels.iter_mut().skip(1).zip(all.windows(2)) {
        let only_in = |text: &str, other: &str| {
            let others: Vec<&str> = other.split_whitespace().collect();
            text.split_whitespace().filter(|word| !others.contains(word)).collect::<Vec<_>>().join(" ")
        };
        let [before, after] = names else { continue };
        level.title = Some(after.clone());
        level.short = match (only_in(after, before), only_in(before, after)) {
            (added, _) if !added.is_empty() && added != "none" => added,
            (_, removed) => format!("without {removed}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shorts(names: &[&str]) -> Vec<String> {
        let level = |name: &&str| BisectionLevel {
            name: (*name).to_owned(),
            short: (*name).to_owned(),
            ..BisectionLevel::default()
        };
        let mut levels: Vec<BisectionLevel> = names.iter().map(level).collect();
        describe_arguments(&mut levels);
        levels.into_iter().map(|level| level.short).collect()
    }

    #[test]
    fn a_level_is_named_by_the_argument_that_it_changes() {
        assert_eq!(shorts(&["quiet", "mitigations=off quiet"]), ["quiet", "mitigations=off"]);
        assert_eq!(shorts(&["x=1 y", "x=2 y", "x=2"]), ["x=1 y", "x=2", "without y"]);
        assert_eq!(shorts(&["nosmt", "none"]), ["nosmt", "without nosmt"]);
        assert_eq!(shorts(&["none", "nosmt"]), ["none", "nosmt"]);
    }

    #[test]
    fn kernels_are_named_within_their_directory() {
        let common = |paths: &[&str]| {
            let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
            common_directory(&paths).map(|directory| directory.display().to_string())
        };
        assert_eq!(common(&["/k/a/bzImage", "/k/b/bzImage"]).as_deref(), Some("/k"));
        assert_eq!(common(&["/k/a", "/k/b"]).as_deref(), Some("/k"));
        assert_eq!(common(&["/k/a"]).as_deref(), Some("/k"));
        assert_eq!(common(&[]), None);
    }
}
