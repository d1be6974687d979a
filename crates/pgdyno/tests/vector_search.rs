//! The workload `vector-search` on pgvector, built for a server that is built from source: recall next to throughput.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use host::{Cache, Lock};
use model::record::{Status, Trial};
use serde_json::Value;
use skip::skip;
use support::{Bench, text};

fn recall(trial: &Trial) -> f64 {
    trial.figures["figure.recall"]
}

#[test]
fn an_exact_search_has_a_recall_of_one_and_a_less_thorough_one_less_of_it() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-sources");
    let (server, pgvector) = (sources.join("postgresql.tar.bz2"), sources.join("pgvector.tar.gz"));
    if !server.exists() || !pgvector.exists() {
        return skip(
            "there is no source of PostgreSQL, or of pgvector: run setup/test-sources target/test-sources",
        );
    }
    // Another test replaces the installation of this build.
    let cache = Cache::open().unwrap();
    let _alone = Lock::exclusive(&cache.lock_file("test-build-configure")).unwrap();
    let bench = Bench::new(&format!(
        "name = 'vectors'\n[factors]\nserver = ['built']\nextension = ['vector=./pgvector']\nclients = [1]\n\
         settings = ['thorough', 'quick', 'exact']\nworkload = ['hnsw', 'ivfflat']\n\
         [run]\nduration = '1s'\nwarmup = '200ms'\nrepeats = 3\nseed = 1\n\
         [servers.built]\nsource = '{}'\nbuild = {{ cflags = '-O0' }}\n\
         [settings.thorough]\n'hnsw.ef_search' = 60\n'ivfflat.probes' = 20\n\
         [settings.quick]\n'hnsw.ef_search' = 10\n'ivfflat.probes' = 1\n\
         [settings.exact]\nenable_indexscan = false\n\
         [workloads.hnsw]\nbuiltin = 'vector-search'\nparameters = {{ rows = 4000, clusters = 1, queries = 50 }}\n\
         [workloads.ivfflat]\nbuiltin = 'vector-search'\n\
         parameters = {{ rows = 4000, clusters = 1, queries = 50, lists = 40 }}\n",
        server.display()
    ));
    let directory = bench.path().join("pgvector");
    fs::create_dir(&directory).unwrap();
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(&pgvector)
        .args(["--strip-components=1", "-C"])
        .arg(&directory)
        .status()
        .unwrap();
    assert!(unpacked.success());
    // pgvector 0.8.0, which Debian 13 has, is older than PostgreSQL 18.
    const DELAY: &str = "vacuum_delay_point();";
    const OF_18: &str =
        "\n#if PG_VERSION_NUM >= 180000\nvacuum_delay_point(false);\n#else\nvacuum_delay_point();\n#endif\n";
    for (file, before, after) in [
        ("hnswvacuum.c", DELAY, OF_18),
        ("ivfvacuum.c", DELAY, OF_18),
        (
            "ivfbuild.c",
            "buildstate->tupdesc->attrs[0].atttypid",
            "TupleDescAttr(buildstate->tupdesc, 0)->atttypid",
        ),
    ] {
        let file = directory.join("src").join(file);
        fs::write(&file, fs::read_to_string(&file).unwrap().replace(before, after)).unwrap();
    }
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 18);
    for workload in ["hnsw", "ivfflat"] {
        let of = |settings: &str| -> Vec<&Trial> {
            let is_it = |trial: &&Trial| {
                trial.cell.workload.known().unwrap().name() == workload
                    && trial.cell.settings.known().unwrap().name == settings
            };
            trials.iter().filter(is_it).collect()
        };
        let (thorough, quick, exact) = (of("thorough"), of("quick"), of("exact"));
        assert_eq!([thorough.len(), quick.len(), exact.len()], [3, 3, 3]);
        for trial in thorough.iter().chain(&quick).chain(&exact) {
            assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
        }
        assert!(exact.iter().all(|trial| recall(trial) == 1.0), "{workload}");
        let tps =
            |of: &[&Trial]| of.iter().map(|trial| trial.summary.as_ref().unwrap().tps).sum::<f64>() / 3.0;
        let (more, less) = (recall(thorough[0]), recall(quick[0]));
        assert!(less + 0.05 < more && more <= 1.0, "{workload}: {less} {more}");
        // Several times as fast: the rest is a matter of the machine.
        assert!(tps(&quick) > tps(&exact), "{workload}: {} {}", tps(&quick), tps(&exact));
    }

    let compared = bench.pgdyno(&["compare", "settings=thorough", "settings=quick", "--format", "json"]);
    let document: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let metrics = document["metrics"].as_array().unwrap();
    let of_recall = metrics.iter().find(|of| of["metric"] == "figure.recall").unwrap();
    for cell in of_recall["cells"].as_array().unwrap() {
        assert_eq!(cell["verdict"], "REGRESSION", "{cell}");
    }
}
