//! The operations of one thread of a benchmark.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab_trace::Trace;

use crate::benchmark::{Benchmark, Choice, FILL_RANDOM, Kind};
use crate::data::{Key, Keys, MixGraph, Pareto, Random, ScrambledZipfian, ValuePool, Zipfian};
use crate::engine::{Durability, Operation, Operations, Session, Start};
use crate::meter::Meter;
use crate::{Failure, Result, Settings, replay};

const SEEK_STEPS: u64 = 10;
/// Steps of a scan between two looks at the clock.
const SCAN_STRIDE: u64 = 128;
/// Steps of a short scan, at most.
const SHORT_SCAN: u64 = 100;
/// Entries in a queue before any is taken out.
const QUEUED: u64 = 1000;
/// Keys of a range that is deleted.
const RANGE: u64 = 100;
/// Keys that are got at once.
const KEYS_AT_ONCE: u64 = 64;
/// Keys for each hot key.
const HOT_SHARE: u64 = 100;

/// State shared by all threads of a benchmark.
pub(crate) struct Task<'a> {
    pub(crate) benchmark: Benchmark,
    pub(crate) settings: &'a Settings,
    pub(crate) values: &'a ValuePool,
    /// Where the latest keys are read most.
    pub(crate) zipfian: Option<&'a Zipfian>,
    /// The greatest key there is.
    pub(crate) newest: &'a AtomicU64,
    pub(crate) threads: u64,
    /// What is replayed.
    pub(crate) trace: Option<&'a Trace>,
}

impl Task<'_> {
    fn operations(&self) -> u64 {
        self.benchmark.operations(self.settings.num, self.settings.reads())
    }

    /// A thread's part of the operations, as a range of their numbers.
    fn part_of(&self, thread: u64) -> Range<u64> {
        let first = |thread: u64| {
            (u128::from(self.operations()) * u128::from(thread) / u128::from(self.threads)) as u64
        };
        first(thread)..first(thread + 1)
    }

    fn keys(&self) -> Result<Keys> {
        let num = self.settings.num;
        Ok(match self.benchmark.keys {
            Choice::InOrder => Keys::InOrder,
            Choice::Random | Choice::Missing if self.benchmark.kind == Kind::PutLarge => {
                Keys::Below(self.operations())
            }
            Choice::Random | Choice::Missing if self.benchmark.is_in_keyspaces() => {
                Keys::Below((num / self.settings.keyspaces).max(1))
            }
            Choice::Random | Choice::Missing => Keys::Below(num),
            Choice::Hot => Keys::Below((num / HOT_SHARE).max(1)),
            Choice::Put => Keys::Put(Random::stream(self.settings.seed, FILL_RANDOM, 0), num),
            Choice::Pareto(fraction) => Keys::Pareto(Pareto::new(num, fraction)),
            Choice::Zipfian => Keys::Zipfian(ScrambledZipfian::new(num)),
        })
    }

    fn zipfian(&self) -> Result<&Zipfian> {
        self.zipfian.ok_or_else(|| Failure::new("zipfian numbers are not prepared"))
    }
}

/// One thread at work.
pub(crate) struct Worker<'a, S> {
    task: &'a Task<'a>,
    session: S,
    source: Source<'a>,
    thread: u64,
    part: Range<u64>,
    /// Of a queue.
    first_in_queue: Vec<u8>,
    /// The bounds of a range that is deleted.
    range: Range<Key>,
}

/// Where a thread's keys and values come from.
struct Source<'a> {
    random: Random,
    keys: Keys,
    key: Key,
    values: &'a ValuePool,
    position: usize,
}

impl Source<'_> {
    #[inline]
    fn number(&mut self, i: u64) -> u64 {
        self.keys.at(i, &mut self.random)
    }

    #[inline]
    fn entry(&mut self, number: u64) -> (&[u8], &[u8]) {
        (self.key.set(number), self.values.next(&mut self.position, &mut self.random))
    }

    /// True in so many cases out of a hundred.
    #[inline]
    fn happens(&mut self, in_a_hundred: u64) -> bool {
        self.random.below(100) < in_a_hundred
    }
}

