//! Budgets of memory that databases share.

use jni::Env;
use jni::objects::JClass;
use jni::sys::{jboolean, jlong};
use terrace::{Error, MemoryBudget};

use crate::failure::Result;
use crate::registry::Registry;

/// The budgets that Java holds.
pub(crate) static BUDGETS: Registry<MemoryBudget> = Registry::new("memory budget");

native! {
    fn memory_budget(bytes: jlong) -> jlong,
}

fn memory_budget<'local>(_: &mut Env<'local>, _: JClass<'local>, bytes: jlong) -> Result<jlong> {
    let bytes = usize::try_from(bytes)
        .map_err(|_| Error::invalid_argument(format!("a memory budget of {bytes} bytes")))?;
    Ok(BUDGETS.insert(MemoryBudget::new(bytes)))
}

native! {
    fn memory_budget_used(budget: jlong) -> jlong,
}

/// Bytes in use now.
fn memory_budget_used<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    budget: jlong,
) -> Result<jlong> {
    Ok(jlong::try_from(BUDGETS.get(budget)?.used()).unwrap_or(jlong::MAX))
}

native! {
    fn close_memory_budget(budget: jlong) -> jboolean,
}

/// Lets no more databases in. Returns false if it was closed before.
fn close_memory_budget<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    budget: jlong,
) -> Result<jboolean> {
    Ok(BUDGETS.remove(budget).is_some())
}
