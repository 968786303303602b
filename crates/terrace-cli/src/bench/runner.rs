//! Runs benchmarks: keeps the database open between them, starts the threads together, adds up what
//! they did.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use terrace::{
    Db, MemEnv, MemoryBudget, Options, ReadOptions, RecoveryMode, WriteBatch, WriteOptions,
};

use super::args::BenchArgs;
use super::data::{KEY_SIZE, Key, Random, ValuePool};
use super::meter::{ProcessCounters, Work, disk_bytes};
use super::workload::Benchmark;
use crate::failure::{Failure, Result};
use crate::opening::{PresetName, open_database, with_bloom};
use crate::progress::Progress;
use crate::signals::make_uninterrupted;

const LARGE_VALUE_SIZE: usize = 100_000;
/// Entries for each large value.
const LARGE_SHARE: u64 = 1000;
/// Keys that one call of multireadrandom gets.
const KEYS_AT_ONCE: usize = 64;
/// Entries for each synchronous write.
const SYNC_SHARE: u64 = 100;
/// Keys for each hot key.
const HOT_SHARE: u64 = 100;
const SEEK_STEPS: usize = 10;
/// Steps of a scan between two looks at the clock.
const SCAN_STRIDE: u64 = 128;
/// Operations between two steps of the progress bar.
const PROGRESS_STRIDE: u64 = 1 << 10;

/// The result of a benchmark.
pub(super) struct Outcome {
    pub(super) benchmark: Benchmark,
    pub(super) work: Work,
    pub(super) threads: u64,
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) bytes_written: u64,
    pub(super) disk_bytes: u64,
    pub(super) writer_ops_per_sec: Option<f64>,
}

/// An open database and the settings of the run.
pub(super) struct Runner<'a> {
    args: &'a BenchArgs,
    path: PathBuf,
    db: Option<Db>,
    values: ValuePool,
    large_values: ValuePool,
}

/// How one thread puts entries.
struct Fill<'a> {
    operations: u64,
    keys: KeyOrder,
    batch: u64,
    options: WriteOptions,
    values: &'a ValuePool,
}

#[derive(Clone, Copy)]
enum KeyOrder {
    Sequential,
    RandomBelow(u64),
}

/// One thread's share of a benchmark.
struct Share<'a> {
    runner: &'a Runner<'a>,
    db: &'a Db,
    benchmark: Benchmark,
    thread: u64,
    progress: &'a Progress,
}

impl<'a> Runner<'a> {
    pub(super) fn new(args: &'a BenchArgs, path: PathBuf) -> Self {
        let values = ValuePool::new(args.seed, args.value_size);
        Runner {
            args,
            path,
            db: None,
            values,
            large_values: ValuePool::new(args.seed, LARGE_VALUE_SIZE),
        }
    }

    /// The database, opened or created where it is not open yet.
    pub(super) fn db(&mut self) -> Result<&Db> {
        match self.db.take() {
            Some(db) => Ok(self.db.insert(db)),
            None => {
                let mode = RecoveryMode::default();
                // An open makes the directory, which a signal may just have removed.
                let db = make_uninterrupted(|| open_database(&self.path, self.options(), mode))?.db;
                Ok(self.db.insert(db))
            }
        }
    }

    pub(super) fn close(&mut self) -> Result<()> {
        match self.db.take() {
            Some(db) => Ok(db.close()?),
            None => Ok(()),
        }
    }

    /// Fails if the engine refuses the options, which must not come to light after a database was
    /// destroyed for them.
    pub(super) fn check_options(&self) -> Result<()> {
        let nowhere = Arc::new(MemEnv::new());
        Ok(Db::open(&self.path, self.options().env(nowhere))?.close()?)
    }

    fn options(&self) -> Options {
        let args = self.args;
        let mut options = PresetName::options(args.preset)
            .create_if_missing(true)
            .compression(args.compression.into())
            .zstd_dictionary(args.zstd_dictionary)
            .block_size(args.block_size)
            .table_filter_bits(args.table_filter_bits)
            .max_file_size(args.max_file_size)
            .background_threads(args.background_threads)
            .value_log(args.value_log)
            .mapped_log(!args.no_mapped_log);
        if let Some(bytes) = args.cache_size {
            options = options.block_cache_size(bytes);
        }
        if let Some(bytes) = args.memory_budget {
            options = options.memory_budget(Some(MemoryBudget::new(bytes)));
        }
        if let Some(bytes) = args.write_buffer_size {
            options = options.write_buffer_size(bytes);
        }
        if let Some(files) = args.max_open_files {
            options = options.max_open_files(files);
        }
        with_bloom(options, args.bloom_bits)
    }

