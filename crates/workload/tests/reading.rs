//! Workloads as users write them: files, directories, and error messages.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;

use host::NoProgress;
use model::spec::Campaign;
use model::workload::Workloads;
use tempfile::TempDir;
use workload::WorkloadError;

/// Workloads of a campaign with these tables, in a directory with these files.
fn read(tables: &str, files: &[(&str, &str)]) -> Result<Workloads, (String, String)> {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let text = format!("name = 'n'\n{tables}");
    let campaign = Campaign::parse(&text).unwrap();
    workload::workloads(&campaign, directory.path(), &Workloads::default(), &NoProgress).map_err(|error| {
        match error {
            WorkloadError::Campaign(error) => (error.message, text[error.at.unwrap()].to_owned()),
            WorkloadError::Directory { text, error, .. } => {
                (error.message, text[error.at.unwrap()].to_owned())
            }
            WorkloadError::Script(message) => (message, String::new()),
        }
    })
}

const FILES: [(&str, &str); 4] = [
    ("read.sql", "select :rows;\n"),
    ("write.sql", "insert into t values (1);\n"),
    ("make.sql", "create table t (a int);\n"),
    (
        "queue/workload.toml",
        "description = 'jobs'\nscripts = ['take.sql@2']\nparameters = { jobs = 10 }\nwrites = false\n",
    ),
];

#[test]
fn scripts_have_weights_and_parameters_are_texts() {
    let found = read(
        "[workloads.mine]\nscripts = ['read.sql@100 - :share', 'write.sql@:share', 'select-only@0']\nsetup = 'make.sql'\n\
         parameters = { rows = '1GB', share = 20, ratio = 0.5 }\ntables = 'none'\n",
        &FILES,
    )
    .unwrap();
    let mine = found.0["mine"].custom().unwrap();
    let weights: Vec<_> = mine.scripts.iter().map(|script| (script.name.as_str(), script.weight)).collect();
    assert_eq!(weights, [("read.sql", 80), ("write.sql", 20), ("select-only", 0)]);
    assert_eq!(mine.parameters["rows"], (1_u64 << 30).to_string());
    assert_eq!(mine.parameters["ratio"], "0.5");
    assert!(mine.writes && !mine.pgbench_tables);
    assert_eq!(mine.setup[0].name, "make.sql");
}

#[test]
fn a_directory_and_a_level_that_is_a_file_are_workloads() {
    let files = [FILES.as_slice(), &[("queue/take.sql", "select :jobs;\n")]].concat();
    let found = read(
        "[factors]\nworkload = ['read.sql']\n[workloads.q]\ndirectory = 'queue'\nparameters = { jobs = 99 }\n",
        &files,
    )
    .unwrap();
    assert_eq!(found.0["q"].custom().unwrap().parameters["jobs"], "99");
    assert_eq!(found.0["q"].custom().unwrap().description.as_deref(), Some("jobs"));
    assert_eq!(found.0["q"].custom().unwrap().scripts[0].name, "take.sql");
    assert!(!found.0["q"].custom().unwrap().writes);
    assert_eq!(found.0["read.sql"].custom().unwrap().scripts[0].text, "select :rows;\n");
}

#[test]
fn scripts_of_the_campaign_replace_those_of_the_workload() {
    let found = read(
        "[workloads.sums]\nbuiltin = 'scans'\nscript = 'read.sql'\nparameters = { rows = 1000 }\n\
         [workloads.q]\ndirectory = 'queue'\nscripts = ['write.sql@:jobs']\n",
        &[FILES.as_slice(), &[("queue/take.sql", "select :jobs;\n")]].concat(),
    )
    .unwrap();
    let (sums, q) = (found.0["sums"].custom().unwrap(), found.0["q"].custom().unwrap());
    assert_eq!((sums.scripts.len(), sums.scripts[0].text.as_str()), (1, "select :rows;\n"));
    assert!(!sums.setup.is_empty() && sums.spans && sums.parameters["rows"] == "1000");
    assert_eq!((q.scripts[0].name.as_str(), q.scripts[0].weight), ("write.sql", 10));
}

#[test]
fn workloads_have_background_workloads() {
    let found = read(
        "[factors]\nworkload = ['mixed']\n[workloads.mixed]\nbuiltin = 'select-only'\nbeside = [{ workload = 'w' }, \
         { workload = 'read.sql', clients = 3, rate = 2.5, start = '10s' }]\n\
         [workloads.w]\nscript = 'write.sql'\nsetup = 'make.sql'\ntables = 'none'\niterations = 2\nstagger = '500ms'\nspans = true\n\
         [workloads.same]\nbuiltin = 'tpcb-like'\n",
        &FILES,
    )
    .unwrap();
    let mixed = found.0["mixed"].custom().unwrap();
    assert_eq!((mixed.scripts[0].name.as_str(), mixed.background.len()), ("select-only", 2));
    let [w, read] = mixed.background.as_slice() else { panic!("{mixed:?}") };
    let custom = w.workload.custom().unwrap();
    assert_eq!(
        (w.clients, custom.iterations, custom.stagger.us(), custom.spans),
        (1, Some(2), 500_000, true)
    );
    assert_eq!((read.clients, read.rate.get(), read.start.us()), (3, Some(2.5), 10_000_000));
    // A background workload that writes makes the whole workload write.
    assert!(mixed.writes && mixed.pgbench_tables);
    assert_eq!(workload::setup(mixed, 1).unwrap().len(), 1);
    assert!(!found.0.contains_key("same"), "it is pgbench's own");
}

