//! Modules of a kernel: the files of a driver, in loading order. A package that was only unpacked lacks the output of
//! `depmod`, so dependencies are read from the modules themselves. Sources: depmod(8), modinfo(8), and the kernel's
//! Documentation/kbuild/kbuild.rst for `modules.order` and `modules.builtin`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use crate::error::{Error, ModuleError};
use crate::kernel::Kernel;
use host::IoContext;

/// A module as the kernel loads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// Name with `_`, as `lsmod` prints it.
    pub name: String,
    /// Content of the file, decompressed.
    pub bytes: Vec<u8>,
}

/// Upper bound of a module's size: a compressed file may claim more.
const MAX_BYTES: u64 = 1 << 30;
/// Suffixes of compressed modules; the first is of uncompressed ones.
const COMPRESSIONS: [&str; 4] = ["", ".xz", ".zst", ".gz"];

/// Modules of a kernel with these drivers and their dependencies, each after what it needs. Built-in drivers need no
/// file. If a kernel has no directory of modules, every driver counts as built in: it can't have others.
///
/// # Errors
/// The kernel lacks a driver; a module can't be read.
pub fn modules(kernel: &Kernel, names: &[&str]) -> Result<Vec<ModuleFile>, Error> {
    let Some(directory) = &kernel.modules else { return Ok(Vec::new()) };
    let mut loader = Loader {
        kernel,
        directory,
        files: files(directory)?,
        built_in: built_in(directory)?,
        seen: BTreeSet::new(),
        loaded: Vec::new(),
    };
    for name in names {
        loader.load(&normalized(name))?;
    }
    Ok(loader.loaded)
}

struct Loader<'a> {
    kernel: &'a Kernel,
    directory: &'a Path,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    seen: BTreeSet<String>,
    loaded: Vec<ModuleFile>,
}

impl Loader<'_> {
    /// Loads a module after its dependencies.
    fn load(&mut self, name: &str) -> Result<(), Error> {
        if self.built_in.contains(name) || !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let file = self.files.get(name).ok_or_else(|| Error::NoDriver {
            release: self.kernel.release.clone(),
            origin: self.kernel.origin.clone(),
            driver: name.to_owned(),
            modules: self.directory.to_owned(),
        })?;
        let refuse =
            |source| Error::Module { kernel: self.kernel.origin.clone(), module: file.clone(), source };
        let bytes = decompressed(file).map_err(refuse)?;
        let dependencies = Dependencies::parse(&bytes).map_err(refuse)?;
        for name in &dependencies.soft {
            self.load_soft(name)?;
        }
        for name in &dependencies.hard {
            self.load(name)?;
        }
        self.loaded.push(ModuleFile { name: name.to_owned(), bytes });
        Ok(())
    }

    /// Loads a soft dependency, which a module wants before it. It may be the name of an algorithm, whose
    /// implementation in the kernel has the suffix `_generic`.
    fn load_soft(&mut self, name: &str) -> Result<(), Error> {
        let algorithm = name.strip_prefix("crypto_").unwrap_or(name);
        let names = [name.to_owned(), algorithm.to_owned(), format!("{algorithm}_generic")];
        match names.into_iter().find(|name| self.files.contains_key(name)) {
            Some(name) => self.load(&name),
            None => Ok(()),
        }
    }
}

/// Dependencies of a module, from its section `.modinfo`.
struct Dependencies {
    /// Of `depends`.
    hard: Vec<String>,
    /// Of `softdep`, to be loaded before.
    soft: Vec<String>,
}

impl Dependencies {
    fn parse(bytes: &[u8]) -> Result<Self, ModuleError> {
        let file = object::File::parse(bytes).map_err(ModuleError::NotAnObject)?;
        let section = file.section_by_name(".modinfo").ok_or(ModuleError::NoInfo)?;
        let info = section.data().map_err(ModuleError::NotAnObject)?;
        let info = String::from_utf8_lossy(info);
        let values = |key: &'static str| info.split('\0').filter_map(move |entry| entry.strip_prefix(key));
        let hard = values("depends=").flat_map(|names| names.split(','));
        let soft = values("softdep=").flat_map(|words| {
            let words = words.split_ascii_whitespace().skip_while(|&word| word != "pre:").skip(1);
            words.take_while(|word| !word.ends_with(':'))
        });
        let non_empty = |name: &str| Some(normalized(name)).filter(|name| !name.is_empty());
        Ok(Self { hard: hard.filter_map(non_empty).collect(), soft: soft.filter_map(non_empty).collect() })
    }
}

