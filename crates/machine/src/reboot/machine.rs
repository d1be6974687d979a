//! The machine's means to boot kernels, and the steps that use them.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::boot::{Boot, Loader};
use super::journal::{Campaign, Journal, RunningKernel};
use super::step::Step;
use super::{custom, grub_cfg, grubenv, unit};
use crate::error::Error;
use crate::kernel::debian_version;
use host::IoContext;

/// Makes a kernel that panics, or an initramfs that finds no root, reboot after that many seconds; otherwise both wait
/// for an operator.
const PANIC: &str = "panic=10";
/// File systems on which GRUB can write its environment block.
const GRUB_WRITES: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "vfat"];
/// File systems that a boot empties.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// An installed kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledKernel {
    /// Release.
    pub release: String,
    image: PathBuf,
    initrd: Option<PathBuf>,
}

/// The machine, represented by its directories, which are below `/` except in tests.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

/// A machine that can boot a campaign's kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Journal, written before anything is changed.
    pub journal: Journal,
    /// Steps before the first boot.
    pub steps: Vec<Step>,
}

impl Boot {
    /// Whether this boot is running: its release, with every argument on the command line.
    pub fn is_up(&self, running: &RunningKernel) -> bool {
        let present: Vec<&str> = running.command_line.split_whitespace().collect();
        self.release == running.release && self.args.split_whitespace().all(|arg| present.contains(&arg))
    }
}

impl Machine {
    /// This machine.
    pub fn local() -> Self {
        Self::at(Path::new("/"))
    }

    /// A machine whose files are in a directory.
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The running kernel.
    ///
    /// # Errors
    /// `/proc` can't be read.
    pub fn running(&self) -> Result<RunningKernel, Error> {
        let read = |path: PathBuf| fs::read_to_string(&path).doing("read", &path);
        Ok(RunningKernel {
            release: read(self.path("proc/sys/kernel/osrelease"))?.trim().to_owned(),
            command_line: read(self.path("proc/cmdline"))?.trim().to_owned(),
        })
    }

