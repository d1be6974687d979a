//! A campaign that boots its kernels without intervention, in a virtual machine with systemd, GRUB, two kernels and
//! one that panics.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(clippy::print_stdout, reason = "failures are diagnosed from the output of the machine")]

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use host::Cache;
use model::factor::Factor;
use model::record::{Status, Trial};
use store::Store;
use tempfile::TempDir;

/// Offset of the file system on the boot disk, in bytes.
const ROOT_OFFSET: u64 = 2048 * 512;
/// Several times the duration under emulation.
const TIMEOUT: Duration = Duration::from_secs(45 * 60);

/// The virtual machine, and access to its disks once it is off.
struct Vm {
    directory: TempDir,
}

/// QEMU, killed when dropped, however the test ends.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    output.stdout
}

/// Boot disk of the machine, built once for all tests and kept for later runs.
fn base_image() -> &'static Path {
    static IMAGE: LazyLock<PathBuf> = LazyLock::new(|| {
        let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reboot.img");
        if !image.exists() {
            run(Command::new("tests/reboot/image").arg(&image));
        }
        image
    });
    &IMAGE
}

/// Directory of an installed PostgreSQL 18.
fn server() -> PathBuf {
    let find = || {
        let installed = server::installed(&Cache::open().unwrap()).unwrap();
        installed.into_iter().map(|server| server.directory().to_owned()).find(|directory| {
            let name = directory.file_name().unwrap().to_string_lossy().into_owned();
            name.strip_prefix("18.").is_some_and(|minor| minor.parse::<u32>().is_ok())
        })
    };
    find().unwrap_or_else(|| {
        run(Command::new(env!("CARGO_BIN_EXE_pgdyno")).args(["server", "install", "18"]));
        find().unwrap()
    })
}

impl Vm {
    /// A machine with pgdyno, a server, and a campaign.
    fn new(campaign: &str, options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        run(Command::new("cp")
            .arg("--sparse=always")
            .args([base_image(), &directory.path().join("root.img")]));

        let work = directory.path().join("work");
        let installations = work.join("cache/installations");
        fs::create_dir_all(&installations).unwrap();
        run(Command::new("strip")
            .arg("-o")
            .args([&work.join("pgdyno"), Path::new(env!("CARGO_BIN_EXE_pgdyno"))]));
        fs::copy("tests/reboot/guest", work.join("test")).unwrap();
        fs::write(work.join("campaign.toml"), campaign).unwrap();
        fs::write(work.join("options"), options).unwrap();
        // With the server, the machine needs no network.
        run(Command::new("cp").arg("-a").args([&server(), &installations]));

        let disk = directory.path().join("work.img");
        fs::File::create(&disk).unwrap().set_len(1 << 30).unwrap();
        run(Command::new("mke2fs").args(["-q", "-t", "ext4", "-d"]).args([&work, &disk]));
        fs::File::create(directory.path().join("erst")).unwrap().set_len(1 << 16).unwrap();
        Self { directory }
    }

    /// Runs the machine until it powers off.
    fn run(&self) {
        let drive = |name: &str| format!("file={name},format=raw,if=virtio,cache=unsafe");
        // QEMU ends with the test, even if the test is killed.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1G", "-smp", "2"])
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-serial", "file:console"])
            .args(["-drive", &drive("root.img"), "-drive", &drive("work.img")])
            // Persistent storage (ACPI ERST) for the log of a kernel that panics.
            .args(["-object", "memory-backend-file,id=erst,mem-path=erst,size=64K,share=on"])
            .args(["-device", "acpi-erst,memdev=erst"])
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        let mut qemu = Qemu(qemu.spawn().unwrap());
        let end = Instant::now() + TIMEOUT;
        while qemu.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "it never powered off; its console:\n{}", self.console());
            std::thread::sleep(Duration::from_millis(200));
        }
        let mut out = stdout();
        for file in ["log", "dry-run", ".pgdyno/kernels-by-reboot.log"] {
            writeln!(out, "--- {file}\n{}", self.work(file)).unwrap();
        }
    }

    /// Releases of the kernels that booted, in order.
    fn boots(&self) -> Vec<String> {
        let boots = self.work("boots");
        boots.lines().map(|line| line.split(' ').nth(1).unwrap_or_default().to_owned()).collect()
    }

    fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.directory.path().join("console")).unwrap()).into_owned()
    }

    fn debugfs(&self, image: &str, request: &str) -> String {
        let mut command = Command::new("debugfs");
        command.args(["-R", request, image]).current_dir(self.directory.path()).stderr(Stdio::null());
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// Content of a file on the work disk.
    fn work(&self, name: &str) -> String {
        self.debugfs("work.img", &format!("cat /{name}"))
    }

    /// Content of a file on the boot disk.
    fn root(&self, name: &str) -> String {
        self.debugfs(&format!("root.img?offset={ROOT_OFFSET}"), &format!("cat {name}"))
    }

    fn store(&self) -> Store {
        self.debugfs("work.img", "rdump /.pgdyno .");
        Store::existing(&self.directory.path().join(".pgdyno")).unwrap()
    }
}

fn release(kernels: &[String], begin: &str) -> String {
    kernels.iter().find(|kernel| kernel.starts_with(begin)).unwrap().clone()
}

