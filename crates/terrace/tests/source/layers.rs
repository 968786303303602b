//! The files of every crate use each other in one direction only.
//!
//! A file *uses* another one if a path in it (an import, an expression, a type, an argument of a
//! macro; unit tests too) leads to an item of the other one, or to the other one as a module.
//! Re-exports (`pub use`) are looked through: the file counts that has the item, and a file that
//! only re-exports uses nothing. Methods count where their type is named.
//!
//! 1. No files of a crate use each other in a circle.
//! 2. In the engine, a folder of `src` uses only the folders below it: [`LAYERS`].
//! 3. A *room* is a folder of sources, with its files and its subfolders, each of which counts as
//!    one; the root file of a crate, which is above all others, does not count. The *floors* of a
//!    room are the longest chain of them in which each one uses the next; those that use each other
//!    in a circle, which only subfolders can, count one floor each. No room has more than
//!    [`MOST_FLOORS`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Folders of the engine, lowest first. The order of `docs/architecture.md`.
const LAYERS: [&str; 12] = [
    "base",
    "env",
    "log",
    "memtable",
    "filter",
    "cache",
    "table",
    "version",
    "iterator",
    "compaction",
    "write",
    "db",
];

const MOST_FLOORS: usize = 8;

const ENGINE: &str = "crates/terrace/src/lib.rs";

/// The roots of all crates.
const CRATES: [&str; 7] = [
    ENGINE,
    "crates/terrace-cli/src/main.rs",
    "crates/leveldb-abi/src/lib.rs",
    "crates/terrace-testkit/src/lib.rs",
    "lab/harness/src/lib.rs",
    "lab/harness/src/main.rs",
    "lab/engines/rust/src/lib.rs",
];

/// The path of a module from the root of its crate.
type ModulePath = Vec<String>;

#[derive(Default)]
struct Module {
    file: usize,
    children: BTreeSet<String>,
    /// Imports and re-exports by the names that they have here: several where builds differ.
    imports: BTreeMap<String, Vec<Vec<String>>>,
    globs: Vec<Vec<String>>,
    items: BTreeSet<String>,
}

/// A path as a file has it.
struct Mention {
    module: ModulePath,
    path: Vec<String>,
    line: usize,
}

/// The modules of a crate and what they mention.
#[derive(Default)]
struct Crate {
    /// Relative to the folder of the root.
    files: Vec<PathBuf>,
    modules: BTreeMap<ModulePath, Module>,
    mentions: Vec<Mention>,
}

impl Crate {
    /// Reads the crate with this root file.
    fn read(root: &Path) -> Crate {
        let src = root.parent().expect("a root file in a folder");
        let mut read = Crate::default();
        let mut files = vec![(ModulePath::new(), root.to_owned())];
        while let Some((module, path)) = files.pop() {
            let source = fs::read_to_string(&path).expect("a readable source file");
            let stream: TokenStream = source.parse().expect("a source file in Rust");
            read.files.push(path.strip_prefix(src).expect("a file of the crate").to_owned());
            for child in read.read_module(&module, stream) {
                let base: PathBuf = std::iter::once(src.to_owned())
                    .chain(child.iter().map(PathBuf::from))
                    .collect();
                let (file, folder) = (base.with_extension("rs"), base.join("mod.rs"));
                files.push((child, if file.is_file() { file } else { folder }));
            }
        }
        read
    }

    /// Notes what a module of the last file has. Returns the modules that have files of their own.
    fn read_module(&mut self, module: &ModulePath, stream: TokenStream) -> Vec<ModulePath> {
        let file = self.files.len() - 1;
        self.modules.insert(module.clone(), Module { file, ..Module::default() });
        let mut children = Vec::new();
        self.read_tokens(module, stream, &mut children);
        children
    }

