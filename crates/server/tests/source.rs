//! Building from source: what is rebuilt and what is not, and what a build leaves. The source is a small one; see
//! `real_source.rs` for PostgreSQL's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use host::Progress;
use model::record::Commit;
use model::server::{Build, BuildSystem};
use server::{BuildRecord, Cluster, Error, StopMode};
use support::fake_source::{FakeSource, compiled, names};
use support::{as_child, role, settings};

const FIRST_BUILD: [&str; 4] = ["compile main", "compile other", "configure", "install"];
/// The same with the stored results of `configure`.
const REBUILD: [&str; 5] = ["compile main", "compile other", "configure", "install", "know already"];

#[test]
fn a_source_is_built_once_and_its_server_runs_like_any_other() {
    let fake = FakeSource::new();
    let installation = fake.build().unwrap();
    assert_eq!(fake.tally(), FIRST_BUILD);
    let version = installation.version().to_string();
    assert!(installation.identity().starts_with(&format!("{version}-src-")), "{}", installation.identity());
    let log = installation.build_log().unwrap();
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("CFLAGS=-O2 -g -fno-omit-frame-pointer"), "{text}");

    let again = fake.build().unwrap();
    assert_eq!(again, installation);
    assert_eq!(fake.tally(), [""; 0], "nothing is run");
    assert_eq!(fs::read_to_string(&log).unwrap(), text);
    assert_eq!(server::installed(&fake.cache).unwrap(), std::slice::from_ref(&installation));
    assert_eq!(server::find(&fake.cache, installation.identity()).unwrap().as_ref(), Some(&installation));
    let named = |name: &str| {
        server::installation(
            &fake.cache,
            &model::server::Source::Installed(name.to_owned()),
            &host::NoProgress,
        )
    };
    assert_eq!(named(installation.identity()).unwrap(), installation);
    let unknown = named("18.6-src-000000000000").unwrap_err();
    assert!(matches!(unknown, Error::NotInstalled { .. }), "{unknown}");
    let BuildRecord { location, content, arguments, .. } = installation.build().unwrap();
    assert_eq!(location, &fake.path("postgresql"));
    assert!(content.starts_with("files:") && arguments.iter().any(|a| a == "--enable-depend"));

    let server = Cluster::empty(&fake.cache, &installation, &[]).unwrap().start(&settings(&[])).unwrap();
    assert_eq!(server.version().unwrap().0, version);
    let in_use = server::remove(&fake.cache, installation.identity()).unwrap_err();
    assert!(matches!(in_use, Error::InUse { .. }), "{in_use}");
    drop(server.stop(StopMode::Immediate).unwrap());

    let not_it = server::remove(&fake.cache, "18").unwrap_err();
    assert!(matches!(not_it, Error::NotInstalled { .. }), "a major is what was downloaded: {not_it}");
    assert_eq!(server::remove(&fake.cache, installation.identity()).unwrap(), [installation.identity()]);
    assert_eq!(names(&fake.path("cache/installations")), [""; 0]);
    assert_eq!(names(&fake.path("cache/builds")), [""; 0]);
}

#[test]
fn two_concurrent_builds_build_once() {
    let fake = FakeSource::new();
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| fake.build().unwrap()));
        let [one, other] = both.map(|thread| thread.join().unwrap());
        assert_eq!(one, other);
    });
    assert_eq!(fake.tally(), FIRST_BUILD);
}

#[test]
fn after_a_change_only_affected_files_are_compiled() {
    let fake = FakeSource::new();
    let first = fake.build().unwrap();
    fake.tally();
    let change = |file: &str, expected: &[&str]| {
        // Same length, and not newer: only the content counts.
        fake.write(&format!("src/backend/{file}"), "two");
        let old = fs::metadata(fake.path("postgresql/configure")).unwrap().modified().unwrap();
        let path = fake.path("postgresql/src/backend").join(file);
        fs::File::open(path).unwrap().set_modified(old).unwrap();
        let built = fake.build().unwrap();
        assert_eq!(fake.tally(), expected, "{file}");
        built
    };
    let second = change("main.c", &["compile main", "install"]);
    assert_ne!(second.identity(), first.identity());
    assert_eq!((compiled(&first).as_str(), compiled(&second).as_str()), ("one", "two"));
    change("main.h", &["compile main", "compile other", "install"]);
    // Changes that make does not handle: new files.
    change("new.c", &REBUILD);
    // The earlier installation still exists.
    fs::remove_file(fake.path("postgresql/src/backend/new.c")).unwrap();
    fake.write("src/backend/main.h", "one");
    assert_eq!(fake.build().unwrap(), second);
    assert_eq!(fake.tally(), [""; 0]);
}

