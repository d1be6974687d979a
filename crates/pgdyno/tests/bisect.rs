//! `pgdyno bisect` on real servers: what it finds, that it goes on after SIGKILL, and its errors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use skip::skip;
use support::{Bench, signal, text, wait_until, wait_until_gone};

/// Options of short sessions of reads, while other tests run.
const READS: [&str; 8] = ["-S", "-s", "1", "-c", "1", "--allow-concurrent", "--pin", "none"];

/// A configuration whose setting `enable_indexscan` makes lookups read the whole table.
const BAD: &str = "\
# Six settings differ.
checkpoint_timeout = 10min
enable_bitmapscan = off      # none of these two alone
enable_indexonlyscan = 'off'
enable_indexscan off
random_page_cost = 2
work_mem = '8MB'
";

fn bisect(bench: &Bench, arguments: &[&str]) -> (i32, String) {
    run(bench, &[&["bisect"], arguments, &READS[..]].concat())
}

/// Bisects by the campaign of these arguments, to which a line is added after this one.
fn bisect_with(bench: &Bench, arguments: &[&str], after: &str, line: &str) -> (i32, String) {
    let printed = bench.pgdyno(&[&["bisect"], arguments, &["--print-campaign"], &READS[..]].concat());
    let campaign = String::from_utf8(printed.stdout).unwrap();
    assert!(campaign.contains(after), "{campaign}");
    fs::write(bench.path().join("campaign.toml"), campaign.replace(after, &format!("{after}{line}")))
        .unwrap();
    run(bench, &["run", "campaign.toml", "--allow-concurrent"])
}

fn run(bench: &Bench, arguments: &[&str]) -> (i32, String) {
    let output = bench.pgdyno(arguments);
    let shown = text(&output);
    let result = String::from_utf8(output.stdout).unwrap();
    assert!(result.lines().all(|line| line.chars().count() <= 78), "{result}");
    (output.status.code().unwrap(), shown)
}

/// The text without its line breaks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_setting_that_costs_time_is_found_also_after_kills() {
    let bench = Bench::new("");
    fs::write(bench.path().join("bad.conf"), BAD).unwrap();
    let arguments =
        [&["bisect", "18", "--bad-conf", "bad.conf", "--metric", "throughput", "--seed", "7"], &READS[..]]
            .concat();
    // Killed in the middle of the sessions, three times.
    let bundles = || fs::read_dir(bench.path().join(".pgdyno/trials")).map_or(0, Iterator::count);
    let mut running = bench.start_with(&arguments);
    for _ in 0..3 {
        let before = bundles();
        wait_until("sessions are stored", || bundles() >= before + 4);
        let processes = running.process_tree();
        signal(running.pid(), libc::SIGKILL);
        wait_until_gone(&processes);
        running = bench.start_with(&["resume", "--allow-concurrent"]);
    }
    let (code, shown) = running.end();
    assert_eq!(code, Some(0), "{shown}");
    let kept = bench.trials().len();
    let output = bench.pgdyno(&["resume"]);
    let shown = text(&output);
    assert!(output.status.success(), "{shown}");
    assert!(joined(&shown).contains("The change is at enable_indexscan (probability"), "{shown}");
    assert!(shown.contains("6 settings of 18, from good to work_mem"), "{shown}");
    assert_eq!(bench.trials().len(), kept, "nothing is left to resume");
    let document: Value =
        serde_json::from_slice(&bench.pgdyno(&["resume", "--format", "json"]).stdout).unwrap();
    assert_eq!(document["state"], "found");
    assert_eq!(document["found"][0]["levels"], serde_json::json!(["enable_indexscan"]));
    assert!(document["found"][0]["probability"].as_f64().unwrap() >= 0.95);
    assert!(document["found"][0]["ratio"].as_f64().unwrap() < 0.8);
    let levels = document["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 7);
    let sessions: u64 = levels.iter().map(|level| level["sessions"].as_u64().unwrap()).sum();
    assert_eq!(document["sessions"].as_u64(), Some(sessions));
    let view: Value = serde_json::from_slice(&bench.pgdyno(&["report", "--format", "json"]).stdout).unwrap();
    assert_eq!(view["bisections"][0]["sentence"], document["sentence"]);
    assert_eq!(view["answers"][0]["sentence"], document["sentence"]);
    for command in [["report"], ["show"], ["explain"]] {
        let output = bench.pgdyno(&command);
        assert!(output.status.success(), "{command:?}: {}", text(&output));
    }
}

