use super::*;

#[track_caller]
fn check(masks: fn(&str) -> String, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(masks(text), *expected);
        assert_eq!(masks(expected), *expected, "what is masked stays as it is");
    }
}

#[test]
fn secrets_in_words_are_masked() {
    check(
        mask,
        &[
            ("a=1 luks.password=hunter2\n b", "a=1 luks.password=(masked)\n b"),
            ("x.api_key=\"two words\" y", "x.api_key=\"(masked)\" y"),
            ("\"password=two words\" y", "\"password=(masked)\" y"),
            (
                "init -- --auth-token abc --password=def --auth-required --port 1",
                "init -- --auth-token (masked) --password=(masked) --auth-required --port 1",
            ),
            ("psql --password 'two words' x", "psql --password '(masked)' x"),
            (
                "curl -u me:abc x --proxy-user=me:abc --user 'me:a b' x",
                "curl -u me:(masked) x --proxy-user=me:(masked) --user 'me:(masked)' x",
            ),
            ("rw,username=u,password=p,vers=3", "rw,username=u,password=(masked),vers=3"),
            ("url=http://u:p/w@host/x postgresql://u@h/d", "url=http://u:(masked)@host/x postgresql://u@h/d"),
            (
                "'postgresql://u:a=b@h/d?sslpassword=x&port=1'",
                "'postgresql://u:(masked)@h/d?sslpassword=(masked)&port=1'",
            ),
            ("host=h password='p q' dbname=d", "host=h password='(masked)' dbname=d"),
            ("host=h password = p dbname=d", "host=h password = (masked) dbname=d"),
            ("host=h password= 'it\\'s' dbname=d", "host=h password= '(masked)' dbname=d"),
            (
                "sslpassword=x scram_client_key=y oauth_client_secret=z",
                "sslpassword=(masked) scram_client_key=(masked) oauth_client_secret=(masked)",
            ),
            (
                "AWS_SECRET_ACCESS_KEY=abc wal-g wal-push %p",
                "AWS_SECRET_ACCESS_KEY=(masked) wal-g wal-push %p",
            ),
            ("+ PGPASSWORD=abc psql -c 'select 1'", "+ PGPASSWORD=(masked) psql -c 'select 1'"),
            ("sh -c 'PGPASSWORD=abc' x", "sh -c 'PGPASSWORD=(masked)' x"),
            ("PGPASSWORD='$ecret' psql", "PGPASSWORD='(masked)' psql"),
            ("can't stop x=1 token=a don't", "can't stop x=1 token=(masked) don't"),
            ("é=ü schlüssel.pw=ß", "é=ü schlüssel.pw=(masked)"),
            ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: (masked)' x"),
            ("proxy-authorization: Basic abc\nb", "proxy-authorization: (masked)\nb"),
            (
                "curl -H \"Private-Token: abc\" -H 'X-Api-Key: b' x",
                "curl -H \"Private-Token: (masked)\" -H 'X-Api-Key: (masked)' x",
            ),
            (
                r#"{"user": "u", "password": "a b", "port": 1}"#,
                r#"{"user": "u", "password": "(masked)", "port": 1}"#,
            ),
            (r#"-d "{\"token\": \"a\"}" x"#, r#"-d "{\"token\": \"(masked)\"}" x"#),
            ("user: u\n  password: hunter2\n", "user: u\n  password: (masked)\n"),
            (
                "2024-01-01 [7] STATEMENT:  ALTER ROLE a\n\tPASSWORD\n\t'it''s' VALID UNTIL 'x';\n",
                "2024-01-01 [7] STATEMENT:  ALTER ROLE a\n\tPASSWORD\n\t'(masked)' VALID UNTIL 'x';\n",
            ),
            ("LINE 1: ALTER ROLE a PASSWORD 'cut off\n^", "LINE 1: ALTER ROLE a PASSWORD '(masked)\n^"),
        ],
    );
}

#[test]
fn other_words_stay() {
    for text in [
        "quiet root=/dev/vda ro",
        "keyboard=us monkey=1 author=x",
        "token=",
        "docker run --user 1000:1000 -u me x",
        "password_encryption = 'scram-sha-256', password_encryption=md5",
        "ssl_key_file=server.key PGPASSFILE=/root/.pgpass passfile=x --password-file x require_auth=scram-sha-256",
        "PGPASSWORD=$DB_PASSWORD PGPASSWORD=\"${db_password}\" PGPASSWORD=$(cat file) --password $1 psql",
        "PGPASSWORD= psql -c 'select 1'",
        "password='' dbname=d, password ''",
        "password == x, password => x, password <= x, password != x",
        "FATAL:  password authentication failed for user \"a\"",
        "could not read the password: permission denied",
        "the password's length, no token",
        "ERROR:  duplicate key value violates unique constraint, DETAIL:  Key (id)=(1) already exists.",
        "12:30:05 key: value, http://host:80/a, \"key\": \"value\"",
        "ALTER ROLE a PASSWORD NULL",
        "",
    ] {
        assert_eq!(mask(text), text);
    }
}

#[test]
fn only_real_passwords_in_sql_are_masked() {
    check(
        mask_sql,
        &[
            ("ALTER ROLE a PASSWORD 'x';", "ALTER ROLE a PASSWORD '(masked)';"),
            (
                "alter user a encrypted password E'it\\'s' login",
                "alter user a encrypted password E'(masked)' login",
            ),
            ("CREATE ROLE a PASSWORD $x$it's$x$;", "CREATE ROLE a PASSWORD $x$(masked)$x$;"),
            (
                "OPTIONS (user 'u', password 'x', ADD sslpassword 'y')",
                "OPTIONS (user 'u', password '(masked)', ADD sslpassword '(masked)')",
            ),
            ("UPDATE u SET password = 'x' WHERE id = 1", "UPDATE u SET password = '(masked)' WHERE id = 1"),
            (
                "SELECT dblink('host=h password=x'), dblink($$password=x user=u$$); -- it's password=y\nSELECT 1",
                "SELECT dblink('host=h password=(masked)'), dblink($$password=(masked) user=u$$); -- it's password=(masked)\nSELECT 1",
            ),
            (
                "CREATE SUBSCRIPTION s CONNECTION 'password=''a b'' host=h'",
                "CREATE SUBSCRIPTION s CONNECTION 'password=''(masked)'' host=h'",
            ),
            ("SELECT 'postgresql://u:p@h/d'", "SELECT 'postgresql://u:(masked)@h/d'"),
            ("\\setshell x PGPASSWORD=a psql\nSELECT 1;", "\\setshell x PGPASSWORD=(masked) psql\nSELECT 1;"),
            (
                "DO $$ BEGIN EXECUTE 1; ALTER ROLE a PASSWORD 'x'; END $$",
                "DO $$ BEGIN EXECUTE 1; ALTER ROLE a PASSWORD '(masked)'; END $$",
            ),
        ],
    );
    for sql in [
        "SELECT * FROM t WHERE key=1 AND token = :token AND password=md5(pw) AND t.secret=u.secret",
        "UPDATE t SET key='a', auth = 'b' WHERE pass = 'c'",
        "CREATE FUNCTION f() AS $$ BEGIN token := 1; SELECT 1 WHERE token = a::text; END $$",
        "\\set key 5\n\\set token random(1, 10)\n",
        "SET password_encryption = 'md5'",
    ] {
        assert_eq!(mask_sql(sql), sql);
    }
}

#[test]
fn secrets_of_a_script_have_lines() {
    let script = "SELECT 1;\nALTER ROLE a\n PASSWORD 'x'; ALTER ROLE b PASSWORD 'y';\n\n-- password=z\n";
    assert_eq!(lines_with_secrets(script), [3, 5]);
}

#[test]
fn settings_are_judged_by_their_names_and_values() {
    for (name, value, expected) in [
        ("primary_conninfo", "host=a", MASK),
        ("Primary_ConnInfo", "host=a", MASK),
        ("ssl_passphrase_command", "echo x", MASK),
        ("archive_command", "PGPASSWORD=x cp %p", "PGPASSWORD=(masked) cp %p"),
        ("archive_command", "/bin/true", "/bin/true"),
        ("pg_tde.vault_token", "s.1", MASK),
        ("repmgr.conninfo", "postgresql://a:b@c/d", "postgresql://a:(masked)@c/d"),
        ("pg_stat_statements.max", "5000", "5000"),
        ("password_encryption", "scram-sha-256", "scram-sha-256"),
        ("ssl_key_file", "server.key", "server.key"),
        ("primary_conninfo", "", ""),
    ] {
        assert_eq!(mask_setting(name, value), expected, "{name}");
        assert_eq!(mask_setting(name, expected), expected, "{name}");
    }
    // A server's own commands may contain secrets in any notation.
    assert_eq!(mask_reported_setting("archive_command", "copy --with x"), MASK);
    assert_eq!(mask_reported_setting("archive_command", "(disabled)"), "(disabled)");
    assert_eq!(mask_reported_setting("shared_buffers", "16384"), "16384");
    assert_eq!(mask_kernel_parameter("net.ipv4.tcp_fastopen_key", "1-2"), MASK);
    assert_eq!(mask_kernel_parameter("kernel.keys.persistent_keyring_expiry", "1"), "1");
    assert_eq!(mask_variable("token", "abc"), MASK);
    assert_eq!([mask_variable("tokens", "5"), mask_variable("key", "abc")], ["5", "abc"]);
}

#[test]
fn known_secrets_are_masked_wherever_they_are() {
    let known = ["hunter2".to_owned(), "a".to_owned(), "hunter23".to_owned()];
    assert_eq!(
        mask_known("a hunter2x password=b, hunter23", &known),
        "a (masked)x password=(masked), (masked)"
    );
}

const CAMPAIGN: &str = r##"name = "n" # password=comment
notes = "token=note"
[factors]
server = ["18", "x"]
settings = ["a"]
kernel_args = ["luks.password=kernel quiet"]
[settings.a]
primary_conninfo = 'host=h password=setting'
"pg_tde.pin_key" = 1234
archive_command = "PGPASSWORD=\"two words\" copy"
work_mem = "#4MB"
[sysctls.s]
"net.ipv4.tcp_fastopen_key" = "1-2"
[workloads.w]
parameters = { token = "abc", tokens = 5, rows = "1GB" } # fine: key
[hooks]
before_trial = """
set -e
PGPASSWORD=hook psql
"""
[servers.x]
initdb = ["--auth=trust"]
"##;

#[test]
fn a_masked_campaign_stays_a_campaign_and_names_its_places() {
    let masked = mask_campaign(CAMPAIGN);
    let expected = CAMPAIGN
        .replace("password=comment", "password=(masked)")
        .replace("token=note", "token=(masked)")
        .replace("password=kernel", "password=(masked)")
        .replace("'host=h password=setting'", "\"(masked)\"")
        .replace("1234", "\"(masked)\"")
        .replace("\"PGPASSWORD=\\\"two words\\\" copy\"", "'PGPASSWORD=\"(masked)\" copy'")
        .replace("\"1-2\"", "\"(masked)\"")
        .replace("\"abc\"", "\"(masked)\"")
        .replace("PGPASSWORD=hook", "PGPASSWORD=(masked)");
    assert_eq!(masked, expected);
    assert_eq!(mask_campaign(&masked), masked);
    let places: Vec<String> =
        campaign_secrets(CAMPAIGN).iter().map(|place| format!("{} {place}", place.line)).collect();
    let expected = [
        "1 a comment",
        "2 notes",
        "6 factors.kernel_args",
        "8 settings.a.primary_conninfo",
        "9 settings.a.pg_tde.pin_key",
        "10 settings.a.archive_command",
        "13 sysctls.s.net.ipv4.tcp_fastopen_key",
        "15 workloads.w.parameters.token",
        "17 hooks.before_trial",
    ];
    assert_eq!(places, expected);
    assert_eq!(campaign_secrets(&masked), []);
    assert_eq!(masked_keys(CAMPAIGN), [] as [&str; 0]);
    let keys: Vec<&str> = expected[2..].iter().filter_map(|place| place.split(' ').next_back()).collect();
    assert_eq!(masked_keys(&masked), keys);
}

#[test]
fn a_text_that_is_no_campaign_is_masked_as_words() {
    assert_eq!(mask_campaign("written by a later release"), "written by a later release");
    assert_eq!(mask_campaign("[ password=x"), "[ password=(masked)");
}

/// Without its first secret, the rest of this comment has another meaning.
#[test]
fn comments_of_a_campaign_are_masked_until_no_secret_is_left() {
    let masked = mask_campaign("#'authorization:\"E'\\authorization:\"");
    assert_eq!(masked, "#'authorization:(masked)'\\authorization:(masked)");
    assert_eq!(mask_campaign(&masked), masked);
}

#[test]
fn secrets_may_be_long_and_their_ends_are_searched_for_nearby() {
    let long = "x y".repeat(10_000);
    assert_eq!(mask(&format!("a \"password={long}\" b")), "a \"password=(masked)\" b");
    assert_eq!(mask(&format!("ALTER ROLE a PASSWORD '{long}';")), "ALTER ROLE a PASSWORD '(masked)';");
    let key = "x".repeat(800);
    assert_eq!(mask(&format!("postgresql://me:{key}@host/")), "postgresql://me:(masked)@host/");
    // A line without an end takes no quadratic time.
    for piece in ["://", "\"-", "password=x'", "$a$"] {
        let line = piece.repeat(20_000);
        assert_eq!(mask(&line).contains("(masked)"), piece.contains("password"), "{piece}");
    }
}
