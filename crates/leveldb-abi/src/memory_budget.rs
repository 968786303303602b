//! The memory budget that the environment sets for programs that know nothing of it.

use std::process;
use std::sync::{Mutex, PoisonError};

use terrace::MemoryBudget;

use crate::size;

/// That of a process, which has the number beside it: a child of a fork gets one of its own.
static OF_ENVIRONMENT: Mutex<Option<(u32, MemoryBudget)>> = Mutex::new(None);

/// The budget that `$TERRACE_MEMORY_BUDGET` asks for, one for all databases of the process: bytes,
/// or a number with K, M or G behind it. Anything else is as if it were not set.
pub(crate) fn of_environment() -> Option<MemoryBudget> {
    let bytes = size::parse(&std::env::var_os("TERRACE_MEMORY_BUDGET")?)?;
    let mut budget = OF_ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    let (_, budget) = match &*budget {
        Some((owner, _)) if *owner == process => budget.as_ref()?,
        _ => budget.insert((process, MemoryBudget::new(bytes))),
    };
    Some(budget.clone())
}
