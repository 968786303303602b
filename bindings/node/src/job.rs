//! Work for libuv's thread pool, and the promise of its result.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::bindgen_prelude::{AsyncTask, ToNapiValue, TypeName};
use napi::{Env, Task};
use terrace::{Error, Result};

use crate::error::rejection;

/// What runs on the thread pool.
type Work<T> = Box<dyn FnOnce() -> Result<T> + Send>;

/// One piece of work. Its promise is resolved with the result, or rejected with an `Error` that has
/// a `code`.
pub struct Job<T>(Option<Work<T>>);

impl<T: Send + 'static + ToNapiValue + TypeName> Job<T> {
    /// Returns the promise of `work`, which has been handed to the thread pool.
    pub fn start(work: impl FnOnce() -> Result<T> + Send + 'static) -> AsyncTask<Self> {
        AsyncTask::new(Job(Some(Box::new(work))))
    }
}

impl<T: Send + 'static + ToNapiValue + TypeName> Task for Job<T> {
    type Output = Result<T>;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<Result<T>> {
        let Some(work) = self.0.take() else {
            return Ok(Err(Error::invalid_argument("a job runs once")));
        };
        // Whatever the work had its hands on is dropped with it or behind locks of the engine,
        // which notices a broken-off write by itself.
        Ok(catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(Error::io_message("the engine panicked"))))
    }

    fn resolve(&mut self, env: Env, output: Result<T>) -> napi::Result<T> {
        output.map_err(|error| rejection(env, &error))
    }
}
