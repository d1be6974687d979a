//! Extensions as a factor: those that a server has, and those that are built for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::fs;
use std::path::Path;

use host::{Cache, Lock};
use model::record::{Status, Trial};
use skip::skip;
use support::{Bench, text};

const RUN: &str = "[run]\nduration = '1s'\nwarmup = '200ms'\nrepeats = 1\nseed = 1\nretries = 0\n\
                   [settings.default]\nautovacuum = false\n";

fn level(trial: &Trial) -> String {
    trial.cell.extension.known().unwrap().to_string()
}

#[test]
fn an_extension_of_the_server_is_in_the_data_sets_of_its_cells() {
    let bench = Bench::new(&format!(
        "name = 'contrib'\n[factors]\nserver = ['9.6', '18']\nworkload = ['has.sql']\nclients = [1]\n\
         extension = ['none', 'pg_trgm', 'hstore@1.4']\n{RUN}"
    ));
    fs::write(
        bench.path().join("has.sql"),
        "select 1 / (select count(*) from pg_extension where extname = 'pg_trgm')::int;\n",
    )
    .unwrap();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        let is_usable = trial.validity.status != Status::Invalid;
        assert_eq!(is_usable, level(trial) == "pg_trgm", "{}: {:?}", trial.cell, trial.validity);
    }

    // What the server does not have is its error, before the first trial.
    let wrong = "name = 'wrong'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
                 extension = ['no_such_extension']\n";
    fs::write(bench.path().join("wrong.toml"), wrong).unwrap();
    let output = bench.pgdyno(&["run", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("extension \"no_such_extension\" is not available"), "{}", text(&output));
}

/// The source of an extension whose function computes for so many rounds.
fn write_source(directory: &Path, name: &str, rounds: u64) {
    fs::create_dir_all(directory).unwrap();
    let write = |file: &str, text: &str| fs::write(directory.join(file), text).unwrap();
    write(&format!("{name}.control"), "default_version = '1.0'\nrelocatable = true\n");
    write(
        "Makefile",
        &format!(
            "EXTENSION = {name}\nMODULES = {name}\nDATA = {name}--1.0.sql\nPG_CONFIG = pg_config\n\
             PGXS := $(shell $(PG_CONFIG) --pgxs)\ninclude $(PGXS)\n"
        ),
    );
    write(
        &format!("{name}--1.0.sql"),
        &format!("CREATE FUNCTION {name}() RETURNS int LANGUAGE c AS '$libdir/{name}', '{name}';\n"),
    );
    write(
        &format!("{name}.c"),
        &format!(
            "#include \"postgres.h\"\n#include \"fmgr.h\"\nPG_MODULE_MAGIC;\nPG_FUNCTION_INFO_V1({name});\n\
             Datum {name}(PG_FUNCTION_ARGS)\n{{\n\tvolatile uint64 sum = 0;\n\
             \tfor (uint64 i = 0; i < {rounds}; i++)\n\t\tsum += i;\n\tPG_RETURN_INT32((int32) (sum & 1));\n}}\n"
        ),
    );
}

#[test]
fn an_extension_is_built_for_its_server_and_two_of_its_versions_are_compared() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-sources/postgresql.tar.bz2");
    if !source.exists() {
        return skip("there is no source of PostgreSQL: run setup/test-sources target/test-sources");
    }
    // Another test replaces the installation of this build.
    let cache = Cache::open().unwrap();
    let _alone = Lock::exclusive(&cache.lock_file("test-build-configure")).unwrap();
    let campaign = |extensions: &str| {
        format!(
            "name = 'built'\n[factors]\nserver = ['built']\nworkload = ['call.sql']\nclients = [1]\n\
             extension = [{extensions}]\n[servers.built]\nsource = '{}'\nbuild = {{ cflags = '-O0' }}\n{RUN}",
            source.display()
        )
    };
    let bench = Bench::new(&campaign("'./planted', 'planted=./slow'"));
    write_source(&bench.path().join("planted"), "planted", 0);
    // Some milliseconds.
    write_source(&bench.path().join("slow"), "planted", 5_000_000);
    fs::write(bench.path().join("call.sql"), "select planted();\n").unwrap();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    let of = |extension: &str| trials.iter().find(|trial| level(trial) == extension).unwrap();
    let (fast, slow) = (of("./planted"), of("planted=./slow"));
    for trial in [fast, slow] {
        assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
        assert_eq!(trial.accounting.surplus(), Some(0), "{:?}", trial.accounting);
    }
    let tps = |trial: &Trial| trial.summary.as_ref().unwrap().tps;
    assert!(tps(slow) * 3.0 < tps(fast), "{} {}", tps(fast), tps(slow));
    let identities = [fast, slow].map(|trial| trial.server_build.clone().unwrap());
    assert!(identities.iter().all(|identity| identity.contains("-ext-")), "{identities:?}");
    assert_ne!(identities[0], identities[1]);

    // What is built is used again; errors say what to do.
    let again = bench.pgdyno(&["run", "campaign.toml"]);
    assert!(!text(&again).contains("building the extension"), "{}", text(&again));
    let refused = |extension: &str, expected: &str| {
        fs::write(bench.path().join("refused.toml"), campaign(&format!("'{extension}'"))).unwrap();
        let output = bench.pgdyno(&["run", "refused.toml"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(expected), "{}", text(&output));
    };
    refused("./nowhere", "No such file or directory");
    refused("./slow", "it has no slow.control; name the extension, as in \"planted=");
    let code = bench.path().join("planted/planted.c");
    fs::write(&code, "int planted(void) { return missing; }\n").unwrap();
    refused("./planted", "could not compile the extension planted");
    for identity in identities {
        let output = bench.pgdyno(&["server", "remove", &identity]);
        assert!(output.status.success(), "{}", text(&output));
    }
}
