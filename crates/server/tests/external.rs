//! Servers that pgdyno does not own: they get databases and settings, and are restored.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use host::{Cache, Progress};
use model::message::Endpoint;
use model::server::Dsn;
use model::workload::{Statement, Transport};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use server::{Cluster, Content, Error, ExternalServer, Server, Setup, StopMode, restore_settings};
use support::{as_child, installed, role, settings, wait_until};

const VERSIONS: [&str; 3] = ["9.6", "13", "18"];
const PASSWORD: &str = "correct-horse-battery";

/// A server that pgdyno does not own, and a cache without a record of it.
struct Fixture {
    server: Server,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new(version: &str) -> Self {
        Self::from_cluster(Cluster::empty(&support::cache(), &installed(version), &[]).unwrap())
    }

    /// With a role that may only create databases, and needs its password over TCP.
    fn from_cluster(cluster: Cluster) -> Self {
        let hba = "local all all trust\nhost all bench all md5\nhost all all all trust\n";
        let server = cluster.with_rules(hba).start(&settings(&[])).unwrap();
        let roles =
            format!("create role bench login createdb password '{PASSWORD}'; create role plain login");
        server.session("postgres").unwrap().execute(&roles).unwrap();
        let directory = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { server, directory }
    }

    fn cache(&self) -> Cache {
        Cache::at(self.directory.path()).unwrap()
    }

    /// Connection string through the socket.
    fn conninfo(&self, user: &str) -> String {
        match self.server.endpoint(Transport::Unix) {
            Endpoint::Unix { directory, port } => format!("host={directory} port={port} user={user}"),
            other => panic!("not a socket: {other:?}"),
        }
    }

    fn port(&self) -> u16 {
        match self.server.endpoint(Transport::Tcp) {
            Endpoint::Tcp { port, .. } => port,
            other => panic!("not TCP: {other:?}"),
        }
    }

    fn try_connect(&self, conninfo: &str, can_change_settings: bool) -> Result<ExternalServer, Error> {
        let dsn = Dsn { conninfo: conninfo.to_owned(), can_change_settings };
        ExternalServer::connect(&self.cache(), "theirs", &dsn, &host::NoProgress)
    }

    fn connect(&self, user: &str) -> ExternalServer {
        self.try_connect(&self.conninfo(user), true).unwrap()
    }

    fn query(&self, sql: &str) -> String {
        self.server.session("postgres").unwrap().query_one(sql).unwrap()
    }

    fn show(&self, setting: &str) -> String {
        self.query(&format!("select current_setting('{setting}')"))
    }

    fn execute(&self, sql: &str) {
        self.server.session("postgres").unwrap().execute(sql).unwrap();
    }

    fn databases(&self) -> String {
        self.query("select string_agg(datname, ' ' order by datname) from pg_database")
    }

    /// Content of `postgresql.auto.conf`.
    fn auto_conf(&self) -> String {
        self.query(
            "select coalesce(string_agg(name || '=' || setting, ' ' order by name), '') from pg_file_settings \
             where sourcefile like '%postgresql.auto.conf'",
        )
    }

