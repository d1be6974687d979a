//! Files and tables that are generated from declarations in code are up to date. `make generated` regenerates them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use model::factor::Factor;
use model::metrics::{Better, GROUPS, Group, Metric};
use report::export_tables::{Kind, Table};
use report::monitoring::all_live;
use runner::campaign_file::CampaignFile;
use serde_json::Value;

use super::golden::{self, RUN, SIDES};

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// Compares a file with its generated content, or writes it if `BLESS` is set.
fn is_up_to_date(file: &str, generate: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(path(file)).unwrap();
    let generated = generate(&text);
    if std::env::var_os("BLESS").is_some() {
        fs::write(path(file), &generated).unwrap();
    }
    assert!(
        fs::read_to_string(path(file)).unwrap() == generated,
        "{file} is stale: run `make generated` and commit it"
    );
}

/// A text with new content between the markers of this name.
fn with_section(text: &str, name: &str, content: &str) -> String {
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = text.split_once(&begin).unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    format!("{before}{begin}{content}<!-- end -->{after}")
}

#[test]
fn the_tables_of_exports_are_documented() {
    let mut tables = String::new();
    for table in Table::ALL {
        let (name, about) = (table.name(), table.about());
        write!(tables, "\n### {name}\n\n{about}.\n\n| column | type | meaning |\n|---|---|---|\n").unwrap();
        for column in table.columns() {
            let kind = match column.kind {
                Kind::Integer => "integer",
                Kind::Real => "number",
                Kind::Text => "text",
                Kind::Json => "JSON",
                Kind::Time => "time",
            };
            writeln!(tables, "| `{}` | {kind} | {} |", column.name, column.about).unwrap();
        }
    }
    tables.push('\n');
    is_up_to_date("docs/export.md", |text| with_section(text, "export tables", &tables));
}

#[test]
fn the_metrics_of_running_campaigns_are_documented() {
    let mut table = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for family in all_live() {
        let name = family.metric_name() + family.ending();
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (kind, labels, help) = (family.kind.as_str(), labels.join(", "), &family.help);
        writeln!(table, "| `{name}` | {kind} | {labels} | {help} |").unwrap();
    }
    is_up_to_date("docs/serve.md", |text| with_section(text, "live metrics", &table.replace("|  |", "| |")));
}

#[test]
fn the_factors_are_documented() {
    let mut table = "| key | levels | if left out |\n|---|---|---|\n".to_owned();
    for factor in Factor::ALL {
        let default = factor.default_level().map(|level| {
            if factor.is_number() && level.parse::<f64>().is_ok() {
                format!("`[{level}]`")
            } else {
                format!("`[\"{level}\"]`")
            }
        });
        let rule = factor.default_rule().map(str::to_owned).or(default);
        let left_out = rule.unwrap_or_else(|| "required".to_owned());
        writeln!(table, "| `{}` | {} | {left_out} |", factor.name(), factor.description()).unwrap();
    }
    is_up_to_date("docs/campaign.md", |text| with_section(text, "factors", &table));
}

#[test]
fn the_metrics_are_documented() {
    let section = |group: &Group| format!("metrics {}", group.name);
    let begins =
        |text: &str, group: &Group| text.contains(&format!("<!-- generated: {} -->", section(group)));
    let files = ["docs/metrics.md", "docs/metrics-postgres.md"];
    for group in GROUPS {
        let has = |file: &&str| begins(&fs::read_to_string(path(file)).unwrap(), group);
        let file = files.into_iter().find(has);
        let file = file.unwrap_or_else(|| panic!("no document has the metrics {}", group.name));
        is_up_to_date(file, |text| with_section(text, &section(group), &metrics_table(group)));
    }
}

/// Commands with what they are for: those that a `--help` lists.
fn commands(help: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    for line in listed.lines().take_while(|line| !line.is_empty()) {
        match line.strip_prefix("  ").unwrap() {
            // A continuation of the description.
            rest if rest.starts_with(' ') => {
                let description = &mut commands.last_mut().unwrap().1;
                *description = format!("{description} {}", rest.trim());
            }
            command => {
                let (name, description) = command.split_once(' ').unwrap();
                commands.push((name.to_owned(), description.trim().to_owned()));
            }
        }
    }
    commands
}

