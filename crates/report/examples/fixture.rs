//! Writes the tests' view where the page's own tests look for it:
//! `cargo run -p report --example fixture -- web/test-results`.
//!
//! `report.html` is the report, `scans.html` one on scans; `view.ts` and `scans.ts` are the same views, which the type
//! checker holds against `web/src/data/view.ts`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "web/test-results".into()));
    fs::create_dir_all(&folder)?;
    for (page, name, view) in [("report", "view", fixture::view()), ("scans", "scans", fixture::scans())] {
        fs::write(folder.join(page).with_extension("html"), report::html(&view)?)?;
        let typed = format!(
            "import type {{ View }} from '../src/data/view';\n\nexport const {name}: View = {};\n",
            view.json_pretty()
        );
        fs::write(folder.join(name).with_extension("ts"), typed)?;
    }
    Ok(())
}
