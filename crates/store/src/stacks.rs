//! `stacks/<role>.folded.zst` and `off-cpu/<role>.folded.zst`: folded stacks of each role, for flame-graph tools.

use model::profile::Stacks;

use crate::compressed::{Unpacker, pack};
use crate::error::Defect;
use crate::files::Files;

/// Directory of stacks of running threads.
pub(crate) const STACKS: &str = "stacks/";
/// Directory of stacks of waiting threads.
pub(crate) const OFF_CPU: &str = "off-cpu/";
const ENDING: &str = ".folded.zst";

/// Adds the files of these stacks to a directory. File names have hyphens for the spaces of roles.
pub(crate) fn write(directory: &str, stacks: &[Stacks], into: &mut Files) -> Result<(), Defect> {
    for stacks in stacks {
        let file = format!("{directory}{}{ENDING}", stacks.role.replace(' ', "-"));
        let plain = |c: char| c.is_ascii_lowercase() || c == ' ';
        if stacks.role.is_empty() || !stacks.role.chars().all(plain) {
            return Err(Defect::damaged(&file, "a role's name consists of lower-case letters and spaces"));
        }
        let content = pack(&file, &stacks.folded())?;
        into.insert(file, content);
    }
    Ok(())
}

/// Removes the stacks of all roles in a directory from a bundle's files and returns them, by role.
pub(crate) fn read(
    directory: &str,
    files: &mut Files,
    unpacker: &mut Unpacker,
) -> Result<Vec<Stacks>, Defect> {
    let names: Vec<String> = files.keys().filter(|file| role(directory, file).is_some()).cloned().collect();
    let mut all = Vec::new();
    for file in names {
        let (Some(role), Some(content)) = (role(directory, &file), files.remove(&file)) else { continue };
        let text = unpacker.unpack(&file, &content)?;
        all.push(Stacks::from_folded(&role, &text).map_err(|why| Defect::damaged(&file, why))?);
    }
    all.sort_by(|a, b| a.role.cmp(&b.role));
    Ok(all)
}

fn role(directory: &str, file: &str) -> Option<String> {
    Some(file.strip_prefix(directory)?.strip_suffix(ENDING)?.replace('-', " "))
}
