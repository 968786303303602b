//! `leveldb_logger_t`, which `terrace/c.h` makes.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use terrace::Logger;

use crate::guard::export;
use crate::memory::{address, hand_out, release};

type Destructor = unsafe extern "C-unwind" fn(*mut c_void);
type Log = unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize);

/// `leveldb_logger_t`.
#[derive(Debug)]
pub struct CLogger {
    state: *mut c_void,
    destructor: Option<Destructor>,
    log: Log,
}

impl CLogger {
    /// The logger as the engine calls it.
    ///
    /// # Safety
    /// The result is not used after `terrace_logger_destroy`.
    pub(super) unsafe fn adapter(&self) -> Arc<dyn Logger> {
        Arc::new(LoggerAdapter { state: self.state, log: self.log })
    }
}

struct LoggerAdapter {
    state: *mut c_void,
    log: Log,
}

// SAFETY: the header asks of callers that the function may be called from any thread.
unsafe impl Send for LoggerAdapter {}
// SAFETY: likewise.
unsafe impl Sync for LoggerAdapter {}

impl Logger for LoggerAdapter {
    fn log(&self, message: &str) {
        // SAFETY: function and state live until the logger is destroyed, after the database.
        unsafe { (self.log)(self.state, address(message.as_bytes()), message.len()) };
    }
}

export! {
    /// A logger of the caller's.
    fn terrace_logger_create(
        state: *mut c_void, destructor: Option<Destructor>, log: Option<Log>,
    ) -> *mut CLogger {
        log.map_or(std::ptr::null_mut(), |log| hand_out(CLogger { state, destructor, log }))
    }

    /// Releases a logger and calls its destructor.
    fn terrace_logger_destroy(logger: *mut CLogger) {
        let released = release(logger);
        if let Some(CLogger { state, destructor: Some(destructor), .. }) = released.as_deref() {
            destructor(*state);
        }
    }
}