    fn read_tokens(
        &mut self,
        module: &ModulePath,
        stream: TokenStream,
        children: &mut Vec<ModulePath>,
    ) {
        let tokens: Vec<_> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let keyword = word(&tokens, at).unwrap_or_default();
            let name = word(&tokens, at + 1);
            match (keyword.as_str(), name) {
                ("mod", Some(name)) => {
                    let child: ModulePath = module.iter().cloned().chain([name.clone()]).collect();
                    self.here(module).children.insert(name);
                    match tokens.get(at + 2) {
                        Some(TokenTree::Group(body)) => {
                            children.extend(self.read_module(&child, body.stream()));
                        }
                        _ => children.push(child),
                    }
                    at += 3;
                    continue;
                }
                ("use", _) => {
                    let end = (at..tokens.len()).find(|&end| is_punct(&tokens, end, ';'));
                    let end = end.unwrap_or(tokens.len());
                    let is_public = at > 0 && is_visibility(&tokens, at - 1);
                    self.read_use(module, &tokens[at + 1..end], &[], is_public);
                    at = end;
                    continue;
                }
                (
                    "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static",
                    name,
                ) => {
                    self.here(module).items.extend(name);
                }
                ("macro_rules", _) => {
                    self.here(module).items.extend(word(&tokens, at + 2));
                }
                _ => {}
            }
            if let TokenTree::Group(group) = &tokens[at]
                && !is_visibility(&tokens, at)
            {
                self.read_tokens(module, group.stream(), children);
            }
            let path = path_at(&tokens, at);
            if path.len() > 1 {
                self.mention(module, path.clone(), tokens[at].span().start().line);
            }
            // Each separator is two tokens.
            at += (3 * path.len()).saturating_sub(2).max(1);
        }
    }

    /// Notes the imports of a `use`, whose tokens these are, below `prefix`.
    fn read_use(
        &mut self,
        module: &ModulePath,
        tokens: &[TokenTree],
        prefix: &[String],
        is_public: bool,
    ) {
        let commas = |index: &usize| is_punct(tokens, *index, ',');
        let ends = (0..tokens.len()).filter(commas).chain([tokens.len()]);
        let mut begin = 0;
        for end in ends {
            let tree = &tokens[begin..end];
            begin = end + 1;
            if tree.is_empty() {
                continue;
            }
            let mut path = [prefix, &path_at(tree, 0)].concat();
            let rest = &tree[tree.len().min((3 * (path.len() - prefix.len())).saturating_sub(2))..];
            let renamed = word(rest, 0).filter(|word| word == "as").and_then(|_| word(rest, 1));
            let line = tree.first().map_or(0, |token| token.span().start().line);
            let last = rest.last();
            if let Some(TokenTree::Group(group)) = last {
                let inner: Vec<_> = group.stream().into_iter().collect();
                self.read_use(module, &inner, &path, is_public);
                continue;
            }
            if matches!(last, Some(TokenTree::Punct(punct)) if punct.as_char() == '*') {
                self.here(module).globs.push(path.clone());
            } else if let Some(name) = path.last().cloned() {
                if name == "self" {
                    path.pop();
                }
                let name = renamed.or_else(|| path.last().cloned()).unwrap_or_default();
                self.here(module).imports.entry(name).or_default().push(path.clone());
            }
            if !is_public && !path.is_empty() {
                self.mention(module, path, line);
            }
        }
    }

    fn here(&mut self, module: &ModulePath) -> &mut Module {
        self.modules.get_mut(module).expect("a module being read")
    }

    fn mention(&mut self, module: &ModulePath, path: Vec<String>, line: usize) {
        self.mentions.push(Mention { module: module.clone(), path, line });
    }

    /// The file that has what `path` names in `module`. `None` if that is of another crate.
    fn file_of(&self, module: &[String], path: &[String], depth: usize) -> Option<usize> {
        let here = self.modules.get(module)?;
        let (Some(first), true) = (path.first(), depth < 16) else { return Some(here.file) };
        let rest = &path[1..];
        match first.as_str() {
            "crate" => return self.file_of(&[], rest, depth),
            "self" => return self.file_of(module, rest, depth),
            "super" => return self.file_of(&module[..module.len().checked_sub(1)?], rest, depth),
            _ => {}
        }
        if here.children.contains(first) {
            return self.file_of(&[module, std::slice::from_ref(first)].concat(), rest, depth);
        }
        let imports = here.imports.get(first).into_iter().flatten();
        let mut imports = imports.filter(|import| import[..] != path[..1]).peekable();
        if imports.peek().is_some() {
            let file =
                |import: &Vec<String>| self.file_of(module, &[import, rest].concat(), depth + 1);
            // What is of another crate counts as of the module through which it is reached.
            return imports.find_map(file).or((depth > 0).then_some(here.file));
        }
        if here.items.contains(first) {
            return Some(here.file);
        }
        here.globs.iter().find_map(|glob| self.file_of(module, &[glob, path].concat(), depth + 1))
    }

    /// Which file uses which, and in which line it does so first.
    fn uses(&self) -> BTreeMap<(usize, usize), usize> {
        let mut uses = BTreeMap::new();
        for mention in &self.mentions {
            let from = self.modules[&mention.module].file;
            let to = self.file_of(&mention.module, &mention.path, 0);
            let is_inside = ["crate", "self", "super"].contains(&mention.path[0].as_str());
            let (file, line) = (self.files[from].display(), mention.line);
            assert!(to.is_some() || !is_inside, "{file}:{line}: {:?} is nowhere", mention.path);
            if let Some(to) = to.filter(|&to| to != from) {
                uses.entry((from, to)).or_insert(line);
            }
        }
        uses
    }

    /// The names of the rooms: folders, relative to the root's.
    fn rooms(&self) -> BTreeSet<&Path> {
        self.files.iter().filter_map(|file| file.parent()).collect()
    }

    /// A chain as long as a room has floors.
    fn floors(&self, room: &Path) -> Vec<String> {
        let place = |file: usize| {
            // The root is the first.
            let inside = self.files[file].strip_prefix(room).ok().filter(|_| file > 0)?;
            Some(inside.iter().next()?.to_string_lossy().trim_end_matches(".rs").to_owned())
        };
        let uses: BTreeSet<_> = self
            .uses()
            .into_keys()
            .filter_map(|(from, to)| Some((place(from)?, place(to)?)))
            .filter(|(from, to)| from != to)
            .collect();
        longest_chain(&uses)
    }
}

