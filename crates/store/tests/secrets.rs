//! Secrets are masked in bundles and live files, and when those of an earlier release are read.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::sync::Arc;

use jiff::Timestamp;
use model::acceptance::Acceptance;
use model::cell::Level;
use model::environment::Mount;
use model::record::{Event, Finding, Log, Setting, Status, TrialRecord};
use model::secret::{mask, mask_campaign, mask_sql};
use model::waits::StatementUse;
use model::workload::{BackgroundWorkload, Custom, ScriptText, WeightedScript, Workload};
use proptest::prelude::*;
use sample::record;
use store::format::live::{self, Cell, Line, Notice, Preparing, TrialBegins};
use store::{Part, Store, new_id};

/// In every place that can have a secret.
const PLANTED: &str = "hunter2";

/// A record with secrets, each in another notation.
fn record_with_secrets() -> TrialRecord {
    let mut record = record(&new_id());
    let trial = &mut record.trial;
    trial.run.campaign_toml = "name = 'n' # password=hunter2\nnotes = 'token=hunter2'\n[hooks]\n\
                               before_trial = \"PGPASSWORD='hunter2' psql\"\n[settings.a]\n\
                               primary_conninfo = 'hunter2'\n"
        .to_owned();
    trial.run.notes = Some("token=hunter2".to_owned());
    trial.run.tags.push("token=hunter2".to_owned());
    trial.cell.kernel_args = Level::Known("luks.password=hunter2".to_owned());
    if let Level::Known(settings) = &mut trial.cell.settings {
        settings.values.insert("primary_conninfo".to_owned(), "host=hunter2".to_owned());
        settings.values.insert("archive_command".to_owned(), "curl -u me:hunter2 x".to_owned());
    }
    if let Level::Known(sysctl) = &mut trial.cell.sysctl {
        sysctl.values.insert("net.ipv4.tcp_fastopen_key".to_owned(), PLANTED.to_owned());
    }
    trial.cell.workload = Level::Known(workload());
    trial.validity.status = Status::Invalid;
    trial.validity.findings.push(Finding {
        gate: "load-failed".to_owned(),
        status: Status::Invalid,
        evidence: "the hook `PGPASSWORD=hunter2 x` failed".to_owned(),
        threshold: None,
        advice: None,
        processes: Vec::new(),
    });
    let environment = &mut record.environment;
    environment.kernel_command_line = Some("quiet luks.password=hunter2".to_owned());
    environment.data_mount_options = Some("rw,password=hunter2,vers=3".to_owned());
    environment.mounts.push(Mount { options: "rw,password=hunter2".to_owned(), ..Mount::default() });
    environment.sysctl.insert("net.ipv4.tcp_fastopen_key".to_owned(), PLANTED.to_owned());
    let machine = environment.virtual_machine.as_mut().unwrap();
    machine.command_line.push("quiet luks.password=hunter2".to_owned());
    environment.server.pg_config.as_mut().unwrap().insert("CONFIGURE".to_owned(), "--key=hunter2".to_owned());
    record.settings.push(Setting {
        name: "restore_command".to_owned(),
        value: "hunter2 %f %p".to_owned(),
        ..record.settings[1].clone()
    });
    record.statements.push(StatementUse {
        query: "ALTER ROLE a PASSWORD 'hunter2'".to_owned(),
        ..record.statements[0].clone()
    });
    record.events.push(Event {
        kind: "note".to_owned(),
        message: "postgresql://u:hunter2@h/d".to_owned(),
        ..Event::default()
    });
    record.logs.push(Log {
        name: "console".to_owned(),
        text: "STATEMENT:  ALTER ROLE a PASSWORD\n\t'hunter2'\n".to_owned(),
    });
    record
}

/// A workload with secrets, as is its background workload.
fn workload() -> Workload {
    let text = "ALTER ROLE a PASSWORD 'hunter2'; -- password=hunter2\n".to_owned();
    let script = ScriptText { name: "a.sql".to_owned(), text: text.clone() };
    let mut custom =
        Custom::new("own", vec![WeightedScript { name: "a.sql".to_owned(), weight: 1, text: text.clone() }]);
    custom.description = Some("token=hunter2".to_owned());
    custom.parameters.insert("token".to_owned(), PLANTED.to_owned());
    (custom.setup, custom.teardown) = (vec![script.clone()], vec![script.clone()]);
    custom.consistency = vec![script];
    custom.background = vec![BackgroundWorkload {
        per_client: false,
        replica: false,
        workload: Workload::Custom(Arc::new(custom.clone())),
        clients: 1,
        rate: model::units::Rate::MAX,
        start: model::units::Span::default(),
    }];
    Workload::Custom(Arc::new(custom))
}

/// Everything that a store returns of its trial.
fn everything(store: &Store, id: &str) -> String {
    let parts = store.load_parts(id, &[Part::Series]).unwrap();
    let context = store.reader().unwrap().context(id).unwrap();
    let logs: Vec<Option<String>> = ["console", "server"].map(|name| store.log(id, name).unwrap()).into();
    format!(
        "{:?}\n{:?}\n{:?}\n{parts:?}\n{context:?}\n{:?}\n{logs:?}",
        store.load(id).unwrap(),
        store.head(id).unwrap(),
        store.list().unwrap(),
        store.environment(id).unwrap(),
    )
}