const INGEST: &str = "[workloads.a]\nsetup = 'make.sql'\nparameters = { rows = 100, batch = 50 }\n\
     [[workloads.a.phases]]\nname = 'load'\nscript = 'write.sql'\nparameters = { batch = 5 }\nrows = ':rows'\n\
     rows_per_transaction = ':batch'\nbackground = [{ script = 'read.sql', iterations = 3 }]\n\
     [[workloads.a.phases]]\nname = 'measure'\nscripts = ['read.sql@2', 'select-only']\n\
     background = [{ script = 'write.sql', name = 'w', rate = '75.0 / :batch', per_client = true, clients = 2 }]\n\
     [[workloads.a.phases]]\nname = 'after'\nscript = 'write.sql'\nclients = 1\nrate = 10\nduration = '5s'\n";

#[test]
fn a_workload_with_phases_is_its_judged_one() {
    let text = INGEST.replacen("setup", "judged = 'measure'\nsetup", 1);
    let found = read(&text, &FILES).unwrap();
    let a = found.0["a"].custom().unwrap();
    assert_eq!(
        (a.judged_phase(), a.iterations, a.scripts.len(), a.setup.len()),
        (Some("measure"), None, 2, 1)
    );
    let w = &a.background[0];
    assert_eq!((w.workload.name(), w.clients, w.rate.get(), w.per_client), ("w", 2, Some(1.5), true));
    let [load, measure, after] = a.phases.as_slice() else { panic!("{a:?}") };
    assert!(measure.load.is_none());
    let of_load = load.load.as_ref().unwrap();
    let custom = &of_load.workload;
    assert_eq!((of_load.clients, custom.iterations, custom.rows_per_transaction), (None, Some(20), Some(5)));
    assert_eq!((custom.setup.len(), load.parameters["batch"].as_str()), (0, "5"));
    assert_eq!(custom.background[0].workload.iterations(), Some(3));
    let of_after = after.load.as_ref().unwrap();
    assert_eq!(
        (of_after.clients, of_after.rate.get(), of_after.duration.map(|d| d.us())),
        (Some(1), Some(10.0), Some(5_000_000))
    );

    // In a directory, a campaign may judge another one.
    let table = text.replace("[workloads.a]\n", "").replace("workloads.a.phases", "phases");
    let files = [
        ("q/workload.toml", table.as_str()),
        ("q/write.sql", "select 1;\n"),
        ("q/read.sql", "select 2;\n"),
        ("q/make.sql", "select 3;\n"),
    ];
    let found = read("[workloads.b]\ndirectory = 'q'\njudged = 'load'\nparameters = { rows = 25 }\n", &files)
        .unwrap();
    let b = found.0["b"].custom().unwrap();
    assert_eq!(
        (b.judged_phase(), b.iterations, b.parameters["batch"].as_str()),
        (Some("load"), Some(5), "50")
    );
    for (table, message, at) in [
        ("judged = 'after'\n", "the judged phase \"after\" has a `clients` of its own", "'after'"),
        ("judged = 'lode'\n", "there is no phase \"lode\"", "'lode'"),
        ("script = 'read.sql'\n", "a workload with phases has no `script`", "'read.sql'"),
        (
            "parameters = { rows = 7 }\n",
            "7 rows of a client are no whole number of transactions of 5 rows",
            "':rows'",
        ),
    ] {
        let files = files.iter().copied().chain([("read.sql", "select 1;\n")]).collect::<Vec<_>>();
        let (error, position) =
            read(&format!("[workloads.b]\ndirectory = 'q'\n{table}"), &files).unwrap_err();
        assert!(error.contains(message), "{table}: {error}");
        assert_eq!(position, at, "{table}");
    }
}

