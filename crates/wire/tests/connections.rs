//! Sessions with real servers: TLS, authentication and statements.

#[cfg(test)]
mod auth_server;

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use skip::skip;
use wire::blocking::{Session, SessionError};
use wire::{ResultSet, Values, encode};

use auth_server::{AuthServer, Certificate, MAJORS, NEWEST, has_openssl, openssl, unused_port};

#[test]
fn sslmode_decides_the_use_and_verification_of_tls() {
    for major in MAJORS {
        let server = AuthServer::new(major, Certificate::Signed).with_roles();
        let port = server.port();
        let tls = |conninfo: &str| server.tls_version(conninfo).map(|version| version.unwrap_or_default());
        let used = |version: &str| Ok(version.to_owned());
        for (conninfo, version) in [
            ("sslmode=disable", ""),
            ("sslmode=allow", ""),
            ("sslmode=allow user=only_tls", "TLSv1.3"),
            ("sslmode=prefer", "TLSv1.3"),
            ("sslmode=prefer user=only_plain", ""),
            ("sslmode=require", "TLSv1.3"),
            ("sslmode=require sslsni=0 hostaddr=127.0.0.1", "TLSv1.3"),
            ("sslmode=require ssl_max_protocol_version=TLSv1.2", "TLSv1.2"),
            ("sslmode=verify-ca host=127.0.0.1 sslrootcert={dir}/root.crt", "TLSv1.3"),
            ("sslmode=verify-full sslrootcert={dir}/root.crt", "TLSv1.3"),
            ("sslmode=verify-full hostaddr=127.0.0.1 sslrootcert={dir}/root.crt", "TLSv1.3"),
            // As in libpq, TLS that cannot be verified is not used if it is only preferred.
            ("sslmode=prefer sslrootcert={dir}/other.crt", ""),
            ("sslmode=prefer sslrootcert={dir}/client.key", ""),
        ] {
            assert_eq!(tls(conninfo), used(version), "{major} {conninfo}");
        }
        let failed = "connection to server at \"localhost\" (127.0.0.1)";
        for (conninfo, expected) in [
            (
                "sslmode=disable user=only_tls hostaddr=127.0.0.1",
                format!("{failed}, port {port} failed: FATAL:"),
            ),
            (
                "sslmode=verify-full host=127.0.0.1 sslrootcert={dir}/root.crt",
                "server certificate does not match host name \"127.0.0.1\"".to_owned(),
            ),
            (
                "sslmode=verify-ca sslrootcert={dir}/other.crt",
                "certificate verify failed: UnknownIssuer".to_owned(),
            ),
            // A root that exists is used for verification in any mode.
            (
                "sslmode=require sslrootcert={dir}/other.crt",
                "certificate verify failed: UnknownIssuer".to_owned(),
            ),
            ("sslmode=verify-ca", "/home/.postgresql/root.crt\" does not exist".to_owned()),
            (
                "sslmode=verify-full host='' hostaddr=127.0.0.1 sslrootcert={dir}/root.crt",
                "host name must be specified for a verified SSL connection".to_owned(),
            ),
            (
                "sslmode=require sslrootcert={dir}/client.key",
                "could not read root certificate file".to_owned(),
            ),
        ] {
            let error = tls(conninfo).unwrap_err();
            assert!(error.contains(&expected), "{major} {conninfo}: {error}");
        }
        // Both attempts are reported.
        let error = tls("sslmode=prefer user=nobody").unwrap_err();
        assert_eq!(error.matches("FATAL: ").count(), 2, "{error}");
        let direct = tls("sslmode=require sslnegotiation=direct");
        if major == "18" {
            assert_eq!(direct, used("TLSv1.3"));
        } else {
            assert!(direct.is_err());
        }
    }
}

#[test]
fn a_server_without_tls_is_reported() {
    let server = AuthServer::new(NEWEST, Certificate::None);
    assert_eq!(server.tls_version("sslmode=prefer"), Ok(None));
    assert_eq!(server.tls_version("sslmode=allow"), Ok(None));
    let error = server.tls_version("sslmode=require").unwrap_err();
    assert!(error.ends_with("failed: server does not support SSL, but SSL was required"), "{error}");
}

