//! Colours: one for every engine, the same on all charts of all reports, in a light and a dark
//! form.
//!
//! Neighbouring colours differ in lightness as well as in hue, and lines also in dash and marker,
//! so that readers with few hues, or a black-and-white print, can tell engines apart.
//!
//! Invariants:
//! 1. The same engine id always has the same slot if it is one of `KNOWN`; others take the free
//!    slots in their order.
//! 2. Every variable of the rules has a value in both themes.

use std::collections::BTreeMap;

/// Variables of the charts and the page: name, light, dark.
const VARIABLES: [(&str, &str, &str); 13] = [
    ("page", "#ffffff", "#14171c"),
    ("card", "#ffffff", "#1b1f26"),
    ("sunk", "#f5f4f1", "#20252d"),
    ("ink", "#1d2129", "#e8eaee"),
    ("soft", "#59616e", "#a5adba"),
    ("rule", "#dcdad4", "#353c48"),
    ("grid", "#e9e7e2", "#2b313b"),
    ("brand", "#b93c0b", "#ff8b5c"),
    ("link", "#0a5bb0", "#7db7ff"),
    ("good", "#0c6b45", "#5fd19f"),
    ("bad", "#b3143a", "#ff7d96"),
    ("stall", "#d6174a", "#ff5277"),
    ("tint", "#fbeee8", "#33241d"),
];

/// The colour of each slot: light, dark.
const SLOTS: [(&str, &str); 34] = [
    ("#c2410c", "#ff8a5b"), // Terrace
    ("#e79a72", "#b8623d"), // the drop-in
    ("#1764b0", "#6fb1f5"), // LevelDB
    ("#0b8a72", "#45d0b4"), // RocksDB
    ("#5d6673", "#b4bcc8"), // SQLite
    ("#7b4fc0", "#bc9cf5"), // Kyoto
    ("#a37800", "#e5bd45"), // WiredTiger
    ("#6d5200", "#b8964a"), // WiredTiger LSM
    ("#2f3f66", "#8fa3d6"), // Berkeley DB
    ("#a8327f", "#f083c6"), // InnoDB
    ("#1c93b8", "#5cc9ea"), // LMDB
    ("#0f5f78", "#3893b0"), // LMDB, another variant
    ("#55801a", "#a4d45e"), // fjall
    ("#b23a52", "#f58da0"), // redb
    ("#7a6a5d", "#c4b0a0"), // BangDB
    ("#4b4b9b", "#9c9cf0"), // Bitcask
    ("#8f5a2b", "#d9a36b"),
    ("#2e7d46", "#74cf8c"),
    ("#96499c", "#dc9ae2"),
    ("#3d7080", "#88bccc"),
    ("#3f86d0", "#9ccbff"), // LevelDB with filters
    ("#6f86a0", "#a9bccf"), // Debian's LevelDB
    ("#1f957d", "#7fe6cd"), // RocksDB with filters
    ("#64928a", "#a3c9c1"), // Debian's RocksDB
    ("#1f6f4f", "#5cb98d"), // RocksDB with BlobDB
    ("#8d8d6b", "#c9c9a2"), // SQLite, NORMAL
    ("#6a8f00", "#bfe04d"), // Pebble
    ("#7d8c2e", "#d3dd8c"), // Pebble with filters
    ("#4d6b00", "#9cbf3f"), // Pebble, log written
    ("#6b2d5c", "#c987b8"), // Badger
    ("#b0476b", "#f59bb8"), // bbolt
    ("#00729a", "#66c6ee"), // goleveldb
    ("#4a86a0", "#a3d2e6"), // goleveldb with filters
    ("#9b6bd6", "#d0b0ff"), // Tkrzw
];

/// Engines with a slot of their own. A variant that is not listed takes a free slot.
const KNOWN: [(&str, usize); 37] = [
    ("terrace", 0),
    ("dropin", 1),
    ("leveldb", 2),
    ("rocksdb", 3),
    ("sqlite", 4),
    ("kyoto", 5),
    ("wiredtiger", 6),
    ("wiredtiger-btree", 6),
    ("wiredtiger-lsm", 7),
    ("bdb", 8),
    ("berkeleydb", 8),
    ("innodb", 9),
    ("lmdb", 10),
    ("lmdb-writemap", 11),
    ("fjall", 12),
    ("redb", 13),
    ("bangdb", 14),
    ("bitcask", 15),
    ("lmdb-nosync", 10),
    ("wiredtiger-nolog", 16),
    ("wiredtiger-lsm-nolog", 19),
    ("fjall-separated", 17),
    ("redb-unsynced", 18),
    ("leveldb-filter", 20),
    ("leveldb-debian", 21),
    ("rocksdb-filter", 22),
    ("rocksdb-debian", 23),
    ("rocksdb-blob", 24),
    ("sqlite-normal", 25),
    ("pebble", 26),
    ("pebble-filter", 27),
    ("pebble-written", 28),
    ("badger", 29),
    ("bbolt", 30),
    ("goleveldb", 31),
    ("goleveldb-filter", 32),
    ("tkrzw", 33),
];

/// Which dash a slot's lines have; 0 is a full line.
const DASHES: [&str; 4] = ["none", "6 3", "2 2", "8 3 2 3"];

