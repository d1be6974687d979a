//! Resolution of connection parameters: compared with the tables here and, if a psql is installed, with psql's, from
//! the same flags, environment and files.

#[cfg(test)]
mod fixture;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use skip::skip;
use wire::{ConnectParams, Given, Resolved, SslMode, Transport};

use fixture::{Fixture, psql};

/// Flags in psql's order (host, port, user, dbname), the environment, and the expected result.
#[derive(Clone, Copy)]
struct Case {
    flags: &'static [(&'static str, &'static str)],
    environment: &'static [(&'static str, &'static str)],
    /// Transport, start-up parameters and password; or an error.
    expected: Result<(Transport, &'static str, Option<&'static str>), &'static str>,
}

const fn unix(
    flags: &'static [(&'static str, &'static str)],
    environment: &'static [(&'static str, &'static str)],
    startup: &'static str,
    password: Option<&'static str>,
) -> Case {
    Case { flags, environment, expected: Ok((Transport::Unix, startup, password)) }
}

const fn tcp(
    flags: &'static [(&'static str, &'static str)],
    environment: &'static [(&'static str, &'static str)],
    startup: &'static str,
    password: Option<&'static str>,
) -> Case {
    Case { flags, environment, expected: Ok((Transport::Tcp, startup, password)) }
}

const fn error(dbname: &'static [(&'static str, &'static str)], error: &'static str) -> Case {
    Case { flags: dbname, environment: &[], expected: Err(error) }
}

/// Files that cases refer to.
const FILES: [(&str, &str); 4] = [
    (
        "home/.pg_service.conf",
        "# services\n\n  [other]\nhost=nowhere\n[own]\nhost={dir}\nuser=served\ndbname=of_service\n\
         application_name=a b\n[after]\nnonsense\n[tcp]\nhost=localhost\nport={port}\npassword=by service\n",
    ),
    ("etc/pg_service.conf", "[system]\nhost={dir}\nuser=system\n[own]\nuser=not_this_one\n"),
    (
        "home/.pgpass",
        "# host:port:database:user:password\n*:*:other:someone:no\nlocalhost:{port}:*:someone:of localhost\r\n\
         127.0.0.1:*:*:someone:of address\n{dir}:5432:a\\:b\\\\c:*:es\\:cap\\\\ed:rest\n\
         {dir}:*:*:somebody:of directory\n{dir}:*:*:*:\n",
    ),
    ("passes", "*:*:*:*:of another file\n"),
];

