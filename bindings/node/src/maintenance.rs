//! What is done to databases that are closed.

use std::path::Path;

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use terrace::{Error, Options};

use crate::job::Job;

/// Removes the database in the directory `location`, and the directory if nothing else is in it.
#[napi]
pub fn destroy(location: String) -> AsyncTask<Job<()>> {
    Job::start(move || terrace::destroy(&location, &Options::new()))
}

/// Saves what can be saved of the database in the directory `location`.
#[napi]
pub fn repair(location: String) -> AsyncTask<Job<()>> {
    Job::start(move || {
        let path = Path::new(&location);
        path.metadata().map_err(|error| Error::io("open", path, error))?;
        terrace::repair(path, &Options::new()).map(drop)
    })
}
