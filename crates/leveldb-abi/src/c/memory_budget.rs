//! `terrace_memory_budget_t`: one bound for the memory of several databases.

use terrace::MemoryBudget;

use super::options::COptions;
use crate::guard::export;
use crate::memory::{hand_out, release};

/// `terrace_memory_budget_t`.
#[derive(Debug)]
pub struct Budget(MemoryBudget);

export! {
    /// A budget of so many bytes.
    fn terrace_memory_budget_create(bytes: usize) -> *mut Budget {
        hand_out(Budget(MemoryBudget::new(bytes)))
    }

    /// Releases a budget; databases opened with it keep to it.
    fn terrace_memory_budget_destroy(budget: *mut Budget) {
        drop(release(budget));
    }

    /// Bytes that count for a budget now.
    fn terrace_memory_budget_used(budget: *const Budget) -> usize {
        budget.as_ref().map_or(0, |budget| budget.0.used())
    }

    /// Sets the budget; null: the one of the environment, if that has one.
    fn terrace_options_set_memory_budget(options: *mut COptions, budget: *const Budget) {
        if let Some(options) = options.as_mut() {
            options.plain.memory_budget = budget.as_ref().map(|budget| budget.0.clone());
        }
    }
}
