//! Runs benchmarks: keeps the database open between them, starts the threads together, adds up what
//! they did.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lab_trace::Trace;

use crate::benchmark::{Benchmark, Kind};
use crate::data::{ValuePool, Zipfian};
use crate::engine::Engine;
use crate::meter::{Interval, Latencies, Meter};
use crate::outcome::Outcome;
use crate::resources::{self, ProcessCounters};
use crate::work::{Task, Worker};
use crate::{Failure, Result, Settings, directory, output, replay, selftest};

const LARGE_VALUE_SIZE: u64 = 100_000;
/// Of an entry that expires.
const TIME_TO_LIVE: Duration = Duration::from_secs(1);

fn not_open() -> Failure {
    Failure::new("the database is not open")
}

/// An open database and the settings of the run.
pub(crate) struct Runner<'a, E> {
    settings: &'a Settings,
    engine: Option<E>,
    values: ValuePool,
    large_values: Option<ValuePool>,
    /// What is replayed, and its values.
    trace: Option<(Trace, ValuePool)>,
    zipfian: Option<Zipfian>,
    newest: AtomicU64,
}

impl<'a, E: Engine> Runner<'a, E> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Runner {
            settings,
            engine: None,
            values: ValuePool::new(settings.seed, settings.value_size, settings.value_size_max),
            large_values: None,
            trace: None,
            zipfian: None,
            newest: AtomicU64::new(settings.num - 1),
        }
    }

    pub(crate) fn close(&mut self) -> Result<()> {
        self.engine.take().map_or(Ok(()), E::close)
    }

    pub(crate) fn run(&mut self, benchmark: Benchmark) -> Result<Outcome<'a>> {
        self.prepare(&benchmark)?;
        let levels = self.levels(&benchmark)?;
        resources::reset_peak_memory();
        let limit = limit_of(&benchmark, self.settings);
        let mut outcome = match benchmark.kind {
            Kind::Compact => {
                self.alone(benchmark, 1, |runner, _| runner.engine()?.compact().map(|()| None))?
            }
            Kind::WaitCompact => self.alone(benchmark, 0, |runner, meter| {
                let idle = runner.engine()?.wait_compact()?;
                meter.end_before(idle);
                Ok(None)
            })?,
            Kind::Cold => {
                self.close()?;
                resources::drop_pages(self.settings.db())?;
                self.alone(benchmark, 1, |runner, _| {
                    runner.engine = Some(E::open(runner.settings)?);
                    Ok(None)
                })?
            }
            Kind::CreateKeyspaces => {
                let count = self.settings.keyspaces;
                self.alone(benchmark, 0, |runner, meter| {
                    for number in 1..=count {
                        runner.engine()?.open_keyspaces(number)?;
                        meter.end(1, 0);
                    }
                    Ok(None)
                })?
            }
            Kind::SelfTest => self.alone(benchmark, selftest::ALL_OPERATIONS, |runner, _| {
                runner.self_test().map(Some)
            })?,
            _ => self.together(benchmark, limit)?,
        };
        outcome.meter.truncated |= benchmark.timed
            && limit.is_some_and(|limit| limit.as_secs_f64() < self.settings.duration);
        outcome.levels = levels;
        Ok(outcome)
    }

    fn prepare(&mut self, benchmark: &Benchmark) -> Result<()> {
        if benchmark.kind == Kind::Replay && self.trace.is_none() {
            self.trace = Some(self.open_trace()?);
        }
        if benchmark.empty {
            self.close()?;
            directory::empty(self.settings.db())?;
            self.newest = AtomicU64::new(self.settings.num - 1);
        }
        if self.engine.is_none() {
            directory::create(self.settings.db())?;
            self.engine = Some(E::open(self.settings)?);
        }
        match benchmark.kind {
            Kind::PutExpiring => self.engine()?.expire_after(TIME_TO_LIVE)?,
            Kind::PutKeyspaces | Kind::GetKeyspaces => {
                let count = self.settings.keyspaces;
                self.engine()?.open_keyspaces(count)?;
            }
            _ => (),
        }
        if matches!(benchmark.kind, Kind::Latest(_)) && self.zipfian.is_none() {
            self.zipfian = Some(Zipfian::new(self.settings.num));
        }
        if benchmark.kind == Kind::PutLarge && self.large_values.is_none() {
            self.large_values = Some(ValuePool::new(self.settings.seed, LARGE_VALUE_SIZE, 0));
        }
        if let (Kind::Replay, Some((trace, values))) = (benchmark.kind, &self.trace) {
            let engine = self.engine.as_mut().ok_or_else(not_open)?;
            replay::load(trace, &mut engine.session(), values)?;
            engine.wait_compact()?;
            self.close()?;
            self.engine = Some(E::open(self.settings)?);
        }
        Ok(())
    }

    fn open_trace(&self) -> Result<(Trace, ValuePool)> {
        let path = self.settings.trace.as_deref();
        let path = path.ok_or_else(|| Failure::usage("replay wants --trace=FILE"))?;
        let trace = Trace::open(path).map_err(Failure::usage)?;
        let values = ValuePool::new(self.settings.seed, trace.largest_value() as u64, 0);
        Ok((trace, values))
    }

    /// The levels that a benchmark begins with, down to the last that holds a file.
    fn levels(&mut self, benchmark: &Benchmark) -> Result<Vec<(u64, u64)>> {
        if benchmark.empty {
            return Ok(Vec::new());
        }
        let mut levels = self.engine()?.levels();
        while levels.last().is_some_and(|(files, _)| *files == 0) {
            levels.pop();
        }
        Ok(levels)
    }

    fn engine(&mut self) -> Result<&mut E> {
        self.engine.as_mut().ok_or_else(not_open)
    }

    fn self_test(&mut self) -> Result<String> {
        let mut script = selftest::Script::new(self.settings.seed, self.settings.key_size)?;
        for pass in 0..selftest::NUM_PASSES {
            if pass > 0 {
                self.close()?;
                self.engine = Some(E::open(self.settings)?);
            }
            script.pass(&mut self.engine()?.session())?;
        }
        Ok(script.digest())
    }

    /// Something that concerns the whole database: one long call of so many operations, or calls
    /// that the body counts itself.
    fn alone(
        &mut self,
        benchmark: Benchmark,
        operations: u64,
        body: impl FnOnce(&mut Self, &mut Meter<'static>) -> Result<Option<String>>,
    ) -> Result<Outcome<'a>> {
        let start = ProcessCounters::now();
        let mut meter = Meter::new(None, None);
        let started = meter.last;
        let digest = body(self, &mut meter)?;
        if operations > 0 {
            meter.end(operations, 0);
        }
        let outcome = self.outcome(benchmark, meter, 1, started, &start);
        Ok(Outcome { digest, ..outcome })
    }

    fn together(&mut self, benchmark: Benchmark, limit: Option<Duration>) -> Result<Outcome<'a>> {
        let engine = self.engine.as_ref().ok_or_else(not_open)?;
        let threads = if benchmark.is_single() { 1 } else { self.settings.threads };
        let trace = self.trace.as_ref();
        let values = match benchmark.kind {
            Kind::PutLarge => self.large_values.as_ref(),
            Kind::Replay => trace.map(|(_, values)| values),
            _ => None,
        };
        let values = values.unwrap_or(&self.values);
        let task = Task {
            benchmark,
            settings: self.settings,
            values,
            zipfian: self.zipfian.as_ref(),
            newest: &self.newest,
            threads,
            trace: trace.map(|(trace, _)| trace),
        };
        let intervals: Vec<Interval> = (0..threads).map(|_| Interval::new()).collect();
        let interval_of = |thread: u64| {
            (self.settings.interval > 0.0).then(|| &intervals[thread as usize % intervals.len()])
        };
        let has_writer = benchmark.kind == Kind::GetWhilePutting;
        let gate = Gate::new(threads as usize + usize::from(has_writer) + 1);
        let readers_are_done = AtomicBool::new(false);
        let end = End::default();

        let (results, writer, started, start) = thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|thread| {
                    let (task, gate, interval) = (&task, &gate, interval_of(thread));
                    scope.spawn(move || {
                        run_thread(
                            engine,
                            task,
                            thread,
                            gate,
                            Meter::new(limit, interval),
                            |worker, meter| worker.run(meter),
                        )
                    })
                })
                .collect();
            let writer = has_writer.then(|| {
                let (task, gate, done) = (&task, &gate, &readers_are_done);
                scope.spawn(move || {
                    run_thread(
                        engine,
                        task,
                        threads,
                        gate,
                        Meter::new(None, None),
                        |worker, meter| worker.put_until(done, meter),
                    )
                })
            });
            gate.all_here.wait();
            let start = ProcessCounters::now();
            let started = Instant::now();
            gate.go.wait();
            if self.settings.interval > 0.0 {
                let (end, intervals, every) = (&end, &intervals, self.settings.interval);
                scope.spawn(move || print_series(benchmark.name, started, every, intervals, end));
            }
            let results: Vec<Result<Meter<'_>>> = running.into_iter().map(join).collect();
            readers_are_done.store(true, Ordering::Relaxed);
            let writer = writer.map(join);
            end.reach();
            (results, writer, started, start)
        });

        let mut total = Meter::new(None, None);
        total.last = started;
        for meter in results {
            total.merge(&meter?);
        }
        let writer = writer.transpose()?;
        let outcome = self.outcome(benchmark, total, threads, started, &start);
        let writer_ops_per_sec = writer.map(|writer| writer.operations as f64 / outcome.seconds);
        Ok(Outcome { writer_ops_per_sec, ..outcome })
    }

    fn outcome(
        &self,
        benchmark: Benchmark,
        meter: Meter<'static>,
        threads: u64,
        started: Instant,
        start: &ProcessCounters,
    ) -> Outcome<'a> {
        let end = ProcessCounters::now();
        Outcome {
            benchmark,
            variant: &self.settings.variant,
            seconds: (meter.last - started).as_secs_f64().max(1e-9),
            meter,
            threads,
            cpu_seconds: end.cpu_seconds_since(start),
            bytes_written: end.bytes_written_since(start),
            bytes_read: end.bytes_read_since(start),
            device: end.device_since(start),
            disk_bytes: resources::disk_bytes(self.settings.db()),
            peak_memory_bytes: resources::peak_memory_bytes(),
            levels: Vec::new(),
            writer_ops_per_sec: None,
            digest: None,
        }
    }
}