    fn journals(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.directory.path().join("journals")).unwrap();
        found.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Rows and sums of pgbench's tables.
fn sums(server: &Server) -> String {
    let sum = "select format('%s %s %s %s %s %s %s', (select count(*) from pgbench_accounts), \
               (select sum(abalance) from pgbench_accounts), (select count(*) from pgbench_branches), \
               (select sum(bbalance) from pgbench_branches), (select count(*) from pgbench_tellers), \
               (select sum(tbalance) from pgbench_tellers), (select count(*) from pgbench_history))";
    server.session("pgdyno").unwrap().query_one(sum).unwrap()
}

#[test]
fn every_copy_of_the_data_set_is_in_its_initial_state_and_databases_can_be_dropped() {
    for version in VERSIONS {
        let fixture = Fixture::new(version);
        fixture.execute("create database other");
        let before = fixture.databases();
        let external = fixture.connect("bench");
        assert!(external.version().unwrap().0.starts_with(version));
        external.prepare(&1.into(), None, &host::NoProgress).unwrap();
        let identity = "select d.oid || shobj_description(d.oid, 'pg_database') from pg_database d \
                    where datname = 'pgdyno_scale_1'";
        let template = fixture.query(identity);
        external.recreate_database(&1.into(), &host::NoProgress).unwrap();
        assert_eq!(sums(&fixture.server), "100000 0 1 0 10 0 0", "{version}");
        assert!(external.database_bytes().unwrap() > 10_000_000);

        let commits = external.commits(None).unwrap();
        let mut client = fixture.server.session("pgdyno").unwrap();
        client.execute("update pgbench_accounts set abalance = 1 where aid < 100").unwrap();
        client.execute("insert into pgbench_history (tid) values (1); drop table pgbench_tellers").unwrap();
        drop(client);
        // The transactions of two statements, and the connection's own.
        assert_eq!(external.commits(Some(commits + 3)).unwrap(), commits + 3, "{version}");

        external.prepare(&1.into(), None, &host::NoProgress).unwrap();
        external.recreate_database(&1.into(), &host::NoProgress).unwrap();
        assert_eq!(sums(&fixture.server), "100000 0 1 0 10 0 0", "{version}");
        assert_eq!(fixture.query(identity), template, "the template is created once");
        assert!(!external.checkpoint().unwrap(), "the role may not");
        assert_eq!(external.drop_databases().unwrap(), ["pgdyno", "pgdyno_scale_1"]);
        assert_eq!(fixture.databases(), before, "{version}");
        drop(external);
        assert!(fixture.connect("postgres").checkpoint().unwrap());
    }
}

/// Interrupts.
struct Interrupting;

impl Progress for Interrupting {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        true
    }
}

#[test]
fn an_incomplete_template_is_recreated() {
    let fixture = Fixture::new("13");
    let external = fixture.connect("bench");
    let error = external.prepare(&1.into(), None, &Interrupting).unwrap_err();
    assert!(error.is_interrupted(), "{error}");
    external.prepare(&1.into(), None, &host::NoProgress).unwrap();
    external.recreate_database(&1.into(), &host::NoProgress).unwrap();
    assert_eq!(sums(&fixture.server), "100000 0 1 0 10 0 0");

    // State after a crash within DROP DATABASE.
    fixture.execute("update pg_database set datconnlimit = -2 where datname like 'pgdyno%'");
    external.prepare(&1.into(), None, &host::NoProgress).unwrap();
    external.recreate_database(&1.into(), &host::NoProgress).unwrap();
    assert_eq!(sums(&fixture.server), "100000 0 1 0 10 0 0");
    fixture.execute("update pg_database set datconnlimit = -2 where datname like 'pgdyno%'");
    assert_eq!(external.drop_databases().unwrap(), ["pgdyno", "pgdyno_scale_1"]);
}

/// Interrupts on demand, and keeps notices.
#[derive(Default)]
struct Interruptible {
    interrupt: AtomicBool,
    notices: Mutex<Vec<String>>,
}

impl Progress for Interruptible {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn notice(&self, text: &str) {
        self.notices.lock().unwrap().push(text.to_owned());
    }
}

/// Interrupts `work` when the server runs a statement like this, after `then`; returns the error and the notices.
fn interrupted_at(
    fixture: &Fixture,
    statement: &str,
    then: impl FnOnce() + Send,
    work: impl FnOnce(&dyn Progress) -> Result<(), Error>,
) -> (Error, Vec<String>) {
    let progress = Interruptible::default();
    let running = format!(
        "select count(*)::text from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() \
         and query like '{statement}'"
    );
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(statement, || fixture.query(&running) == "1");
            then();
            progress.interrupt.store(true, Ordering::Relaxed);
        });
        work(&progress)
    });
    assert_eq!(fixture.query(&running), "0", "{statement} still runs");
    (outcome.unwrap_err(), progress.notices.into_inner().unwrap())
}

