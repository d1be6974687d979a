//! In the guest: the first process. It mounts what every system has, loads the modules that it was given, and does one
//! job; then the machine is switched off.

mod command;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, mount, mount_move};
use rustix::process::chroot;
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::kernel::ModuleFile;
use crate::vm::initramfs::Root;
use crate::vm::link::{Frame, MAX_BYTES};
use crate::vm::virtiofs::TAG;
use host::Doing;

/// Where pgdyno is in a guest.
pub const PROGRAM: &str = "/pgdyno";
/// What the first process is to do.
const ORDERS: &str = "/orders.json";
/// The modules that it loads, by their names in order.
const MODULES: &str = "/modules";
/// The serial port over which it speaks; the first is the console.
const LINK: &str = "/dev/ttyS1";
/// How often it says that it is alive, in its own time.
const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// The disk that it was given.
const DISK: &str = "/dev/vda";

/// What a guest is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Its job.
    pub job: Job,
    /// Its name: that of the host.
    pub hostname: String,
    /// Whether its root is this machine's, in which what it writes goes into memory.
    pub host_root: bool,
    /// Where its job begins.
    pub directory: PathBuf,
    /// Where its disk is to be mounted, if it has one.
    pub disk_at: Option<PathBuf>,
    /// Kernel parameters to be set before: files below `/proc/sys` and `/sys`, and what is written to them.
    pub sysctl: Vec<(PathBuf, String)>,
    /// Variables of the environment.
    pub variables: Vec<(String, String)>,
}

/// The job of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// To be there.
    Probe,
    /// A command with its arguments.
    Command(Vec<String>),
    /// Something of pgdyno's own, told to it in these words.
    Own(Vec<String>),
}

impl Orders {
    /// A job and nothing else.
    pub fn new(job: Job) -> Self {
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            job,
            hostname,
            host_root: false,
            directory: PathBuf::from("/"),
            disk_at: None,
            sysctl: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Gives a guest these orders, pgdyno and what every system has. `modules` are the kernel's modules in the order in
    /// which they can be loaded.
    ///
    /// # Errors
    /// Something can't be packed.
    pub fn pack(&self, root: &mut Root, program: &Path, modules: &[ModuleFile]) -> Result<(), Error> {
        for directory in ["/proc", "/sys", "/dev", "/run", "/root", "/mnt", "/etc", "/bin", MODULES] {
            root.directory(Path::new(directory), 0o755)?;
        }
        root.directory(Path::new("/tmp"), 0o1777)?;
        root.program(program, Some(Path::new(PROGRAM)))?;
        for (at, ModuleFile { name, bytes }) in modules.iter().enumerate() {
            root.file(&Path::new(MODULES).join(format!("{at:02}-{name}.ko")), 0o600, bytes)?;
        }
        let text = serde_json::to_vec(self).doing("write", Path::new(ORDERS))?;
        root.file(Path::new(ORDERS), 0o600, &text)
    }
}

/// The first process of a guest.
#[derive(Clone)]
pub struct Guest {
    link: Arc<Mutex<File>>,
}

impl Guest {
    /// Makes a system of what the kernel has booted, and tells the host that it is up.
    ///
    /// # Errors
    /// Something that every system has can't be had. Where the link is up, the host is told, and this does not return.
    pub fn begin() -> Result<(Self, Orders), Error> {
        mount_usual(Path::new("/"))?;
        let guest = Self { link: Arc::new(Mutex::new(open_link()?)) };
        guest.send_frame(&Frame::Up);
        match guest.furnish() {
            Ok(orders) => {
                let alive = guest.clone();
                thread::spawn(move || {
                    loop {
                        thread::sleep(ALIVE_EVERY);
                        alive.send_frame(&Frame::Alive);
                    }
                });
                Ok((guest, orders))
            }
            Err(error) => {
                guest.send_frame(&Frame::Failed(error.to_string()));
                guest.end(1)
            }
        }
    }

    fn furnish(&self) -> Result<Orders, Error> {
        // The kernel gives a file system in memory half of the memory; here it is all there is. Where this is not a
        // tmpfs, it has no limit.
        let _ = rustix::mount::mount_remount("/", MountFlags::empty(), "size=95%");
        // Up, it has the address 127.0.0.1. A kernel without networking has none.
        let _ = fs::write("/sys/class/net/lo/flags", "0x9");
        let modules = Path::new(MODULES);
        let mut files: Vec<PathBuf> = fs::read_dir(modules)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>())
            .doing("read the directory", modules)?;
        files.sort();
        for file in files {
            let opened = File::open(&file).doing("open", &file)?;
            rustix::system::finit_module(&opened, c"", 0).doing("load the module", &file)?;
        }
        let orders = Path::new(ORDERS);
        let text = fs::read(orders).doing("read", orders)?;
        let orders: Orders = serde_json::from_slice(&text).doing("read", orders)?;
        // Nothing depends on it but how a trial is found.
        let _ = rustix::system::sethostname(orders.hostname.as_bytes());
        if orders.host_root {
            enter_host_root()?;
        }
        if let Some(at) = &orders.disk_at {
            fs::create_dir_all(at).doing("make the directory", at)?;
            mount(DISK, at, "ext4", MountFlags::empty(), c"").doing("mount the disk at", at)?;
        }
        for (file, value) in &orders.sysctl {
            fs::write(file, value).doing("set the kernel parameter", file)?;
        }
        let directory = &orders.directory;
        std::env::set_current_dir(directory).doing("go to the directory", directory)?;
        Ok(orders)
    }