/// Certificates made as in PostgreSQL's manual.
#[test]
fn legacy_certificates_are_verified() {
    if !has_openssl() {
        return skip("no openssl is installed here");
    }
    for certificate in [Certificate::Version1, Certificate::SelfSigned] {
        let server = AuthServer::new(NEWEST, certificate).with_roles();
        for conninfo in [
            "sslmode=require",
            "sslmode=verify-ca host=127.0.0.1 sslrootcert={dir}/root.crt",
            "sslmode=verify-full sslrootcert={dir}/root.crt",
            "sslmode=verify-full sslrootcert={dir}/root.crt ssl_max_protocol_version=TLSv1.2",
            "sslmode=require user=scram password='of scram' channel_binding=require",
        ] {
            assert!(server.tls_version(conninfo).unwrap().is_some(), "{conninfo}");
        }
        let error =
            server.tls_version("sslmode=verify-full host=127.0.0.1 sslrootcert={dir}/root.crt").unwrap_err();
        let expected = "server certificate for \"localhost\" does not match host name \"127.0.0.1\"";
        assert!(error.ends_with(expected), "{error}");
        let error = server.tls_version("sslmode=verify-ca sslrootcert={dir}/other.crt").unwrap_err();
        assert!(error.contains("certificate verify failed"), "{error}");
    }
}

#[test]
fn passwords_and_channel_binding_are_verified() {
    for major in MAJORS {
        let server = AuthServer::new(major, Certificate::Signed).with_roles();
        for tls in ["sslmode=disable", "sslmode=require", "sslmode=require ssl_max_protocol_version=TLSv1.2"]
        {
            for method in ["scram", "md5", "clear"] {
                let conninfo = |more: &str| format!("{tls} user={method} {more}");
                let connect = |more: &str| server.connect(&conninfo(more)).map(drop);
                let right = format!("password='of {method}'");
                assert_eq!(connect(&right), Ok(()), "{major} {tls} {method}");
                assert_eq!(
                    connect(&format!("{right} channel_binding=disable")),
                    Ok(()),
                    "{major} {tls} {method}"
                );
                let wrong = connect("password=wrong").unwrap_err();
                let expected = format!("FATAL:  password authentication failed for user \"{method}\"");
                assert!(wrong.ends_with(&expected), "{wrong}");
                let missing = connect("").unwrap_err();
                assert!(missing.ends_with("fe_sendauth: no password supplied"), "{missing}");
                let bound = connect(&format!("{right} channel_binding=require"));
                match (tls, method) {
                    ("sslmode=disable", "scram") => {
                        assert!(bound.unwrap_err().ends_with("channel binding required, but SSL not in use"));
                    }
                    (_, "scram") => assert_eq!(bound, Ok(()), "{major} {tls}"),
                    _ => assert!(bound.unwrap_err().contains("channel binding required but not supported")),
                }
                let required = connect(&format!("{right} require_auth=scram-sha-256"));
                assert_eq!(required.is_ok(), method == "scram", "{required:?}");
            }
        }
        let error = server.connect("channel_binding=require sslmode=require").unwrap_err();
        assert!(error.contains("server authenticated client without channel binding"), "{error}");
        fs::write(server.file("passes"), "*:*:*:scram:of scram\n*:*:*:md5:wrong\n").unwrap();
        fs::set_permissions(server.file("passes"), Permissions::from_mode(0o600)).unwrap();
        assert!(server.connect("passfile={dir}/passes user=scram").is_ok());
        let error = server.connect("passfile={dir}/passes user=md5 sslmode=disable").unwrap_err();
        let file = server.file("passes");
        assert!(
            error.trim_end().ends_with(&format!("password retrieved from file \"{}\"", file.display())),
            "{error}"
        );
    }
}

