//! The release in a kernel image. Source: the kernel's Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header".

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::ImageError;

/// Offset and value of the header's magic number.
const MAGIC: (usize, &[u8]) = (0x202, b"HdrS");
/// Offset of the version of the boot protocol.
const PROTOCOL: usize = 0x206;
/// Offset of the pointer to the kernel's version, which counts from [`SETUP`].
const KERNEL_VERSION: usize = 0x20e;
/// Offset that the pointer counts from.
const SETUP: usize = 0x200;
/// First protocol with all of these fields.
const FIRST_PROTOCOL: u16 = 0x0200;
/// Bytes that contain the version: the pointer has 16 bits.
const MAX_HEADER_BYTES: u64 = 0x1_0000 + 0x400;

/// The release of the kernel in a bzImage: what `uname -r` prints when it runs.
pub(crate) fn release(path: &Path) -> Result<String, ImageError> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(ImageError::Open)?;
    file.take(MAX_HEADER_BYTES).read_to_end(&mut head).map_err(ImageError::Read)?;
    release_in(&head)
}

fn release_in(head: &[u8]) -> Result<String, ImageError> {
    if !has(head, MAGIC.0, MAGIC.1) {
        return Err(ImageError::NotAnImage { found: file_kind(head) });
    }
    if number(head, PROTOCOL).is_none_or(|protocol| protocol < FIRST_PROTOCOL) {
        return Err(ImageError::TooOld);
    }
    let version = number(head, KERNEL_VERSION)
        .filter(|&at| at != 0)
        .and_then(|at| head.get(SETUP + usize::from(at)..))
        .and_then(|version| version.split(|&byte| byte == 0).next())
        .and_then(|version| std::str::from_utf8(version).ok())
        .and_then(|version| version.split(' ').next());
    version.filter(|release| is_release(release)).map(str::to_owned).ok_or(ImageError::NoRelease)
}

/// Whether a text can be a kernel's release, and part of a path.
pub(crate) fn is_release(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() < 65
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+-_~".contains(c))
}

/// Kind of a file that is not a bzImage.
fn file_kind(head: &[u8]) -> &'static str {
    const KINDS: [(usize, &[u8], &str); 9] = [
        (0, b"\x7fELF", "an ELF program, such as the vmlinux of a kernel tree"),
        (0, b"\x1f\x8b", "compressed by gzip"),
        (0, b"\xfd7zXZ\0", "compressed by xz"),
        (0, b"\x28\xb5\x2f\xfd", "compressed by zstd"),
        (0, b"BZh", "compressed by bzip2"),
        (0, b"!<arch>\n", "a Debian package or another archive"),
        (0x38, b"ARM\x64", "a kernel for arm64, but pgdyno boots only kernels for x86"),
        (0x30, b"RISCV", "a kernel for RISC-V, but pgdyno boots only kernels for x86"),
        (0, b"MZ", "an EFI program without a kernel's header"),
    ];
    if head.is_empty() {
        return "empty";
    }
    KINDS.iter().find(|(at, mark, _)| has(head, *at, mark)).map_or("not a kernel", |(_, _, kind)| kind)
}

fn has(head: &[u8], at: usize, mark: &[u8]) -> bool {
    head.get(at..).is_some_and(|rest| rest.starts_with(mark))
}

fn number(head: &[u8], at: usize) -> Option<u16> {
    let bytes = head.get(at..at + 2)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The head of a bzImage with this version line.
    pub(crate) fn image(version: &str) -> Vec<u8> {
        let mut head = vec![0; 0x800];
        head[..2].copy_from_slice(b"MZ");
        head[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
        head[MAGIC.0..][..4].copy_from_slice(MAGIC.1);
        head[PROTOCOL..][..2].copy_from_slice(&0x020f_u16.to_le_bytes());
        head[KERNEL_VERSION..][..2].copy_from_slice(&0x300_u16.to_le_bytes());
        head[0x500..][..version.len()].copy_from_slice(version.as_bytes());
        head
    }

    #[test]
    fn the_release_is_the_first_word_of_the_version() {
        let version = "6.12.9+deb13-cloud-amd64 (maker@place) #1 SMP Debian 6.12.9-1 (2025-01-10)";
        assert_eq!(release_in(&image(version)).unwrap(), "6.12.9+deb13-cloud-amd64");
        assert_eq!(release_in(&image("6.1.0")).unwrap(), "6.1.0");
    }

    #[test]
    fn the_kind_of_other_files_is_reported() {
        let mut arm = vec![0; 0x40];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        for (content, is) in [
            (&b"\x7fELF\x02"[..], "an ELF program, such as the vmlinux"),
            (b"\x1f\x8b\x08", "compressed by gzip"),
            (b"!<arch>\ndebian-binary", "a Debian package"),
            (&arm, "for arm64"),
            (b"MZ", "an EFI program"),
            (b"", "empty"),
            (b"hello", "not a kernel"),
        ] {
            let error = release_in(content).unwrap_err().to_string();
            assert!(error.contains(is) && error.contains("expected a bzImage"), "{error}");
        }
    }

    #[test]
    fn truncated_and_modified_images_are_refused() {
        let whole = image("6.1.0-56-cloud-amd64 (x)");
        for length in 0..0x501 {
            assert!(release_in(&whole[..length]).is_err(), "{length}");
        }
        for (version, at, bytes) in [
            ("6.1.0", KERNEL_VERSION, [0, 0]),
            ("6.1.0", KERNEL_VERSION, [0xff, 0xff]),
            ("6.1.0", PROTOCOL, [0, 1]),
            ("../../etc/passwd (x)", 0, *b"MZ"),
            ("", 0, *b"MZ"),
        ] {
            let mut changed = image(version);
            changed[at..at + 2].copy_from_slice(&bytes);
            assert!(release_in(&changed).is_err(), "{version} {at:#x}");
        }
    }
}
