//! Kernels built from the commits of a repository: what is built and what is not, and what a build leaves. The source is a small one, whose
//! image is not bootable.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "../../server/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use host::{Cache, Progress};
use machine::{Error, Kernel};
use support::{as_child, role};
use tempfile::TempDir;

const RELEASE: &str = "6.99.0-fake";
/// Steps of the first build by the default configuration.
const FIRST_BUILD: [&str; 5] = ["compile main", "compile other", "defconfig", "link", "olddefconfig"];

/// A place with a repository in `linux` and a cache.
struct Linux {
    place: TempDir,
    cache: Cache,
}

impl Linux {
    /// A repository with one commit, whose Makefile records its actions in a tally.
    fn new() -> Self {
        let place = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(&place.path().join("cache")).unwrap();
        let linux = Self { place, cache };
        fs::write(linux.path("head"), head()).unwrap();
        let makefile = "\
defconfig:\n\techo defconfig >> TALLY\n\techo 'CONFIG_FAKE=y' > $(O)/.config\n\
kvm_guest.config: defconfig\n\techo 'CONFIG_KVM_GUEST=y' >> $(O)/.config\n\
olddefconfig:\n\techo olddefconfig >> TALLY\n\techo 'CONFIG_NEW=y' >> $(O)/.config\n\
$(O)/%.o: %.c\n\techo compile $* >> TALLY\n\tsh -e $<\n\tcp $< $@\n\
bzImage: $(O)/main.o $(O)/other.o\n\techo link >> TALLY\n\tmkdir -p $(O)/arch/x86/boot\n\
\tcat HEAD $(O)/main.o > $(O)/arch/x86/boot/bzImage\n\
\techo \"$(KBUILD_BUILD_USER) $(KBUILD_BUILD_TIMESTAMP)\" >> $(O)/arch/x86/boot/bzImage\n\
modules: bzImage\n\techo modules >> TALLY\n\
modules_install:\n\tmkdir -p $(INSTALL_MOD_PATH)/lib/modules/RELEASE/kernel\n\
\tcp $(O)/main.o $(INSTALL_MOD_PATH)/lib/modules/RELEASE/kernel/a.ko\n\
\tln -s $(O) $(INSTALL_MOD_PATH)/lib/modules/RELEASE/build\n";
        let tally = linux.path("tally").display().to_string();
        let makefile = makefile.replace("TALLY", &tally).replace("RELEASE", RELEASE);
        linux.write("Makefile", &makefile.replace("HEAD", &linux.path("head").display().to_string()));
        linux.write("Kconfig", "");
        linux.write("main.c", "true one\n");
        linux.write("other.c", "true other\n");
        linux.git(&["init", "--quiet", "-b", "main"]);
        linux.commit("first");
        linux
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Writes a file of the work tree.
    fn write(&self, name: &str, content: &str) {
        let path = self.path("linux").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Commits everything under a tag.
    fn commit(&self, tag: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", tag]);
        self.git(&["tag", tag]);
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
        let output = Command::new("git")
            .args(identity)
            .arg("-C")
            .arg(self.path("linux"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn build(&self, label: &str) -> Result<Kernel, Error> {
        machine::kernel(&self.cache, label, self.place.path(), &host::NoProgress)
    }

    fn refused(&self, label: &str) -> String {
        self.build(label).unwrap_err().to_string()
    }

    /// Actions since the last call, sorted: make runs several at once.
    fn tally(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("tally")).unwrap_or_default();
        let _ = fs::remove_file(self.path("tally"));
        let mut done: Vec<String> = text.lines().map(str::to_owned).collect();
        done.sort();
        done
    }

    /// Names of all entries in a directory of the cache.
    fn kept(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache").join(directory)).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The copy of the source in the only build directory.
    fn source(&self) -> PathBuf {
        let [directory] = self.kept("builds").try_into().unwrap();
        self.path("cache/builds").join(directory).join("source")
    }
}

/// The head of a bzImage of this release. Source: the kernel's Documentation/arch/x86/boot.rst.
fn head() -> Vec<u8> {
    let mut head = vec![0; 0x800];
    head[0x202..0x206].copy_from_slice(b"HdrS");
    head[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    head[0x20e..0x210].copy_from_slice(&0x300_u16.to_le_bytes());
    head[0x500..][..RELEASE.len()].copy_from_slice(RELEASE.as_bytes());
    head
}

/// What was linked into an image.
fn linked(kernel: &Kernel) -> String {
    String::from_utf8(fs::read(&kernel.image).unwrap().split_off(0x800)).unwrap()
}

fn config(kernel: &Kernel) -> String {
    fs::read_to_string(kernel.config.as_ref().unwrap()).unwrap()
}

#[test]
fn a_commit_is_built_once_and_found_again_by_its_content() {
    let linux = Linux::new();
    assert!(machine::is_to_be_built(&linux.cache, "./linux@first", linux.place.path()).unwrap());
    assert_eq!(linux.kept("builds"), [""; 0], "asking builds nothing");
    let first = linux.build("./linux@first").unwrap();
    assert_eq!(linux.tally(), FIRST_BUILD);
    assert_eq!((first.label.as_str(), first.release.as_str()), ("./linux@first", RELEASE));
    assert_eq!(linked(&first), "true one\npgdyno Thu Jan  1 00:00:00 UTC 1970\n");
    let id = linux.git(&["rev-parse", "first"]);
    let repository = linux.path("linux").canonicalize().unwrap();
    assert_eq!(first.origin, format!("{}@{}", repository.display(), &id[..12]));
    // The default configuration is for guests: complete, and without modules.
    let text = config(&first);
    for line in
        ["CONFIG_KVM_GUEST=y", "CONFIG_SERIAL_8250_CONSOLE=y", "# CONFIG_MODULES is not set", "CONFIG_NEW=y"]
    {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    assert_eq!(first.modules, None);

    // By another name, of the same tree; in another process.
    linux.git(&["commit", "--quiet", "--allow-empty", "-m", "the same"]);
    let head = format!("{}@main", linux.path("linux").display());
    let again = linux.build(&head).unwrap();
    assert_eq!((&again.image, &again.label), (&first.image, &head));
    assert_eq!(linux.tally(), [""; 0], "nothing is run");
    assert!(!machine::is_to_be_built(&linux.cache, &head, Path::new("")).unwrap());

    let [stored] = machine::kernels(&linux.cache).unwrap().try_into().unwrap();
    let build = stored.origin.build().unwrap();
    assert_eq!((&build.commit, &build.config), (&id, &None));
    assert_eq!((stored.kernel.image, stored.labels), (first.image.clone(), vec![]));
    let log = fs::read_to_string(stored.directory.join("build.log")).unwrap();
    assert!(log.contains("olddefconfig\n") && log.contains("$ make -C "), "{log}");
}

#[test]
fn only_changed_files_are_compiled_and_commits_without_changes_give_the_same_image() {
    let linux = Linux::new();
    let first = linux.build("./linux@first").unwrap();
    linux.write("main.c", "true two\n");
    linux.write("old/file", "");
    linux.commit("second");
    fs::remove_dir_all(linux.path("linux/old")).unwrap();
    linux.write("doc/text", "");
    linux.commit("third");
    linux.tally();
    let changed = |compiled: &[&str]| {
        let all = [compiled, &["defconfig", "link", "olddefconfig"]].concat();
        assert_eq!(linux.tally(), all);
    };
    let second = linux.build("./linux@second").unwrap();
    changed(&["compile main"]);
    assert!(linked(&second).starts_with("true two"), "{}", linked(&second));
    assert_ne!(second.identity, first.identity);
    assert!(linux.source().join("old/file").exists());
    // What a killed git would leave.
    fs::write(linux.source().join("left.c"), "").unwrap();
    fs::write(linux.source().with_file_name("index.lock"), "").unwrap();
    let third = linux.build("./linux@third").unwrap();
    changed(&[]);
    assert_eq!(third.identity, second.identity);
    assert!(!linux.source().join("old").exists() && !linux.source().join("left.c").exists());
    assert!(linux.source().join("doc/text").exists());
    // A file that has its old content again is newer than what was compiled from the other one.
    linux.write("main.c", "true one\n");
    linux.commit("fourth");
    let fourth = linux.build("./linux@fourth").unwrap();
    changed(&["compile main"]);
    assert_eq!(fourth.identity, first.identity);
    assert_eq!(linux.kept("kernels").len(), 4);
}

/// All files of a repository, also git's own, with the times of their last change.
fn state(directory: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(state(&path));
        } else {
            found.insert(
                path.clone(),
                (path.metadata().unwrap().modified().unwrap(), fs::read(&path).unwrap()),
            );
        }
    }
    found
}

#[test]
fn the_repository_is_only_read_and_its_work_tree_does_not_matter() {
    let linux = Linux::new();
    linux.write("main.c", "true two\n");
    linux.commit("second");
    // Settings that would have git write there, or write other files.
    for setting in ["core.splitIndex", "core.autocrlf", "core.sparseCheckout"] {
        linux.git(&["config", setting, "true"]);
    }
    linux.write("main.c", "true dirty\n");
    linux.write("untracked.c", "");
    let before = state(&linux.path("linux"));
    let (one, two) = (linux.build("./linux@main~1").unwrap(), linux.build("./linux@second").unwrap());
    assert!(linked(&one).starts_with("true one\n") && linked(&two).starts_with("true two\n"));
    assert!(!linux.source().join("untracked.c").exists());
    let after = state(&linux.path("linux"));
    let names = |of: &BTreeMap<PathBuf, (SystemTime, Vec<u8>)>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "no file has changed");

    // A repository without a work tree, and another work tree of this one, which shares its build directory.
    linux.tally();
    let bare = linux.path("bare.git").display().to_string();
    linux.git(&["clone", "--quiet", "--bare", ".", &bare]);
    assert_eq!(linux.build("./bare.git@second").unwrap().image, two.image);
    let other = linux.path("other").display().to_string();
    linux.git(&["worktree", "add", "--quiet", "--detach", &other, "first"]);
    assert_eq!(linux.build("./other@HEAD").unwrap().image, one.image);
    assert_eq!(linux.tally(), [""; 0]);
    assert_eq!(linux.kept("builds").len(), 1);
}

#[test]
fn a_commit_that_does_not_compile_is_reported_with_its_output_and_others_are_built() {
    let linux = Linux::new();
    linux.write("main.c", "echo 'main.c:1: error: expected ;' >&2; exit 1\n");
    linux.commit("broken");
    linux.write("main.c", "true three\n");
    linux.commit("third");
    let error = linux.build("./linux@broken").unwrap_err();
    assert!(error.is_of_kernel(), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("could not compile the kernel ") && text.contains("main.c:1: error: expected ;"),
        "{text}"
    );
    let log = linux.source().with_file_name("build.log");
    assert!(text.contains(&format!("The log is {}", log.display())), "{text}");
    assert_eq!(linux.kept("kernels"), [""; 0]);
    assert!(linked(&linux.build("./linux@third").unwrap()).starts_with("true three"));

    // The machine is the reason.
    for (name, output) in [
        ("full", "fatal error: error writing to a.s: No space left on device"),
        ("memory", "gcc: fatal error: Killed signal terminated program cc1"),
    ] {
        linux.write("main.c", &format!("echo '{output}' >&2; exit 1\n"));
        linux.commit(name);
        let error = linux.build(&format!("./linux@{name}")).unwrap_err();
        assert!(!error.is_of_kernel() && error.to_string().contains(output), "{error}");
    }
    linux.write("main.c", "pgdyno-no-such-tool\n");
    linux.commit("tool");
    let error = linux.build("./linux@tool").unwrap_err();
    assert!(!error.is_of_kernel(), "{error}");
    let text = error.to_string();
    assert!(text.contains("needs `pgdyno-no-such-tool`") && text.contains("apt-get install"), "{text}");
}

#[test]
fn a_missing_tool_is_named_with_its_package() {
    if role().is_some() {
        let place = std::env::var("PGDYNO_TEST_PLACE").unwrap();
        let cache = Cache::at(&Path::new(&place).join("cache")).unwrap();
        let built = machine::kernel(&cache, "./linux@first", Path::new(&place), &host::NoProgress);
        return println!("ENDED {}", built.map(drop).unwrap_err());
    }
    let linux = Linux::new();
    fs::create_dir(linux.path("bin")).unwrap();
    let test = "a_missing_tool_is_named_with_its_package";
    let place = linux.place.path().display().to_string();
    let bin = linux.path("bin").display().to_string();
    let ended = || {
        let child = as_child(test, "build", &[("PATH", &bin), ("PGDYNO_TEST_PLACE", &place)]);
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    for (missing, package) in [("git", "git"), ("gcc", "gcc"), ("make", "make")] {
        let printed = ended();
        assert!(
            printed.contains("ENDED ") && printed.contains(&format!("apt-get install {package})")),
            "{printed}"
        );
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|at| at.join(missing)).find(|at| at.is_file()).unwrap();
        symlink(found, linux.path("bin").join(missing)).unwrap();
    }
    // The source says which generators it needs.
    linux.write("kernel/time/timeconst.bc", "");
    linux.commit("timers");
    linux.git(&["tag", "-f", "first"]);
    assert!(ended().contains("needs `bc`"), "{}", ended());
    assert_eq!(linux.kept("kernels"), [""; 0]);
}

#[test]
fn the_configuration_of_the_work_tree_is_used_with_its_modules() {
    let linux = Linux::new();
    let default = linux.build("./linux@first").unwrap();
    linux.tally();
    linux.write(".config", "CONFIG_MODULES=y\nCONFIG_XFS_FS=m\n");
    let own = linux.build("./linux@first").unwrap();
    assert_eq!(linux.tally(), ["compile main", "compile other", "link", "modules", "olddefconfig"]);
    assert_eq!(config(&own), "CONFIG_MODULES=y\nCONFIG_XFS_FS=m\nCONFIG_NEW=y\n");
    assert_ne!(own.image, default.image);
    let modules = own.modules.as_ref().unwrap();
    assert!(modules.ends_with(format!("lib/modules/{RELEASE}")) && modules.join("kernel/a.ko").is_file());
    assert!(fs::symlink_metadata(modules.join("build")).is_err(), "it would lead to the build directory");
    assert_eq!(linux.kept("builds").len(), 2, "a directory for each configuration");

    linux.write(".config", "CONFIG_TTY=y\n# CONFIG_SERIAL_8250 is not set\nCONFIG_DEVTMPFS=m\n");
    let error = linux.build("./linux@first").unwrap_err();
    assert!(error.is_of_kernel());
    let text = error.to_string();
    assert!(
        text.contains("its configuration lacks ") && text.contains(" SERIAL_8250, SERIAL_8250_CONSOLE, "),
        "{text}"
    );
    assert!(text.contains("DEVTMPFS") && !text.contains(" TTY,"), "{text}");
    assert!(text.contains(&format!("enable them in {}", linux.path("linux/.config").display())), "{text}");
    fs::remove_file(linux.path("linux/.config")).unwrap();
    assert_eq!(linux.build("./linux@first").unwrap().image, default.image);
}

/// Interrupts as soon as the compiler runs.
struct Interrupting(PathBuf);

impl Progress for Interrupting {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        self.0.exists()
    }
}

#[test]
fn an_interrupted_build_ends_its_tools_and_the_next_one_continues() {
    let linux = Linux::new();
    let pid = linux.path("pid");
    linux.write(
        "main.c",
        &format!("test -e {0}.end || {{ echo $$ > {0}.new; mv {0}.new {0}; sleep 1000; }}\n", pid.display()),
    );
    linux.commit("slow");
    let build =
        || machine::kernel(&linux.cache, "./linux@slow", linux.place.path(), &Interrupting(pid.clone()));
    let error = build().unwrap_err();
    assert!(error.is_interrupted(), "{error}");
    let shell = fs::read_to_string(&pid).unwrap();
    support::wait_until("the compiler has ended", || {
        !fs::read(format!("/proc/{}/cmdline", shell.trim())).unwrap_or_default().starts_with(b"sh\0-e")
    });
    assert_eq!(linux.kept("kernels"), [""; 0]);
    fs::rename(&pid, linux.path("pid.end")).unwrap();
    linux.tally();
    assert_eq!(build().unwrap().release, RELEASE);
    assert!(linux.tally().contains(&"compile main".to_owned()));

    // What a killed pgdyno leaves.
    let left = linux.path("cache/kernels/.src-0123456789ab.partial");
    fs::create_dir_all(left.join("tree")).unwrap();
    assert_eq!(machine::sweep(&linux.cache).unwrap().len(), 1);
    assert!(!left.exists() && linux.kept("kernels").len() == 1);
}

#[test]
fn two_concurrent_builds_build_once() {
    let linux = Linux::new();
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| linux.build("./linux@first").unwrap().image));
        let [one, other] = both.map(|thread| thread.join().unwrap());
        assert_eq!(one, other);
    });
    assert_eq!(linux.tally(), FIRST_BUILD);
}