#[test]
fn errors_of_phases_are_reported_with_their_position() {
    for (from, to, message, at) in [
        ("rate = 10\n", "", "the judged phase \"after\" has a `clients` of its own", ""),
        ("name = 'measure'", "name = 'load'", "the phase \"load\" is listed twice", "'load'"),
        ("name = 'measure'", "name = 'a b'", "\"a b\" is not a valid name of a phase", "'a b'"),
        ("setup", "iterations = 3\nsetup", "a workload with phases has no `iterations`", "3"),
        ("[workloads.a]\n", "[workloads.a]\nscript = 'read.sql'\n", "exactly one definition", "a"),
        (", iterations = 3", "", "\"read\" would never end", "'read.sql'"),
        (
            "rows_per_transaction = ':batch'\n",
            "",
            "how many transactions have these rows is not known",
            "':rows'",
        ),
        (
            "rows = ':rows'",
            "rows = ':rows'\niterations = 2",
            "`rows` and `iterations` are both given",
            "':rows'",
        ),
        ("':rows'", "':rose'", "invalid `rows`", "':rose'"),
        ("'75.0 / :batch'", "0", "invalid rate: 0", "0"),
        ("clients = 2", "clients = 1.5", "invalid number of clients: 1.5", "1.5"),
        ("{ batch = 5 }", "{ batches = 5 }", "the workload has no parameter `batches`", "batches"),
    ] {
        let judged = INGEST.replacen("setup", "judged = 'measure'\nsetup", 1);
        let text = if at.is_empty() { INGEST.to_owned() } else { judged };
        assert!(text.contains(from), "{from}");
        let (error, position) = read(&text.replacen(from, to, 1), &FILES).unwrap_err();
        assert!(error.contains(message), "{to}: {error}");
        assert!(at.is_empty() || position == at, "{to}: {position}");
    }
    let (error, at) = read("[workloads.a]\nbuiltin = 'queue'\njudged = 'x'\n", &[]).unwrap_err();
    assert!(error.contains("the workload \"queue\" has no phases"), "{error}");
    assert_eq!(at, "'x'");
    let in_background = format!(
        "{INGEST}[workloads.b]\nscript = 'read.sql'\nbackground = [{{ workload = 'insert-benchmark' }}]\n"
    );
    let (error, _) =
        read(&in_background.replacen("setup", "judged = 'measure'\nsetup", 1), &FILES).unwrap_err();
    assert!(
        error.contains(
            "\"insert-benchmark\" has phases, which can't run in the background of another workload"
        ),
        "{error}"
    );
}

#[test]
fn errors_are_reported_with_their_position() {
    for (tables, message, at) in [
        ("[workloads.a]\nscript = 'none.sql'\n", "none.sql can't be read: ", "'none.sql'"),
        ("[workloads.a]\nwrites = true\n", "the workload \"a\" must have exactly one definition", "a"),
        ("[workloads.a]\nscript = 'read.sql'\nscripts = ['read.sql']\n", "exactly one definition", "a"),
        ("[workloads.a]\ndirectory = 'queue'\nbuiltin = 'tpcb-like'\n", "exactly one definition", "a"),
        ("[workloads.a]\nscript = 'read.sql'\nbuiltin = 'tpcb-like'\n", "has no `script`", "'read.sql'"),
        ("[workloads.a]\nbuiltin = 'tpcb-like'\nsetup = 'make.sql'\n", "has no `setup`", "'make.sql'"),
        ("[workloads.a]\nscripts = ['read.sql@many']\n", "\"many\" is not a weight", "'read.sql@many'"),
        ("[workloads.a]\nscripts = ['read.sql@0']\n", "no script would ever run", "['read.sql@0']"),
        ("[workloads.a]\nscripts = ['read.sql', 'read.sql@2']\n", "is listed twice", "'read.sql@2'"),
        (
            "[workloads.tpcb-like]\nscript = 'read.sql'\n",
            "\"tpcb-like\" is a built-in script of pgbench",
            "tpcb-like",
        ),
        (
            "[workloads.tpcb-like]\nbuiltin = 'tpcb-like'\nspans = true\n",
            "\"tpcb-like\" is a built-in script of pgbench",
            "tpcb-like",
        ),
        ("[workloads.a]\nscript = 'read.sql'\niterations = 0\n", "invalid number of iterations: 0", "0"),
        (
            "[workloads.a]\nscript = 'read.sql'\nbeside = [{ workload = 'b' }]\n",
            "there is no workload \"b\"",
            "'b'",
        ),
        (
            "[workloads.a]\nscript = 'read.sql'\nbeside = [{ workload = 'a' }]\n",
            "\"a\" has background workloads itself",
            "'a'",
        ),
        (
            "[workloads.a]\nscript = 'read.sql'\niterations = 1\nbeside = [{ workload = 'tpcb-like' }]\n",
            "\"tpcb-like\" would never end",
            "'tpcb-like'",
        ),
        (
            "[workloads.a]\nscript = 'read.sql'\nbeside = [{ workload = 'queue' }, { workload = 'queue' }]\n",
            "\"queue\" is listed twice",
            "'queue'",
        ),
        (
            "[workloads.a]\nscript = 'read.sql'\nbeside = [{ workload = 'queue', clients = 0 }]\n",
            "invalid number of clients: 0",
            "0",
        ),
        (
            "[workloads.a]\nscript = 'read.sql'\nbeside = [{ workload = 'read.sql' }, { workload = 'queue' }]\n",
            "the script \"read.sql\" is listed twice",
            "[{ workload = 'read.sql' }, { workload = 'queue' }]",
        ),
        ("[workloads.a]\nscript = 'read.sql'\ntables = 'all'\n", "unknown tables \"all\"", "'all'"),
        ("[workloads.a]\nscript = 'read.sql'\nsetup = ['x.sql']\n", "x.sql can't be read", "['x.sql']"),
        ("[workloads.a]\nscript = 'read.sql'\nparameters = { 'a b' = 1 }\n", "can't be the name", "'a b'"),
        ("[workloads.a]\nscript = 'read.sql'\nparameters = { a = [1] }\n", "can't be the value", "[1]"),
        ("[workloads.a]\ndirectory = 'queue'\n", "take.sql can't be read", "'take.sql@2'"),
        ("[workloads.a]\ndirectory = 'nowhere'\n", "workload.toml can't be read", "'nowhere'"),
        ("[factors]\nworkload = ['gone.sql']\n", "gone.sql can't be read", "'gone.sql'"),
    ] {
        let (error, position) = read(tables, &FILES).unwrap_err();
        assert!(error.contains(message), "{tables}: {error}");
        assert_eq!(position, at, "{tables}");
    }
    let queue = |table: &'static str| {
        read(
            "[workloads.a]\ndirectory = 'q'\nparameters = { jabs = 1 }\n",
            &[("q/workload.toml", table), ("q/a.sql", "select 1;\n")],
        )
        .unwrap_err()
    };
    assert_eq!(queue("script = 'a.sql'\nparameters = { jobs = 1 }\n").1, "jabs");
    let too_large = "[workloads.a]\nbuiltin = 'blocks'\nparameters = { update_share = 101 }\n";
    assert!(read(too_large, &[]).unwrap_err().0.contains("is not a weight"));
    assert_eq!(queue("script = 'a.sql'\nduration = '5s'\n").1, "'5s'");
    assert_eq!(queue("script = 'a.sql'\nsetups = 'b'\n").1, "setups");
}