/// Boots: the usual kernel (6.12), twice the one that panics followed by the usual one, 6.1, the usual one.
#[test]
#[ignore = "boots a virtual machine seven times, for minutes: make test-reboot"]
fn a_campaign_boots_its_kernels_and_continues_after_one_that_panics() {
    let vm = Vm::new(
        "name = 'walk'\n[factors]\nkernel = ['6.6', '6.1', '6.12']\nserver = ['18']\nworkload = ['select-only']\n\
         scale = [1]\nclients = [1]\n[run]\nduration = '2s'\nwarmup = '500ms'\nrepeats = 1\nretries = 1\nseed = 1\n",
        "",
    );
    vm.run();

    let boots = vm.boots();
    let (usual, older) = (release(&boots, "6.12."), release(&boots, "6.1."));
    // A kernel that panics never records its boot.
    assert_eq!(boots, [&usual, &usual, &usual, &older, &usual].map(String::clone));
    let panics = vm.console().matches("Kernel panic - not syncing").count();
    assert_eq!(panics, 2, "one attempt and one retry");

    let store = vm.store();
    let trials = store.trials().unwrap();
    let trials_of = |kernel: &str| -> Vec<&Trial> {
        trials.iter().filter(|trial| Factor::Kernel.level(&trial.cell) == kernel).collect()
    };
    for (label, release) in [("6.1", &older), ("6.12", &usual)] {
        let last = *trials_of(label).last().unwrap();
        assert!(last.summary.as_ref().is_some_and(|summary| summary.tps > 0.0), "{:?}", last.validity);
        let environment = store.environment(&last.id).unwrap();
        assert_eq!(environment.kernel.as_deref(), Some(format!("Linux {release}").as_str()));
    }
    let lost = trials_of("6.6");
    assert_eq!(lost.iter().map(|trial| trial.attempt).collect::<Vec<_>>(), [1, 2]);
    for trial in lost {
        assert_eq!(trial.validity.status, Status::Invalid);
        let finding = &trial.validity.findings[0];
        assert_eq!(finding.gate, "kernel");
        let begin = "the kernel 6.6.0-broken was booted by grub and did not come up: \"Kernel panic - not syncing: VFS";
        assert!(finding.evidence.starts_with(begin), "{}", finding.evidence);
        assert!(finding.evidence.ends_with(&format!("; now running: {usual}")), "{}", finding.evidence);
        let kept = store.load(&trial.id).unwrap();
        assert!(kept.logs.iter().any(|log| log.name == "kernel" && log.text.contains("Call Trace")));
        assert_eq!(kept.environment.kernel, None, "it ran on no machine");
    }

    // The dry run and the refused run change nothing, and at the end everything is restored.
    let before = vm.work("before");
    assert!(before.contains("/boot/grub/grubenv") && before.lines().count() > 100, "{before}");
    assert_eq!(vm.work("after-dry-run"), before);
    assert_eq!(vm.work("after-refused"), before);
    assert!(
        vm.work("refused").ends_with("error: confirmation requires a terminal: use --yes to skip it\n2\n")
    );
    assert_eq!(vm.work("after"), before);
    assert!(vm.work("units").contains("0 unit files listed"), "{}", vm.work("units"));
    assert!(!vm.root("/boot/grub/grubenv").contains("next_entry"));
    assert_eq!(vm.work("end").trim(), usual);
    for step in [
        "6.6.0-broken, by grub, 2 times at most: 1 trials\n",
        "  write /etc/systemd/system/pgdyno-campaign.service: ",
        "  set next_entry=pgdyno-kernel in /boot/grub/grubenv\n",
        "  run systemctl reboot\n",
        "  remove next_entry from /boot/grub/grubenv\n",
    ] {
        assert!(vm.work("dry-run").contains(step), "{step}");
    }
}

/// By kexec, which bypasses GRUB: 6.1 as it is, then with an argument, both with a sysctl parameter, then the usual
/// kernel.
#[test]
#[ignore = "boots a virtual machine four times, for minutes: make test-reboot"]
fn kernels_are_booted_by_kexec_with_their_arguments_and_parameters() {
    let vm = Vm::new(
        "name = 'walk'\n[factors]\nkernel = ['6.1']\nkernel_args = ['none', 'mitigations=off']\nserver = ['18']\n\
         sysctl = ['calm']\nworkload = ['select-only']\nscale = [1]\nclients = [1]\n[run]\nduration = '2s'\n\
         warmup = '500ms'\nrepeats = 1\nretries = 0\nseed = 1\n[sysctls.calm]\n'vm.swappiness' = 7\n",
        "--by kexec",
    );
    vm.run();
    let boots = vm.boots();
    let (usual, older) = (release(&boots, "6.12."), release(&boots, "6.1."));
    assert_eq!(boots, [&usual, &older, &older, &usual].map(String::clone));
    let store = vm.store();
    let trials = store.trials().unwrap();
    let args: Vec<&str> =
        trials.iter().map(|trial| trial.cell.kernel_args.known().unwrap().as_str()).collect();
    assert_eq!(args, ["", "mitigations=off"]);
    for trial in &trials {
        assert!(trial.summary.as_ref().is_some_and(|summary| summary.tps > 0.0), "{:?}", trial.validity);
        let environment = store.environment(&trial.id).unwrap();
        assert_eq!(environment.kernel.as_deref(), Some(format!("Linux {older}").as_str()));
        let line = environment.kernel_command_line.unwrap();
        assert_eq!(line.contains("mitigations=off"), trial.cell.kernel_args == "mitigations=off", "{line}");
        assert_eq!(environment.sysctl.get("vm.swappiness").map(String::as_str), Some("7"));
    }
    assert_eq!(vm.work("after"), vm.work("before"));
    assert_eq!(vm.work("end").trim(), usual);
    assert!(vm.work("dry-run").contains("  run systemctl kexec\n"));
}