#[test]
fn kernels_are_removed_by_commit_and_by_repository_with_their_build_directory() {
    let linux = Linux::new();
    for text in ["two", "three"] {
        linux.write("main.c", &format!("true {text}\n"));
        linux.commit(text);
    }
    let built = ["first", "two", "three"].map(|tag| linux.build(&format!("./linux@{tag}")).unwrap());
    let remove = |wanted: &str| machine::remove_kernel(&linux.cache, wanted, linux.place.path());
    let in_use = remove("./linux@two").unwrap_err();
    assert!(matches!(in_use, Error::InUse { .. }), "{in_use}");
    let origins = built.map(|kernel| kernel.origin);
    let removed = |wanted: &str| {
        let removed = remove(wanted).unwrap().into_iter().map(|stored| stored.kernel.origin);
        removed.collect::<Vec<String>>()
    };
    assert_eq!(removed("./linux@two"), [origins[1].clone()]);
    assert_eq!(removed(&origins[2]), [origins[2].clone()]);
    assert_eq!((linux.kept("kernels").len(), linux.kept("builds").len()), (1, 1));
    linux.build("./linux@two").unwrap();
    assert_eq!(removed("./linux").len(), 2);
    assert_eq!((linux.kept("kernels"), linux.kept("builds")), (vec![], vec![]));
    let error = remove("./linux@first").unwrap_err().to_string();
    assert!(error.contains("there is no kernel ./linux@first"), "{error}");
}

#[test]
fn labels_that_name_no_commit_of_linux_are_refused() {
    let linux = Linux::new();
    fs::create_dir(linux.path("empty")).unwrap();
    let has = |label: &str, why: &str| {
        let error = linux.refused(label);
        assert!(error.contains(why), "{label}: {error}");
    };
    has("./linux@gone", "there is no commit \"gone\"");
    has("./linux@--output=x", "there is no commit \"--output=x\"");
    has("./linux@first^{tree}", "there is no commit \"first^{tree}\"");
    has("./empty@first", "it is not a git repository");
    has("./nowhere@first", "it can't be found");
    linux.git(&["rm", "--quiet", "Kconfig"]);
    linux.commit("other");
    has("./linux@other", "no source of Linux: it lacks Kconfig or Makefile");
    // What exists is used as it is.
    fs::create_dir(linux.path("linux@first")).unwrap();
    has("./linux@first", "it is a directory without arch/x86/boot/bzImage");
    assert_eq!(linux.kept("builds"), [""; 0]);
}
