//! Settings, as Java passes them: numbers by their place in an array.

use std::sync::Arc;

use jni::Env;
use jni::objects::{JByteArray, JLongArray, JObject};
use jni::sys::jlong;
use terrace::{Compression, Error, Options, ReadOptions};

use crate::budget::BUDGETS;
use crate::bytes;
use crate::comparator::JavaComparator;
use crate::comparator_failure::ComparatorFailure;
use crate::failure::Result;
use crate::gate::GatedEnv;
use crate::logger::JavaLogger;
use crate::maintenance::CACHES;
use crate::snapshot::SNAPSHOTS;

/// The places of settings, as `io.terrace.TerraceOptions` writes them.
const FIELDS: usize = 18;

/// How a database is opened, and what is kept of it beside the engine's handle.
pub(crate) struct Opening {
    pub(crate) options: Options,
    pub(crate) env: Arc<GatedEnv>,
    pub(crate) failure: Arc<ComparatorFailure>,
}

/// The bits of a read's flags.
const SKIP_CACHE: i32 = 1;

/// Options of a read of `snapshot`, 0 for the present.
///
/// # Errors
/// `Closed` if the snapshot is.
pub(crate) fn read_options(snapshot: jlong, flags: i32) -> Result<ReadOptions> {
    let mut options = ReadOptions::new().fill_cache(flags & SKIP_CACHE == 0);
    if snapshot != 0 {
        options = options.snapshot(SNAPSHOTS.get(snapshot)?.as_ref());
    }
    Ok(options)
}

fn size(value: jlong, name: &str) -> terrace::Result<usize> {
    usize::try_from(value).map_err(|_| Error::invalid_argument(format!("{name} is {value}")))
}

impl Opening {
    /// Reads settings.
    ///
    /// # Errors
    /// `InvalidArgument` if a number is negative; those of the virtual machine.
    pub(crate) fn read(
        env: &mut Env<'_>,
        settings: &JLongArray<'_>,
        comparator: &JObject<'_>,
        comparator_name: &JByteArray<'_>,
        logger: &JObject<'_>,
    ) -> Result<Self> {
        let mut fields = [0; FIELDS];
        settings.get_region(env, 0, &mut fields)?;
        let failure = Arc::new(ComparatorFailure::default());
        let gated = Arc::new(GatedEnv::new(failure.clone()));
        let mut options = numbers(&fields)?.env(gated.clone());
        if !comparator.is_null() {
            let name = bytes::text(env, comparator_name)?;
            let object = env.new_global_ref(comparator)?;
            options =
                options.comparator(Arc::new(JavaComparator::new(object, name, failure.clone())));
        }
        if !logger.is_null() {
            options = options.logger(Some(Arc::new(JavaLogger(env.new_global_ref(logger)?))));
        }
        Ok(Opening { options, env: gated, failure })
    }
}

fn numbers(fields: &[jlong; FIELDS]) -> Result<Options> {
    let flag = |at: usize| fields[at] != 0;
    let mut options = Options::new()
        .create_if_missing(flag(0))
        .error_if_exists(flag(1))
        .paranoid_checks(flag(2))
        .read_only(flag(3))
        .reuse_logs(flag(4))
        .write_buffer_size(size(fields[5], "writeBufferSize")?)
        .max_open_files(size(fields[6], "maxOpenFiles")?)
        .block_restart_interval(size(fields[7], "blockRestartInterval")?)
        .block_size(size(fields[8], "blockSize")?)
        .compression(if flag(9) { Compression::Snappy } else { Compression::None })
        .table_filter_bits(size(fields[11], "filterBits")?)
        .max_file_size(size(fields[12], "maxFileSize")?)
        .compaction_rate_limit(size(fields[13], "compactionRateLimit")? as u64);
    if fields[10] != 0 {
        options = options.block_cache_size(size(fields[10], "cacheSize")?);
    }
    if fields[14] != 0 {
        options = options.background_threads(size(fields[14], "backgroundThreads")?);
    }
    if fields[15] != 0 {
        options = options.block_cache(Some(CACHES.get(fields[15])?.as_ref().clone()));
    }
    if fields[16] != 0 {
        options = options.memory_budget(Some(BUDGETS.get(fields[16])?.as_ref().clone()));
    }
    if fields[17] != 0 {
        options = options.value_log(Some(size(fields[17], "valueLog")?));
    }
    Ok(options)
}
