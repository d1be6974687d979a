//! A source tree that is built like PostgreSQL's, in no time: its `configure` and its Makefile record their actions in
//! a tally, and install links to the programs of an embedded server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use host::{Cache, Progress};
use model::server::{Build, Source};
use server::{Error, Installation};
use tempfile::TempDir;

use super::installed;

/// Version of the resulting server.
pub(crate) const MAJOR: &str = "18";

/// A place with a source tree in `postgresql`, and a cache.
pub(crate) struct FakeSource {
    place: TempDir,
    pub(crate) cache: Cache,
}

impl FakeSource {
    pub(crate) fn new() -> Self {
        let place = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(&place.path().join("cache")).unwrap();
        let fake = Self { place, cache };
        let server = installed(MAJOR);
        fake.write(
            "configure",
            &format!(
                "#!/bin/sh\nPACKAGE_VERSION='{}'\nset -e\necho configure >> {tally}\necho \"options: $*\"\n\
                 . \"$CONFIG_SITE\"\ntest ! -e \"$cache_file\" || . \"$cache_file\"\n\
                 echo \"echo know already >> {tally}\" > \"$cache_file\"\n\
                 mkdir -p src/backend src/interfaces/libpq src/bin/initdb\n\
                 for other in src/interfaces/libpq src/bin/initdb; do echo 'all install:' > $other/Makefile; done\n\
                 sed \"s|@srcdir@|$(dirname \"$0\")|\" \"$(dirname \"$0\")/src/backend/Makefile.in\" \
                 > src/backend/Makefile\n",
                server.version(),
                tally = fake.path("tally").display(),
            ),
        );
        fs::set_permissions(fake.path("postgresql/configure"), fs::Permissions::from_mode(0o755)).unwrap();
        fake.write(
            "src/backend/Makefile.in",
            &format!(
                "here = @srcdir@/src/backend\nto = $(DESTDIR)/usr/local/pgsql\nall: main.o other.o\n\
                 %.o: $(here)/%.c $(here)/main.h\n\techo compile $* >> {tally}\n\tcp $< $@\n\
                 install: all\n\techo install >> {tally}\n\tmkdir -p $(to)/bin $(to)/share\n\tln -s {server}/bin/* $(to)/bin\n\tcp main.o $(to)/share\n",
                tally = fake.path("tally").display(),
                server = server.directory().display(),
            ),
        );
        fake.write("src/backend/main.c", "one");
        fake.write("src/backend/main.h", "one");
        fake.write("src/backend/other.c", "other");
        fake
    }

    /// A path in this place; the source is in `postgresql`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Writes a file of the source.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path("postgresql").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Actions since the last call, sorted: make runs several at once.
    pub(crate) fn tally(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("tally")).unwrap_or_default();
        let _ = fs::remove_file(self.path("tally"));
        let mut done: Vec<String> = text.lines().map(str::to_owned).collect();
        done.sort();
        done
    }

    /// Build of `location`, a name in this place.
    pub(crate) fn build_of(&self, location: &str) -> Build {
        Build {
            location: self.path(location),
            git_ref: None,
            system: None,
            options: vec![],
            cflags: None,
            patches: vec![],
            sorted_functions: false,
        }
    }

    pub(crate) fn build(&self) -> Result<Installation, Error> {
        self.build_as(self.build_of("postgresql"))
    }

    pub(crate) fn build_as(&self, build: Build) -> Result<Installation, Error> {
        self.build_with(build, &host::NoProgress)
    }

    pub(crate) fn build_with(&self, build: Build, progress: &dyn Progress) -> Result<Installation, Error> {
        server::installation(&self.cache, &Source::Build(build), progress)
    }

    /// Runs git in the source, as a user without settings. Returns its output.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        run(Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@example.org", "-C"])
            .arg(self.path("postgresql"))
            .args(arguments))
    }

    /// Packs the source into a tarball, with `tar`'s option for its compression.
    pub(crate) fn tar(&self, name: &str, compression: &str) {
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(self.path(name)).arg("-C").arg(self.place.path());
        if !compression.is_empty() {
            tar.arg(compression);
        }
        run(tar.arg("postgresql"));
    }
}

/// Content compiled from `main.c`.
pub(crate) fn compiled(installation: &Installation) -> String {
    fs::read_to_string(installation.directory().join("share/main.o")).unwrap()
}

/// Names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
