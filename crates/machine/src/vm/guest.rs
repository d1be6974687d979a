//! The first process of a guest. It mounts the standard file systems, loads the packed modules, and does one job; then
//! it powers the machine off.

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
use crate::vm::initramfs::Initramfs;
use crate::vm::link::{Frame, MAX_BYTES};
use crate::vm::virtiofs::TAG;
use host::IoContext;

/// Path of pgdyno in a guest.
pub const PROGRAM: &str = "/pgdyno";
/// File with the configuration of a guest.
const CONFIG: &str = "/orders.json";
/// Directory of the modules to load, in the order of their names.
const MODULES: &str = "/modules";
/// Serial port of the link to the host; the first port is the console.
const LINK: &str = "/dev/ttyS1";
/// Interval of [`Frame::Alive`], in the guest's time.
const ALIVE_INTERVAL: Duration = Duration::from_millis(500);
/// Device of the guest's disk.
const DISK: &str = "/dev/vda";

/// Configuration of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestConfig {
    /// Job.
    pub job: Job,
    /// Host name: that of the host.
    pub hostname: String,
    /// Whether its root is this machine's, with writes going to memory.
    pub host_root: bool,
    /// Working directory of the job.
    pub directory: PathBuf,
    /// Mount point of its disk, if it has one.
    pub disk_at: Option<PathBuf>,
    /// Kernel parameters to set first: files below `/proc/sys` and `/sys`, with their values.
    pub sysctl: Vec<(PathBuf, String)>,
    /// Environment variables.
    pub variables: Vec<(String, String)>,
}

/// The job of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Only to boot.
    Probe,
    /// A command with its arguments.
    Command(Vec<String>),
    /// A command of pgdyno's own, with these arguments.
    #[serde(rename = "Own")]
    Pgdyno(Vec<String>),
}

impl GuestConfig {
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

    /// Packs this configuration, pgdyno and the standard directories for a guest. `modules` are the kernel's modules in
    /// loading order.
    ///
    /// # Errors
    /// Something can't be packed.
    pub fn pack(&self, root: &mut Initramfs, program: &Path, modules: &[ModuleFile]) -> Result<(), Error> {
        for directory in ["/proc", "/sys", "/dev", "/run", "/root", "/mnt", "/etc", "/bin", MODULES] {
            root.directory(Path::new(directory), 0o755)?;
        }
        root.directory(Path::new("/tmp"), 0o1777)?;
        root.program(program, Some(Path::new(PROGRAM)))?;
        for (at, ModuleFile { name, bytes }) in modules.iter().enumerate() {
            root.file(&Path::new(MODULES).join(format!("{at:02}-{name}.ko")), 0o600, bytes)?;
        }
        let text = serde_json::to_vec(self).doing("write", Path::new(CONFIG))?;
        root.file(Path::new(CONFIG), 0o600, &text)
    }
}

/// Whether this is the first process of a guest. Its arguments do not tell: the kernel passes on the words of its command
/// line that it does not know, such as `nokaslr`, before those for it.
pub fn is_first_process() -> bool {
    std::process::id() == 1 && Path::new(CONFIG).exists()
}

/// The first process of a guest.
#[derive(Clone)]
pub struct Guest {
    link: Arc<Mutex<File>>,
}

impl Guest {
    /// Sets up the booted system, and reports to the host that it is up.
    ///
    /// # Errors
    /// Something standard can't be set up. If the link is up, this reports the error to the host and does not return.
    pub fn start() -> Result<(Self, GuestConfig), Error> {
        mount_standard(Path::new("/"))?;
        let guest = Self { link: Arc::new(Mutex::new(open_link()?)) };
        guest.send_frame(&Frame::Up);
        match guest.set_up() {
            Ok(config) => {
                let alive = guest.clone();
                thread::spawn(move || {
                    loop {
                        thread::sleep(ALIVE_INTERVAL);
                        alive.send_frame(&Frame::Alive);
                    }
                });
                Ok((guest, config))
            }
            Err(error) => {
                guest.send_frame(&Frame::Failed(error.to_string()));
                guest.end(1)
            }
        }
    }