#[test]
fn a_rebuild_uses_the_present_source() {
    let fake = FakeSource::new();
    fake.write("doc/one", "a file");
    fake.write("src/old/only.c", "one");
    let first = fake.build().unwrap();
    fake.tally();
    fs::remove_file(fake.path("postgresql/doc/one")).unwrap();
    fake.write("doc/one/two", "in a directory now");
    fs::remove_dir_all(fake.path("postgresql/src/old")).unwrap();
    assert_ne!(fake.build().unwrap(), first);
    assert_eq!(fake.tally(), REBUILD);
    let directory = fake.path("cache/builds").join(&names(&fake.path("cache/builds"))[0]);
    assert_eq!(fs::read_to_string(directory.join("source/doc/one/two")).unwrap(), "in a directory now");
    assert!(!directory.join("source/src/old").exists());
    let time = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let configure = fake.path("postgresql/configure");
    assert_eq!(time(&directory.join("source/configure")), time(&configure));
}

#[test]
fn invalid_stored_results_of_configure_are_replaced() {
    let fake = FakeSource::new();
    fake.build().unwrap();
    fake.tally();
    let results = fake.path("cache/answers");
    let stored = results.join(&names(&results)[0]);
    fs::write(&stored, "exit 1\n").unwrap();
    fake.write("src/backend/new.c", "new");
    fake.build().unwrap();
    assert_eq!(fake.tally(), ["compile main", "compile other", "configure", "configure", "install"]);
    assert!(fs::read_to_string(&stored).unwrap().contains("know already"), "stored again");
}

#[test]
fn options_flags_and_compiler_make_another_server() {
    let fake = FakeSource::new();
    let plain = fake.build_of("postgresql");
    let mut identities = vec![fake.build().unwrap().identity().to_owned()];
    for build in [
        Build { options: vec!["--enable-cassert".to_owned()], ..plain.clone() },
        Build { cflags: Some("-O0".to_owned()), ..plain.clone() },
        Build { options: vec!["CC=cc -pipe".to_owned()], ..plain.clone() },
    ] {
        let built = fake.build_as(build).unwrap();
        identities.push(built.identity().to_owned());
    }
    identities.sort();
    identities.dedup();
    assert_eq!(identities.len(), 4);
    let configure = Build { system: Some(BuildSystem::Configure), ..plain };
    fake.tally();
    fake.build_as(configure).unwrap();
    assert_eq!(fake.tally(), [""; 0], "it is what no system means");
}

#[test]
fn a_git_repository_is_built_at_a_ref_or_as_its_work_tree() {
    let fake = FakeSource::new();
    fake.write(".gitignore", "*.o\n");
    fake.git(&["init", "--quiet"]);
    fake.git(&["add", "."]);
    fake.git(&["commit", "--quiet", "-m", "first"]);
    fake.git(&["tag", "first"]);
    fake.write("src/backend/main.c", "two");
    fake.git(&["commit", "--quiet", "-a", "-m", "second"]);
    fake.write("src/backend/main.c", "three");
    fake.write("src/backend/untracked.c", "");
    fake.write("src/backend/left.o", "");
    let index = fs::read(fake.path("postgresql/.git/index")).unwrap();
    let status = fake.git(&["status", "--porcelain", "--ignored"]);

    let build = |git_ref: Option<&str>| {
        let git_ref = git_ref.map(str::to_owned);
        fake.build_as(Build { git_ref, ..fake.build_of("postgresql") }).unwrap()
    };
    let (first, second, tree) = (build(Some("first")), build(Some("HEAD")), build(None));
    assert_eq!([&first, &second, &tree].map(compiled), ["one", "two", "three"]);
    assert_eq!(first.build().unwrap().git_ref.as_deref(), Some("first"));
    let commit = |git_ref: Option<&str>| {
        let git_ref = git_ref.map(str::to_owned);
        server::commit(&Build { git_ref, ..fake.build_of("postgresql") })
    };
    let id = fake.git(&["rev-parse", "first"]).trim().to_owned();
    assert_eq!(commit(Some("first")), Some(Commit { id, position: 1 }));
    assert_eq!(commit(Some("HEAD")).unwrap().position, 2);
    assert_eq!((commit(None), commit(Some("no-such-ref"))), (None, None));
    let text = |name: &str| host::git::commit_text(&fake.path("postgresql"), name);
    let second_text = text("HEAD").unwrap();
    let [subject, author, file, sum] = second_text.lines().collect::<Vec<_>>()[..] else {
        panic!("{second_text}")
    };
    assert_eq!((subject, author.split_once(", ").unwrap().1.len()), ("second", "2026-11-21".len()));
    assert!(file.starts_with(" src/backend/main.c | 2 "), "{file}");
    assert!(sum.starts_with(" 1 file changed, "), "{sum}");
    assert_eq!(text("no-such-ref"), None);
    let head = fake.git(&["rev-parse", "--short=12", "HEAD"]).trim().to_owned();
    let names = [head.as_str(), "no-such-ref", "--output=/tmp/x", "first..HEAD", "first"];
    assert_eq!(
        host::git::commit_subjects(&fake.path("postgresql"), &names),
        Some(format!("{head} second\nfirst first"))
    );
    assert_eq!(host::git::commit_subjects(&fake.path("nowhere"), &names), None);
    let id = fake.git(&["rev-parse", "first^{tree}"]);
    assert_eq!(first.build().unwrap().content, format!("tree:{}", id.trim()));
    fake.tally();
    assert_eq!(build(Some("HEAD~1")), first, "the same tree by another name");
    fake.write("src/backend/left.o", "git ignores it");
    assert_eq!(build(None), tree);
    assert_eq!(fake.tally(), [""; 0]);
    fake.write("src/backend/untracked.c", "git does not ignore it");
    assert_ne!(build(None), tree);

    assert_eq!(fs::read(fake.path("postgresql/.git/index")).unwrap(), index);
    assert_eq!(fake.git(&["status", "--porcelain", "--ignored"]), status);
}