impl<'a, S: Session> Worker<'a, S> {
    pub(crate) fn new(task: &'a Task<'a>, thread: u64, session: S) -> Result<Self> {
        let size = task.settings.key_size;
        let source = Source {
            random: Random::stream(task.settings.seed, task.benchmark.stream(), thread),
            keys: task.keys()?,
            key: if task.benchmark.keys == Choice::Missing {
                Key::missing(size)
            } else {
                Key::new(size)
            },
            values: task.values,
            position: 0,
        };
        let part = task.part_of(thread);
        let range = Key::new(size)..Key::new(size);
        Ok(Worker { task, session, source, thread, part, first_in_queue: Vec::new(), range })
    }

    pub(crate) fn run(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        match self.task.benchmark.kind {
            Kind::Put | Kind::PutLarge => {
                self.each(meter, |worker, i, meter| worker.put_next(i, meter))
            }
            Kind::PutSync => self.each(meter, |worker, i, meter| {
                let number = worker.source.number(i);
                worker.put(number, Durability::Synchronous, meter)
            }),
            Kind::PutBatch => self.batches(meter),
            Kind::Delete => self.each(meter, |worker, i, meter| {
                let number = worker.source.number(i);
                let key = worker.source.key.set(number);
                worker.session.delete(key)?;
                meter.end(1, key.len() as u64);
                Ok(())
            }),
            Kind::Get | Kind::GetWhilePutting => self.each(meter, Self::get_next),
            Kind::Scan => self.scan(Start::First, meter),
            Kind::ScanBackwards => self.scan(Start::Last, meter),
            Kind::Seek => self.each(meter, |worker, i, meter| {
                let number = worker.source.number(i);
                worker.steps(number, SEEK_STEPS, true, meter)
            }),
            Kind::Mix(0) => self.each(meter, Self::put_next),
            Kind::Mix(100) => self.each(meter, Self::get_next),
            Kind::Mix(gets) => self.each(meter, |worker, i, meter| {
                if worker.source.happens(gets) {
                    worker.get_next(i, meter)
                } else {
                    worker.put_next(i, meter)
                }
            }),
            Kind::Latest(gets) => self.each(meter, |worker, _, meter| {
                if !worker.source.happens(gets) {
                    return worker.put_newest(meter);
                }
                let rank = worker.task.zipfian()?.rank(&mut worker.source.random);
                worker.get(worker.task.newest.load(Ordering::Relaxed).saturating_sub(rank), meter)
            }),
            Kind::ShortScans(scans) => self.each(meter, |worker, i, meter| {
                if !worker.source.happens(scans) {
                    return worker.put_newest(meter);
                }
                let number = worker.source.number(i);
                let steps = 1 + worker.source.random.below(SHORT_SCAN);
                worker.steps(number, steps, false, meter)
            }),
            Kind::GetAndPut(gets) => {
                self.each(meter, |worker, i, meter| worker.get_and_put(gets, i, meter))
            }
            Kind::Queue => self.each(meter, Self::put_last_take_first),
            Kind::Graph => {
                let graph = MixGraph::new(self.task.settings.num);
                self.each(meter, |worker, _, meter| worker.get_put_or_scan(&graph, meter))
            }
            Kind::Replay => {
                let Task { trace, values, settings, .. } = self.task;
                let trace = trace.ok_or_else(|| Failure::new("the trace is not there"))?;
                replay::run(trace, settings.num, &mut self.session, values, meter)
            }
            Kind::DeleteRange => self.each(meter, Self::delete_range),
            Kind::PutExpiring => self.each(meter, |worker, i, meter| {
                let number = worker.source.number(i);
                let (key, value) = worker.source.entry(number);
                worker.session.put_expiring(key, value)?;
                meter.end(1, (key.len() + value.len()) as u64);
                Ok(())
            }),
            Kind::PutKeyspaces => self.each(meter, Self::put_in_keyspace),
            Kind::GetKeyspaces => self.each(meter, Self::get_in_keyspace),
            Kind::MultiGet => self.multi_gets(meter),
            Kind::BulkLoad => self.load(meter),
            Kind::Compact
            | Kind::WaitCompact
            | Kind::Cold
            | Kind::CreateKeyspaces
            | Kind::SelfTest => Err(Failure::new(format!(
                "{} concerns the whole database",
                self.task.benchmark.name
            ))),
        }
    }

