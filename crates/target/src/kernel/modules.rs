//! The modules of a kernel: which files have a driver, in the order in which they are loaded. What `depmod` would write is
//! not in a package that was only unpacked, so it is asked of the modules themselves. Sources: depmod(8), modinfo(8), and
//! the kernel's Documentation/kbuild/kbuild.rst for `modules.order` and `modules.builtin`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use crate::error::{Doing, TargetError};
use crate::kernel::Kernel;

/// A module as the kernel takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// Its name with `_`, as `lsmod` has it.
    pub name: String,
    /// Its file's content, not compressed.
    pub bytes: Vec<u8>,
}

/// No module is larger, whatever its compressed file says.
const MOST_BYTES: u64 = 1 << 30;
/// How modules are compressed; the first is not at all.
const COMPRESSIONS: [&str; 4] = ["", ".xz", ".zst", ".gz"];

/// The modules of a kernel that have these drivers and all that they need, each after what it needs. What is built in
/// needs no file. Of a kernel without a directory of modules every driver is taken for built in: there is nothing else
/// it could have.
///
/// # Errors
/// The kernel lacks a driver; a module can't be read.
pub fn modules(kernel: &Kernel, names: &[&str]) -> Result<Vec<ModuleFile>, TargetError> {
    let Some(directory) = &kernel.modules else { return Ok(Vec::new()) };
    let mut loading = Loading {
        kernel,
        directory,
        files: files(directory)?,
        built_in: built_in(directory)?,
        seen: BTreeSet::new(),
        loaded: Vec::new(),
    };
    for name in names {
        loading.need(&normal(name))?;
    }
    Ok(loading.loaded)
}

struct Loading<'a> {
    kernel: &'a Kernel,
    directory: &'a Path,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    seen: BTreeSet<String>,
    loaded: Vec<ModuleFile>,
}

impl Loading<'_> {
    fn need(&mut self, name: &str) -> Result<(), TargetError> {
        if self.built_in.contains(name) || !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let file = self.files.get(name).ok_or_else(|| TargetError::NoDriver {
            release: self.kernel.release.clone(),
            origin: self.kernel.origin.clone(),
            driver: name.to_owned(),
            modules: self.directory.to_owned(),
        })?;
        let refuse = |why: String| TargetError::Kernel {
            kernel: self.kernel.origin.clone(),
            why: format!("its module {}: {why}", file.display()),
        };
        let bytes = decompressed(file).map_err(refuse)?;
        let needs = Needs::of(&bytes).map_err(refuse)?;
        for wish in &needs.before {
            self.wish(wish)?;
        }
        for need in &needs.depends {
            self.need(need)?;
        }
        self.loaded.push(ModuleFile { name: name.to_owned(), bytes });
        Ok(())
    }

    /// What should be there before a module though no symbol of it is needed. It may be the name of an algorithm, which
    /// for the kernel's own implementation has `_generic` behind it.
    fn wish(&mut self, name: &str) -> Result<(), TargetError> {
        let algorithm = name.strip_prefix("crypto_").unwrap_or(name);
        let names = [name.to_owned(), algorithm.to_owned(), format!("{algorithm}_generic")];
        match names.into_iter().find(|name| self.files.contains_key(name)) {
            Some(name) => self.need(&name),
            None => Ok(()),
        }
    }
}

/// What a module says that it needs.
struct Needs {
    depends: Vec<String>,
    before: Vec<String>,
}

impl Needs {
    fn of(bytes: &[u8]) -> Result<Self, String> {
        let none = |error: &dyn std::fmt::Display| format!("it is no module: {error}");
        let file = object::File::parse(bytes).map_err(|error| none(&error))?;
        let section = file.section_by_name(".modinfo").ok_or_else(|| none(&"there is no .modinfo in it"))?;
        let info = section.data().map_err(|error| none(&error))?;
        let info = String::from_utf8_lossy(info);
        let values = |key: &'static str| info.split('\0').filter_map(move |entry| entry.strip_prefix(key));
        let depends = values("depends=").flat_map(|names| names.split(','));
        let before = values("softdep=").flat_map(|words| {
            let words = words.split_ascii_whitespace().skip_while(|&word| word != "pre:").skip(1);
            words.take_while(|word| !word.ends_with(':'))
        });
        let named = |name: &str| Some(normal(name)).filter(|name| !name.is_empty());
        Ok(Self { depends: depends.filter_map(named).collect(), before: before.filter_map(named).collect() })
    }
}

/// Every module that there is a file of, by name.
fn files(directory: &Path) -> Result<BTreeMap<String, PathBuf>, TargetError> {
    let mut found = BTreeMap::new();
    // A tree has much else in it, but lists what it built.
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
        look_through(directory, &mut found)?;
    }
    Ok(found)
}

fn look_through(directory: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), TargetError> {
    for entry in fs::read_dir(directory).doing("read the directory", directory)? {
        let entry = entry.doing("read the directory", directory)?;
        let path = entry.path();
        // Links lead to the kernel's source.
        if entry.file_type().doing("look at", &path)?.is_dir() {
            look_through(&path, found)?;
        } else if let Some(name) = name_of(&path) {
            found.insert(name, path);
        }
    }
    Ok(())
}

fn built_in(directory: &Path) -> Result<BTreeSet<String>, TargetError> {
    let lines = lines(&directory.join("modules.builtin"))?;
    Ok(lines.iter().filter_map(|line| name_of(Path::new(line))).collect())
}

/// The lines of a list; of one that is not there, none.
fn lines(file: &Path) -> Result<Vec<String>, TargetError> {
    match fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        text => Ok(String::from_utf8_lossy(&text.doing("read", file)?).lines().map(str::to_owned).collect()),
    }
}

/// The name of the module in a file; none of other files.
fn name_of(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let names = COMPRESSIONS.iter().find_map(|end| file.strip_suffix(end)?.strip_suffix(".ko"));
    names.map(normal)
}

/// To the kernel, `-` and `_` in names are the same.
fn normal(name: &str) -> String {
    name.trim().replace('-', "_")
}

fn decompressed(file: &Path) -> Result<Vec<u8>, String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let opened = fs::File::open(file)?;
        let mut bytes = Vec::new();
        let content: Box<dyn Read> = match file.extension().and_then(|extension| extension.to_str()) {
            Some("xz") => Box::new(liblzma::read::XzDecoder::new(opened)),
            Some("zst") => Box::new(zstd::Decoder::new(opened)?),
            Some("gz") => Box::new(flate2::read::GzDecoder::new(opened)),
            _ => Box::new(opened),
        };
        content.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Err(error) => Err(format!("it can't be read: {error}")),
        Ok(bytes) if bytes.len() as u64 > MOST_BYTES => Err("it is larger than any module".to_owned()),
        Ok(bytes) => Ok(bytes),
    }
}
