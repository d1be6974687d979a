//! Limits of the shell, and paths that are not UTF-8: an error of one line, and never a signal or a panic.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

const SWEEP: &str = "clients,tps\n8,1000\n16,1900\n";

/// Runs pgdyno in a directory, after a command of the shell.
fn pgdyno(directory: &Path, before: &str, args: &str) -> Output {
    let script = format!("{before} && exec \"$PGDYNO\" {args}");
    Command::new("sh")
        .args(["-c", &script])
        .env("PGDYNO", env!("CARGO_BIN_EXE_pgdyno"))
        .current_dir(directory)
        .output()
        .unwrap()
}

fn error(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{:?} {text}", output.status);
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{text}");
    text
}

#[test]
fn too_small_an_address_space_is_an_error_with_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    // Small enough to be refused, and large enough to load the program with its debug information.
    let text = error(&pgdyno(directory.path(), "ulimit -v 250000", "store list"), 2);
    assert!(text.contains("limited to 244 MB (ulimit -v), and pgdyno needs 256 MB"), "{text}");
}

#[test]
fn a_file_above_the_limit_is_an_error_with_the_path() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("sweep.csv"), SWEEP).unwrap();
    let import = "import csv sweep.csv --factor clients --store s";
    let whole = pgdyno(directory.path(), "true", import);
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    std::fs::remove_dir_all(directory.path().join("s")).unwrap();
    let text = error(&pgdyno(directory.path(), "ulimit -f 1", import), 1);
    assert!(text.contains("File too large") && text.contains("raise the limit"), "{text}");
}

#[test]
fn a_cache_whose_path_is_not_utf_8_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let cache = std::ffi::OsStr::from_bytes(b"cache\xff");
    let output = Command::new(env!("CARGO_BIN_EXE_pgdyno"))
        .args(["server", "list"])
        .env("PGDYNO_CACHE", directory.path().join(cache))
        .output()
        .unwrap();
    let text = error(&output, 1);
    assert!(text.contains("cache\\xFF\", is not valid UTF-8; set PGDYNO_CACHE"), "{text}");
}

#[test]
fn a_store_whose_path_is_not_utf_8_works() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = directory.path().join("sweep.csv");
    std::fs::write(&sweep, SWEEP).unwrap();
    let store = directory.path().join(std::ffi::OsStr::from_bytes(b"store\xff"));
    let commands: [&[&str]; 3] = [
        &["import", "csv", sweep.to_str().unwrap(), "--factor", "clients"],
        &["store", "check"],
        &["report"],
    ];
    for args in commands {
        let mut pgdyno = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        let output = pgdyno.args(args).arg("--store").arg(&store).output().unwrap();
        assert!(output.status.success(), "{args:?} {}", String::from_utf8_lossy(&output.stderr));
    }
}
