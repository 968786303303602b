//! The tests of each test program, as the sources have them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// The tests of a program, each with its modules: of `lib`, or of a file or folder of `tests`.
/// `None` if there is no such program.
pub(crate) fn tests_of(program: &str) -> Option<BTreeSet<String>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let roots = match program {
        "lib" => [package.join("src/lib.rs"), PathBuf::new()],
        _ => ["", "/main"].map(|end| package.join(format!("tests/{program}{end}.rs"))),
    };
    let root = roots.into_iter().find(|root| root.is_file())?;
    let folder = root.parent()?.to_owned();
    let mut found = BTreeSet::new();
    read_file(&root, &folder, "", &mut found);
    Some(found)
}

/// Adds the tests of a file, and of its modules, whose files are in `folder`.
fn read_file(file: &Path, folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    let source = fs::read_to_string(file).expect("a readable source file");
    read_tokens(source.parse().expect("a source file in Rust"), folder, prefix, found);
}

fn read_tokens(stream: TokenStream, folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    let tokens: Vec<_> = stream.into_iter().collect();
    let text = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
    let mut is_test = false;
    for at in 0..tokens.len() {
        match text(at).as_str() {
            "[test]" => is_test = true,
            "fn" if std::mem::take(&mut is_test) => {
                found.insert(format!("{prefix}{}", text(at + 1)));
            }
            "mod" => {
                let (inside, prefix) =
                    (folder.join(text(at + 1)), format!("{prefix}{}::", text(at + 1)));
                if let Some(TokenTree::Group(body)) = tokens.get(at + 2) {
                    read_tokens(body.stream(), &inside, &prefix, found);
                    continue;
                }
                // A module may be of another build, or its file elsewhere.
                let files = [inside.with_extension("rs"), inside.join("mod.rs")];
                if let Some(file) = files.iter().find(|file| file.is_file()) {
                    read_file(file, &inside, &prefix, found);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_tests_of_this_program_are_found() {
    let found = tests_of("source").expect("this program");
    assert!(found.contains("programs::the_tests_of_this_program_are_found"), "{found:?}");
    assert!(found.contains("layers::every_layer_exists"), "{found:?}");
    assert!(
        tests_of("fork").expect("a program of one file").iter().all(|test| !test.contains(':'))
    );
    assert!(tests_of("lib").expect("the engine").len() > 100);
    assert_eq!(tests_of("nowhere"), None);
}
