//! Crates use only the crates that ARCHITECTURE.md allows.
//!
//! Only dependencies of the program count: tests may use any crate that they need.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Every crate, its floor, and the crates that it may use.
const FLOORS: [(&str, u8, &[&str]); 26] = [
    ("model", 0, &[]),
    ("stats", 0, &[]),
    ("script", 0, &[]),
    ("wire", 0, &[]),
    ("plaintext", 0, &[]),
    ("host", 0, &[]),
    ("skip", 0, &[]),
    ("mutate", 0, &[]),
    ("pglog", 0, &[]),
    ("trace", 0, &[]),
    ("driver", 1, &["model", "script", "trace", "wire", "host"]),
    ("server", 1, &["model", "script", "wire", "host"]),
    ("machine", 1, &["model", "host"]),
    ("collect", 1, &["model", "wire", "host"]),
    ("store", 1, &["model"]),
    ("diagnose", 1, &["model", "stats"]),
    ("workload", 1, &["model", "script", "trace", "host"]),
    ("replay", 2, &["model", "trace", "wire", "pglog", "driver"]),
    ("import", 2, &["model", "store", "diagnose"]),
    (
        "runner",
        2,
        &[
            "model",
            "stats",
            "plaintext",
            "driver",
            "host",
            "server",
            "machine",
            "collect",
            "store",
            "diagnose",
            "workload",
        ],
    ),
    ("fleet", 3, &["model", "script", "driver", "host", "store", "runner"]),
    ("analysis", 2, &["model", "host", "stats", "plaintext", "diagnose", "store"]),
    (
        "report",
        3,
        &[
            "model",
            "stats",
            "plaintext",
            "wire",
            "host",
            "server",
            "machine",
            "diagnose",
            "store",
            "import",
            "analysis",
            "replay",
        ],
    ),
    ("bench", 3, &["model", "script", "stats", "trace", "wire", "plaintext", "driver", "replay", "store"]),
    ("pgbench", 3, &["model", "script", "wire", "driver"]),
    (
        "pgdyno",
        4,
        &[
            "model",
            "stats",
            "script",
            "wire",
            "driver",
            "host",
            "server",
            "machine",
            "collect",
            "store",
            "diagnose",
            "import",
            "workload",
            "runner",
            "fleet",
            "analysis",
            "report",
            "plaintext",
            "bench",
            "pgbench",
            "replay",
            "pglog",
            "trace",
        ],
    ),
];

/// The workspace's crates with the workspace crates they depend on.
fn crates() -> BTreeMap<String, Vec<String>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    let packages = metadata.workspace_packages();
    let names: Vec<String> = packages.iter().map(|package| package.name.to_string()).collect();
    packages
        .iter()
        .filter(|package| package.manifest_path.starts_with(metadata.workspace_root.join("crates")))
        .map(|package| {
            let uses = package
                .dependencies
                .iter()
                .filter(|dependency| {
                    dependency.kind == DependencyKind::Normal && names.contains(&dependency.name)
                })
                .map(|dependency| dependency.name.clone());
            (package.name.to_string(), uses.collect())
        })
        .collect()
}

/// Dependencies that a crate's floor does not allow, and crates without a floor.
fn violations(crates: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut violations = Vec::new();
    for (name, uses) in crates {
        let Some((_, _, may_use)) = FLOORS.iter().find(|(known, ..)| known == name) else {
            violations.push(format!("{name} has no floor: give it one here and in ARCHITECTURE.md"));
            continue;
        };
        let refused = uses.iter().filter(|used| !may_use.contains(&used.as_str()));
        violations.extend(refused.map(|used| format!("{name} may not use {used}")));
    }
    violations
}

#[test]
fn every_crate_uses_only_allowed_crates() {
    assert_eq!(violations(&crates()), Vec::<String>::new());
}

#[test]
fn a_use_of_a_higher_floor_is_found() {
    let mut crates = crates();
    crates.get_mut("model").unwrap().push("store".to_owned());
    crates.insert("basement".to_owned(), Vec::new());
    let expected =
        ["basement has no floor: give it one here and in ARCHITECTURE.md", "model may not use store"];
    assert_eq!(violations(&crates), expected);
}

#[test]
fn dependencies_point_down_only() {
    let floor = |name: &str| FLOORS.iter().find(|(known, ..)| *known == name).map(|(_, floor, _)| *floor);
    for (name, _, may_use) in FLOORS {
        for used in may_use {
            assert!(floor(used) < floor(name), "{name} and {used}");
        }
    }
}
