//! A cache of its own for the soak, and the commands that use it.

use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use host::Cache;
use tempfile::TempDir;

use crate::counts::{Counts, DIRECTORIES, GROUPS, HANG, MOUNTS, PANIC, PROCESSES, SOCKETS};
use crate::leftovers::{HostState, processes};

/// Majors under test.
pub(crate) const MAJORS: [&str; 3] = ["9.6", "13", "18"];
/// Time limit of a command without faults, and of the end of processes.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(300);
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The temporary directory of the commands: nobody else uses it.
const TEMPORARY: &str = "tmp";

/// A directory with a cache that has the programs of the real one.
pub(crate) struct Site {
    directory: TempDir,
    programs: PathBuf,
    kernels: PathBuf,
    mark: String,
}

/// Output of a command that ended or was killed.
pub(crate) struct Ended {
    /// None after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        let cache = Cache::open().unwrap();
        let installed = MAJORS.map(|major| server::install(&cache, major, &NoProgress).unwrap());
        let directory = tempfile::Builder::new().prefix("soak-").tempdir().unwrap();
        // Servers run as another user.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let temporary = directory.path().join(TEMPORARY);
        fs::create_dir(&temporary).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777)).unwrap();
        let mark = format!("SOAK_MARK={}", directory.path().display());
        let site = Self { programs: cache.installations(), kernels: cache.kernels(), directory, mark };
        site.make_cache(&site.cache());
        // Virtual machines see the cache, but not what a link in it leads to.
        let programs = site.cache().join("installations");
        fs::remove_file(&programs).unwrap();
        fs::create_dir(&programs).unwrap();
        for installation in &installed {
            let from = installation.directory().display().to_string();
            tool("cp", &["-a", &from, &programs.display().to_string()]);
        }
        site
    }

    /// Makes a cache that shares the programs and kernels of the real one.
    pub(crate) fn make_cache(&self, cache: &Path) {
        fs::create_dir_all(cache).unwrap();
        for (shared, name) in [(&self.programs, "installations"), (&self.kernels, "kernels")] {
            symlink(shared, cache.join(name)).unwrap();
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    pub(crate) fn command(&self, directory: &Path, cache: &Path, args: &[&str]) -> Command {
        let (name, value) = self.mark.split_once('=').unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command.args(args).current_dir(directory).env_remove("PGDYNO_STORE").env("PGDYNO_CACHE", cache);
        command.env("PGDYNO_QUEUE", self.path());
        command.env("TMPDIR", self.path().join(TEMPORARY)).env_remove("XDG_RUNTIME_DIR");
        command.env(name, value).env("RUST_BACKTRACE", "1");
        command
    }

    /// Runs a command without faults to its end.
    pub(crate) fn run(&self, directory: &Path, cache: &Path, args: &[&str], counts: &mut Counts) -> Ended {
        let child = Started::new(self.command(directory, cache, args), directory);
        child.end(args, counts)
    }

    /// Counts what the pgdynos that ended left behind, and removes it.
    pub(crate) fn check_leftovers(&self, cache: &Path, before: &HostState, counts: &mut Counts) {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while !processes(&self.mark, self.path()).is_empty() && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
        for (pid, command) in processes(&self.mark, self.path()) {
            counts.violation(PROCESSES, format!("{pid} {command}"));
            // SAFETY: kill has no preconditions; the process was started by this program.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        // The next command that uses servers sweeps.
        self.run(self.path(), cache, &["server", "list"], counts);
        for name in ["clusters", "servers", "journals", "scratch"] {
            for entry in fs::read_dir(cache.join(name)).into_iter().flatten().flatten() {
                counts.violation(DIRECTORIES, entry.path().display());
            }
        }
        // Directories of sockets whose paths would be too long elsewhere, and other temporary files.
        for entry in fs::read_dir(self.path().join(TEMPORARY)).unwrap() {
            let path = entry.unwrap().path();
            let is_socket = |entry: io::Result<DirEntry>| {
                entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with(".s.PGSQL"))
            };
            let has_sockets = fs::read_dir(&path).is_ok_and(|mut entries| entries.any(is_socket));
            counts.violation(if has_sockets { SOCKETS } else { DIRECTORIES }, path.display());
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        let after = HostState::read();
        for mount in after.new_mounts(before) {
            counts.violation(MOUNTS, mount);
        }
        for group in after.new_groups(before) {
            counts.violation(GROUPS, group.display());
        }
    }
}

/// A pgdyno that runs; its output goes to files, so that no pipe stays open in its children.
pub(crate) struct Started {
    pub(crate) child: Child,
    output: PathBuf,
}

impl Started {
    pub(crate) fn new(mut command: Command, directory: &Path) -> Self {
        let output =
            tempfile::Builder::new().prefix("output-").tempfile_in(directory.parent().unwrap()).unwrap();
        let (file, path) = output.keep().unwrap();
        let child =
            command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child, output: path }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn has_printed(&self, text: &str) -> bool {
        fs::read(&self.output).is_ok_and(|output| String::from_utf8_lossy(&output).contains(text))
    }

    /// Waits for the end; a command that does not end is killed and counted.
    pub(crate) fn end(mut self, args: &[&str], counts: &mut Counts) -> Ended {
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
        if !self.has_ended() {
            counts.violation(
                HANG,
                format!("{args:?}: {}", fs::read_to_string(&self.output).unwrap_or_default()),
            );
            let _ = self.child.kill();
        }
        let code = self.child.wait().unwrap().code();
        let output = String::from_utf8_lossy(&fs::read(&self.output).unwrap()).into_owned();
        let _ = fs::remove_file(&self.output);
        if output.contains("panicked at") {
            counts.violation(PANIC, format!("{args:?}: {output}"));
        }
        Ended { code, output }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a tool of the system, which must succeed.
pub(crate) fn tool(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Progress of the installation, which nobody follows.
struct NoProgress;

impl host::Progress for NoProgress {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        false
    }
}