#[test]
fn planning_a_build_of_a_repository_runs_no_program_of_it() {
    let fake = FakeSource::new();
    fake.write(".gitattributes", "* filter=crafted diff=crafted\n");
    fake.git(&["init", "--quiet"]);
    fake.git(&["add", "."]);
    fake.git(&["commit", "--quiet", "-m", "first"]);
    fake.write("src/backend/untracked.c", "");
    let (program, mark) = (fake.path("program"), fake.path("mark"));
    fs::write(&program, format!("#!/bin/sh\n: >'{}'\n", mark.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let command = program.to_str().unwrap();
    for name in [
        "core.fsmonitor",
        "gpg.program",
        "diff.external",
        "diff.crafted.textconv",
        "filter.crafted.clean",
        "filter.crafted.smudge",
    ] {
        fake.git(&["config", name, command]);
    }
    fake.git(&["config", "log.showSignature", "true"]);
    for git_ref in [None, Some("HEAD".to_owned())] {
        let build = Build { git_ref, ..fake.build_of("postgresql") };
        assert!(!server::is_built(&fake.cache, &build).unwrap());
        server::commit(&build);
    }
    assert!(!mark.exists(), "a program of the repository has run");
    fake.git(&["ls-files", "--others"]);
    assert!(mark.exists(), "it runs where nothing prevents it");
}

/// The patch that makes `main.c` contain `text` instead of "one".
fn patch(fake: &FakeSource, name: &str, text: &str) -> PathBuf {
    let path = fake.path(name);
    let file = "src/backend/main.c";
    let lines = "\\ No newline at end of file";
    let diff = format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-one\n{lines}\n+{text}\n{lines}\n");
    fs::write(&path, diff).unwrap();
    path
}

#[test]
fn patches_apply_to_every_kind_of_source_and_share_its_build_directory() {
    let fake = FakeSource::new();
    // The cache is in a repository, too.
    fake.git(&["init", "--quiet", ".."]);
    let patches = vec![patch(&fake, "two.patch", "two")];
    let patched = |build: Build| fake.build_as(Build { patches: patches.clone(), ..build });
    let plain = fake.build().unwrap();
    fake.tally();
    let first = patched(fake.build_of("postgresql")).unwrap();
    assert_eq!(fake.tally(), ["compile main", "install"]);
    assert_eq!([&plain, &first].map(compiled), ["one", "two"]);
    assert!(!server::are_identical(&plain, &first).unwrap());
    let unused = fake.path("unused.patch");
    fs::write(&unused, "--- /dev/null\n+++ b/doc/unused\n@@ -0,0 +1 @@\n+text\n").unwrap();
    let same = fake.build_as(Build { patches: vec![unused], ..fake.build_of("postgresql") }).unwrap();
    assert!(same != plain && server::are_identical(&plain, &same).unwrap());
    fake.tally();
    assert_eq!(first.build().unwrap().patches, patches);
    assert!(first.build().unwrap().content.contains("+patch:"));
    assert_eq!(fs::read_to_string(fake.path("postgresql/src/backend/main.c")).unwrap(), "one");
    assert_eq!(patched(fake.build_of("postgresql")).unwrap(), first);
    assert_eq!(fake.tally(), [""; 0]);
    assert!(
        server::is_built(&fake.cache, &Build { patches: patches.clone(), ..fake.build_of("postgresql") })
            .unwrap()
    );

    patch(&fake, "two.patch", "other");
    assert_eq!(compiled(&patched(fake.build_of("postgresql")).unwrap()), "other");
    fake.tar("a.tar", "");
    assert_eq!(compiled(&patched(fake.build_of("a.tar")).unwrap()), "other");
    fake.git(&["init", "--quiet"]);
    fake.git(&["add", "."]);
    fake.git(&["commit", "--quiet", "-m", "first"]);
    fake.write("src/backend/main.c", "three");
    let git_ref = Some("HEAD".to_owned());
    assert_eq!(compiled(&patched(Build { git_ref, ..fake.build_of("postgresql") }).unwrap()), "other");

    let refused = |patches, why: &str| {
        let message =
            fake.build_as(Build { patches, ..fake.build_of("postgresql") }).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    };
    refused(patches.clone(), "error: patch failed: src/backend/main.c:1");
    refused(vec![fake.path("no.patch")], "no.patch can't be read: No such file");
}

#[test]
fn work_trees_of_a_repository_share_a_build_directory() {
    let fake = FakeSource::new();
    fake.git(&["init", "--quiet"]);
    fake.git(&["add", "."]);
    fake.git(&["commit", "--quiet", "-m", "first"]);
    fake.git(&["worktree", "add", "--quiet", fake.path("branch").to_str().unwrap()]);
    fake.build().unwrap();
    fake.tally();
    fs::write(fake.path("branch/src/backend/main.c"), "two").unwrap();
    let branch = fake.build_as(fake.build_of("branch")).unwrap();
    assert_eq!(fake.tally(), ["compile main", "install"]);
    assert_eq!(compiled(&branch), "two");
    assert_eq!(names(&fake.path("cache/builds")).len(), 1);
}

#[test]
fn tarballs_are_built_however_they_are_compressed() {
    let fake = FakeSource::new();
    for (name, compression) in
        [("a.tar", ""), ("a.tar.gz", "--gzip"), ("a.tar.bz2", "--bzip2"), ("a.tar.xz", "--xz")]
    {
        fake.tar(name, compression);
        let built = fake.build_as(fake.build_of(name)).unwrap();
        let expected: &[&str] = if compression.is_empty() { &FIRST_BUILD } else { &REBUILD };
        assert_eq!(fake.tally(), expected, "{name}");
        assert!(built.build().unwrap().content.starts_with("tarball:"));
        assert_eq!(compiled(&built), "one");
        assert_eq!(fake.build_as(fake.build_of(name)).unwrap(), built);
        assert_eq!(fake.tally(), [""; 0], "{name}");
    }
}

#[test]
fn build_directories_in_a_source_are_ignored() {
    let fake = FakeSource::new();
    let first = fake.build().unwrap();
    fake.write("build/config.status", "");
    fake.write("build/src/backend/main.c", "generated");
    assert_eq!(fake.build().unwrap(), first);
}

#[test]
fn a_failed_build_shows_the_end_of_its_log_and_keeps_it() {
    let fake = FakeSource::new();
    let makefile = fs::read_to_string(fake.path("postgresql/src/backend/Makefile.in")).unwrap();
    fake.write("src/backend/Makefile.in", &format!("{makefile}\nother.o:\n\t@echo no such thing; exit 3\n"));
    let error = fake.build().unwrap_err();
    let Error::Build { ref log, .. } = error else { panic!("{error}") };
    let message = error.to_string();
    let what = format!("could not compile PostgreSQL {}", support::installed("18").version());
    assert!(message.starts_with(&what), "{message}");
    assert!(message.contains("no such thing") && message.contains(log.to_str().unwrap()), "{message}");
    let text = fs::read_to_string(log).unwrap();
    assert!(text.contains("options: --enable-depend") && text.contains("no such thing"), "{text}");
    assert_eq!(server::installed(&fake.cache).unwrap(), []);

    fake.write("src/backend/Makefile.in", &makefile);
    assert_eq!(compiled(&fake.build().unwrap()), "one");

    fake.write("src/backend/Makefile.in", "all:\ninstall:\n\tmkdir -p $(DESTDIR)/usr/local/pgsql/bin\n");
    let message = fake.build().unwrap_err().to_string();
    assert!(message.contains("it contains no bin/postgres"), "{message}");
    assert_eq!(names(&fake.path("cache/installations")).len(), 1, "no partial installation is left");
}

#[test]
fn a_build_whose_server_does_not_start_is_not_installed() {
    let fake = FakeSource::new();
    let makefile = fs::read_to_string(fake.path("postgresql/src/backend/Makefile.in")).unwrap();
    let broken = "\n\trm $(to)/bin/initdb\n\tprintf '#!/bin/sh\\necho no postgres.bki >&2; exit 1\\n' > $(to)/bin/initdb\n\
                  \tchmod +x $(to)/bin/initdb\n";
    fake.write("src/backend/Makefile.in", &format!("{}{broken}", makefile.trim_end()));
    let message = fake.build().unwrap_err().to_string();
    let version = support::installed("18").version();
    assert!(message.starts_with(&format!("PostgreSQL {version} was built from ")), "{message}");
    assert!(message.contains("not installed") && message.contains("no postgres.bki"), "{message}");
    assert_eq!(names(&fake.path("cache/installations")), [""; 0]);
    assert_eq!(names(&fake.path("cache/clusters")), [""; 0]);

    fake.write("src/backend/Makefile.in", &makefile);
    fake.build().unwrap();
    assert_eq!(names(&fake.path("cache/clusters")), [""; 0]);
}

#[test]
fn an_invalid_source_is_refused_before_anything_is_built() {
    let fake = FakeSource::new();
    let refused = |build: model::server::Build, why: &str| {
        let message = fake.build_as(build).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    };
    let plain = fake.build_of("postgresql");
    let with = |option: &str| Build { options: vec![option.to_owned()], ..plain.clone() };
    refused(with("CFLAGS=-O3"), "set `cflags` instead");
    refused(with("--prefix=/opt"), "pgdyno sets the installation directory itself");
    refused(fake.build_of("nowhere"), "nowhere");
    let git_ref = Some("main".to_owned());
    refused(Build { git_ref, ..plain.clone() }, "git has no ref \"main\" in it");
    fs::write(fake.path("notes.txt"), "").unwrap();
    refused(fake.build_of("notes.txt"), "it is neither a directory nor a tarball");
    fs::create_dir(fake.path("empty")).unwrap();
    refused(fake.build_of("empty"), "it is not a source of PostgreSQL");
    fs::write(fake.path("broken.tar.gz"), "no tarball").unwrap();
    refused(fake.build_of("broken.tar.gz"), "could not unpack PostgreSQL from");
    fake.write("config.status", "");
    refused(plain, "make distclean");
    assert_eq!(fake.tally(), [""; 0]);
}

/// Runs in a process of its own, since tools are found through the environment: builds, and prints the outcome.
#[test]
fn builder() {
    let Some(location) = role() else { return };
    let cache = host::Cache::open().unwrap();
    let build = Build {
        location: location.into(),
        git_ref: None,
        system: None,
        options: vec![],
        cflags: None,
        patches: vec![],
        sorted_functions: false,
    };
    match server::installation(&cache, &model::server::Source::Build(build), &host::NoProgress) {
        Ok(installation) => println!("\nBUILT {}", installation.identity()),
        Err(error) => println!("\nREFUSED {error}"),
    }
}

#[test]
fn a_missing_tool_is_named_with_its_package() {
    let fake = FakeSource::new();
    let tools = fake.path("tools");
    fs::create_dir(&tools).unwrap();
    let build = || {
        let environment =
            [("PATH", tools.to_str().unwrap()), ("PGDYNO_CACHE", fake.cache.directory().to_str().unwrap())];
        let child = as_child("builder", fake.path("postgresql").to_str().unwrap(), &environment);
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let provide = |tool: &str| {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|directory| directory.join(tool));
        let found = found.into_iter().find(|place| place.is_file()).unwrap();
        std::os::unix::fs::symlink(found, tools.join(tool)).unwrap();
    };
    let missing = |tool: &str, package: &str| {
        let error = build();
        assert!(error.contains(&format!("needs `{tool}`")), "{error}");
        assert!(error.contains(&format!("apt-get install {package})")), "{error}");
    };
    missing("cc", "gcc");
    provide("cc");
    missing("make", "make");
    provide("make");
    // A parser that is not generated yet.
    fake.write("src/backend/parser/gram.y", "");
    missing("bison", "bison");
}

#[test]
fn the_least_recently_used_builds_are_removed_except_those_in_use() {
    let fake = FakeSource::new();
    let build = |content: &str| {
        fake.write("src/backend/main.c", content);
        fake.build().unwrap()
    };
    let (used, old, newer) = (build("one"), build("two"), build("six"));
    let in_use = used.in_use(&fake.cache).unwrap();
    drop(newer.in_use(&fake.cache).unwrap());
    let installations = fake.path("cache/installations");
    let sizes =
        Command::new("find").arg(installations).args(["!", "-type", "d", "-printf", "%s "]).output().unwrap();
    let sizes = String::from_utf8(sizes.stdout).unwrap();
    let three: u64 = sizes.split_whitespace().map(|size| size.parse::<u64>().unwrap()).sum();
    let limited = |content: &str, limit: &str| {
        fake.write("src/backend/main.c", content);
        let directory = fake.cache.directory().to_str().unwrap().to_owned();
        let environment = [("PGDYNO_BUILDS_MAX", limit), ("PGDYNO_CACHE", &directory)];
        let child = as_child("builder", fake.path("postgresql").to_str().unwrap(), &environment);
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let there = |installation: &server::Installation| installation.directory().is_dir();
    let refused = limited("ten", "plenty");
    assert!(refused.contains("REFUSED PGDYNO_BUILDS_MAX is \"plenty\""), "{refused}");
    assert!(there(&old));
    // Two of the three are below the limit.
    let built = limited("ten", &format!("{}kB", three * 9 / 10 / 1000));
    assert!(built.contains("BUILT "), "{built}");
    assert_eq!([&used, &old, &newer].map(there), [true, false, true]);
    // None may be left, but one is in use.
    let built = limited("dozen", "1kB");
    assert!(built.contains("BUILT "), "{built}");
    assert_eq!([&used, &newer].map(there), [true, false]);
    drop(in_use);
}

#[test]
fn functions_are_sorted_by_options_of_compiler_and_linker() {
    let fake = FakeSource::new();
    let plain = fake.build().unwrap();
    let options = vec!["LDFLAGS=-Wl,-O1".to_owned()];
    for (options, linked) in
        [(vec![], "LDFLAGS=-Wl,--sort-section=name"), (options, "LDFLAGS=-Wl,-O1 -Wl,--sort-section=name")]
    {
        let build = Build { sorted_functions: true, options, ..fake.build_of("postgresql") };
        let sorted = fake.build_as(build).unwrap();
        let record = sorted.build().unwrap();
        assert_ne!(sorted.identity(), plain.identity());
        assert_eq!(record.cflags, "-O2 -g -fno-omit-frame-pointer -ffunction-sections");
        assert!(record.arguments.iter().any(|argument| argument == linked), "{:?}", record.arguments);
    }
}

/// Interrupts as soon as a file exists.
struct InterruptedByFile<'a>(&'a Path);

impl Progress for InterruptedByFile<'_> {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        self.0.exists()
    }
}

#[test]
fn an_interrupted_build_leaves_no_process_and_no_installation() {
    let fake = FakeSource::new();
    let makefile = fs::read_to_string(fake.path("postgresql/src/backend/Makefile.in")).unwrap();
    let pid = fake.path("pid");
    // The process ID is that of the sleep, and appears atomically.
    let recipe = format!("\t@echo $$$$ > {0}.new; mv {0}.new {0}; exec sleep 1000\n", pid.display());
    fake.write("src/backend/Makefile.in", &format!("{makefile}\nother.o:\n{recipe}"));
    let outcome = fake.build_with(fake.build_of("postgresql"), &InterruptedByFile(&pid));
    assert!(outcome.as_ref().is_err_and(Error::is_interrupted), "{outcome:?}");
    let process = fs::read_to_string(&pid).unwrap();
    let command = Path::new("/proc").join(process.trim()).join("comm");
    support::wait_until("the build's process is gone", || {
        !fs::read_to_string(&command).is_ok_and(|name| name.trim() == "sleep")
    });
    assert_eq!(names(&fake.path("cache/installations")), [""; 0]);
    fake.write("src/backend/Makefile.in", &makefile);
    fake.build().unwrap();
}
