//! `pgdyno ab` on real servers: every outcome, its text and its exit code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use skip::skip;
use support::{Bench, joined, text};

/// Options of a short comparison of reads, while other tests run.
const READS: [&str; 8] = ["-S", "-s", "1", "-c", "1", "--allow-concurrent", "--pin", "none"];

/// Exit code and output.
fn ab(bench: &Bench, arguments: &[&str]) -> (i32, String) {
    let output = bench.pgdyno(&[&["ab"], arguments, &READS[..]].concat());
    let shown = text(&output);
    let result = String::from_utf8(output.stdout).unwrap();
    assert!(result.lines().all(|line| line.chars().count() <= 78), "{result}");
    (output.status.code().unwrap(), shown)
}

#[test]
fn a_server_is_equivalent_to_itself_and_the_run_is_like_any_other() {
    let bench = Bench::new("");
    let (code, result) = ab(&bench, &["18", "18", "--margin", "60%", "--max-time", "10min", "--tag", "mine"]);
    assert_eq!(code, 0, "{result}");
    assert!(joined(&result).contains(": EQUIVALENT by transactions per second: "), "{result}");
    assert!(result.contains("To repeat it:\npgdyno ab 18 18 --margin 60%"), "{result}");
    let trials = bench.trials();
    assert!(trials.iter().all(|trial| trial.paired.is_some() && trial.run.tags == ["mine"]));
    for command in [["report"], ["show"], ["explain"], ["resume"]] {
        let output = bench.pgdyno(&command);
        assert!(output.status.success(), "{command:?}: {}", text(&output));
    }
    assert_eq!(bench.trials().len(), trials.len(), "nothing is left to resume");
    let compared = bench.pgdyno(&["compare", "server=18", "server=18-2"]);
    assert!(text(&compared).contains("EQUIVALENT"), "{}", text(&compared));
}

#[test]
fn alone_a_saturated_driver_has_no_verdict() {
    let bench = Bench::new("");
    let expressions: String =
        (0..5000).map(|number| format!("\\set x{number} random(1, 1000) * 3 + 7\n")).collect();
    fs::write(bench.path().join("heavy.sql"), expressions + "select 1;\n").unwrap();
    let load = ["heavy.sql", "--read-only", "-s", "1", "-c", "8", "--allow-concurrent", "--pin", "separate"];
    let time = ["--count=never", "--margin", "60%", "--max-time", "10s"];
    let output = bench.pgdyno(&[&["ab", "18", "18"], &load[..], &time].concat());
    let result = joined(&text(&output));
    assert_eq!(output.status.code(), Some(6), "{result}");
    assert!(result.contains("NO VERDICT by transactions per second: the driver was saturated"), "{result}");
    assert!(!result.contains("More time") && !result.contains("more time"), "{result}");
}

#[test]
fn slower_settings_are_found_and_hit_a_gate() {
    let bench = Bench::new("");
    let settings = ["--b-set", "enable_indexscan=off", "--b-set", "enable_bitmapscan=off"];
    let gate = ["--b-set", "enable_indexonlyscan=off", "--fail", "tps < -5%", "--max-time", "10min"];
    let (code, result) = ab(&bench, &[&["18"], &settings[..], &gate[..]].concat());
    assert_eq!(code, 3, "{result}");
    assert!(joined(&result).contains(": REGRESSION by transactions per second: -"), "{result}");
    assert!(result.contains("a           default settings\n"), "{result}");
    assert!(
        joined(&result).contains("b           enable_bitmapscan = off, enable_indexonlyscan = off"),
        "{result}"
    );
}

#[test]
fn too_short_a_time_tells_what_a_decision_takes() {
    let bench = Bench::new("");
    let short = ["--margin", "0.01%", "--max-time", "6s", "--count=never"];
    let (code, result) = ab(&bench, &[&["18", "18"], &short[..]].concat());
    assert_eq!(code, 6, "{result}");
    assert!(joined(&result).contains("Not decidable here in 6s by transactions per second."), "{result}");
    let (code, _) = ab(&bench, &[&["18", "18", "--undecided", "pass"], &short[..]].concat());
    assert_eq!(code, 0);
}

