//! Generates the page's types from the types here: `web/src/data/generated/`.

use std::fs;
use std::path::Path;

use ts_rs::{Config, TS};

use crate::overview::view::View;
use crate::trial::Detail;

/// `BLESS=1` writes the files instead.
#[test]
fn generated_types_of_the_page_are_those_of_the_program() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/data/generated");
    let new = tempfile::tempdir().unwrap();
    let config = Config::new().with_out_dir(new.path()).with_large_int("number");
    View::export_all(&config).unwrap();
    Detail::export_all(&config).unwrap();
    for file in ["view.ts", "detail.ts"] {
        let text = fs::read_to_string(new.path().join(file)).unwrap();
        let path = directory.join(file);
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, text).unwrap();
        } else {
            let known = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(known, text, "{} is stale: run `make generated`", path.display());
        }
    }
}
