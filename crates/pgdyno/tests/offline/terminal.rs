//! What fits a terminal of 80 columns.

use std::fs;
use std::process::Command;

use model::record::Status;

use crate::bundles::{Bundles, cell, record, with_validity};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");
const COLUMNS: usize = 80;

fn too_wide(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > COLUMNS).collect()
}

/// The text without colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut out = parts.next().unwrap_or_default().to_owned();
    out.extend(
        parts.map(|part| part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest)),
    );
    out.replace('\r', "")
}

/// Runs a command on a terminal that util-linux' `script` makes.
fn on_a_terminal(bundles: &Bundles, command: &str) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty columns {COLUMNS}; '{PROGRAM}' {command}"), "/dev/null"]);
    script.env("TERM", "xterm").env_remove("PGDYNO_STORE").env("NO_COLOR", "1");
    let output = script.current_dir(bundles.directory.path()).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    plain(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn help_fits() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap();
    // Generated at this width: what is in blocks.
    let helps: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    assert!(helps.len() > 40, "{}", helps.len());
    for help in helps {
        assert_eq!(too_wide(help), Vec::<&str>::new());
    }
}

#[test]
fn output_on_a_terminal_fits() {
    let mut bundles = Bundles::new();
    for (server, tps) in [("16", 123_456.0), ("17", 125_000.0), ("18", 99_000.5)] {
        for clients in [1, 64] {
            let runs = [0.99, 1.0, 1.01, 1.0].map(|factor| tps * factor * f64::from(clients));
            bundles.runs(&cell(server, clients), &runs);
        }
    }
    let mut suspect = with_validity(record(cell("18", 64), 6e6), Status::Suspect, "foreign-cpu");
    suspect.trial.validity.findings[0].evidence =
        "other processes used 46% of the CPU; waiting for them was 12% of latency; busiest: cc1 38%, \
         children of cargo 5.0%, others 3.1% of the CPU"
            .to_owned();
    let id = bundles.write(suspect);
    let campaign = "name = 'a-campaign-with-a-long-name'\n[factors]\nserver = ['16', '17', '18']\n\
                    workload = ['select-only', 'tpcb-like']\nclients = [1, 64]\n[run]\nduration = '10s'\n";
    fs::write(bundles.directory.path().join("campaign.toml"), campaign).unwrap();
    for command in [
        "report",
        "show",
        &format!("show {id}"),
        "compare server=16 server=17 server=18",
        "history --over version",
        "power clients=64",
        "store list",
        "plan campaign.toml",
    ] {
        let text = on_a_terminal(&bundles, command);
        assert!(text.lines().count() > 0, "{command}");
        assert_eq!(too_wide(&text), Vec::<&str>::new(), "{command}:\n{text}");
    }
    // The ranges were left out.
    let report = on_a_terminal(&bundles, "report");
    assert!(!report.contains("min – max") && report.contains("geometric mean of "), "{report}");
    let list = on_a_terminal(&bundles, "store list");
    assert!(list.contains("\n    cell 18 "), "{list}");
}
