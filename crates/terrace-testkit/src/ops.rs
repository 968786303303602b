//! Operations at random, made to collide: few keys, so that overwrites, deletes, snapshots and
//! cursors meet.

use std::ops::Bound;

use crate::model::{Change, CursorStep, Pair};
use crate::rng::Rng;

/// One call, or a few that belong together, on a database.
#[derive(Clone, Debug)]
pub enum Op {
    /// A single put or delete, through the call of that name unless it is synced.
    Change(Change, bool),
    /// A batch, and whether it is synced.
    Batch(Vec<Change>, bool),
    /// Reads a key by each of the ways to read one, now or in a snapshot.
    Get(Vec<u8>, View),
    /// Reads several keys at once.
    MultiGet(Vec<Vec<u8>>, View),
    /// Takes a snapshot.
    Snapshot,
    /// Releases a snapshot, counted modulo how many there are.
    Release(usize),
    /// Opens a cursor and keeps it.
    OpenCursor(View),
    /// Moves a kept cursor, counted modulo how many there are.
    MoveCursor(usize, Vec<CursorStep>),
    /// Drops a kept cursor, counted modulo how many there are.
    DropCursor(usize),
    /// Reads a range, taking from the front where true and from the back where false.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>, Vec<bool>, View),
    /// Reads all keys that begin so, backwards if true.
    Prefix(Vec<u8>, bool, View),
    /// Deletes a range, synced or not.
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>, bool),
    /// Loads entries in bulk, in this order, holding so many bytes in memory.
    Load(Vec<Pair>, usize),
    /// Takes in a table of these entries, moving it or not.
    Ingest(Vec<Pair>, bool),
    /// A transaction that reads what it changes, and how it ends.
    Transact(Vec<Change>, Ending),
    /// Writes the memtable out.
    Flush,
    /// Compacts a range; if true, down to the last level, whatever is there.
    Compact(Option<Vec<u8>>, Option<Vec<u8>>, bool),
    /// Waits for background work.
    WaitIdle,
    /// Reads a key so often that read-triggered compactions may be due.
    Linger(Vec<u8>),
    /// Makes a checkpoint and looks at it.
    Checkpoint,
    /// Checks every file.
    Verify,
    /// Closes and opens, with paranoid checks every second time. Snapshots and cursors are dropped
    /// before (false) or after closing (true).
    Reopen(bool),
    /// Closes, does this, and opens.
    Closed(Closed),
}

/// How a transaction ends.
#[derive(Clone, Debug)]
pub enum Ending {
    /// By a commit, synced or not.
    Commit(bool),
    /// By a commit after a write of another to one of its keys, which must be refused.
    Conflict(Change),
    /// It is given up.
    Rollback,
}

/// The operations on a closed database.
#[derive(Clone, Copy, Debug)]
pub enum Closed {
    /// It is opened for reading alone, and all is read.
    ReadOnly,
    /// It is repaired.
    Repair,
}

/// The state that a read sees: the present, or a snapshot, counted modulo how many there are.
pub type View = Option<usize>;

/// The kind of data and operations that a [`Generator`] makes.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many different keys there are about.
    pub keys: usize,
    /// Bytes of a usual value, at most.
    pub value: usize,
    /// One value in so many is large; 0 for none.
    pub large_one_in: usize,
    /// Bytes of a large value, at most.
    pub large: usize,
    /// One operation in so many is a flush, a compaction or a reopening each.
    pub heavy_one_in: usize,
    /// Of 16 writes so many are synced.
    pub synced_of_16: usize,
}

impl Shape {
    /// A shape at random, most of them small.
    pub fn random(rng: &mut Rng) -> Shape {
        Shape {
            keys: *rng.pick(&[4, 20, 100, 1000]),
            value: *rng.pick(&[10, 100, 1000]),
            large_one_in: *rng.pick(&[0, 0, 40, 400]),
            large: *rng.pick(&[5_000, 40_000, 40_000, 1 << 20]),
            heavy_one_in: *rng.pick(&[20, 60, 200]),
            synced_of_16: *rng.pick(&[0, 2, 8]),
        }
    }
}

/// Makes operations.
#[derive(Clone, Debug)]
pub struct Generator {
    rng: Rng,
    shape: Shape,
    /// Values are numbered, so that no two writes are alike.
    written: u64,
}

impl Generator {
    /// The operations of `seed`, in `shape`.
    pub fn new(seed: u64, shape: Shape) -> Generator {
        Generator { rng: Rng::new(seed), shape, written: 0 }
    }

