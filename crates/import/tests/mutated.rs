//! Nine hundred damaged files of other tools: each is imported or refused, and what is imported can be stored.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use import::csv::{self, Mapping};
use import::pgbench::{self, Run};
use import::{Import, ImportError, PersistError, Request, Source, pgbench_tools};
use model::factor::Factor;
use mutate::Mutator;
use store::Store;

fn data(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// The first lines: errors are found as well in few.
fn beginning(content: Vec<u8>) -> Vec<u8> {
    content.split_inclusive(|byte| *byte == b'\n').take(8).collect::<Vec<_>>().concat()
}

fn damaged(mutator: &mut Mutator, content: &[u8]) -> Source {
    let content = match (mutator.below(3), str::from_utf8(content)) {
        (1.., Ok(text)) => mutator.text(text).into_bytes(),
        _ => mutator.bytes(content),
    };
    Source::Bytes("damaged".to_owned(), content)
}

struct Imports {
    mutator: Mutator,
    imported: usize,
    refused: usize,
}

impl Imports {
    /// Counts an import; of every eighth, stores the trials.
    fn add(&mut self, import: Result<Import, ImportError>) {
        match import {
            Ok(import) => {
                self.imported += 1;
                // Storing is slow.
                if !self.imported.is_multiple_of(8) {
                    return;
                }
                let root = tempfile::tempdir().unwrap();
                let store = Store::open(root.path()).unwrap();
                let trials = import.drafts.len();
                match import.persist(&store, Request::default()) {
                    Ok(_) => assert_eq!(store.trials().unwrap().len(), trials),
                    Err(error) => assert!(matches!(error, PersistError::Value { .. }), "{error}"),
                }
            }
            Err(error) => {
                self.refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn damaged_files_are_imported_or_refused() {
    let mut imports = Imports { mutator: Mutator::new(17), imported: 0, refused: 0 };
    let pgbench = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pgbench");
    let mut names: Vec<String> = fs::read_dir(pgbench)
        .unwrap()
        .map(|entry| format!("pgbench/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    names.sort();
    let levels = BTreeMap::new();
    let contents: Vec<(String, Vec<u8>)> =
        names.into_iter().map(|name| (name.clone(), beginning(data(&name)))).collect();
    for _ in 0..600 {
        let (name, content) = imports.mutator.pick(&contents).clone();
        let source = damaged(&mut imports.mutator, &content);
        let run = match name.rsplit('.').next() {
            Some("out") => Run { output: Some(source), ..Run::default() },
            Some("err") => Run {
                output: Some(Source::Bytes("out".to_owned(), data("pgbench/v15-threads.out"))),
                progress: Some(source),
                ..Run::default()
            },
            _ => Run { logs: vec![source], ..Run::default() },
        };
        let import = pgbench::read(&[run], &levels);
        imports.add(import);
    }
    let sweep = beginning(data("client-sweep-2008.csv"));
    let mapping = Mapping {
        factors: BTreeMap::from([
            (Factor::Kernel, "kernel".to_owned()),
            (Factor::Clients, "clients".to_owned()),
        ]),
        tps: "tps".to_owned(),
        repeat: Some("run".to_owned()),
        ..Mapping::default()
    };
    for number in 0..150 {
        let source = damaged(&mut imports.mutator, &sweep);
        imports.add(csv::read(&source, &mapping, number % 2 == 0));
    }
    let (tests, sets) = (beginning(data("pgbench-tools/tests.csv")), data("pgbench-tools/testset.csv"));
    for number in 0..150 {
        let tests = damaged(&mut imports.mutator, &tests);
        let sets = if number % 3 == 0 {
            damaged(&mut imports.mutator, &sets)
        } else {
            Source::Bytes("sets".to_owned(), sets.clone())
        };
        imports.add(pgbench_tools::read(&tests, Some(&sets), &levels, number % 2 == 0));
    }
    let Imports { imported, refused, .. } = imports;
    assert!(imported > 150 && refused > 150, "{imported} imported, {refused} refused");
}
