//! Databases of the user's own: dumps, base backups and templates, made by PostgreSQL's own programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use host::{Cache, Contents, Progress};
use model::dataset::{DatabaseKind, DatasetSource, OwnDatabase};
use model::message::Endpoint;
use model::server::Dsn;
use model::workload::Transport;
use server::{Cluster, Content, Dataset, Error, ExternalServer, Server, Template, check_source, disk_need};
use skip::skip;
use support::{installed, settings};
use tempfile::TempDir;
use wire::blocking::Session;

/// Major of the programs that dump: those of Debian 12. Older and newer servers restore it.
const SOURCE: &str = "15";
const RESTORED: [&str; 2] = ["15", "18"];

/// Statements that try what a reader of dumps can get wrong.
const SHOP: &str = r#"
    create role shop_owner nologin; create role "the ""reader""" nologin;
    create table customers (id int primary key, name text not null, note text default 'a;b');
    insert into customers select i, 'customer ' || i, repeat('x', i % 50) from generate_series(1, 5000) i;
    insert into customers values (9001, E'\\.', E'tab\there'), (9002, E'new\nline\\', null), (9003, 'ünï', E'\r\n\\.\n');
    alter table customers owner to shop_owner;
    grant select on customers to "the ""reader""";
    create table orders (id bigserial primary key, customer int references customers, total numeric generated always as (1.5) stored);
    insert into orders (customer) select i % 5000 + 1 from generate_series(1, 20000) i;
    create view big as select * from orders where id > 10;
    create function one(text) returns int language plpgsql as $body$ begin /* ; \ $$ ' */ return 1; end $body$;
    create function two() returns int begin atomic select 1; select case when true then 2 end; end;
    create rule two_commands as on update to big do instead (insert into customers values (-1, ';'); delete from customers where id = -1);
    comment on table orders is E'a comment; with \\. and \'quotes\'';
    select lo_from_bytea(4711, 'large; object');
"#;
const CHECK: &str = "select format('%s %s %s %s %s %s %s %s',
    (select count(*) from customers), (select md5(string_agg(c::text, '|' order by id)) from customers c),
    (select count(*) || ' ' || sum(customer) || ' ' || sum(total) from orders), one(''), two(), nextval('orders_id_seq'),
    obj_description('orders'::regclass), convert_from(lo_get(4711), 'UTF8'))";
const OWNER: &str = "select format('%s %s %s', tableowner, (select rolcanlogin from pg_roles where rolname = 'shop_owner'),
    has_table_privilege('the \"reader\"', 'customers', 'select')) from pg_tables where tablename = 'customers'";

/// A server with the database `shop`, a directory for what is made of it, and a cache.
struct Source {
    server: Server,
    place: TempDir,
}

