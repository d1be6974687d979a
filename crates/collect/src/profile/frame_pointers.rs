//! Detection of frame pointers in a program, by the first instructions of its functions.

use std::fs;
use std::path::Path;

use object::{Architecture, Object, ObjectSection, ObjectSymbol, SymbolKind};

/// Maximum number of functions inspected.
const MAX_FUNCTIONS: usize = 2000;
/// A shorter function may not need a frame.
const MIN_BYTES: u64 = 64;
/// Bytes within which a function must set up its frame: one that returns early may do so without it.
const MAX_PROLOGUE_BYTES: u64 = 256;
/// Share of functions from which on a program has frame pointers. If the compiler keeps them, nine of ten functions do:
/// leaf functions may omit them. Otherwise, almost none does.
const MIN_SHARE: f64 = 0.5;
/// Suffixes of parts that a compiler splits off a function, which has set up the frame.
const SPLIT_SUFFIXES: [&str; 2] = [".cold", ".part."];

/// Whether a program keeps frame pointers, with the evidence; none if unknown.
pub(super) fn inspect(program: &Path) -> Option<(bool, String)> {
    let (with, total) = count(&fs::read(program).ok()?)?;
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let share = with as f64 / total as f64;
    let evidence = format!("{:.0}% of {total} functions of {name} keep frame pointers", share * 100.0);
    Some((share >= MIN_SHARE, evidence))
}

/// Number of functions that set up a frame pointer, and of functions inspected.
fn count(program: &[u8]) -> Option<(usize, usize)> {
    let file = object::File::parse(program).ok()?;
    let sets_up = match file.architecture() {
        Architecture::X86_64 => sets_up_x86_64,
        Architecture::Aarch64 => sets_up_aarch64,
        _ => return None,
    };
    // Stripped programs still have exported symbols, and a server exports nearly all for its extensions.
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() >= MIN_BYTES)
        .filter(|symbol| {
            !symbol.name().is_ok_and(|name| SPLIT_SUFFIXES.iter().any(|suffix| name.contains(suffix)))
        })
        .filter_map(|symbol| {
            let section = file.section_by_index(symbol.section_index()?).ok()?;
            section.data_range(symbol.address(), symbol.size().min(MAX_PROLOGUE_BYTES)).ok()?
        })
        .take(MAX_FUNCTIONS);
    let (mut with, mut total) = (0, 0);
    for code in functions {
        total += 1;
        with += usize::from(sets_up(code));
    }
    (total > 0).then_some((with, total))
}

/// Whether there is a `push %rbp` followed by `mov %rsp,%rbp`, in either of its two encodings.
fn sets_up_x86_64(code: &[u8]) -> bool {
    let push = code.iter().position(|&byte| byte == 0x55);
    push.is_some_and(|at| {
        code[at..].windows(3).any(|bytes| bytes == [0x48, 0x89, 0xe5] || bytes == [0x48, 0x8b, 0xec])
    })
}

/// Whether there is a `mov x29, sp`, or `add x29, sp, #n` in its general form.
fn sets_up_aarch64(code: &[u8]) -> bool {
    code.chunks_exact(4).any(|word| {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        word & 0xffc0_03ff == 0x9100_03fd
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn function_prologues_are_recognized() {
        assert!(sets_up_x86_64(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57]));
        assert!(sets_up_x86_64(&[0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5]));
        assert!(!sets_up_x86_64(&[0x41, 0x57, 0x55, 0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x18]));
        assert!(sets_up_aarch64(&[0xfd, 0x7b, 0xbe, 0xa9, 0xfd, 0x03, 0x00, 0x91]));
        assert!(sets_up_aarch64(&[0xff, 0x83, 0x01, 0xd1, 0xfd, 0x43, 0x01, 0x91]));
        assert!(!sets_up_aarch64(&[0xff, 0x83, 0x01, 0xd1, 0xf3, 0x53, 0x01, 0xa9]));
    }

    /// The compiler that the project is built with is the oracle.
    #[test]
    fn compiler_options_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("a.c");
        let functions: String = (0..50)
            .map(|n| {
                format!(
                    "int g{n}(int*); int f{n}(int a){{int b[9];for(int i=0;i<9;i++)b[i]=a*i+{n};\
                     return g{n}(b)+g{n}(b+1)*a;}}\nint g{n}(int*p){{return p[0];}}\n"
                )
            })
            .collect();
        fs::write(&source, functions + "int main(){return f1(1);}").unwrap();
        for (flag, has) in [("-fno-omit-frame-pointer", true), ("-fomit-frame-pointer", false)] {
            let program = directory.path().join("program");
            let status = Command::new("cc")
                .args(["-O2", "-fno-inline", "-rdynamic", flag, "-o"])
                .args([&program, &source])
                .status()
                .unwrap();
            assert!(status.success());
            let (found, evidence) = inspect(&program).unwrap();
            assert_eq!(found, has, "{flag}: {evidence}");
        }
    }

    #[test]
    fn other_files_are_unknown() {
        assert_eq!(count(b"\x7fELF nonsense"), None);
        assert_eq!(inspect(Path::new("/proc/version")), None);
    }
}
