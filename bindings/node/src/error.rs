//! Errors of the engine as errors of JavaScript: the code that a program compares, and the text
//! that names file and offset.

use napi::bindgen_prelude::JsObjectValue;
use napi::{Env, JsValue};
use terrace::{Error, ErrorKind};

/// The `code` property of an error: abstract-level's where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(&'static str);

impl AsRef<str> for Code {
    fn as_ref(&self) -> &str {
        self.0
    }
}

/// The code of an error of the engine.
pub fn code(error: &Error) -> Code {
    Code(match error.kind() {
        ErrorKind::Corruption => "LEVEL_CORRUPTION",
        ErrorKind::Busy => "LEVEL_LOCKED",
        ErrorKind::Closed => "LEVEL_DATABASE_NOT_OPEN",
        ErrorKind::NotSupported => "LEVEL_NOT_SUPPORTED",
        ErrorKind::InvalidArgument => "LEVEL_INVALID_ARGUMENT",
        _ => "LEVEL_IO_ERROR",
    })
}

/// The error that a call throws.
pub fn thrown(error: &Error) -> napi::Error<Code> {
    napi::Error::new(code(error), error.to_string())
}

/// The error that a promise is rejected with: an `Error` with `code`.
pub fn rejection(env: Env, error: &Error) -> napi::Error {
    let text = error.to_string();
    let plain = || napi::Error::from_reason(text.clone());
    let object = env.create_error(plain()).and_then(|mut object| {
        object.set_named_property("code", code(error).as_ref())?;
        Ok(object)
    });
    object.map_or_else(|_| plain(), |object| object.to_unknown().into())
}

/// The error of a method that is called on a database which is not open.
pub fn not_open() -> Error {
    Error::closed("the database is not open")
}
