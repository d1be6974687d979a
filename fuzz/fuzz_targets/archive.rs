//! An archive of bundles with any content is imported or refused, and what was imported is intact. An input is a tar archive,
//! before its compression.

#![no_main]

use libfuzzer_sys::fuzz_target;
use store::Store;

fuzz_target!(|input: &[u8]| {
    let Ok(archive) = zstd::encode_all(input, 1) else { return };
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let store = Store::open(directory.path()).expect("an empty directory can be a store");
    let _ = store.import_bundles(&mut archive.as_slice());
    let checked = store.check().expect("the directory can be listed");
    assert!(checked.problems.is_empty(), "{:?}", checked.problems);
    let names = std::fs::read_dir(directory.path()).expect("the store is a directory");
    let is_known = |name: &str| ["trials", "index.sqlite", "index.lock"].contains(&name);
    assert!(names.flatten().all(|entry| entry.file_name().to_str().is_some_and(is_known)));
});
