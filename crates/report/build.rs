//! Checks that the page is built before it is included in the program.

const PAGE: &str = "../../web/dist/index.html";
const PLACE: &str = "<!--PGDYNO_DATA-->";

fn main() {
    println!("cargo::rerun-if-changed={PAGE}");
    match std::fs::read_to_string(PAGE) {
        Ok(page) if page.matches(PLACE).count() == 1 => {}
        Ok(_) => {
            println!("cargo::error=web/dist/index.html does not have {PLACE} exactly once: run `make web`")
        }
        Err(error) => println!("cargo::error=can't read web/dist/index.html ({error}): run `make web`"),
    }
}