#[test]
fn client_certificates_are_sent() {
    let server = AuthServer::new(NEWEST, Certificate::Signed).with_roles();
    let with_key = |key: &str| {
        server.tls_version(&format!(
            "user=certified sslmode=require sslcert={{dir}}/client.crt sslkey={{dir}}/{key}"
        ))
    };
    let shown = Ok(Some("TLSv1.3".to_owned()));
    assert_eq!(with_key("client.key"), shown);
    let error = server.connect("user=certified sslmode=require").unwrap_err();
    assert!(error.contains("FATAL:  connection requires a valid client certificate"), "{error}");
    let error = with_key("nowhere.key").unwrap_err();
    assert!(error.contains("certificate present, but not private key file"), "{error}");
    let error = with_key("server.key").unwrap_err();
    assert!(error.contains("certificate does not match private key file"), "{error}");
    fs::set_permissions(server.file("client.key"), Permissions::from_mode(0o644)).unwrap();
    let error = with_key("client.key").unwrap_err();
    assert!(
        error.contains("has group or world access; file must have permissions u=rw (0600) or less"),
        "{error}"
    );
    if !has_openssl() {
        return skip("keys of other forms, for no openssl is installed here");
    }
    let directory = server.file("");
    openssl(&directory, "ec -in client.key -out sec1.key");
    assert!(fs::read_to_string(server.file("sec1.key")).unwrap().contains("BEGIN EC PRIVATE KEY"));
    assert_eq!(with_key("sec1.key"), shown);
    openssl(
        &directory,
        "req -new -newkey rsa:2048 -nodes -keyout rsa.key -subj /CN=certified -out client.csr",
    );
    openssl(
        &directory,
        "x509 -req -in client.csr -days 30 -CA root.crt -CAkey issuer.key -CAcreateserial -out client.crt",
    );
    assert_eq!(with_key("rsa.key"), shown);
    openssl(&directory, "rsa -in rsa.key -traditional -out pkcs1.key");
    assert!(fs::read_to_string(server.file("pkcs1.key")).unwrap().contains("BEGIN RSA PRIVATE KEY"));
    assert_eq!(with_key("pkcs1.key"), shown);
    openssl(&directory, "pkcs8 -topk8 -in rsa.key -passout pass:secret -out encrypted.key");
    let error = with_key("encrypted.key").unwrap_err();
    assert!(error.contains("it is encrypted, which pgdyno does not support"), "{error}");
}

/// A server of version 13 has to be queried, one of version 18 reports it itself.
#[test]
fn target_session_attrs_select_the_host() {
    for major in MAJORS {
        let primary = AuthServer::new(major, Certificate::None);
        let standby = AuthServer::standby(major);
        let nobody = unused_port();
        let is_standby = |hosts: &[u16], wanted: &str| {
            let ports: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            let names = vec!["127.0.0.1"; hosts.len()].join(",");
            let conninfo = format!("host={names} port={} target_session_attrs={wanted}", ports.join(","));
            let mut session = primary.connect(&conninfo)?;
            Ok::<bool, String>(session.query_one("SELECT pg_is_in_recovery()").unwrap())
        };
        let both = [nobody, standby.port(), primary.port()];
        assert_eq!(is_standby(&both, "any"), Ok(true));
        for (wanted, standby) in [
            ("read-write", false),
            ("primary", false),
            ("read-only", true),
            ("standby", true),
            ("prefer-standby", true),
        ] {
            assert_eq!(is_standby(&both, wanted), Ok(standby), "{major} {wanted}");
        }
        assert_eq!(is_standby(&[nobody, primary.port()], "prefer-standby"), Ok(false));
        for (port, wanted, reason) in [
            (primary.port(), "read-only", "session is not read-only"),
            (primary.port(), "standby", "server is not in hot standby mode"),
            (standby.port(), "read-write", "session is read-only"),
            (standby.port(), "primary", "server is in hot standby mode"),
        ] {
            let error = is_standby(&[nobody, port], wanted).unwrap_err();
            assert!(error.ends_with(&format!("port {port} failed: {reason}")), "{major} {error}");
            assert!(error.contains("Connection refused"), "{error}");
        }
    }
}

#[test]
fn statements_return_rows_or_errors() {
    let server = AuthServer::new(NEWEST, Certificate::Signed);
    for mode in ["disable", "require"] {
        let mut session = server.connect(&format!("sslmode={mode} application_name=one")).unwrap();
        assert!(
            session.server_version().is_some_and(|version| version.starts_with("18.")),
            "{:?}",
            session.server_version()
        );
        session
            .execute("CREATE TEMP TABLE t (a int, b text); INSERT INTO t VALUES (1, NULL), (2, 'x')")
            .unwrap();
        let rows: Vec<Vec<Option<String>>> =
            session.query("SELECT a, b, current_setting('application_name') FROM t ORDER BY a").unwrap();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(rows, [[text("1"), None, text("one")], [text("2"), text("x"), text("one")]]);
        assert!(session.query::<i64>("").unwrap().is_empty());
        assert_eq!(session.query::<i64>("SELECT 1; SELECT 2; UPDATE t SET a = 3").unwrap(), [2]);
        let error = session.execute("SELECT 1; SELECT nonsense").unwrap_err();
        let expected = "could not execute \"SELECT 1; SELECT nonsense\": ERROR: column \"nonsense\" does not exist \
            (SQLSTATE 42703)";
        assert_eq!(error.to_string(), expected);
        // Rows of many records, and a statement that cannot be sent.
        let rows: Vec<(String, i32)> =
            session.query("SELECT repeat('x', 3000000), i FROM generate_series(1, 3) i").unwrap();
        assert!(rows.iter().all(|(text, _)| text.len() == 3_000_000));
        assert_eq!(rows[2].1, 3);
        assert!(matches!(session.execute("SELECT '\0'"), Err(SessionError::ZeroByte(_))));
    }
}

