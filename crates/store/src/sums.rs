//! `SHA256SUMS`: the files of a bundle and their checksums when it was written, in the format of `sha256sum --check`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::error::Defect;

/// Name of the list within a bundle.
pub(crate) const FILE: &str = "SHA256SUMS";

/// Formats the list of files.
pub(crate) fn list(files: &BTreeMap<String, Vec<u8>>) -> String {
    files.iter().fold(String::new(), |mut list, (name, content)| {
        let _ = writeln!(list, "{}  {name}", sum(content));
        list
    })
}

/// Parses a list into checksums by name.
pub(crate) fn parse(list: &str) -> Result<BTreeMap<String, String>, Defect> {
    list.lines()
        .map(|line| match line.split_once("  ") {
            Some((sum, name)) if sum.len() == 64 && stays_inside(name) => {
                Ok((name.to_owned(), sum.to_owned()))
            }
            _ => {
                Err(Defect::damaged(FILE, format!("this line is not a checksum and a file name: \"{line}\"")))
            }
        })
        .collect()
}

/// Checks a file against its checksum.
pub(crate) fn verify(name: &str, content: &[u8], expected: &str) -> Result<(), Defect> {
    if sum(content) == expected {
        return Ok(());
    }
    Err(Defect::damaged(name, format!("it was changed: its SHA-256 differs from that in {FILE}")))
}

fn sum(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Whether a path is relative and stays within the bundle.
fn stays_inside(name: &str) -> bool {
    !name.is_empty() && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_sha256sum_does() {
        let files = BTreeMap::from([("a".to_owned(), b"abc".to_vec()), ("logs/b".to_owned(), Vec::new())]);
        let text = list(&files);
        // FIPS 180-2, appendix B.1, and the digest of the empty message.
        assert_eq!(
            text,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  logs/b\n"
        );
        assert_eq!(parse(&text).unwrap().len(), 2);
    }

    #[test]
    fn a_path_outside_the_bundle_is_rejected() {
        let sum = sum(b"");
        for name in ["../x", "/etc/passwd", "a//b", "a/../../b", ""] {
            assert!(parse(&format!("{sum}  {name}\n")).is_err(), "{name}");
        }
        assert!(parse("short  a\n").is_err());
    }
}