/// The identifier at an index.
fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_punct(tokens: &[TokenTree], at: usize, wanted: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens, at, ':') && is_punct(tokens, at + 1, ':')
}

/// Whether `pub`, or its parentheses, are at an index.
fn is_visibility(tokens: &[TokenTree], at: usize) -> bool {
    let is_pub = |at| word(tokens, at).is_some_and(|word| word == "pub");
    match &tokens[at] {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
            at > 0 && is_pub(at - 1)
        }
        _ => is_pub(at),
    }
}

/// The names of the path that begins at an index; none if that is within one, or no name.
fn path_at(tokens: &[TokenTree], at: usize) -> Vec<String> {
    let mut path = Vec::new();
    let mut next = at;
    while let Some(name) = word(tokens, next) {
        path.push(name);
        if !is_separator(tokens, next + 1) {
            break;
        }
        next += 3;
    }
    path
}

/// A way from `to` back to `from`, if there is one, as a list of nodes from `from` to `to`.
fn way<N: Ord + Clone>(uses: &BTreeSet<(N, N)>, from: &N, to: &N) -> Option<Vec<N>> {
    let mut came_from: BTreeMap<&N, &N> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        if node == to {
            let mut way = vec![to.clone()];
            while way.last() != Some(from) {
                way.push(came_from[&way[way.len() - 1]].clone());
            }
            way.reverse();
            return Some(way);
        }
        for (_, next) in uses.iter().filter(|(user, _)| user == node) {
            if next != from && !came_from.contains_key(next) {
                came_from.insert(next, node);
                queue.push_back(next);
            }
        }
    }
    None
}

/// The nodes from which every node of `uses` that is in a circle with `node` can be reached, and
/// back.
fn circle<N: Ord + Clone>(uses: &BTreeSet<(N, N)>, node: &N) -> BTreeSet<N> {
    let nodes = uses.iter().flat_map(|(from, to)| [from, to]);
    nodes
        .filter(|other| way(uses, node, other).is_some() && way(uses, other, node).is_some())
        .cloned()
        .collect()
}

