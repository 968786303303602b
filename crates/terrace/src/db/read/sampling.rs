//! Samples reads, for read-triggered compactions.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::version::file_meta::FileMeta;

use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::read_stats::{READ_SAMPLE, Read};

/// Has tables opened for reads to come, and counts a seek of a cursor over several runs towards
/// read-triggered compactions.
#[inline]
pub(super) fn sample_seek(core: &DbImpl) {
    if !is_sampled() {
        return;
    }
    sample_read(core, Read::Seek, None);
    if core.files.options.seek_compaction
        && core.background.read_stats.sample_seek(core.views.visible_sequence())
    {
        compact_for_scans(core);
    }
}

/// Compacts as in an idle database, but leaves the memtable, which is being written.
#[cold]
fn compact_for_scans(core: &DbImpl) {
    if core.files.works_elsewhere() {
        return;
    }
    let mut state = core.background.state.lock();
    if !state.is_write_idle {
        state.is_write_idle = true;
        core.background.schedule(&mut state);
    }
}

/// Has tables opened for reads to come, returns to the cache what unused ones borrowed, and counts a
/// sampled read, and the file that it searched
/// without a hit, if there was one.
#[cold]
pub(super) fn sample_read(core: &DbImpl, kind: Read, wasted: Option<&Arc<FileMeta>>) {
    if core.files.works_elsewhere() {
        return;
    }
    core.background.open_tables_ahead();
    core.files.tables.return_unused();
    if !core.files.options.seek_compaction {
        core.background.read_stats.note(core.views.visible_sequence());
        return;
    }
    let exhausted = |file: &Arc<FileMeta>| {
        let sample = READ_SAMPLE as i64;
        (1..=sample).contains(&file.seeks_left.fetch_sub(sample, Ordering::Relaxed))
    };
    let becomes_idle = core.background.read_stats.sample(
        core.views.visible_sequence(),
        kind,
        core.files.tables.exceed_memory(),
    );
    if becomes_idle || wasted.is_some_and(exhausted) {
        let mut state = core.background.state.lock();
        state.is_write_idle |= becomes_idle;
        core.background.schedule(&mut state);
        if becomes_idle {
            core.background.read_stats.look_again(core.views.current.load().version.bytes());
            core.writes.schedule_idle_flush(&mut state);
        }
    }
}

/// True once in [`READ_SAMPLE`] calls of a thread.
pub(super) fn is_sampled() -> bool {
    thread_local!(static CALLS: Cell<u64> = const { Cell::new(0) });
    CALLS.with(|calls| {
        calls.set(calls.get().wrapping_add(1));
        calls.get() % READ_SAMPLE == 0
    })
}
