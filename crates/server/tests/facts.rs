//! Facts that servers of several majors report, and those that are not stored.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod support;

use model::environment::ServerFacts;
use support::server;

#[test]
fn every_major_reports_its_build_extensions_authentication_and_tables() {
    for version in ["9.6", "13", "18"] {
        let server = server(version, &[]);
        server.session(server::DATABASE).unwrap().execute("CREATE TABLE \"Odd name\" (); ANALYZE").unwrap();
        let ServerFacts { pg_config, extensions, available_extensions, authentication, relations } =
            server.facts();
        assert!(pg_config.unwrap()["VERSION"].starts_with(&format!("PostgreSQL {version}")), "{version}");
        assert!(extensions.unwrap().contains_key("plpgsql"), "{version}");
        assert!(available_extensions.unwrap().contains_key("plpgsql"), "{version}");
        let methods = (version != "9.6").then(|| vec!["peer".to_owned()]);
        assert_eq!(authentication, methods, "{version}");

        let relations = relations.unwrap();
        let names: Vec<&str> = relations.iter().map(|relation| relation.name.as_str()).collect();
        assert_eq!(names[0], "pgbench_accounts", "{version}");
        assert!(names.contains(&"\"Odd name\"") && names.len() == 5, "{version}: {names:?}");
        assert!(relations[0].bytes > 100_000 * 97, "{version}: {relations:?}");
        assert_eq!(relations[0].rows_estimate, Some(100_000), "{version}");
    }
}

#[test]
fn a_stopped_server_reports_no_facts() {
    let mut server = server("18", &[]);
    // SAFETY: kill has no preconditions; the process is this test's own server.
    assert_eq!(unsafe { libc::kill(server.pid() as i32, libc::SIGQUIT) }, 0);
    support::wait_until("the server has ended", || server.exited().is_some());
    assert_eq!(server.facts(), ServerFacts::default());
}

#[test]
fn secrets_in_settings_are_masked_and_nothing_else_is() {
    let server = server(
        "18",
        &[
            ("archive_mode", "on"),
            ("archive_command", "curl -u me:hunter2 https://backup/%f"),
            ("primary_conninfo", "host=primary password=hunter2"),
            ("restore_command", "hunter2 %f %p"),
            ("cluster_name", "key"),
        ],
    );
    let settings = server.settings().unwrap();
    assert!(settings.iter().all(|setting| !setting.value.contains("hunter2")), "{settings:?}");
    let value = |name: &str| settings.iter().find(|setting| setting.name == name).unwrap().value.as_str();
    assert_eq!(value("archive_command"), "(masked)");
    assert_eq!(value("primary_conninfo"), "(masked)");
    assert_eq!(value("recovery_end_command"), "");
    assert_eq!(value("password_encryption"), "scram-sha-256");
    assert_eq!(value("cluster_name"), "key");
    assert!(value("ssl_key_file").ends_with("server.key"));
    let archive_mode = settings.iter().find(|setting| setting.name == "archive_mode").unwrap();
    assert_eq!(
        (archive_mode.context.as_deref(), archive_mode.pending_restart),
        (Some("postmaster"), Some(false))
    );
}