    pub(super) fn run(&mut self, benchmark: Benchmark) -> Result<Outcome> {
        if benchmark.is_fill() && !self.args.use_existing_db {
            self.close()?;
            terrace::destroy(&self.path, &self.options())
                .map_err(|error| Failure::of_engine(&self.path, error))?;
        }
        self.db()?;
        self.measure(benchmark)
    }

    fn measure(&self, benchmark: Benchmark) -> Result<Outcome> {
        let db = self.db.as_ref().ok_or_else(|| Failure::other("the database is not open"))?;
        let threads = if benchmark.is_single_call() { 1 } else { self.args.threads };
        let progress = Progress::count(benchmark.name(), self.operations(benchmark));
        let share = |thread| Share { runner: self, db, benchmark, thread, progress: &progress };
        let has_writer = benchmark == Benchmark::ReadWhileWriting;
        let gate = Gate::new(threads as usize + usize::from(has_writer) + 1);
        let readers_are_done = AtomicBool::new(false);

        let (results, writer, seconds, start, end) = thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|thread| {
                    let (share, gate) = (share(thread), &gate);
                    scope.spawn(move || run_thread(gate, |work| share.run(work)))
                })
                .collect();
            let writer = has_writer.then(|| {
                let (share, gate, done) = (share(threads), &gate, &readers_are_done);
                scope.spawn(move || run_thread(gate, |work| share.write_until(done, work)))
            });
            gate.all_here.wait();
            let start = ProcessCounters::now();
            let started = Instant::now();
            gate.go.wait();
            let results: Vec<Result<Work>> = running.into_iter().map(join).collect();
            let seconds = started.elapsed().as_secs_f64();
            readers_are_done.store(true, Ordering::Relaxed);
            let writer = writer.map(join);
            (results, writer, seconds, start, ProcessCounters::now())
        });
        drop(progress);

        let mut total = Work::new();
        for work in results {
            total.merge(&work?);
        }
        let writer = writer.transpose()?;
        Ok(Outcome {
            benchmark,
            work: total,
            threads,
            seconds,
            cpu_seconds: end.cpu_seconds_since(&start),
            bytes_written: end.bytes_written_since(&start),
            disk_bytes: disk_bytes(&self.path),
            writer_ops_per_sec: writer.map(|work| work.operations as f64 / seconds),
        })
    }

    /// Operations of all threads together.
    fn operations(&self, benchmark: Benchmark) -> u64 {
        match benchmark {
            Benchmark::FillSync => (self.args.num / SYNC_SHARE).max(1),
            Benchmark::Fill100K | Benchmark::Fill100KRandom => (self.args.num / LARGE_SHARE).max(1),
            Benchmark::ReadSeq
            | Benchmark::ReadReverse
            | Benchmark::ReadRandom
            | Benchmark::ReadMissing
            | Benchmark::MultiReadRandom => self.args.reads(),
            Benchmark::ReadHot | Benchmark::SeekRandom | Benchmark::ReadWhileWriting => {
                self.args.reads()
            }
            Benchmark::Compact | Benchmark::WaitCompact => 1,
            _ => self.args.num,
        }
    }
}

/// Where threads wait for each other, so that starting them is not measured and working is, from
/// its beginning.
struct Gate {
    all_here: Barrier,
    go: Barrier,
}

impl Gate {
    fn new(threads: usize) -> Self {
        Gate { all_here: Barrier::new(threads), go: Barrier::new(threads) }
    }
}

fn run_thread(gate: &Gate, body: impl FnOnce(&mut Work) -> Result<()>) -> Result<Work> {
    let mut work = Work::new();
    gate.all_here.wait();
    gate.go.wait();
    work.begin();
    body(&mut work)?;
    Ok(work)
}

fn join(thread: thread::ScopedJoinHandle<'_, Result<Work>>) -> Result<Work> {
    thread.join().unwrap_or_else(|_| Err(Failure::other("a thread of the benchmark panicked")))
}

