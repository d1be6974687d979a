//! The documentation holds together: links lead somewhere on GitHub and on the site, files that code names exist, and every
//! page is on the site.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Files below a directory that are part of the source and whose extension is one of these, by their paths from the root.
fn files(below: &str, extensions: &[&str]) -> BTreeSet<PathBuf> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_output =
                name.starts_with('.') || ["target", "node_modules", "dist", "test-results"].contains(&name);
            if path.is_dir() && !is_output {
                collect(&path, found);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&root().join(below), &mut found);
    let is_wanted = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extensions.contains(&extension.to_str().unwrap()))
    };
    found.into_iter().filter(is_wanted).map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

/// What other documents can refer to, and what this one refers to.
struct Document {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

impl Document {
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let mut document = Self { anchors: BTreeSet::new(), links: Vec::new() };
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading = None;
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        *heading += &text;
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap());
                    let repeated = seen.entry(anchor.clone()).or_default();
                    let suffix = if *repeated == 0 { String::new() } else { format!("-{repeated}") };
                    *repeated += 1;
                    document.anchors.insert(anchor + &suffix);
                }
                _ => {}
            }
        }
        document
    }
}

/// The anchor of a heading by the rules of GitHub, which are those of mdBook, too.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || ['_', '-', ' '].contains(char));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The path from the root that a relative link in this file leads to.
fn target(file: &Path, link: &str) -> PathBuf {
    let mut target = file.parent().unwrap().to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(target.pop(), "{}: {link} leaves the source", file.display()),
            part => target.push(part),
        }
    }
    target
}

fn is_external(link: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

#[test]
fn links_lead_to_files_and_headings() {
    let documents: BTreeMap<PathBuf, Document> =
        files("", &["md"]).into_iter().map(|file| (file.clone(), Document::read(&file))).collect();
    let mut wrong = Vec::new();
    let mut followed = 0;
    for (file, document) in &documents {
        for link in document.links.iter().filter(|link| !is_external(link)) {
            followed += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.clone() } else { target(file, path) };
            let has_anchor = || documents.get(&target).is_some_and(|target| target.anchors.contains(anchor));
            if !root().join(&target).exists() {
                wrong.push(format!("{}: {link}: there is no {}", file.display(), target.display()));
            } else if !anchor.is_empty() && !has_anchor() {
                wrong.push(format!("{}: {link}: {} has no such heading", file.display(), target.display()));
            } else if file.starts_with("docs") && !target.starts_with("docs") {
                wrong
                    .push(format!("{}: {link}: it is not on the site, which has docs/ only", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(followed > 300, "only {followed} links were found");
}

/// Comments, help texts and errors name documents by their path from the root.
#[test]
fn documents_that_code_names_exist() {
    let mut wrong = Vec::new();
    let mut named = 0;
    for file in files("", &["rs", "ts", "svelte", "toml", "trycmd", "md", "yml", "sh"]) {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        for rest in text.split("docs/").skip(1) {
            let is_of_path = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
            let path = rest.split(|char| !is_of_path(char)).next().unwrap().trim_end_matches('.');
            if [".md", ".json", ".png"].iter().any(|ending| path.ends_with(ending)) {
                named += 1;
                if !root().join("docs").join(path).exists() {
                    wrong.push(format!("{}: docs/{path}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(named > 100, "only {named} names were found");
}

#[test]
fn every_page_is_on_the_site_once() {
    let summary = Path::new("docs/SUMMARY.md");
    let linked = Document::read(summary).links;
    // A chapter without a page of its own has an empty link.
    let mut pages: Vec<PathBuf> =
        linked.iter().filter(|link| !link.is_empty()).map(|link| target(summary, link)).collect();
    pages.sort();
    let documents: Vec<PathBuf> = files("docs", &["md"]).into_iter().filter(|file| file != summary).collect();
    assert_eq!(pages, documents, "docs/SUMMARY.md and the pages in docs/ differ");
}

#[test]
fn every_ready_campaign_is_documented() {
    let page = fs::read_to_string(root().join("docs/ready-campaigns.md")).unwrap();
    for file in files("campaigns", &["toml"]) {
        let name = format!("`{}`", file.file_name().unwrap().to_str().unwrap());
        assert!(page.contains(&name), "docs/ready-campaigns.md lacks {name}");
    }
}

#[test]
fn the_readme_is_one_screen_and_names_the_commands_for_developers() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 60, "README.md has more than 60 lines");
    for command in ["make demo", "make test"] {
        assert!(readme.contains(command), "README.md lacks {command}");
    }
}
