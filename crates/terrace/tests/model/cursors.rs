//! Cursors against a model: keys that have much or nothing in common, many versions in several
//! sorted runs, switches of direction, and writes beside the cursor.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use terrace::{Cursor, Db, Options};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Key prefixes: shorter and longer than an abbreviated key, one the beginning of
/// another, at both ends.
fn beginnings() -> Vec<Vec<u8>> {
    let texts = [
        "",
        "tenant-0001/user/",
        "tenant-0001/user/profile/00000000000",
        "tenant-0001/v",
        "tenant-0002/user/",
    ];
    let ends = [vec![0; 24], vec![0xff; 15], vec![0xff; 24]];
    texts.into_iter().map(|text| text.as_bytes().to_vec()).chain(ends).collect()
}

fn key(random: &mut Rng, beginnings: &[Vec<u8>]) -> Vec<u8> {
    let mut key = beginnings[random.below(beginnings.len())].clone();
    match random.below(8) {
        0 => key.extend(std::iter::repeat_n(0, random.below(20))),
        1 => key.extend(std::iter::repeat_n(0xff, random.below(20))),
        2 => {}
        _ => key.extend_from_slice(format!("{:04}", random.below(400)).as_bytes()),
    }
    key
}

fn write(db: &Db, model: &mut Model, random: &mut Rng, beginnings: &[Vec<u8>]) {
    let key = key(random, beginnings);
    if random.below(4) == 0 {
        db.delete(&key).unwrap();
        model.remove(&key);
    } else {
        let value = vec![random.below(256) as u8; random.below(50)];
        db.put(&key, &value).unwrap();
        model.insert(key, value);
    }
}

/// Leaves many versions of one key in one memtable.
fn write_again_and_again(db: &Db, model: &mut Model, random: &mut Rng, beginnings: &[Vec<u8>]) {
    let key = key(random, beginnings);
    for value in 0..random.below(80) as u8 {
        if random.below(10) == 0 {
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            db.put(&key, [value]).unwrap();
            model.insert(key.clone(), vec![value]);
        }
    }
}

/// Moves both at random, and returns the number of steps.
fn compare_random_steps(
    cursor: &mut Cursor,
    model: &Model,
    random: &mut Rng,
    beginnings: &[Vec<u8>],
    seed: u64,
) -> usize {
    let mut here = cursor.entry().map(|(key, _)| key.to_vec());
    let mut steps = 0;
    for _ in 0..60 {
        let sought = key(random, beginnings);
        let times = match random.below(8) {
            0 => 1 + random.below(100),
            _ => 1 + random.below(4),
        };
        match random.below(10) {
            0 => {
                cursor.seek_to_first();
                here = model.keys().next().cloned();
            }
            1 => {
                cursor.seek_to_last();
                here = model.keys().next_back().cloned();
            }
            2 => {
                cursor.seek(&sought);
                here = model.range(sought..).next().map(|(key, _)| key.clone());
            }
            3 | 4 => {
                cursor.seek_for_prev(&sought);
                here = model.range(..=sought).next_back().map(|(key, _)| key.clone());
            }
            turn => {
                for _ in 0..times {
                    let Some(from) = &here else { break };
                    here = if turn < 8 {
                        cursor.next();
                        model
                            .range::<Vec<u8>, _>((Excluded(from), Unbounded))
                            .next()
                            .map(|(key, _)| key.clone())
                    } else {
                        cursor.prev();
                        model.range::<Vec<u8>, _>(..from).next_back().map(|(key, _)| key.clone())
                    };
                    steps += 1;
                }
            }
        }
        let expected = here.as_ref().map(|key| (&key[..], &model[key][..]));
        assert_eq!(cursor.entry(), expected, "seed {seed}");
        cursor.status().unwrap();
    }
    steps
}

#[test]
fn cursors_go_where_a_model_says() {
    let beginnings = beginnings();
    let mut steps = 0;
    campaign("cursors_go_where_a_model_says", scaled(60), |seed| {
        let mut random = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new().create_if_missing(true)).unwrap();
        let mut model = Model::new();
        for _ in 0..8 {
            for _ in 0..random.below(400) {
                write(&db, &mut model, &mut random, &beginnings);
            }
            match random.below(8) {
                0 => db.compact_range::<&[u8]>(..).unwrap(),
                1..6 => db.flush().unwrap(),
                _ => {}
            }
            let then = model.clone();
            let mut cursor = db.cursor().unwrap();
            for _ in 0..4 {
                steps += compare_random_steps(&mut cursor, &then, &mut random, &beginnings, seed);
                for _ in 0..random.below(100) {
                    write(&db, &mut model, &mut random, &beginnings);
                }
                write_again_and_again(&db, &mut model, &mut random, &beginnings);
            }
        }
        db.close().map_err(|error| error.to_string())
    });
    assert!(steps > 1000, "{steps} steps");
}
