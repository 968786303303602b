//! Threads of the engine that call Java.
//!
//! A thread that the virtual machine does not know is attached as a daemon, so that the machine
//! does not wait for it when it ends, and detached when the thread ends.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use jni::errors::{Error, Result};
use jni::{Env, JavaVM};

/// Detaches the thread that it belongs to when the thread ends.
struct Attached(JavaVM);

impl Drop for Attached {
    fn drop(&mut self) {
        let vm = self.0.get_raw();
        // SAFETY: `vm` is the machine that this very thread was attached to in `attach_daemon`;
        // the table of functions is the machine's and lives as long as the process. No Java frame
        // is on the stack: thread locals are dropped when the thread's own function has returned.
        unsafe { ((**vm).v1_1.DetachCurrentThread)(vm) };
    }
}

thread_local! {
    static ATTACHED: RefCell<Option<Attached>> = const { RefCell::new(None) };
}

fn attach_daemon(vm: &JavaVM) -> Result<()> {
    let raw = vm.get_raw();
    let mut env: *mut c_void = ptr::null_mut();
    // SAFETY: `raw` is a machine that lives as long as the process, `env` is written to before the
    // call returns, and no arguments are the default ones.
    let code =
        unsafe { ((**raw).v1_4.AttachCurrentThreadAsDaemon)(raw, &mut env, ptr::null_mut()) };
    if code != jni::sys::JNI_OK {
        return Err(Error::JniCall(jni::errors::JniError::ThreadDetached));
    }
    ATTACHED.with(|attached| *attached.borrow_mut() = Some(Attached(vm.clone())));
    Ok(())
}

/// Runs `work` in a frame of its own for references, on whatever thread.
pub(crate) fn with_env<R>(work: impl FnOnce(&mut Env<'_>) -> Result<R>) -> Result<R> {
    let vm = JavaVM::singleton()?;
    if !vm.is_thread_attached()? {
        attach_daemon(&vm)?;
    }
    vm.attach_current_thread(work)
}
