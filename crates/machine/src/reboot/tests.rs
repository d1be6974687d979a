//! A machine in a directory: the steps planned for it, and its state after they were executed and undone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use tempfile::TempDir;

use super::*;
use crate::reboot::{Sysctl, execute};

const OLD: &str = "6.1.0-56-cloud-amd64";
const NEW: &str = "6.12.117+deb12-cloud-amd64";

struct Fixture {
    directory: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap() };
        machine.write("proc/sys/kernel/osrelease", &format!("{NEW}\n"));
        machine.write("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-x root=/dev/vda1 ro quiet\n");
        machine.write("boot/grub/grub.cfg", include_str!("grub_cfg/debian-12.cfg"));
        machine.write("boot/grub/grubenv", &format!("# GRUB Environment Block\n{}", "#".repeat(999)));
        for release in [OLD, NEW] {
            machine.write(&format!("boot/vmlinuz-{release}"), "");
            machine.write(&format!("boot/initrd.img-{release}"), "");
            machine.write(&format!("lib/modules/{release}/modules.dep"), "");
        }
        // A removed kernel leaves its modules.
        machine.write("lib/modules/5.10.0-1/modules.dep", "");
        machine.write("run/systemd/system/x", "");
        machine.write("store/x", "");
        machine.write("pgdyno", "");
        machine.mounted("ext4", "/dev/vda1");
        machine
    }

    fn mounted(&self, kind: &str, device: &str) {
        let number = fs::metadata(self.directory.path()).unwrap().dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let line = format!("22 1 {major}:{minor} / / rw,relatime shared:1 - {kind} {device} rw\n");
        self.write("proc/self/mountinfo", &line);
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn machine(&self) -> Machine {
        Machine::at(self.directory.path())
    }

    fn prepare(&self, by: Option<Loader>) -> Result<Prepared, Error> {
        let campaign = Campaign {
            store: "/store".into(),
            run: "01RUN".to_owned(),
            name: "kernels".to_owned(),
            file: "/campaign.toml".into(),
            text: "name = 'kernels'".to_owned(),
            seed: Some(7),
            processors: Some(2),
            tags: Vec::new(),
            notes: None,
            pgdyno_version: "1".to_owned(),
            strict: false,
            allow_concurrent: false,
            insecure_mirror: false,
            earlier: Default::default(),
        };
        let environment = BTreeMap::from([("PGDYNO_CACHE".to_owned(), "/a cache/50%".to_owned())]);
        self.machine().prepare(campaign, &[boot(OLD, "")], by, Path::new("/pgdyno"), &environment)
    }

    fn refusal(&self, by: Option<Loader>) -> String {
        self.prepare(by).unwrap_err().to_string()
    }

    /// Every file below the directory, with its content.
    fn files(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.directory.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path)
                } else {
                    let name = path.strip_prefix(self.directory.path()).unwrap().display().to_string();
                    found.insert(name, fs::read_to_string(&path).unwrap_or_default());
                }
            }
        }
        found
    }

    /// The steps as a dry run prints them, without the directory.
    fn printed(&self, steps: &[Step]) -> Vec<String> {
        let root = format!("{}/", self.directory.path().display());
        steps.iter().map(|step| step.to_string().replace(&root, "/")).collect()
    }
}

fn boot(release: &str, args: &str) -> Boot {
    let sysctl = Sysctl { name: "default".to_owned(), values: BTreeMap::new() };
    Boot { release: release.to_owned(), args: args.to_owned(), sysctl }
}

/// Steps that run no program.
fn files_only(steps: &[Step]) -> Vec<Step> {
    steps.iter().filter(|step| !matches!(step, Step::Run { .. })).cloned().collect()
}

