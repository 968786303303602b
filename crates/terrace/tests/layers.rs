//! The modules of the engine form layers, and a module uses only what lies below it.
//!
//! The test reads every path that starts at the crate's root (`crate::…`, a brace group after it,
//! and chains of `super` that reach it), follows the root's re-exports, and compares the layers of
//! both ends. Comments and string literals do not count. It covers unit tests inside the modules
//! too: what a test needs from above belongs in an integration test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lowest first. The order of `docs/architecture.md`.
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

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    PathSeparator,
    Open,
    Close,
    Comma,
    Other,
}

/// Rust's tokens, as far as paths need them, each with its line.
fn tokens(source: &str) -> Vec<(Token, usize)> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut line = 1;
    let starts = |at: usize, text: &str| bytes[at..].starts_with(text.as_bytes());
    while at < bytes.len() {
        let byte = bytes[at];
        let begin = at;
        let mut token = None;
        if starts(at, "//") {
            at += source[at..].find('\n').unwrap_or(bytes.len() - at);
        } else if starts(at, "/*") {
            let mut depth = 0;
            while at < bytes.len() {
                if starts(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if starts(at, "*/") {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        break;
                    }
                } else {
                    at += 1;
                }
            }
        } else if let Some(length) = raw_string(&source[at..]) {
            at += length;
        } else if byte == b'"' {
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
        } else if byte == b'\'' {
            // A character literal, or a lifetime, which is a word like any other.
            let literal = if starts(at, "'\\") {
                source[at + 3..].find('\'').map(|end| end + 4)
            } else {
                source[at + 1..]
                    .chars()
                    .next()
                    .map(char::len_utf8)
                    .filter(|&c| starts(at + 1 + c, "'"))
                    .map(|c| c + 2)
            };
            at += literal.unwrap_or(1);
        } else if byte.is_ascii_alphanumeric() || byte == b'_' {
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                at += 1;
            }
            token = Some(Token::Word(source[begin..at].to_owned()));
        } else if starts(at, "::") {
            at += 2;
            token = Some(Token::PathSeparator);
        } else {
            at += 1;
            token = match byte {
                b'{' => Some(Token::Open),
                b'}' => Some(Token::Close),
                b',' => Some(Token::Comma),
                _ if byte.is_ascii_whitespace() => None,
                _ => Some(Token::Other),
            };
        }
        at = at.min(bytes.len());
        if let Some(token) = token {
            found.push((token, line));
        }
        line += bytes[begin..at].iter().filter(|&&b| b == b'\n').count();
    }
    found
}

/// The length of the raw string literal that `text` begins with.
fn raw_string(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let body = rest[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let close = body.find(&end)?;
    Some(text.len() - body.len() + close + end.len())
}

/// The names that paths from the crate's root begin with, each with its line. `depth` is how many
/// `super` lead from the file to the root.
fn names_from_root(source: &str, depth: usize) -> Vec<(String, usize)> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut at = 0;
    // The nesting of braces inside `mod name { … }`, where one more `super` is needed.
    let mut braces = 0_usize;
    let mut inline_modules: Vec<usize> = Vec::new();
    while at < tokens.len() {
        match &tokens[at].0 {
            Token::Open => {
                let opens_module = at >= 2
                    && matches!((&tokens[at - 2].0, &tokens[at - 1].0), (Token::Word(a), Token::Word(_)) if a == "mod");
                if opens_module {
                    inline_modules.push(braces);
                }
                braces += 1;
            }
            Token::Close => {
                braces = braces.saturating_sub(1);
                if inline_modules.last() == Some(&braces) {
                    inline_modules.pop();
                }
            }
            _ => {}
        }
        let path_begins = at == 0 || tokens[at - 1].0 != Token::PathSeparator;
        let mut supers = 0;
        let word = |at: usize, text: &str| matches!(tokens.get(at), Some((Token::Word(w), _)) if w == text);
        let separator = |at: usize| matches!(tokens.get(at), Some((Token::PathSeparator, _)));
        let mut next = at;
        while path_begins && word(next, "super") && separator(next + 1) {
            supers += 1;
            next += 2;
        }
        let from_root = path_begins && word(at, "crate") && separator(at + 1);
        if from_root {
            next = at + 2;
        }
        if from_root || supers > 0 && supers >= depth + inline_modules.len() {
            match tokens.get(next) {
                Some((Token::Word(name), line)) => found.push((name.clone(), *line)),
                Some((Token::Open, _)) => found.extend(group(&tokens[next + 1..])),
                _ => {}
            }
        }
        at += 1;
    }
    found
}

