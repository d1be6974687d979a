//! Writes the tests' view where the page's own tests look for it:
//! `cargo run -p report --example fixture -- web/test-results`.
//!
//! `report.html` is the report; `view.ts` is the same view, which the type checker holds against `web/src/view.ts`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "web/test-results".into()));
    fs::create_dir_all(&folder)?;
    let view = fixture::view();
    fs::write(folder.join("report.html"), report::html(&view)?)?;
    let typed = format!(
        "import type {{ View }} from '../src/view';\n\nexport const view: View = {};\n",
        view.json_pretty()
    );
    fs::write(folder.join("view.ts"), typed)
}