/// The longest chain of uses. The members of a circle are all of them in it.
fn longest_chain<N: Ord + Clone>(uses: &BTreeSet<(N, N)>) -> Vec<N> {
    fn below<N: Ord + Clone>(
        uses: &BTreeSet<(N, N)>,
        node: &N,
        known: &mut BTreeMap<N, Vec<N>>,
    ) -> Vec<N> {
        if let Some(chain) = known.get(node) {
            return chain.clone();
        }
        let members = circle(uses, node);
        let outside =
            uses.iter().filter(|(from, to)| members.contains(from) && !members.contains(to));
        let longest = outside.map(|(_, to)| below(uses, to, known)).max_by_key(Vec::len);
        let chain: Vec<N> = members.iter().cloned().chain(longest.unwrap_or_default()).collect();
        known.extend(members.into_iter().map(|member| (member, chain.clone())));
        chain
    }
    let mut known = BTreeMap::new();
    let nodes: BTreeSet<_> = uses.iter().map(|(from, _)| from).collect();
    nodes
        .into_iter()
        .map(|node| below(uses, node, &mut known))
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn files_use_each_other_in_no_circle() {
    let mut circles = String::new();
    for root in CRATES {
        let read = Crate::read(&repository().join(root));
        let lines = read.uses();
        assert!(lines.len() > 3, "{root}: the sources were not found");
        let uses: BTreeSet<_> = lines.keys().copied().collect();
        let mut seen = BTreeSet::new();
        for (from, to) in &uses {
            if seen.contains(from) {
                continue;
            }
            let Some(way) = way(&uses, to, from) else { continue };
            seen.extend(circle(&uses, from));
            circles += &format!("{root}: a circle of files\n");
            for (user, used) in std::iter::once(from).chain(&way).zip(&way) {
                let line = lines[&(*user, *used)];
                let (user, used) = (read.files[*user].display(), read.files[*used].display());
                circles += &format!("  {user}:{line} uses {used}\n");
            }
        }
    }
    assert!(circles.is_empty(), "\n{circles}");
}

#[test]
fn modules_use_only_what_lies_below() {
    let read = Crate::read(&repository().join(ENGINE));
    let layer = |file: usize| {
        let first = read.files[file].iter().next().expect("a file").to_string_lossy();
        LAYERS.iter().position(|layer| first.trim_end_matches(".rs") == *layer)
    };
    let mut arrows = String::new();
    for ((from, to), line) in read.uses() {
        if layer(from) < layer(to) || layer(to).is_none() {
            let (from, to) = (read.files[from].display(), read.files[to].display());
            arrows += &format!("{from}:{line} uses {to}, of a higher layer\n");
        }
    }
    assert!(arrows.is_empty(), "\n{arrows}");
}

#[test]
fn every_layer_exists() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for layer in LAYERS {
        assert!(src.join(layer).is_dir(), "no folder {layer}");
    }
}

#[test]
fn no_room_has_too_many_floors() {
    let mut high = String::new();
    for root in CRATES {
        let read = Crate::read(&repository().join(root));
        for room in read.rooms() {
            let chain = read.floors(room);
            if chain.len() > MOST_FLOORS {
                let (room, floors) = (room.display(), chain.len());
                high += &format!("{root}: {floors} floors in {room}/: {}\n", chain.join(" > "));
            }
        }
    }
    assert!(high.is_empty(), "\n{high}");
}

#[test]
fn the_reader_of_paths_sees_what_matters() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    };
    write("lib.rs", "mod high; mod low; mod room; pub use room::deep::Deep;");
    write(
        "high.rs",
        r##"
            //! crate::comment
            use crate::{low::{self, Low}, Deep};
            use std::fmt as room;
            pub(in crate::low) fn f<'a>(c: char) -> &'a str { "crate::room::text" }
            const R: &str = r#"crate::room::raw " text"#;
        "##,
    );
    write("low.rs", "pub struct Low; macro_rules! name { () => { $crate::room::Item } }");
    write("room/mod.rs", "pub mod deep; pub mod other; pub use deep::Deep as Item;");
    write("room/deep.rs", "pub struct Deep; mod tests { use super::Deep; }");
    write("room/other.rs", "fn f() { assert!(super::deep::Deep == self::g()); } fn g() {}");
    let read = Crate::read(&dir.path().join("lib.rs"));
    let name = |file: usize| read.files[file].to_string_lossy().into_owned();
    let uses: BTreeSet<_> =
        read.uses().into_keys().map(|(from, to)| (name(from), name(to))).collect();
    let expected = [
        ("high.rs", "low.rs"),
        ("high.rs", "room/deep.rs"),
        ("low.rs", "room/deep.rs"),
        ("room/other.rs", "room/deep.rs"),
    ];
    assert_eq!(uses, expected.map(|(from, to)| (from.to_owned(), to.to_owned())).into());
    assert_eq!(read.floors(Path::new("")), ["high", "low", "room"]);
}

#[test]
fn circles_and_floors_are_found() {
    let uses = BTreeSet::from([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("a", "d")]);
    assert_eq!(way(&uses, &"c", &"b"), Some(vec!["c", "b"]));
    assert_eq!(way(&uses, &"b", &"a"), None);
    assert_eq!(circle(&uses, &"b"), BTreeSet::from(["b", "c"]));
    assert_eq!(longest_chain(&uses), ["a", "b", "c", "d"]);
}