#[test]
fn ctrl_c_cancels_the_running_statement_and_leaves_no_incomplete_database() {
    for version in VERSIONS {
        let fixture = Fixture::new(version);
        let external = fixture.connect("bench");
        external.prepare(&1.into(), None, &host::NoProgress).unwrap();
        external.recreate_database(&1.into(), &host::NoProgress).unwrap();
        let complete = fixture.databases();
        let prepare = |progress: &dyn Progress| external.prepare(&sleeping(), None, progress);
        let (error, notices) = interrupted_at(&fixture, "select pg_sleep%", || (), prepare);
        assert!(error.is_interrupted() && notices.is_empty(), "{version}: {error} {notices:?}");
        assert_eq!(fixture.databases(), complete, "{version}");

        // Copying waits for a lock, as dropping does.
        let mut locker = fixture.server.session("postgres").unwrap();
        for (locked, statement) in [("pgdyno_scale_1", "CREATE DATABASE%"), ("pgdyno", "DROP DATABASE%")] {
            external.recreate_database(&1.into(), &host::NoProgress).unwrap();
            locker.execute(&format!("begin; comment on database {locked} is null")).unwrap();
            let recreate = |progress: &dyn Progress| external.recreate_database(&1.into(), progress);
            let (error, notices) = interrupted_at(&fixture, statement, || (), recreate);
            assert!(error.is_interrupted() && notices.is_empty(), "{version}: {error} {notices:?}");
            locker.execute("rollback").unwrap();
        }
        external.recreate_database(&1.into(), &host::NoProgress).unwrap();
        assert_eq!(sums(&fixture.server), "100000 0 1 0 10 0 0", "{version}");
    }
}

#[test]
fn ctrl_c_reports_an_incomplete_database_that_it_has_to_leave() {
    let fixture = Fixture::new("18");
    let external = fixture.connect("bench");
    let find = "select datname::text from pg_database where datname like 'pgdyno_scale_1_%'";
    let mut staying = None;
    // A session of somebody else, which keeps the database from being dropped.
    let join = || staying = Some(fixture.server.session(&fixture.query(find)).unwrap());
    let prepare = |progress: &dyn Progress| external.prepare(&sleeping(), None, progress);
    let (error, notices) = interrupted_at(&fixture, "select pg_sleep%", join, prepare);
    let name = fixture.query(find);
    assert!(error.is_interrupted(), "{error}");
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.contains(&format!("the database {name}, which is not complete, may remain")), "{notice}");
    assert!(notice.contains(&format!("DROP DATABASE {name} removes it")), "{notice}");
    drop(staying);
    assert_eq!(external.drop_databases().unwrap(), [name]);
}

/// A data set whose setup never ends.
fn sleeping() -> Content {
    let sql = "select pg_sleep(3600)".to_owned();
    let statements = vec![Statement { place: "setup.sql:1".to_owned(), sql }];
    let setup =
        Setup { workload: "sleeping".to_owned(), pgbench_tables: false, star_tables: false, statements };
    Content { setup: Some(Arc::new(setup)), ..1.into() }
}