#[test]
fn identical_programs_are_not_measured() {
    let bench = Bench::new("");
    let installed = server::install(&host::Cache::open().unwrap(), "18", &host::NoProgress).unwrap();
    for name in ["one", "two"] {
        copy(installed.directory(), &bench.path().join(name));
    }
    let (code, result) = ab(&bench, &["./one", "./two"]);
    assert_eq!(code, 0, "{result}");
    assert!(result.contains("are byte-identical"), "{result}");
    assert!(!bench.path().join(".pgdyno/trials").exists() || bench.trials().is_empty());
}

/// The same server twice in sessions of half a minute at most, with a process for each CPU that computes all the time if wanted.
fn itself_next_to_load(bench: &Bench, is_busy: bool, options: &[&str]) -> String {
    let same = ["ab", "18", "18", "-S", "-s", "1", "--count=never", "--margin", "40%", "--max-time", "30s"];
    next_to_load(bench, is_busy, &[&same[..], options].concat())
}

/// What a comparison prints, with a process for each CPU that computes all the time if wanted.
fn next_to_load(bench: &Bench, is_busy: bool, arguments: &[&str]) -> String {
    let computing = AtomicBool::new(is_busy);
    let compute = || {
        while computing.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    let cpus = host::usable_cpus().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(compute);
        }
        let output = bench.pgdyno(arguments);
        computing.store(false, Ordering::Relaxed);
        joined(&text(&output))
    })
}

/// CPUs of their own are for driver and servers that nobody else disturbs.
#[test]
fn alone_pins_are_left_out_or_refused_next_to_other_processes() {
    const FOREIGN: &str = "other processes took the driver's CPUs";
    let bench = Bench::new("");
    let refused = itself_next_to_load(&bench, true, &["--pin", "separate"]);
    assert!(refused.contains(&format!("NO VERDICT by transactions per second: {FOREIGN}")), "{refused}");
    let unpinned = itself_next_to_load(&bench, true, &[]);
    assert!(
        unpinned.contains("driver and servers are not pinned, and server CPU time decides, too"),
        "{unpinned}"
    );
    assert!(unpinned.contains("other load  ") && !unpinned.contains("CPUs        driver"), "{unpinned}");
    assert!(!unpinned.contains("NO VERDICT"), "{unpinned}");
    let quiet = itself_next_to_load(&bench, false, &[]);
    if quiet.contains("driver and servers are not pinned") || quiet.contains(FOREIGN) {
        skip("other processes use the CPUs: pins of ab");
        return;
    }
    assert!(quiet.contains("CPUs        driver "), "{quiet}");
    assert!(!quiet.contains("NO VERDICT"), "{quiet}");
}

/// Next to other processes, a cost of CPU time decides: planted twice over, and not at all.
#[test]
fn alone_cpu_time_decides_next_to_other_processes() {
    let bench = Bench::new("");
    let script = "select hashtext(repeat('x', current_setting('planted.bytes')::int));\n";
    fs::write(bench.path().join("hash.sql"), script).unwrap();
    let compared = |bytes: &str| {
        let settings = ["--a-set", "planted.bytes=1000", "--b-set", bytes];
        let load =
            ["ab", "18", "hash.sql", "--read-only", "-s", "1", "--margin", "30%", "--max-time", "10min"];
        next_to_load(&bench, true, &[&load[..], &["--count=never"], &settings].concat())
    };
    let found = compared("planted.bytes=40000");
    assert!(found.contains("REGRESSION by ") && found.contains("for 2 comparisons together"), "{found}");
    // It shows in both figures: one may have decided before the other.
    let row = found.lines().find(|line| line.starts_with("server CPU time per transaction")).unwrap();
    assert!(!row.ends_with("EQUIVALENT") && !row.ends_with("IMPROVEMENT"), "{found}");
    let same = compared("planted.bytes=1000");
    assert!(!same.contains("REGRESSION") && !same.contains("IMPROVEMENT"), "{same}");
    let row = same.lines().find(|line| line.starts_with("server CPU time per transaction")).unwrap();
    assert!(row.ends_with("EQUIVALENT"), "{same}");
}

/// Copies a directory, readable for the user that servers run as.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir(to).unwrap();
    fs::set_permissions(to.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match (entry.file_type().unwrap().is_symlink(), path.is_dir()) {
            (true, _) => std::os::unix::fs::symlink(fs::read_link(&path).unwrap(), to).unwrap(),
            (false, true) => copy(&path, &to),
            (false, false) => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}