const CASES: &[Case] = &[
    // Precedence.
    unix(&[("host", "{dir}")], &[], "user=someone database=someone application_name=psql", None),
    unix(
        &[("host", "{dir}"), ("user", "me"), ("dbname", "db")],
        &[("PGUSER", "x"), ("PGDATABASE", "x")],
        "user=me database=db application_name=psql",
        None,
    ),
    unix(
        &[("host", "/nowhere"), ("dbname", "host={dir} user=in_string")],
        &[],
        "user=in_string database=in_string application_name=psql",
        None,
    ),
    unix(
        &[("user", "flag"), ("dbname", "dbname=db user=in_string host={dir}")],
        &[],
        "user=in_string database=db application_name=psql",
        None,
    ),
    unix(
        &[],
        &[("PGHOST", "{dir}"), ("PGDATABASE", "db"), ("PGAPPNAME", "app"), ("PGOPTIONS", "-c a=b")],
        "user=someone database=db options=-c a=b application_name=app",
        None,
    ),
    // An empty value of the environment counts, and an empty flag does not.
    unix(
        &[("host", ""), ("dbname", "")],
        &[("PGHOST", "{dir}"), ("PGDATABASE", "")],
        "user=someone database=someone application_name=psql",
        None,
    ),
    // A database name with a space is not a connection string.
    unix(
        &[("host", "{dir}"), ("dbname", "a b")],
        &[],
        "user=someone database=a b application_name=psql",
        None,
    ),
    // In the environment it is always a name.
    unix(
        &[("host", "{dir}")],
        &[("PGDATABASE", "user=me")],
        "user=someone database=user=me application_name=psql",
        None,
    ),
    // Quotes and escapes.
    unix(
        &[("dbname", "host = '{dir}'  user='it\\'s' password=se\\ cret dbname = 'a b' application_name=''")],
        &[],
        "user=it's database=a b",
        Some("se cret"),
    ),
    // URIs.
    unix(
        &[("dbname", "postgresql://me:p%40ss@{encoded}/db%20x?application_name=a%20b&options=-c%20a%3Db")],
        &[],
        "user=me database=db x options=-c a=b application_name=a b",
        Some("p@ss"),
    ),
    unix(
        &[("dbname", "postgres:///db?host={dir}&user=me")],
        &[],
        "user=me database=db application_name=psql",
        None,
    ),
    tcp(
        &[("dbname", "postgres://me:secret@localhost:{port}")],
        &[("PGDATABASE", "env")],
        "user=me database=env application_name=psql",
        Some("secret"),
    ),
    tcp(
        &[("dbname", "postgresql://127.0.0.1:{port}?user=someone&keepalives=0&connect_timeout=10")],
        &[],
        "user=someone database=someone application_name=psql",
        Some("of address"),
    ),
    unix(
        &[("dbname", "postgresql://{encoded},localhost:5432,1/db?target_session_attrs=any")],
        &[],
        "user=someone database=db application_name=psql",
        None,
    ),
    tcp(
        &[(
            "dbname",
            "postgresql://localhost:{port}/?sslmode=disable&requiressl=0&sslmode=disable&hostaddr=127.0.0.1",
        )],
        &[],
        "user=someone database=someone application_name=psql",
        Some("of localhost"),
    ),
    tcp(
        &[("dbname", "hostaddr=127.0.0.1 port={port}")],
        &[],
        "user=someone database=someone application_name=psql",
        Some("of address"),
    ),
    // Services.
    unix(&[("dbname", "service=own")], &[], "user=served database=of_service application_name=a b", None),
    unix(
        &[("dbname", "service=own user=me")],
        &[("PGDATABASE", "env")],
        "user=me database=of_service application_name=a b",
        None,
    ),
    unix(
        &[("user", "flag")],
        &[("PGSERVICE", "own")],
        "user=flag database=of_service application_name=a b",
        None,
    ),
    unix(
        &[("dbname", "service=system")],
        &[("PGSYSCONFDIR", "{dir}/etc")],
        "user=system database=system application_name=psql",
        None,
    ),
    unix(
        &[("dbname", "service=system")],
        &[("PGSERVICEFILE", "{dir}/etc/pg_service.conf")],
        "user=system database=system application_name=psql",
        None,
    ),
    tcp(
        &[("dbname", "service=tcp")],
        &[],
        "user=someone database=someone application_name=psql",
        Some("by service"),
    ),
    // Passwords.
    tcp(
        &[("host", "localhost"), ("port", "{port}")],
        &[],
        "user=someone database=someone application_name=psql",
        Some("of localhost"),
    ),
    tcp(
        &[("host", "localhost"), ("port", "{port}")],
        &[("PGPASSWORD", "env")],
        "user=someone database=someone application_name=psql",
        Some("env"),
    ),
    unix(
        &[("host", "{dir}"), ("dbname", "a:b\\c")],
        &[],
        "user=someone database=a:b\\c application_name=psql",
        Some("es:cap\\ed"),
    ),
    unix(
        &[("host", "{dir}"), ("user", "somebody")],
        &[],
        "user=somebody database=somebody application_name=psql",
        Some("of directory"),
    ),
    unix(
        &[("host", "{dir}")],
        &[("PGPASSFILE", "{dir}/passes")],
        "user=someone database=someone application_name=psql",
        Some("of another file"),
    ),
    unix(
        &[("dbname", "host={dir} passfile={dir}/nowhere")],
        &[("PGPASSFILE", "{dir}/passes")],
        "user=someone database=someone application_name=psql",
        None,
    ),
    // The rest of the environment.
    unix(
        &[("host", "{dir}")],
        &[("PGCLIENTENCODING", "latin1"), ("PGTZ", "UTC"), ("PGDATESTYLE", "ISO"), ("PGGEQO", "default")],
        "user=someone database=someone application_name=psql client_encoding=latin1 datestyle=ISO timezone=UTC",
        None,
    ),
    unix(
        &[("dbname", "host={dir} client_encoding=auto replication=database")],
        &[("LC_ALL", "C.UTF-8")],
        "user=someone database=someone replication=database application_name=psql client_encoding=UTF8",
        None,
    ),
    unix(
        &[("host", "{dir}")],
        &[
            ("PGGSSENCMODE", "disable"),
            ("PGKRBSRVNAME", "postgres"),
            ("PGTARGETSESSIONATTRS", "any"),
            ("PGCHANNELBINDING", "prefer"),
        ],
        "user=someone database=someone application_name=psql",
        None,
    ),
    // Errors.
    error(&[("dbname", "nonsense=1")], "invalid connection option \"nonsense\""),
    error(&[("dbname", "user=me host")], "missing \"=\" after \"host\" in connection info string"),
    error(&[("dbname", "user='me")], "unterminated quoted string in connection info string"),
    error(
        &[("dbname", "postgresql://[::1")],
        "end of string reached when looking for matching \"]\" in IPv6 host address in URI: \"postgresql://[::1\"",
    ),
    error(
        &[("dbname", "postgresql://[]/x")],
        "IPv6 host address may not be empty in URI: \"postgresql://[]/x\"",
    ),
    error(
        &[("dbname", "postgresql://[::1]x")],
        "unexpected character \"x\" at position 19 in URI (expected \":\" or \"/\"): \"postgresql://[::1]x\"",
    ),
    error(
        &[("dbname", "postgresql://h/d?a=b=c")],
        "extra key/value separator \"=\" in URI query parameter: \"a\"",
    ),
    error(
        &[("dbname", "postgresql://h/d?a")],
        "missing key/value separator \"=\" in URI query parameter: \"a\"",
    ),
    error(&[("dbname", "postgresql://h/d?a=b")], "invalid URI query parameter: \"a\""),
    error(&[("dbname", "postgresql://h/%zz")], "invalid percent-encoded token: \"%zz\""),
    error(&[("dbname", "postgresql://h/%a")], "invalid percent-encoded token: \"%a\""),
    error(&[("dbname", "postgresql://h/a%00")], "forbidden value %00 in percent-encoded value: \"a%00\""),
    error(&[("dbname", "service=unknown")], "definition of service \"unknown\" not found"),
    error(
        &[("dbname", "service=after")],
        "syntax error in service file \"{dir}/home/.pg_service.conf\", line 11",
    ),
    error(&[("dbname", "host=a,b hostaddr=127.0.0.1")], "could not match 2 host names to 1 hostaddr values"),
    error(&[("dbname", "host=a,b,c port=1,2")], "could not match 2 port numbers to 3 hosts"),
    error(&[("dbname", "host={dir} port=0")], "invalid port number: \"0\""),
    error(&[("dbname", "host={dir} port=65536")], "invalid port number: \"65536\""),
    error(&[("dbname", "host={dir} port=x")], "invalid integer value \"x\" for connection option \"port\""),
    error(
        &[("dbname", "host={dir} connect_timeout=soon")],
        "invalid integer value \"soon\" for connection option \"connect_timeout\"",
    ),
    error(&[("dbname", "sslmode=maybe")], "invalid sslmode value: \"maybe\""),
    error(&[("dbname", "channel_binding=on")], "invalid channel_binding value: \"on\""),
    error(&[("dbname", "target_session_attrs=master")], "invalid target_session_attrs value: \"master\""),
    error(
        &[("dbname", "ssl_min_protocol_version=TLSv9")],
        "invalid \"ssl_min_protocol_version\" value: \"TLSv9\"",
    ),
    error(
        &[("dbname", "ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2")],
        "invalid SSL protocol version range",
    ),
];

