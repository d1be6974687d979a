//! A thousand damaged scripts: each is read or refused, with the place of the error.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;
use std::path::Path;

use mutate::Mutator;
use script::{Names, Script};

/// Uses every command.
const COMMANDS: &str = "\\set naccounts 100000 * :scale\n\\set aid random(1, :naccounts)\n\\setrandom old 1 5\n\
    \\sleep 10 ms\n\\if :aid % 2 = 0 and not :aid is null\nSELECT abalance FROM accounts WHERE aid = :aid \\gset a_\n\
    \\elif case when :aid > 5 then true else false end\n\\startpipeline\nSELECT 1; SELECT $$ ;\n:aid $$;\n\
    \\endpipeline\n\\else\n\\setshell x echo 1\n\\shell true\n\\endif\nBEGIN; /* a ; b */ SELECT E'\\'' -- c ;\n; END;\n\
    SELECT 1 \\; SELECT 2 \\aset\n\\set h hash(permute(:aid, 10, 3), 5) | 7 << 2\n";

#[test]
fn damaged_scripts_are_read_or_refused_with_the_place() {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let mut scripts = vec![COMMANDS.to_owned()];
    for workload in fs::read_dir(workloads).unwrap() {
        for file in fs::read_dir(workload.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "sql") {
                scripts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    scripts.sort();
    assert!(scripts.len() >= 10);
    let mut mutator = Mutator::new(17);
    let (mut read, mut refused) = (0, 0);
    for number in 0..1000 {
        // Half of them are of that with every command.
        let original = if number % 2 == 0 { COMMANDS.to_owned() } else { mutator.pick(&scripts).clone() };
        let text = mutator.text(&original);
        match Script::parse("my.sql", &text, &mut Names::default()) {
            Ok(_) => read += 1,
            Err(error) => {
                refused += 1;
                let message = error.to_string();
                let place = message.lines().find_map(|line| line.strip_prefix("my.sql:"));
                let line = place.and_then(|rest| rest.split(':').next());
                let line: usize = line.and_then(|line| line.parse().ok()).unwrap_or_default();
                assert!((1..=text.lines().count() + 1).contains(&line), "{message}\nin {text}");
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