#[test]
fn a_machine_is_restored_to_its_initial_state() {
    for custom in [None, Some("menuentry 'mine' {\n}\n")] {
        let machine = Fixture::new();
        if let Some(custom) = custom {
            machine.write("boot/grub/custom.cfg", custom);
        }
        let custom_file = machine.directory.path().join("boot/grub/custom.cfg");
        let mode = || fs::metadata(&custom_file).map(|meta| meta.permissions().mode() & 0o777).ok();
        if custom.is_some() {
            fs::set_permissions(&custom_file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let before = machine.files();
        let Prepared { mut journal, steps } = machine.prepare(None).unwrap();
        assert_eq!(journal.loader, Loader::Grub);
        assert_eq!(
            machine.printed(&steps),
            [
                "write /var/lib/pgdyno/kernels-by-reboot.json: the journal of what must be restored",
                "write /etc/systemd/system/pgdyno-campaign.service: the systemd unit that continues the campaign after each boot",
                "link /etc/systemd/system/multi-user.target.wants/pgdyno-campaign.service to \
                 /etc/systemd/system/pgdyno-campaign.service",
            ]
        );
        assert_eq!(machine.files(), before, "planning changes nothing");
        execute(&files_only(&steps)).unwrap();
        let requested = boot(OLD, "mitigations=off");
        journal.request(&requested);
        let steps = machine.machine().boot(&journal, &requested).unwrap();
        assert_eq!(
            machine.printed(&steps)[1..],
            [
                "write /boot/grub/custom.cfg: the entry pgdyno-kernel of 6.1.0-56-cloud-amd64 with mitigations=off",
                "set next_entry=pgdyno-kernel in /boot/grub/grubenv",
                "run systemctl reboot",
            ]
        );
        execute(&files_only(&steps)).unwrap();
        let files = machine.files();
        let entry = &files["boot/grub/custom.cfg"];
        assert!(entry.starts_with(custom.unwrap_or_default()), "{entry}");
        assert!(entry.contains("ro console=ttyS0 net.ifnames=0 panic=10 mitigations=off\n"), "{entry}");
        assert!(files["boot/grub/grubenv"].contains("\nnext_entry=pgdyno-kernel\n#"));
        // As the next pgdyno finds it.
        assert_eq!(machine.machine().journal().unwrap(), Some(journal.clone()));
        machine.write(
            "boot/grub/grubenv",
            &files["boot/grub/grubenv"].replace("next_entry=pgdyno-kernel\n", "next_entry=\n#############"),
        );
        execute(&files_only(&machine.machine().restore(&journal).unwrap())).unwrap();
        assert_eq!(machine.files(), before);
        assert_eq!(mode(), custom.map(|_| 0o600));
        // Restoring twice is harmless.
        execute(&files_only(&machine.machine().restore(&journal).unwrap())).unwrap();
        assert_eq!(machine.files(), before);
    }
}

#[test]
fn only_the_owner_reads_the_journal_and_all_read_the_unit() {
    let machine = Fixture::new();
    execute(&files_only(&machine.prepare(None).unwrap().steps)).unwrap();
    let mode =
        |path: &str| fs::metadata(machine.directory.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("var/lib/pgdyno/kernels-by-reboot.json"), 0o600);
    assert_eq!(mode("etc/systemd/system/pgdyno-campaign.service"), 0o644);
}

#[test]
fn the_unit_continues_the_run() {
    let steps = Fixture::new().prepare(None).unwrap().steps;
    let unit = steps.iter().find_map(|step| match step {
        Step::Write { path, text, .. } if path.extension().is_some_and(|end| end == "service") => Some(text),
        _ => None,
    });
    let unit = unit.unwrap();
    for line in [
        "ExecStart=\"/pgdyno\" resume --run 01RUN --store \"/store\" --kernels-by-reboot\n",
        "Environment=\"PGDYNO_CACHE=/a cache/50%%\"\n",
        "StandardOutput=append:/store/kernels-by-reboot.log\n",
        "RequiresMountsFor=\"/store\"\n",
    ] {
        assert!(unit.contains(line), "{line} is not in\n{unit}");
    }
}

#[test]
fn obstacles_are_reported_before_anything_is_changed() {
    let machine = Fixture::new();
    machine.mounted("btrfs", "/dev/vda1");
    let why = machine.refusal(None);
    assert!(why.contains("GRUB can't write /boot/grub/grubenv, which is on /dev/vda1 (btrfs)"), "{why}");
    assert!(why.contains("apt-get install kexec-tools"), "{why}");
    machine.mounted("ext4", "/dev/mapper/vg-root");
    assert!(machine.refusal(Some(Loader::Grub)).contains("/dev/mapper/vg-root"));
    machine.mounted("tmpfs", "tmpfs");
    assert!(machine.refusal(None).contains("would not survive a boot"));

    let machine = Fixture::new();
    fs::remove_file(machine.directory.path().join(format!("boot/vmlinuz-{OLD}"))).unwrap();
    assert!(machine.refusal(None).contains("is not installed"));

    let machine = Fixture::new();
    let grub = include_str!("grub_cfg/debian-12.cfg").replace(OLD, "6.1.0-1");
    machine.write("boot/grub/grub.cfg", &grub);
    assert!(machine.refusal(None).contains("run `update-grub`"));

    let machine = Fixture::new();
    fs::remove_dir_all(machine.directory.path().join("run/systemd")).unwrap();
    assert!(machine.refusal(None).contains("systemd is not process 1 of this machine"));

    let machine = Fixture::new();
    execute(&files_only(&machine.prepare(None).unwrap().steps)).unwrap();
    let why = machine.refusal(None);
    assert!(why.contains("the campaign kernels in /store") && why.contains("pgdyno kernel restore"), "{why}");
}

#[test]
fn kexec_boots_with_the_original_command_line_and_the_requested_arguments() {
    let machine = Fixture::new();
    machine.mounted("btrfs", "/dev/vda1");
    machine.write("usr/sbin/kexec", "");
    let mut journal = machine.prepare(None).unwrap().journal;
    assert_eq!(journal.loader, Loader::Kexec);
    journal.request(&boot(OLD, "quiet panic=1"));
    let steps = machine.machine().boot(&journal, &boot(OLD, "a=1 panic=1")).unwrap();
    assert_eq!(
        machine.printed(&steps)[1..],
        [
            "run kexec -l /boot/vmlinuz-6.1.0-56-cloud-amd64 --initrd=/boot/initrd.img-6.1.0-56-cloud-amd64 \
             '--command-line=root=/dev/vda1 ro quiet panic=10 a=1 panic=1'",
            "run systemctl kexec",
        ]
    );
    assert!(machine.machine().boot(&journal, &boot(OLD, "dyndbg='x'")).is_err());
}

#[test]
fn a_kernel_is_up_when_release_and_arguments_are() {
    let running = |release: &str, line: &str| RunningKernel {
        release: release.to_owned(),
        command_line: line.to_owned(),
    };
    let requested = boot(OLD, "mitigations=off nosmt");
    assert!(requested.is_up(&running(OLD, "root=/dev/vda1 mitigations=off panic=10 nosmt")));
    assert!(!requested.is_up(&running(OLD, "root=/dev/vda1 mitigations=off")));
    assert!(!requested.is_up(&running(NEW, "mitigations=off nosmt")));
}

#[test]
fn boots_are_counted_except_withdrawn_ones() {
    let mut journal = Fixture::new().prepare(None).unwrap().journal;
    let requested = boot(OLD, "");
    journal.request(&requested);
    journal.request(&requested);
    assert_eq!(journal.times_requested(&requested), 2);
    journal.withdraw();
    assert_eq!((journal.times_requested(&requested), journal.last), (1, None));
    assert_eq!(Fixture::new().prepare(None).unwrap().journal.times_requested(&boot(OLD, "quiet")), 0);
}

#[test]
fn parameters_are_set_by_name_and_by_path() {
    let machine = Fixture::new();
    machine.write("proc/sys/vm/swappiness", "60");
    machine.write("sys/kernel/mm/transparent_hugepage/enabled", "always");
    let mut boot = boot(OLD, "");
    for (name, value) in [("vm.swappiness", "1"), ("/sys/kernel/mm/transparent_hugepage/enabled", "never")] {
        boot.sysctl.values.insert(name.to_owned(), value.to_owned());
    }
    machine.machine().set_parameters(&boot).unwrap();
    let files = machine.files();
    assert_eq!(files["proc/sys/vm/swappiness"], "1");
    assert_eq!(files["sys/kernel/mm/transparent_hugepage/enabled"], "never");
    boot.sysctl.values.insert("no/such".to_owned(), "1".to_owned());
    assert!(machine.machine().set_parameters(&boot).is_err());
}
