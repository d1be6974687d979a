//! Files and tables that are generated from declarations in code are up to date. `make generated` regenerates them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use model::factor::Factor;
use model::metrics::{Better, GROUPS, Group, Metric};
use report::export_tables::{Kind, Table};

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
