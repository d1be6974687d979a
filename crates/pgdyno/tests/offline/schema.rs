//! The published schema of campaigns has the keys that the program reads, and accepts every shipped or documented one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use model::spec::Campaign;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Value {
    serde_json::from_str(&fs::read_to_string(root().join("docs/campaign.schema.json")).unwrap()).unwrap()
}

fn json_of(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap()
}

fn errors(validator: &Validator, campaign: &Value) -> Vec<String> {
    validator.iter_errors(campaign).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Keys that the program knows in a table, from its error about an unknown one.
fn known(path: &str) -> BTreeSet<String> {
    let text = format!("name = 'n'\n{path}\n");
    let help = Campaign::parse(&text).unwrap_err().help.unwrap();
    help.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn published(table: &Value) -> BTreeSet<String> {
    table["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_schema_has_the_keys_that_the_program_reads() {
    let schema = schema();
    let definition = |name: &str| &schema["$defs"][name];
    for (text, table) in [
        ("unknown = 1", &schema),
        ("[factors]\nunknown = 1", definition("Matrix")),
        ("[factors]\nexclude = [{ unknown = 1 }]", definition("Point")),
        ("[run]\nunknown = 1", definition("Run")),
        ("[run]\nrepeats = { unknown = 1 }", &definition("Run")["properties"]["repeats"]["oneOf"][1]),
        ("[servers.a]\nunknown = 1", definition("Server")),
        ("[servers.a]\nbuild = { unknown = 1 }", definition("Build")),
        ("[workloads.a]\nunknown = 1", definition("Workload")),
        ("[workloads.a]\nbackground = [{ unknown = 1 }]", definition("Background")),
        ("[pins.a]\nunknown = 1", definition("Pin")),
        ("[disks.a]\nunknown = 1", definition("Disk")),
        ("[collect]\nunknown = 1", definition("Collect")),
        ("[profile]\nunknown = 1", definition("Profile")),
        ("[validity]\nunknown = 1", definition("Thresholds")),
        ("[hooks]\nunknown = 1", definition("Hooks")),
    ] {
        assert_eq!(published(table), known(text), "{text}");
    }
}

#[test]
fn the_schema_accepts_all_shipped_and_documented_campaigns() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(root().join("campaigns")).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let campaign = json_of(&fs::read_to_string(&path).unwrap());
            assert_eq!(errors(&validator, &campaign), Vec::<String>::new(), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
    let manual = fs::read_to_string(root().join("docs/campaign.md")).unwrap();
    for example in manual.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        let mut campaign = json_of(example);
        campaign.as_object_mut().unwrap().entry("name").or_insert_with(|| "n".into());
        assert_eq!(errors(&validator, &campaign), Vec::<String>::new(), "{example}");
    }
}

#[test]
fn the_schema_refuses_what_the_program_refuses() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for wrong in [
        "name = 'n'\n[factors]\nclients = [0]",
        "name = 'n'\n[factors]\nserver = [18]",
        "name = 'n'\n[run]\nduration = '5'",
        "name = 'n'\n[factors]\nmemory = ['512']",
        "name = 'n'\n[factors]\ncpus = [0]",
        "name = 'n'\n[factors]\nstorage = ['virtio-none']",
        "name = 'n'\n[factors]\nacceleration = ['hvf']",
        "name = 'n'\n[run]\ncompare = 'acceleration'",
        "name = 'n'\n[sysctls.a]\nswappiness = 1",
        "name = 'n'\n[sysctls.default]",
        "name = 'n'\n[disks.a]\nread = '100MB'",
        "name = 'n'\n[disks.a]",
        "name = 'n'\n[servers.a]\nbin = '/x'\ndsn = 'y'",
        "name = 'n'\n[workloads.a]\nduration = '5s'",
        "name = 'n'\n[workloads.a]\nbuiltin = 'scans'\ndirectory = 'x'",
        "name = 'n'\n[workloads.a]\nscript = 'a.sql'\nscripts = ['b.sql']",
        "name = 'a b'",
        "[factors]\nclients = [1]",
    ] {
        assert!(!validator.is_valid(&json_of(wrong)), "{wrong}");
    }
}
