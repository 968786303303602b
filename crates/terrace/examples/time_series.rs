//! A time series: measurements by sensor and time, ranges of time, the newest value, retention.
//!
//! A key is the sensor's name, a zero byte and the time in big-endian form, so the measurements of
//! one sensor are neighbours in the order of time.
//!
//! `cargo run --example time_series`

use terrace::{Db, Options, Result, WriteBatch};

fn key(sensor: &str, seconds: u64) -> Vec<u8> {
    [sensor.as_bytes(), &[0], &seconds.to_be_bytes()].concat()
}

fn measurement((key, value): (Vec<u8>, Vec<u8>)) -> (u64, f64) {
    let seconds = key.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    (seconds, value.try_into().map_or(f64::NAN, f64::from_be_bytes))
}

/// The measurements of one sensor in a range of time, oldest first.
fn between(db: &Db, sensor: &str, from: u64, to: u64) -> Result<Vec<(u64, f64)>> {
    db.range(key(sensor, from)..key(sensor, to))?.map(|entry| Ok(measurement(entry?))).collect()
}

/// The newest measurement of a sensor that is not later than `seconds`.
fn at(db: &Db, sensor: &str, seconds: u64) -> Result<Option<(u64, f64)>> {
    let mut entries = db.range(key(sensor, 0)..=key(sensor, seconds))?;
    entries.next_back().transpose().map(|entry| entry.map(measurement))
}

/// Removes what is older than `seconds`. Large ranges lose whole tables.
fn forget(db: &Db, sensor: &str, seconds: u64) -> Result<()> {
    db.delete_range(key(sensor, 0)..key(sensor, seconds))
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("series"), Options::new().create_if_missing(true))?;
    for minute in 0..1000_u64 {
        // One batch for what belongs together: both sensors, or neither.
        let mut batch = WriteBatch::new();
        batch.put(key("indoors", minute * 60), 21.5_f64.to_be_bytes());
        batch.put(key("outdoors", minute * 60), (minute as f64 / 100.0).to_be_bytes());
        db.write(&batch)?;
    }
    let hour = between(&db, "outdoors", 36_000, 39_600)?;
    assert_eq!((hour.len(), hour[0]), (60, (36_000, 6.0)));
    assert_eq!(at(&db, "outdoors", 36_059)?, Some((36_000, 6.0)));

    forget(&db, "outdoors", 36_000)?;
    assert_eq!(at(&db, "outdoors", 35_999)?, None);
    assert_eq!(at(&db, "indoors", 35_999)?, Some((35_940, 21.5)));
    println!("60 measurements of one hour, from {:?} to {:?}", hour[0], hour[59]);
    db.close()
}