    /// The additional thread of readwhilewriting. It puts at least once, however short the reads.
    pub(crate) fn put_until(&mut self, done: &AtomicBool, meter: &mut Meter<'_>) -> Result<()> {
        let (begin, rate) = (Instant::now(), self.task.settings.write_rate);
        for puts in 0_u64.. {
            if let Some(seconds) = (rate > 0).then(|| puts as f64 / rate as f64) {
                let due = begin + Duration::from_secs_f64(seconds);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            if puts > 0 && done.load(Ordering::Relaxed) {
                break;
            }
            self.put_next(0, meter)?;
        }
        Ok(())
    }

    /// `operation` for everything that this thread is to do, or until time is up.
    fn each(
        &mut self,
        meter: &mut Meter<'_>,
        operation: impl Fn(&mut Self, u64, &mut Meter<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.task.settings.rate > 0 {
            return self.paced(meter, operation);
        }
        if self.task.benchmark.timed {
            while meter.goes_on() {
                operation(self, 0, meter)?;
            }
            return Ok(());
        }
        for i in self.part.clone() {
            if !meter.goes_on() {
                meter.truncated = true;
                break;
            }
            operation(self, i, meter)?;
        }
        Ok(())
    }

    /// The same as an open loop: every operation is due at a time of its own, however long those
    /// before it took. The threads take turns.
    fn paced(
        &mut self,
        meter: &mut Meter<'_>,
        operation: impl Fn(&mut Self, u64, &mut Meter<'_>) -> Result<()>,
    ) -> Result<()> {
        let (begin, timed) = (meter.last, self.task.benchmark.timed);
        let rate = self.task.settings.rate as f64;
        for done in 0.. {
            let i = self.part.start + done;
            if !timed && i >= self.part.end {
                break;
            }
            if !meter.goes_on() {
                meter.truncated |= !timed;
                break;
            }
            let place = done * self.task.threads + self.thread;
            meter.await_due(begin + Duration::from_secs_f64(place as f64 / rate));
            operation(self, if timed { 0 } else { i }, meter)?;
        }
        Ok(())
    }

    #[inline]
    fn put_next(&mut self, i: u64, meter: &mut Meter<'_>) -> Result<()> {
        let number = self.source.number(i);
        self.put(number, Durability::Asynchronous, meter)
    }

    fn put_newest(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let number = self.task.newest.fetch_add(1, Ordering::Relaxed) + 1;
        self.put(number, Durability::Asynchronous, meter)
    }

    #[inline]
    fn put(&mut self, number: u64, durability: Durability, meter: &mut Meter<'_>) -> Result<()> {
        let (key, value) = self.source.entry(number);
        self.session.put(key, value, durability)?;
        meter.end(1, (key.len() + value.len()) as u64);
        Ok(())
    }

    #[inline]
    fn get_next(&mut self, i: u64, meter: &mut Meter<'_>) -> Result<()> {
        let number = self.source.number(i);
        self.get(number, meter)
    }

    #[inline]
    fn get(&mut self, number: u64, meter: &mut Meter<'_>) -> Result<()> {
        let bytes = self.look(number, meter)?;
        meter.end(1, bytes);
        Ok(())
    }

    /// Gets a key; returns how many bytes came out.
    #[inline]
    fn look(&mut self, number: u64, meter: &mut Meter<'_>) -> Result<u64> {
        let key = self.source.key.set(number);
        let size = self.session.get(key, |value| value.len())?;
        meter.found += u64::from(size.is_some());
        Ok(size.map_or(0, |size| (key.len() + size) as u64))
    }

    fn get_and_put(&mut self, gets: u64, i: u64, meter: &mut Meter<'_>) -> Result<()> {
        let number = self.source.number(i);
        let only_get = self.source.happens(gets);
        let mut bytes = self.look(number, meter)?;
        if !only_get {
            let (key, value) = self.source.entry(number);
            self.session.put(key, value, Durability::Asynchronous)?;
            bytes += (key.len() + value.len()) as u64;
        }
        meter.end(1, bytes);
        Ok(())
    }

    fn steps(
        &mut self,
        number: u64,
        most: u64,
        count_found: bool,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let target = self.source.key.set(number);
        let mut bytes = 0;
        let mut steps = 0;
        let mut found = false;
        self.session.scan(Start::Key(target), |key, value| {
            found |= steps == 0 && key == target;
            bytes += (key.len() + value.len()) as u64;
            steps += 1;
            if steps == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        meter.found += u64::from(count_found && found);
        meter.end(1, bytes);
        Ok(())
    }

    fn scan(&mut self, start: Start<'_>, meter: &mut Meter<'_>) -> Result<()> {
        let most = self.part.end - self.part.start;
        if most == 0 {
            return Ok(());
        }
        let mut seen = 0;
        let (mut steps, mut bytes) = (0, 0);
        self.session.scan(start, |key, value| {
            if steps == SCAN_STRIDE {
                meter.end_steps(steps, bytes);
                (steps, bytes) = (0, 0);
                if !meter.goes_on() {
                    meter.truncated = true;
                    return ControlFlow::Break(());
                }
            }
            bytes += (key.len() + value.len()) as u64;
            steps += 1;
            seen += 1;
            if seen == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        meter.end_steps(steps, bytes);
        Ok(())
    }

    fn get_put_or_scan(&mut self, graph: &MixGraph, meter: &mut Meter<'_>) -> Result<()> {
        let what = self.source.random.below(100);
        let number = graph.key(&mut self.source.random);
        if what < MixGraph::GETS {
            return self.get(number, meter);
        }
        if what >= MixGraph::GETS + MixGraph::PUTS {
            let steps = MixGraph::steps(&mut self.source.random);
            return self.steps(number, steps, false, meter);
        }
        let Source { random, key, values, position, .. } = &mut self.source;
        let value = values.cut(position, MixGraph::value_size(random));
        let key = key.set(number);
        self.session.put(key, value, Durability::Asynchronous)?;
        meter.end(1, (key.len() + value.len()) as u64);
        Ok(())
    }

    fn put_last_take_first(&mut self, number: u64, meter: &mut Meter<'_>) -> Result<()> {
        let (key, value) = self.source.entry(number);
        self.session.put(key, value, Durability::Asynchronous)?;
        let mut bytes = (key.len() + value.len()) as u64;
        if number - self.part.start >= QUEUED {
            let first = &mut self.first_in_queue;
            first.clear();
            self.session.scan(Start::First, |key, value| {
                first.extend_from_slice(key);
                bytes += (key.len() + value.len()) as u64;
                ControlFlow::Break(())
            })?;
            if !first.is_empty() {
                self.session.delete(first)?;
                meter.found += 1;
            }
        }
        meter.end(1, bytes);
        Ok(())
    }

    fn delete_range(&mut self, i: u64, meter: &mut Meter<'_>) -> Result<()> {
        let first = self.source.number(i);
        let end = first + RANGE;
        let from = self.range.start.set(first);
        let to = self.range.end.set(end);
        let bytes = (from.len() + to.len()) as u64;
        let mut deletes = Deletes { key: &mut self.source.key, numbers: first..end };
        self.session.delete_range(from..to, &mut deletes)?;
        meter.end(1, bytes);
        Ok(())
    }

    fn put_in_keyspace(&mut self, i: u64, meter: &mut Meter<'_>) -> Result<()> {
        let keyspace = (i % self.task.settings.keyspaces) as usize;
        let number = self.source.number(i);
        let (key, value) = self.source.entry(number);
        self.session.put_in(keyspace, key, value)?;
        meter.end(1, (key.len() + value.len()) as u64);
        Ok(())
    }

    fn get_in_keyspace(&mut self, i: u64, meter: &mut Meter<'_>) -> Result<()> {
        let keyspace = self.source.random.below(self.task.settings.keyspaces) as usize;
        let number = self.source.number(i);
        let key = self.source.key.set(number);
        let size = self.session.get_in(keyspace, key, |value| value.len())?;
        meter.found += u64::from(size.is_some());
        meter.end(1, size.map_or(0, |size| (key.len() + size) as u64));
        Ok(())
    }

    fn multi_gets(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let mut keys = vec![Key::new(self.task.settings.key_size); KEYS_AT_ONCE as usize];
        let mut next = self.part.start;
        while next < self.part.end {
            if !meter.goes_on() {
                meter.truncated = true;
                break;
            }
            let end = self.part.end.min(next + KEYS_AT_ONCE);
            let source = &mut self.source;
            let wanted: Vec<&[u8]> =
                (next..end).zip(&mut keys).map(|(i, key)| key.set(source.number(i))).collect();
            let mut bytes = 0;
            self.session.multi_get(&wanted, |key, value| {
                meter.found += 1;
                bytes += (key.len() + value.len()) as u64;
            })?;
            meter.end(end - next, bytes);
            next = end;
        }
        Ok(())
    }

    fn batches(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let mut next = self.part.start;
        while next < self.part.end {
            if !meter.goes_on() {
                meter.truncated = true;
                break;
            }
            let end = self.part.end.min(next + self.task.settings.batch);
            let mut entries = Entries { source: &mut self.source, numbers: next..end, bytes: 0 };
            self.session.write_batch(&mut entries)?;
            let bytes = entries.bytes;
            meter.end(end - next, bytes);
            next = end;
        }
        Ok(())
    }

    fn load(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let entries = Entries { source: &mut self.source, numbers: self.part.clone(), bytes: 0 };
        let mut load = MeteredLoad { entries, meter, is_first: true };
        self.session.bulk_load(&mut load)?;
        // The commit.
        meter.end(0, 0);
        Ok(())
    }
}

/// Puts of consecutive operations.
struct Entries<'a, 'b> {
    source: &'a mut Source<'b>,
    numbers: Range<u64>,
    bytes: u64,
}

impl Operations for Entries<'_, '_> {
    #[inline]
    fn next(&mut self) -> Option<Operation<'_>> {
        let i = self.numbers.next()?;
        let number = self.source.number(i);
        let (key, value) = self.source.entry(number);
        self.bytes += (key.len() + value.len()) as u64;
        Some(Operation::Put(key, value))
    }
}

/// Deletes of consecutive keys.
struct Deletes<'a> {
    key: &'a mut Key,
    numbers: Range<u64>,
}

impl Operations for Deletes<'_> {
    fn next(&mut self) -> Option<Operation<'_>> {
        let number = self.numbers.next()?;
        Some(Operation::Delete(self.key.set(number)))
    }
}

/// Puts of consecutive operations, where every call says that the entry before it is done.
struct MeteredLoad<'a, 'b, 'c, 'd> {
    entries: Entries<'a, 'b>,
    meter: &'c mut Meter<'d>,
    is_first: bool,
}

impl Operations for MeteredLoad<'_, '_, '_, '_> {
    fn next(&mut self) -> Option<Operation<'_>> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.meter.end(1, std::mem::take(&mut self.entries.bytes));
        }
        if !self.meter.goes_on() && !self.entries.numbers.is_empty() {
            self.meter.truncated = true;
            return None;
        }
        self.entries.next()
    }
}