/// The rows of each statement, with `-` for null.
fn kept_rows(results: &[ResultSet]) -> Vec<Vec<String>> {
    let text = |value: Option<&[u8]>| value.map_or("-".into(), String::from_utf8_lossy).into_owned();
    let row = |row: Values<'_>| row.map(text).collect::<Vec<_>>().join(" ");
    results.iter().map(|result| result.kept_rows().map(row).collect()).collect()
}

#[test]
fn prepared_statements_are_executed_together() {
    for major in MAJORS {
        let server = AuthServer::new(major, Certificate::Signed);
        for mode in ["disable", "require"] {
            let mut session = server.connect(&format!("sslmode={mode}")).unwrap();
            session.execute("CREATE TEMP TABLE t (a int)").unwrap();
            let sql = "SELECT 1, NULL; INSERT INTO t VALUES (7); SELECT a FROM t; SELECT 2 WHERE false";
            let all = session.query_results(sql);
            assert_eq!(kept_rows(all.unwrap()), [vec!["1 -"], vec![], vec!["7"], vec![]], "{major}");

            let insert = "INSERT INTO t SELECT count(*) FROM t";
            let mut prepared =
                session.prepare([insert, "SELECT a, NULL FROM t ORDER BY a", "SELECT pg_backend_pid()"]);
            let prepared = prepared.as_mut().unwrap();
            let pid = session.info().process_id.to_string();
            let results = session.query_prepared(prepared).unwrap();
            assert_eq!(kept_rows(results), [vec![], vec!["1 -", "7 -"], vec![pid.as_str()]], "{major}");
            let results = session.query_prepared(prepared).unwrap();
            assert_eq!(kept_rows(results)[1], ["1 -", "2 -", "7 -"], "{major}");

            // One transaction: if one statement fails, none has an effect.
            let fails = session
                .prepare([insert, "SELECT 1 / (count(*) - 3) FROM t WHERE a <> 3", "SELECT 1"])
                .unwrap();
            let error = session.query_prepared(&fails).unwrap_err();
            assert_eq!(error.server_error().unwrap().code(), Some("22012"), "{major}: {error}");
            assert_eq!(session.query_one::<u64>("SELECT count(*) FROM t").unwrap(), 3, "{major}");
            // A rejected statement does not prevent its neighbours from being prepared again.
            let error = session.prepare(["SELECT 1", "SELECT nonsense"]).unwrap_err();
            assert_eq!(error.server_error().unwrap().code(), Some("42703"), "{major}: {error}");
            let again = session.prepare(["SELECT 1"]).unwrap();
            assert_eq!(kept_rows(session.query_prepared(&again).unwrap()), [["1"]], "{major}");
            assert!(matches!(session.prepare(["SELECT 1", "SELECT '\0'"]), Err(SessionError::ZeroByte(_))));
            for copy in ["COPY t FROM STDIN", "COPY t TO STDOUT"] {
                let prepared = session.prepare([copy]).unwrap();
                let error = session.query_prepared(&prepared).map(|_| ());
                assert!(matches!(error, Err(SessionError::Copy { .. })), "{major}: {error:?}");
            }
            assert_eq!(kept_rows(session.query_prepared(&again).unwrap()), [["1"]], "{major}");
            let nothing = session.prepare([]).unwrap();
            assert!(session.query_prepared(&nothing).unwrap().is_empty(), "{major}");
        }
    }
}

