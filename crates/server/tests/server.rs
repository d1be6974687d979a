//! Servers of the oldest and the newest major that campaigns compare most: start, query, stop, without leftovers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use model::limits::Limits;
use model::message::Endpoint;
use model::workload::Transport;
use server::{Error, StopMode};
use support::{cache, processes_in, server, settings, template};
use wire::ConnectParams;
use wire::blocking::Session;

const VERSIONS: [&str; 2] = ["13", "18"];

#[test]
fn a_server_starts_responds_stops_and_restarts_on_the_same_data() {
    for version in VERSIONS {
        let server = server(version, &[("work_mem", "7MB")]);
        let (number, banner) = server.version().unwrap();
        assert!(number.starts_with(version) && banner.starts_with("PostgreSQL"), "{number} {banner}");
        assert!(server.database_bytes().unwrap() > 10_000_000);
        let work_mem = server.settings().unwrap().into_iter().find(|s| s.name == "work_mem").unwrap();
        assert_eq!((work_mem.value.as_str(), work_mem.unit.as_deref()), ("7168", Some("kB")));
        assert_eq!(work_mem.source, "configuration file");
        server.session("pgdyno").unwrap().execute("create table kept(); checkpoint").unwrap();
        let data = server.data_directory().to_owned();

        let cluster = server.stop(StopMode::Fast).unwrap();
        assert_eq!(processes_in(&data), Vec::<u32>::new());
        let server = cluster.start(&settings(&[])).unwrap();
        assert!(!server.log().unwrap().contains("not properly shut down"), "{}", server.log().unwrap());
        server.session("pgdyno").unwrap().execute("select from kept").unwrap();

        let cluster = server.stop(StopMode::Immediate).unwrap();
        let server = cluster.start(&settings(&[])).unwrap();
        assert!(server.log().unwrap().contains("not properly shut down"));
        drop(server);
        assert_eq!(processes_in(&data), Vec::<u32>::new());
        assert!(!data.exists() && !data.parent().unwrap().exists());
    }
}

#[test]
fn the_log_reports_events_unless_settings_disable_that() {
    let requested =
        [("log_line_prefix", "mine "), ("LOG_TEMP_FILES", "-1"), ("work_mem", "64kB"), ("autovacuum", "off")];
    let mut server = server("18", &requested);
    let settings = server.settings().unwrap();
    let value = |name: &str| settings.iter().find(|s| s.name == name).unwrap().value.clone();
    assert_eq!(value("log_line_prefix"), "mine ");
    assert_eq!(value("log_temp_files"), "-1");
    assert_eq!(value("log_timezone"), "UTC");
    assert_eq!(value("log_autovacuum_min_duration"), "0");

    assert!(server.take_log().unwrap().contains("mine LOG:  database system is ready"));
    let spill = "select count(*) from (select generate_series(1, 20000) n order by 1 desc) numbers";
    server.session("pgdyno").unwrap().execute(spill).unwrap();
    assert!(server.session("pgdyno").unwrap().execute("select 1 / 0").is_err());
    let more = server.take_log().unwrap();
    assert!(more.starts_with("mine ERROR:  division by zero"), "{more}");
    assert_eq!(server.take_log().unwrap(), "");
    assert!(server.log().unwrap().ends_with(&more));
}

#[test]
fn clients_connect_by_both_transports() {
    let cluster = template("18", 1).clone_cluster(&cache(), &host::NoProgress).unwrap();
    let server = cluster.start_within(&settings(&[]), &Limits::none(), Transport::Tcp).unwrap();
    let connection = server.connection(Transport::Tcp);
    let Endpoint::Tcp { host, port } = connection.endpoint else { panic!("not TCP") };
    let params = ConnectParams::new(host, port, "postgres", "pgdyno", connection.password);
    let mut client = Session::connect(&params).unwrap();
    let accounts: i64 = client.query_one("select count(*) from pgbench_accounts").unwrap();
    assert_eq!(accounts, 100_000);
    assert_eq!(server.connection(Transport::Unix).database, "pgdyno");
}