#[test]
fn databases_of_others_are_refused_and_left_alone() {
    // It has a database pgdyno of another origin.
    let fixture = Fixture::from_cluster(
        support::template("18", 1).clone_cluster(&support::cache(), &host::NoProgress).unwrap(),
    );
    fixture.execute("create database pgdyno_scale_7");
    let before = fixture.databases();
    let external = fixture.connect("postgres");
    for (error, name) in [
        (external.prepare(&7.into(), None, &host::NoProgress).unwrap_err(), "pgdyno_scale_7"),
        (external.recreate_database(&1.into(), &host::NoProgress).unwrap_err(), "pgdyno"),
    ] {
        let expected = format!("a database {name} that pgdyno did not create");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    assert_eq!(external.drop_databases().unwrap(), Vec::<String>::new());
    assert_eq!(fixture.databases(), before);
}

#[test]
fn a_copy_that_fails_is_reported_with_its_cause() {
    let fixture = Fixture::new("18");
    let external = fixture.connect("bench");
    let error = external.recreate_database(&3.into(), &host::NoProgress).unwrap_err().to_string();
    assert!(error.contains("template database \"pgdyno_scale_3\" does not exist"), "{error}");
    external.prepare(&1.into(), None, &host::NoProgress).unwrap();
    external.recreate_database(&1.into(), &host::NoProgress).unwrap();
    let staying = fixture.server.session("pgdyno").unwrap();
    let error = external.recreate_database(&1.into(), &host::NoProgress).unwrap_err().to_string();
    assert!(error.contains("the database pgdyno is in use by process"), "{error}");
    assert!(error.contains("of role postgres"), "{error}");
    drop(staying);
    external.recreate_database(&1.into(), &host::NoProgress).unwrap();
    drop(external);

    let plain = fixture.connect("plain");
    let error = plain.prepare(&2.into(), None, &host::NoProgress).unwrap_err().to_string();
    assert!(error.contains("ALTER ROLE \"plain\" CREATEDB"), "{error}");
}

#[test]
fn processes_of_a_server_on_this_machine_are_found() {
    for version in VERSIONS {
        let fixture = Fixture::new(version);
        for conninfo in [fixture.conninfo("bench"), fixture.conninfo("plain")] {
            let external = fixture.try_connect(&conninfo, false).unwrap();
            assert_eq!(external.pid(), Some(fixture.server.pid()), "{version}: {conninfo}");
            assert!(!external.has_hidden_processes());
        }
    }
}

#[test]
fn settings_are_in_force_and_restored_afterwards() {
    for version in VERSIONS {
        let fixture = Fixture::new(version);
        fixture.execute("alter system set work_mem = '5MB'");
        fixture.execute("select pg_reload_conf()");
        let before = fixture.auto_conf();
        assert_eq!(before, "work_mem=5MB");
        let mut external = fixture.connect("postgres");
        let requested =
            settings(&[("WORK_MEM", "7MB"), ("checkpoint_timeout", "30min"), ("log_line_prefix", r"%m '\ ")]);
        external.set(&requested).unwrap();
        assert_eq!(fixture.journals().len(), 1);
        assert_eq!(
            (fixture.show("work_mem"), fixture.show("checkpoint_timeout")),
            ("7MB".to_owned(), "30min".to_owned())
        );
        assert_eq!(fixture.show("log_line_prefix"), r"%m '\ ");
        // Another variant replaces the first.
        external.set(&settings(&[("commit_delay", "10")])).unwrap();
        assert_eq!(
            (fixture.show("work_mem"), fixture.show("commit_delay")),
            ("5MB".to_owned(), "10".to_owned())
        );
        assert_eq!(external.restore_settings().unwrap().settings, ["commit_delay"]);
        assert_eq!(fixture.auto_conf(), before, "{version}");
        assert_eq!(fixture.journals(), Vec::<PathBuf>::new());
        // Dropping restores the settings, too.
        external.set(&requested).unwrap();
        drop(external);
        wait_until("they are restored", || fixture.show("work_mem") == "5MB");
        assert_eq!(fixture.auto_conf(), before, "{version}");
        assert_eq!(fixture.journals(), Vec::<PathBuf>::new());
    }
}

#[test]
fn settings_that_cant_be_in_force_are_refused_and_none_remains() {
    let fixture = Fixture::new("18");
    fixture.execute("alter role postgres set commit_delay = 3");
    let mut external = fixture.connect("postgres");
    for (name, value, why) in [
        ("shared_buffers", "1GB", "needs a restart"),
        ("server_version", "17", "is read-only"),
        ("search_path", "a, b", "list of names"),
        ("work_men", "1GB", "no such setting"),
        ("maintenance_work_mem", "many", "invalid value for parameter"),
        // On the command line of this server.
        ("log_destination", "csvlog", "comes from \"command line\""),
        ("commit_delay", "10", "comes from \"user\""),
    ] {
        let error = external.set(&settings(&[("work_mem", "7MB"), (name, value)])).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
        assert_eq!(fixture.auto_conf(), "", "{name}");
        assert_eq!(fixture.journals(), Vec::<PathBuf>::new());
    }
    assert_eq!(fixture.show("work_mem"), "4MB");
    drop(external);

    let mut read_only = fixture.try_connect(&fixture.conninfo("postgres"), false).unwrap();
    read_only.set(&BTreeMap::new()).unwrap();
    let error = read_only.set(&settings(&[("work_mem", "7MB")])).unwrap_err().to_string();
    assert!(error.contains("allow_settings = true into [servers.theirs]"), "{error}");
    drop(read_only);
    let error = fixture.connect("bench").set(&settings(&[("work_mem", "7MB")])).unwrap_err().to_string();
    assert!(error.contains("the role bench may not change and restore settings"), "{error}");
}

#[test]
fn a_role_with_the_required_privileges_may_change_settings() {
    let fixture = Fixture::new("18");
    fixture.execute(
        "grant execute on function pg_reload_conf(), pg_show_all_file_settings() to plain;
         grant select on pg_file_settings to plain; grant alter system on parameter work_mem to plain",
    );
    let mut external = fixture.connect("plain");
    external.set(&settings(&[("work_mem", "7MB")])).unwrap();
    assert_eq!(fixture.show("work_mem"), "7MB");
    let error =
        external.set(&settings(&[("work_mem", "8MB"), ("commit_delay", "10")])).unwrap_err().to_string();
    assert!(error.contains("permission denied to set parameter \"commit_delay\""), "{error}");
    assert_eq!((fixture.auto_conf(), fixture.journals()), (String::new(), Vec::new()));
}

#[test]
fn a_setting_that_others_have_changed_is_not_restored() {
    let fixture = Fixture::new("18");
    let mut external = fixture.connect("postgres");
    external.set(&settings(&[("work_mem", "7MB"), ("commit_delay", "10")])).unwrap();
    fixture.execute("alter system set work_mem = '9MB'");
    let restored = external.restore_settings().unwrap();
    assert_eq!(restored.settings, ["commit_delay"]);
    assert_eq!(restored.left, ["work_mem"]);
    assert_eq!(fixture.auto_conf(), "work_mem=9MB");
}

/// Runs in a process of its own: sets something on a server that it does not own, reports it, and waits to be killed.
#[test]
fn victim() {
    let Some(conninfo) = role() else { return };
    let cache = Cache::at(Path::new(&std::env::var("PGDYNO_TEST_CACHE").unwrap())).unwrap();
    let mut external = ExternalServer::connect(
        &cache,
        "theirs",
        &Dsn { conninfo, can_change_settings: true },
        &host::NoProgress,
    )
    .unwrap();
    external.set(&settings(&[("work_mem", "7MB"), ("checkpoint_timeout", "30min")])).unwrap();
    println!("\nSET");
    let _ = std::io::stdin().read(&mut [0]);
}

impl Fixture {
    /// A pgdyno sets something and is killed; it lives during `meanwhile`.
    fn change_settings_and_die(&self, conninfo: &str, meanwhile: impl FnOnce()) {
        let directory = self.directory.path().to_str().unwrap();
        let mut child = as_child("victim", conninfo, &[("PGDYNO_TEST_CACHE", directory)]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "SET"), "the victim sets something");
        meanwhile();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(self.auto_conf(), "checkpoint_timeout=30min work_mem=7MB");
    }
}

