//! Writes the tests' view where the page's own tests look for it:
//! `cargo run -p report --example fixture -- web/test-results`.
//!
//! `report.html` is the report, `scans.html` one on scans; `view.ts` and `scans.ts` are the same views, which the type
//! checker holds against `web/src/data/view.ts`, and `details.ts` trials in detail, against `web/src/data/detail.ts`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::PathBuf;
use std::{env, fs, io};

use report::detail::{Detail, Points, detail};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "web/test-results".into()));
    fs::create_dir_all(&folder)?;
    let whole: Vec<Detail> =
        fixture::detailed::trials().iter().map(|record| detail(record, Points::All)).collect();
    for (page, name, view, details) in
        [("report", "view", fixture::view(), &whole[..]), ("scans", "scans", fixture::scans(), &[])]
    {
        fs::write(folder.join(page).with_extension("html"), report::html(&view, &[], details)?)?;
        let typed = format!(
            "import type {{ View }} from '../src/data/view';\n\nexport const {name}: View = {};\n",
            view.json_pretty()
        );
        fs::write(folder.join(name).with_extension("ts"), typed)?;
    }
    let thinned = fixture::detailed::trials().into_iter().map(|record| detail(&record, Points::AtMost(20)));
    let all: Vec<String> = whole.iter().cloned().chain(thinned).map(|detail| detail.json()).collect();
    let typed = format!(
        "import type {{ Detail }} from '../src/data/detail';\n\n/** Whole, then thinned. */\n\
         export const details: Detail[] = [{}];\n",
        all.join(",\n")
    );
    fs::write(folder.join("details.ts"), typed)
}
