//! The format of data directories: servers of the same one can run on the same data directory.

use std::fs;
use std::path::Path;

use host::Fingerprint;

use super::DIGITS;
use super::content::walk;
use crate::error::Error;

/// Definitions that a server checks in a data directory.
const VERSIONS: [(&str, &str); 3] = [
    ("src/include/catalog/catversion.h", "CATALOG_VERSION_NO"),
    ("src/include/catalog/pg_control.h", "PG_CONTROL_VERSION"),
    ("src/include/access/xlog_internal.h", "XLOG_PAGE_MAGIC"),
];

/// What initdb fills a data directory from, and initdb itself: directories and the ends of names.
const CONTENT: [(&str, &str); 5] = [
    ("src/bin/initdb", ".c"),
    ("src/backend/catalog", ".sql"),
    ("src/include/catalog", ".dat"),
    ("src/include/catalog", ".h"),
    // Versions of extensions.
    ("contrib", ".control"),
];

/// Hash of the data format of a source, with these build options; none if the source does not show it.
pub(super) fn data_format(source: &Path, options: &str) -> Result<Option<String>, Error> {
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(options);
    for (header, name) in VERSIONS {
        let header = source.join(header);
        let Some(value) = fs::read_to_string(&header).ok().and_then(|text| definition(&text, name)) else {
            return Ok(None);
        };
        fingerprint.add(value);
    }
    for (directory, end) in CONTENT {
        let directory = source.join(directory);
        if !directory.is_dir() {
            return Ok(None);
        }
        let mut files = walk(&directory)?;
        // The comments of this one change with its number, which is taken above.
        files.retain(|file| {
            file.to_string_lossy().ends_with(end) && !VERSIONS[0].0.ends_with(&*file.to_string_lossy())
        });
        for file in files {
            fingerprint.add(file.as_os_str().as_encoded_bytes());
            fingerprint.add_file(&directory.join(file))?;
        }
    }
    Ok(Some(fingerprint.finish()[..DIGITS].to_owned()))
}

/// The value that a header defines.
fn definition(header: &str, name: &str) -> Option<String> {
    header.lines().find_map(|line| {
        let mut words = line.strip_prefix("#define")?.split_whitespace();
        (words.next()? == name).then(|| words.next().map(str::to_owned))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(source: &Path, file: &str, text: &str) {
        let path = source.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_catalog_and_the_options_make_the_format() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path();
        let format = |options: &str| data_format(source, options).unwrap();
        assert_eq!(format("a"), None, "no source");
        write(source, "src/include/catalog/catversion.h", "/* x */\n#define CATALOG_VERSION_NO\t202506291\n");
        write(source, "src/include/catalog/pg_control.h", "#define PG_CONTROL_VERSION\t1800\n");
        write(source, "src/include/access/xlog_internal.h", "#define XLOG_PAGE_MAGIC 0xD118\t/* WAL */\n");
        write(source, "src/include/catalog/pg_proc.dat", "[]");
        write(source, "src/backend/catalog/system_views.sql", "select 1;");
        write(source, "src/bin/initdb/initdb.c", "int main");
        write(source, "contrib/pg_prewarm/pg_prewarm.control", "default_version = '1.2'");
        let first = format("a").unwrap();
        assert_ne!(format("b").unwrap(), first);
        let mut other = first.clone();
        for (file, text) in [
            ("src/include/access/xlog_internal.h", "#define XLOG_PAGE_MAGIC 0xD119\n"),
            ("src/include/catalog/catversion.h", "#define CATALOG_VERSION_NO\t202506292\n"),
            ("src/include/catalog/pg_proc.dat", "[{}]"),
            ("src/backend/catalog/system_views.sql", "select 2;"),
            ("src/bin/initdb/initdb.c", "int main2"),
            ("contrib/pg_prewarm/pg_prewarm.control", "default_version = '1.3'"),
        ] {
            write(source, file, text);
            let changed = format("a").unwrap();
            assert_ne!(changed, other, "{file}");
            other = changed;
        }
        write(source, "src/include/access/xlog_internal.h", "/* y */\n#define XLOG_PAGE_MAGIC 0xD119\n");
        write(source, "src/backend/executor/execMain.c", "changed");
        assert_eq!(format("a").unwrap(), other);
    }
}