#[test]
fn a_script_is_reported_with_its_file_line_and_caret() {
    let (error, _) =
        read("[workloads.a]\nscript = 'bad.sql'\n", &[("bad.sql", "select 1;\n\\set x random(1, \n")])
            .unwrap_err();
    assert!(error.contains("bad.sql:2: syntax error"), "{error}");
    assert!(error.contains("^ error found here"), "{error}");
}

#[test]
fn bundled_workloads_are_found_overridden_and_replaced() {
    let found = read(
        "[workloads.q]\nbuiltin = 'queue'\nparameters = { jobs = 7 }\n[workloads.insert]\nscript = 'write.sql'\n",
        &FILES,
    )
    .unwrap();
    for name in workload::shipped() {
        assert!(found.0.contains_key(name), "{name}");
    }
    assert_eq!(found.0["q"].custom().unwrap().parameters["jobs"], "7");
    let halves =
        read("[workloads.h]\nbuiltin = 'blocks'\nparameters = { update_share = 40 }\n", &[]).unwrap();
    let weights: Vec<_> =
        halves.0["h"].custom().unwrap().scripts.iter().map(|script| script.weight).collect();
    assert_eq!(weights, [60, 40], "weights use the overridden parameters");
    assert_eq!(found.0["queue"].custom().unwrap().parameters["jobs"], "10000");
    assert_eq!(
        found.0["insert"].custom().unwrap().scripts[0].name,
        "write.sql",
        "the campaign's own takes precedence"
    );
    assert!(found.0["queue"].custom().unwrap().description.is_some());
}

#[test]
fn the_former_name_of_background_is_read_and_noted() {
    let text = |key: &str| {
        format!(
            "name = 'x'\n[factors]\nserver = ['18']\nworkload = ['mixed']\nclients = [1]\n[run]\nduration = '1s'\n\
             [workloads.mixed]\nbuiltin = 'select-only'\n{key} = [{{ workload = 'queue' }}]\n"
        )
    };
    let read = |key: &str| {
        let campaign = Campaign::parse(&text(key)).unwrap();
        workload::workloads(
            &campaign,
            std::path::Path::new("/"),
            &model::workload::Workloads::default(),
            &NoProgress,
        )
        .unwrap()
    };
    assert_eq!(read("beside"), read("background"));
    assert_eq!(
        model::spec::deprecated_keys(&text("beside")),
        ["workloads.mixed.beside is deprecated: use background"]
    );
    assert!(model::spec::deprecated_keys(&text("background")).is_empty());
}