/// The `--help` of a command and of the commands below it, with a heading each.
fn add_help(command: &str, depth: usize, page: &mut String) -> Vec<(String, String)> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    program.args(command.split(' ').skip(1)).arg("--help").env("COLUMNS", "80");
    let output = program.env_remove("PGDYNO_STORE").output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let help = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    write!(page, "\n{} {command}\n\n```text\n{}\n```\n", "#".repeat(depth), lines.join("\n")).unwrap();
    let below = commands(&help);
    for (name, _) in &below {
        add_help(&format!("{command} {name}"), depth + 1, page);
    }
    below
}

#[test]
fn the_command_line_is_documented() {
    let mut helps = String::new();
    let commands = add_help("pgdyno", 2, &mut helps);
    assert!(commands.len() > 20, "{commands:?}");
    let mut page = "\n| command | purpose |\n|---|---|\n".to_owned();
    for (name, description) in commands {
        writeln!(page, "| [`{name}`](#pgdyno-{name}) | {description} |").unwrap();
    }
    is_up_to_date("docs/cli.md", |text| with_section(text, "help", &format!("{page}{helps}\n")));
}

/// A campaign whose plan has everything that plans can have, but power, which needs earlier trials on the same host.
const CAMPAIGN: &str = "name = 'n'
[factors]
server = ['17', 'built', 'theirs']
settings = ['default', 'big']
workload = ['select-only', 'own']
clients = [1, 8]
rate = ['max', 500]
include = [{ server = '17', workload = 'select-only', clients = 2, memory = '512MB', disk = 'slow', pin = 'split' }]
[run]
compare = 'server'
repeats = { min = 3, max = 6, until_ci = '2%' }
[settings.big]
work_mem = '1GB'
[servers.built]
source = 'postgres.tar.gz'
patch = 'fix.patch'
[servers.theirs]
dsn = 'host=db.example user=bench'
allow_settings = true
[disks.slow]
read = '100MB/s'
[pins.split]
driver = '0'
server = '1'
[datasets.shop]
dump = 'dump.sql'
[workloads.own]
script = 'own.sql'
dataset = 'shop'
parameters = { rows = 10 }
background = [{ workload = 'other', clients = 2, rate = 10, start = '1s' }]
[workloads.other]
script = 'own.sql'
dataset = 'shop'
";

/// Types by the place in a document: `trials[].id`.
type Types = BTreeMap<String, BTreeSet<&'static str>>;

/// Adds the types of an object's values, and of those one level below.
fn add_types(object: &Value, path: &str, below: usize, types: &mut Types) {
    for (key, value) in object.as_object().into_iter().flatten() {
        let path = format!("{path}{key}");
        let name = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "number",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        types.entry(path.clone()).or_default().insert(name);
        if below == 0 {
            continue;
        }
        for item in value.as_array().into_iter().flatten() {
            add_types(item, &format!("{path}[]."), below - 1, types);
        }
        add_types(value, &format!("{path}."), below - 1, types);
    }
}

/// Compares a document with its JSON Schema, if there is one.
fn has_its_schema(command: &str, document: &Value) {
    let path = path(&format!("docs/schemas/{}.schema.json", command.replace(' ', "-")));
    let schema: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new(), "{command}");
    let mut other = document.clone();
    other["schema"] = "one".into();
    assert!(!schema.is_valid(&other), "{command}: a schema that accepts everything");
    other.as_object_mut().unwrap().remove("schema");
    assert!(!schema.is_valid(&other), "{command}: keys are not required");
}

#[test]
fn documents_of_the_machine_have_their_schema() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_pgdyno")).args(["doctor", "--format", "json"]).output().unwrap();
    has_its_schema("doctor", &serde_json::from_slice(&output.stdout).unwrap());
}