/// The first names of the paths in a brace group, up to its closing brace.
fn group(tokens: &[(Token, usize)]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut nesting = 0;
    let mut first = true;
    for (token, line) in tokens {
        match token {
            Token::Open => nesting += 1,
            Token::Close if nesting == 0 => break,
            Token::Close => nesting -= 1,
            Token::Comma if nesting == 0 => first = true,
            Token::Word(name) if nesting == 0 && first => {
                found.push((name.clone(), *line));
                first = false;
            }
            _ => {}
        }
    }
    found
}

/// What the crate's root re-exports, and from which module.
fn re_exports(root: &str) -> BTreeMap<String, String> {
    let tokens = tokens(root);
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at < tokens.len() {
        let Token::Word(word) = &tokens[at].0 else {
            at += 1;
            continue;
        };
        if word != "use" {
            at += 1;
            continue;
        }
        let mut words = Vec::new();
        let mut end = at + 1;
        while end < tokens.len() && tokens[end].0 != Token::Other {
            if let Token::Word(word) = &tokens[end].0 {
                words.push(word.clone());
            }
            end += 1;
        }
        let module = words.iter().find(|word| LAYERS.contains(&word.as_str())).cloned();
        if let Some(module) = module {
            found.extend(words.into_iter().map(|word| (word, module.clone())));
        }
        at = end;
    }
    for layer in LAYERS {
        found.insert(layer.to_owned(), layer.to_owned());
    }
    found
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a readable source directory") {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == module)
}

#[test]
fn modules_use_only_what_lies_below() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let root = fs::read_to_string(src.join("lib.rs")).expect("lib.rs");
    let exports = re_exports(&root);
    let mut files = Vec::new();
    sources(&src, &mut files);
    files.sort();
    let mut offences = Vec::new();
    let mut paths = 0;
    for file in &files {
        let relative = file.strip_prefix(&src).expect("a file under src");
        let parts: Vec<_> =
            relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if parts.len() == 1 && parts[0] == "lib.rs" {
            continue;
        }
        let module = parts[0].trim_end_matches(".rs");
        let Some(own) = rank(module) else {
            // A face of the crate beside the layers (such as a module for tools) may use them all;
            // nobody uses it.
            continue;
        };
        let depth = parts.len() - usize::from(parts.last().is_some_and(|name| name == "mod.rs"));
        let source = fs::read_to_string(file).expect("a readable source file");
        for (name, line) in names_from_root(&source, depth) {
            paths += 1;
            let place = format!("{}:{line}", relative.display());
            match exports.get(&name).and_then(|module| rank(module).map(|rank| (module, rank))) {
                Some((_, used)) if used <= own => {}
                Some((used, _)) => offences
                    .push(format!("{place}: {module} uses {name} of the higher layer {used}")),
                None => offences
                    .push(format!("{place}: {module} uses {name}, which belongs to no layer")),
            }
        }
    }
    assert!(
        files.len() > LAYERS.len() && paths > 0,
        "the sources were not found under {}",
        src.display()
    );
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}

#[test]
fn every_layer_exists() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for layer in LAYERS {
        assert!(
            src.join(layer).is_dir() || src.join(format!("{layer}.rs")).is_file(),
            "no module {layer}"
        );
    }
}

#[test]
fn the_reader_of_paths_sees_what_matters() {
    let source = r##"
        //! crate::comment
        use crate::{base::{coding, error}, db::options::Options};
        use super::super::write::batch; /* crate::comment */
        fn f<'a>(c: char) -> &'a str { crate::log::reader(); "crate::text" }
        const R: &str = r#"crate::raw " text"#; const Q: char = '"'; const E: char = '\'';
        pub(crate) struct S;
        mod tests { use super::super::near; use super::super::super::far; use crate::env::X; }
    "##;
    let names: Vec<String> = names_from_root(source, 2).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["base", "db", "write", "log", "far", "env"]);
    let root = "mod db; pub use db::{options::Options, Db}; pub use base::error::Error;";
    let exports = re_exports(root);
    assert_eq!(exports["Db"], "db");
    assert_eq!(exports["Options"], "db");
    assert_eq!(exports["Error"], "base");
}