/// The time after which a benchmark has to end.
fn limit_of(benchmark: &Benchmark, settings: &Settings) -> Option<Duration> {
    let limit = Some(settings.time_limit).filter(|&limit| limit > 0.0);
    let seconds = match (benchmark.timed, limit) {
        (true, Some(limit)) => Some(limit.min(settings.duration)),
        (true, None) => Some(settings.duration),
        (false, limit) => limit,
    };
    seconds.map(Duration::from_secs_f64)
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

fn run_thread<'e, 'm, E: Engine>(
    engine: &'e E,
    task: &Task<'_>,
    thread: u64,
    gate: &Gate,
    mut meter: Meter<'m>,
    body: impl FnOnce(&mut Worker<'_, E::Session<'e>>, &mut Meter<'m>) -> Result<()>,
) -> Result<Meter<'m>> {
    let worker = Worker::new(task, thread, engine.session());
    gate.all_here.wait();
    gate.go.wait();
    meter.begin();
    body(&mut worker?, &mut meter)?;
    Ok(meter)
}

fn join<'m>(thread: thread::ScopedJoinHandle<'_, Result<Meter<'m>>>) -> Result<Meter<'m>> {
    thread.join().unwrap_or_else(|_| Err(Failure::new("a thread of the benchmark panicked")))
}

/// Whether the threads of a benchmark have ended.
#[derive(Default)]
struct End {
    reached: Mutex<bool>,
    changed: Condvar,
}

impl End {
    fn reach(&self) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until then or until `due`; true if the end came first.
    fn comes_before(&self, due: Instant) -> bool {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let remaining = due.saturating_duration_since(Instant::now());
        let waited = self.changed.wait_timeout_while(reached, remaining, |reached| !*reached);
        let (reached, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *reached && Instant::now() < due
    }
}

/// Prints every interval that has gone by, also one in which nothing was done.
fn print_series(name: &str, started: Instant, every: f64, intervals: &[Interval], end: &End) {
    for n in 1u32.. {
        let second = f64::from(n) * every;
        if end.comes_before(started + Duration::from_secs_f64(second)) {
            return;
        }
        let mut sum = (0, Latencies::new());
        intervals.iter().for_each(|interval| interval.take(&mut sum));
        // The reader is gone: the benchmark's own line will say so.
        let _ = output::print_series_line(name, second, sum.0, &sum.1);
    }
}