#[test]
fn equivalent_ends_leave_nothing_to_find() {
    let bench = Bench::new("");
    let settings = ["18", "--good-set", "work_mem=4MB", "--bad-set", "work_mem=5MB"];
    let (code, shown) =
        bisect(&bench, &[&settings[..], &["--margin", "60%", "--metric", "throughput"]].concat());
    assert_eq!(code, 0, "{shown}");
    assert!(
        joined(&shown).contains("Nothing to find: work_mem is equivalent to good, throughput "),
        "{shown}"
    );
}

#[test]
fn too_short_a_time_is_not_decided() {
    let bench = Bench::new("");
    let settings = ["18", "--bad-set", "work_mem=5MB", "--bad-set", "random_page_cost=2"];
    let (code, shown) = bisect(&bench, &[&settings[..], &["--max-time", "1s", "--margin", "1%"]].concat());
    assert_eq!(code, 6, "{shown}");
    assert!(shown.contains("Not decided: work_mem against good"), "{shown}");
    assert_eq!(bench.pgdyno(&["resume"]).status.code(), Some(6));
}

#[test]
fn wrong_ends_are_refused_before_anything_starts() {
    let bench = Bench::new("");
    let repository = bench.path().join("repository");
    fs::create_dir(&repository).unwrap();
    let git = |arguments: &[&str]| git(&repository, arguments);
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    git(&["commit", "-q", "--allow-empty", "-m", "third"]);
    git(&["tag", "third"]);
    git(&["checkout", "-q", "-"]);
    fs::write(bench.path().join("wrong.conf"), "work_mem\n").unwrap();
    fs::write(bench.path().join("included.conf"), "include 'x.conf'\n").unwrap();
    let of_repository = |ends: [&'static str; 2]| vec![ends[0], ends[1], "--repo", "repository"];
    for (arguments, message) in [
        (of_repository(["HEAD~1", "nowhere"]), "there is no commit \"nowhere\""),
        (of_repository(["HEAD", "HEAD~1"]), "HEAD~1 is older than HEAD: the older end comes first"),
        (of_repository(["HEAD", "HEAD"]), "are the same commit"),
        (of_repository(["HEAD~1", "HEAD"]), "no commit from HEAD~1 to HEAD can have changed a server"),
        (of_repository(["HEAD", "third"]), "HEAD is not an ancestor of third; both come from "),
        (vec!["16.4", "16.1"], "16.4 is not older than 16.1"),
        (vec!["16", "patched"], "\"patched\" is no release"),
        (vec!["18"], "expected two ends"),
        (vec!["18", "--good-set", "work_mem=4MB", "--bad-set", "work_mem=4MB"], "are the same"),
        (vec!["17", "18", "--bad-set", "work_mem=4MB"], "differ in server and in settings"),
        (vec!["18", "--bad-conf", "wrong.conf"], "wrong.conf:1: expected NAME = VALUE"),
        (vec!["18", "--bad-conf", "included.conf"], "included.conf:1: files that are included are not read"),
        (vec!["18", "--bad-conf", "missing.conf"], "missing.conf can't be read"),
    ] {
        let (code, shown) = bisect(&bench, &arguments);
        assert_eq!(code, 2, "{arguments:?}: {shown}");
        assert!(joined(&shown).contains(message), "{arguments:?}: {shown}");
    }
    assert!(!bench.path().join(".pgdyno").exists());
}

fn git(repository: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"];
    let status = Command::new("git").current_dir(repository).args(identity).args(arguments).status().unwrap();
    assert!(status.success(), "{arguments:?}");
}

/// A repository whose commits have their number, from 0, in the file `n`.
fn numbered(bench: &Bench, count: usize) -> Vec<String> {
    let repository = bench.path().join("numbered");
    fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "-q"]);
    let commits = (0..count).map(|number| {
        fs::write(repository.join("n"), number.to_string()).unwrap();
        git(&repository, &["add", "n"]);
        git(&repository, &["commit", "-q", "-m", &format!("Commit {number}")]);
        let head = Command::new("git").current_dir(&repository).args(["rev-parse", "HEAD"]).output().unwrap();
        String::from_utf8(head.stdout).unwrap()[..12].to_owned()
    });
    commits.collect()
}