#[test]
fn rows_are_converted_or_errors_name_the_column() {
    let server = AuthServer::new(NEWEST, Certificate::Signed);
    let mut session = server.connect("").unwrap();
    type Row = (u32, i64, f64, bool, String, Option<i32>);
    let row: Row = session.query_one("SELECT 7, -7, 0.5::float8, true, 'ä', null::int, 'more'").unwrap();
    assert_eq!(row, (7, -7, 0.5, true, "ä".to_owned(), None));
    let two = "SELECT generate_series(1, 2)";
    assert_eq!(session.query::<i32>(two).unwrap(), [1, 2]);
    assert_eq!(session.query_opt::<i32>("SELECT 1 WHERE false").unwrap(), None);
    let mut assert_error = |sql: &str, why: &str| {
        let error = session.query_one::<(String, bool)>(sql).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    assert_error("SELECT 'a', 'b'", "column 2 is \"b\", expected a boolean");
    assert_error("SELECT null, true", "column 1 is null, expected a text");
    assert_error("SELECT 'a'", "column 2 is missing");
    assert_error("SELECT 'a', true WHERE false", "returned 0 rows, expected one");
    assert_error("SELECT 'a', true FROM generate_series(1, 2)", "returned 2 rows, expected at most one");
}

#[test]
fn a_session_times_out() {
    let server = AuthServer::new(NEWEST, Certificate::Signed);
    for mode in ["disable", "require"] {
        let mut session = server.connect(&format!("sslmode={mode}")).unwrap();
        session.set_timeout(Duration::from_millis(10)).unwrap();
        let error = session.execute("SELECT pg_sleep(60)").unwrap_err();
        assert!(matches!(error, SessionError::TimedOut(_)), "{error}");
        // A late response is not treated as that of another statement.
        let error = session.execute("SELECT 1").unwrap_err();
        assert!(matches!(error, SessionError::Closed(_)), "{error}");
    }
}

#[test]
fn data_are_copied() {
    let server = AuthServer::new(NEWEST, Certificate::Signed);
    for mode in ["disable", "require"] {
        let mut session = server.connect(&format!("sslmode={mode}")).unwrap();
        session.execute("CREATE TEMP TABLE t (a int, b text)").unwrap();
        let copied = session.copy_in("COPY t FROM STDIN", |writer| {
            (0..100_000).try_for_each(|number| writeln!(writer, "{number}\tnumber {number}"))
        });
        copied.unwrap();
        let sums = "SELECT count(*), sum(a) FROM t";
        assert_eq!(session.query_one::<(u64, u64)>(sums).unwrap(), (100_000, 4_999_950_000));
        let error = session.copy_in("COPY t FROM STDIN", |writer| {
            writeln!(writer, "1\tone")?;
            Err(io::Error::other("no more"))
        });
        assert!(matches!(error, Err(SessionError::Data { .. })), "{error:?}");
        // The server stops reading early, and the client continues.
        let error = session.copy_in("COPY t FROM STDIN", |writer| {
            (0..100_000).try_for_each(|_| writeln!(writer, "nonsense\tone"))
        });
        assert!(error.unwrap_err().to_string().contains("invalid input syntax for type integer"));
        let error = session.copy_in("SELECT 1", |_| Ok(()));
        assert!(matches!(error, Err(SessionError::Copy { .. })), "{error:?}");
        let error = session.copy_in("COPY t TO STDOUT", |_| Ok(()));
        assert!(matches!(error, Err(SessionError::Copy { .. })), "{error:?}");
        let error = session.copy_in("COPY nowhere FROM STDIN", |_| Ok(()));
        assert!(matches!(error, Err(SessionError::Rejected { .. })), "{error:?}");
        let error = session.copy_in("COPY t FROM STDIN; COPY t FROM STDIN", |_| Ok(()));
        assert!(matches!(error, Err(SessionError::Rejected { .. })), "{error:?}");
        for copy in ["COPY t FROM STDIN", "COPY t TO STDOUT"] {
            let error = session.execute(copy);
            assert!(matches!(error, Err(SessionError::Copy { .. })), "{error:?}");
        }
        assert_eq!(session.query_one::<(u64, u64)>(sums).unwrap(), (100_000, 4_999_950_000));
    }
}

#[test]
fn notices_are_passed_on() {
    let server = AuthServer::new(NEWEST, Certificate::None);
    let mut session = server.connect("").unwrap();
    let notices = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&notices);
    session.on_notice(move |notice| listener.lock().unwrap().push(notice.libpq_text(None)));
    session
        .execute("DO $$ BEGIN RAISE NOTICE 'one' USING DETAIL = 'two'; RAISE WARNING 'three'; END $$")
        .unwrap();
    assert_eq!(*notices.lock().unwrap(), ["NOTICE:  one\nDETAIL:  two\n", "WARNING:  three\n"]);
}

