//! `pgdyno dataset` on a cache of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use host::{Cache, NoProgress};
use serde_json::Value;

#[test]
fn data_sets_are_listed_and_removed_by_name_server_and_scale() {
    let directory = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let cache = Cache::at(directory.path()).unwrap();
    let installation = server::install(&Cache::open().unwrap(), "18", &NoProgress).unwrap();
    let make = |initdb: &[&str], scale: u32| {
        let initdb: Vec<String> = initdb.iter().map(|&option| option.to_owned()).collect();
        server::template(&cache, &installation, &initdb, &scale.into(), None, &NoProgress).unwrap()
    };
    let dataset = |args: &[&str]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command.arg("dataset").args(args).env("PGDYNO_CACHE", directory.path()).output().unwrap()
    };
    let ended = |output: &Output| {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let listed = || -> Vec<Value> {
        let output = dataset(&["list", "--format", "json"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["format"], 1);
        document["datasets"].as_array().unwrap().clone()
    };
    assert!(listed().is_empty());

    let plain = make(&[], 1);
    drop(make(&["--no-data-checksums"], 1));
    drop(make(&[], 2));
    let all = listed();
    assert_eq!(all.iter().map(|one| one["scale"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 1, 2]);
    let version = installation.version().to_string();
    let with_options = &all[0];
    assert_eq!(with_options["initdb"][0], "--no-data-checksums", "{all:?}");
    assert_eq!(with_options["facts"]["data_checksums"], false);
    assert!(all.iter().all(|one| one["server"] == version.as_str() && one["outdated"] == false));
    assert!(all[2]["bytes"].as_u64() > all[1]["bytes"].as_u64());

    let (code, table) = ended(&dataset(&["list"]));
    assert_eq!(code, 0);
    assert!(table.starts_with("name") && table.contains("--no-data-checksums"), "{table}");
    assert_eq!(table.lines().count(), 4);

    let (code, text) = ended(&dataset(&["remove", "--server", "17"]));
    assert_eq!((code, text.contains("no data set of the server 17")), (2, true), "{text}");
    let (code, text) = ended(&dataset(&["remove", "nonsense"]));
    assert_eq!((code, text.contains("no data set nonsense")), (2, true), "{text}");
    assert_eq!(ended(&dataset(&["remove"])).0, 2);
    assert_eq!(ended(&dataset(&["remove", "--all", "--scale", "1"])).0, 2);
    assert_eq!(listed().len(), 3);

    assert_eq!(ended(&dataset(&["remove", with_options["name"].as_str().unwrap()])).0, 0);
    assert_eq!(listed().len(), 2);
    let (code, text) = ended(&dataset(&["remove", "--server", "18", "--scale", "1"]));
    assert_eq!((code, text.contains("in use")), (1, true), "{text}");
    drop(plain);
    let (code, text) = ended(&dataset(&["remove", "--server", "18", "--scale", "1"]));
    assert_eq!((code, text.contains("removed")), (0, true), "{text}");
    assert_eq!(listed()[0]["scale"], 2);
    assert_eq!(ended(&dataset(&["remove", "--all"])).0, 0);
    assert!(listed().is_empty());
    assert_eq!(ended(&dataset(&["remove", "--all"])).0, 0);
}
