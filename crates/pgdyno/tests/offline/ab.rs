//! The campaigns that `pgdyno ab` writes, and what it refuses.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A directory with servers and scripts of every kind.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for file in [
            "base/bin/postgres",
            "other/base/postgres",
            "tree/src/backend/Makefile",
            "tree/configure",
            "meson/src/backend/meson.build",
            "meson/meson.build",
            "postgresql-17.4.tar.bz2",
            "empty/README",
            "fix.patch",
            "more.patch",
        ] {
            place.write(file, "");
        }
        place.write("read.sql", "select 1;\n");
        place.write("sub/write.sql", "update t set x = :n;\n");
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The exit code, and what is printed, with `$DIR` for this directory.
    fn ab(&self, arguments: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command
            .arg("ab")
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            .env_remove("PGDYNO_STORE");
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let directory = self.path().canonicalize().unwrap();
        let text = String::from_utf8(text).unwrap().replace(directory.to_str().unwrap(), "$DIR");
        (output.status.code().unwrap(), text)
    }

    /// The campaign, as a table, of a comparison.
    fn campaign(&self, arguments: &str) -> toml::Table {
        let (code, text) = self.ab(&format!("{arguments} --print-campaign"));
        assert_eq!(code, 0, "{text}");
        text.parse().unwrap()
    }

    fn refusal(&self, arguments: &str) -> String {
        let (code, text) = self.ab(arguments);
        assert_eq!(code, 2, "{text}");
        text
    }
}