#[test]
fn settings_of_a_killed_pgdyno_are_restored_by_the_next() {
    for version in VERSIONS {
        let fixture = Fixture::new(version);
        let conninfo = fixture.conninfo("postgres");
        fixture.change_settings_and_die(&conninfo, || {
            assert!(
                restore_settings(&fixture.cache(), &host::NoProgress).unwrap().is_empty(),
                "its owner lives"
            );
            let error = fixture.try_connect(&conninfo, true).unwrap_err();
            assert!(matches!(error, Error::InUse { .. }), "{error}");
        });
        let restored = restore_settings(&fixture.cache(), &host::NoProgress).unwrap();
        let [restored] = restored.as_slice() else { panic!("{restored:?}") };
        assert!(
            restored.notice().ends_with(": restored checkpoint_timeout, work_mem"),
            "{}",
            restored.notice()
        );
        assert_eq!(
            (fixture.auto_conf().as_str(), fixture.show("work_mem").as_str()),
            ("", "4MB"),
            "{version}"
        );
        assert_eq!(fixture.journals(), Vec::<PathBuf>::new());
        assert!(restore_settings(&fixture.cache(), &host::NoProgress).unwrap().is_empty());

        // Connecting to that server does the same.
        fixture.change_settings_and_die(&conninfo, || {});
        fixture.connect("postgres");
        assert_eq!((fixture.auto_conf(), fixture.journals()), (String::new(), Vec::new()), "{version}");
    }
}