/// Arguments of a search by a test, from the first of so many commits to the last one.
fn by_test<'a>(range: &'a str, test: &'a str) -> Vec<&'a str> {
    vec!["bisect", range, "--repo", "numbered", "--run", test]
}

#[test]
fn a_test_of_the_users_own_finds_the_commit_and_the_same_command_goes_on() {
    let bench = Bench::new("");
    let commits = numbered(&bench, 40);
    let refs = || fs::read_dir(bench.path().join("numbered/.git")).unwrap().count();
    let before = refs();
    // The 20th can't be tested; each 9th answer is wrong.
    let ran = bench.path().join("ran");
    let test = format!(
        "n=$(cat n); test $n = 20 && exit 125; echo $n >>{ran}; test $n -ge 23; bad=$?\n\
         test $(($(wc -l <{ran}) % 9)) = 0 && bad=$((1 - bad)); exit $((1 - bad))",
        ran = ran.display()
    );
    let arguments = by_test("HEAD~39..HEAD", &test);
    let count = || fs::read_to_string(&ran).unwrap_or_default().lines().count();
    // Killed after some tests, three times.
    let slow = test.replacen("n=$(cat n)", "sleep 0.1; n=$(cat n)", 1);
    let slow = by_test("HEAD~39..HEAD", &slow);
    for _ in 0..3 {
        let (running, before) = (bench.start_with(&slow), count());
        wait_until("tests have run", || count() >= before + 2);
        let processes = running.process_tree();
        signal(running.pid(), libc::SIGKILL);
        wait_until_gone(&processes);
    }
    let killed = count();
    let output = bench.pgdyno(&slow);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let journal = |test: &str| {
        let found = fs::read_dir(bench.path().join(".pgdyno/bisections")).unwrap();
        let journals =
            found.map(|entry| fs::read_to_string(entry.unwrap().path().join("tests.jsonl")).unwrap());
        journals.into_iter().find(|text| text.contains(test)).unwrap().lines().count() - 1
    };
    let stored = journal("sleep 0.1");
    assert!(stored > killed / 2, "what ran before is kept: {stored} of {}", count());
    fs::remove_file(&ran).unwrap();
    for _ in 0..2 {
        let output = bench.pgdyno(&arguments);
        let shown = text(&output);
        assert_eq!(output.status.code(), Some(0), "{shown}");
        let result = joined(&shown);
        assert!(
            result.contains(&format!("The change is at {}, \"Commit 23\" (prob", commits[23])),
            "{shown}"
        );
        assert!(result.contains("the test fails in ") && result.contains("Tested: "), "{shown}");
    }
    // The second one had nothing left to test.
    let tested = count();
    let document: Value =
        serde_json::from_slice(&bench.pgdyno(&[&arguments[..], &["--format", "json"]].concat()).stdout)
            .unwrap();
    assert_eq!(count(), tested);
    assert_eq!(document["found"], serde_json::json!([commits[23]]));
    let runs = |commit: &Value| commit["passed"].as_u64().unwrap() + commit["failed"].as_u64().unwrap();
    let listed = document["commits"].as_array().unwrap();
    assert_eq!(listed.iter().map(runs).sum::<u64>(), tested as u64);
    assert_eq!((listed.len(), refs()), (40, before), "nothing in the repository is changed");
    assert!(bench.pgdyno(&["store", "check"]).status.code() != Some(101));
}