    /// Says something to the host. What the host does not hear, nobody does.
    pub fn send_frame(&self, frame: &Frame) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = frame.write(&mut *link);
    }

    /// Sends a file, or a directory with all that is in it, under a path.
    ///
    /// # Errors
    /// It can't be read.
    pub fn send(&self, from: &Path, under: &str) -> io::Result<()> {
        if from.is_dir() {
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                self.send(&entry.path(), &format!("{under}/{}", entry.file_name().to_string_lossy()))?;
            }
            return Ok(());
        }
        let content = fs::read(from)?;
        // An empty file is sent, too.
        let mut rest = content.as_slice();
        loop {
            let (now, later) = rest.split_at(rest.len().min(MAX_BYTES));
            self.send_frame(&Frame::File(under.to_owned(), now.to_vec()));
            rest = later;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Says how it ended, and switches the machine off.
    pub fn end(&self, code: u8) -> ! {
        self.send_frame(&Frame::Exit(code));
        rustix::fs::sync();
        let _ = reboot(RebootCommand::PowerOff);
        // The host ends it where it can't switch itself off.
        loop {
            thread::park();
        }
    }
}

/// What every system has, below a root.
fn mount_usual(root: &Path) -> Result<(), Error> {
    for (what, at, options) in [
        ("proc", "proc", ""),
        ("sysfs", "sys", ""),
        ("devtmpfs", "dev", ""),
        ("tmpfs", "dev/shm", "mode=1777"),
        ("tmpfs", "run", "mode=755"),
    ] {
        let at = root.join(at);
        fs::create_dir_all(&at).doing("make the directory", &at)?;
        mount_new(what, what, &at, options)?;
    }
    Ok(())
}

/// Makes the host's files the root. What is written goes into memory above them; what they have of their own system, such
/// as its processes, is hidden by this one's.
fn enter_host_root() -> Result<(), Error> {
    let [files, memory, root] = ["/host/files", "/host/memory", "/host/root"].map(Path::new);
    let [upper, work] = ["upper", "work"].map(|name| memory.join(name));
    for directory in [files, memory, root] {
        fs::create_dir_all(directory).doing("make the directory", directory)?;
    }
    mount(TAG, files, "virtiofs", MountFlags::RDONLY, c"")
        .doing("mount by virtiofs this machine's files at", files)?;
    mount_new("tmpfs", "tmpfs", memory, "mode=755")?;
    for directory in [&upper, &work] {
        fs::create_dir(directory).doing("make the directory", directory)?;
    }
    let layers = [("lowerdir", files), ("upperdir", &upper), ("workdir", &work)];
    let options = layers.map(|(name, path)| format!("{name}={}", path.display())).join(",");
    mount_new("overlay", "overlay", root, &options)?;
    // Not served by root, files belong to nobody here, and programs that want to be their owner would be that.
    if fs::metadata(files).doing("look at", files)?.uid() != 0 {
        rustix::mount::mount_remount(root, MountFlags::NOSUID, c"").doing("mount again", root)?;
    }
    mount_usual(root)?;
    // The root of an initramfs can't be exchanged by pivot_root(2).
    std::env::set_current_dir(root).doing("go to the directory", root)?;
    Ok(mount_move(".", "/").and_then(|()| chroot(".")).doing("make a root of", root)?)
}

fn mount_new(what: &str, source: &str, at: &Path, options: &str) -> Result<(), Error> {
    let options = std::ffi::CString::new(options).map_err(io::Error::other).doing("mount", at)?;
    match mount(source, at, what, MountFlags::empty(), options.as_c_str()) {
        // The kernel may have mounted it.
        Err(rustix::io::Errno::BUSY) => Ok(()),
        mounted => Ok(mounted.doing("mount", at)?),
    }
}

fn open_link() -> Result<File, Error> {
    let path = Path::new(LINK);
    let file = OpenOptions::new().read(true).write(true).open(path).doing("open", path)?;
    let mut terminal = tcgetattr(&file).doing("look at", path)?;
    terminal.make_raw();
    tcsetattr(&file, OptionalActions::Now, &terminal).doing("set up", path)?;
    Ok(file)
}