impl Source {
    /// None if the programs are missing.
    fn new() -> Option<Self> {
        for program in ["pg_dump", "pg_restore", "pg_basebackup", "gzip"] {
            if !Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success()) {
                skip(format!("{program} is not installed"));
                return None;
            }
        }
        let cluster = Cluster::empty(&support::cache(), &installed(SOURCE), &[]).unwrap();
        let server = cluster
            .with_rules("local all all trust\nlocal replication all trust\n")
            .start(&settings(&[]))
            .unwrap();
        server.session("postgres").unwrap().execute("create database shop").unwrap();
        server.session("shop").unwrap().execute(SHOP).unwrap();
        let place = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { server, place })
    }

    fn cache(&self) -> Cache {
        let directory = self.path("cache");
        fs::create_dir_all(&directory).unwrap();
        Cache::at(&directory).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Options that connect a program to the server.
    fn connection(&self, user: &str) -> Vec<String> {
        let Endpoint::Unix { directory, port } = self.server.endpoint(Transport::Unix) else {
            panic!("no socket")
        };
        ["-h", &directory, "-p", &port.to_string(), "-U", user].map(str::to_owned).to_vec()
    }

    fn run(&self, program: &str, user: &str, args: &[&str]) {
        let output = Command::new(program).args(self.connection(user)).args(args).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A dump of the database.
    fn dump(&self, name: &str, args: &[&str]) -> PathBuf {
        let path = self.path(name);
        let file = format!("--file={}", path.display());
        self.run("pg_dump", "postgres", &[args, &[&file, "shop"]].concat());
        path
    }

    fn backup(&self, name: &str, args: &[&str]) -> PathBuf {
        let path = self.path(name);
        let directory = format!("--pgdata={}", path.display());
        self.run("pg_basebackup", "postgres", &[args, &["--checkpoint=fast", &directory]].concat());
        path
    }

    fn template(&self, version: &str, source: &DatasetSource) -> Result<Template, Error> {
        server::template(
            &self.cache(),
            &installed(version),
            &[],
            &content(source),
            Some(source),
            &host::NoProgress,
        )
    }

    /// A server on a copy of a template.
    fn started(&self, version: &str, source: &DatasetSource) -> Server {
        let template =
            self.template(version, source).unwrap_or_else(|error| panic!("{source:?} in {version}: {error}"));
        template.clone_cluster(&self.cache(), &host::NoProgress).unwrap().start(&settings(&[])).unwrap()
    }

    /// Why a dump with this text can't be restored in a major.
    fn error(&self, version: &str, text: &str) -> String {
        let path = self.path("edited.sql");
        fs::write(&path, text).unwrap();
        let error = self.template(version, &DatasetSource::Dump(path)).unwrap_err().to_string();
        assert_eq!(fs::read_dir(self.cache().clusters()).unwrap().count(), 0, "{error}");
        error
    }
}

fn content(source: &DatasetSource) -> Content {
    let contents = source.path().map(|path| Contents::read(path, &host::NoProgress).unwrap());
    let own = OwnDatabase {
        name: "shop".to_owned(),
        kind: source.kind(),
        database: source.database().map(str::to_owned),
        bytes: contents.as_ref().map(|contents| contents.bytes),
        content: contents.map(|contents| contents.sha256),
    };
    Content { own: Some(Arc::new(own)), ..1.into() }
}

fn query(server: &Server, database: &str, sql: &str) -> String {
    server.session(database).unwrap().query_one(sql).unwrap()
}

#[test]
fn dumps_in_every_format_are_restored_exactly_into_older_and_newer_servers() {
    let Some(source) = Source::new() else { return };
    let plain = source.dump("shop.sql", &[]);
    let gzip = source.path("shop.sql.gz");
    fs::write(&gzip, Command::new("gzip").arg("-c").arg(&plain).output().unwrap().stdout).unwrap();
    let zstd = source.path("shop.sql.zst");
    fs::write(&zstd, zstd::encode_all(fs::File::open(&plain).unwrap(), 1).unwrap()).unwrap();
    let dumps = [
        plain,
        gzip,
        zstd,
        source.dump("shop.dump", &["--format=custom"]),
        source.dump("shop.directory", &["--format=directory"]),
        source.dump("shop.tar", &["--format=tar"]),
        source.dump("create.sql", &["--create", "--clean"]),
        source.dump("inserts.sql", &["--rows-per-insert=100"]),
    ];
    let expected = query(&source.server, "shop", CHECK);
    assert!(expected.starts_with("5003 ") && expected.ends_with("large; object"), "{expected}");
    let owner = query(&source.server, "shop", OWNER);
    assert_eq!(owner, "shop_owner f t");
    for (nth, dump) in dumps.into_iter().enumerate() {
        for version in RESTORED.into_iter().take(if nth < 4 { 2 } else { 1 }) {
            let server = source.started(version, &DatasetSource::Dump(dump.clone()));
            assert_eq!(query(&server, "pgdyno", CHECK), expected, "{} in {version}", dump.display());
            assert_eq!(query(&server, "pgdyno", OWNER), owner, "{} in {version}", dump.display());
            let analyzed = "select count(*)::text from pg_stats where tablename = 'customers'";
            assert_eq!(query(&server, "pgdyno", analyzed), "3", "vacuumed and analyzed");
        }
    }
}

#[test]
fn an_unchanged_dump_is_restored_once_and_a_changed_one_is_another_data_set() {
    struct Steps(std::sync::Mutex<Vec<String>>);
    impl Progress for Steps {
        fn step(&self, what: &str, _: u64, _: Option<u64>) {
            self.0.lock().unwrap().push(what.to_owned());
        }
    }
    let Some(source) = Source::new() else { return };
    let dump = DatasetSource::Dump(source.dump("shop.sql", &[]));
    let restored = |content: &Content| {
        let steps = Steps(Vec::new().into());
        let template =
            server::template(&source.cache(), &installed("18"), &[], content, Some(&dump), &steps).unwrap();
        let restores = steps.0.into_inner().unwrap().iter().any(|step| step.contains("restoring"));
        (template.name().to_owned(), restores)
    };
    let before = content(&dump);
    let (name, restores) = restored(&before);
    assert!(restores && name.contains("-dump-"), "{name}");
    assert_eq!(restored(&before), (name.clone(), false));

    // The same content elsewhere is the same data set.
    let moved = source.path("moved.sql");
    fs::copy(dump.path().unwrap(), &moved).unwrap();
    assert_eq!(content(&DatasetSource::Dump(moved)), before);

    source.server.session("shop").unwrap().execute("insert into customers values (10000, 'new')").unwrap();
    source.dump("shop.sql", &[]);
    let (changed, restores) = restored(&content(&dump));
    assert!(restores && changed != name, "{changed}");

    // A run that began with the former content does not continue with another one.
    let former =
        server::templates(&source.cache()).unwrap().into_iter().find(|one| one.name() == name).unwrap();
    assert_eq!(former.own().map(|own| own.kind), Some(DatabaseKind::Dump));
    former.remove(&source.cache()).unwrap();
    let error =
        server::template(&source.cache(), &installed("18"), &[], &before, Some(&dump), &host::NoProgress)
            .unwrap_err();
    let undefined =
        server::template(&source.cache(), &installed("18"), &[], &before, None, &host::NoProgress)
            .unwrap_err();
    assert!(undefined.to_string().contains("the campaign defines another of that name"), "{undefined}");
    assert!(
        error.to_string().contains("shop.sql can't be used: it has changed since the run began"),
        "{error}"
    );
}

#[test]
fn what_is_no_sound_dump_is_refused_with_its_place() {
    let Some(source) = Source::new() else { return };
    let text = fs::read_to_string(source.dump("shop.sql", &[])).unwrap();
    let line_of = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;

    for part in ["customer 77\t", "CREATE VIEW public.big", "-- PostgreSQL database dump complete"] {
        let error = source.error("15", &text[..text.find(part).unwrap()]);
        assert!(
            error.contains("edited.sql can't be restored: it is truncated, after line "),
            "{part}: {error}"
        );
    }

    let extended = text
        .replace("CREATE VIEW", "CREATE EXTENSION IF NOT EXISTS nonesuch WITH SCHEMA public;\nCREATE VIEW");
    let error = source.error("18", &extended);
    let place =
        format!("edited.sql:{} (CREATE EXTENSION IF NOT EXISTS nonesuch", line_of(&extended, "nonesuch"));
    assert!(
        error.contains(&place) && error.contains("needs the extension nonesuch: use programs"),
        "{error}"
    );

    let witness = source.path("witness");
    let shell = format!("\\! touch {}\n", witness.display());
    for (edit, expected) in [
        (shell.clone(), "a command of psql is not executed"),
        (format!("select 1 {shell}"), "a command of psql is not executed"),
        (format!("COPY customers FROM PROGRAM 'touch {}';\n", witness.display()), "other than FROM stdin"),
        ("\\connect other\n".to_owned(), "several databases"),
        ("\\i /etc/passwd\n".to_owned(), "a command of psql"),
        ("SET client_encoding = 'LATIN1';\n".to_owned(), "--encoding=UTF8"),
        ("SET standard_conforming_strings = off;\n".to_owned(), "backslash escapes"),
        (
            "CREATE TABLE broken (a nonesuch);\n".to_owned(),
            "(CREATE TABLE broken (a nonesuch)) on PostgreSQL 15",
        ),
    ] {
        let at = line_of(&text, "CREATE VIEW");
        let error = source.error("15", &text.replace("CREATE VIEW", &format!("{edit}CREATE VIEW")));
        assert!(error.contains(expected) && error.contains(&format!("edited.sql:{at}")), "{edit}: {error}");
    }
    assert!(!witness.exists());

    // What the lines that guard psql look like in newer dumps.
    let guarded = format!("\\restrict abc\n{text}\n\\unrestrict abc\n").replace(
        "SET row_security",
        "SET nonesuch_timeout = 0;\nSET default_tablespace = fast;\nSET row_security",
    );
    fs::write(source.path("guarded.sql"), guarded).unwrap();
    source.started("15", &DatasetSource::Dump(source.path("guarded.sql")));

    // No value of the data is in the message.
    let error = source.error("15", &text.replace("77\tcustomer 77\t", "private\tcustomer 77\t"));
    let edited = text.replace("77\tcustomer 77\t", "private\tcustomer 77\t");
    let place = format!("edited.sql:{} (COPY public.customers", line_of(&edited, "private"));
    assert!(error.contains(&place) && error.contains("invalid input syntax"), "{error}");
    assert!(!error.contains("private"), "{error}");

    assert!(source.error("15", "-- PostgreSQL database cluster dump\n").contains("pg_dumpall"));
    assert!(source.error("15", "").contains("it is empty"));
    assert!(source.error("15", "BZh91AY").contains("bzip2"));
    assert!(source.error("15", "toc.dat\0").contains("a binary file"));
    let mut huge = content(&DatasetSource::Dump(source.dump("shop.sql", &[])));
    let own = Arc::make_mut(huge.own.as_mut().unwrap());
    (own.content, own.bytes) = (None, Some(1 << 50));
    let programs = installed("15");
    let dataset = Dataset { installation: &programs, initdb: &[], content: &huge, copies: 1 };
    let error =
        disk_need(&source.cache(), &[dataset]).unwrap().check(&source.cache()).unwrap_err().to_string();
    assert!(error.contains("data set shop: the data set, at least"), "{error}");
    let missing = DatasetSource::Dump(source.path("missing.sql"));
    let error = check_source(&missing, None, None).unwrap_err().to_string();
    assert!(error.contains("missing.sql"), "{error}");
}

#[test]
fn damaged_archives_are_refused() {
    let Some(source) = Source::new() else { return };
    let plain = source.dump("shop.sql", &[]);
    let compressed = Command::new("gzip").arg("-c").arg(&plain).output().unwrap().stdout;
    let custom = fs::read(source.dump("shop.dump", &["--format=custom"])).unwrap();
    for (name, bytes, expected) in [
        ("cut.sql.gz", &compressed[..compressed.len() / 2], "truncated or damaged"),
        ("cut.dump", &custom[..custom.len() / 2], "pg_restore failed"),
        ("head.dump", &custom[..40], "pg_restore failed"),
    ] {
        fs::write(source.path(name), bytes).unwrap();
        let error = source.template("15", &DatasetSource::Dump(source.path(name))).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
    assert!(server::templates(&source.cache()).unwrap().is_empty());
}

#[test]
fn ctrl_c_while_a_dump_is_restored_leaves_nothing() {
    /// Interrupts as seen by threads other than the one that restores, which waits for a statement.
    struct Interrupting(ThreadId);
    impl Progress for Interrupting {
        fn step(&self, _: &str, _: u64, _: Option<u64>) {}
        fn interrupted(&self) -> bool {
            thread::current().id() != self.0
        }
    }
    let Some(source) = Source::new() else { return };
    let path = source.dump("shop.sql", &[]);
    let text = fs::read_to_string(&path).unwrap() + "SELECT pg_sleep(3600);\n";
    fs::write(&path, text).unwrap();
    let dump = DatasetSource::Dump(path);
    let cache = source.cache();
    let interrupting = Interrupting(thread::current().id());
    let error = server::template(&cache, &installed("18"), &[], &content(&dump), Some(&dump), &interrupting);
    let error = error.unwrap_err();
    assert!(error.to_string().contains("connection") || error.is_interrupted(), "{error}");
    for directory in [cache.clusters(), cache.templates()] {
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "{}", directory.display());
    }
}

/// Settings that would run programs, wait for WAL, or make the server a standby.
fn plant(backup: &Path, witness: &Path) {
    let touch = format!("touch {}", witness.display());
    let settings = format!(
        "archive_mode = on\narchive_command = '{touch}'\narchive_cleanup_command = '{touch}'\nrestore_command = '{touch}'\n\
         shared_preload_libraries = 'nonesuch'\nwork_mem = '77MB'\nhba_file = '/nonesuch'\n"
    );
    for file in ["postgresql.conf", "postgresql.auto.conf"] {
        let path = backup.join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text + &settings).unwrap();
    }
    fs::write(backup.join("pg_hba.conf"), "local all all reject\n").unwrap();
    for signal in ["standby.signal", "recovery.signal"] {
        fs::write(backup.join(signal), "").unwrap();
    }
}

