//! Initial file system of a guest, packed as an initramfs. Source: the kernel's
//! driver-api/early-userspace/buffer-format.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use cpio::newc::{Builder, ModeFileType, trailer};

use crate::error::Error;
use crate::vm::programs::{libraries, libraries_of_all, strip};
use host::IoContext;

/// Files for a guest: paths there and here are the same unless stated otherwise.
pub struct Initramfs {
    out: BufWriter<File>,
    bytes: u64,
    inode: u32,
    /// Whether programs and libraries keep their symbols.
    with_symbols: bool,
    /// Paths in it.
    packed: BTreeSet<PathBuf>,
}

/// Default owner.
const ROOT: (u32, u32) = (0, 0);

impl Initramfs {
    /// An empty one, in an unnamed file in `directory`, which is removed when it is closed.
    ///
    /// # Errors
    /// No file can be created there.
    pub fn new(directory: &Path) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(directory).doing("create a file in", directory)?;
        Ok(Self {
            out: BufWriter::with_capacity(1 << 20, file),
            bytes: 0,
            inode: 0,
            with_symbols: false,
            packed: BTreeSet::new(),
        })
    }

    /// Whether the programs and libraries that are added from now on keep their symbols and debug information, which
    /// profiles need.
    pub fn keep_symbols(&mut self, with_symbols: bool) {
        self.with_symbols = with_symbols;
    }

    /// Size of its content in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a directory, with its parents. An existing one is unchanged.
    ///
    /// # Errors
    /// It can't be written.
    pub fn directory(&mut self, path: &Path, mode: u32) -> Result<(), Error> {
        self.owned_directory(path, mode, ROOT)
    }

    fn owned_directory(&mut self, path: &Path, mode: u32, owner: (u32, u32)) -> Result<(), Error> {
        if path == Path::new("/") || self.packed.contains(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.directory(above, 0o755)?;
        }
        self.entry(path, ModeFileType::Directory, mode, owner, &mut io::empty(), 0)
    }

    /// Adds a file with this content.
    ///
    /// # Errors
    /// As [`Self::directory`].
    pub fn file(&mut self, path: &Path, mode: u32, content: &[u8]) -> Result<(), Error> {
        self.put(path, mode, ROOT, &mut &content[..], content.len() as u64)
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// As [`Self::directory`].
    pub fn link(&mut self, path: &Path, to: &Path) -> Result<(), Error> {
        if let Some(above) = path.parent() {
            self.directory(above, 0o755)?;
        }
        let target = to.to_string_lossy();
        let content = &mut target.as_bytes();
        self.entry(path, ModeFileType::Symlink, 0o777, ROOT, content, target.len() as u64)
    }

    /// Adds a program of this machine with its libraries, without debug information; at another path if given.
    ///
    /// # Errors
    /// It can't be read, or a library is missing.
    pub fn program(&mut self, from: &Path, at: Option<&Path>) -> Result<(), Error> {
        self.loadable(from, at.unwrap_or(from))?;
        self.loadable_here(libraries(from)?)
    }

    /// Adds the libraries that these loadable libraries, already in it, need.
    ///
    /// # Errors
    /// One can't be read, or is missing.
    pub fn libraries_of(&mut self, files: &[PathBuf]) -> Result<(), Error> {
        self.loadable_here(libraries_of_all(files)?)
    }

    /// Adds libraries at their paths here. Paths by `..`, relative to several programs, are of one file.
    fn loadable_here(&mut self, libraries: BTreeSet<PathBuf>) -> Result<(), Error> {
        libraries.iter().try_for_each(|library| self.loadable(library, &without_parents(library)))
    }

    fn loadable(&mut self, from: &Path, at: &Path) -> Result<(), Error> {
        if self.packed.contains(at) {
            return Ok(());
        }
        let content = self.stripped(fs::read(from).doing("read", from)?);
        self.file(at, 0o755, &content)
    }

    /// Adds the wanted content of a directory of this machine at another path, with its owners and modes. Programs and
    /// libraries in it are added without debug information.
    ///
    /// # Errors
    /// Something in it can't be read.
    pub fn tree(&mut self, from: &Path, at: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<(), Error> {
        let meta = fs::metadata(from).doing("inspect", from)?;
        self.owned_directory(at, meta.mode() & 0o7777, (meta.uid(), meta.gid()))?;
        let mut entries = fs::read_dir(from)
            .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
            .doing("read the directory", from)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, at) = (entry.path(), at.join(entry.file_name()));
            if !wanted(&path) {
                continue;
            }
            let meta = entry.metadata().doing("inspect", &path)?;
            if meta.is_dir() {
                self.tree(&path, &at, wanted)?;
            } else if meta.is_symlink() {
                self.link(&at, &fs::read_link(&path).doing("read", &path)?)?;
            } else if meta.is_file() {
                self.copy(&path, &at, &meta)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, from: &Path, at: &Path, meta: &fs::Metadata) -> Result<(), Error> {
        let (mode, owner) = (meta.permissions().mode() & 0o7777, (meta.uid(), meta.gid()));
        let mut file = File::open(from).doing("read", from)?;
        let mut magic = [0; 4];
        let is_program = meta.len() > 4 && file.read_exact(&mut magic).is_ok() && magic == *b"\x7fELF";
        file.rewind().doing("read", from)?;
        if is_program {
            let content = self.stripped(fs::read(from).doing("read", from)?);
            return self.put(at, mode, owner, &mut content.as_slice(), content.len() as u64);
        }
        self.put(at, mode, owner, &mut file.take(meta.len()), meta.len())
    }

    /// A program or library without symbols, unless they are to be kept.
    fn stripped(&self, program: Vec<u8>) -> Vec<u8> {
        if self.with_symbols { program } else { strip(program) }
    }

    fn put(
        &mut self,
        path: &Path,
        mode: u32,
        owner: (u32, u32),
        content: &mut impl Read,
        length: u64,
    ) -> Result<(), Error> {
        if self.packed.contains(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.directory(above, 0o755)?;
        }
        self.entry(path, ModeFileType::Regular, mode, owner, content, length)
    }

    fn entry(
        &mut self,
        path: &Path,
        kind: ModeFileType,
        mode: u32,
        (uid, gid): (u32, u32),
        content: &mut impl Read,
        length: u64,
    ) -> Result<(), Error> {
        let too_large =
            || io::Error::other("an initramfs can't contain files of 4 GB or more: use storage = \"virtio\"");
        let size = u32::try_from(length).map_err(|_| too_large()).doing("pack", path)?;
        self.inode += 1;
        self.bytes += length;
        self.packed.insert(path.to_owned());
        let name = path.to_string_lossy();
        let builder = Builder::new(name.trim_start_matches('/')).ino(self.inode).nlink(1).uid(uid).gid(gid);
        let mut writer = builder.mode(mode).set_mode_file_type(kind).write(&mut self.out, size);
        let written = io::copy(content, &mut writer).and_then(|copied| {
            if copied == length {
                writer.finish().map(|_| ())
            } else {
                Err(io::Error::other("it was truncated meanwhile"))
            }
        });
        Ok(written.doing("pack", path)?)
    }

    /// The archive.
    pub(crate) fn finish(self) -> Result<File, Error> {
        let written = trailer(self.out).and_then(|mut out| out.flush().map(|()| out));
        let file = written.and_then(|out| out.into_inner().map_err(io::IntoInnerError::into_error));
        Ok(file.doing("pack", Path::new("the guest's file system"))?)
    }
}

/// The path without `..`. In an initramfs, no directory of a path is a symbolic link.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_files_are_read_by_cpio() {
        let place = tempfile::tempdir().unwrap();
        let from = place.path().join("from");
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/text"), b"hello").unwrap();
        fs::write(from.join("empty"), b"").unwrap();
        fs::write(from.join("left"), b"left out").unwrap();
        fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut root = Initramfs::new(place.path()).unwrap();
        root.tree(&from, Path::new("/data/x"), &|path| !path.ends_with("left")).unwrap();
        root.file(Path::new("/etc/passwd"), 0o644, b"root").unwrap();
        root.link(Path::new("/bin/sh"), Path::new("busybox")).unwrap();
        assert_eq!(root.bytes(), 5 + 4 + 7);
        let mut archive = root.finish().unwrap();
        archive.rewind().unwrap();
        let mut entries = Vec::new();
        let mut reader = cpio::newc::Reader::new(archive).unwrap();
        while !reader.entry().is_trailer() {
            let entry = reader.entry().clone();
            let mut content = Vec::new();
            reader.read_to_end(&mut content).unwrap();
            entries.push((entry.name().to_owned(), entry.mode() & 0o170_777, content));
            reader = cpio::newc::Reader::new(reader.finish().unwrap()).unwrap();
        }
        let file = |name: &str| entries.iter().find(|(known, ..)| known == name).unwrap().clone();
        assert_eq!(file("data/x/sub/text"), ("data/x/sub/text".to_owned(), 0o100_644, b"hello".to_vec()));
        assert_eq!(file("data/x/empty").1, 0o100_600);
        assert!(!entries.iter().any(|(name, ..)| name.contains("left")));
        assert_eq!(file("bin/sh").1 & 0o170_000, 0o120_000);
        assert_eq!(file("etc").1 & 0o170_000, 0o040_000);
        assert!(
            entries.iter().position(|(name, ..)| name == "data")
                < entries.iter().position(|(name, ..)| name == "data/x")
        );
    }

    #[test]
    fn a_library_that_is_found_by_several_paths_is_packed_once() {
        let place = tempfile::tempdir().unwrap();
        let library = place.path().join("lib/libx.so");
        fs::create_dir_all(place.path().join("lib/modules")).unwrap();
        fs::create_dir(place.path().join("bin")).unwrap();
        fs::write(&library, "x").unwrap();
        let mut root = Initramfs::new(place.path()).unwrap();
        let paths = ["bin/../lib/libx.so", "lib/libx.so", "lib/modules/../libx.so"];
        root.loadable_here(paths.map(|path| place.path().join(path)).into()).unwrap();
        assert_eq!(root.bytes(), 1);
        assert!(root.packed.contains(&library));
    }

    #[test]
    fn programs_have_their_symbols_if_these_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let packed = |keep: bool| {
            let mut root = Initramfs::new(place.path()).unwrap();
            root.keep_symbols(keep);
            root.program(&own, Some(Path::new("/own"))).unwrap();
            root.keep_symbols(false);
            root.bytes()
        };
        let whole = fs::metadata(&own).unwrap().len();
        assert!(packed(true) > whole && packed(false) < packed(true) - whole / 2);
    }
}
