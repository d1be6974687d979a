//! Other users of the machine, and processes of the server's user, gain nothing from a server that pgdyno starts.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::thread;

use host::{Cache, ServerUser};
use model::limits::Limits;
use model::message::Endpoint;
use model::server::Source;
use model::workload::Transport;
use rustix::process::{Gid, Uid};
use server::{StopMode, instance};
use support::{cache, installed, settings, template};
use wire::ConnectParams;
use wire::blocking::Session;

/// Runs `work` as a user unrelated to the server's.
fn as_another_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_gid(Gid::from_raw(54_321)).unwrap();
            rustix::thread::set_thread_uid(Uid::from_raw(54_321)).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip::skip("access by other users to a server: this test does not run as root");
    }
    is_root
}

#[test]
fn only_the_owner_connects_and_only_with_the_password_over_tcp() {
    if !is_root() {
        return;
    }
    for major in ["9.6", "18"] {
        let cluster = template(major, 1).clone_cluster(&cache(), &host::NoProgress).unwrap();
        let server = cluster.start(&settings(&[])).unwrap();
        let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { unreachable!() };
        let by_socket = ConnectParams::new(directory, port, "postgres", "postgres", None);
        let by_tcp = |port, password: Option<&str>| {
            let password = password.map(str::to_owned);
            Session::connect(&ConnectParams::new("127.0.0.1", port, "postgres", "postgres", password))
                .map(drop)
        };
        Session::connect(&by_socket).unwrap();
        let refused = as_another_user(|| Session::connect(&by_socket).map(drop).unwrap_err().to_string());
        assert!(refused.contains("Permission denied"), "{major}: {refused}");
        let refused = by_tcp(port, None).unwrap_err().to_string();
        assert!(refused.contains("Connection refused"), "{major}: {refused}");

        let cluster = server.stop(StopMode::Fast).unwrap();
        let server = cluster.start_within(&settings(&[]), &Limits::none(), Transport::Tcp).unwrap();
        let connection = server.connection(Transport::Tcp);
        let Endpoint::Tcp { port, .. } = connection.endpoint else { unreachable!() };
        let password = connection.password.unwrap();
        by_tcp(port, Some(&password)).unwrap();
        assert!(by_tcp(port, None).is_err() && by_tcp(port, Some("postgres")).is_err(), "{major}");
        assert!(!format!("{server:?}").contains(&password), "{major}");
        assert!(!server.log().unwrap().contains(&password), "{major}");
    }
}

/// What a superuser's session can do with `COPY … TO PROGRAM` to the files of its own server.
#[test]
fn others_read_neither_the_log_nor_the_data_of_a_server() {
    if !is_root() {
        return;
    }
    let server =
        template("18", 1).clone_cluster(&cache(), &host::NoProgress).unwrap().start(&settings(&[])).unwrap();
    let data = server.data_directory().to_owned();
    let log = data.parent().unwrap().join("server.log");
    fs::read(&log).unwrap();
    for path in [&log, &data.join("PG_VERSION")] {
        let refused = as_another_user(|| fs::read(path).unwrap_err().kind());
        assert_eq!(refused, std::io::ErrorKind::PermissionDenied, "{}", path.display());
    }
}

