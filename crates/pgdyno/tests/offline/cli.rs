//! Exact output of the command line: help, and errors in campaigns.

#[test]
fn snapshots() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").env("COLUMNS", "100");
}
