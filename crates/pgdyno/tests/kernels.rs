//! Kernels in virtual machines: commands and trials in them, and kernels that fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;

use host::{Cache, NoProgress};
use model::machine::Acceleration;
use model::message::Phase;
use model::record::{Status, Trial};
use support::{Bench, signal, text, wait_until, wait_until_gone};

/// Kernel of the tests, from the machine's own distribution.
const KERNEL: &str = "6.1";
/// A newer one.
const NEWER: &str = "6.12";

/// A campaign with one cell for each of the factors' levels, and a third of a virtual second per trial, which takes some seconds.
fn bench(factors: &str, rest: &str) -> Bench {
    Bench::new(&format!(
        "name = 'kernels'\n[factors]\nserver = ['18']\nkernel = ['{KERNEL}']\nacceleration = ['icount']\n\
         workload = ['select-only']\nclients = [1]\n{factors}\n[run]\nduration = '300ms'\nwarmup = '100ms'\nrepeats = 1\nretries = 0\norder = 'sequential'\n{rest}"
    ))
}

fn boot(arguments: &[&str]) -> Output {
    let bench = Bench::new("");
    bench.pgdyno(&[&["kernel", "boot", KERNEL], arguments].concat())
}

fn evidence(trial: &Trial) -> String {
    let findings = &trial.validity.findings;
    findings.iter().map(|finding| format!("{}: {}\n", finding.gate, finding.evidence)).collect()
}

/// Whether a process is a guest, not an emulator that prints its version or checks whether KVM works.
fn is_guest(command: &str) -> bool {
    command.starts_with("qemu-system") && command.contains("-kernel") && !command.contains("-m 524288K")
}

#[test]
fn a_command_runs_under_the_kernel_and_its_output_and_code_come_out() {
    let output = boot(&["--", "uname", "-r"]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.starts_with("6.1.") && stdout.lines().count() == 1, "{}", text(&output));
    assert_eq!(output.status.code(), Some(0));

    let script = "echo out; echo err >&2; cat /proc/cmdline; exit 7";
    // The kernel passes on to the first process what it does not know itself.
    let output = boot(&["--args", "nokaslr pgdyno.test=yes", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.starts_with("out\n") && stdout.contains("pgdyno.test=yes"), "{stdout}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("err\n"));

    let output = boot(&["--", "no-such-command"]);
    assert_eq!(output.status.code(), Some(127), "{}", text(&output));
}

#[test]
fn the_machines_files_can_be_read_and_what_is_written_is_in_memory() {
    let bench = Bench::new("");
    fs::write(bench.path().join("old"), "as it was\n").unwrap();
    let attempt = "mkdir /mnt/again && mount -t virtiofs host /mnt/again && mount -o remount,rw /mnt/again";
    let script = format!(
        "uname -r; cat old; cat /etc/os-release; echo more >>old; echo new >new; cat old new; echo $PGDYNO_WORD; {attempt}; \
         echo bad >/mnt/again$PWD/bad; stat -f -c %T /; tr '\\0' ' ' </proc/1/cmdline"
    );
    let mut command = bench.command(&["kernel", "boot", KERNEL, "--root", "host", "--", "sh", "-c", &script]);
    let output = command.env("PGDYNO_WORD", "word").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let machine = fs::read_to_string("/etc/os-release").unwrap();
    let rest = stdout.strip_prefix("6.1.").and_then(|stdout| stdout.split_once('\n')).map(|(_, rest)| rest);
    let wanted = format!("as it was\n{machine}as it was\nmore\nnew\nword\noverlayfs\n/pgdyno guest ");
    assert_eq!(rest, Some(&*wanted), "{}", text(&output));
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("bad: Read-only file system"),
        "{}",
        text(&output)
    );
    assert_eq!(fs::read_to_string(bench.path().join("old")).unwrap(), "as it was\n");
    let left: Vec<_> = fs::read_dir(bench.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the campaign and the old file: {left:?}");
}

#[test]
fn a_killed_pgdyno_stops_virtiofsd_and_a_guest_ends_without_it() {
    let temporary = tempfile::tempdir().unwrap();
    let bench = Bench::new("");
    let start = |command: &str| {
        let mut boot =
            bench.command(&["kernel", "boot", KERNEL, "--root", "host", "--", "sh", "-c", command]);
        boot.env("TMPDIR", temporary.path());
        bench.start_command(boot)
    };
    let is_serving = |process: &support::Process| process.command.contains("/virtiofsd ");
    let serving = |running: &support::Running| running.process_tree().into_iter().find(is_serving);

    let running = start("sleep 600");
    wait_until("files are served", || serving(&running).is_some());
    let process_tree = running.process_tree();
    signal(running.pid(), libc::SIGKILL);
    wait_until_gone(&process_tree);
    running.end();

    let mut running = start("echo up >&2; sleep 600");
    running.wait_for("up");
    let process_tree = running.process_tree();
    assert!(process_tree.iter().any(|process| is_guest(&process.command)), "{process_tree:#?}");
    assert_eq!(process_tree.iter().filter(|process| is_serving(process)).count(), 1, "{process_tree:#?}");
    signal(running.pid(), libc::SIGKILL);
    wait_until_gone(&process_tree);
    running.end();

    let mut running = start("echo up >&2; sleep 600");
    running.wait_for("up");
    signal(serving(&running).unwrap().pid, libc::SIGKILL);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("ended while it was running") && stderr.contains("virtiofsd: signal: 9"),
        "{stderr}"
    );

    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "sockets and files have no names");
}