#[test]
fn root_follows_no_links_or_fifos_in_a_data_directory() {
    if !is_root() {
        return;
    }
    let user = ServerUser::choose().unwrap();
    let template = template("18", 1);
    let mut cluster = template.clone_cluster(&cache(), &host::NoProgress).unwrap();
    let data = cluster.data_directory();
    let private = tempfile::tempdir().unwrap();
    let secret = private.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let (directory, victim) = (private.path().join("directory"), private.path().join("directory/victim"));
    fs::create_dir(&directory).unwrap();
    fs::write(&victim, "victim").unwrap();
    let before = [&secret, &directory, &victim].map(|path| metadata(path));

    let link = |name: &str, to: &Path| {
        user.run_as(|| {
            let path = data.join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            symlink(to, path).unwrap();
        })
        .unwrap();
    };
    let fifo = |name: &str| {
        user.run_as(|| {
            let _ = fs::remove_file(data.join(name));
            rustix::fs::mknodat(
                rustix::fs::CWD,
                data.join(name),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .unwrap();
        })
        .unwrap();
    };
    let for_all = |create: &dyn Fn(&str)| {
        for name in
            ["pg_ident.conf", "pgdyno.conf", "PG_VERSION", "global/pg_control", "postmaster.pid", "base/new"]
        {
            create(name);
        }
    };
    for round in 0..3 {
        match round {
            0 => for_all(&|name| link(name, &secret)),
            1 => for_all(&fifo),
            _ => ["pg_xact", "base", "pgdyno.conf", "new"].iter().for_each(|name| link(name, &directory)),
        }
        // Files that root reads and writes before, between and after trials.
        let _ = cluster.drop_page_cache();
        template.restore(&mut cluster, &host::NoProgress).unwrap();
        link("pgdyno.conf", &secret);
        let server = cluster.start(&settings(&[("work_mem", "7MB")])).unwrap();
        let work_mem =
            server.settings().unwrap().into_iter().find(|setting| setting.name == "work_mem").unwrap();
        assert_eq!(work_mem.value, "7168");
        cluster = server.stop(StopMode::Fast).unwrap();
        assert_eq!([&secret, &directory, &victim].map(|path| metadata(path)), before, "round {round}");
    }
}

#[test]
fn programs_in_a_directory_of_somebody_else_never_run_as_root() {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, command) in [
        ("postgres", "echo 'postgres (PostgreSQL) 18.0'"),
        ("initdb", ""),
        ("pg_ctl", ""),
        ("pg_config", "echo \"$1 as $(id -u) in $(id -G)\""),
    ] {
        let program = place.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{command}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let source = Source::Bin(place.path().to_owned());
    let flags = server::installation(&cache(), &source, &host::NoProgress).unwrap().build_flags();
    let ServerUser::Unprivileged { uid, gid, .. } = ServerUser::choose().unwrap() else { unreachable!() };
    assert_eq!(flags.cflags, Some(format!("--cflags as {uid} in {gid}")));
}

#[test]
fn a_raw_read_opens_only_what_the_server_could_read() {
    if !is_root() {
        return;
    }
    let user = ServerUser::choose().unwrap();
    let cluster = template("18", 1).clone_cluster(&cache(), &host::NoProgress).unwrap();
    let data = cluster.data_directory();
    let private = tempfile::tempdir().unwrap();
    let secret = private.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let (link, fifo, directory) = (data.join("base/link"), data.join("base/fifo"), data.join("base"));
    user.run_as(|| {
        symlink(&secret, &link).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    })
    .unwrap();
    for (path, why) in [
        (&link, "Too many levels of symbolic links"),
        (&fifo, "it is not a regular file"),
        (&directory, "it is not a regular file"),
        (&secret, "Permission denied"),
    ] {
        let error = server::read_files(std::slice::from_ref(path)).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn others_do_not_read_the_settings_of_a_started_server() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let cache = Cache::at(place.path()).unwrap();
    let file = cache.servers().join("mine/server.json");
    let settings = settings(&[("primary_conninfo", "password=hunter2")]);
    let installation = installed("18");
    let start = instance::Start {
        name: "mine",
        installation: &installation,
        template: None,
        settings: &settings,
        port: None,
        tcp: true,
    };
    for _ in 0..2 {
        let server = instance::start(&cache, &start, &host::NoProgress).unwrap();
        for path in [&file, &server.password_file().unwrap()] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
        }
        instance::stop(&cache, "mine", StopMode::Fast).unwrap();
        // As an earlier pgdyno left it.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap().contains("hunter2"));
    assert!(instance::remove(&cache, "mine").unwrap());
}

/// Owner, mode and content.
fn metadata(path: &Path) -> (u32, u32, Option<String>) {
    let meta = fs::symlink_metadata(path).unwrap();
    (meta.uid(), meta.mode(), fs::read_to_string(path).ok())
}