#[test]
fn the_json_documents_are_documented() {
    let directory = golden::directory();
    fs::write(directory.path().join("campaign.toml"), CAMPAIGN).unwrap();
    fs::write(directory.path().join("own.sql"), "select 1;\n").unwrap();
    fs::write(directory.path().join("dump.sql"), "-- PostgreSQL database dump\n").unwrap();
    let trial = "01M84CPDWAN18AGAK1PSAV6XG3";
    let mut page = String::new();
    for (command, arguments) in [
        ("report", format!("--run {RUN}")),
        ("show", trial.to_owned()),
        ("compare", format!("{} {} --run {RUN}", SIDES[0], SIDES[1])),
        ("history", "tps --over version".to_owned()),
        ("explain", trial.to_owned()),
        ("power", "--noise 2%".to_owned()),
        ("store list", String::new()),
        ("store show", trial.to_owned()),
        ("store check", String::new()),
        ("store reindex", String::new()),
        ("plan", "campaign.toml".to_owned()),
    ] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        program.args(command.split(' ')).args(arguments.split_whitespace()).args(["--format", "json"]);
        program.current_dir(directory.path()).env_remove("PGDYNO_STORE");
        let output = program.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        has_its_schema(command, &document);
        let mut types = Types::new();
        add_types(&document, "", 1, &mut types);
        write!(page, "\n## pgdyno {command}\n\nSchema {}.\n\n", document["schema"]).unwrap();
        page += "| key | value |\n|---|---|\n";
        for (path, types) in types.into_iter().filter(|(path, _)| path != "schema") {
            let types: Vec<&str> = types.into_iter().collect();
            writeln!(page, "| `{path}` | {} |", types.join(", ")).unwrap();
        }
    }
    page.push('\n');
    is_up_to_date("docs/json.md", |text| with_section(text, "documents", &page));
}

/// A table of metrics, without empty columns.
fn metrics_table(group: &Group) -> String {
    type Cell<'a> = &'a dyn Fn(&Metric) -> String;
    let columns: [(&str, Cell<'_>); 8] = [
        ("metric", &|metric| format!("`{}`", metric.name)),
        ("label", &|_| group.label.unwrap_or_default().to_owned()),
        ("kind", &|metric| metric.kind.as_str().to_owned()),
        ("better", &|metric| match metric.better {
            Better::Higher | Better::Lower => metric.better.as_str().to_owned(),
            Better::Neither => String::new(),
        }),
        ("PostgreSQL", &|metric| match metric.name.starts_with("pg.") {
            true => metric.majors.to_string(),
            false => String::new(),
        }),
        ("from", &|metric| metric.from.to_owned()),
        ("if", &|metric| metric.condition.map(|condition| condition.to_string()).unwrap_or_default()),
        ("meaning", &|metric| metric.meaning.to_owned()),
    ];
    let is_used = |cell: Cell<'_>| group.metrics.iter().any(|metric| !cell(metric).is_empty());
    let columns: Vec<_> = columns.into_iter().filter(|(_, cell)| is_used(cell)).collect();
    let mut table =
        format!("|{}\n|", columns.iter().map(|(head, _)| format!(" {head} |")).collect::<String>());
    table += &"---|".repeat(columns.len());
    for metric in group.metrics {
        table += "\n|";
        for (_, cell) in &columns {
            let text = cell(metric);
            table += &if text.is_empty() { " |".to_owned() } else { format!(" {text} |") };
        }
    }
    table + "\n"
}

#[test]
fn the_workloads_of_single_statements_are_documented() {
    let campaign =
        "name = 'x'\n[factors]\nserver = ['18']\nworkload = ['micro-*']\nclients = [1]\n".to_owned();
    let file = CampaignFile::parse(Path::new("x.toml"), campaign, None).unwrap();
    let mut table = "| workload | its statement | from | writes |\n|---|---|---|---|\n".to_owned();
    let workloads = file.plan.custom_workloads();
    assert!(workloads.len() > 40, "{}", workloads.len());
    for custom in workloads {
        let from = custom.minimum_version.map(|major| major.to_string()).unwrap_or_default();
        let writes = if custom.writes { "yes" } else { "no" };
        let (name, description) = (&custom.name, custom.description.as_deref().unwrap());
        writeln!(table, "| `{name}` | {description} | {from} | {writes} |").unwrap();
    }
    let table = table.replace("|  |", "| |");
    is_up_to_date("docs/workloads.md", |text| with_section(text, "single statements", &table));
}