#[test]
fn a_base_backup_is_recovered_without_anything_of_its_source_but_the_data() {
    let Some(source) = Source::new() else { return };
    // Its superuser has another name, which pgdyno does not know, and its stored settings would override a campaign's.
    let mut session = source.server.session("postgres").unwrap();
    for statement in [
        "create role boss superuser login password 'hunter2'",
        "alter database shop set work_mem = '66MB'",
        "alter role all set work_mem = '55MB'",
        "set session authorization boss",
    ] {
        session.execute(statement).unwrap();
    }
    session.execute("alter role postgres rename to admin").unwrap();
    // It would connect to its publisher.
    let subscription =
        "create subscription s connection 'host=/nonesuch dbname=x' publication p with (connect = false)";
    let mut params = source.server.socket_params();
    (params.user, params.database) = ("boss".to_owned(), "shop".to_owned());
    let mut shop = Session::connect(&params).unwrap();
    shop.execute(subscription).unwrap();
    shop.execute("alter subscription s enable").unwrap();
    let backup = |name: &str, args: &[&str]| {
        let directory = format!("--pgdata={}", source.path(name).display());
        source.run("pg_basebackup", "boss", &[args, &["--checkpoint=fast", &directory]].concat());
        source.path(name)
    };
    let witness = source.path("witness");
    let plain = backup("plain", &[]);
    plant(&plain, &witness);
    let backups = [plain, backup("tar", &["--format=tar"]), backup("gz", &["--format=tar", "--gzip"])];
    for directory in backups {
        let own = DatasetSource::BaseBackup { directory: directory.clone(), database: "shop".to_owned() };
        check_source(&own, Some(installed("15").version().major()), None).unwrap();
        let server = source.started("15", &own);
        let what = directory.display();
        assert!(query(&server, "pgdyno", CHECK).starts_with("5003 "), "{what}");
        assert_eq!(query(&server, "pgdyno", "show work_mem"), "4MB", "{what}");
        assert_eq!(query(&server, "pgdyno", "show archive_mode"), "off", "{what}");
        assert_eq!(query(&server, "pgdyno", "select pg_is_in_recovery()::text"), "false", "{what}");
        let enabled = "select subenabled::text from pg_subscription";
        assert_eq!(query(&server, "postgres", enabled), "false", "{what}");
        let secrets = "select count(rolpassword)::text from pg_authid where rolname = 'boss'";
        assert_eq!(query(&server, "postgres", secrets), "0", "{what}");
        let files: Vec<_> = ["standby.signal", "recovery.signal", "backup_label", "postmaster.opts.old"]
            .into_iter()
            .filter(|name| server.data_directory().join(name).exists())
            .collect();
        assert!(files.is_empty(), "{what}: {files:?}");
    }
    assert!(!witness.exists(), "a command of the source has run");
}