/// `name=value name=value` for the zero-terminated strings of a start-up message.
fn parameters(startup: &str) -> String {
    let parts: Vec<&str> = startup.trim_end_matches('\0').split('\0').collect();
    parts.chunks(2).map(|pair| pair.join("=")).collect::<Vec<_>>().join(" ")
}

#[test]
fn parameters_are_resolved_as_in_the_table() {
    let fixture = Fixture::new(&FILES);
    for (number, case) in CASES.iter().enumerate() {
        let ours = fixture
            .wire_request(case.flags, case.environment)
            .map(|request| (request.transport, parameters(&request.startup), request.password));
        let expected = match case.expected {
            Ok((transport, startup, password)) => {
                Ok((transport, startup.to_owned(), password.map(str::to_owned)))
            }
            Err(error) => Err(fixture.expand(error)),
        };
        assert_eq!(ours, expected, "case {number}: {:?} {:?}", case.flags, case.environment);
    }
}

#[test]
fn parameters_are_resolved_like_psqls() {
    let Some(psql) = psql() else {
        return skip("no psql is installed here");
    };
    let fixture = Fixture::new(&FILES);
    for (number, case) in CASES.iter().enumerate() {
        let what = format!("case {number}: {:?} {:?}", case.flags, case.environment);
        let ours = fixture.wire_request(case.flags, case.environment);
        let psqls = fixture.psql_request(&psql, case.flags, case.environment);
        match (ours, psqls) {
            (Ok(ours), Ok(psqls)) => assert_eq!(ours, psqls, "{what}"),
            // Some errors occur at the connection, with its address before them; quotes depend on the version.
            (Err(ours), Err(psqls)) => {
                let (ours, psqls) = (ours.replace('"', ""), psqls.replace('"', ""));
                assert!(psqls.ends_with(&ours), "{what}: {ours}\n{psqls}");
            }
            (ours, psqls) => panic!("{what}: {ours:?} {psqls:?}"),
        }
    }
}

fn resolve(environment: &[(&str, &str)], given: &[(&str, &str)]) -> Result<Resolved, String> {
    let given: Given = given.iter().copied().collect();
    let variable = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    ConnectParams::resolve(&given, &variable).map_err(|error| error.to_string())
}

