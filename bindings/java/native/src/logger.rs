//! Messages of the engine for a logger that is written in Java.

use jni::objects::{JObject, JString};
use jni::refs::Global;
use terrace::Logger;

use crate::attach::with_env;
use crate::callbacks::Callbacks;

/// An `org.iq80.leveldb.Logger`. What it throws is dropped.
pub(crate) struct JavaLogger(pub(crate) Global<JObject<'static>>);

impl Logger for JavaLogger {
    fn log(&self, message: &str) {
        let _ = with_env(|env| {
            let message = JString::from_str(env, message)?;
            Callbacks::log(env, &self.0, &message)
        });
    }
}