/// The slot of every engine id, in the order given.
pub(crate) fn slots<'a>(ids: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut slots: BTreeMap<String, usize> = BTreeMap::new();
    let mut unknown = Vec::new();
    for id in ids {
        match KNOWN.iter().find(|(known, _)| *known == id) {
            Some((_, slot)) if !slots.values().any(|taken| taken == slot) => {
                _ = slots.insert(id.to_owned(), *slot)
            }
            _ => unknown.push(id.to_owned()),
        }
    }
    // The spare slots first, then those of engines that are not here, then all over again.
    let order: Vec<usize> = (16..20).chain(1..16).chain(20..SLOTS.len()).collect();
    for (at, id) in unknown.into_iter().enumerate() {
        let free = order.iter().find(|slot| !slots.values().any(|taken| taken == *slot));
        let slot = free.copied().unwrap_or(order[at % order.len()]);
        slots.entry(id).or_insert(slot);
    }
    slots
}

/// The slot of an engine that a source names in its own way.
pub(crate) fn slot_of_published(name: &str) -> usize {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let names = [
        ("leveldb", 2),
        ("rocksdb", 3),
        ("sqlite", 4),
        ("kyoto", 5),
        ("treedb", 5),
        ("lsm", 7),
        ("wiredtiger", 6),
        ("wt", 6),
        ("berkeley", 8),
        ("berkley", 8),
        ("bdb", 8),
        ("innodb", 9),
        ("innostore", 9),
        ("bangdb", 14),
        ("bitcask", 15),
    ];
    names.iter().find(|(part, _)| name.contains(part)).map_or(16, |(_, slot)| *slot)
}

/// The class of a slot: its colour and its dash.
pub(crate) fn class(slot: usize) -> String {
    format!("c{} d{}", slot % SLOTS.len(), dash(slot))
}

/// Which marker a slot has.
pub(crate) fn marker(slot: usize) -> usize {
    slot % 5
}

fn dash(slot: usize) -> usize {
    // Terrace, LevelDB and RocksDB have full lines.
    match slot {
        0 | 2 | 3 => 0,
        slot => slot % DASHES.len(),
    }
}

/// The rules that give every slot its colour and every dash its pattern.
pub(crate) fn slot_rules() -> String {
    let mut rules: String =
        (0..SLOTS.len()).map(|slot| format!(".c{slot} {{ color: var(--c{slot}); }}\n")).collect();
    rules.extend(
        DASHES
            .iter()
            .enumerate()
            .map(|(at, dash)| format!(".chart .d{at} .l {{ stroke-dasharray: {dash}; }}\n")),
    );
    rules
}

/// The rules with every variable replaced by its value.
pub(crate) fn fill_in(rules: &str, dark: bool) -> String {
    values(dark).into_iter().fold(rules.to_owned(), |rules, (name, value)| {
        rules.replace(&format!("var(--{name})"), value)
    })
}

/// The declarations of all variables.
pub(crate) fn declarations(dark: bool) -> String {
    values(dark).into_iter().map(|(name, value)| format!("--{name}:{value};")).collect()
}

fn values(dark: bool) -> Vec<(String, &'static str)> {
    let pick = |light, night| if dark { night } else { light };
    let named =
        VARIABLES.iter().map(|(name, light, night)| ((*name).to_owned(), pick(*light, *night)));
    let slots = SLOTS
        .iter()
        .enumerate()
        .map(|(slot, (light, night))| (format!("c{slot}"), pick(*light, *night)));
    named.chain(slots).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of two colours after WCAG 2.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |colour: &str| {
            let channel = |at: usize| {
                let value =
                    f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour"))
                        / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn value(name: &str, dark: bool) -> &'static str {
        values(dark).into_iter().find(|(n, _)| n == name).expect("a variable").1
    }

    #[test]
    fn text_can_be_read_and_marks_can_be_seen() {
        for dark in [false, true] {
            for ground in ["page", "card", "sunk", "tint"] {
                for ink in ["ink", "soft", "brand", "link", "good", "bad"] {
                    let contrast = contrast(value(ink, dark), value(ground, dark));
                    assert!(contrast >= 4.5, "{ink} on {ground}, dark {dark}: {contrast:.2}");
                }
            }
            for slot in 0..SLOTS.len() {
                let contrast = contrast(value(&format!("c{slot}"), dark), value("card", dark));
                // The drop-in is Terrace's second colour and stands beside a label.
                let least = if slot == 1 { 2.0 } else { 3.0 };
                assert!(contrast >= least, "slot {slot}, dark {dark}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn slots_are_stable_and_distinct() {
        let some = slots(["terrace", "leveldb", "new", "newer"].into_iter());
        assert_eq!((some["terrace"], some["leveldb"], some["new"], some["newer"]), (0, 2, 16, 17));
        let more: Vec<String> = (0..40).map(|n| format!("engine-{n}")).collect();
        let many = slots(["terrace"].into_iter().chain(more.iter().map(String::as_str)));
        assert_eq!(many.len(), 41);
        assert!(many.values().all(|slot| *slot < SLOTS.len()));
        assert!(many.iter().all(|(id, slot)| (*slot == 0) == (id == "terrace")));
    }

    #[test]
    fn engines_of_the_sources() {
        let named = [
            "LevelDB",
            "Kyoto TreeDB",
            "SQLite3",
            "WiredTiger LSM",
            "WT B-tree",
            "BerkeleyDB",
            "Else",
        ];
        assert_eq!(named.map(slot_of_published), [2, 5, 4, 7, 6, 8, 16]);
    }
}
