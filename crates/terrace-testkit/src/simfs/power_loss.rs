//! The possible states of a disk after a power failure.
//!
//! Data that was synced stays, and so do directory changes that were synced. Everything later is up
//! to the file system and the disk: [`PowerLoss`] says which of the possible outcomes is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Change, Disk, Entry, parent};
use super::file::{Content, File, PAGE, SECTOR};
use crate::rng::Rng;

/// The fate of file data that was written but not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataLoss {
    /// All of it is lost.
    All,
    /// None of it is lost.
    Nothing,
    /// A prefix of each file's data reached the disk.
    Torn,
    /// The files have their new lengths, but from some point on their new bytes are zeros.
    Zeroed,
    /// Each page of 4 KiB reached the disk or did not; the length is an old or a new one.
    Pages,
    /// Each sector of 512 bytes reached the disk, did not, or holds what it held half-way, in
    /// stores of 8 bytes.
    Sectors,
    /// One of the above for each file.
    Mixed,
    /// Not decided yet: the power is on.
    Undecided,
}

/// The fate of creations, renames and removals that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryLoss {
    /// All of them are lost.
    All,
    /// None of them is lost.
    Nothing,
    /// Each directory keeps a prefix of its changes, as a journal does.
    Prefix,
    /// Any of them, and the two halves of a rename between directories one without the other.
    Subset,
    /// Not decided yet: the power is on.
    Undecided,
}

/// One way to lose power.
#[derive(Clone, Copy, Debug)]
pub struct PowerLoss {
    /// The loss of file data.
    pub data: DataLoss,
    /// The loss of directory entries.
    pub entries: EntryLoss,
    /// Decides every choice that the two leave open.
    pub seed: u64,
}

impl PowerLoss {
    /// Everything unsynced is gone.
    pub const STRICT: PowerLoss =
        PowerLoss { data: DataLoss::All, entries: EntryLoss::All, seed: 0 };
    /// The death of the process alone: others see everything, and what was not synced may still be
    /// lost with the power.
    pub const PROCESS_ONLY: PowerLoss =
        PowerLoss { data: DataLoss::Undecided, entries: EntryLoss::Undecided, seed: 0 };
    /// The power fails, and everything had reached the disk by chance.
    pub const LUCKY: PowerLoss =
        PowerLoss { data: DataLoss::Nothing, entries: EntryLoss::Nothing, seed: 0 };

    /// Whether everything is still there afterwards.
    pub fn loses_nothing(self) -> bool {
        matches!(self.data, DataLoss::Nothing | DataLoss::Undecided)
            && matches!(self.entries, EntryLoss::Nothing | EntryLoss::Undecided)
    }

    /// The way that `seed` stands for.
    pub fn random(seed: u64) -> PowerLoss {
        use {DataLoss as D, EntryLoss as E};
        let mut rng = Rng::new(seed);
        let data = *rng.pick(&[
            D::All,
            D::Nothing,
            D::Torn,
            D::Zeroed,
            D::Pages,
            D::Sectors,
            D::Mixed,
            D::Mixed,
        ]);
        let entries = *rng.pick(&[E::All, E::Nothing, E::Prefix, E::Prefix, E::Subset]);
        PowerLoss { data, entries, seed }
    }
}

/// The disk that `disk` may be after the power is back; or, if only processes died, the disk as it
/// is, with everything that is not durable yet.
pub(super) fn after_power_loss(disk: &Disk, loss: PowerLoss) -> Disk {
    if loss.data == DataLoss::Undecided {
        return Disk { open: BTreeSet::new(), ..disk.clone() };
    }
    let mut rng = Rng::new(loss.seed);
    let entries = surviving_entries(disk, loss.entries, &mut rng);
    let mut files = BTreeMap::new();
    for inode in entries.values().filter_map(Entry::inode) {
        let Some(file) = disk.files.get(&inode) else { continue };
        files.entry(inode).or_insert_with(|| lose_unsynced(file, loss.data, &mut rng));
    }
    Disk { durable: entries.clone(), entries, files, ..Disk::default() }
}

fn surviving_entries(disk: &Disk, loss: EntryLoss, rng: &mut Rng) -> BTreeMap<PathBuf, Entry> {
    let mut entries = match loss {
        EntryLoss::Nothing | EntryLoss::Undecided => disk.entries.clone(),
        EntryLoss::All | EntryLoss::Prefix | EntryLoss::Subset => disk.durable.clone(),
    };
    if matches!(loss, EntryLoss::Prefix | EntryLoss::Subset) {
        for (dir, changes) in &disk.pending {
            let kept = if loss == EntryLoss::Prefix {
                rng.between(0, changes.len())
            } else {
                changes.len()
            };
            for change in &changes[..kept] {
                if loss == EntryLoss::Prefix || rng.one_in(2) {
                    apply(change, dir, loss, &mut entries);
                }
            }
        }
    }
    // A directory that did not survive takes its contents along. Parents sort before their
    // children.
    let mut whole = BTreeMap::new();
    for (path, entry) in entries {
        let above = parent(&path);
        if above.parent().is_none() || whole.get(above) == Some(&Entry::Dir) {
            whole.insert(path, entry);
        }
    }
    whole
}