/// A value by its dotted name, as TOML; empty if there is none.
fn at(campaign: &toml::Table, name: &str) -> String {
    let mut value = Some(&toml::Value::Table(campaign.clone())).cloned();
    for key in name.split('/') {
        value = value.and_then(|value| value.get(key).cloned());
    }
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[test]
fn two_versions_are_a_campaign_of_pairs() {
    let (code, text) = Place::new().ab("17 18.1 -S -c 2 --pin none --print-campaign");
    let expected = "name = \"ab\"\ndescription = \"pgdyno ab 17 18.1 -S -c 2 --pin none\"\n\n\
                    [factors]\nserver = [\"17\", \"18.1\"]\nworkload = [\"select-only\"]\nscale = [10]\nclients = [2]\n\
                    protocol = [\"prepared\"]\n\n\
                    [run]\ncompare = \"server\"\norder = \"paired\"\nmax_time = \"10min\"\n";
    assert_eq!((code, text.as_str()), (0, expected));
}

#[test]
fn servers_are_versions_programs_sources_tarballs_and_refs() {
    let place = Place::new();
    let campaign = place.campaign("./base other/base tree meson postgresql-17.4.tar.bz2 18");
    assert_eq!(
        at(&campaign, "factors/server"),
        r#"["base", "base-2", "tree", "meson", "postgresql-17.4", "18"]"#
    );
    for (name, expected) in [
        ("base/bin", "\"$DIR/base\""),
        ("base-2/bin", "\"$DIR/other/base\""),
        ("tree/source", "\"$DIR/tree\""),
        ("tree/build", ""),
        ("meson/build/system", "\"meson\""),
        ("postgresql-17.4/source", "\"$DIR/postgresql-17.4.tar.bz2\""),
        ("18", ""),
    ] {
        assert_eq!(at(&campaign, &format!("servers/{name}")), expected, "{name}");
    }

    let campaign = place.campaign("master feature/x HEAD~1 ./base 18 --repo tree");
    assert_eq!(at(&campaign, "factors/server"), r#"["master", "feature-x", "HEAD-1", "base", "18"]"#);
    assert_eq!(at(&campaign, "servers/feature-x/source"), "\"$DIR/tree\"");
    assert_eq!(at(&campaign, "servers/feature-x/ref"), "\"feature/x\"");
}

#[test]
fn a_patch_makes_the_second_side() {
    let place = Place::new();
    let campaign = place.campaign("./tree --patch fix.patch --patch more.patch");
    assert_eq!(at(&campaign, "factors/server"), r#"["tree", "tree+fix"]"#);
    assert_eq!(at(&campaign, "servers/tree/patch"), "");
    assert_eq!(at(&campaign, "servers/tree+fix/patch"), r#"["$DIR/fix.patch", "$DIR/more.patch"]"#);
    let campaign = place.campaign("master --repo tree --patch fix.patch");
    assert_eq!(at(&campaign, "servers/master+fix/ref"), "\"master\"");
}

#[test]
fn settings_are_compared_on_one_server() {
    let place = Place::new();
    for servers in ["18", "18 18"] {
        let arguments =
            format!("{servers} --a-set work_mem=4MB --b-set work_mem=64MB --b-set a.b=1 --set jit=off");
        let campaign = place.campaign(&arguments);
        assert_eq!(at(&campaign, "factors/server"), r#"["18"]"#);
        assert_eq!(at(&campaign, "factors/settings"), r#"["a", "b"]"#);
        assert_eq!(at(&campaign, "run/compare"), "\"settings\"");
        assert_eq!(at(&campaign, "settings/a"), "{ jit = \"off\", work_mem = \"4MB\" }");
        assert_eq!(at(&campaign, "settings/b"), "{ \"a.b\" = \"1\", jit = \"off\", work_mem = \"64MB\" }");
    }
    let campaign = place.campaign("17 18 --set jit=off");
    assert_eq!(at(&campaign, "factors/settings"), r#"["common"]"#);
    assert_eq!(at(&campaign, "settings/common/jit"), "\"off\"");
    let itself = place.campaign("18 18");
    assert_eq!(at(&itself, "factors/server"), r#"["18", "18-2"]"#);
    assert_eq!(at(&itself, "servers/18-2/version"), "\"18\"");
}

#[test]
fn workloads_are_those_of_pgbench_and_bench() {
    let place = Place::new();
    let workload = |arguments: &str| {
        let campaign = place.campaign(&format!("17 18 {arguments}"));
        let level = at(&campaign, "factors/workload");
        let name = level.trim_matches(['[', ']', '"']).to_owned();
        let [scripts, writes, n] = ["scripts", "writes", "parameters/n"]
            .map(|key| at(&campaign, &format!("workloads/{name}/{key}")));
        (name, scripts, writes, n)
    };
    let texts = |name: &str, scripts: &str, writes: &str, n: &str| {
        (name.to_owned(), scripts.to_owned(), writes.to_owned(), n.to_owned())
    };
    assert_eq!(workload(""), texts("tpcb-like", "", "", ""));
    assert_eq!(workload("-N"), texts("simple-update", "", "", ""));
    assert_eq!(workload("-b sel"), texts("select-only", "", "", ""));
    assert_eq!(workload("-b queue"), texts("queue", "", "", ""));
    assert_eq!(
        workload("read.sql@3 -f sub/write.sql -D n=5"),
        texts("read+write", r#"["read.sql@3", "sub/write.sql@1"]"#, "", "\"5\"")
    );
    assert_eq!(workload("read.sql --read-only"), texts("read", r#"["read.sql@1"]"#, "false", ""));
    assert_eq!(
        workload("-S -b tpcb@2"),
        texts("select-only+tpcb-like", r#"["select-only@1", "tpcb-like@2"]"#, "", "")
    );
    assert_eq!(workload("-S -D n=5"), texts("my-select-only", r#"["select-only@1"]"#, "false", "\"5\""));
    assert_eq!(workload("-D n=5"), texts("my-tpcb-like", r#"["tpcb-like@1"]"#, "", "\"5\""));
}

#[test]
fn options_are_keys_of_the_campaign() {
    let campaign = Place::new().campaign(
        "17 18 -s 50 -c 8 -j 2 -M simple -R 400/s --margin 7% --max-time 1h --profile --name mine --tag one --tag two \
         --notes why --seed 7",
    );
    for (name, expected) in [
        ("factors/scale", "[50]"),
        ("factors/clients", "[8]"),
        ("factors/protocol", "[\"simple\"]"),
        ("factors/rate", "[400]"),
        ("run/threads", "2"),
        ("run/effect", "\"7%\""),
        ("run/max_time", "\"1h\""),
        ("run/seed", "7"),
        ("profile", "{}"),
        ("name", "\"mine\""),
        ("tags", "[\"one\", \"two\"]"),
        ("notes", "\"why\""),
    ] {
        assert_eq!(at(&campaign, name), expected, "{name}");
    }
    let margin = |options: &str| at(&Place::new().campaign(&format!("17 18 {options}")), "run/effect");
    assert_eq!(margin("--fail latency.p99>1%"), "");
    assert_eq!(margin("--fail tps<-3%"), "\"3%\"", "within the default");
    assert_eq!(margin("--fail tps<-3% --margin 2%"), "\"2%\"");
    assert_eq!(margin("--fail tps<-10%"), "");
    assert_eq!(margin("--fail latency.mean>1% -R 10"), "\"1%\"");
    assert_eq!(margin("--fail cpu_per_transaction>2%"), "\"2%\"");
    let cpu_decides =
        |options: &str| at(&Place::new().campaign(&format!("17 18 {options}")), "run/cpu_decides");
    assert_eq!(cpu_decides("--fail tps<-3% --fail cpu_per_transaction>2%"), "true");
    assert_eq!((cpu_decides("--fail tps<-3%"), cpu_decides("")), (String::new(), String::new()));
    let counted = Place::new().campaign("17 18 -S --count --kernel 6.12");
    assert_eq!(at(&counted, "factors/acceleration"), "[\"icount\"]");
    assert_eq!(at(&counted, "factors/kernel"), "[\"6.12\"]");
    assert_eq!((at(&counted, "run/order"), at(&counted, "run/max_time")), (String::new(), String::new()));
    let kernels = Place::new().campaign("18 -S --a-kernel 6.1 --b-kernel 6.12 --set jit=off");
    assert_eq!(at(&kernels, "factors/kernel"), "[\"6.1\", \"6.12\"]");
    assert_eq!([at(&kernels, "run/compare"), at(&kernels, "settings/common/jit")], ["\"kernel\"", "\"off\""]);
}

#[test]
fn driver_and_servers_have_cpus_of_their_own() {
    let place = Place::new();
    let campaign = place.campaign("17 18");
    assert_eq!(at(&campaign, "factors/pin"), r#"["separate"]"#);
    let [driver, server] = ["driver", "server"].map(|of| at(&campaign, &format!("pins/separate/{of}")));
    let is_single = std::thread::available_parallelism().unwrap().get() == 1;
    assert!(!driver.is_empty() && !server.is_empty() && (driver != server || is_single), "{driver} {server}");
    for unpinned in ["17 18 --pin none", "17 18 --count --kernel 6.12"] {
        let campaign = place.campaign(unpinned);
        assert_eq!((at(&campaign, "factors/pin"), at(&campaign, "pins")), (String::new(), String::new()));
    }
    let campaign = place.campaign("17 18 --driver-cpus 0-1 --server-cpus 2-7");
    assert_eq!(at(&campaign, "factors/pin"), r#"["pinned"]"#);
    assert_eq!(at(&campaign, "pins/pinned"), "{ driver = \"0-1\", server = \"2-7\" }");
    let campaign = place.campaign("17 18 --server-cpus 2");
    assert_eq!(at(&campaign, "pins/pinned"), "{ server = \"2\" }");
}

#[test]
fn wrong_arguments_are_refused_before_anything_starts() {
    let place = Place::new();
    for (arguments, why) in [
        ("18", "nothing to compare 18 with: name another SERVER, or use --b-set NAME=VALUE or --patch FILE"),
        ("read.sql", "no SERVER is named"),
        ("17 18 --b-set jit=off", "would differ in server and in settings"),
        ("18 18 18 --b-set jit=off", "would differ in server and in settings"),
        ("./tree --patch fix.patch --b-set jit=off", "would differ in server and in settings"),
        ("17 18 --b-set jit", "expected NAME=VALUE, such as work_mem=64MB"),
        ("17 master", "\"master\" is no server: expected a version"),
        ("17 master", "name its repository: --repo DIR"),
        ("17 ./empty", "has neither the programs of a server (bin/postgres) nor its source (src/backend)"),
        ("17 ./missing --repo tree", "\"./missing\" is no server"),
        ("17 master --repo missing", "missing: No such file or directory"),
        ("18 --patch fix.patch", "--patch compares one source with the same source patched"),
        ("./tree ./meson --patch fix.patch", "--patch compares one source"),
        ("./tree --patch missing.patch", "missing.patch: No such file or directory"),
        ("17 18 missing.sql", "missing.sql can't be read"),
        ("17 18 -b nothing", "no builtin script found for name \"nothing\""),
        ("17 18 --margin 5", "expected a percentage"),
        ("17 18 --max-time 10", "is not a duration"),
        ("17 18 --count -R 5", "without --rate, --max-time, --driver-cpus and --server-cpus"),
        ("17 18 --count --max-time 5min", "without --rate, --max-time, --driver-cpus and --server-cpus"),
        ("17 18 --count --server-cpus 1", "without --rate, --max-time, --driver-cpus and --server-cpus"),
        ("17 18 --server-cpus 1 --pin none", "cannot be used with"),
        ("17 18 --driver-cpus one", "\"one\" is not a list of processors"),
        ("18 --a-kernel 6.1", "--b-kernel"),
        (
            "18 --a-kernel 6.1 --b-kernel 6.12 --max-time 5min",
            "without --rate, --max-time, --driver-cpus and --server-cpus",
        ),
        ("18 --a-kernel 6.1 --b-kernel 6.12 --kernel 6.1", "cannot be used with"),
        ("17 18 --a-kernel 6.1 --b-kernel 6.12", "under one SERVER"),
        ("18 --a-kernel 6.1 --b-kernel 6.12 --b-set jit=off", "under one SERVER"),
        ("17 18 --fail tps", "tps"),
        ("17 18 -c 100", "100 clients of the workload \"tpcb-like\" can't connect"),
        ("17 18 17.1 --max-time 10min --name a/b", "not a valid campaign name"),
    ] {
        let text = place.refusal(arguments);
        assert!(text.contains(why), "{arguments}: {text}");
    }
}