#[test]
fn a_password_file_that_others_can_read_is_ignored_with_a_warning() {
    let fixture = Fixture::new(&FILES);
    let file = fixture.home().join(".pgpass");
    let resolve = || {
        let home = fixture.home();
        resolve(&[("HOME", home.to_str().unwrap())], &[("host", "127.0.0.1"), ("user", "someone")]).unwrap()
    };
    assert_eq!(resolve().params.hosts[0].password.as_deref(), Some("of address"));
    assert!(resolve().params.hosts[0].password_from_file);
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let resolved = resolve();
    assert_eq!(resolved.params.hosts[0].password, None);
    let warning = format!(
        "WARNING: password file \"{}\" has group or world access; permissions should be u=rw (0600) or less",
        file.display()
    );
    assert_eq!(resolved.warnings, [warning]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let warning = format!("WARNING: password file \"{}\" is not a plain file", file.display());
    assert_eq!(resolve().warnings, [warning]);
}

#[test]
fn every_host_has_its_own_port_and_password() {
    let fixture = Fixture::new(&FILES);
    fixture.write("passes", "a:1:*:*:of a\n127.0.0.2:2:*:*:of address\n");
    let file = fixture.expand("{dir}/passes");
    let resolved = resolve(
        &[("PGPASSFILE", &file)],
        &[("dbname", "host=a,,c hostaddr=127.0.0.1,127.0.0.2,::1 port=1,2, user=u")],
    );
    let hosts: Vec<_> = resolved
        .unwrap()
        .params
        .hosts
        .into_iter()
        .map(|host| (host.host, host.hostaddr.unwrap().to_string(), host.port, host.password))
        .collect();
    let text = str::to_owned;
    assert_eq!(
        hosts,
        [
            (text("a"), text("127.0.0.1"), 1, Some(text("of a"))),
            (text(""), text("127.0.0.2"), 2, Some(text("of address"))),
            (text("c"), text("::1"), 5432, None),
        ]
    );
}

#[test]
fn the_default_socket_directory_is_localhost_in_the_password_file() {
    let fixture = Fixture::new(&FILES);
    fixture.write("passes", "localhost:5432:*:*:of the default\n");
    let file = fixture.expand("{dir}/passes");
    let params = resolve(&[("PGPASSFILE", &file)], &[("user", "u")]).unwrap().params;
    assert_eq!(params.hosts[0].transport(), Transport::Unix);
    assert_eq!(params.hosts[0].password.as_deref(), Some("of the default"));
}

#[test]
fn sslmode_is_resolved_and_checked() {
    let mode = |given: &[(&str, &str)], environment: &[(&str, &str)]| {
        resolve(environment, given).map(|resolved| resolved.params.ssl.mode)
    };
    assert_eq!(mode(&[], &[]), Ok(SslMode::Prefer));
    assert_eq!(mode(&[], &[("PGREQUIRESSL", "1")]), Ok(SslMode::Require));
    assert_eq!(mode(&[], &[("PGREQUIRESSL", "1"), ("PGSSLMODE", "allow")]), Ok(SslMode::Allow));
    assert_eq!(mode(&[("dbname", "postgres://h?ssl=true")], &[]), Ok(SslMode::Require));
    assert_eq!(mode(&[("dbname", "requiressl=1")], &[]), Ok(SslMode::Require));
    assert_eq!(mode(&[("sslrootcert", "system")], &[]), Ok(SslMode::VerifyFull));
    assert_eq!(
        mode(&[("sslrootcert", "system")], &[("PGSSLMODE", "require")]),
        Err("weak sslmode \"require\" may not be used with sslrootcert=system (use \"verify-full\")"
            .to_owned())
    );
    assert_eq!(
        mode(&[("sslnegotiation", "direct")], &[]),
        Err("weak sslmode \"prefer\" may not be used with sslnegotiation=direct \
             (use \"require\", \"verify-ca\", or \"verify-full\")"
            .to_owned())
    );
}

#[test]
fn require_auth_is_checked() {
    let result = |value: &str| resolve(&[], &[("require_auth", value)]).map(drop);
    for good in ["password", "md5,scram-sha-256", "!password,!md5", "none", "!none", "gss,oauth,sspi"] {
        assert_eq!(result(good), Ok(()), "{good}");
    }
    for (bad, error) in [
        ("nonsense", "invalid require_auth value: \"nonsense\""),
        ("md5,md5", "require_auth method \"md5\" is specified more than once"),
        ("!md5,!md5", "require_auth method \"!md5\" is specified more than once"),
        ("!md5,password", "require_auth method \"password\" cannot be mixed with negative methods"),
        (
            "md5,!password",
            "negative require_auth method \"!password\" cannot be mixed with non-negative methods",
        ),
    ] {
        assert_eq!(result(bad), Err(error.to_owned()), "{bad}");
    }
}
