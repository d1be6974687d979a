//! Programs that are used in place, and the build options that programs report.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use model::server::{Dsn, Source};
use server::{Cluster, Error, Installation, Origin};
use support::{cache, installed, settings};

fn in_place(directory: &Path) -> Result<Installation, Error> {
    server::installation(&cache(), &Source::Bin(directory.to_owned()), &host::NoProgress)
}

/// A copy of an embedded server, accessible to all users.
fn copy(version: &str) -> tempfile::TempDir {
    let place = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
    let from = installed(version).directory().join(".");
    assert!(Command::new("cp").arg("-a").arg(from).arg(place.path()).status().unwrap().success());
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// Runs a shell command in a directory of programs. A program written by this process itself can't be run while a child
/// of another test, started meanwhile, still has it open ("Text file busy").
fn shell(place: &tempfile::TempDir, command: &str) {
    assert!(Command::new("sh").args(["-c", command]).current_dir(place.path()).status().unwrap().success());
}

#[test]
fn a_directory_of_programs_can_be_used_as_a_server() {
    let place = copy("18");
    let installation = in_place(&place.path().join("bin")).unwrap();
    let version = installed("18").version();
    assert_eq!(installation.version(), version);
    assert_eq!(installation.origin(), Origin::Bin);
    assert!(installation.identity().starts_with(&format!("{version}-bin-")), "{}", installation.identity());
    assert_eq!(in_place(place.path()).unwrap().identity(), installation.identity(), "above bin");
    assert_ne!(in_place(copy("18").path()).unwrap().identity(), installation.identity(), "elsewhere");

    let server = Cluster::empty(&cache(), &installation, &[]).unwrap().start(&settings(&[])).unwrap();
    assert_eq!(server.version().unwrap().0, version.to_string());
    let runs = fs::read_link(format!("/proc/{}/exe", server.pid())).unwrap();
    assert_eq!(runs, place.path().canonicalize().unwrap().join("bin/postgres"));
    drop(server);
    assert!(!server::installed(&cache()).unwrap().contains(&installation), "it is not the cache's");
}

#[test]
fn replaced_programs_are_refused() {
    let place = copy("18");
    let installation = in_place(place.path()).unwrap();
    shell(&place, "echo >> bin/postgres");
    let message = Cluster::empty(&cache(), &installation, &[]).unwrap_err().to_string();
    assert!(message.contains("has been replaced"), "{message}");
    assert_ne!(in_place(place.path()).unwrap().identity(), installation.identity());
}

#[test]
fn a_directory_without_the_programs_is_refused() {
    let place = copy("18");
    let refused = |directory: &Path, why: &str| {
        let message = in_place(directory).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    };
    refused(&place.path().join("share"), "neither it nor its subdirectory bin contains postgres");
    refused(&place.path().join("nowhere"), "nowhere");
    shell(&place, "printf '#!/bin/sh\necho postgres, some day\n' > bin/postgres");
    refused(place.path(), "printed no version: postgres, some day");
    fs::remove_file(place.path().join("bin/initdb")).unwrap();
    refused(place.path(), "it contains postgres but not initdb");
    let dsn = Source::Dsn(Dsn { conninfo: "host=db".to_owned(), can_change_settings: false });
    let error = server::installation(&cache(), &dsn, &host::NoProgress).unwrap_err();
    assert!(matches!(error, Error::NoPrograms), "{error}");
}

#[test]
fn settings_that_a_server_does_not_have_are_known_without_starting_it() {
    for version in ["9.6", "13", "18"] {
        let server = support::server(version, &[]);
        let mut session = server.session("postgres").unwrap();
        let all: Vec<String> = session.query("select name from pg_settings").unwrap();
        assert!(all.len() > 200);
        let all = all.iter().map(String::as_str);
        let wrong = ["shared_bufers", "max_conections", "module.setting"];
        let unknown = installed(version).unknown_settings(all.chain(wrong)).unwrap();
        assert_eq!(unknown, ["shared_bufers", "max_conections"], "{version}");
    }
    let of = |version: &str| {
        installed(version).unknown_settings(["io_method", "WORK_MEM", "datestyle"].into_iter()).unwrap()
    };
    assert_eq!((of("17"), of("18")), (vec!["io_method"], vec![]));
}

#[test]
fn programs_report_their_build_options() {
    for (version, compiler, level) in [
        ("9.6", "gcc (GCC) 4.4.7", "-O2"),
        ("10", "gcc (GCC) 4.4.7", "-O2"),
        ("11", "7.5.0", "-Os"),
        ("18", "7.5.0", "-Os"),
    ] {
        let flags = installed(version).build_flags();
        let (configure, cc, cflags) = (flags.configure.unwrap(), flags.cc.unwrap(), flags.cflags.unwrap());
        assert!(configure.starts_with('\'') && configure.contains("'--prefix="), "{version}: {configure}");
        assert!(cc.contains(compiler), "{version}: {cc}");
        assert!(cflags.split(' ').any(|flag| flag == level), "{version}: {cflags}");
        assert!(cflags.starts_with("-Wall"), "{version}: {cflags}");
    }
}
