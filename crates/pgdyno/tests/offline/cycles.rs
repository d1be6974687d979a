//! Modules have no cyclic dependencies: code that two modules of a crate or of a folder share lies below both, so that
//! a crate can be read from one end to the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cargo_metadata::MetadataCommand;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// Sources of a crate by the path of their module: empty for its root, `["dataset", "fill"]` for `dataset/fill.rs`.
type Sources = BTreeMap<Vec<String>, String>;

/// Paths in a file outside its tests: of imports, of code, and of macros' arguments if they begin with `crate`.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl Paths {
    fn add_tree(&mut self, tree: &UseTree, mut before: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(&path.tree, before);
            }
            UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.0.push(before);
            }
            UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                self.0.push(before);
            }
            UseTree::Glob(_) => self.0.push(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree, before.clone())),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            _ => &[],
        };
        let is_test = |attribute: &Attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
        };
        if !attributes.iter().any(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// Searches the tokens of a macro, since its arguments are not parsed.
    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        let tokens = of.tokens.to_string().replace(' ', "");
        for (at, _) in tokens.match_indices("crate::") {
            let path = tokens[at..].split(|c: char| c != ':' && c != '_' && !c.is_alphanumeric()).next();
            self.0.push(path.unwrap().split("::").map(str::to_owned).collect());
        }
    }
}

fn paths(source: &str) -> Vec<Vec<String>> {
    let mut paths = Paths::default();
    paths.visit_file(&syn::parse_file(source).unwrap());
    paths.0
}

/// A path of modules from the root of a crate.
type Module = Vec<String>;

/// Modules of a crate, and their re-exports.
struct Modules {
    all: BTreeSet<Module>,
    /// Names that a module re-exports, with the module that contains them.
    reexported: BTreeMap<(Module, String), Module>,
}

impl Modules {
    fn new(sources: &Sources) -> Self {
        let mut all = BTreeSet::new();
        for module in sources.keys() {
            all.extend((0..=module.len()).map(|length| module[..length].to_vec()));
        }
        let mut modules = Self { all, reexported: BTreeMap::new() };
        for (module, source) in sources {
            for path in paths(source) {
                let inner = path.iter().filter(|segment| *segment != "self");
                let path: Module = module.iter().chain(inner).cloned().collect();
                let Some((name, _)) = path.split_last() else { continue };
                let user = modules.resolve(&path);
                if user.len() > module.len() && user.len() < path.len() {
                    modules.reexported.insert((module.clone(), name.clone()), user);
                }
            }
        }
        modules
    }

    /// The module of the item at a path from the root.
    fn resolve(&self, path: &[String]) -> Module {
        let mut module = Module::new();
        for name in path {
            let inner: Module = module.iter().cloned().chain([name.clone()]).collect();
            if self.all.contains(&inner) {
                module = inner;
            } else if let Some(reexported) = self.reexported.get(&(module.clone(), name.clone())) {
                module = reexported.clone();
            } else {
                break;
            }
        }
        module
    }
}

/// Cycles of sibling modules in the crate's root or in a module, each in alphabetical order.
fn cycles(sources: &Sources) -> Vec<Vec<String>> {
    let modules = Modules::new(sources);
    let mut uses = BTreeSet::new();
    for (user, source) in sources {
        for path in paths(source) {
            let above = path.iter().take_while(|segment| *segment == "super").count();
            let from_root = match path[0].as_str() {
                "crate" => path[1..].to_vec(),
                _ if (1..=user.len()).contains(&above) => {
                    user[..user.len() - above].iter().chain(&path[above..]).cloned().collect()
                }
                _ => continue,
            };
            let used = modules.resolve(&from_root);
            let shared = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
            if user.len() > shared && used.len() > shared {
                uses.insert((user[..=shared].join("/"), used[..=shared].join("/")));
            }
        }
    }
    let uses =
        DiGraphMap::<&str, ()>::from_edges(uses.iter().map(|(user, used)| (user.as_str(), used.as_str())));
    let mut cycles: Vec<Vec<String>> = tarjan_scc(&uses)
        .into_iter()
        .filter(|cycle| cycle.len() > 1)
        .map(|cycle| cycle.into_iter().map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect())
        .collect();
    cycles.sort();
    cycles
}