impl Share<'_> {
    fn run(&self, work: &mut Work) -> Result<()> {
        let args = self.runner.args;
        let all = self.runner.operations(self.benchmark);
        let values = &self.runner.values;
        let random = KeyOrder::RandomBelow(args.num);
        let asynchronous = WriteOptions::new();
        let fill =
            |keys, batch| Fill { operations: all, keys, batch, options: asynchronous, values };
        match self.benchmark {
            Benchmark::FillSeq => self.fill(&fill(KeyOrder::Sequential, 1), work),
            Benchmark::FillRandom | Benchmark::Overwrite => self.fill(&fill(random, 1), work),
            Benchmark::FillSeqBatch => self.fill(&fill(KeyOrder::Sequential, args.batch), work),
            Benchmark::FillRandBatch => self.fill(&fill(random, args.batch), work),
            Benchmark::FillSync => {
                self.fill(&Fill { options: WriteOptions::sync(), ..fill(random, 1) }, work)
            }
            Benchmark::Fill100K => self.fill(
                &Fill { values: &self.runner.large_values, ..fill(KeyOrder::Sequential, 1) },
                work,
            ),
            Benchmark::Fill100KRandom => {
                let keys = KeyOrder::RandomBelow(all);
                self.fill(&Fill { values: &self.runner.large_values, ..fill(keys, 1) }, work)
            }
            Benchmark::ReadSeq => self.scan(true, work),
            Benchmark::ReadReverse => self.scan(false, work),
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => {
                self.read(args.num, Key::new(), work)
            }
            Benchmark::ReadMissing => self.read(args.num, Key::missing(), work),
            Benchmark::ReadHot => self.read((args.num / HOT_SHARE).max(1), Key::new(), work),
            Benchmark::MultiReadRandom => self.multi_read(work),
            Benchmark::SeekRandom => self.seek(work),
            Benchmark::DeleteSeq => self.delete(KeyOrder::Sequential, work),
            Benchmark::DeleteRandom => self.delete(random, work),
            Benchmark::Compact => {
                self.db.compact_range::<&[u8]>(..)?;
                work.end(1);
                Ok(())
            }
            Benchmark::BulkLoad => self.bulk_load(work),
            Benchmark::WaitCompact => {
                self.db.flush()?;
                self.db.wait_idle()?;
                work.end(1);
                Ok(())
            }
        }
    }

    /// This thread's part of `operations`, as a range of their numbers.
    fn part_of(&self, operations: u64) -> std::ops::Range<u64> {
        let threads = u128::from(self.runner.args.threads);
        let first = |thread: u64| (u128::from(operations) * u128::from(thread) / threads) as u64;
        first(self.thread)..first(self.thread + 1)
    }

    fn random(&self) -> Random {
        Random::stream(self.runner.args.seed, self.benchmark.stream(), self.thread)
    }

    #[inline]
    fn tick(&self, operations: u64) {
        if operations.is_multiple_of(PROGRESS_STRIDE) {
            self.progress.add(PROGRESS_STRIDE);
        }
    }

    fn fill(&self, fill: &Fill<'_>, work: &mut Work) -> Result<()> {
        let mut random = self.random();
        let mut key = Key::new();
        let mut position = 0;
        let entry_size = (KEY_SIZE + fill.values.value_size()) as u64;
        let mut number = |i| match fill.keys {
            KeyOrder::Sequential => i,
            KeyOrder::RandomBelow(bound) => random.below(bound),
        };
        let mut numbers = self.part_of(fill.operations);
        if fill.batch == 1 && !fill.options.sync {
            for i in numbers {
                self.db.put(key.set(number(i)), fill.values.next(&mut position))?;
                work.bytes += entry_size;
                work.end(1);
                self.tick(work.operations);
            }
            return Ok(());
        }
        let mut batch = WriteBatch::new();
        while let Some(first) = numbers.next() {
            batch.clear();
            batch.put(key.set(number(first)), fill.values.next(&mut position));
            let mut count = 1;
            while count < fill.batch
                && let Some(next) = numbers.next()
            {
                batch.put(key.set(number(next)), fill.values.next(&mut position));
                count += 1;
            }
            self.db.write_with(&batch, fill.options)?;
            work.bytes += count * entry_size;
            work.end(count);
            self.tick(work.operations);
        }
        Ok(())
    }

    fn bulk_load(&self, work: &mut Work) -> Result<()> {
        let values = &self.runner.values;
        let entry_size = (KEY_SIZE + values.value_size()) as u64;
        let (mut key, mut position) = (Key::new(), 0);
        let mut load = self.db.bulk_load()?;
        for number in 0..self.runner.args.num {
            load.put(key.set(number), values.next(&mut position))?;
            work.bytes += entry_size;
            work.end(1);
            self.tick(work.operations);
        }
        load.finish()?;
        Ok(())
    }

    fn delete(&self, keys: KeyOrder, work: &mut Work) -> Result<()> {
        let mut random = self.random();
        let mut key = Key::new();
        for i in self.part_of(self.runner.args.num) {
            let number = match keys {
                KeyOrder::Sequential => i,
                KeyOrder::RandomBelow(bound) => random.below(bound),
            };
            self.db.delete(key.set(number))?;
            work.bytes += KEY_SIZE as u64;
            work.end(1);
            self.tick(work.operations);
        }
        Ok(())
    }

    fn read(&self, range: u64, mut key: Key, work: &mut Work) -> Result<()> {
        let mut random = self.random();
        let mut value = Vec::new();
        let options = ReadOptions::new();
        for _ in self.part_of(self.runner.args.reads()) {
            if self.db.get_into_with(key.set(random.below(range)), &mut value, &options)? {
                work.found += 1;
                work.bytes += (KEY_SIZE + value.len()) as u64;
            }
            work.end(1);
            self.tick(work.operations);
        }
        Ok(())
    }

    /// Gets [`KEYS_AT_ONCE`] keys with each call.
    fn multi_read(&self, work: &mut Work) -> Result<()> {
        let mut random = self.random();
        let mut left = self.part_of(self.runner.args.reads()).count();
        let mut keys = vec![Key::new(); KEYS_AT_ONCE.min(left)];
        while left > 0 {
            keys.truncate(left);
            for key in &mut keys {
                key.set(random.below(self.runner.args.num));
            }
            for value in self.db.multi_get(&keys)?.into_iter().flatten() {
                work.found += 1;
                work.bytes += (KEY_SIZE + value.len()) as u64;
            }
            left -= keys.len();
            work.end(keys.len() as u64);
            self.tick(work.operations);
        }
        Ok(())
    }

    fn scan(&self, forwards: bool, work: &mut Work) -> Result<()> {
        let part = self.part_of(self.runner.args.reads());
        let mut left = part.end - part.start;
        let mut cursor = self.db.cursor()?;
        if forwards {
            cursor.seek_to_first();
        } else {
            cursor.seek_to_last();
        }
        let mut steps = 0;
        while cursor.valid() && left > 0 {
            work.bytes += (cursor.key().len() + cursor.value().len()) as u64;
            steps += 1;
            if steps == SCAN_STRIDE {
                work.end_steps(steps);
                self.progress.add(steps);
                steps = 0;
            }
            if forwards {
                cursor.next();
            } else {
                cursor.prev();
            }
            left -= 1;
        }
        work.end_steps(steps);
        Ok(cursor.status()?)
    }

    fn seek(&self, work: &mut Work) -> Result<()> {
        let mut random = self.random();
        let mut key = Key::new();
        let options = ReadOptions::new();
        for _ in self.part_of(self.runner.args.reads()) {
            let target = key.set(random.below(self.runner.args.num));
            let mut cursor = self.db.cursor_with(&options)?;
            cursor.seek(target);
            work.found += u64::from(cursor.valid() && cursor.key() == target);
            for step in 1..=SEEK_STEPS {
                if !cursor.valid() {
                    break;
                }
                work.bytes += (cursor.key().len() + cursor.value().len()) as u64;
                // The end after the last one is not looked at, in the other programs of the lab
                // either.
                if step < SEEK_STEPS {
                    cursor.next();
                }
            }
            cursor.status()?;
            work.end(1);
            self.tick(work.operations);
        }
        Ok(())
    }

    /// The writer beside the readers.
    fn write_until(&self, done: &AtomicBool, work: &mut Work) -> Result<()> {
        let mut random = self.random();
        let mut key = Key::new();
        let mut position = 0;
        while !done.load(Ordering::Relaxed) {
            let number = random.below(self.runner.args.num);
            self.db.put(key.set(number), self.runner.values.next(&mut position))?;
            work.end(1);
        }
        Ok(())
    }
}