/// libpq's format, compared with the output of psql.
#[test]
fn errors_are_printed_as_by_psql() {
    let server = AuthServer::new(NEWEST, Certificate::None);
    if Command::new("psql").arg("--version").output().is_err() {
        return skip("no psql is installed here");
    }
    let long = format!("SELECT {} nonsense, {}", "1,".repeat(50), "2,".repeat(50));
    let mut session = server.connect("").unwrap();
    for sql in [
        "SELECT nonsense",
        "SELECT 1,\n\t'日本語', nonsense\nFROM pg_class",
        "SELECT 1;\r\nSELECT 2 FROM\r\n nowhere; SELECT 3",
        "SELECT '日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語', nonsense",
        "SELECT 1 +",
        "DO $$ BEGIN PERFORM nonsense; END $$",
        "DO $$ BEGIN RAISE EXCEPTION 'one' USING DETAIL = 'two', HINT = 'three'; END $$",
        "SELECT 1/0",
        "CREATE TEMP TABLE t (a int UNIQUE); INSERT INTO t VALUES (1), (1)",
        &long,
    ] {
        let Err(SessionError::Rejected { source, .. }) = session.execute(sql) else { panic!("{sql}: ok") };
        let output = Command::new("psql")
            .args(["-X", "-h", "localhost", "-p", &server.port().to_string(), "-U", server::USER])
            .args(["-d", "postgres", "-c", sql])
            .env("PGCLIENTENCODING", "UTF8")
            .env("PGOPTIONS", "-c lc_messages=C")
            .output()
            .unwrap();
        assert_eq!(source.libpq_text(Some(sql)), String::from_utf8(output.stderr).unwrap(), "{sql}");
    }
}

#[test]
fn a_statement_is_cancelled() {
    let server = AuthServer::new(NEWEST, Certificate::None);
    for protocol in ["3.0", "3.2"] {
        let mut session = server.connect(&format!("min_protocol_version={protocol}")).unwrap();
        let info = session.info().clone();
        assert_eq!(info.secret_key.len(), if protocol == "3.0" { 4 } else { 32 });
        let sleeper = thread::spawn(move || session.execute("SELECT pg_sleep(60)").unwrap_err().to_string());
        let mut request = Vec::new();
        encode::cancel_request(info.process_id, &info.secret_key, &mut request);
        // A request that arrives before the statement has no effect.
        while !sleeper.is_finished() {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            stream.write_all(&request).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
        let error = sleeper.join().unwrap();
        assert!(error.contains("canceling statement due to user request (SQLSTATE 57014)"), "{error}");
    }
}

#[test]
fn an_old_server_rejects_the_newest_protocol() {
    let server = AuthServer::new("13", Certificate::None);
    let error = server.connect("min_protocol_version=3.2").unwrap_err();
    assert!(error.ends_with("server supports up to 3.0"), "{error}");
    let session = server.connect("max_protocol_version=latest").unwrap();
    assert_eq!(session.info().secret_key.len(), 4);
}

#[test]
fn connection_attempts_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = AuthServer::new(NEWEST, Certificate::None);
    let error = server.connect(&format!("port={port} host=127.0.0.1 connect_timeout=1")).unwrap_err();
    assert_eq!(error, format!("connection to server at \"127.0.0.1\", port {port} failed: timeout expired"));
    // The next host is tried.
    let ports = format!("{port},{}", server.port());
    assert!(server.connect(&format!("port={ports} host=127.0.0.1,localhost connect_timeout=1")).is_ok());
    let error = server.connect("host=no.such.host.invalid").unwrap_err();
    assert!(
        error.starts_with("could not translate host name \"no.such.host.invalid\" to address:"),
        "{error}"
    );
}

#[test]
fn requirepeer_is_checked() {
    let server = AuthServer::new(NEWEST, Certificate::None);
    let params = server.params(&format!("host={} requirepeer=somebody", server.socket_directory()));
    let error = Session::connect(&params).unwrap_err().to_string();
    assert!(error.contains("requirepeer specifies \"somebody\", but actual peer user name is"), "{error}");
}