#[test]
fn tests_that_do_not_tell_commits_apart_end_with_a_sentence() {
    let bench = Bench::new("");
    let commits = numbered(&bench, 6);
    let run = |arguments: &[&str]| {
        let output = bench.pgdyno(arguments);
        (output.status.code().unwrap(), joined(&text(&output)))
    };
    let range = "HEAD~5..HEAD";
    let (code, shown) = run(&by_test(range, "true"));
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Nothing to find: the test fails as often at both ends"), "{shown}");
    // A commit that mends it, next to two that can't be tested.
    let mended = "n=$(cat n); test $n = 2 -o $n = 3 && exit 125; test $n -ge 3";
    let (code, shown) = run(&by_test(range, mended));
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains(&format!(
            "one of {}, {}, {}, which can't be told apart",
            commits[2], commits[3], commits[4]
        )),
        "{shown}"
    );
    let (code, shown) = run(&[&by_test(range, "test $(cat n) -lt 2")[..], &["--max-time", "1ms"]].concat());
    assert_eq!(code, 6, "{shown}");
    assert!(shown.contains("Not decided whether the test fails more often"), "{shown}");
    for (arguments, code, message) in [
        (by_test(range, "echo it broke; exit 200"), 1, "ended with the exit code 200 at"),
        (by_test(range, "kill -9 $$"), 1, "was ended by signal 9 at"),
        (by_test(range, "exit 125"), 1, "can't be tested (exit code 125): choose another end"),
        (by_test("HEAD", "true"), 2, "expected two ends"),
        (by_test("nowhere..HEAD", "true"), 2, "there is no commit \"nowhere\""),
        ([&by_test(range, "true")[..], &["--margin", "5%"]].concat(), 2, "cannot be used with"),
    ] {
        let (ended, shown) = run(&arguments);
        assert_eq!(ended, code, "{arguments:?}: {shown}");
        assert!(shown.contains(message), "{arguments:?}: {shown}");
    }
}

/// Creates a branch with these commits, each by a function, and merges it.
fn merge_of(repository: &Path, commits: &[&dyn Fn()]) {
    git(repository, &["checkout", "-q", "-b", "topic"]);
    for (number, commit) in commits.iter().enumerate() {
        commit();
        git(repository, &["add", "-A"]);
        git(repository, &["commit", "-q", "-m", &format!("Topic {number}")]);
    }
    git(repository, &["checkout", "-q", "-"]);
    git(repository, &["merge", "-q", "--no-ff", "-m", "Merge the topic", "topic"]);
}

fn id(repository: &Path, name: &str) -> String {
    let output = Command::new("git").current_dir(repository).args(["rev-parse", name]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..12].to_owned()
}

#[test]
fn from_a_merge_a_test_goes_on_to_its_commits() {
    let bench = Bench::new("");
    numbered(&bench, 5);
    let repository = bench.path().join("numbered");
    let write = |file: &str, text: &str| fs::write(repository.join(file), text).unwrap();
    let [one, two, three] = ["1", "2", "3"].map(|text| move || write("topic", text));
    merge_of(&repository, &[&one, &two, &three]);
    write("n", "5");
    git(&repository, &["commit", "-qam", "After it"]);
    let (merge, culprit) = (id(&repository, "HEAD~1"), id(&repository, "topic~1"));
    let arguments = by_test("HEAD~5..HEAD", "test $(cat topic || echo 0) -lt 2");
    let output = bench.pgdyno(&arguments);
    let shown = joined(&text(&output));
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains(&format!("The change is at {merge}, \"Merge the topic\"")), "{shown}");
    assert!(shown.contains(&format!("{merge} is a merge of 3 commits")), "{shown}");
    assert!(shown.contains(&format!("The change is at {culprit}, \"Topic 1\"")), "{shown}");
    let json = bench.pgdyno(&[&arguments[..], &["--format", "json"]].concat());
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["found"], serde_json::json!([merge]));
    assert_eq!(document["merge"]["found"], serde_json::json!([culprit]));
    assert_eq!(document["merge"]["merge"], Value::Null);

    // A merge that fails, of two sides that do not.
    git(&repository, &["checkout", "-q", "-b", "other"]);
    write("other", "");
    git(&repository, &["add", "other"]);
    git(&repository, &["commit", "-q", "-m", "Another topic"]);
    git(&repository, &["checkout", "-q", "-"]);
    write("n", "6");
    git(&repository, &["commit", "-qam", "Next to it"]);
    git(&repository, &["merge", "-q", "--no-ff", "-m", "Merge another topic", "other"]);
    let shown = bench.pgdyno(&by_test("HEAD~2..HEAD", "test ! -e other || test $(cat n) -lt 6"));
    let shown = joined(&text(&shown));
    assert!(
        shown.contains(&format!("The change is at {}, \"Merge another", id(&repository, "HEAD"))),
        "{shown}"
    );
    let itself = shown.find("The change is one of the merge itself").unwrap();
    assert!(shown.find("Nothing to find: the test fails as often").unwrap() < itself, "{shown}");
}

