//! A recorded trace, as far as an engine can do what was called.

use std::ops::ControlFlow;

use lab_trace::{self as trace, Call, Put, Trace};

use crate::data::ValuePool;
use crate::engine::{Durability, Operation, Operations, Session, Start};
use crate::meter::Meter;
use crate::{Failure, Result};

/// Entries of a batch while the database is made.
const LOADED_AT_ONCE: usize = 1000;
/// Or values of so many bytes.
const BYTES_AT_ONCE: usize = 16 << 20;

/// Puts the entries that were there when the trace began.
pub(crate) fn load(trace: &Trace, session: &mut impl Session, values: &ValuePool) -> Result<()> {
    let entries = trace.records().map_while(|record| match record.ok()?.call {
        Call::Entry(put) => Some(put),
        _ => None,
    });
    let entries: Vec<Put<'_>> = entries.collect();
    let (mut rest, mut position) = (&entries[..], 0);
    while !rest.is_empty() {
        let mut bytes = 0;
        let together = rest.iter().take(LOADED_AT_ONCE).take_while(|put| {
            let fits = bytes < BYTES_AT_ONCE;
            bytes += put.size;
            fits
        });
        let (some, others) = rest.split_at(together.count());
        let changes = some.iter().map(|put| trace::Operation::Put(*put));
        session.write_batch(&mut Changes::new(changes, values, &mut position))?;
        rest = others;
    }
    Ok(())
}

/// Does the first `most` operations of a trace.
pub(crate) fn run(
    trace: &Trace,
    most: u64,
    session: &mut impl Session,
    values: &ValuePool,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut done, mut position) = (0, 0);
    for record in trace.records() {
        let call = record.map_err(Failure::new)?.call;
        let operations = call.operations();
        if operations == 0 {
            continue;
        }
        if done >= most {
            break;
        }
        if !meter.goes_on() {
            meter.truncated = true;
            break;
        }
        let bytes = match call {
            Call::Entry(_) => 0,
            Call::Write(trace::Operation::Put(put)) => {
                let value = values.cut(&mut position, put.size);
                session.put(put.key, value, Durability::Asynchronous)?;
                (put.key.len() + put.size) as u64
            }
            Call::Write(trace::Operation::Delete(key)) => {
                session.delete(key)?;
                key.len() as u64
            }
            Call::Batch(changes) => {
                let mut changes = Changes::new(changes, values, &mut position);
                session.write_batch(&mut changes)?;
                changes.bytes
            }
            Call::Get(key) => {
                let size = session.get(key, |value| value.len())?;
                meter.found += u64::from(size.is_some());
                size.map_or(0, |size| (key.len() + size) as u64)
            }
            Call::Scan(start, steps) => scan(start, steps, session, meter)?,
        };
        meter.end(operations, bytes);
        done += operations;
    }
    Ok(())
}

/// Looks at the entry where a scan begins and at one after each step. Not every engine can begin
/// anywhere and go backwards; such a scan goes forwards for all of them.
fn scan(
    start: trace::Start<'_>,
    steps: u64,
    session: &mut impl Session,
    meter: &mut Meter<'_>,
) -> Result<u64> {
    let start = match start {
        trace::Start::First => Start::First,
        trace::Start::Last => Start::Last,
        trace::Start::From(key) | trace::Start::BackFrom(key) => Start::Key(key),
    };
    let (mut left, mut bytes) = (steps, 0);
    session.scan(start, |key, value| {
        bytes += (key.len() + value.len()) as u64;
        meter.found += 1;
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}

/// The changes of a batch, with values.
struct Changes<'a, I> {
    changes: I,
    values: &'a ValuePool,
    position: &'a mut usize,
    bytes: u64,
}

impl<'a, I> Changes<'a, I> {
    fn new(changes: I, values: &'a ValuePool, position: &'a mut usize) -> Self {
        Changes { changes, values, position, bytes: 0 }
    }
}

impl<'a, I: Iterator<Item = trace::Operation<'a>>> Operations for Changes<'a, I> {
    fn next(&mut self) -> Option<Operation<'_>> {
        Some(match self.changes.next()? {
            trace::Operation::Put(put) => {
                self.bytes += (put.key.len() + put.size) as u64;
                Operation::Put(put.key, self.values.cut(self.position, put.size))
            }
            trace::Operation::Delete(key) => {
                self.bytes += key.len() as u64;
                Operation::Delete(key)
            }
        })
    }
}