    fn set_up(&self) -> Result<GuestConfig, Error> {
        // By default, a tmpfs may use half of the memory; here it is the only file system. If this is not a tmpfs, it
        // has no limit.
        let _ = rustix::mount::mount_remount("/", MountFlags::empty(), "size=95%");
        // Once up, the interface has the address 127.0.0.1. A kernel without networking has none.
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
        let file = Path::new(CONFIG);
        let text = fs::read(file).doing("read", file)?;
        let config: GuestConfig = serde_json::from_slice(&text).doing("read", file)?;
        // Only used to find a trial.
        let _ = rustix::system::sethostname(config.hostname.as_bytes());
        if config.host_root {
            enter_host_root()?;
        }
        if let Some(at) = &config.disk_at {
            fs::create_dir_all(at).doing("create the directory", at)?;
            mount(DISK, at, "ext4", MountFlags::empty(), c"").doing("mount the disk at", at)?;
        }
        for (file, value) in &config.sysctl {
            fs::write(file, value).doing("set the kernel parameter", file)?;
        }
        let directory = &config.directory;
        std::env::set_current_dir(directory).doing("change to the directory", directory)?;
        Ok(config)
    }

    /// Sends a frame to the host. Errors are ignored: there is nobody else to report them to.
    pub fn send_frame(&self, frame: &Frame) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = frame.write(&mut *link);
    }

    /// Sends a file, or a directory with its content, under a path.
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
            let (part, remaining) = rest.split_at(rest.len().min(MAX_BYTES));
            self.send_frame(&Frame::File(under.to_owned(), part.to_vec()));
            rest = remaining;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends the exit code and powers the machine off.
    pub fn end(&self, code: u8) -> ! {
        self.send_frame(&Frame::Exit(code));
        rustix::fs::sync();
        let _ = reboot(RebootCommand::PowerOff);
        // The host ends it if it can't power off.
        loop {
            thread::park();
        }
    }
}

/// Mounts the standard file systems below a root.
fn mount_standard(root: &Path) -> Result<(), Error> {
    for (what, at, options) in [
        ("proc", "proc", ""),
        ("sysfs", "sys", ""),
        ("devtmpfs", "dev", ""),
        ("tmpfs", "dev/shm", "mode=1777"),
        ("tmpfs", "run", "mode=755"),
    ] {
        let at = root.join(at);
        fs::create_dir_all(&at).doing("create the directory", &at)?;
        mount_new(what, what, &at, options)?;
    }
    Ok(())
}

/// Makes the host's files the root. Writes go to memory above them; file systems of the host's own system, such as
/// `/proc`, are hidden by the guest's.
fn enter_host_root() -> Result<(), Error> {
    let [files, memory, root] = ["/host/files", "/host/memory", "/host/root"].map(Path::new);
    let [upper, work] = ["upper", "work"].map(|name| memory.join(name));
    for directory in [files, memory, root] {
        fs::create_dir_all(directory).doing("create the directory", directory)?;
    }
    mount(TAG, files, "virtiofs", MountFlags::RDONLY, c"").doing("mount this machine's files at", files)?;
    mount_new("tmpfs", "tmpfs", memory, "mode=755")?;
    for directory in [&upper, &work] {
        fs::create_dir(directory).doing("create the directory", directory)?;
    }
    let layers = [("lowerdir", files), ("upperdir", &upper), ("workdir", &work)];
    let options = layers.map(|(name, path)| format!("{name}={}", path.display())).join(",");
    mount_new("overlay", "overlay", root, &options)?;
    // If root does not serve them, files belong to nobody here, and setuid programs would run as nobody.
    if fs::metadata(files).doing("inspect", files)?.uid() != 0 {
        rustix::mount::mount_remount(root, MountFlags::NOSUID, c"").doing("remount", root)?;
    }
    mount_standard(root)?;
    // pivot_root(2) can't replace the root of an initramfs.
    std::env::set_current_dir(root).doing("change to the directory", root)?;
    Ok(mount_move(".", "/").and_then(|()| chroot(".")).doing("change the root to", root)?)
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
    let mut terminal = tcgetattr(&file).doing("inspect", path)?;
    terminal.make_raw();
    tcsetattr(&file, OptionalActions::Now, &terminal).doing("configure", path)?;
    Ok(file)
}
