//! What a native method fails with, and the Java exception that it becomes.

use std::any::Any;
use std::sync::Arc;

use jni::Env;
use jni::errors::{Error as JniError, ErrorPolicy, Result as JniResult};
use jni::objects::{JString, JThrowable};
use terrace::{Error, ErrorKind};

use crate::callbacks::Callbacks;
use crate::comparator_failure::Thrown;

/// Why a native method failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine's error, or one in its terms.
    Engine(Error),
    /// The comparator has failed, and what it threw is the cause.
    Comparator(Arc<Thrown>),
    /// The virtual machine's: an exception is pending, or a call was refused.
    Jni(JniError),
}

/// The result of a native method.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<JniError> for Failure {
    fn from(error: JniError) -> Self {
        Failure::Jni(error)
    }
}

/// The number of a kind, as `io.terrace.TerraceException.Kind` has them; 8 is any other.
fn kind_number(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::NotFound => 0,
        ErrorKind::Corruption => 1,
        ErrorKind::NotSupported => 2,
        ErrorKind::InvalidArgument => 3,
        ErrorKind::Io => 4,
        ErrorKind::Busy => 5,
        ErrorKind::Conflict => 6,
        ErrorKind::Closed => 7,
        _ => 8,
    }
}

/// Throws the Java exception and returns the default, which Java never sees.
pub(crate) struct Throw;

fn throw(
    env: &mut Env<'_>,
    kind: i32,
    message: &str,
    cause: Option<&JThrowable<'_>>,
) -> JniResult<()> {
    let message = JString::from_str(env, message)?;
    let none = JThrowable::null();
    let exception = Callbacks::exception(env, kind, &message, cause.unwrap_or(&none))?;
    match env.throw(&exception) {
        Ok(()) | Err(JniError::JavaException) => Ok(()),
        Err(error) => Err(error),
    }
}

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'local: 'method, 'method> = ();

    fn on_error<'local: 'method, 'method>(
        env: &mut Env<'local>,
        _: &mut (),
        failure: Failure,
    ) -> JniResult<T> {
        match failure {
            // The exception that is pending says more.
            Failure::Jni(JniError::JavaException) => {}
            Failure::Jni(_) if env.exception_check() => {}
            Failure::Jni(error) => throw(env, 8, &error.to_string(), None)?,
            Failure::Engine(error) => {
                throw(env, kind_number(error.kind()), error.message(), None)?;
            }
            Failure::Comparator(thrown) => {
                // What the exception threw while it was asked for its message.
                env.exception_clear();
                let kind = kind_number(ErrorKind::Io);
                throw(env, kind, thrown.message(), thrown.exception())?;
            }
        }
        Ok(T::default())
    }

    fn on_panic<'local: 'method, 'method>(
        env: &mut Env<'local>,
        _: &mut (),
        payload: Box<dyn Any + Send + 'static>,
    ) -> JniResult<T> {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        if !env.exception_check() {
            throw(env, 8, &format!("a defect in Terrace: {message}"), None)?;
        }
        Ok(T::default())
    }
}
