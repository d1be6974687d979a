//! Kernels that are there already, and are used where they are: an image, or a tree that was built.

use std::path::{Path, PathBuf};

use crate::error::TargetError;
use crate::hash::sha256;
use crate::kernel::{Kernel, image};

/// Where a tree has its image.
const TREE_IMAGE: &str = "arch/x86/boot/bzImage";

/// The kernel at a path: a bzImage, or the directory of a tree.
pub(crate) fn kernel(label: &str, base: &Path) -> Result<Kernel, TargetError> {
    let given = base.join(label);
    let refuse = |why: String| TargetError::Kernel { kernel: given.display().to_string(), why };
    let found = given.canonicalize().map_err(|error| refuse(format!("it can't be found: {error}")))?;
    let image = match found.is_dir() {
        true => Some(found.join(TREE_IMAGE)).filter(|image| image.is_file()).ok_or_else(|| {
            refuse(format!(
                "it is a directory without {TREE_IMAGE}; expected the path of a bzImage, or of a kernel tree in which \
                 `make` has been run for x86"
            ))
        })?,
        false => found.clone(),
    };
    let release = image::release(&image).map_err(refuse)?;
    let place = image.parent().unwrap_or(&image);
    let (modules, config) = match tree(&image) {
        Some(tree) => (modules_of_tree(tree), file(tree.join(".config"))),
        None => (modules_beside(place, &release), config_beside(place, &release)),
    };
    let identity = sha256(&image)?;
    let origin = found.display().to_string();
    Ok(Kernel { label: label.to_owned(), release, image, modules, config, origin, identity, _in_use: None })
}

/// The tree that an image is in.
fn tree(image: &Path) -> Option<&Path> {
    image.ascend(TREE_IMAGE).filter(|tree| tree.join("include/config").is_dir())
}

trait Ascend {
    /// What is before `end` in a path.
    fn ascend(&self, end: &str) -> Option<&Path>;
}

impl Ascend for Path {
    fn ascend(&self, end: &str) -> Option<&Path> {
        match self.ends_with(end) {
            true => self.ancestors().nth(Path::new(end).components().count()),
            false => None,
        }
    }
}

/// A tree lists what it has built as modules, and what it has built into the image.
fn modules_of_tree(tree: &Path) -> Option<PathBuf> {
    let has = |list: &str| tree.join(list).is_file();
    (has("modules.order") || has("modules.builtin")).then(|| tree.to_owned())
}

/// `lib/modules/RELEASE` and `modules` beside the image; for an image in `/boot`, those of the system.
fn modules_beside(place: &Path, release: &str) -> Option<PathBuf> {
    let installed =
        |root: &Path| [root.join("lib/modules").join(release), root.join("usr/lib/modules").join(release)];
    let above = place.parent().filter(|_| place.ends_with("boot")).map(installed);
    let own = [place.join("modules").join(release), place.join("modules")];
    installed(place).into_iter().chain(own).chain(above.into_iter().flatten()).find(|found| found.is_dir())
}

fn config_beside(place: &Path, release: &str) -> Option<PathBuf> {
    file(place.join(format!("config-{release}"))).or_else(|| file(place.join("config")))
}

fn file(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}
