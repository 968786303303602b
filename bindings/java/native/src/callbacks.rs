//! The static methods of `io.terrace.Callbacks`, which native code calls.

use jni::Env;
use jni::objects::JClass;
use jni::refs::LoaderContext;

use crate::failure::Result;

#[expect(elided_lifetimes_in_paths, reason = "the macro's syntax has no place for a lifetime")]
mod bound {
    jni::bind_java_type! {
        pub(crate) Callbacks => "io.terrace.Callbacks",
        methods {
            static fn exception(kind: jint, message: JString, cause: JThrowable) -> JThrowable,
            static fn compare(comparator: JObject, left: jbyte[], right: jbyte[]) -> jint,
            static fn separator(comparator: JObject, start: jbyte[], limit: jbyte[]) -> jbyte[],
            static fn successor(comparator: JObject, key: jbyte[]) -> jbyte[],
            static fn log(logger: JObject, message: JString) -> (),
        },
    }
}

pub(crate) use bound::Callbacks;

native! {
    fn initialize() -> (),
}

/// Finds the class while its loader is at hand: a thread of the engine could not.
fn initialize<'local>(env: &mut Env<'local>, class: JClass<'local>) -> Result<()> {
    let loader = class.get_class_loader(env)?;
    bound::CallbacksAPI::get(env, &LoaderContext::Loader(&loader))?;
    Ok(())
}