/// Files of all modules, by name.
fn files(directory: &Path) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut found = BTreeMap::new();
    // A tree contains much else, but lists what it built.
    let order = directory.join("modules.order");
    if directory.join("include/config").is_dir() {
        for line in lines(&order)? {
            let path = Path::new(line.strip_prefix("kernel/").unwrap_or(&line)).with_extension("ko");
            let file = directory.join(&path);
            if let (Some(name), true) = (name_of(&path), file.is_file()) {
                found.insert(name, file);
            }
        }
    } else {
        find_modules(directory, &mut found)?;
    }
    Ok(found)
}

fn find_modules(directory: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(directory).doing("read the directory", directory)? {
        let entry = entry.doing("read the directory", directory)?;
        let path = entry.path();
        // Links lead to the kernel's source.
        if entry.file_type().doing("inspect", &path)?.is_dir() {
            find_modules(&path, found)?;
        } else if let Some(name) = name_of(&path) {
            found.insert(name, path);
        }
    }
    Ok(())
}

fn built_in(directory: &Path) -> Result<BTreeSet<String>, Error> {
    let lines = lines(&directory.join("modules.builtin"))?;
    Ok(lines.iter().filter_map(|line| name_of(Path::new(line))).collect())
}

/// Lines of a list; none if it is missing.
fn lines(file: &Path) -> Result<Vec<String>, Error> {
    match fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        text => Ok(String::from_utf8_lossy(&text.doing("read", file)?).lines().map(str::to_owned).collect()),
    }
}

/// Name of the module in a file; none for other files.
fn name_of(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let names = COMPRESSIONS.iter().find_map(|end| file.strip_suffix(end)?.strip_suffix(".ko"));
    names.map(normalized)
}

/// To the kernel, `-` and `_` in names are the same.
fn normalized(name: &str) -> String {
    name.trim().replace('-', "_")
}