#[test]
fn a_journal_is_kept_until_its_server_runs() {
    let fixture = Fixture::new("18");
    let Endpoint::Unix { directory, port } = fixture.server.endpoint(Transport::Unix) else { panic!() };
    fixture.change_settings_and_die(&fixture.conninfo("postgres"), || {});
    let Fixture { server, directory: cache } = fixture;
    let cluster = server.stop(StopMode::Fast).unwrap();
    let down = Cache::at(cache.path()).unwrap();
    let restored = restore_settings(&down, &host::NoProgress).unwrap();
    let [restored] = restored.as_slice() else { panic!("{restored:?}") };
    assert!(restored.outcome.is_err());
    let notice = restored.notice();
    for part in
        ["server theirs", "work_mem", "ALTER SYSTEM RESET \"checkpoint_timeout\"; ", "pgdyno server restore"]
    {
        assert!(notice.contains(part), "{part}: {notice}");
    }

    // It restarts on another port; at its former one, it is found again.
    let server = cluster.start(&settings(&[])).unwrap();
    let fixture = Fixture { server, directory: cache };
    let socket = |port| PathBuf::from(format!("{directory}/.s.PGSQL.{port}"));
    std::os::unix::fs::symlink(socket(fixture.port()), socket(port)).unwrap();
    assert_eq!((fixture.journals().len(), fixture.show("work_mem").as_str()), (1, "7MB"));
    let restored = restore_settings(&fixture.cache(), &host::NoProgress).unwrap();
    assert!(restored[0].outcome.is_ok(), "{}", restored[0].notice());
    assert_eq!((fixture.auto_conf(), fixture.journals()), (String::new(), Vec::new()));
}

#[test]
fn a_journal_is_not_applied_to_another_server() {
    let fixture = Fixture::new("18");
    fixture.change_settings_and_die(&fixture.conninfo("postgres"), || {});
    let Endpoint::Unix { directory, port } = fixture.server.endpoint(Transport::Unix) else { panic!() };
    let other = Fixture::new("18");
    other.execute("alter system set work_mem = '7MB'");
    let Endpoint::Unix { directory: others, .. } = other.server.endpoint(Transport::Unix) else { panic!() };
    let socket = PathBuf::from(format!("{directory}/.s.PGSQL.{port}"));
    fs::rename(&socket, format!("{directory}/aside")).unwrap();
    std::os::unix::fs::symlink(format!("{others}/.s.PGSQL.{}", other.port()), &socket).unwrap();

    let restored = restore_settings(&fixture.cache(), &host::NoProgress).unwrap();
    assert!(
        restored[0].notice().contains("another server runs at this address now"),
        "{}",
        restored[0].notice()
    );
    assert_eq!((other.auto_conf().as_str(), fixture.journals().len()), ("work_mem=7MB", 1));
}

#[test]
fn a_password_is_used_and_not_written_to_disk() {
    let fixture = Fixture::new("13");
    let at = |password: &str| format!("host=127.0.0.1 port={} user=bench {password}", fixture.port());
    let error = fixture.try_connect(&at(""), true).unwrap_err().to_string();
    assert!(error.contains("password"), "{error}");
    let external = fixture.try_connect(&at(&format!("password={PASSWORD}")), true).unwrap();
    external.prepare(&1.into(), None, &host::NoProgress).unwrap();
    assert!(!external.display_name().contains(PASSWORD) && !format!("{external:?}").contains(PASSWORD));
    let connection = external.connection(Transport::Tcp).unwrap();
    assert_eq!((connection.password.as_deref(), connection.database.as_str()), (Some(PASSWORD), "pgdyno"));
    let Endpoint::Conninfo { conninfo } = connection.endpoint else { panic!("{:?}", connection.endpoint) };
    assert!(!conninfo.contains(PASSWORD), "{conninfo}");
    let error = external.connection(Transport::Unix).unwrap_err().to_string();
    assert!(error.contains("connects by tcp"), "{error}");
    drop(external);

    // A superuser, so that there is a journal.
    fixture.execute("alter role bench superuser");
    fixture.change_settings_and_die(
        &format!("postgresql://bench:{PASSWORD}@127.0.0.1:{}", fixture.port()),
        || {},
    );
    assert_eq!(fixture.journals().len(), 1);
    let mut files = vec![fixture.directory.path().to_owned()];
    let mut read = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()), "{path:?}");
        read += 1;
    }
    assert!(read >= 2, "the journal and its lock");
    // Without the password the journal can't be executed; with it, it is.
    let notice = restore_settings(&fixture.cache(), &host::NoProgress).unwrap()[0].notice();
    assert!(notice.contains("PGPASSWORD"), "{notice}");
    fixture.try_connect(&at(&format!("password={PASSWORD}")), false).unwrap();
    assert_eq!((fixture.auto_conf(), fixture.journals()), (String::new(), Vec::new()));
}