#[test]
fn base_backups_that_do_not_fit_are_refused_before_a_server_starts() {
    let Some(source) = Source::new() else { return };
    let directory = source.backup("plain", &[]);
    let tar = source.backup("tar", &["--format=tar", "--gzip"]);
    let with = |directory: &Path, database: &str| DatasetSource::BaseBackup {
        directory: directory.to_owned(),
        database: database.to_owned(),
    };
    let major = |version: &str| Some(installed(version).version().major());
    for directory in [&directory, &tar] {
        let error = check_source(&with(directory, "shop"), major("18"), None).unwrap_err().to_string();
        assert!(error.contains("it is of PostgreSQL 15, and a server of 18 can't read its files"), "{error}");
    }
    let error = source.template("15", &with(&directory, "nonesuch")).unwrap_err().to_string();
    assert!(error.contains("has no database \"nonesuch\"; it has postgres, shop"), "{error}");

    let refused =
        |directory: &Path| check_source(&with(directory, "shop"), None, None).unwrap_err().to_string();
    assert!(refused(&source.path("cache")).contains("neither PG_VERSION nor base.tar"));
    fs::write(directory.join("postmaster.pid"), "1").unwrap();
    assert!(refused(&directory).contains("of a running server"));
    fs::remove_file(directory.join("postmaster.pid")).unwrap();
    std::os::unix::fs::symlink("/tmp", directory.join("pg_tblspc/16400")).unwrap();
    assert!(refused(&directory).contains("it has tablespaces (16400 is one)"));
    fs::remove_file(directory.join("pg_tblspc/16400")).unwrap();

    let without_wal = source.backup("without-wal", &["--wal-method=none"]);
    let error = source.template("15", &with(&without_wal, "shop")).unwrap_err().to_string();
    assert!(error.contains("could not recover") && error.contains("--wal-method=stream"), "{error}");
    fs::write(directory.join("base/1/1259"), "damaged").unwrap();
    source.template("15", &with(&directory, "shop")).unwrap_err();
    assert!(server::templates(&source.cache()).unwrap().is_empty());
}