    /// A key: one of few, sometimes with an unusual form.
    pub fn key(&mut self) -> Vec<u8> {
        let number = self.rng.below(self.shape.keys);
        match number % 16 {
            // The shape of a key depends on its number alone, so that it comes up again.
            0 if number == 0 => Vec::new(),
            1 => [b"k".as_slice(), &[0xff; 3], &[number as u8]].concat(),
            2 => [b"k".as_slice(), &[0; 2], &(number as u16).to_be_bytes()].concat(),
            3 => [format!("key{:03}", number - 1).as_bytes(), &[0]].concat(),
            4 => format!("key{number:03}{}", "x".repeat(number % 300)).into_bytes(),
            5 => vec![0xff; number % 7 + 1],
            _ => format!("key{number:03}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        self.written += 1;
        let large = self.shape.large_one_in > 0 && self.rng.one_in(self.shape.large_one_in);
        let length = if large {
            self.rng.below(self.shape.large + 1)
        } else {
            self.rng.below(self.shape.value + 1)
        };
        let mut value = format!("{}:", self.written).into_bytes();
        if self.rng.one_in(2) {
            value.extend(self.rng.bytes(length));
        } else {
            value.resize(length, b'.');
        }
        value.truncate(length);
        value
    }

    /// A put or, one time in four, a delete.
    pub fn change(&mut self) -> Change {
        let key = self.key();
        if self.rng.one_in(4) { Change::Delete(key) } else { Change::Put(key, self.value()) }
    }

    /// Changes for a batch, sometimes none, sometimes many.
    pub fn batch(&mut self) -> Vec<Change> {
        let count = if self.rng.one_in(10) { self.rng.below(60) } else { self.rng.below(6) };
        (0..count).map(|_| self.change()).collect()
    }

    /// Whether the next write is synced.
    pub fn synced(&mut self) -> bool {
        self.rng.below(16) < self.shape.synced_of_16
    }

    fn view(&mut self) -> View {
        self.rng.one_in(3).then(|| self.rng.below(8))
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.rng.below(5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }

    fn ending(&mut self) -> Ending {
        match self.rng.below(4) {
            0 => Ending::Rollback,
            1 => Ending::Conflict(self.change()),
            _ => Ending::Commit(self.synced()),
        }
    }

    fn cursor_steps(&mut self) -> Vec<CursorStep> {
        let mut steps = Vec::new();
        for _ in 0..self.rng.between(1, 4) {
            let seek = match self.rng.below(4) {
                0 => CursorStep::First,
                1 => CursorStep::Last,
                2 => CursorStep::Seek(self.key()),
                _ => CursorStep::SeekForPrev(self.key()),
            };
            if !self.rng.one_in(4) {
                steps.push(seek);
            }
            let forward = self.rng.below(9);
            for _ in 0..self.rng.below(12) {
                steps.push(if self.rng.below(8) < forward {
                    CursorStep::Next
                } else {
                    CursorStep::Prev
                });
            }
        }
        steps
    }

    /// The next operation.
    pub fn op(&mut self) -> Op {
        if self.rng.one_in(self.shape.heavy_one_in) {
            return self.heavy_op();
        }
        match self.rng.below(100) {
            0..35 => Op::Change(self.change(), self.synced()),
            35..50 => Op::Batch(self.batch(), self.synced()),
            50..65 => Op::Get(self.key(), self.view()),
            65..68 => {
                let keys = (0..self.rng.below(12)).map(|_| self.key()).collect();
                Op::MultiGet(keys, self.view())
            }
            68..72 => Op::Snapshot,
            72..74 => Op::Release(self.rng.below(8)),
            74 => Op::Transact(self.batch(), self.ending()),
            75..78 => Op::OpenCursor(self.view()),
            78..88 => Op::MoveCursor(self.rng.below(8), self.cursor_steps()),
            88..90 => Op::DropCursor(self.rng.below(8)),
            90..97 => {
                let takes = (0..self.rng.below(30)).map(|_| self.rng.one_in(2)).collect();
                Op::Range(self.bound(), self.bound(), takes, self.view())
            }
            _ => {
                let mut prefix = self.key();
                prefix.truncate(self.rng.below(6));
                Op::Prefix(prefix, self.rng.one_in(2), self.view())
            }
        }
    }

    /// Entries for a bulk load, in order or not, and how many bytes it may hold in memory.
    pub fn load(&mut self) -> (Vec<Pair>, usize) {
        let count = *self.rng.pick(&[0, 1, 10, 300]);
        let mut entries: Vec<_> = (0..count).map(|_| (self.key(), self.value())).collect();
        if self.rng.one_in(2) {
            entries.sort();
        }
        (entries, *self.rng.pick(&[0, 0, 1 << 20]))
    }

    fn heavy_op(&mut self) -> Op {
        match self.rng.below(20) {
            18 | 19 => Op::DeleteRange(self.bound(), self.bound(), self.synced()),
            0..4 => Op::Flush,
            10 | 11 => {
                let (entries, memory) = self.load();
                Op::Load(entries, memory)
            }
            12 => Op::Ingest(self.load().0, self.rng.one_in(2)),
            13 => Op::Checkpoint,
            14 => Op::Verify,
            15 => Op::Closed(Closed::ReadOnly),
            16 => Op::Closed(Closed::Repair),
            17 => Op::Linger(self.key()),
            4..7 => {
                let mut end = || (!self.rng.one_in(3)).then(|| self.rng.next_u64());
                let (from, to) = (end(), end());
                Op::Compact(from.map(|_| self.key()), to.map(|_| self.key()), self.rng.one_in(4))
            }
            7 => Op::WaitIdle,
            _ => Op::Reopen(self.rng.one_in(2)),
        }
    }

    /// The next `count` operations.
    pub fn ops(&mut self, count: usize) -> Vec<Op> {
        (0..count).map(|_| self.op()).collect()
    }
}