fn decompressed(file: &Path) -> Result<Vec<u8>, ModuleError> {
    let read = || -> std::io::Result<Vec<u8>> {
        let opened = fs::File::open(file)?;
        let mut bytes = Vec::new();
        let content: Box<dyn Read> = match file.extension().and_then(|extension| extension.to_str()) {
            Some("xz") => Box::new(liblzma::read::XzDecoder::new(opened)),
            Some("zst") => Box::new(zstd::Decoder::new(opened)?),
            Some("gz") => Box::new(flate2::read::GzDecoder::new(opened)),
            _ => Box::new(opened),
        };
        content.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(ModuleError::Read)?;
    if bytes.len() as u64 > MAX_BYTES { Err(ModuleError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::TempDir;

    use super::*;

    /// A module with this `.modinfo`: an ELF object without anything else.
    fn module(info: &[&str]) -> Vec<u8> {
        const HEADER: usize = 64;
        const NAMES: &[u8] = b"\0.modinfo\0.shstrtab\0";
        let info = info.iter().flat_map(|entry| [entry.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>();
        let sections = HEADER + info.len() + NAMES.len();
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0\x01\0\0\0".to_vec();
        file.extend([0; 16]);
        file.extend((sections as u64).to_le_bytes());
        // Flags, and the sizes and numbers of headers: this one, programs', sections'; and the section of names.
        file.extend([0; 4]);
        file.extend([64_u16, 0, 0, 64, 3, 2].into_iter().flat_map(u16::to_le_bytes));
        file.extend(&info);
        file.extend(NAMES);
        file.extend([0; 64]);
        for (name, kind, at, length) in
            [(1_u32, 1_u32, HEADER, info.len()), (10, 3, HEADER + info.len(), NAMES.len())]
        {
            file.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
            let numbers = [0, 0, at as u64, length as u64, 0, 1, 0];
            file.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        }
        file
    }

    /// A kernel's directory of modules.
    struct Modules(TempDir);

    impl Modules {
        fn new(built_in: &str) -> Self {
            let fake = Self(tempfile::tempdir().unwrap());
            fake.write("modules.builtin", built_in.as_bytes());
            fake
        }

        fn write(&self, name: &str, content: &[u8]) {
            let file = self.0.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }

        fn kernel(&self) -> Kernel {
            Kernel {
                label: "6.99".to_owned(),
                release: "6.99.0-test".to_owned(),
                image: self.0.path().join("vmlinuz"),
                modules: Some(self.0.path().to_owned()),
                config: None,
                origin: "linux-image-test 6.99-1".to_owned(),
                identity: String::new(),
                _in_use: None,
            }
        }

        fn load(&self, names: &[&str]) -> Result<String, String> {
            let loaded = modules(&self.kernel(), names).map_err(|error| error.to_string())?;
            Ok(loaded.into_iter().map(|module| module.name).collect::<Vec<_>>().join(" "))
        }
    }

    #[test]
    fn modules_are_loaded_once_and_after_their_dependencies() {
        let fake = Modules::new("kernel/fs/ext4/ext4.ko\nkernel/lib/crc-t10dif.ko\n");
        fake.write("kernel/a.ko", &module(&["license=GPL", "depends=b-one,c,crc_t10dif", "name=a"]));
        fake.write("kernel/drivers/b_one.ko", &module(&["depends=c"]));
        fake.write("updates/c.ko", &module(&["depends="]));
        fake.write("kernel/fs.ko", &module(&["softdep=post: b-one pre: crypto-sum none", "depends=a"]));
        fake.write("kernel/crypto/sum_generic.ko", &module(&[]));
        // A circular dependency.
        fake.write("kernel/round.ko", &module(&["depends=about"]));
        fake.write("kernel/about.ko", &module(&["depends=round"]));
        assert_eq!(fake.load(&["a"]).as_deref(), Ok("c b_one a"));
        assert_eq!(fake.load(&["b-one", "a", "ext4", "c"]).as_deref(), Ok("c b_one a"));
        assert_eq!(fake.load(&["fs"]).as_deref(), Ok("sum_generic c b_one a fs"));
        assert_eq!(fake.load(&["ext4", "crc_t10dif"]).as_deref(), Ok(""));
        assert_eq!(fake.load(&["round"]).as_deref(), Ok("about round"));
    }

    #[test]
    fn a_missing_driver_is_reported() {
        let fake = Modules::new("");
        fake.write("kernel/a.ko", &module(&["depends=b"]));
        for name in ["b", "a"] {
            let error = fake.load(&[name]).unwrap_err();
            assert!(
                error.contains("the kernel 6.99.0-test (linux-image-test 6.99-1) lacks the driver b"),
                "{error}"
            );
        }
        let mut kernel = fake.kernel();
        kernel.modules = None;
        assert_eq!(modules(&kernel, &["a"]).unwrap(), []);
    }

    #[test]
    fn modules_are_decompressed() {
        let plain = module(&["depends="]);
        let fake = Modules::new("");
        let gzip = |level| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(&plain).unwrap();
            encoder.finish().unwrap()
        };
        fake.write("a.ko", &plain);
        fake.write("b.ko.xz", &liblzma::encode_all(&plain[..], 6).unwrap());
        fake.write("c.ko.zst", &zstd::encode_all(&plain[..], 3).unwrap());
        fake.write("d.ko.gz", &gzip(flate2::Compression::fast()));
        let loaded = modules(&fake.kernel(), &["a", "b", "c", "d"]).unwrap();
        assert_eq!(loaded.len(), 4);
        assert!(loaded.iter().all(|module| module.bytes == plain));
    }

    #[test]
    fn a_tree_lists_its_modules() {
        let fake = Modules::new("kernel/fs/ext4/ext4.ko\n");
        fake.write("include/config/auto.conf", b"");
        for name in ["fs/fuse/fuse.ko", "drivers/block/virtio_blk.ko", "old/net.ko", "samples/unlisted.ko"] {
            fake.write(name, &module(&["depends="]));
        }
        // In the formats up to 5.2, of later kernels, and from 6.3 on. The last was not built.
        fake.write(
            "modules.order",
            b"kernel/old/net.ko\nfs/fuse/fuse.ko\ndrivers/block/virtio_blk.o\ngone.o\n",
        );
        assert_eq!(fake.load(&["virtio_blk", "fuse", "net", "ext4"]).as_deref(), Ok("virtio_blk fuse net"));
        for name in ["unlisted", "gone"] {
            assert!(fake.load(&[name]).unwrap_err().contains("lacks the driver"));
        }
    }

    #[test]
    fn invalid_modules_are_refused() {
        let whole = module(&["depends=b"]);
        let fake = Modules::new("");
        let refused = |name: &str, content: &[u8]| {
            fake.write(name, content);
            let error = fake.load(&["a"]).unwrap_err();
            assert!(error.contains("its module") && error.contains(name), "{error}");
            fs::remove_file(fake.0.path().join(name)).unwrap();
        };
        // Truncated anywhere: the headers of sections are at its end.
        for length in 0..whole.len() {
            refused("a.ko", &whole[..length]);
        }
        refused("a.ko", b"#!/bin/sh\n");
        let compressed = liblzma::encode_all(&whole[..], 6).unwrap();
        refused("a.ko.xz", &compressed[..compressed.len() / 2]);
        refused("a.ko.xz", &whole);
        refused("a.ko.zst", &whole);
        refused("a.ko.gz", &compressed);
    }
}