    /// Installed kernels: those with an image in `/boot` and modules, newest last.
    ///
    /// # Errors
    /// The directories can't be read.
    pub fn installed(&self) -> Result<Vec<InstalledKernel>, Error> {
        let modules = self.path("lib/modules");
        let mut found = Vec::new();
        let entries = match fs::read_dir(&modules) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
            entries => entries.doing("read", &modules)?,
        };
        for entry in entries {
            let release = entry.doing("read", &modules)?.file_name().to_string_lossy().into_owned();
            let boot = |name: String| Some(Path::new("/boot").join(name)).filter(|path| self.has(path));
            let Some(image) = boot(format!("vmlinuz-{release}")) else { continue };
            let initrd = boot(format!("initrd.img-{release}"))
                .or_else(|| boot(format!("initramfs-{release}.img")))
                .or_else(|| boot(format!("initrd-{release}")));
            found.push(InstalledKernel { release, image, initrd });
        }
        found.sort_by(|a, b| debian_version::compare(&a.release, &b.release));
        Ok(found)
    }

    /// Journal of a campaign that continues after boots, if there is one.
    ///
    /// # Errors
    /// It can't be read.
    pub fn journal(&self) -> Result<Option<Journal>, Error> {
        Journal::read(&self.journal_file())
    }

    /// Checks that the machine can boot each of these kernels once, and determines the steps before the first boot.
    ///
    /// # Errors
    /// It can't; names what is missing.
    pub fn prepare(
        &self,
        campaign: Campaign,
        boots: &[Boot],
        by: Option<Loader>,
        program: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Prepared, Error> {
        if let Some(other) = self.journal()? {
            return Err(refuse(format!(
                "the campaign {} in {} already boots kernels on this machine; `pgdyno kernel restore` ends it",
                other.campaign.name,
                other.campaign.store.display()
            )));
        }
        if !self.path("run/systemd/system").is_dir() {
            return Err(refuse(
                "systemd is not process 1 of this machine, and pgdyno requires it to continue the campaign after a boot"
                    .to_owned(),
            ));
        }
        for path in [&campaign.store, &program.to_owned()] {
            if self.file_system(path)?.is_some_and(|(kind, _)| IN_MEMORY.contains(&kind.as_str())) {
                let path = path.display();
                return Err(refuse(format!("{path} is in memory and would not survive a boot")));
            }
        }
        let loader = self.loader(by)?;
        let next_entry = match loader {
            Loader::Kexec => None,
            Loader::Grub => {
                let path = self.grub()?.join("grubenv");
                let block = fs::read_to_string(self.path(&path)).doing("read", &path)?;
                grubenv::next_entry(&block).map(str::to_owned)
            }
        };
        let had_custom = loader == Loader::Grub && self.has(&self.grub()?.join("custom.cfg"));
        let journal = Journal::new(campaign, self.running()?, loader, next_entry, had_custom);
        for boot in boots {
            self.boot(&journal, boot)?;
        }
        let steps = vec![
            journal.write(&self.journal_file())?,
            Step::Write {
                path: self.unit(),
                is_private: false,
                what: "the systemd unit that continues the campaign after each boot".to_owned(),
                text: unit::text(&journal.campaign, program, environment),
            },
            // The link that `systemctl enable` creates; the running systemd need not know of it.
            Step::Link { path: self.wanted(), to: Path::new("/etc/systemd/system").join(unit::NAME) },
        ];
        Ok(Prepared { journal, steps })
    }

    /// Steps that boot a kernel once. `journal` is as it must be after the boot.
    ///
    /// # Errors
    /// The kernel is not installed, or the boot loader has no entry of it.
    pub fn boot(&self, journal: &Journal, boot: &Boot) -> Result<Vec<Step>, Error> {
        if let Some(invalid) = boot.args.chars().find(|&c| "'\"\\".contains(c) || c.is_control()) {
            return Err(refuse(format!(
                "the kernel arguments {} can't be passed to a boot loader: they contain {invalid:?}",
                boot.args
            )));
        }
        let installed = self.installed()?;
        let kernel = installed.iter().find(|kernel| kernel.release == boot.release).ok_or_else(|| {
            refuse(format!("the kernel {} is not installed: it has no /boot/vmlinuz-{0}", boot.release))
        })?;
        // In this order: one of the campaign wins.
        let args: Vec<&str> = std::iter::once(PANIC).chain(boot.args.split_whitespace()).collect();
        let systemctl = |what: &str| Step::Run { command: vec!["systemctl".to_owned(), what.to_owned()] };
        let mut steps = vec![journal.write(&self.journal_file())?];
        match journal.loader {
            Loader::Grub => {
                let grub = self.grub()?;
                let path = grub.join("grub.cfg");
                let text = fs::read_to_string(self.path(&path)).doing("read", &path)?;
                let entry = grub_cfg::entry_of(&text, &boot.release, &args).ok_or_else(|| {
                    refuse(format!(
                        "{} has no entry of the kernel {}; run `update-grub`",
                        path.display(),
                        boot.release
                    ))
                })?;
                steps.push(Step::Write {
                    path: self.path(grub.join("custom.cfg")),
                    is_private: false,
                    what: format!("the entry {} of {boot}", grub_cfg::ENTRY),
                    text: custom::with(&self.custom()?, &entry),
                });
                steps.push(Step::NextEntry {
                    grubenv: self.path(grub.join("grubenv")),
                    entry: Some(grub_cfg::ENTRY.to_owned()),
                });
                steps.push(systemctl("reboot"));
            }
            Loader::Kexec => {
                let own = journal.original.command_line.split_whitespace();
                let own = own.filter(|arg| !arg.starts_with("BOOT_IMAGE=") && !arg.starts_with("initrd="));
                let line = own.chain(args).collect::<Vec<_>>().join(" ");
                let mut command =
                    vec!["kexec".to_owned(), "-l".to_owned(), kernel.image.display().to_string()];
                command.extend(kernel.initrd.iter().map(|initrd| format!("--initrd={}", initrd.display())));
                command.push(format!("--command-line={line}"));
                steps.push(Step::Run { command });
                steps.push(systemctl("kexec"));
            }
        }
        Ok(steps)
    }

    /// Steps that restore the machine's former state. The journal is removed last.
    ///
    /// # Errors
    /// The present state can't be read.
    pub fn restore(&self, journal: &Journal) -> Result<Vec<Step>, Error> {
        let mut steps = Vec::new();
        if journal.loader == Loader::Grub {
            let grub = self.grub()?;
            let path = self.path(grub.join("custom.cfg"));
            let text = custom::without(&self.custom()?);
            steps.push(if text.is_empty() && !journal.had_custom {
                Step::Remove { path }
            } else {
                Step::Write { path, is_private: false, what: "without pgdyno's entry".to_owned(), text }
            });
            steps.push(Step::NextEntry {
                grubenv: self.path(grub.join("grubenv")),
                entry: journal.next_entry.clone(),
            });
        }
        steps.push(Step::Remove { path: self.wanted() });
        steps.push(Step::Remove { path: self.unit() });
        steps.push(systemctl("daemon-reload"));
        steps.push(Step::Remove { path: self.journal_file() });
        Ok(steps)
    }

    /// Writes a changed journal to disk.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write_journal(&self, journal: &Journal) -> Result<(), Error> {
        super::execute(&[journal.write(&self.journal_file())?])
    }

    /// Sets a boot's kernel parameters, which the next boot resets.
    ///
    /// # Errors
    /// The kernel rejects one.
    pub fn set_parameters(&self, boot: &Boot) -> Result<(), Error> {
        for (name, value) in &boot.sysctl.values {
            let path = if name.starts_with('/') {
                self.path(name)
            } else {
                self.path("proc/sys").join(name.replace('.', "/"))
            };
            fs::write(&path, value).doing("set the kernel parameter", &path)?;
        }
        Ok(())
    }

    /// Reboots into the machine's default kernel.
    pub fn reboot(&self) -> Step {
        systemctl("reboot")
    }

    /// Loader that can boot a kernel once: GRUB, else kexec.
    fn loader(&self, by: Option<Loader>) -> Result<Loader, Error> {
        let has_kexec =
            ["sbin/kexec", "usr/sbin/kexec", "usr/bin/kexec"].iter().any(|path| self.path(path).exists());
        let kexec = if has_kexec {
            Ok(Loader::Kexec)
        } else {
            Err(refuse("there is no kexec (Debian: apt-get install kexec-tools)".to_owned()))
        };
        let grub = || self.grub_boots_once().map(|()| Loader::Grub);
        match by {
            Some(Loader::Grub) => grub(),
            Some(Loader::Kexec) => kexec,
            None => grub().or_else(|no_grub| {
                kexec.map_err(|no_kexec| {
                    refuse(format!("nothing can boot a kernel once here: {no_grub}, and {no_kexec}"))
                })
            }),
        }
    }

    /// Checks that GRUB boots an entry exactly once.
    fn grub_boots_once(&self) -> Result<(), Error> {
        let grub = self.grub()?;
        let config = self.path(grub.join("grub.cfg"));
        let text = fs::read_to_string(&config).doing("read", &config)?;
        let directory = grub.display();
        if !grub_cfg::boots_once(&text) {
            return Err(refuse(format!("{directory}/grub.cfg does not read next_entry or custom.cfg")));
        }
        if !self.has(&grub.join("grubenv")) {
            return Err(refuse(format!("there is no {directory}/grubenv (run `grub-editenv create`)")));
        }
        // If it can't write, it would boot the same entry forever.
        let (kind, device) = self.file_system(&grub)?.unwrap_or_default();
        let is_plain = !["/dev/mapper/", "/dev/dm-", "/dev/md"].iter().any(|start| device.starts_with(start));
        if !GRUB_WRITES.contains(&kind.as_str()) || !is_plain {
            return Err(refuse(format!(
                "GRUB can't write {directory}/grubenv, which is on {device} ({kind})"
            )));
        }
        Ok(())
    }

    /// The directory of `grub.cfg`.
    fn grub(&self) -> Result<PathBuf, Error> {
        let places = ["/boot/grub", "/boot/grub2"].map(PathBuf::from);
        places.into_iter().find(|place| self.has(&place.join("grub.cfg"))).ok_or_else(|| {
            refuse("there is no GRUB (neither /boot/grub/grub.cfg nor /boot/grub2/grub.cfg)".to_owned())
        })
    }

    fn custom(&self) -> Result<String, Error> {
        let path = self.path(self.grub()?.join("custom.cfg"));
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            text => Ok(text.doing("read", &path)?),
        }
    }

    /// Kind and device of the file system of a path; none if the kernel does not report it.
    fn file_system(&self, path: &Path) -> Result<Option<(String, String)>, Error> {
        // A missing path will be on the file system of its parent.
        let existing = path.ancestors().map(|path| self.path(path)).find(|path| path.exists());
        let existing = existing.unwrap_or_else(|| self.path("/"));
        let device = fs::metadata(&existing).doing("inspect", &existing)?.dev();
        let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let mounts = self.path("proc/self/mountinfo");
        let text = fs::read_to_string(&mounts).doing("read", &mounts)?;
        // proc_pid_mountinfo(5): the third field is the device, and after a lone dash come kind and source.
        let found = text.lines().find_map(|line| {
            let (head, tail) = line.split_once(" - ")?;
            let mut tail = tail.split(' ');
            (head.split(' ').nth(2) == Some(&number))
                .then_some((tail.next()?.to_owned(), tail.next()?.to_owned()))
        });
        Ok(found)
    }

    fn journal_file(&self) -> PathBuf {
        self.path("var/lib/pgdyno/kernels-by-reboot.json")
    }

    fn unit(&self) -> PathBuf {
        self.path("etc/systemd/system").join(unit::NAME)
    }

    fn wanted(&self) -> PathBuf {
        self.path("etc/systemd/system/multi-user.target.wants").join(unit::NAME)
    }

    fn has(&self, path: &Path) -> bool {
        self.path(path).exists()
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

fn systemctl(what: &str) -> Step {
    Step::Run { command: vec!["systemctl".to_owned(), what.to_owned()] }
}

fn refuse(why: String) -> Error {
    Error::Reboot(why)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
