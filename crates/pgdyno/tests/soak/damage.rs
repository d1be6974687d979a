//! Damaged bundles: `store check` names each of them and no other, and all readers of the store end.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::counts::{CHECK, Counts, UNREPORTED};
use crate::rounds::Bench;
use crate::site::{Site, tool};

/// Commands that read a whole store.
const READERS: [&[&str]; 7] = [
    &["report", "--format", "json"],
    &["report", "-o", "report.html"],
    &["compare", "server=13", "server=18"],
    &["history", "tps", "--over", "version"],
    &["explain", "server=18"],
    &["export", "-o", "tables"],
    &["store", "list"],
];

/// Damages some bundles of a complete store, each in one way, and reads it.
pub(crate) fn damage(site: &Site, bench: &Bench, rng: &mut fastrand::Rng, counts: &mut Counts) {
    let trials = bench.store().join("trials");
    let mut ids: Vec<String> = fs::read_dir(&trials)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| store::is_id(name))
        .collect();
    ids.sort();
    rng.shuffle(&mut ids);
    let damaged: BTreeSet<String> = ids.iter().take(ids.len() / 2).cloned().collect();
    for id in &damaged {
        counts.fault(format!("damaged bundle: {}", damage_bundle(&trials.join(id), rng)));
        counts.planted += 1;
    }
    let check = site.run(&bench.path, &site.cache(), &["store", "check"], counts);
    for id in &ids {
        let is_named = check.output.contains(id.as_str());
        match damaged.contains(id) {
            true if !is_named => counts.violation(UNREPORTED, format!("{id}: {}", check.output)),
            false if is_named => counts.violation(CHECK, &check.output),
            _ => {}
        }
    }
    for args in READERS {
        site.run(&bench.path, &site.cache(), args, counts);
    }
}

/// Damages one file of a bundle, and returns how.
fn damage_bundle(bundle: &Path, rng: &mut fastrand::Rng) -> &'static str {
    let mut files: Vec<_> = fs::read_dir(bundle).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    let file = &files[rng.usize(..files.len())];
    let mut content = fs::read(file).unwrap();
    match rng.u8(..5) {
        0 => {
            let at = rng.usize(..content.len());
            content[at] ^= 1 << rng.u8(..8);
            fs::write(file, content).unwrap();
            "a flipped bit"
        }
        1 => {
            content.truncate(rng.usize(..content.len()));
            fs::write(file, content).unwrap();
            "a truncated file"
        }
        2 => {
            fs::remove_file(file).unwrap();
            "a missing file"
        }
        3 => {
            fs::remove_file(file).unwrap();
            tool("mkfifo", &[&file.display().to_string()]);
            "a FIFO in place of a file"
        }
        _ => {
            fs::write(bundle.join("stranger"), "x").unwrap();
            "a file that does not belong to it"
        }
    }
}
