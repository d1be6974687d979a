//! Kernels of real Debian packages, got by this machine's apt; and of paths.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::path::Path;

use support::{Quiet, cache};
use target::{Kernel, TargetError};

/// A kernel of the ordinary cache, where it is fetched into once.
fn debian(label: &str) -> Kernel {
    target::kernel(&cache(), label, Path::new("/"), &Quiet).unwrap()
}

fn names(kernel: &Kernel, drivers: &[&str]) -> Vec<String> {
    target::modules(kernel, drivers).unwrap().into_iter().map(|module| module.name).collect()
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
            target::kernel(&cache(), kernel.image.to_str().unwrap(), Path::new("/"), &Quiet).unwrap();
        assert_eq!((&by_path.release, &by_path.identity), (&kernel.release, &kernel.identity));
        assert_eq!((&by_path.modules, &by_path.config), (&kernel.modules, &kernel.config));
    }
}

#[test]
fn drivers_come_with_what_they_need_before_them() {
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
        for module in target::modules(kernel, &["btrfs", "xfs", "overlay"]).unwrap() {
            assert_eq!(&module.bytes[..4], b"\x7fELF", "{}", module.name);
        }
    }
}

#[test]
fn a_kernel_without_a_driver_is_said_to_lack_it() {
    let kernel = debian("6.12");
    match target::modules(&kernel, &["virtio_blk", "no-such-driver"]) {
        Err(error @ TargetError::NoDriver { .. }) => {
            let text = error.to_string();
            assert!(
                text.contains("lacks the driver no_such_driver") && text.contains(&kernel.release),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}