fn apply(change: &Change, dir: &Path, loss: EntryLoss, entries: &mut BTreeMap<PathBuf, Entry>) {
    change.apply_within(dir, entries);
    if let (EntryLoss::Prefix, Some((_, to))) = (loss, change.crosses()) {
        // A journal never removes the old name without making the new one.
        change.apply_within(to, entries);
    }
}

fn lose_unsynced(file: &Arc<File>, loss: DataLoss, rng: &mut Rng) -> Arc<File> {
    if file.is_durable() {
        return file.clone();
    }
    let loss = match loss {
        DataLoss::Mixed => *rng.pick(&[
            DataLoss::All,
            DataLoss::Nothing,
            DataLoss::Torn,
            DataLoss::Zeroed,
            DataLoss::Pages,
            DataLoss::Sectors,
        ]),
        other => other,
    };
    let content = match loss {
        DataLoss::All => file.durable.clone(),
        DataLoss::Nothing | DataLoss::Undecided => file.current.clone(),
        DataLoss::Torn | DataLoss::Zeroed => cut(file, loss, rng),
        DataLoss::Pages | DataLoss::Sectors | DataLoss::Mixed => scatter(file, loss, rng),
    };
    Arc::new(File::all_durable(content))
}

/// New bytes up to some point, old bytes or nothing behind it.
fn cut(file: &File, loss: DataLoss, rng: &mut Rng) -> Content {
    let (old, new) = (&file.durable, &file.current);
    let first = file.undecided().next().map_or(old.len(), |page| page * PAGE).min(new.len());
    // Where a file only grew, what was durable cannot be torn.
    let grew = file.min_len == old.len() && file.max_len == new.len();
    let low = if grew && first < old.len() && first + PAGE > old.len() { old.len() } else { first };
    let at = rng.between(low.min(new.len()), new.len());
    let len = match loss {
        DataLoss::Torn if grew => at.max(old.len()),
        DataLoss::Torn => any_len(file, rng),
        _ => file.max_len.max(new.len()),
    };
    let mut content = old.clone();
    content.set_len(len);
    let mut bytes = vec![0; at.min(len)];
    new.read(0, &mut bytes);
    content.write(first.min(bytes.len()), &bytes[first.min(bytes.len())..]);
    content
}

/// A memory copy stores at least this much at once, where it is aligned.
const STORE: usize = 8;

/// Each page or sector old, new, or half-way.
fn scatter(file: &File, loss: DataLoss, rng: &mut Rng) -> Content {
    let mut content = file.durable.clone();
    let len = any_len(file, rng);
    content.set_len(len);
    let of_eight = *rng.pick(&[1, 4, 7]);
    for page in file.undecided() {
        let whole = rng.below(8) < of_eight;
        for sector in page * (PAGE / SECTOR)..(page + 1) * (PAGE / SECTOR) {
            let start = sector * SECTOR;
            if start >= len {
                break;
            }
            let keep = match loss {
                DataLoss::Pages => SECTOR * usize::from(whole),
                _ if rng.one_in(8) => rng.below(SECTOR / STORE) * STORE,
                _ if rng.below(8) < of_eight => SECTOR,
                _ => 0,
            };
            let keep = keep.min(len - start);
            let durable_end = file.durable.len().saturating_sub(start).min(SECTOR);
            // Half-way states of a file that grew still hold what was durable before.
            if keep > 0 && (keep == SECTOR.min(len - start) || keep >= durable_end) {
                let bytes = file.current.sector(sector)[..keep].to_vec();
                content.write(start, &bytes);
            }
        }
    }
    content
}

fn any_len(file: &File, rng: &mut Rng) -> usize {
    match rng.below(5) {
        0 => file.durable.len(),
        1 => file.min_len,
        2 => file.max_len,
        3 => file.current.len(),
        _ => rng.between(file.min_len, file.max_len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown() -> File {
        let mut file = File::default();
        file.write(0, &[1; 700]);
        file.sync();
        file.write(700, &[2; 9000]);
        file
    }

    #[test]
    fn what_was_synced_survives_every_way_to_lose_power() {
        let file = Arc::new(grown());
        let mut lengths = BTreeSet::new();
        for seed in 0..2000 {
            let loss = PowerLoss::random(seed);
            let after = lose_unsynced(&file, loss.data, &mut Rng::new(seed));
            let bytes = after.current.to_vec();
            assert!(bytes.len() >= 700 && bytes.len() <= 9700, "{loss:?}");
            assert!(bytes[..700].iter().all(|&b| b == 1), "{loss:?}");
            assert!(bytes[700..].iter().all(|&b| b == 2 || b == 0), "{loss:?}");
            assert!(after.is_durable());
            lengths.insert(bytes.len());
        }
        assert!(lengths.len() > 100);
    }
}
