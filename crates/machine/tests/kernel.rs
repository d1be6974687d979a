//! Kernels of real Debian packages, from this machine's apt; and of paths.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "../../server/tests/support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use host::{Cache, Progress};
use machine::Error;
use machine::Kernel;
use support::{as_child, cache, role, wait_until};

/// A kernel of the ordinary cache, into which it is fetched once.
fn debian(label: &str) -> Kernel {
    machine::kernel(&cache(), label, Path::new("/"), &host::NoProgress).unwrap()
}

fn names(kernel: &Kernel, drivers: &[&str]) -> Vec<String> {
    machine::modules(kernel, drivers).unwrap().into_iter().map(|module| module.name).collect()
}

#[test]
fn a_version_is_a_debian_kernel_for_virtual_machines() {
    for label in ["6.1", "6.12"] {
        let kernel = debian(label);
        assert_eq!(kernel.label, label);
        assert!(kernel.release.starts_with(&format!("{label}.")), "{kernel:?}");
        assert!(kernel.release.ends_with("-cloud-amd64"), "{kernel:?}");
        assert!(kernel.origin.starts_with(&format!("linux-image-{} ", kernel.release)), "{kernel:?}");
        let config = fs::read_to_string(kernel.config.as_ref().unwrap()).unwrap();
        assert!(config.contains(&format!("Linux/x86 {label}.")), "{label}");
        assert!(kernel.modules.as_ref().unwrap().ends_with(format!("lib/modules/{}", kernel.release)));

        // Its image by its path is the same kernel, and has the same modules.
        let by_path =
            machine::kernel(&cache(), kernel.image.to_str().unwrap(), Path::new("/"), &host::NoProgress)
                .unwrap();
        assert_eq!((&by_path.release, &by_path.identity), (&kernel.release, &kernel.identity));
        assert_eq!((&by_path.modules, &by_path.config), (&kernel.modules, &kernel.config));
    }
}

#[test]
fn drivers_are_loaded_after_their_dependencies() {
    // Most of it is modules in this one, none compressed.
    let old = debian("6.1");
    let loaded = names(&old, &["virtio-blk", "ext4", "virtio_pci"]);
    let before = |a: &str, b: &str| {
        let place = |name: &str| loaded.iter().position(|one| one == name).expect(name);
        assert!(place(a) < place(b), "{loaded:?}");
    };
    before("virtio_ring", "virtio_blk");
    before("virtio", "virtio_blk");
    before("virtio_pci_modern_dev", "virtio_pci");
    assert!(!loaded.contains(&"ext4".to_owned()), "it is built in: {loaded:?}");

    // In this one modules are compressed, and virtio is built in.
    let new = debian("6.12");
    assert_eq!(names(&new, &["virtio_blk"]), ["virtio_blk"]);
    assert_eq!(names(&new, &["virtio_pci", "ext4"]), Vec::<String>::new());
    for kernel in [&old, &new] {
        for module in machine::modules(kernel, &["btrfs", "xfs", "overlay"]).unwrap() {
            assert_eq!(&module.bytes[..4], b"\x7fELF", "{}", module.name);
        }
    }
}

#[test]
fn a_kernel_without_a_driver_is_reported() {
    let kernel = debian("6.12");
    match machine::modules(&kernel, &["virtio_blk", "no-such-driver"]) {
        Err(error @ Error::NoDriver { .. }) => {
            let text = error.to_string();
            assert!(
                text.contains("lacks the driver no_such_driver") && text.contains(&kernel.release),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// Interrupts as soon as something is downloaded.
struct Interrupting;

impl Progress for Interrupting {
    fn step(&self, what: &str, _: u64, _: Option<u64>) {
        println!("STEP {what}");
    }

    fn interrupted(&self) -> bool {
        std::env::var("PGDYNO_TEST_PID").is_ok_and(|pid| Path::new(&pid).exists())
    }
}

#[test]
fn a_fetch_that_is_interrupted_ends_apt_and_leaves_nothing() {
    if role().is_some() {
        let fetched = machine::kernel(&Cache::open().unwrap(), "6.12", Path::new("/"), &Interrupting);
        return println!("ENDED {}", fetched.map(drop).unwrap_err());
    }
    let place = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    // It does not end at once, and has a child.
    let pid = at("pid");
    let get = format!("sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; wait");
    let package = "Package: linux-image-6.12.9-amd64\nVersion: 6.12.9-1\nFilename: x\nSize: 9\n";
    for (name, text) in [("apt-get", get), ("apt-cache", format!("printf '{package}'"))] {
        let text = format!(
            "#!/bin/sh\n[ \"$1\" != pkgnames ] || {{ echo linux-image-6.12.9-amd64; exit; }}\n{text}\n"
        );
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
    let environment = [("PATH", &*path), ("PGDYNO_CACHE", &at("cache")), ("PGDYNO_TEST_PID", &pid)];
    let test = "a_fetch_that_is_interrupted_ends_apt_and_leaves_nothing";
    let output = as_child(test, "fetch", &environment).wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("STEP downloading linux-image-6.12.9-amd64"), "{stdout}");
    assert!(stdout.contains("ENDED interrupted"), "{stdout}");
    let sleeper = fs::read_to_string(&pid).unwrap();
    let line = || fs::read(format!("/proc/{}/cmdline", sleeper.trim())).unwrap_or_default();
    wait_until("apt's child has ended", || !line().starts_with(b"sleep"));
    assert_eq!(fs::read_dir(at("cache/kernels")).unwrap().count(), 0);
}
