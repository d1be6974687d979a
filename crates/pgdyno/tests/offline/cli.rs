//! What the command line says, word for word: help, and what is wrong with a campaign.

#[test]
fn snapshots() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").env("COLUMNS", "100");
}