#[test]
fn a_bundle_contains_no_secret() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let written = record_with_secrets();
    store.write(&written).unwrap();
    // The files as they are, with what is compressed in them.
    let files = everything(&store.clone().with_secrets(), &written.trial.id);
    assert!(!files.contains(PLANTED), "{files}");
    let read = store.load(&written.trial.id).unwrap();
    assert_eq!(read.trial.cell.to_cell().unwrap(), written.trial.cell.to_cell().unwrap().masked());
    // Of the planned cell, although its secrets are not masked.
    assert_eq!(read.trial.cell, written.trial.cell.to_cell().unwrap());
    assert!(files.contains("curl -u me:(masked) x") && files.contains("ALTER ROLE a PASSWORD '(masked)'"));
    assert_eq!(store.check().unwrap().problems, []);
}

#[test]
fn a_bundle_of_an_earlier_release_is_masked_when_it_is_read() {
    let root = tempfile::tempdir().unwrap();
    let written = record_with_secrets();
    // As earlier releases wrote it.
    Store::open(root.path()).unwrap().with_secrets().write(&written).unwrap();
    let store = Store::existing(root.path()).unwrap();
    assert!(everything(&store.clone().with_secrets(), &written.trial.id).contains(PLANTED));
    let read = everything(&store, &written.trial.id);
    assert!(!read.contains(PLANTED), "{read}");
    assert_eq!(read, everything(&store, &written.trial.id), "from the index, too");
    assert_eq!(store.check().unwrap().problems, []);
}

#[test]
fn acceptances_contain_no_secret() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let acceptance = Acceptance {
        id: new_id(),
        metric: "tps".to_owned(),
        control: None,
        over: "version".to_owned(),
        before: "17".to_owned(),
        after: "18".to_owned(),
        fell: true,
        cells: Vec::new(),
        note: "see https://me:hunter2@host/".to_owned(),
        by: None,
        at: Timestamp::UNIX_EPOCH,
    };
    store.accept(&acceptance).unwrap();
    assert_eq!(store.acceptances().unwrap()[0].note, "see https://me:(masked)@host/");
    let file = root.path().join("accepted").join(format!("{}.json", acceptance.id));
    assert!(!std::fs::read_to_string(file).unwrap().contains(PLANTED));
}

#[test]
fn a_live_file_contains_no_secret() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let (at, run, secret) = (Timestamp::UNIX_EPOCH, new_id(), "PGPASSWORD=hunter2".to_owned());
    let head = live::Run {
        format: live::VERSION,
        campaign: "a".to_owned(),
        pgdyno_version: "0.1.0".to_owned(),
        begun: at,
        planned: 1,
        cells: vec![Cell { cell: secret.clone(), planned: 1, valid: 0, suspect: 0, invalid: 0 }],
    };
    let mut writer = store.begin_live(&run, head.clone()).unwrap();
    let begins = TrialBegins {
        at,
        position: 1,
        of: 1,
        cell: secret.clone(),
        cell_index: 0,
        repeat: 1,
        attempt: 1,
        reason: None,
        remaining_us: 1,
        warmup_us: 0,
        duration_us: 1,
        levels: [("settings".to_owned(), secret.clone())].into(),
        side: None,
        other: None,
    };
    writer.trial(head, begins).unwrap();
    writer.append(&Line::Notice(Notice { at, text: secret.clone() })).unwrap();
    writer.append(&Line::Preparing(Preparing { at, what: secret, done: 0, total: None })).unwrap();
    let file = root.path().join(format!(".live-{run}.jsonl"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(PLANTED) && text.matches("PGPASSWORD=(masked)").count() == 5, "{text}");
    // As an earlier release wrote it.
    std::fs::write(&file, text.replace("(masked)", PLANTED)).unwrap();
    let read = format!("{:?}", store.open_live(&run).unwrap().poll().unwrap().lines);
    assert!(!read.contains(PLANTED) && read.matches("PGPASSWORD=(masked)").count() == 5, "{read}");
}

fn is_toml(text: &str) -> bool {
    model::spec::Campaign::parse(text).is_err_and(|error| error.message.contains("missing field"))
}

/// Texts made of what masks look for.
fn any_text() -> impl Strategy<Value = String> {
    let parts = [
        "password",
        "PGPASSWORD",
        "token",
        "key",
        "=",
        " ",
        "'",
        "\"",
        "''",
        "\\",
        "$",
        "$$",
        "$x$",
        "${A}",
        ":",
        "://",
        "@",
        "-",
        "--",
        "-u",
        "\n",
        "\r\n",
        "é",
        "#",
        "PASSWORD ",
        "E'",
        "U&'",
        "/*",
        "*/",
        ",",
        "(masked)",
        "authorization:",
        "[settings.a]\n",
        "primary_conninfo = ",
        "\"\"\"",
        "a",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_text_can_be_masked_and_what_is_masked_stays(text in any_text()) {
        for masks in [mask, mask_sql, mask_campaign] {
            let masked = masks(&text);
            prop_assert_eq!(masks(&masked), masked);
        }
        prop_assert!(!is_toml(&text) || is_toml(&mask_campaign(&text)));
    }
}