#[test]
fn a_template_is_copied_on_its_own_server_and_left_as_it_is() {
    let Some(source) = Source::new() else { return };
    let Endpoint::Unix { directory, port } = source.server.endpoint(Transport::Unix) else {
        panic!("no socket")
    };
    let conninfo = format!("host={directory} port={port} user=postgres");
    let connect = || {
        let dsn = Dsn { conninfo: conninfo.clone(), can_change_settings: false };
        ExternalServer::connect(&source.cache(), "theirs", &dsn, &host::NoProgress).unwrap()
    };
    let own = DatasetSource::Template("shop".to_owned());
    let external = connect();
    let prepare = |own: &DatasetSource| external.prepare(&content(own), Some(own), &host::NoProgress);

    let busy = source.server.session("shop").unwrap();
    let error = prepare(&own).unwrap_err().to_string();
    assert!(
        error.contains("the database shop is in use by process") && error.contains("end them"),
        "{error}"
    );
    drop(busy);
    let error = prepare(&DatasetSource::Template("nonesuch".to_owned())).unwrap_err().to_string();
    assert!(error.contains("has no database \"nonesuch\"; it has postgres, shop"), "{error}");

    prepare(&own).unwrap();
    // From now on the user's database may be used, and changed.
    let mut theirs = source.server.session("shop").unwrap();
    theirs.execute("delete from orders; delete from customers").unwrap();
    for _ in 0..2 {
        external.recreate_database(&content(&own), &host::NoProgress).unwrap();
        let count = "select count(*)::text from customers";
        assert_eq!(query(&source.server, "pgdyno", count), "5003");
        source.server.session("pgdyno").unwrap().execute("truncate customers cascade").unwrap();
        assert_eq!(query(&source.server, "pgdyno", count), "0");
    }
    // A dump on the same server: roles are its owner's, so that a missing one is an error.
    let dump = source.dump("shop.sql", &[]);
    let text = fs::read_to_string(&dump).unwrap().replace("shop_owner", "nonesuch");
    fs::write(&dump, text).unwrap();
    let dump = DatasetSource::Dump(dump);
    let error = external.prepare(&content(&dump), Some(&dump), &host::NoProgress).unwrap_err().to_string();
    assert!(error.contains("CREATE ROLE \"nonesuch\" NOLOGIN") && error.contains("--no-owner"), "{error}");
    let dump = DatasetSource::Dump(source.dump("shop.sql", &[]));
    external.prepare(&content(&dump), Some(&dump), &host::NoProgress).unwrap();
    external.recreate_database(&content(&dump), &host::NoProgress).unwrap();
    assert_eq!(query(&source.server, "pgdyno", "select count(*)::text from customers"), "0");

    let dropped = external.drop_databases().unwrap();
    assert!(dropped.len() == 3 && !dropped.contains(&"shop".to_owned()), "{dropped:?}");
    assert_eq!(query(&source.server, "shop", "select count(*)::text from customers"), "0");
}