/// A repository that is built like PostgreSQL's, in no time: into an embedded server, which looks nothing up by an index if
/// `src/backend/main.c` says so.
fn quick_source(bench: &Bench) -> std::path::PathBuf {
    let server = server::install(&host::Cache::open().unwrap(), "18", &host::NoProgress).unwrap();
    let repository = bench.path().join("postgres");
    let write = |file: &str, text: &str| {
        let path = repository.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "configure",
        &format!(
            "#!/bin/sh\nPACKAGE_VERSION='{}'\nset -e\n. \"$CONFIG_SITE\"\ntouch \"$cache_file\"\n\
             mkdir -p src/backend src/interfaces/libpq src/bin/initdb\n\
             for one in src/interfaces/libpq src/bin/initdb; do echo 'all install:' > $one/Makefile; done\n\
             echo \"here = $(dirname \"$0\")/src/backend\" | cat - \"$(dirname \"$0\")/src/backend/Makefile.in\" > src/backend/Makefile\n",
            server.version()
        ),
    );
    fs::set_permissions(repository.join("configure"), fs::Permissions::from_mode(0o755)).unwrap();
    write(
        "src/backend/Makefile.in",
        &format!(
            "to = $(DESTDIR)/usr/local/pgsql\nall:\ninstall:\n\tmkdir -p $(to)/bin $(to)/share\n\
             \tln -s {server}/bin/* $(to)/bin\n\tcp $(here)/main.c $(to)/share\n\
             \tif grep -q slow $(here)/main.c; then rm $(to)/bin/postgres; cp $(here)/slow.sh $(to)/bin/postgres; fi\n",
            server = server.directory().display(),
        ),
    );
    write(
        "src/backend/slow.sh",
        &format!(
            "#!/bin/sh\ncase \"$1\" in --*|-V|-C) exec {server} \"$@\";; esac\n\
             exec {server} \"$@\" -c enable_indexscan=off -c enable_bitmapscan=off -c enable_indexonlyscan=off\n",
            server = server.directory().join("bin/postgres").display(),
        ),
    );
    fs::set_permissions(repository.join("src/backend/slow.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    write("src/backend/main.c", "first\n");
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-qm", "Base"]);
    repository
}

#[test]
fn from_a_merge_the_search_goes_on_to_its_commits() {
    let bench = Bench::new("");
    let repository = quick_source(&bench);
    let source = |text: &str| fs::write(repository.join("src/backend/main.c"), text).unwrap();
    let changes = ["first, topic\n", "first, slow\n", "first, slow, topic\n"];
    let [one, two, three] = changes.map(|text| move || source(text));
    source("first\n\n");
    git(&repository, &["commit", "-qam", "Before it"]);
    merge_of(&repository, &[&one, &two, &three]);
    source("first, slow, topic, more\n");
    git(&repository, &["commit", "-qam", "After it"]);
    let (merge, culprit) = (id(&repository, "HEAD~1"), id(&repository, "topic~1"));
    let ends = ["HEAD~3", "HEAD", "--repo", "postgres", "--metric", "throughput", "--build-while-measuring"];
    let (code, shown) = bisect_with(&bench, &ends, "order = \"bisect\"\n", "link_order = false\n");
    assert_eq!(code, 0, "{shown}");
    let result = joined(&shown);
    let built = format!("building postgres@{merge} while sessions of others run");
    assert!(result.contains(&built), "{shown}");
    let of_merge = result.find(&format!("The change is at {merge}, \"Merge the topic\"")).unwrap();
    let search = result.find(&format!("{merge} is a merge of 3 commits")).unwrap();
    let answer = result.find(&format!("The change is at {culprit}, \"Topic 1\"")).unwrap();
    assert!(of_merge < answer && of_merge < search, "{shown}");

    // Both runs are complete: the next command has only their answers.
    let trials = bench.trials();
    let mut runs: Vec<&str> = trials.iter().map(|trial| trial.run.id.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    let [first, second] = runs[..] else { panic!("{runs:?}") };
    let resume = |run: &str| {
        let json = bench.pgdyno(&["resume", "--run", run, "--format", "json"]);
        serde_json::from_slice::<Value>(&json.stdout).unwrap()
    };
    let outer = resume(first);
    assert_eq!(outer["found"][0]["levels"], serde_json::json!([format!("postgres@{merge}")]));
    assert_eq!(outer["merges"], serde_json::json!([resume(second)]));
    assert_eq!(outer["merges"][0]["found"][0]["levels"], serde_json::json!([format!("postgres@{culprit}")]));
    assert_eq!(bench.trials().len(), trials.len());
}

/// Commits of a real source: the first change is a comment, the second does not compile, the third mends it and costs time.
#[test]
#[ignore = "builds PostgreSQL twice, for minutes: make test-slow"]
fn commits_are_built_and_those_that_do_not_build_are_named_with_their_neighbours() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-sources/postgresql.tar.bz2");
    if !source.exists() {
        return skip("there is no source of PostgreSQL: run setup/test-sources target/test-sources");
    }
    let bench = Bench::new("");
    let repository = bench.path().join("postgres");
    fs::create_dir(&repository).unwrap();
    let unpacked = Command::new("tar")
        .args(["-xjf", source.to_str().unwrap(), "--strip-components=1", "-C", repository.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(unpacked.success());
    let commit = |message: &str| git(&repository, &["commit", "-qam", message]);
    git(&repository, &["init", "-q"]);
    git(&repository, &["config", "gc.auto", "0"]);
    git(&repository, &["add", "-A", "-f"]);
    commit("Base");
    let file = repository.join("src/backend/tcop/postgres.c");
    let original = fs::read_to_string(&file).unwrap();
    let (head, rest) = original.split_at(original.find("\tdest = whereToSendOutput;\n").unwrap());
    fs::write(&file, format!("{original}/* The end. */\n")).unwrap();
    commit("Add a comment");
    fs::write(&file, format!("{original}int unfinished = missing;\n")).unwrap();
    commit("Begin to check portals");
    let slow = "\tfor (volatile int check = 0; check < 20000; check++)\n\t\t;\n";
    fs::write(&file, format!("{head}{slow}{rest}")).unwrap();
    commit("Check portals");
    fs::write(&file, format!("{head}{slow}{rest}/* The end. */\n")).unwrap();
    commit("Add the comment again");
    let before = fs::read(repository.join(".git/HEAD")).unwrap();
    let ends = ["HEAD~4", "HEAD", "--repo", "postgres", "--metric", "server-cpu"];
    // Optimization takes most of a build.
    let (code, shown) = bisect_with(&bench, &ends, "[servers.postgres]\n", "build = { cflags = '-O0' }\n");
    assert_eq!(code, 0, "{shown}");
    let result = joined(&shown);
    assert!(result.contains("The change is at one of ") && result.contains("can't be told apart"), "{shown}");
    assert!(result.contains("src/backend/tcop/postgres.c"), "{shown}");
    assert!(result.contains("It is not one of code layout: with the functions of both builds in"), "{shown}");
    assert!(result.contains("Not measured: ") && result.contains("could not compile"), "{shown}");
    assert_eq!(fs::read(repository.join(".git/HEAD")).unwrap(), before);
    let status =
        Command::new("git").current_dir(&repository).args(["status", "--porcelain"]).output().unwrap();
    assert!(status.stdout.is_empty(), "{}", String::from_utf8_lossy(&status.stdout));

    // The run has the subjects of commits, also of those that were not measured: the repository may be gone.
    fs::rename(&repository, bench.path().join("elsewhere")).unwrap();
    let again = String::from_utf8(bench.pgdyno(&["resume"]).stdout).unwrap();
    assert!(again.contains("src/backend/tcop/postgres.c") && again.contains("Somebody, 20"), "{again}");
    let view: Value = serde_json::from_slice(&bench.pgdyno(&["report", "--format", "json"]).stdout).unwrap();
    let titles: Vec<&str> = view["bisections"][0]["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| level["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles,
        ["Base", "Add a comment", "Begin to check portals", "Check portals", "Add the comment again"]
    );
    let sentence = view["bisections"][0]["sentence"].as_str().unwrap();
    assert!(joined(&again).contains(&joined(sentence)), "{sentence} is not in\n{again}");
    assert_eq!(view["answers"].as_array().unwrap().len(), 1, "{}", view["answers"]);
}