fn read(directory: &Path, module: &[String], sources: &mut Sources) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let inner: Vec<String> = module.iter().cloned().chain([name]).collect();
        if path.is_dir() {
            read(&path, &inner, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_root = module.is_empty() && ["lib", "main"].contains(&inner[0].as_str());
            let source = fs::read_to_string(&path).unwrap();
            sources.insert(if is_root { Vec::new() } else { inner }, source);
        }
    }
}

#[test]
fn no_crate_has_a_cycle_of_modules() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    let mut found = BTreeMap::new();
    for package in metadata.workspace_packages() {
        let mut sources = Sources::new();
        read(package.manifest_path.parent().unwrap().join("src").as_std_path(), &[], &mut sources);
        let cycles = cycles(&sources);
        if !cycles.is_empty() {
            found.insert(package.name.to_string(), cycles);
        }
    }
    assert_eq!(found, BTreeMap::new(), "move what these modules share below them");
}

fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let sources = files.iter().map(|(module, source)| {
        let module = module.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        (module, (*source).to_owned())
    });
    cycles(&sources.collect())
}

#[test]
fn a_cycle_is_found_in_every_form() {
    let cycle = vec![vec!["a".to_owned(), "b".to_owned()]];
    let forms: [&[(&str, &str)]; 6] = [
        &[("", "mod a; mod b;"), ("a", "use crate::b::B;"), ("b", "use crate::a::A;")],
        &[("", "mod a; mod b;"), ("a", "fn f() { crate::b::f() }"), ("b", "use crate::{a::{self, A}};")],
        &[("", "mod a; mod b;"), ("a/inner", "use super::super::b::B;"), ("b", "use super::a::A;")],
        &[("", "mod a; mod b; pub use a::A;"), ("a", "use crate::b;"), ("b", "use crate::A;")],
        &[("", "mod a; mod b;"), ("a", "fn f() { print!(\"{}\", crate::b::B) }"), ("b", "use crate::a;")],
        &[("", "mod a; mod b;"), ("a", "use crate::b::B as C;"), ("b", "use crate::a::*;")],
    ];
    for files in forms {
        assert_eq!(cycles_of(files), cycle, "{files:?}");
    }
}

#[test]
fn a_cycle_inside_a_module_is_found() {
    let files = [
        ("", "mod a; mod b;"),
        ("a", "mod x; mod y; pub use y::Y;"),
        ("a/x", "use super::y::f;"),
        ("a/y", "use crate::a::x::X; use crate::b::B;"),
        ("b", ""),
    ];
    assert_eq!(cycles_of(&files), [["a/x", "a/y"]]);
    let by_a_reexport = [
        ("", "mod a;"),
        ("a", "mod x; mod y; pub use y::Y;"),
        ("a/x", "use super::Y;"),
        ("a/y", "use super::x;"),
    ];
    assert_eq!(cycles_of(&by_a_reexport), [["a/x", "a/y"]]);
}

#[test]
fn a_cycle_of_three_is_found_without_its_dependencies() {
    let files = [
        ("", "mod a; mod b; mod c; mod d;"),
        ("a", "use crate::b::B;"),
        ("b", "use crate::c::C;"),
        ("c", "use crate::a::A; use crate::d::D;"),
        ("d", ""),
    ];
    assert_eq!(cycles_of(&files), [["a", "b", "c"]]);
}

#[test]
fn one_way_dependencies_are_no_cycle() {
    let files = [
        ("", "mod a; mod b; pub use a::A;"),
        ("a", "use std::fmt; use super::b::B; mod inner;"),
        ("a/inner", "use super::A; use crate::a::A as B; use super::other::C;"),
        ("a/other", "use crate::b::B;"),
        ("b", "#[cfg(test)] mod tests { use crate::a::A; }"),
    ];
    assert!(cycles_of(&files).is_empty());
}