#[test]
fn secrets_are_neither_in_errors_nor_in_settings() {
    let fixture = Fixture::new("18");
    for (conninfo, why) in [
        ("postgresql://bench:secret@[::1/", "is invalid"),
        ("password=open secret", "is invalid"),
        ("host=a,b password=secret", "several hosts"),
        (
            &format!("{} require_auth=scram-sha-256 password=secret", fixture.conninfo("bench")),
            "authentication method requirement \"scram-sha-256\" failed",
        ),
        ("sslmode=maybe password=secret", "invalid sslmode value"),
    ] {
        let error = fixture.try_connect(conninfo, false).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("secret"), "{error}");
    }
    fixture.execute("alter system set primary_conninfo = 'host=primary password=secret'");
    fixture.execute("select pg_reload_conf()");
    wait_until("it is set", || fixture.show("primary_conninfo").contains("secret"));
    let settings = fixture.connect("postgres").settings().unwrap();
    let primary = settings.iter().find(|setting| setting.name == "primary_conninfo").unwrap();
    assert_eq!(primary.value, "(masked)");
}

#[test]
fn tls_is_verified_as_requested() {
    let issuer = |name: &str| {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, other) = (issuer("ours"), issuer("other"));
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
    let cluster = Cluster::empty(&support::cache(), &installed("18"), &[]).unwrap();
    let data = cluster.data_directory();
    let owner = fs::metadata(&data).unwrap();
    for (name, content) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
        fs::write(data.join(name), content).unwrap();
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        chown(data.join(name), Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let cluster = cluster.with_rules("local all all trust\nhostssl all all all scram-sha-256\n");
    let server = cluster.start(&settings(&[("ssl", "on")])).unwrap();
    server
        .session("postgres")
        .unwrap()
        .execute(&format!("alter role postgres password '{PASSWORD}'"))
        .unwrap();
    let directory = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let fixture = Fixture { server, directory };
    let file = |name: &str, pem: String| {
        let path = fixture.directory.path().join(name);
        fs::write(&path, pem).unwrap();
        path.display().to_string()
    };
    let (ours, other) = (file("ours.crt", ours.pem()), file("other.crt", other.pem()));
    let start = format!("host=localhost port={} user=postgres password={PASSWORD}", fixture.port());
    for (conninfo, refused) in [
        (format!("sslmode=verify-full sslrootcert={ours}"), None),
        (format!("sslmode=verify-full channel_binding=require sslrootcert={ours}"), None),
        (format!("sslmode=require sslnegotiation=direct sslrootcert={ours}"), None),
        ("sslmode=allow".to_owned(), None),
        ("sslmode=prefer".to_owned(), None),
        ("sslmode=disable".to_owned(), Some("no pg_hba.conf entry")),
        (format!("sslmode=verify-ca sslrootcert={other}"), Some("SSL error: certificate verify failed")),
        (format!("sslmode=verify-full host=127.0.0.1 sslrootcert={ours}"), Some("127.0.0.1")),
        ("sslmode=verify-ca sslrootcert=/nonexistent".to_owned(), Some("/nonexistent")),
    ] {
        let outcome = fixture.try_connect(&format!("{start} {conninfo}"), false);
        match (outcome, refused) {
            (Ok(_), None) => {}
            (Err(error), Some(why)) => assert!(error.to_string().contains(why), "{conninfo}: {error}"),
            (outcome, _) => panic!("{conninfo}: {outcome:?}"),
        }
    }
}
