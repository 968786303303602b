//! Sequences of calls of the C API: those that fuzzing has kept, and some at random.

use std::fs;
use std::path::Path;

#[path = "sequences/mod.rs"]
mod sequence;

#[test]
fn kept_and_random_sequences_equal_the_model() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/c-api");
    let mut count = 0;
    for entry in fs::read_dir(corpus).expect("a corpus") {
        let entry = entry.expect("an entry").path();
        println!("{}", entry.display());
        sequence::run(&fs::read(entry).expect("an input"), &path);
        count += 1;
    }
    // xorshift: any sequence will do, the same every time.
    let mut state = 0x5eed_u64;
    for _ in 0..10 {
        let bytes = (0..300).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        });
        sequence::run(&bytes.collect::<Vec<_>>(), &path);
    }
    println!("kept_and_random_sequences: {count} kept, 10 at random");
}
