//! `pgdyno kernel` on a cache of its own, with a fake apt and packages built by dpkg-deb. The tests of the crate
//! `machine` use the real apt and real packages.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use host::{Cache, NoProgress};
use serde_json::Value;
use tempfile::TempDir;

/// A machine with a fake apt and a cache.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap());
        fs::set_permissions(machine.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for directory in ["bin", "pool", "empty"] {
            fs::create_dir(machine.path(directory)).unwrap();
        }
        machine.script(
            "apt-cache",
            "echo ask >> log\ncase $1 in\npkgnames) sed -n 's/^Package: //p' lists ;;\nshow) cat lists ;;\nesac",
        );
        machine.script(
            "apt-get",
            "to=$OLDPWD\nfor last; do\n  case $last in linux-*=*)\n    echo \"get $last\" >> log\n    \
             cp \"pool/$last.deb\" \"$to/\" || { echo \"E: Failed to fetch $last  404  Not Found\" >&2; exit 100; } ;;\n  \
             esac\ndone",
        );
        fs::write(machine.path("lists"), "").unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a program that runs in this directory.
    fn script(&self, name: &str, text: &str) {
        let file = self.path("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\ncd {}\n{text}\n", self.0.path().display())).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds a package with these files to apt.
    fn offer(&self, name: &str, version: &str, depends: &str, files: &[(&str, &[u8])]) {
        let tree = tempfile::tempdir().unwrap();
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n"
        );
        let control = ("DEBIAN/control", control.as_bytes());
        for (file, content) in files.iter().copied().chain([control]) {
            let file = tree.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "--build"]).arg(tree.path());
        build.arg(self.path("pool").join(format!("{name}={version}.deb")));
        assert!(build.output().unwrap().status.success());
        self.list(name, version, depends);
    }

    /// Adds a package to apt that it lists but can't download.
    fn list(&self, name: &str, version: &str, depends: &str) {
        let lists = fs::read_to_string(self.path("lists")).unwrap();
        let depends = if depends.is_empty() { String::new() } else { format!("Depends: {depends}\n") };
        let package =
            format!("Package: {name}\nVersion: {version}\n{depends}Filename: pool/x.deb\nSize: 9\n\n");
        fs::write(self.path("lists"), lists + &package).unwrap();
    }

    /// Adds the cloud kernel of a release to apt.
    fn offer_kernel(&self, release: &str) {
        let (image, config) = (format!("boot/vmlinuz-{release}"), format!("boot/config-{release}"));
        let built_in = format!("lib/modules/{release}/modules.builtin");
        self.offer(
            &cloud(release),
            &format!("{release}-1"),
            "",
            &[(&image, release.as_bytes()), (&config, b""), (&built_in, b"kernel/fs/ext4/ext4.ko\n")]
                .map(|(file, content)| (file.as_str(), content)),
        );
    }

    fn command(&self, args: &[&str]) -> Command {
        self.pgdyno(&[&["kernel"], args].concat())
    }

    fn pgdyno(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        let path = std::env::var("PATH").unwrap();
        command.args(args).env("PGDYNO_CACHE", self.path("cache"));
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.current_dir(self.0.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `pgdyno kernel`; returns its exit code and output.
    fn kernel(&self, args: &[&str]) -> (i32, String) {
        printed(&self.command(args).output().unwrap())
    }

    fn kernel_without_apt(&self, args: &[&str]) -> (i32, String) {
        printed(&self.command(args).env("PATH", self.path("empty")).output().unwrap())
    }

    /// Queries to apt and downloads since the last call.
    fn log(&self) -> String {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let _ = fs::remove_file(self.path("log"));
        log
    }

    fn listed(&self) -> Vec<Value> {
        let output = self.command(&["list", "--format", "json"]).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["format"], 1);
        document["kernels"].as_array().unwrap().clone()
    }

    /// Names of all entries in the cache's directory of kernels.
    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache/kernels")).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Name of a release's package.
fn cloud(release: &str) -> String {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    format!("linux-image-{release}-cloud-{architecture}")
}

fn printed(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn holds((code, text): (i32, String), expected: i32, words: &[&str]) {
    assert_eq!(code, expected, "{text}");
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

#[test]
fn a_bisection_of_a_range_has_the_kernels_of_apt_and_of_the_cache() {
    let machine = Machine::new();
    machine.offer_kernel("6.11.3");
    holds(machine.kernel(&["fetch", "6.11"]), 0, &["Linux 6.11.3"]);
    machine.log();
    fs::write(machine.path("lists"), "").unwrap();
    for release in ["6.13.1", "6.12.10", "6.12.9", "6.10.4"] {
        machine.list(&cloud(release), &format!("{release}-1"), "");
    }
    let bisect = |ends: &[&str]| {
        let arguments = [&["bisect", "--kernels"], ends, &["--server", "18", "-S", "--print-campaign"]];
        machine.pgdyno(&arguments.concat())
    };
    let kernels = r#"kernel = ["6.10", "6.11.3", "6.12.9", "6.12.10", "6.13"]"#;
    holds(printed(&bisect(&["6.10", "6.13"]).output().unwrap()), 0, &[kernels]);
    holds(printed(&bisect(&["6.10..6.13"]).output().unwrap()), 0, &[kernels]);
    let none =
        "neither apt nor the cache has a kernel between 6.12.9 (Linux 6.12.9) and 6.12.10 (Linux 6.12.10)";
    holds(
        printed(&bisect(&["6.12.9", "6.12.10"]).output().unwrap()),
        0,
        &[none, r#"kernel = ["6.12.9", "6.12.10"]"#],
    );
    let older = "6.13 (Linux 6.13.1) is not older than 6.11 (Linux 6.11.3)";
    holds(printed(&bisect(&["6.13", "6.11"]).output().unwrap()), 2, &[older]);
    holds(printed(&bisect(&["6.10", "6.99"]).output().unwrap()), 2, &["there is no kernel 6.99"]);
    // Without apt, the kernels of the cache are known.
    let empty = machine.path("empty");
    let without_apt = |ends: &[&str]| printed(&bisect(ends).env("PATH", &empty).output().unwrap());
    holds(without_apt(&["6.11", "6.13"]), 2, &["only the kernels in the cache are known", "no kernel 6.13"]);
    assert!(!machine.log().contains("get "), "nothing was downloaded");
}

#[test]
fn a_label_keeps_its_kernel_until_it_is_fetched_again() {
    let machine = Machine::new();
    machine.offer_kernel("6.12.9");
    holds(
        machine.kernel(&["fetch", "6.12"]),
        0,
        &["6.12: Linux 6.12.9 (", &cloud("6.12.9"), "cache/kernels/"],
    );
    machine.offer_kernel("6.12.10");
    machine.log();

    // The kernels as a campaign requests them.
    let cache = Cache::at(&machine.path("cache")).unwrap();
    let kernel = machine::kernel(&cache, "6.12", Path::new("/"), &NoProgress).unwrap();
    assert_eq!(
        (&*kernel.release, fs::read_to_string(&kernel.image).unwrap()),
        ("6.12.9", "6.12.9".to_owned())
    );
    assert_eq!(machine::modules(&kernel, &["ext4"]).unwrap(), []);
    let by_name = machine::kernel(&cache, &cloud("6.12.9"), Path::new("/"), &NoProgress).unwrap();
    assert_eq!(by_name.identity, kernel.identity);
    assert_eq!(machine.log(), "", "apt was asked");

    let old = format!("previously {} 6.12.9-1", cloud("6.12.9"));
    holds(machine.kernel(&["fetch", "6.12"]), 0, &["6.12: Linux 6.12.10 (", &old]);
    holds(machine.kernel(&["fetch", "6.12"]), 0, &["6.12: Linux 6.12.10 ("]);
    assert_eq!(machine.log().matches("get ").count(), 1);

    let listed = machine.listed();
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[0]["release"], &listed[0]["labels"][0]), (&"6.12.10".into(), &"6.12".into()));
    assert_eq!((&listed[1]["release"], &listed[1]["labels"][0]), (&"6.12.9".into(), &cloud("6.12.9").into()));
    assert_eq!(listed[1]["identity"], kernel.identity);
    let (_, table) = machine.kernel(&["list"]);
    assert!(table.starts_with("labels") && table.lines().count() == 3, "{table}");

    // The older kernel is still in use.
    let remove = ["remove", &cloud("6.12.9")];
    holds(machine.kernel(&remove), 1, &["is in use by another pgdyno"]);
    drop(kernel);
    drop(by_name);
    holds(machine.kernel(&remove), 0, &["removed", "6.12.9-1"]);
    holds(machine.kernel(&remove), 2, &["pgdyno kernel list"]);
    holds(machine.kernel(&["remove", "6.12"]), 0, &["labelled 6.12"]);
    assert_eq!(machine.kept(), Vec::<String>::new());
    assert!(machine.listed().is_empty());
}

#[test]
fn without_apt_fetched_kernels_are_used() {
    let machine = Machine::new();
    machine.offer_kernel("6.1.9");
    holds(machine.kernel(&["fetch", &cloud("6.1.*")]), 0, &[]);
    let needs_apt =
        "fetching them requires apt and dpkg, but this machine has no `apt-cache`; the path of a bzImage";
    holds(machine.kernel_without_apt(&["fetch", "6.12"]), 1, &[needs_apt]);
    holds(
        machine.kernel_without_apt(&["fetch", "6.1"]),
        0,
        &[needs_apt, "which is in the cache", "6.1: Linux 6.1.9"],
    );
    assert_eq!(machine.listed()[0]["labels"].as_array().unwrap().len(), 2);
}

#[test]
fn an_apt_without_lists_has_to_be_updated() {
    let machine = Machine::new();
    holds(
        machine.kernel(&["fetch", "6.12"]),
        1,
        &["apt's lists of packages contain no kernels", "run `apt-get update`"],
    );
}

#[test]
fn unavailable_packages_and_other_packages_leave_nothing() {
    let machine = Machine::new();
    machine.list(&cloud("6.5.1"), "6.5.1-1", "");
    holds(
        machine.kernel(&["fetch", "6.5"]),
        1,
        &["404  Not Found", "no longer exists, run `apt-get update`"],
    );

    machine.list(&cloud("6.6.1"), "6.6.1-1", "");
    fs::write(machine.path("pool").join(format!("{}=6.6.1-1.deb", cloud("6.6.1"))), "cut off").unwrap();
    holds(machine.kernel(&["fetch", "6.6"]), 1, &["can't be unpacked: dpkg-deb: error"]);

    machine.offer(&cloud("6.7.1"), "6.7.1-1", "", &[("boot/vmlinuz-../x", b""), ("boot/vmlinuz-", b"")]);
    holds(machine.kernel(&["fetch", "6.7"]), 2, &["its package contains no boot/vmlinuz-RELEASE"]);

    machine.list(&cloud("6.8.1"), "6.8.1-1", "linux-modules-6.8.1 (= 6.8.1-1)");
    holds(machine.kernel(&["fetch", "6.8"]), 1, &["needs linux-modules-6.8.1, which apt does not have"]);
    assert_eq!(machine.kept(), Vec::<String>::new());
    assert!(machine.listed().is_empty());

    holds(machine.kernel(&["fetch", "6.9"]), 2, &["there is no kernel 6.9: apt has", &cloud("6.5.1")]);
    holds(machine.kernel(&["fetch", "vmlinuz"]), 2, &["\"vmlinuz\" is not a kernel"]);
    holds(machine.kernel(&["fetch", "./vmlinuz"]), 2, &["can't be found"]);
    holds(machine.kernel(&["fetch"]), 2, &["LABEL"]);
}

#[test]
fn image_and_modules_may_be_in_packages_of_their_own() {
    let machine = Machine::new();
    let depends =
        "kmod, linux-binary-7.0.1 (= 7.0.1-1) | linux-binary-7.0.1-unsigned, linux-modules-7.0.1 (= 7.0.1-1)";
    machine.offer("linux-modules-7.0.1", "7.0.1-1", "", &[("usr/lib/modules/7.0.1/modules.builtin", b"")]);
    machine.offer("linux-binary-7.0.1", "7.0.1-1", "", &[("boot/vmlinuz-7.0.1", b"image")]);
    machine.offer(&cloud("7.0.1"), "7.0.1-1", depends, &[]);
    machine.list("linux-image-cloud", "7.0.1-1", &format!("{} (= 7.0.1-1)", cloud("7.0.1")));
    holds(machine.kernel(&["fetch", "linux-image-cloud"]), 0, &["Linux 7.0.1 ("]);
    let listed = machine.listed();
    assert_eq!(listed[0]["package"], cloud("7.0.1"));
    assert!(listed[0]["modules"].as_str().unwrap().ends_with("usr/lib/modules/7.0.1"));
    assert_eq!(listed[0]["config"], Value::Null);
}

#[test]
fn concurrent_fetches_download_a_kernel_once() {
    let machine = Machine::new();
    machine.offer_kernel("6.12.9");
    let children: Vec<Child> = (0..3).map(|_| machine.command(&["fetch", "6.12"]).spawn().unwrap()).collect();
    for child in children {
        holds(printed(&child.wait_with_output().unwrap()), 0, &["6.12: Linux 6.12.9"]);
    }
    assert_eq!(machine.log().matches("get ").count(), 1);
    assert_eq!(machine.kept(), [format!("{}_6.12.9-1", cloud("6.12.9"))]);
}

#[test]
fn a_killed_fetch_leaves_no_kernel_and_no_process() {
    let machine = Machine::new();
    machine.offer_kernel("6.12.9");
    machine.script("apt-get", "echo $$ > pid.new\nmv pid.new pid\nexec sleep 1000");
    let mut child = machine.command(&["fetch", "6.12"]).spawn().unwrap();
    wait_until("apt-get runs", || machine.path("pid").exists());
    let pid = fs::read_to_string(machine.path("pid")).unwrap();
    let runs =
        || fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|line| line.starts_with(b"sleep"));
    assert!(machine.listed().is_empty());
    assert_eq!(machine.kept().len(), 1, "others do not take it away while it is under way");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("apt-get has ended", || !runs());

    holds(machine.kernel(&["list"]), 0, &["removed 1 incomplete kernels of a killed pgdyno"]);
    assert_eq!(machine.kept(), Vec::<String>::new());
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::yield_now();
    }
}
