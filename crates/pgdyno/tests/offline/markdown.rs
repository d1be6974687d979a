//! Markdown for pull requests and step summaries, as GitHub's own renderer reads it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use skip::skip;

use crate::bundles::{Bundles, cell};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");

/// The HTML that GitHub makes of a text; none if its renderer is not installed.
fn rendered(markdown: &[u8]) -> Option<String> {
    let mut command = Command::new("cmark-gfm");
    command.args(["--extension", "table", "--to", "html"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take().unwrap().write_all(markdown).unwrap();
    Some(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
}

#[test]
fn tables_are_tables_with_as_many_cells_in_every_row() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &[1000.0, 1005.0, 995.0, 1002.0]);
    bundles.runs(&cell("18", 1), &[500.0, 505.0, 495.0, 502.0]);
    for arguments in [
        &["compare", "server=17", "server=18", "--fail", "tps < -5%"][..],
        &["history", "--over", "version"],
        &["report"],
        &["show"],
        &["store", "list"],
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args(["--format", "markdown"]).current_dir(bundles.directory.path());
        let output = command.env_remove("PGDYNO_STORE").output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{arguments:?}: {output:?}");
        let Some(html) = rendered(&output.stdout) else {
            return skip("cmark-gfm is not installed: run setup/packages cmark-gfm:cmark-gfm");
        };
        assert!(html.contains("<table>"), "{arguments:?}: {html}");
        for table in html.split("<table>").skip(1) {
            let table = table.split("</table>").next().unwrap();
            let columns = table.matches("<th").count() - table.matches("<thead").count();
            let rows = table.matches("<tr>").count() - 1;
            assert!(rows > 0 && columns > 1, "{arguments:?}: {table}");
            assert_eq!(table.matches("<td").count(), rows * columns, "{arguments:?}: {table}");
        }
        // A table that is none would be a paragraph.
        assert!(!html.contains("<p>|") && !html.contains("\n|"), "{arguments:?}: {html}");
    }
}
