//! Whether two installations would run the same server.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::programs::installation::Installation;
use crate::programs::source::{are_equal, walk};

/// Whether the programs of two installations are byte-identical: `postgres`, its libraries, and what `initdb` fills a data
/// directory from.
///
/// # Errors
/// A file can't be read.
pub fn are_identical(one: &Installation, other: &Installation) -> Result<bool, Error> {
    if !are_equal(&one.program("postgres"), &other.program("postgres"))? {
        return Ok(false);
    }
    for (directory, counts) in [("lib", is_library as fn(&Path) -> bool), ("share", |_| true)] {
        let directories = [one, other].map(|installation| installation.programs.join("..").join(directory));
        let [ours, theirs] = [files(&directories[0], counts)?, files(&directories[1], counts)?];
        if ours != theirs {
            return Ok(false);
        }
        for file in ours {
            if !are_equal(&directories[0].join(&file), &directories[1].join(&file))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A shared library, with its version or without.
fn is_library(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"))
}

/// Files of a directory that count; none if it does not exist, as with distributions' packages.
fn files(directory: &Path, counts: fn(&Path) -> bool) -> Result<Vec<PathBuf>, Error> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    Ok(walk(directory)?.into_iter().filter(|file| counts(file)).collect())
}
