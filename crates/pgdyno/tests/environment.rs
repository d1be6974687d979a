//! A bundle contains the environment of its trial and no secrets; `pgdyno doctor` checks the machine itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::path::Path;

use support::{Bench, bundle, text};

/// Every file below a directory, uncompressed.
fn contents(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, found);
        } else {
            let content = fs::read(&path).unwrap();
            let name = path.display().to_string();
            let plain =
                if name.ends_with(".zst") { zstd::decode_all(content.as_slice()).unwrap() } else { content };
            found.push((name, plain));
        }
    }
}

#[test]
fn a_bundle_has_its_environment_and_no_secret() {
    const SECRET: &str = "hunter2-planted";
    let bench = Bench::new(
        "name = 'environment'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
         [run]\nduration = '100ms'\nrepeats = 1\n",
    );
    let mut command = bench.command(&["run", "campaign.toml"]);
    for name in ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "AWS_SECRET_ACCESS_KEY", "HARMLESS"] {
        command.env(name, SECRET);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let id = bench.trials()[0].id.clone();
    let record = bench.store().load(&id).unwrap();

    // The same bundle from a machine and a server that contain secrets.
    let machine = tempfile::tempdir().unwrap();
    for (file, planted) in [
        ("proc/cmdline", format!("quiet auth.token={SECRET} -- --password {SECRET}\n")),
        ("proc/self/mountinfo", format!("1 0 0:9 / / rw - cifs //nas/x rw,password={SECRET}\n")),
        ("proc/sys/net/ipv4/tcp_fastopen_key", SECRET.to_owned()),
        ("proc/config.gz", String::new()),
        ("boot/config-1", format!("CONFIG_CMDLINE=\"luks.password={SECRET}\"\n")),
        ("proc/sys/kernel/osrelease", "1\n".to_owned()),
        ("dev/kmsg", format!("6,1,1,-;Kernel command line: auth.token={SECRET}\n")),
    ] {
        let path = machine.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, planted).unwrap();
    }
    fs::remove_file(machine.path().join("proc/config.gz")).unwrap();
    let host = collect::Host::read_from(machine.path());
    let cache = host::Cache::open().unwrap();
    let installation = server::install_newest(&cache, "18", &host::NoProgress).unwrap();
    let settings = [
        ("primary_conninfo", format!("host=h password={SECRET}")),
        ("restore_command", format!("fetch {SECRET}")),
        ("ssl_passphrase_command", format!("echo {SECRET}")),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
    let server = server::Cluster::empty(&cache, &installation, &[]).unwrap().start(&settings).unwrap();
    let mut planted = record.clone();
    planted.trial.id = store::new_id();
    planted.environment = host.environment(Some(Path::new("/")));
    planted.environment.server = server.facts();
    planted.settings = server.settings().unwrap();
    planted.logs = host.logs();
    assert_eq!(planted.logs.len(), 2);
    bench.store().write(&planted).unwrap();

    for id in [&record.trial.id, &planted.trial.id] {
        let mut found = Vec::new();
        contents(&bundle(&bench, id), &mut found);
        assert!(found.len() > 8, "{found:?}");
        for (file, content) in found {
            let leaks = content.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            assert!(!leaks, "{file}");
        }
    }

    let facts = &record.environment.server;
    assert_eq!(facts.authentication.as_deref(), Some(&["peer".to_owned()][..]));
    assert_eq!(facts.relations.as_ref().unwrap()[0].name, "pgbench_accounts");
    assert!(facts.pg_config.as_ref().unwrap().contains_key("CONFIGURE"));
    assert!(record.environment.mounts.len() > 1 && record.environment.sysctl.len() > 50);
    let shown = bench.pgdyno(&["store", "show", &record.trial.id]);
    assert!(text(&shown).contains("% of shared_buffers"), "{}", text(&shown));
}

#[test]
fn the_doctor_checks_this_machine_in_every_format() {
    let bench = Bench::new("");
    let json = bench.pgdyno(&["doctor", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["schema"], 1);
    let checks = document["checks"].as_array().unwrap();
    let bad = checks.iter().any(|check| check["state"] == "bad");
    assert_eq!(json.status.code(), Some(if bad { 4 } else { 0 }), "{}", text(&json));
    for check in checks {
        let needs_advice = matches!(check["state"].as_str().unwrap(), "warn" | "bad");
        assert_eq!(check["advice"].is_string(), needs_advice, "{check}");
    }
    let state = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap()["state"].clone();
    for name in ["processors", "memory", "space", "sync-latency", "clock", "open-files", "foreign-load"] {
        assert_ne!(state(name), "unknown", "{name}");
    }

    let csv = bench.pgdyno(&["doctor", "--format", "csv"]);
    assert_eq!(String::from_utf8_lossy(&csv.stdout).lines().count(), 1 + checks.len());
    let table = bench.pgdyno(&["doctor"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(!table.contains('\x1b') && table.contains("\nProcessor\n"), "{table}");
}
