//! Existing kernels, used in place: an image, or a built tree.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::kernel::{Kernel, image};
use host::sha256;

/// Path of the image in a tree.
const TREE_IMAGE: &str = "arch/x86/boot/bzImage";

/// The kernel at a path: a bzImage, or the directory of a tree.
pub(crate) fn kernel(label: &str, base: &Path) -> Result<Kernel, Error> {
    let given = base.join(label);
    let refuse = |why: String| Error::Kernel { kernel: given.display().to_string(), why };
    let found = given.canonicalize().map_err(|error| refuse(format!("it can't be found: {error}")))?;
    let image = if found.is_dir() {
        Some(found.join(TREE_IMAGE)).filter(|image| image.is_file()).ok_or_else(|| {
            refuse(format!(
                "it is a directory without {TREE_IMAGE}; expected the path of a bzImage, or of a kernel tree in which \
                 `make` has been run for x86"
            ))
        })?
    } else {
        found.clone()
    };
    let release = image::release(&image).map_err(|source| Error::Image { path: given.clone(), source })?;
    let place = image.parent().unwrap_or(&image);
    let (modules, config) = match tree(&image) {
        Some(tree) => (modules_of_tree(tree), file(tree.join(".config"))),
        None => (adjacent_modules(place, &release), adjacent_config(place, &release)),
    };
    let identity = sha256(&image)?;
    let origin = found.display().to_string();
    Ok(Kernel { label: label.to_owned(), release, image, modules, config, origin, identity, _in_use: None })
}

/// The release of the kernel at a path, an image or a built tree; none if there is no kernel.
pub fn release(path: &Path) -> Option<String> {
    let image = if path.is_dir() { path.join(TREE_IMAGE) } else { path.to_owned() };
    image.is_file().then(|| image::release(&image).ok()).flatten()
}

/// The tree that contains an image.
fn tree(image: &Path) -> Option<&Path> {
    strip_path_suffix(image, TREE_IMAGE).filter(|tree| tree.join("include/config").is_dir())
}

/// The part of a path before a suffix; none if it has another suffix.
fn strip_path_suffix<'a>(path: &'a Path, suffix: &str) -> Option<&'a Path> {
    if path.ends_with(suffix) { path.ancestors().nth(Path::new(suffix).components().count()) } else { None }
}

/// The tree, if it lists the modules that it built, or the drivers built into the image.
fn modules_of_tree(tree: &Path) -> Option<PathBuf> {
    let has = |list: &str| tree.join(list).is_file();
    (has("modules.order") || has("modules.builtin")).then(|| tree.to_owned())
}

/// `lib/modules/RELEASE` and `modules` next to the image; for an image in `/boot`, those of the system.
fn adjacent_modules(place: &Path, release: &str) -> Option<PathBuf> {
    let installed =
        |root: &Path| [root.join("lib/modules").join(release), root.join("usr/lib/modules").join(release)];
    let above = place.parent().filter(|_| place.ends_with("boot")).map(installed);
    let own = [place.join("modules").join(release), place.join("modules")];
    installed(place).into_iter().chain(own).chain(above.into_iter().flatten()).find(|found| found.is_dir())
}

fn adjacent_config(place: &Path, release: &str) -> Option<PathBuf> {
    file(place.join(format!("config-{release}"))).or_else(|| file(place.join("config")))
}

fn file(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::kernel::image::tests::image;

    const RELEASE: &str = "6.18.2-mine";

    /// Creates a file with its directories.
    fn write(file: &Path, content: impl AsRef<[u8]>) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn kernel_image() -> Vec<u8> {
        image(&format!("{RELEASE} (me@here) #1 SMP"))
    }

    #[test]
    fn an_image_is_used_with_adjacent_modules_and_configuration() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        let found = || kernel("./bzImage", place.path()).unwrap();
        write(&at("bzImage"), kernel_image());
        let alone = found();
        assert_eq!((&*alone.label, &*alone.release), ("./bzImage", RELEASE));
        assert_eq!((alone.image, alone.modules, alone.config), (at("bzImage"), None, None));
        assert_eq!(alone.origin, at("bzImage").display().to_string());

        fs::create_dir(at("modules")).unwrap();
        assert_eq!(found().modules, Some(at("modules")));
        fs::create_dir(at("modules").join(RELEASE)).unwrap();
        assert_eq!(found().modules, Some(at("modules").join(RELEASE)));
        fs::create_dir_all(at("lib/modules/6.18.1-other")).unwrap();
        assert_eq!(found().modules, Some(at("modules").join(RELEASE)));
        fs::create_dir(at("lib/modules").join(RELEASE)).unwrap();
        assert_eq!(found().modules, Some(at("lib/modules").join(RELEASE)));
        write(&at("config"), "");
        assert_eq!(found().config, Some(at("config")));

        // As in a system's /boot.
        write(&at("boot/vmlinuz"), kernel_image());
        write(&at(&format!("boot/config-{RELEASE}")), "");
        let booted = kernel(at("boot/vmlinuz").to_str().unwrap(), Path::new("/")).unwrap();
        assert_eq!(booted.modules, Some(at("lib/modules").join(RELEASE)));
        assert_eq!(booted.config, Some(at(&format!("boot/config-{RELEASE}"))));
        assert_eq!(booted.identity, alone.identity);

        write(&at("bzImage"), [kernel_image(), vec![1]].concat());
        assert_ne!(found().identity, alone.identity, "it was rebuilt");
    }

    #[test]
    fn a_tree_is_used_as_it_was_built() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().canonicalize().unwrap().join("linux");
        write(&tree.join("include/config/kernel.release"), RELEASE);
        let error = kernel("linux/", place.path()).unwrap_err().to_string();
        assert!(error.contains("a directory without arch/x86/boot/bzImage; expected"), "{error}");

        write(&tree.join(TREE_IMAGE), kernel_image());
        write(&tree.join(".config"), "CONFIG_SMP=y");
        fs::create_dir(tree.join("arch/x86_64")).unwrap();
        symlink("../x86/boot", tree.join("arch/x86_64/boot")).unwrap();
        let found = kernel("linux/", place.path()).unwrap();
        assert_eq!((&*found.release, &found.image), (RELEASE, &tree.join(TREE_IMAGE)));
        assert_eq!((&found.modules, found.config), (&None, Some(tree.join(".config"))));
        write(&tree.join("modules.order"), "fs/fuse/fuse.ko\n");
        for label in ["linux/", "linux/arch/x86/boot/bzImage", "linux/arch/x86_64/boot/bzImage"] {
            assert_eq!(kernel(label, place.path()).unwrap().modules, Some(tree.clone()), "{label}");
        }
    }

    #[test]
    fn missing_files_and_other_files_are_refused_with_their_path() {
        let place = tempfile::tempdir().unwrap();
        write(&place.path().join("vmlinux"), b"\x7fELF\x02\x01");
        for (label, why) in [
            ("./nothing", "can't be found"),
            ("./", "a directory without"),
            ("./vmlinux", "an ELF program"),
            ("./vmlinux/x", "can't be found"),
            ("/dev/null", "empty"),
        ] {
            let error = kernel(label, place.path()).unwrap_err().to_string();
            let path = place.path().join(label).display().to_string();
            assert!(error.contains(why) && error.contains(&path), "{label}: {error}");
        }
    }
}
