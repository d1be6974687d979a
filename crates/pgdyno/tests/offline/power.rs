//! `pgdyno power` and the power check of `pgdyno plan`, as a shell sees them.

use std::fs;
use std::process::Command;

use crate::bundles::{Bundles, RUN, cell, record};

/// Five runs that spread by 2%.
const NOISY: [f64; 5] = [1000.0, 1010.0, 975.0, 1025.0, 990.0];

const CAMPAIGN: &str =
    "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [8]\n";

/// Standard output, standard error and exit code of a command.
fn printed(bundles: &Bundles, args: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    command.args(args).current_dir(bundles.directory.path()).env_remove("PGDYNO_STORE");
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// A store with the noise of a cell on `host`, and a campaign next to it.
fn noisy(host: &str) -> Bundles {
    let mut bundles = Bundles::new();
    for tps in NOISY {
        let mut record = record(cell("16", 8), tps);
        record.environment.hostname = Some(host.to_owned());
        bundles.write(record);
    }
    fs::write(bundles.directory.path().join("n.toml"), CAMPAIGN).unwrap();
    bundles
}

fn this_host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

#[test]
fn the_noise_is_that_of_this_host_unless_trials_are_selected() {
    let here = noisy(&this_host());
    let (out, err, code) = printed(&here, &["power"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(out.starts_with(&format!("Noise: the cells measured on {}\n", this_host())), "{out}");
    assert!(out.contains("worst    1.9%"), "{out}");

    let there = noisy("some-other-host");
    let (out, err, code) = printed(&there, &["power"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("the noise is unknown") && err.contains("--noise 2%"), "{err}");
    for by in [&["power", "--run", RUN][..], &["power", "clients=8"], &["power", "--campaign", "sweep"]] {
        let (out, _, code) = printed(&there, by);
        assert!(out.contains("worst    1.9%") && code == Some(0), "{out}");
    }
    let (_, err, code) = printed(&there, &["power", "clients=9"]);
    assert!(err.contains("has clients=9; there are") && code == Some(1), "{err}");
}

#[test]
fn a_plan_with_too_few_repeats_is_warned_of_and_not_stopped() {
    let here = noisy(&this_host());
    let (out, err, code) = printed(&here, &["plan", "n.toml"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("n: 2 cells"), "{out}");
    let warning = "with 3 runs a side and 1.9% noise, only changes above 18.1% are detected; 5% needs 9";
    assert!(err.contains(warning), "{err}");
    let (out, err, _) = printed(&here, &["plan", "n.toml", "--set", "repeats=9", "--format", "json"]);
    assert!(!err.contains("runs a side"), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["power"]["short"], &json["power"]["runs"]), (&0.into(), &9.into()));
    let (_, err, _) = printed(&here, &["plan", "n.toml", "--set", "effect=1%"]);
    assert!(err.contains("; 1% needs"), "{err}");
}

#[test]
fn without_a_store_a_plan_has_no_power_analysis() {
    let there = noisy("some-other-host");
    for store in [".pgdyno", "nowhere"] {
        let (out, err, code) = printed(&there, &["plan", "n.toml", "--format", "json", "--store", store]);
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&json["power"], code), (&serde_json::Value::Null, Some(0)));
        assert!(!err.contains("noise"), "{err}");
    }
}
