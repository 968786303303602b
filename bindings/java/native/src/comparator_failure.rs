//! The failure of a comparator, which ends all use of its database.

use std::sync::{Arc, OnceLock};

use jni::errors::Error as JniError;
use jni::objects::JThrowable;
use jni::refs::{Global, Reference};
use terrace::{Error, Result};

/// What jni-rs has for the message of an exception that has none.
const NO_MESSAGE: &str = "<NULL>";

/// The first failure of a comparator.
#[derive(Debug)]
pub(crate) struct Thrown {
    /// One line for the exception that the operation throws.
    message: String,
    /// What the comparator threw, unless the virtual machine refused the call itself.
    exception: Option<Global<JThrowable<'static>>>,
}

impl Thrown {
    fn new(error: JniError) -> Self {
        let (text, exception) = match error {
            JniError::CaughtJavaException { exception, name, msg, .. } => {
                let first_line = msg.lines().next().unwrap_or_default();
                let text = match first_line {
                    "" | NO_MESSAGE => name,
                    line => format!("{name}: {line}"),
                };
                (text, (!exception.is_null()).then_some(exception))
            }
            error => (error.to_string(), None),
        };
        let message =
            format!("the comparator failed; close the database and open it again: {text}");
        Thrown { message, exception }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn exception(&self) -> Option<&JThrowable<'static>> {
        self.exception.as_deref()
    }
}

/// What a comparator failed with, once it has.
#[derive(Default)]
pub(crate) struct ComparatorFailure(OnceLock<Arc<Thrown>>);

impl ComparatorFailure {
    /// Keeps the first failure.
    pub(crate) fn set(&self, error: JniError) {
        self.0.get_or_init(|| Arc::new(Thrown::new(error)));
    }

    /// The failure, for an exception with its cause.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Arc<Thrown>> {
        self.0.get()
    }

    /// The failure as an error that the engine can hand on, without the exception.
    ///
    /// # Errors
    /// `Io` if the comparator has failed.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(thrown) => Err(Error::io_message(thrown.message())),
        }
    }
}