#[test]
fn servers_never_run_as_root() {
    let server = server("13", &[]);
    let owner = |path: PathBuf| std::fs::metadata(path).unwrap().uid();
    let runs_as = owner(format!("/proc/{}", server.pid()).into());
    assert_ne!(runs_as, 0);
    assert_eq!(owner(server.data_directory().to_owned()), runs_as);
    let mut client = server.session("postgres").unwrap();
    let groups: String = client.query_one("select pg_read_file('/proc/self/status')").unwrap();
    let groups = groups.lines().find(|line| line.starts_with("Groups:")).unwrap().to_owned();
    assert!(!groups.split_whitespace().any(|group| group == "0"), "{groups}");
}

#[test]
fn copies_start_equal_and_are_independent() {
    let template = template("18", 1);
    let first = template.clone_cluster(&cache(), &host::NoProgress).unwrap().start(&settings(&[])).unwrap();
    first.session("pgdyno").unwrap().execute("truncate pgbench_accounts").unwrap();
    let second = template.clone_cluster(&cache(), &host::NoProgress).unwrap().start(&settings(&[])).unwrap();
    let accounts: i64 =
        second.session("pgdyno").unwrap().query_one("select count(*) from pgbench_accounts").unwrap();
    assert_eq!(accounts, 100_000);
}

#[test]
fn a_server_that_does_not_start_is_reported_with_its_own_message() {
    for version in VERSIONS {
        let cluster = template(version, 1).clone_cluster(&cache(), &host::NoProgress).unwrap();
        let home = cluster.data_directory().parent().unwrap().to_owned();
        let error = cluster.start(&settings(&[("shared_buffers", "many")])).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("invalid value for parameter \"shared_buffers\": \"many\""), "{message}");
        assert!(!home.exists());
    }
}

#[test]
fn a_setting_that_pgdyno_needs_is_refused_before_anything_starts() {
    let cluster = template("18", 1).clone_cluster(&cache(), &host::NoProgress).unwrap();
    let error = cluster.start(&settings(&[("port", "5432")])).unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error}");
}

#[test]
fn a_killed_server_is_reported_as_ended() {
    let mut server = server("18", &[]);
    assert_eq!(server.exited(), None);
    let pid = rustix::process::Pid::from_raw(server.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    support::wait_until("it has ended", || server.exited().is_some());
    let data = server.data_directory().to_owned();
    drop(server);
    assert_eq!(processes_in(&data), Vec::<u32>::new());
}

#[test]
fn the_count_of_commits_is_exact() {
    for version in VERSIONS {
        let server = server(version, &[("autovacuum", "off")]);
        let before = server.commits(None).unwrap();
        let mut client = server.session("pgdyno").unwrap();
        for _ in 0..100 {
            client.execute("select 1").unwrap();
        }
        drop(client);
        // 100 statements and the connection's own start-up transaction.
        let expected = before + 101;
        assert_eq!(server.commits(Some(expected)).unwrap(), expected, "{version}");
        assert_eq!(server.commits(None).unwrap(), expected, "{version}");
    }
}

#[test]
fn a_cache_whose_path_is_too_long_for_sockets_works() {
    let base = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(base.path(), open).unwrap();
    let deep = host::Cache::at(&base.path().join("deep".repeat(30))).unwrap();
    let installation = support::installed("18");
    let directory = installation.directory();
    let linked = deep.directory().join("installations").join(directory.file_name().unwrap());
    std::os::unix::fs::symlink(directory, linked).unwrap();
    let installation = server::installed(&deep).unwrap().remove(0);
    let server = server::Cluster::empty(&deep, &installation, &[]).unwrap().start(&settings(&[])).unwrap();
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!("not a socket") };
    assert!(directory.len() < 90, "{directory}");
    assert!(std::path::Path::new(&format!("{directory}/.s.PGSQL.{port}")).exists());
    server.session("postgres").unwrap();
    drop(server);
    assert!(!std::path::Path::new(&directory).exists());
}