#[test]
fn kernels_that_panic_hang_or_have_too_little_memory_are_reported_with_their_console() {
    let panicking = boot(&["--args", "rdinit=/no-such-init", "--", "true"]);
    let printed = text(&panicking);
    assert_eq!(panicking.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("ended before its first process ran") && printed.contains("Kernel panic"),
        "{printed}"
    );

    let hanging = boot(&["--args", "panic=0 rdinit=/no-such-init", "--patience", "30s", "--", "true"]);
    let printed = text(&hanging);
    assert_eq!(hanging.status.code(), Some(1), "{printed}");
    assert!(printed.contains("hangs") && printed.contains("no message for 30 s"), "{printed}");

    let small = boot(&["--memory", "64MB", "--", "true"]);
    assert_eq!(small.status.code(), Some(1), "{}", text(&small));
    assert!(text(&small).contains("64MB of memory is too little"), "{}", text(&small));
}

#[test]
fn without_an_emulator_the_package_is_named() {
    let bench = bench("", "");
    let mut command = bench.command(&["run", "campaign.toml"]);
    command.env("PATH", bench.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("install the package qemu-system-x86"), "{}", text(&output));
}

#[test]
fn a_trial_in_a_guest_leaves_a_bundle_like_any_other() {
    let bench =
        bench("sysctl = ['few']\nkernel_args = ['mitigations=off']", "[sysctls.few]\n'vm.swappiness' = 7\n");
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let [trial] = bench.trials().try_into().unwrap();
    assert_ne!(trial.validity.status, Status::Invalid, "{}", evidence(&trial));
    assert_eq!(trial.cell.acceleration, Acceleration::Icount);
    let summary = trial.summary.as_ref().unwrap();
    let instructions = summary.instructions_per_transaction.unwrap();
    // One processor, which is never idle: a second is 10⁹ instructions.
    assert!((instructions * summary.tps / 1e9 - 1.0).abs() < 0.05, "{instructions} at {} TPS", summary.tps);
    let record = bench.store().load(&trial.id).unwrap();
    let kernel = record.environment.kernel.as_deref().unwrap();
    assert!(kernel.contains("6.1."), "{kernel}");
    assert!(record.environment.kernel_command_line.as_deref().unwrap().contains("mitigations=off"));
    assert_eq!(record.environment.sysctl.get("vm.swappiness").map(String::as_str), Some("7"));
    let machine = record.environment.virtual_machine.as_ref().unwrap();
    assert_eq!((machine.acceleration.as_str(), machine.cpus), ("icount", 1));
    assert!(machine.emulator.starts_with("QEMU ") && machine.kernel_source.contains("linux-image-6.1."));
    assert!(machine.up_after_us.unwrap() < machine.ready_after_us.unwrap());
    let facts = &record.environment.kernel_facts;
    assert_eq!(facts.hz, Some(250), "the kernel's configuration is known");
    assert!(record.logs.iter().any(|log| log.name == "server" && log.text.contains("ready to accept")));
    assert!(record.logs.iter().any(|log| log.name == "console"));
    let accounting = &trial.accounting;
    let commits = accounting.driver_commits.unwrap() + accounting.other_commits.unwrap();
    assert_eq!(Some(commits), accounting.server_commits);
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

/// A workload of one statement that calls a function with a text of this many bytes; as a parameter, their number is not
/// known when it is planned.
fn calling(bench: &Bench, file: &str, function: &str, bytes: usize) {
    let script =
        format!("\\set n {}\nSELECT {function}(repeat('{}', :n));\n", bytes / 1000, "x".repeat(1000));
    fs::write(bench.path().join(file), script).unwrap();
}

fn path_length(trial: &Trial) -> f64 {
    trial.summary.as_ref().and_then(|summary| summary.instructions_per_transaction).unwrap()
}

#[test]
#[ignore = "boots four virtual machines for longer loads, for minutes: make test-slow"]
fn a_counted_profile_shows_the_planted_work_in_its_function_and_nothing_between_equal_trials() {
    if let Err(why) = collect::Perf::for_guests() {
        return skip::skip(why);
    }
    let bench = bench("", "[profile]\n");
    // Only one of them reads the text.
    calling(&bench, "short.sql", "octet_length", 41_000);
    calling(&bench, "long.sql", "hashtext", 41_000);
    let profiled = fs::read_to_string(bench.path().join("campaign.toml")).unwrap();
    let profiled = profiled.replace("'300ms'", "'1s'").replace("'100ms'", "'200ms'");
    let run = |campaign: &str, workloads: &str, seed: &str| {
        let campaign = campaign.replace("'select-only'", workloads);
        fs::write(bench.path().join("campaign.toml"), campaign).unwrap();
        let output = bench.pgdyno(&["run", "campaign.toml", "--set", seed]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    };
    run(&profiled, "'short.sql', 'long.sql'", "seed=1");
    run(&profiled, "'short.sql'", "seed=2");
    let trials = bench.trials();
    let [short, long, again] = trials.as_slice() else { panic!("{trials:?}") };
    for trial in &trials {
        let record = bench.store().load(&trial.id).unwrap();
        let taken = trial.profile.as_ref().unwrap_or_else(|| panic!("{:?}", record.events));
        assert_eq!((taken.callgraph, taken.lost), (model::profile::Unwinding::Dwarf, 0), "{taken:?}");
        let measured = record.intervals.iter().find(|interval| interval.phase == Phase::Measure).unwrap();
        assert!(taken.to_us <= measured.start_us as i64, "{taken:?}");
    }

    // Instructions per transaction in a function of the load's backends: before, after, and the margin.
    let difference = |before: &Trial, after: &Trial| {
        let output = bench.pgdyno(&["profile", &before.id, &after.id, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let roles = document["difference"].as_array().unwrap().clone();
        let load = roles.into_iter().find(|role| role["role"]["of"] == "load").unwrap();
        let figure = |change: &serde_json::Value, key: &str| change[key].as_f64().unwrap() * 1e3;
        let functions = load["functions"].as_array().unwrap().iter().map(|change| {
            let name = change["of"].as_str().unwrap_or_default().to_owned();
            let increase = figure(change, "after_us") - figure(change, "before_us");
            (name, increase, figure(change, "margin_us"))
        });
        functions.collect::<Vec<(String, f64, f64)>>()
    };
    let planted = path_length(long) - path_length(short);
    assert!(planted > 50_000.0, "{planted}");
    let changes = difference(short, long);
    // Three or four instructions a byte, in one function.
    // Functions that are new or gone come first.
    let largest = changes.iter().max_by(|(_, one, _), (_, other, _)| one.abs().total_cmp(&other.abs()));
    let Some((first, hashed, _)) = largest else { panic!("{changes:?}") };
    assert_eq!(first, "hash_bytes", "{changes:?}");
    assert!((hashed / planted - 1.0).abs() < 0.1, "{hashed} of {planted}: {changes:?}");
    let others = changes.iter().filter(|(name, ..)| name != "hash_bytes");
    let most = others.map(|(_, increase, _)| increase.abs()).fold(0.0, f64::max);
    assert!(most < planted / 10.0, "{changes:?}");

    // Sampling error alone: one change of hundreds may be three times its standard deviation, none four times.
    let unplanted = difference(short, again);
    let loudest = unplanted.iter().map(|(_, increase, margin)| increase.abs() / margin).fold(0.0, f64::max);
    assert!(loudest < 2.5, "{unplanted:?}");
    // A second of virtual time has a few milliseconds of the server's and kernel's background work or does not.
    let equal = |one: f64, other: f64| (one / other - 1.0).abs() < 0.02;
    assert!(equal(path_length(short), path_length(again)), "{} {}", path_length(short), path_length(again));

    // The counted figure is that of a trial without a profile whose window begins at the same time: sampling, which takes
    // a third of the profile's instructions, is not in it.
    let plain = profiled.replace("[profile]", "").replace("warmup = '200ms'", "warmup = '3200ms'");
    run(&plain, "'short.sql'", "seed=1");
    let plain = path_length(bench.trials().last().unwrap());
    assert!(equal(path_length(short), plain), "{} and {plain}", path_length(short));

    let shown = text(&bench.pgdyno(&["profile", &short.id, &long.id]));
    assert!(shown.contains("Counted instructions of one transaction"), "{shown}");
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

/// One session is too few to decide, so that instructions are counted; ending that takes nothing from what was measured.
#[test]
fn ab_counts_instructions_if_sessions_do_not_decide() {
    let bench = Bench::new("");
    let arguments =
        format!("ab 18 18 -S -s 1 -c 1 --max-time 1s --allow-concurrent --pin none --kernel {KERNEL}");
    let running = bench.start_with(&arguments.split(' ').collect::<Vec<_>>());
    let guest = || running.process_tree().into_iter().find(|process| is_guest(&process.command));
    wait_until("a guest counts", || guest().is_some());
    let process_tree = running.process_tree();
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(6), "throughput is not decided: {stderr}");
    wait_until_gone(&process_tree);
    assert!(stderr.contains("not decided in pairs: counting instructions as a second opinion"), "{stderr}");
    let trials = bench.trials();
    let paired: Vec<&Trial> = trials.iter().filter(|trial| trial.paired.is_some()).collect();
    assert_eq!(paired.len(), 2, "{stderr}");
    let more = format!("pgdyno resume --run {} --set max_time=2s", paired[0].run.id);
    assert!(stderr.contains(&more), "{stderr}");
    assert!(
        trials.iter().filter(|trial| trial.paired.is_none()).all(|trial| trial.run.campaign == "ab-count")
    );
}

#[test]
fn without_perf_for_guests_the_reason_is_reported_and_the_trial_has_no_profile() {
    let bench = bench("", "[profile]\n");
    let mut plan = bench.command(&["plan", "campaign.toml"]);
    let plan = plan.env("PATH", bench.path()).output().unwrap();
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));
    let expected = "trials with counted instructions have no profile: a profile needs the program perf";
    assert!(text(&plan).contains(expected), "{}", text(&plan));
    assert!(!text(&plan).contains("This can't run here"), "{}", text(&plan));

    let campaign = fs::read_to_string(bench.path().join("campaign.toml")).unwrap();
    let few = "[workloads.few]\nbuiltin = 'select-only'\niterations = 2\n";
    fs::write(bench.path().join("few.toml"), campaign.replace("'select-only'", "'few'") + few).unwrap();
    let refused = bench.pgdyno(&["plan", "few.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("would have ended by then"), "{}", text(&refused));

    // Ubuntu's perf is a script that starts the perf of the running kernel.
    let perf = bench.path().join("perf");
    fs::write(&perf, "#!/bin/sh\necho perf version 6.1.0\n").unwrap();
    fs::set_permissions(&perf, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bench.path().display(), std::env::var("PATH").unwrap());
    let output = bench.command(&["run", "campaign.toml"]).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("perf is a script, not perf itself"), "{}", text(&output));
    let trial = &bench.trials()[0];
    assert_ne!(trial.validity.status, Status::Invalid, "{}", evidence(trial));
    assert!(trial.profile.is_none() && path_length(trial) > 0.0);
}

#[test]
fn data_on_a_disk_are_written_in_the_guest_and_nowhere_else() {
    let bench = Bench::new(&format!(
        "name = 'disk'\n[factors]\nserver = ['18']\nkernel = ['{KERNEL}']\nworkload = ['tpcb-like']\nclients = [1]\n\
         acceleration = ['icount']\nstorage = ['virtio']\n[run]\nduration = '1s'\nwarmup = '100ms'\nrepeats = 1\nretries = 0\n"
    ));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let [trial] = bench.trials().try_into().unwrap();
    let record = bench.store().load(&trial.id).unwrap();
    let environment = &record.environment;
    assert_eq!(environment.data_filesystem.as_deref(), Some("ext4"), "{}", evidence(&trial));
    assert!(evidence(&trial).contains("disk-wait: "), "{}", evidence(&trial));
    assert!(
        environment.data_devices.iter().any(|device| device.name == "vda"),
        "{:?}",
        environment.data_devices
    );
}

#[test]
fn a_kernel_that_panics_makes_its_trials_invalid_and_the_campaign_goes_on() {
    let bench = bench("kernel_args = ['rdinit=/no-such-init', 'quiet']", "");
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 2, "{}", text(&output));
    assert_eq!(trials[0].validity.status, Status::Invalid);
    assert!(evidence(&trials[0]).contains("Kernel panic"), "{}", evidence(&trials[0]));
    assert_ne!(trials[1].validity.status, Status::Invalid, "{}", evidence(&trials[1]));
    let record = bench.store().load(&trials[0].id).unwrap();
    assert!(record.logs.iter().any(|log| log.name == "console" && log.text.contains("Kernel panic")));
}

/// The images of two real kernels, an older and a newer one.
fn images() -> [PathBuf; 2] {
    let cache = Cache::open().unwrap();
    [KERNEL, NEWER].map(|label| machine::kernel(&cache, label, Path::new("/"), &NoProgress).unwrap().image)
}

/// An image whose first instructions in protected mode are invalid, so that the processor is reset.
fn damaged(image: &Path) -> Vec<u8> {
    let mut bytes = fs::read(image).unwrap();
    // The number of the real-mode code's sectors after the first; see the kernel's Documentation/arch/x86/boot.rst.
    let start = (usize::from(bytes[0x1f1]) + 1) * 512;
    bytes[start..start + 4096].copy_from_slice(&[0x0f, 0x0b].repeat(2048));
    bytes
}

/// Bisects by trials of this length in virtual time, under further factors, and returns the exit code and what is printed, without
/// line breaks.
fn bisect(bench: &Bench, duration: &str, factors: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let load = ["-S", "-s", "1", "--metric", "instructions", "--seed", "7"];
    let printed = bench.pgdyno(&[&["bisect"], arguments, &load[..], &["--print-campaign"]].concat());
    let campaign = String::from_utf8(printed.stdout.clone()).unwrap();
    let lengths = format!("duration = \"{duration}\"\nwarmup = \"200ms\"\nretries = 0\n");
    let short = campaign
        .replace("duration = \"5s\"\n", &lengths)
        .replace("[factors]\n", &format!("[factors]\n{factors}"));
    assert!(short.contains(&lengths) && short.contains(factors), "{}", text(&printed));
    fs::write(bench.path().join("campaign.toml"), short).unwrap();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    (output.status.code(), text(&output).split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A repository of Linux in `linux`, whose commits are built into the image of a real kernel. The tag `broken` does not compile.
fn repository(bench: &Bench, image: &Path) {
    let place = bench.path().join("linux");
    fs::create_dir(&place).unwrap();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
        let output =
            std::process::Command::new("git").args(identity).arg("-C").arg(&place).args(arguments).output();
        assert!(output.unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "--quiet", "-b", "main"]);
    // Trees of its own: the cache is that of all tests.
    fs::write(place.join("Kconfig"), place.display().to_string()).unwrap();
    let makefile = format!(
        "defconfig:\n\techo CONFIG_64BIT=y >$(O)/.config\nkvm_guest.config olddefconfig:\n\
         bzImage:\n\tmkdir -p $(O)/arch/x86/boot\n\tcp {} $(O)/arch/x86/boot/bzImage\n",
        image.display()
    );
    let texts =
        [("good", makefile.clone()), ("broken", "broken\n".to_owned()), ("bad", makefile + "# the end\n")];
    for (tag, text) in texts {
        fs::write(place.join("Makefile"), text).unwrap();
        git(&["add", "-A"]);
        git(&["commit", "--quiet", "-m", &format!("Make it {tag}")]);
        git(&["tag", tag]);
    }
    fs::create_dir(place.join("Documentation")).unwrap();
    fs::write(place.join("Documentation/x.rst"), "").unwrap();
    git(&["add", "-A"]);
    git(&["commit", "--quiet", "-m", "Document it"]);
}

#[test]
fn a_kernel_built_from_a_commit_boots_and_the_bundle_names_the_commit() {
    let [image, _] = images();
    let bench = bench("", "");
    repository(&bench, &image);
    let pgdyno = |arguments: &[&str]| {
        let output = bench.pgdyno(arguments);
        (output.status.code(), text(&output))
    };
    let campaign = fs::read_to_string(bench.path().join("campaign.toml")).unwrap();
    let campaign = campaign.replace(&format!("'{KERNEL}'"), "'./linux@good'");
    fs::write(bench.path().join("campaign.toml"), campaign).unwrap();
    let (code, planned) = pgdyno(&["plan", "campaign.toml"]);
    assert_eq!(code, Some(0), "{planned}");
    assert!(planned.contains("the kernel ./linux@good is built first"), "{planned}");
    let place = bench.path().join("linux").canonicalize().unwrap();
    let is_listed = || pgdyno(&["kernel", "list"]).1.contains(&format!("{}@", place.display()));
    assert!(!is_listed(), "a plan builds nothing");

    let (code, printed) = pgdyno(&["run", "campaign.toml"]);
    assert_eq!(code, Some(0), "{printed}");
    let [trial] = bench.trials().try_into().unwrap();
    assert_ne!(trial.validity.status, Status::Invalid, "{}", evidence(&trial));
    let record = bench.store().load(&trial.id).unwrap();
    assert!(record.environment.kernel.as_deref().unwrap().contains("6.1."));
    let machine = record.environment.virtual_machine.as_ref().unwrap();
    assert!(machine.kernel_source.starts_with(&format!("{}@", place.display())), "{}", machine.kernel_source);
    let log = record.logs.iter().find(|log| log.name == "kernel-commit").unwrap();
    assert!(log.text.starts_with("Make it good\nt, "), "{}", log.text);

    let (code, printed) = pgdyno(&["plan", "campaign.toml"]);
    assert!(code == Some(0) && !printed.contains("is built first"), "{printed}");
    let (code, printed) = pgdyno(&["kernel", "fetch", "./linux@broken"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("could not configure the kernel ") && printed.contains("build.log"),
        "{printed}"
    );
    assert!(is_listed());
    let (code, printed) = pgdyno(&["kernel", "remove", "./linux"]);
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.starts_with(&format!("removed {} (", machine.kernel_source)), "{printed}");

    // The levels of a bisection.
    let bisect = |ends: &[&str]| {
        let arguments = [&["bisect", "--kernels"], ends, &["--repo", "./linux", "-S", "--print-campaign"]];
        pgdyno(&arguments.concat())
    };
    let (code, printed) = bisect(&["good..main"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("1 commit left out that changes only documentation"), "{printed}");
    let levels = printed.lines().find(|line| line.starts_with("kernel = ")).unwrap();
    assert_eq!(levels.matches(&format!("{}@", place.display())).count(), 3, "{levels}");
    for (ends, why) in [
        (&["bad", "good"][..], "good is older than bad"),
        (&["good", "gone"], "there is no commit \"gone\""),
        (&["bad", "main"], "no commit from bad to main can have changed a kernel"),
        (&["good"], "expected two commits of the repository"),
    ] {
        let (code, printed) = bisect(ends);
        assert!(code == Some(2) && printed.contains(why), "{ends:?}: {printed}");
    }
}

#[test]
#[ignore = "boots a dozen virtual machines, for minutes: make test-slow"]
fn a_bisection_finds_the_kernel_and_names_those_that_fail_with_it() {
    let [old, new] = images();
    let bench = Bench::new("");
    let at = |name: &str| bench.path().join(name);
    for (name, image) in [("1", &old), ("4", &new)] {
        symlink(image, at(name)).unwrap();
    }
    fs::write(at("2"), damaged(&old)).unwrap();
    fs::write(at("3"), "no kernel").unwrap();
    repository(&bench, &old);
    let levels = ["./1", "./2", "./3", "./linux@broken", "./4"];
    let arguments = [&["--kernels"], &levels[..], &["--server", "18", "-c", "1"]].concat();
    // Checks of each allocation: the older kernel does not know the argument, whose name was slub_debug until 6.8.
    let (code, shown) = bisect(&bench, "300ms", "kernel_args = [\"slab_debug=FZPU\"]\n", &arguments);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("4 kernels under 18, from 1 to 4"), "{shown}");
    assert!(shown.contains("The change is at one of 2, 3, broken, 4, which can't be told apart"), "{shown}");
    assert!(shown.contains("Not measured: broken: could not configure the kernel "), "{shown}");
    assert!(
        shown.contains("Not measured: 2: the virtual machine ended before its first process ran"),
        "{shown}"
    );
    assert!(
        shown.contains("Not measured: 3: the kernel ") && shown.contains("expected a bzImage"),
        "{shown}"
    );
    let trials = bench.trials();
    let invalid = trials.iter().filter(|trial| trial.validity.status == Status::Invalid);
    assert_eq!(invalid.count(), 3, "each is tried once");
    // Both trials of a session are next to each other, in the host's time.
    let usable: Vec<&Trial> = trials.iter().filter(|trial| trial.summary.is_some()).collect();
    for pair in usable.windows(2) {
        assert!(pair[0].ended <= pair[1].started, "{:?} {:?}", pair[0].ended, pair[1].started);
    }

    let output = bench.pgdyno(&["resume", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["state"], &document["figure"]), (&"found".into(), &"instructions".into()));
    let levels: Vec<&str> = document["found"][0]["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| level.as_str().unwrap())
        .collect();
    assert!(levels.len() == 4 && levels[0].ends_with("/2") && levels[3].ends_with("/4"), "{levels:?}");
    let sides = |session: u32| usable.iter().filter(|trial| trial.repeat == session).count();
    let sessions = trials.iter().map(|trial| trial.repeat).max().unwrap();
    assert_eq!(document["sessions"], (1..=sessions).filter(|session| sides(*session) == 2).count());
    let more = bench.trials().split_off(trials.len());
    let invalid = more.iter().filter(|trial| trial.validity.status == Status::Invalid).count();
    assert!(invalid == 1 && more.len() <= 2, "only the kernel that did not boot is tried again: {more:?}");
    for command in [["report"], ["show"]] {
        let output = bench.pgdyno(&command);
        assert!(output.status.success(), "{command:?}: {}", text(&output));
    }
    // The build directory goes with its only kernel.
    for arguments in [["kernel", "fetch", "./linux@good"], ["kernel", "remove", "./linux"]] {
        let output = bench.pgdyno(&arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    }
}

#[test]
#[ignore = "boots a dozen virtual machines, for minutes: make test-slow"]
fn a_bisection_of_arguments_that_change_nothing_finds_nothing() {
    let bench = Bench::new("");
    let arguments = [
        "18",
        "-c",
        "1",
        "--kernel",
        KERNEL,
        "--good-args",
        "quiet",
        "--bad-args",
        "quiet pgdyno.a pgdyno.b=1",
    ];
    let (code, shown) = bisect(&bench, "500ms", "", &arguments);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("2 kernel arguments of 6.1, from quiet to pgdyno.b=1"), "{shown}");
    assert!(
        shown.contains("Nothing to find: pgdyno.b=1 is equivalent to quiet, instructions per transaction"),
        "{shown}"
    );
    let command_line =
        |trial: &Trial| bench.store().load(&trial.id).unwrap().environment.kernel_command_line.unwrap();
    let trials = bench.trials();
    let both =
        trials.iter().filter(|trial| command_line(trial).contains("pgdyno.a pgdyno.b=1 quiet")).count();
    assert_eq!(2 * both, trials.len(), "both ends, in turns");
}

#[test]
fn a_pgdyno_killed_at_any_moment_leaves_nothing_and_the_run_continues() {
    // pgdyno checks whether KVM works, and the run records the acceleration.
    let campaign = format!(
        "name = 'killed'\n[factors]\nserver = ['18']\nkernel = ['{KERNEL}']\nworkload = ['select-only']\nclients = [1]\n\
         [run]\nduration = '5s'\nwarmup = '200ms'\nrepeats = 1\nretries = 0\n"
    );
    let bench = Bench::new(&campaign);
    let running = bench.start();
    let emulator = |running: &support::Running| {
        running.process_tree().into_iter().find(|process| is_guest(&process.command))
    };
    wait_until("the emulator runs", || emulator(&running).is_some());
    let process_tree = running.process_tree();
    signal(running.pid(), libc::SIGKILL);
    wait_until_gone(&process_tree);
    running.end();

    // If the emulator is killed, the trial is stored as invalid.
    let running = bench.start();
    wait_until("the emulator runs", || emulator(&running).is_some());
    signal(emulator(&running).unwrap().pid, libc::SIGKILL);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(4), "{stderr}");
    let trials = bench.trials();
    let why = evidence(trials.last().unwrap());
    assert!(why.contains("virtual machine ended") && !why.contains("console:\n\n"), "{why}");
    let decided = &trials.last().unwrap().run.campaign_toml;
    assert!(
        decided.contains("acceleration = [\"icount\"]") || decided.contains("acceleration = [\"kvm\"]"),
        "{decided}"
    );
    let left = fs::read_dir(bench.path()).unwrap().count();
    assert_eq!(left, 2, "the campaign and its store");
}
