//! The Rust example of README.md and of the crate's own, which `fruit.rs` repeats to the letter,
//! compiles and runs, and README.md's numbers have sources.

use std::env;
use std::path::Path;

mod numbers;

mod fruit {
    include!("fruit.rs");

    pub(super) fn run() -> Result<()> {
        main()
    }
}

#[test]
fn the_example_in_the_readme_is_true() {
    for readme in ["../../README.md", "README.md"] {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join(readme);
        let text = std::fs::read_to_string(readme).expect("README.md");
        let shown = text
            .split("```rust\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .expect("an example");
        assert_eq!(shown, include_str!("fruit.rs"));
        assert!(shown.lines().count() <= 30);
    }

    let dir = tempfile::tempdir().expect("a temporary directory");
    env::set_current_dir(dir.path()).expect("a directory to work in");
    fruit::run().expect("the example runs");
    assert!(dir.path().join("fruit.db/CURRENT").exists());
}
